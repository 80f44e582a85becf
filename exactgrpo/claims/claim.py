"""A claim is data: variables, hypotheses, and a conclusion that is a predicate or a relation between two sides."""

from __future__ import annotations

import copy
import inspect
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from hypothesis.errors import HypothesisException

from exactgrpo.claims.variable import Variable
from exactgrpo.errors import ClaimError, InexactInputError, InputError, UndecidedError
from exactgrpo.numbers.from_sympy import bare_names, is_sympy
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
    to predicates. Predicates, sides and the conclusion are functions that take variables by the names of their arguments; each call
    gets its own copy of lists and tables. A side may also be an exact number, or a SymPy expression in bare symbols: SymPy has
    simplified it when it was built, and what is proved is the expression as it stands. A side with an argument `arithmetic` is a
    formula over the array arithmetic: it returns a vector, and is run by rationals, float64, balls and symbols. Sides may be vectors
    of one length, which are compared entry by entry. `expected` says whether the claim is true; `theorem` names the theorem that
    proves it, as ``name (File.v)``: machine-checked for bundled claims, a citation elsewhere.
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
        self._check_tables()
        for name, part in self._parts():
            place = f"claim {self.id!r}: {name}"
            for free in sorted(_names(part, place) - set(self.variables)):
                raise ClaimError(place, free, f"a variable of the claim: {', '.join(self.variables)}")

    def _check_tables(self) -> None:
        place = f"claim {self.id!r}: variables"
        if not isinstance(self.variables, Mapping) or not self.variables:
            raise ClaimError(place, self.variables, "a table with at least one variable")
        for name, values in self.variables.items():
            if not isinstance(name, str) or name == ARITHMETIC:
                raise ClaimError(place, name, f"a name other than {ARITHMETIC!r}, which the array arithmetic has")
            if isinstance(values, (str, bytes)):
                raise ClaimError(f"{place}: {name}", values, "a strategy, or a list of cases")
        place = f"claim {self.id!r}: hypotheses"
        if not isinstance(self.hypotheses, Mapping) or not all(isinstance(name, str) for name in self.hypotheses):
            raise ClaimError(place, self.hypotheses, "a table of predicates by name")
        for name, predicate in self.hypotheses.items():
            if not callable(predicate):
                raise ClaimError(f"{place}: {name}", predicate, "a predicate: a function of variables")

    def _parts(self) -> Iterable[tuple[str, Any]]:
        yield from ((f"hypothesis {name!r}", predicate) for name, predicate in self.hypotheses.items())
        yield from (("left", self.left), ("right", self.right)) if self.conclusion is None else (("conclusion", self.conclusion),)

    def hypothesis(self, name: str) -> str:
        """The hypothesis of this name, or the only one whose name begins so; ClaimError otherwise."""
        begins = [known for known in self.hypotheses if isinstance(name, str) and name and known.startswith(name)]
        found = [name] if name in begins else begins
        if len(found) != 1:
            rule = f"a hypothesis of the claim: {', '.join(self.hypotheses) or 'it has none'}"
            raise ClaimError(f"claim {self.id!r}: dropped hypothesis", name, rule)
        return found[0]

    def satisfied(self, instance: Instance, *, without: Sequence[str] = ()) -> bool:
        """Whether the instance satisfies the hypotheses, those named in `without` dropped."""
        return all(self.hypothesis_holds(name, instance) for name in self.hypotheses if name not in without)

    def hypothesis_holds(self, name: str, instance: Instance) -> bool:
        """Whether the instance satisfies the hypothesis of this name."""
        answer = self._call(self.hypotheses[name], instance, f"hypothesis {name!r}")
        return _truth(answer, f"claim {self.id!r}: hypothesis {name!r}")

    def check(self, instance: Instance, place: str) -> None:
        """InputError unless every value is one that its variable can have, as far as the claim says which those are."""
        for name, variable in self.variables.items():
            if isinstance(variable, Variable):
                variable.check(instance[name], f"{place}.{name}")
            elif isinstance(variable, Sequence) and instance[name] not in variable:
                raise InputError(f"{place}.{name}", shown(instance[name]), f"one of {', '.join(map(shown, variable))}")

    def at(self, instance: Instance) -> Sides:
        """The conclusion at one instance. UndecidedError if a comparison cannot be decided."""
        if self.conclusion is not None:
            answer = self._call(self.conclusion, instance, "conclusion")
            return Sides(_truth(answer, f"claim {self.id!r}: conclusion"))
        left = exact_value(self._call(self.left, instance, "left"), f"claim {self.id!r}: left")
        right = exact_value(self._call(self.right, instance, "right"), f"claim {self.id!r}: right")
        return Sides(_related(left, right, self.relation, f"claim {self.id!r}"), left, right)

    def _call(self, part: Any, instance: Instance, name: str) -> Any:
        try:
            if is_sympy(part):
                from exactgrpo.claims.symbolic import value_of

                return value_of(part, instance)
            if not callable(part):
                return part
            names = inspect.signature(part).parameters
            given = {argument: _copied(instance[argument]) for argument in names if argument != ARITHMETIC}
            return over_arithmetic(part, given) if ARITHMETIC in names else part(**given)
        except (UndecidedError, HypothesisException):
            raise
        except Exception as error:
            raise ClaimError(f"claim {self.id!r}: {name}", f"{type(error).__name__}: {error}", f"raised at {shown(instance)}") from error


