"""A finite-budget group-relative policy update as validated data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

from exactgrpo.errors import DrawError, InputError, PolicyError, PromptError, ReferenceMassError, RewardError, ThetaError, UpdateError
from exactgrpo.numbers.arithmetic import Arithmetic, Column, Exact, Rows
from exactgrpo.numbers.decision import decide_sign
from exactgrpo.numbers.expression import Expression
from exactgrpo.numbers.inputs import exact_list, listed, refusal, whole
from exactgrpo.numbers.ladder import Execution
from exactgrpo.numbers.rational import exact
from exactgrpo.numbers.symbols import node
from exactgrpo.numbers.text import numbered
from exactgrpo.policies.family import PolicyFamily
from exactgrpo.policies.inputs import described, parameter_names
from exactgrpo.update.draws import Draws

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


class Reference(Protocol):
    """The reference policy: positive on exactly the policy support."""

    def log_mass(self, arithmetic: Arithmetic, family: PolicyFamily) -> Any:
        """log pi_ref(y|q) for all prompts and responses, flat over the family's rows."""

    def check(self, family: PolicyFamily) -> None:
        """Raise ReferenceMassError or ThetaError unless this is a reference for the family."""


@dataclass(frozen=True, eq=False)
class ReferenceMasses(Reference):
    """The reference by its masses: positive, summing to one for each prompt."""

    masses: Column

    @classmethod
    def of(cls, masses: Sequence[Sequence[Number]]) -> ReferenceMasses:
        """Return the reference with masses[prompt][response]. `Problem.of` checks it against the policy support.

        >>> ReferenceMasses.of([["1/2", "1/2"], [1]]).masses
        (Fraction(1, 2), Fraction(1, 2), Fraction(1, 1))
        """
        return cls(_flat(masses, "reference"))

    def log_mass(self, arithmetic: Arithmetic, family: PolicyFamily) -> Any:
        return arithmetic.log(arithmetic.exact(self.masses))

    def check(self, family: PolicyFamily) -> None:
        _check_numbers(self.masses, family.rows.size, "reference", "ReferenceMasses.of", ReferenceMassError)
        for q, row in enumerate(family.rows):
            for j, i in enumerate(row):
                if sign(self.masses[i], f"reference[{q}][{j}] > 0") <= 0:
                    raise ReferenceMassError(f"prompts[{q}].reference[{j}]", shown(self.masses[i]), "a reference mass is positive")
            total = sum((self.masses[i] for i in row), Fraction(0))
            if sign(total - 1, f"sum of reference[{q}] = 1"):
                raise ReferenceMassError(f"prompts[{q}].reference", shown(total), "reference masses sum to one")


@dataclass(frozen=True, eq=False)
class ReferenceLogits(Reference):
    """The reference by logits: mass_j proportional to exp(logit_j)."""

    logits: Column

    @classmethod
    def of(cls, logits: Sequence[Sequence[Number]]) -> ReferenceLogits:
        """Return the reference with logits[prompt][response]. `Problem.of` checks it against the policy support.

        >>> ReferenceLogits.of([[0, "log(2)"]]).logits[0]
        Fraction(0, 1)
        """
        return cls(_flat(logits, "reference"))

    def log_mass(self, arithmetic: Arithmetic, family: PolicyFamily) -> Any:
        logit = arithmetic.exact(self.logits)
        shifted = arithmetic.shift(logit, family.rows)
        return shifted - arithmetic.log(arithmetic.sums(arithmetic.exp(shifted), family.rows))[family.rows.owner]

    def check(self, family: PolicyFamily) -> None:
        _check_numbers(self.logits, family.rows.size, "reference", "ReferenceLogits.of", ReferenceMassError)


@dataclass(frozen=True, eq=False)
class ReferenceParameter(Reference):
    """The reference as the policy family at a parameter in U."""

    theta: Column

    @classmethod
    def of(cls, theta: Sequence[Number]) -> ReferenceParameter:
        """Return the reference at theta. `Problem.of` checks that it lies in U.

        >>> ReferenceParameter.of([0, "1/2"]).theta
        (Fraction(0, 1), Fraction(1, 2))
        """
        return cls(Column(exact_list(theta, "reference.theta", error=ThetaError)))

    def log_mass(self, arithmetic: Arithmetic, family: PolicyFamily) -> Any:
        return family.at(arithmetic, arithmetic.exact(self.theta)).log_mass()

    def check(self, family: PolicyFamily) -> None:
        _check_numbers(self.theta, family.size, "reference.theta", "ReferenceParameter.of", ThetaError, "parameters")
        check_parameter(family, self.theta, "reference.theta")


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
        low, high = _epsilon(epsilon)
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


