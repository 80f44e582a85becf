"""The procedure as it is stated, with oracles of your own: Python callables over exact numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from exactgrpo.errors import InputError, PromptError, ThetaError, UndecidedError, UpdateError
from exactgrpo.numbers.real import Real
from exactgrpo.update.groups import advantages
from exactgrpo.update.loop import Counts, Status, update_loop
from exactgrpo.update.problem import step_size_table

Theta = tuple[Real, ...]


@dataclass(frozen=True, slots=True)
class FrozenData:
    """What stays fixed through the inner steps of outer iteration t (from 1): draws, rewards and advantages, [prompt][sample]."""

    t: int
    theta_old: Theta
    draws: tuple[tuple[Any, ...], ...]
    rewards: tuple[tuple[Real, ...], ...]
    advantages: tuple[tuple[Real, ...], ...]


@dataclass(frozen=True, slots=True)
class LiteralStep:
    """One gradient attempt at `theta`, level (t, k): None for what the procedure did not come to."""

    level: tuple[int, int]
    theta: Theta
    gradient: Theta | None
    proposal: Theta | None
    in_domain: bool | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the procedure ended: its status, the last valid parameter, exact counts, and every step."""

    status: Status | Literal["undecided"]
    theta: Theta
    counts: Counts
    steps: tuple[LiteralStep, ...]
    undecided: UndecidedError | None = None


@dataclass(slots=True)
class _Callables:
    """The user's callables as the oracle of the loop; what they return is checked."""

    prompts: tuple[Any, ...]
    group_size: int
    step_size: Callable[[int, int], Real]
    draw: Callable[[int, Theta, Any, int], Any]
    reward: Callable[[Any, Any], Any]
    gradient_of: Callable[[FrozenData, Theta], Sequence[Any] | None]
    is_valid: Callable[[Theta], bool]
    counts: Counts = field(default_factory=Counts)
    steps: list[LiteralStep] = field(default_factory=list)

    def freeze(self, t: int, theta: Theta) -> FrozenData:
        draws = tuple(tuple(self.draw(t, theta, prompt, i) for i in range(self.group_size)) for prompt in self.prompts)
        self.counts.draws += len(self.prompts) * self.group_size
        rewards = tuple(
            tuple(Real.of(self.reward(prompt, y), f"reward({prompt!r}, {y!r})") for y in group)
            for prompt, group in zip(self.prompts, draws, strict=True)
        )
        self.counts.reward_evaluations += len(self.prompts) * self.group_size
        self.counts.square_roots += len(self.prompts)
        return FrozenData(t, theta, draws, rewards, tuple(advantages(group) for group in rewards))

    def gradient(self, level: tuple[int, int], theta: Theta, frozen: FrozenData) -> Theta | None:
        self.steps.append(LiteralStep(level, theta, None, None, None))
        answer = self.gradient_of(frozen, theta)
        if answer is None:
            return None
        place = f"gradient at outer iteration {level[0]}, inner step {level[1]}"
        vector = tuple(Real.of(x, f"{place}, entry {j + 1}") for j, x in enumerate(answer))
        if len(vector) != len(theta):
            raise InputError(place, f"{len(vector)} numbers", f"one number for each of the {len(theta)} parameters, or None")
        return vector

    def propose(self, level: tuple[int, int], theta: Theta, gradient: Theta) -> Theta:
        eta = self.step_size(*level)
        proposal = tuple(x + eta * g for x, g in zip(theta, gradient, strict=True))
        self.steps[-1] = LiteralStep(level, theta, gradient, proposal, None)
        return proposal

    def contains(self, level: tuple[int, int], theta: Theta) -> bool:
        answer = self.is_valid(theta)
        if not isinstance(answer, bool):
            raise InputError("domain oracle", answer, "returns True or False")
        step = self.steps[-1]
        self.steps[-1] = LiteralStep(level, step.theta, step.gradient, step.proposal, answer)
        return answer


def run_procedure(
    *,
    theta0: Sequence[Any],
    prompts: Sequence[Any],
    draw: Callable[[int, Theta, Any, int], Any],
    reward: Callable[[Any, Any], Any],
    gradient: Callable[[FrozenData, Theta], Sequence[Any] | None],
    domain: Callable[[Theta], bool],
    group_size: int,
    outer_iterations: int,
    inner_steps: int,
    step_size: Any,
) -> Outcome:
    """Run the T x K procedure with oracles of your own; the loop, its statuses and its counts are those of `run`.

    `draw(t, theta, prompt, sample)` returns a response; `reward(prompt, response)` an exact number; `gradient(frozen, theta)` the
    gradient of F_t as exact numbers, or None where it is undefined; `domain(theta)` True exactly on U. theta is a tuple of `Real`.
    Counts of masses and logarithms stay 0: they happen inside your oracles. An UndecidedError that an oracle raises ends the run
    as ``"undecided"``. Theorems: run_correct, run_counts (Procedure.v).

    >>> outcome = run_procedure(
    ...     theta0=["1/2"], prompts=["q"], draw=lambda t, theta, q, i: "ab"[i], reward=lambda q, y: int(y == "a"),
    ...     gradient=lambda frozen, theta: [2] if theta[0] < frozen.theta_old[0] * Real.of("5/4") else None,
    ...     domain=lambda theta: bool(0 < theta[0]) and bool(theta[0] < 1),
    ...     group_size=2, outer_iterations=1, inner_steps=3, step_size="1/16",
    ... )
    >>> outcome.status, outcome.theta, outcome.counts.gradient_attempts
    ('undefined-gradient', (Real('5/8'),), 2)
    """
    for name, value, least in (("group_size", group_size, 2), ("outer_iterations", outer_iterations, 1), ("inner_steps", inner_steps, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise UpdateError(name, value, f"an integer of at least {least}")
    names = tuple(prompts)
    if not names or len(set(names)) != len(names):
        raise PromptError("prompts", repr(names), "a non-empty list of distinct prompts")
    sizes = step_size_table(step_size, outer_iterations, inner_steps)
    oracle = _Callables(
        names,
        group_size,
        lambda t, k: Real.of(sizes[0] if len(sizes) == 1 else sizes[(t - 1) * inner_steps + k - 1]),
        draw,
        reward,
        gradient,
        domain,
    )
    start = tuple(Real.of(x, f"theta0[{i}]") for i, x in enumerate(theta0))
    if not oracle.is_valid(start):
        raise ThetaError("theta0", ", ".join(map(repr, start)), "lies in the open domain U")
    try:
        ending = update_loop(oracle, start, outer_iterations=outer_iterations, inner_steps=inner_steps)
    except UndecidedError as error:
        last = oracle.steps[-1].theta if oracle.steps else start
        return Outcome("undecided", last, oracle.counts, tuple(oracle.steps), error)
    return Outcome(ending.status, ending.theta, oracle.counts, tuple(oracle.steps))