def _names(part: Any, place: str) -> set[str]:
    if is_sympy(part):
        return set(bare_names(part, place, error=ClaimError))
    return set(inspect.signature(part).parameters) - {ARITHMETIC} if callable(part) else set()


def _copied(value: Any) -> Any:
    """A copy that a side may change without changing the instance."""
    if type(value) in (tuple, list):
        return type(value)(map(_copied, value))
    parameters = getattr(value, "__dataclass_params__", None)
    is_constant = isinstance(value, (int, str, bytes, Fraction, Real)) or (parameters is not None and parameters.frozen)
    return value if is_constant else copy.deepcopy(value)


def over_arithmetic(part: Callable[..., Any], given: Instance) -> tuple[Real, ...]:
    """The entries of a vector that a formula over the array arithmetic computes from its other arguments."""
    from exactgrpo.numbers.ladder import Execution

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


def _related(left: Any, right: Any, relation: Relation, place: str) -> bool:
    if isinstance(left, tuple) or isinstance(right, tuple):
        if not isinstance(left, tuple) or not isinstance(right, tuple) or len(left) != len(right):
            raise ClaimError(place, f"{shown(left)} and {shown(right)}", "sides of one shape: two numbers, or two vectors of one length")
        entry: Relation = "==" if relation == "!=" else relation
        pairs = [_related(a, b, entry, f"{place}[{i}]") for i, (a, b) in enumerate(zip(left, right, strict=True))]
        return not all(pairs) if relation == "!=" else all(pairs)
    if isinstance(left, bool) is not isinstance(right, bool) or (isinstance(left, bool) and relation not in ("==", "!=")):
        raise ClaimError(place, f"{left} {relation} {right}", "two numbers, or two truth values that are == or !=")
    return bool(RELATIONS[relation](left, right))


def _canonical(x: Real) -> str:
    return x.exact() or x.digits(12) + "..."


def shown(value: Any, number: Callable[[Real], str] = _canonical) -> str:
    """An instance or one of its values in one line, numbers exactly, or in digits if they have no short exact text.

    >>> shown({"rewards": [Fraction(1, 2), 0], "beta": Real.of("sqrt(2)")})
    'rewards = [1/2, 0], beta = sqrt(2)'
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {shown(x, number)}" for name, x in value.items())
    if isinstance(value, (tuple, list)):
        opening, closing = "()" if isinstance(value, tuple) else "[]"
        return f"{opening}{', '.join(shown(x, number) for x in value)}{closing}"
    if isinstance(value, Real):
        return number(value)
    return str(value) if isinstance(value, (Fraction, int, str)) else repr(value)
