"""A finite-budget group-relative policy update as validated data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

from exactgrpo.errors import PolicyError, PromptError, ReferenceMassError, RewardError, ThetaError, UpdateError
from exactgrpo.numbers.arithmetic import Arithmetic, Column, Exact
from exactgrpo.numbers.decision import decide_sign
from exactgrpo.numbers.ladder import Execution
from exactgrpo.numbers.rational import exact
from exactgrpo.numbers.symbols import node
from exactgrpo.policies.family import PolicyFamily
from exactgrpo.update.draws import Draws

Number = Any
"""An exact number as `exactgrpo.numbers.rational.exact` accepts it: int, Fraction, Decimal, text, or Real."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt with its ordered policy support and the reward of each response."""

    name: str
    responses: tuple[str, ...]
    rewards: tuple[Exact, ...]


class Reference(Protocol):
    """log pi_ref(y|q) for all prompts and responses, flat over the family's rows."""

    def log_mass(self, arithmetic: Arithmetic, family: PolicyFamily) -> Any: ...

    def check(self, family: PolicyFamily) -> None: ...


@dataclass(frozen=True, eq=False)
class ReferenceMasses:
    """The reference by its masses: positive, summing to one for each prompt."""

    masses: Column

    def log_mass(self, arithmetic: Arithmetic, family: PolicyFamily) -> Any:
        return arithmetic.log(arithmetic.exact(self.masses))

    def check(self, family: PolicyFamily) -> None:
        for q, row in enumerate(family.rows):
            for j, i in enumerate(row):
                if sign(self.masses[i], f"reference[{q}][{j}] > 0") <= 0:
                    raise ReferenceMassError(f"prompts[{q}].reference[{j}]", shown(self.masses[i]), "a reference mass is positive")
            total = sum((self.masses[i] for i in row), Fraction(0))
            if sign(total - 1, f"sum of reference[{q}] = 1"):
                raise ReferenceMassError(f"prompts[{q}].reference", f"sum {shown(total)}", "reference masses sum to one")


@dataclass(frozen=True, eq=False)
class ReferenceLogits:
    """The reference by logits: mass_j proportional to exp(logit_j)."""

    logits: Column

    def log_mass(self, arithmetic: Arithmetic, family: PolicyFamily) -> Any:
        logit = arithmetic.exact(self.logits)
        shifted = arithmetic.shift(logit, family.rows)
        return shifted - arithmetic.log(arithmetic.sums(arithmetic.exp(shifted), family.rows))[family.rows.owner]

    def check(self, family: PolicyFamily) -> None:
        return


@dataclass(frozen=True, eq=False)
class ReferenceParameter:
    """The reference as the policy family at a parameter in U."""

    theta: Column

    def log_mass(self, arithmetic: Arithmetic, family: PolicyFamily) -> Any:
        return family.at(arithmetic, arithmetic.exact(self.theta)).log_mass()

    def check(self, family: PolicyFamily) -> None:
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
        """A checked problem.

        `epsilon` may be a pair (epsilon_low, epsilon_high). `step_size` is one number or a T x K table. `reference` may be
        missing only when beta is 0. Raises the error class of the part that is wrong; UndecidedError if, say, the sum of
        irrational reference masses cannot be decided.
        """
        rows = family.rows
        if not prompts:
            raise PromptError("prompts", [], "there is at least one prompt")
        q = repeated([p.name for p in prompts])
        if q is not None:
            raise PromptError(f"prompts[{q}].name", prompts[q].name, "prompts are distinct")
        for q, p in enumerate(prompts):
            if not p.responses:
                raise PromptError(f"prompts[{q}].responses", [], "a prompt has at least one response")
            j = repeated(p.responses)
            if j is not None:
                raise PromptError(f"prompts[{q}].responses[{j}]", p.responses[j], "the responses of a prompt are distinct")
            if len(p.rewards) != len(p.responses):
                raise RewardError(f"prompts[{q}].rewards", f"{len(p.rewards)} numbers", f"one reward for each of the {len(p.responses)} responses")
        if list(rows.lengths) != [len(p.responses) for p in prompts]:
            raise PolicyError("policy", str(list(rows.lengths)), f"the policy has one mass for each response: {[len(p.responses) for p in prompts]}")
        for name, value, least in (("group_size", group_size, 2), ("outer_iterations", outer_iterations, 1), ("inner_steps", inner_steps, 1)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise UpdateError(f"update.{name}", value, f"an integer of at least {least}")
        low, high = epsilon if isinstance(epsilon, tuple) else (epsilon, epsilon)
        low, high = exact(low, "update.epsilon"), exact(high, "update.epsilon")
        symmetric = not isinstance(epsilon, tuple)
        if sign(low, "epsilon > 0") <= 0 or sign(low - 1, "epsilon < 1") >= 0:
            raise UpdateError("update.epsilon" if symmetric else "update.epsilon_low", shown(low), "0 < epsilon < 1")
        if sign(high, "epsilon_high > 0") <= 0:
            raise UpdateError("update.epsilon_high", shown(high), "epsilon_high > 0")
        weight = exact(beta, "update.beta")
        if sign(weight, "beta >= 0") < 0:
            raise UpdateError("update.beta", shown(weight), "beta >= 0")
        if reference is None and weight != 0:
            raise ReferenceMassError("reference", "missing", "a positive beta needs a reference")
        sizes = step_size_table(step_size, outer_iterations, inner_steps)
        start = Column(exact(x, f"policy.theta0[{i}]") for i, x in enumerate(theta0))
        labels = tuple(parameters) if parameters is not None else tuple(f"theta{i + 1}" for i in range(family.size))
        if len(start) != family.size:
            raise ThetaError("policy.theta0", f"{len(start)} numbers", f"theta0 has one number for each of the {family.size} parameters")
        if len(labels) != family.size:
            raise ThetaError("policy.parameters", f"{len(labels)} names", f"one name for each of the {family.size} parameters")
        draws.check(prompts, group_size, outer_iterations)
        check_parameter(family, start, "policy.theta0")
        if reference is not None:
            reference.check(family)
        return cls(
            tuple(prompts), family, start, labels, reference, group_size, outer_iterations, inner_steps, low, high, weight, sizes, draws
        )

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


def shown(x: Exact) -> str:
    """An exact number in an error message."""
    from exactgrpo.numbers.real import Real

    return str(x) if isinstance(x, Fraction) else repr(Real.of(node(x)))


def step_size_table(step_size: Any, outer: int, inner: int) -> Column:
    if isinstance(step_size, (list, tuple)):
        if len(step_size) != outer or any(not isinstance(row, (list, tuple)) or len(row) != inner for row in step_size):
            raise UpdateError("update.step_size", "a table of another shape", f"one number, or {outer} rows of {inner} numbers")
        sizes = Column(exact(x, f"update.step_size[{t}][{k}]") for t, row in enumerate(step_size) for k, x in enumerate(row))
    else:
        sizes = Column([exact(step_size, "update.step_size")])
    for i, eta in enumerate(sizes):
        if sign(eta, "step size > 0") <= 0:
            place = "update.step_size" if len(sizes) == 1 else f"update.step_size[{i // inner}][{i % inner}]"
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
            raise ThetaError(place, ", ".join(shown(x) for x in theta)[:200], f"lies in the open domain U: strict condition {i + 1} fails")
        rule = f"the masses of prompt {i + 1} sum to one" if what == "sum" else f"mass {i + 1} is positive"
        raise PolicyError(place, ", ".join(shown(x) for x in theta)[:200], rule)
