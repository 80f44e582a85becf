"""A finite-budget group-relative policy update as validated data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from exactgrpo.errors import DrawError, PolicyError, PromptError, ReferenceMassError, RewardError, ThetaError, UpdateError
from exactgrpo.numbers.arithmetic import Column, Exact, Rows
from exactgrpo.numbers.inputs import exact_list, listed, refusal, whole
from exactgrpo.numbers.rational import exact
from exactgrpo.numbers.text import numbered
from exactgrpo.policies.family import PolicyFamily
from exactgrpo.policies.inputs import described, parameter_names
from exactgrpo.update.domain import check_parameter, shown, sign, thresholds
from exactgrpo.update.draws import Draws
from exactgrpo.update.reference import Reference

Number = Any
"""An exact number as `exactgrpo.numbers.rational.exact` accepts it: int, Fraction, Decimal, text, or Real."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt with its ordered policy support and the reward of each response. Build one with `Prompt.of`, which checks it."""

    name: str
    responses: tuple[str, ...]
    rewards: tuple[Exact, ...]

    @classmethod
    def of(cls, name: str, responses: Sequence[str], rewards: Sequence[Number], *, place: str = "prompt") -> Prompt:
        """Return the prompt: distinct responses, and one exact number for each as its reward.

        Raises PromptError, RewardError, or the error of `exactgrpo.numbers.rational.exact` for a reward; `place` names the prompt.

        >>> Prompt.of("q", ["a", "b"], [1, "0.5"]).rewards
        (Fraction(1, 1), Fraction(1, 2))
        """
        if not isinstance(name, str):
            raise refusal(f"{place}.name", name, "the name of a prompt is text", PromptError)
        responses = tuple(listed(responses, f"{place}.responses", error=PromptError))
        if not responses:
            raise PromptError(f"{place}.responses", [], "a prompt has at least one response")
        for j, response in enumerate(responses):
            if not isinstance(response, str):
                raise refusal(f"{place}.responses[{j}]", response, "a response is text", PromptError)
        twice = repeated(responses)
        if twice is not None:
            raise PromptError(f"{place}.responses[{twice}]", responses[twice], "the responses of a prompt are distinct")
        numbers = tuple(exact_list(rewards, f"{place}.rewards", error=RewardError))
        if len(numbers) != len(responses):
            raise RewardError(f"{place}.rewards", f"{len(numbers)} numbers", f"one reward for each of the {len(responses)} responses")
        return cls(name, responses, numbers)


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything that the update is a function of. Build one with `Problem.of`, which checks it."""

    prompts: tuple[Prompt, ...]
    family: PolicyFamily
    theta0: Column
    parameters: tuple[str, ...]
    reference: Reference | None
    group_size: int
    outer_iterations: int
    inner_steps: int
    epsilon_low: Exact
    epsilon_high: Exact
    beta: Exact
    step_sizes: Column
    draws: Draws
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        *,
        prompts: Sequence[Prompt],
        family: PolicyFamily,
        theta0: Sequence[Number],
        group_size: int,
        outer_iterations: int,
        inner_steps: int,
        epsilon: Number | tuple[Number, Number],
        beta: Number,
        step_size: Number | Sequence[Sequence[Number]],
        draws: Draws,
        reference: Reference | None = None,
        parameters: Sequence[str] | None = None,
    ) -> Problem:
        """Return the checked problem.

        Numbers are what `exactgrpo.numbers.rational.exact` accepts. `epsilon` may be a pair (epsilon_low, epsilon_high).
        `step_size` is one number or a T x K table. `reference` may be missing only when beta is 0. `parameters` names the entries
        of theta, by default as the family does. Raises the error class of the part that is wrong, with place, value and rule, and
        InexactInputError for a float anywhere; UndecidedError if, say, the sum of irrational reference masses cannot be decided.

        >>> from exactgrpo.policies.simplex import Simplex
        >>> from exactgrpo.update.draws import Seed
        >>> problem = Problem.of(
        ...     prompts=[Prompt.of("q", ["a", "b"], [1, 0])], family=Simplex.of([2]), theta0=["1/2"], group_size=2,
        ...     outer_iterations=1, inner_steps=3, epsilon="1/5", beta=0, step_size="1/16", draws=Seed(7),
        ... )
        >>> problem.theta0, problem.step_size(1, 3), problem.parameters
        ((Fraction(1, 2),), Fraction(1, 16), ('theta1',))
        """
        asked = _checked_prompts(prompts)
        _check_family(family, asked)
        G = whole(group_size, "update.group_size", least=2, error=UpdateError)
        T = whole(outer_iterations, "update.outer_iterations", least=1, error=UpdateError)
        K = whole(inner_steps, "update.inner_steps", least=1, error=UpdateError)
        low, high = thresholds(epsilon, "update.epsilon")
        weight = exact(beta, "update.beta")
        if sign(weight, "beta >= 0") < 0:
            raise UpdateError("update.beta", shown(weight), "beta >= 0")
        if reference is None and weight != 0:
            raise ReferenceMassError("reference", "missing", "a positive beta needs a reference")
        sizes = step_size_table(step_size, T, K)
        start = Column(exact_list(theta0, "policy.theta0", error=ThetaError))
        if len(start) != family.size:
            raise ThetaError("policy.theta0", f"{len(start)} numbers", f"theta0 has one number for each of the {family.size} parameters")
        labels = _labels(family, parameters)
        if not _has(draws, "check", "take"):
            raise refusal("update.draws", draws, "draws are Tape.of(draws, prompts) or Seed(n)", DrawError)
        draws.check(asked, G, T)
        check_parameter(family, start, "policy.theta0")
        if reference is not None:
            if not _has(reference, "check", "log_mass"):
                rule = "a reference is made by ReferenceMasses.of, ReferenceLogits.of or ReferenceParameter.of"
                raise refusal("reference", reference, rule, ReferenceMassError)
            reference.check(family)
        return cls(asked, family, start, labels, reference, G, T, K, low, high, weight, sizes, draws)

    @property
    def rewards(self) -> tuple[Exact, ...]:
        """All rewards, flat over the rows of the family."""
        flat = self.cache.get("rewards")
        if flat is None:
            flat = self.cache["rewards"] = tuple(r for p in self.prompts for r in p.rewards)
        return flat  # type: ignore[no-any-return]

    def step_size(self, t: int, k: int) -> Exact:
        """eta_{t,k}, counted from 1."""
        return self.step_sizes[0] if len(self.step_sizes) == 1 else self.step_sizes[(t - 1) * self.inner_steps + k - 1]

    def cached(self, key: Any, make: Callable[[], Any]) -> Any:
        """Exact data that every arithmetic needs, made once."""
        value = self.cache.get(key)
        if value is None:
            value = self.cache[key] = make()
        return value


def repeated(names: Sequence[str]) -> int | None:
    """The position of the first name that stands earlier too, found in one pass.

    >>> repeated(["a", "b", "a", "b"]), repeated(["a", "b"])
    (2, None)
    """
    known: set[str] = set()
    for i, name in enumerate(names):
        if name in known:
            return i
        known.add(name)
    return None


def _checked_prompts(prompts: Sequence[Prompt]) -> tuple[Prompt, ...]:
    """The prompts, each as `Prompt.of` makes it, with distinct names."""
    checked = []
    for q, prompt in enumerate(listed(prompts, "prompts", error=PromptError)):
        if not isinstance(prompt, Prompt):
            raise refusal(f"prompts[{q}]", prompt, "a prompt is made by Prompt.of(name, responses, rewards)", PromptError)
        checked.append(Prompt.of(prompt.name, prompt.responses, prompt.rewards, place=f"prompts[{q}]"))
    if not checked:
        raise PromptError("prompts", [], "there is at least one prompt")
    twice = repeated([prompt.name for prompt in checked])
    if twice is not None:
        raise PromptError(f"prompts[{twice}].name", checked[twice].name, "prompts are distinct")
    return tuple(checked)


def _check_family(family: PolicyFamily, prompts: Sequence[Prompt]) -> None:
    """The family has rows and a size, and one mass for each response."""
    if not isinstance(family, PolicyFamily):
        raise refusal("policy", family, "a policy is a PolicyFamily, such as Softmax.of(...)", PolicyError)
    if not isinstance(getattr(family, "rows", None), Rows):
        raise PolicyError("policy", type(family).__name__, "a policy family has rows, of class Rows")
    whole(getattr(family, "size", None), "policy.size", least=0, error=PolicyError)
    lengths = [len(prompt.responses) for prompt in prompts]
    if list(family.rows.lengths) != lengths:
        value = f"rows of {described(family.rows.lengths)}"
        raise PolicyError("policy", value, f"the policy has one mass for each response: {described(lengths)}")


def _labels(family: PolicyFamily, parameters: Sequence[str] | None) -> tuple[str, ...]:
    """The names of the parameters: those given, or the family's, or theta1, theta2, ..."""
    if parameters is None:
        return family.parameters or tuple(parameter_names(None, family.size))
    names = listed(parameters, "policy.parameters", error=ThetaError)
    for i, name in enumerate(names):
        if not isinstance(name, str):
            raise refusal(f"policy.parameters[{i}]", name, "the name of a parameter is text", ThetaError)
    if len(names) != family.size:
        raise ThetaError("policy.parameters", f"{len(names)} names", f"one name for each of the {family.size} parameters")
    return tuple(numbered(list(names), "policy.parameters"))


def _has(value: object, *methods: str) -> bool:
    return not isinstance(value, type) and all(callable(getattr(value, method, None)) for method in methods)


def step_size_table(step_size: Any, outer: int, inner: int) -> Column:
    """One number, or outer x inner of them row by row: the checked step sizes."""
    is_number = isinstance(step_size, str) or not isinstance(step_size, Collection)
    if is_number:
        sizes = Column([exact(step_size, "update.step_size")])
    else:
        rule = f"one number, or {outer} rows of {inner} numbers"
        rows = [
            exact_list(row, f"update.step_size[{t}]", rule, error=UpdateError)
            for t, row in enumerate(listed(step_size, "update.step_size", rule, error=UpdateError))
        ]
        if len(rows) != outer or any(len(row) != inner for row in rows):
            raise UpdateError("update.step_size", f"{len(rows)} rows of {described(map(len, rows))}", rule)
        sizes = Column(x for row in rows for x in row)
    for i, eta in enumerate(sizes):
        if sign(eta, "step size > 0") <= 0:
            place = "update.step_size" if is_number else f"update.step_size[{i // inner}][{i % inner}]"
            raise UpdateError(place, shown(eta), "step sizes are positive")
    return sizes


