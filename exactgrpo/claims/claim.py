"""A claim is data: variables, hypotheses, and a conclusion that is a predicate or a relation between two sides."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from exactgrpo.errors import ClaimError, InexactInputError
from exactgrpo.numbers.from_sympy import is_sympy
from exactgrpo.numbers.real import Real

Relation = Literal["==", "!=", "<=", "<", ">=", ">"]
RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
}
Instance = Mapping[str, Any]
ARITHMETIC = "arithmetic"


@dataclass(frozen=True, slots=True)
class Sides:
    """The conclusion of a claim at one instance: whether it holds, and both sides (None for a predicate)."""

    holds: bool
    left: Any = None
    right: Any = None


@dataclass(frozen=True, eq=False)
class Claim:
    """For all instances of the variables that satisfy the hypotheses: left `relation` right, or the `conclusion`.

    `variables` maps names to Hypothesis strategies, or to finite sequences, which are checked case by case. `hypotheses` maps names
    to predicates. Predicates, sides and the conclusion are functions that take variables by the names of their arguments; a side may
    also be an exact number, or a SymPy expression whose symbols are variables. A side with an argument `arithmetic` is a formula over
    the array arithmetic: it returns a vector, and is run by rationals, float64, balls and symbols. Sides may be vectors, which are
    compared entry by entry. `expected` says whether the claim is true; `theorem` names the machine-checked theorem that proves it, as
    ``name (File.v)``.
    """

    id: str
    statement: str
    variables: Mapping[str, Any]
    left: Any = None
    right: Any = None
    relation: Relation = "=="
    conclusion: Callable[..., bool] | None = None
    hypotheses: Mapping[str, Callable[..., bool]] = field(default_factory=dict)
    source: str = "ours"
    latex: str = ""
    expected: bool = True
    theorem: str | None = None

    def __post_init__(self) -> None:
        if (self.conclusion is None) == (self.left is None and self.right is None):
            raise ClaimError(f"claim {self.id!r}", "both or neither", "a claim has a conclusion, or a left and a right side")
        if self.relation not in RELATIONS:
            raise ClaimError(f"claim {self.id!r}: relation", self.relation, f"one of {' '.join(RELATIONS)}")
        if not self.variables:
            raise ClaimError(f"claim {self.id!r}: variables", {}, "a claim has at least one variable")
        for name, part in self._parts():
            for free in sorted(_names(part) - set(self.variables)):
                rule = f"a variable of the claim: {', '.join(self.variables)}"
                raise ClaimError(f"claim {self.id!r}: {name}", free, rule)

    def _parts(self) -> Iterable[tuple[str, Any]]:
        yield from ((f"hypothesis {name!r}", predicate) for name, predicate in self.hypotheses.items())
        yield from (("left", self.left), ("right", self.right)) if self.conclusion is None else (("conclusion", self.conclusion),)

    def satisfied(self, instance: Instance, *, without: Sequence[str] = ()) -> bool:
        """Whether the instance satisfies the hypotheses, those named in `without` dropped."""
        return all(
            _truth(self._call(predicate, instance, f"hypothesis {name!r}"), f"claim {self.id!r}: hypothesis {name!r}")
            for name, predicate in self.hypotheses.items()
            if name not in without
        )

    def at(self, instance: Instance) -> Sides:
        """The conclusion at one instance. UndecidedError if a comparison cannot be decided."""
        if self.conclusion is not None:
            answer = self._call(self.conclusion, instance, "conclusion")
            return Sides(_truth(answer, f"claim {self.id!r}: conclusion"))
        left = exact_value(self._call(self.left, instance, "left"), f"claim {self.id!r}: left")
        right = exact_value(self._call(self.right, instance, "right"), f"claim {self.id!r}: right")
        return Sides(_related(left, right, self.relation), left, right)

    def _call(self, part: Any, instance: Instance, name: str) -> Any:
        from exactgrpo.errors import ExactGRPOError, UndecidedError

        if is_sympy(part):
            from exactgrpo.claims.symbolic import value_of

            return value_of(part, instance)
        if not callable(part):
            return part
        if ARITHMETIC in inspect.signature(part).parameters:
            return over_arithmetic(part, instance)
        try:
            return part(**{argument: instance[argument] for argument in inspect.signature(part).parameters})
        except UndecidedError:
            raise
        except (ExactGRPOError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise ClaimError(f"claim {self.id!r}: {name}", f"{type(error).__name__}: {error}", f"raised at {shown(instance)}") from error


def _names(part: Any) -> set[str]:
    if is_sympy(part):
        return {str(symbol) for symbol in part.free_symbols}
    return set(inspect.signature(part).parameters) - {ARITHMETIC} if callable(part) else set()


def over_arithmetic(part: Callable[..., Any], instance: Instance) -> tuple[Real, ...]:
    """The entries of a vector that a formula over the array arithmetic computes from an instance."""
    from exactgrpo.numbers.ladder import Execution

    given = {name: instance[name] for name in inspect.signature(part).parameters if name != ARITHMETIC}
    name, level = "side", (0, 0)
    execution: Execution[None] = Execution(lambda arithmetic: arithmetic.observe(name, level, lambda: part(arithmetic=arithmetic, **given)))
    return tuple(Real(execution.value(name, level, i)) for i in range(execution.length(name, level)))


def _truth(answer: Any, place: str) -> bool:
    if not isinstance(answer, bool):
        raise ClaimError(place, answer, "a predicate returns True or False")
    return answer


def exact_value(value: Any, place: str) -> Any:
    """A side as exact numbers: Real, or a tuple of them; InexactInputError for a float."""
    if isinstance(value, (bool, Real)):
        return value
    if isinstance(value, (list, tuple)):
        return tuple(exact_value(x, f"{place}[{i}]") for i, x in enumerate(value))
    if isinstance(value, float):
        raise InexactInputError(place, value, "a side of a claim is exact")
    return Real.of(value, place)


def _related(left: Any, right: Any, relation: Relation) -> bool:
    if isinstance(left, tuple) or isinstance(right, tuple):
        if not isinstance(left, tuple) or not isinstance(right, tuple) or len(left) != len(right):
            return relation == "!="
        pairs = [_related(a, b, "==" if relation == "!=" else relation) for a, b in zip(left, right, strict=True)]
        return not all(pairs) if relation == "!=" else all(pairs)
    return bool(RELATIONS[relation](left, right))


def shown(value: Any) -> str:
    """An instance or one of its values in one line, numbers exactly.

    >>> shown({"rewards": [Fraction(1, 2), 0], "beta": Real.of("sqrt(2)")})
    'rewards = [1/2, 0], beta = sqrt(2)'
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {shown(x)}" for name, x in value.items())
    if isinstance(value, tuple):
        return f"({', '.join(map(shown, value))})"
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    if isinstance(value, Real):
        return value.exact() or value.digits(12) + "..."
    return str(value) if isinstance(value, (Fraction, int, str)) else repr(value)
