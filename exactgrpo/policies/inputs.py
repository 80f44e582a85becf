"""What a user may write for the parameters, weights, logits and inequalities of a policy family, and what it becomes.

A polynomial is text in the grammar of `exactgrpo.numbers.text`, a SymPy expression, a rational number, or ready-made as
{exponents: coefficient}. A formula is text, a SymPy expression, a rational number or a `Formula`. An inequality is text such as
"0 < t < 1", a strict inequality of SymPy, or the polynomial or formula that is to be positive. A parameter is a name or a symbol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from exactgrpo.errors import LimitError, PolicyError
from exactgrpo.numbers.formula import Formula, formula
from exactgrpo.numbers.formula_text import FormulaBuilder
from exactgrpo.numbers.from_sympy import is_symbol, is_sympy, read, read_inequality
from exactgrpo.numbers.inputs import listed, whole
from exactgrpo.numbers.polynomial_text import MAX_POLYNOMIAL_DEGREE, PolynomialBuilder
from exactgrpo.numbers.rational import Exact, exact
from exactgrpo.numbers.text import numbered, parse_formula, parse_inequality, parse_polynomial, parse_polynomial_inequality
from exactgrpo.policies.terms import Polynomial

Number: TypeAlias = Any
PolynomialInput: TypeAlias = Any
FormulaInput: TypeAlias = Any
InequalityInput: TypeAlias = Any
Names = dict[str, int]


def parameter_names(parameters: Sequence[Any] | None, size: int | None) -> Names:
    """Return {name: position} of the parameters; theta1, theta2, ... where only their number is given.

    >>> parameter_names(["a", "b"], None), parameter_names(None, 2)
    ({'a': 0, 'b': 1}, {'theta1': 0, 'theta2': 1})
    """
    count = None if size is None else whole(size, "size", least=0, error=PolicyError)
    if parameters is None:
        if count is None:
            raise PolicyError("parameters", None, "the names of the parameters are needed")
        return {f"theta{i + 1}": i for i in range(count)}
    names = []
    for i, parameter in enumerate(listed(parameters, "parameters", error=PolicyError)):
        if not isinstance(parameter, str) and not is_symbol(parameter):
            raise PolicyError(f"parameters[{i}]", parameter, "a parameter is a name or a SymPy symbol")
        names.append(parameter if isinstance(parameter, str) else str(getattr(parameter, "name", "")))
    if count is not None and count != len(names):
        raise PolicyError("size", count, f"the size is the number of parameters, {len(names)}")
    return numbered(names, "parameters")


def table(values: Sequence[Sequence[Any]], place: str) -> list[Sequence[Any]]:
    """Return the rows of a table [prompt][response]: at least one, none of them empty.

    >>> table([["t", "1 - t"], []], "weights")
    Traceback (most recent call last):
    exactgrpo.errors.PolicyError: weights[1]: []: a prompt has at least one response
    """
    rows = [listed(row, f"{place}[{q}]", error=PolicyError) for q, row in enumerate(listed(values, place, error=PolicyError))]
    if not rows:
        raise PolicyError(place, [], "there is at least one prompt")
    for q, row in enumerate(rows):
        if len(row) == 0:
            raise PolicyError(f"{place}[{q}]", [], "a prompt has at least one response")
    return rows


def described(lengths: Iterable[int]) -> str:
    """The lengths of some rows in an error message.

    >>> described([2, 3]), described([1] * 100)
    ('2, 3', '1, 1, 1, 1, 1, 1, 1, 1, ...')
    """
    lengths = list(lengths)
    return ", ".join(map(str, lengths[:8])) + (", ..." if len(lengths) > 8 else "")


def polynomial(value: PolynomialInput, names: Names, place: str) -> Polynomial:
    """Return the polynomial over Q that the value stands for, as {exponents: coefficient}.

    >>> polynomial("1 - t", {"t": 0}, "weight"), polynomial(3, {"t": 0}, "weight")
    ({(0,): Fraction(1, 1), (1,): Fraction(-1, 1)}, {(0,): Fraction(3, 1)})
    """
    if isinstance(value, str):
        return parse_polynomial(value, names, place)
    if isinstance(value, Mapping):
        return _ready_made(value, len(names), place)
    if is_sympy(value):
        made: Polynomial = read(value, PolynomialBuilder(names), place, error=PolicyError)
        return made
    return {(0,) * len(names): _rational(value, place)}


def polynomial_bounds(inequalities: Sequence[InequalityInput], names: Names) -> list[Polynomial]:
    """Return the polynomials that are positive where all the inequalities hold."""

    def ready(bound: Any, place: str) -> Polynomial | None:
        return _ready_made(bound, len(names), place) if isinstance(bound, Mapping) else None

    return _bounds(inequalities, names, parse_polynomial_inequality, PolynomialBuilder, ready)


def formula_of(value: FormulaInput, names: Names, place: str) -> Formula:
    """Return the formula that the value stands for.

    >>> print(formula_of("exp(t)/2", {"t": 0}, "weight"))
    ((1/2)*exp(t))
    """
    if isinstance(value, str):
        return parse_formula(value, names, place)
    if isinstance(value, Formula):
        unknown = min(value.parameters() - names.keys(), default=None)
        if unknown is not None:
            raise PolicyError(place, unknown, f"formulas use the parameters {', '.join(names)}")
        return value
    if is_sympy(value):
        made: Formula = read(value, FormulaBuilder(names), place, error=PolicyError)
        return made
    return formula("number", value=_rational(value, place))


def formula_bounds(inequalities: Sequence[InequalityInput], names: Names) -> list[Formula]:
    """Return the formulas that are positive where all the inequalities hold."""

    def ready(bound: Any, place: str) -> Formula | None:
        return formula_of(bound, names, place) if isinstance(bound, Formula) else None

    return _bounds(inequalities, names, parse_inequality, FormulaBuilder, ready)


def _bounds(
    inequalities: Sequence[InequalityInput],
    names: Names,
    parse: Callable[..., list[Any]],
    builder: Callable[[Names], Any],
    ready: Callable[[Any, str], Any],
) -> list[Any]:
    bounds: list[Any] = []
    for i, bound in enumerate(listed(inequalities, "inequalities", error=PolicyError)):
        place = f"inequalities[{i}]"
        if isinstance(bound, str):
            bounds += parse(bound, names, place)
        elif is_sympy(bound):
            bounds += read_inequality(bound, lambda: builder(names), place, error=PolicyError)
        elif (prepared := ready(bound, place)) is not None:
            bounds.append(prepared)
        else:
            raise PolicyError(place, bound, "an inequality is text such as 't > 0', a strict inequality of SymPy, or a prepared object")
    return bounds


def _rational(value: Any, place: str) -> Fraction:
    number: Exact = exact(value, place)
    if not isinstance(number, Fraction):
        raise PolicyError(place, value, "a constant that is not text is a rational number")
    return number


def _ready_made(polynomial: Mapping[Any, Any], size: int, place: str) -> Polynomial:
    """The polynomial with its exponents and coefficients checked."""
    checked: dict[tuple[int, ...], Fraction] = {}
    for exponents, coefficient in polynomial.items():
        if not isinstance(exponents, tuple) or len(exponents) != size or not all(type(e) is int for e in exponents):
            raise PolicyError(place, exponents, f"the terms of a polynomial are named by {size} integer exponents")
        if exponents and min(exponents) < 0:
            raise PolicyError(place, exponents, "exponents are not negative")
        if sum(exponents) > MAX_POLYNOMIAL_DEGREE:
            raise LimitError(place, exponents, f"polynomials have degree at most {MAX_POLYNOMIAL_DEGREE}")
        checked[exponents] = coefficient if type(coefficient) is Fraction else _rational(coefficient, place)
    return checked