def sign(x: Exact, question: str) -> int:
    """The decided sign of one exact number."""
    if isinstance(x, Fraction):
        return (x > 0) - (x < 0)
    return decide_sign(x, question=question).value


def shown(x: Exact) -> object:
    """An exact number as the value of an error."""
    from exactgrpo.numbers.real import Real

    if isinstance(x, Fraction):
        return str(x) if max(x.numerator.bit_length(), x.denominator.bit_length()) < 2000 else x
    return repr(Real.of(node(x)))


def _shown_parameter(theta: Column) -> str:
    texts = ["a long fraction" if isinstance(value, Fraction) else str(value) for value in map(shown, theta[:5])]
    return ", ".join(texts + ["..."] * (len(theta) > 5))


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


def _epsilon(epsilon: Any) -> tuple[Exact, Exact]:
    """The lower and the upper threshold."""
    is_pair = isinstance(epsilon, (list, tuple))
    if is_pair and len(epsilon) != 2:
        raise UpdateError("update.epsilon", f"{len(epsilon)} numbers", "one number, or the pair (epsilon_low, epsilon_high)")
    places = ("update.epsilon_low", "update.epsilon_high") if is_pair else ("update.epsilon", "update.epsilon")
    low, high = (exact(x, place) for x, place in zip(epsilon if is_pair else (epsilon, epsilon), places, strict=True))
    if sign(low, "epsilon > 0") <= 0 or sign(low - 1, "epsilon < 1") >= 0:
        raise UpdateError(places[0], shown(low), "0 < epsilon < 1")
    if is_pair and sign(high, "epsilon_high > 0") <= 0:
        raise UpdateError(places[1], shown(high), "epsilon_high > 0")
    return low, high


def _has(value: object, *methods: str) -> bool:
    return not isinstance(value, type) and all(callable(getattr(value, method, None)) for method in methods)


def _flat(rows: Sequence[Sequence[Number]], place: str) -> Column:
    """The exact numbers of a table [prompt][response] in one column."""
    return Column(
        x
        for q, row in enumerate(listed(rows, place, error=ReferenceMassError))
        for x in exact_list(row, f"{place}[{q}]", error=ReferenceMassError)
    )


def _check_numbers(column: object, size: int, place: str, maker: str, error: type[InputError], what: str = "responses") -> None:
    if not isinstance(column, Column) or not all(isinstance(x, (Fraction, Expression)) for x in column):
        raise refusal(place, column, f"{maker} makes exact numbers of what it is given", error)
    if len(column) != size:
        raise error(place, f"{len(column)} numbers", f"one number for each of the {size} {what}")


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


def check_parameter(family: PolicyFamily, theta: Column, place: str) -> None:
    """theta lies in U; for a family that is not one of ours also: its masses there are positive and sum to one."""
    if len(theta) != family.size:
        raise ThetaError(place, f"{len(theta)} numbers", f"one number for each of the {family.size} parameters")

    def program(arithmetic: Arithmetic) -> tuple[str, int] | None:
        point = arithmetic.exact(theta)
        for stage, quantity in enumerate(family.domain(arithmetic, point)):
            outside = (arithmetic.signs((place, "domain", stage), quantity, quantity * 0) <= 0).nonzero()[0]
            if len(outside):
                return "domain", int(outside[0])
        if not family.masses_by_construction:
            mass = family.at(arithmetic, point).mass
            bad = (arithmetic.signs((place, "mass"), mass, mass * 0) <= 0).nonzero()[0]
            if len(bad):
                return "mass", int(bad[0])
            total = arithmetic.sums(mass, family.rows)
            off = arithmetic.signs((place, "sum"), total, total * 0 + 1).nonzero()[0]
            if len(off):
                return "sum", int(off[0])
        return None

    execution = Execution(program, describe=lambda key, i: f"{place}: sign of {key[1]} condition {i + 1}")
    if execution.undecided is not None:
        raise execution.undecided
    if execution.outcome is not None:
        what, i = execution.outcome
        if what == "domain":
            raise ThetaError(place, _shown_parameter(theta), f"lies in the open domain U: strict condition {i + 1} fails")
        rule = f"the masses of prompt {i + 1} sum to one" if what == "sum" else f"mass {i + 1} is positive"
        raise PolicyError(place, _shown_parameter(theta), rule)
