"""What the update does not promise: monotone improvement, unbiasedness, convergence. Each is false in general."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from exactgrpo.claims.catalogue.variables import entries, laws, numbers, positive_number, slopes, whole, whole_numbers
from exactgrpo.claims.claim import Claim
from exactgrpo.field.expected_gradient import expected_group_gradient, reward_gradient
from exactgrpo.field.inputs import sum_of
from exactgrpo.numbers.real import Real
from exactgrpo.policies.family import PolicyFamily
from exactgrpo.policies.simplex import Simplex
from exactgrpo.policies.softmax import Softmax
from exactgrpo.update.draws import Tape
from exactgrpo.update.groups import advantages
from exactgrpo.update.problem import Problem, Prompt
from exactgrpo.update.reference import ReferenceMasses
from exactgrpo.update.run import Run, run

SOURCE = "the finite-budget group-relative policy update, closing link, which asserts none of these"
HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)


def _small_run(
    family: PolicyFamily,
    theta0: Sequence[Any],
    rewards: Sequence[Any],
    drawn: Sequence[int],
    *,
    step_size: Fraction,
    reference: Sequence[Fraction] | None = None,
    outer_iterations: int = 1,
    inner_steps: int = 1,
) -> Run:
    """A decided run on one prompt with the same draws in each iteration; beta = 1 where there is a reference; epsilon = 1/4."""
    names = [f"y{j + 1}" for j in range(len(rewards))]
    prompt = Prompt.of("q", names, rewards)
    group = [names[int(j)] for j in drawn]  # a file gives them back as fractions
    finished = run(
        Problem.of(
            prompts=[prompt],
            family=family,
            theta0=theta0,
            group_size=len(group),
            outer_iterations=outer_iterations,
            inner_steps=inner_steps,
            epsilon=QUARTER,
            beta=0 if reference is None else 1,
            step_size=step_size,
            draws=Tape.of([[group]] * outer_iterations, [prompt]),
            reference=None if reference is None else ReferenceMasses.of([reference]),
        )
    )
    if finished.undecided is not None:
        raise finished.undecided
    return finished


def _reward_after_step(policy: Sequence[Fraction], rewards: Sequence[Fraction], drawn: Sequence[int], step_size: Fraction) -> Real:
    """The expected reward after a step in one logit for each response."""
    logits = [[[int(i == j) for i in range(3)] for j in range(3)]]
    theta = _small_run(Softmax.of(logits, size=3, base=[policy]), [0, 0, 0], rewards, drawn, step_size=step_size).theta
    weights = [p * t.exp() for p, t in zip(policy, theta, strict=True)]
    return sum_of([w * r for w, r in zip(weights, rewards, strict=True)]) / sum_of(weights)


def _objectives(policy: Sequence[Fraction], reference: Sequence[Fraction], step_size: Fraction) -> tuple[Real, Real]:
    """F at the first and at the last inner step of two, on equal rewards: minus the divergence from the reference."""
    pulled = _small_run(Simplex.of([2]), policy[:1], [0, 0], [0, 0], step_size=step_size, reference=reference, inner_steps=2)
    first, last = pulled.steps[0].objective, pulled.steps[-1].objective
    if first is None or last is None:
        raise ArithmeticError("an answered step has an objective")
    return first, last


def _moves(policy: Sequence[Fraction], reference: Sequence[Fraction], step_size: Fraction) -> tuple[Real, Real]:
    """How far the first and the second of two outer iterations move the parameter."""
    pulled = _small_run(Simplex.of([2]), policy[:1], [0, 0], [0, 0], step_size=step_size, reference=reference, outer_iterations=2)
    path = [step.theta[0] for step in pulled.steps] + [pulled.theta[0]] * 2
    return abs(path[1] - path[0]), abs(path[2] - path[1])


def _comes_back(policy: Sequence[Fraction], step_size: Fraction) -> bool:
    """Whether two updates on equal rewards, pulled to the uniform reference, move one logit away and back to where it was."""
    start = Real.of(policy[0] / policy[1]).log()
    logit, uniform = Softmax.of([[[1], [0]]], size=1), [HALF, HALF]
    pulled = _small_run(logit, [start], [0, 0], [0, 0], step_size=step_size, reference=uniform, outer_iterations=2)
    return bool(pulled.theta[0] == start and pulled.steps[1].theta[0] != start)


CLAIMS = (
    Claim(
        "step-never-lowers-expected-reward",
        "One update never lowers the expected reward.",
        {
            **laws(3, "policy"),
            "rewards": whole_numbers(3),
            "drawn": entries(whole(0, 2), 2),
            "step_size": positive_number(),
        },
        left=_reward_after_step,
        right=lambda policy, rewards: sum(p * r for p, r in zip(policy, rewards, strict=True)),
        relation=">=",
        source=SOURCE,
        latex=r"E_{\theta_t} R \ge E_{\theta_{t-1}} R",
        expected=False,
    ),
    Claim(
        "inner-step-never-lowers-the-objective",
        "An inner step never lowers the objective whose gradient it follows.",
        {**laws(2, "policy", "reference"), "step_size": positive_number(min=Fraction(1, 16), max=1, denominator=16)},
        left=lambda policy, reference, step_size: _objectives(policy, reference, step_size)[1],
        right=lambda policy, reference, step_size: _objectives(policy, reference, step_size)[0],
        relation=">=",
        source=SOURCE,
        latex=r"F_t(\theta^{(k)}) \ge F_t(\theta^{(k-1)})",
        expected=False,
    ),
    Claim(
        "expected-step-is-the-policy-gradient",
        "The expected first step follows the gradient of the expected reward.",
        {**laws(2, "policy"), "features": numbers(2), "rewards": numbers(2)},
        left=lambda policy, features, rewards: expected_group_gradient(
            policy, slopes(policy, features), rewards, group_size=2, advantages=advantages
        ),
        right=lambda policy, features, rewards: reward_gradient(slopes(policy, features), rewards),
        source=SOURCE,
        latex=r"E \nabla F_t(\theta_{t-1}) = \nabla E_{\theta} R",
        expected=False,
    ),
    Claim(
        "updates-get-shorter",
        "With data that do not change, each update moves the parameter no further than the one before.",
        {**laws(2, "policy", "reference"), "step_size": positive_number(min=Fraction(1, 16), max=1, denominator=16)},
        left=lambda policy, reference, step_size: _moves(policy, reference, step_size)[1],
        right=lambda policy, reference, step_size: _moves(policy, reference, step_size)[0],
        relation="<=",
        source=SOURCE,
        latex=r"|\theta_{t+1} - \theta_t| \le |\theta_t - \theta_{t-1}|",
        expected=False,
    ),
    Claim(
        "updates-never-come-back",
        "Updates whose data do not change never come back to a parameter that they have left, so they can converge.",
        {**laws(2, "policy"), "step_size": positive_number(min=1, max=16, denominator=2)},
        conclusion=lambda policy, step_size: not _comes_back(policy, step_size),
        source=SOURCE,
        latex=r"\theta_{t+2} \ne \theta_t \text{ unless } \theta_{t+1} = \theta_t",
        expected=False,
    ),
)
