"""Numbers of a delay model: exact reals, or SymPy expressions whose symbols stand for all values that their assumptions allow."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

from exactgrpo.errors import DomainError, InputError, LimitError, UndecidedError
from exactgrpo.field.inputs import ZERO
from exactgrpo.numbers.expression import enclose
from exactgrpo.numbers.formula import Formula
from exactgrpo.numbers.formula_text import FormulaBuilder
from exactgrpo.numbers.from_sympy import read
from exactgrpo.numbers.rational_functions import has_nonnegative_coefficients, is_formal_zero, value_at
from exactgrpo.numbers.real import Real, has_symbols

Value: TypeAlias = Real | Any
"""A Real, or a SymPy expression with symbols (`sympy.Expr`; SymPy is imported by whoever makes one)."""

_SAMPLES = tuple(Fraction(n, d) for d in (1, 2, 3, 7) for n in range(-9, 10))
_POINTS = 8
_BITS = 256
_ASSUME = 'declare it: sympy.symbols("p", nonnegative=True), and write a probability as a/(a + b) with symbols a, b >= 0'


def value(x: Any, place: str = "number") -> Value:
    """The exact number as a Real, or the SymPy expression itself if it has symbols.

    Assumptions of the symbols are hypotheses: what is proved is proved for the values that they allow. InexactInputError for a float,
    InputError for what has no exact form and for two symbols of one name, LimitError beyond 20,000 nodes.

    >>> from sympy import symbols, sqrt
    >>> p = symbols("p", nonnegative=True)
    >>> value("0.5"), value(sqrt(4)), value(p / 2)
    (Real('1/2'), Real('2'), p/2)
    """
    if has_symbols(x):
        _formula(x, place)
        return x
    return Real.of(x, place)


def nonnegative(x: Any, place: str, rule: str) -> Value:
    """The value, which is not negative: decided for a Real, a consequence of the assumptions for an expression; else InputError.

    For an expression SymPy's `is_nonnegative` is asked, and then its normal form: a quotient of polynomials with non-negative coefficients
    in symbols that are not negative.

    >>> from sympy import symbols
    >>> a, b, c = symbols("a b", positive=True) + (symbols("c"),)
    >>> nonnegative(1 - a / (a + b), "mass", "a mass is not negative")
    -a/(a + b) + 1
    >>> nonnegative(c, "mass", "a mass is not negative")
    Traceback (most recent call last):
    exactgrpo.errors.InputError: mass: c: a mass is not negative, which does not follow from the assumptions on c; declare it: ...
    """
    number = value(x, place)
    if isinstance(number, Real):
        if number < 0:
            raise InputError(place, repr(number), rule)
    elif number.is_nonnegative is not True and not _is_nonnegative_quotient(number, place):
        names = ", ".join(sorted(str(symbol) for symbol in number.free_symbols))
        raise InputError(place, number, f"{rule}, which does not follow from the assumptions on {names}; {_ASSUME}")
    return number


def positive(x: Any, place: str, rule: str) -> Value:
    """The value, which is positive: not negative, and SymPy's `is_zero` is False for an expression; else InputError.

    >>> positive("1/2", "tau", "tau > 0")
    Real('1/2')
    """
    number = nonnegative(x, place, rule)
    if isinstance(number, Real):
        if number == 0:
            raise InputError(place, repr(number), rule)
    elif number.is_zero is not False:
        raise InputError(
            place, number, f'{rule}, which does not follow from the assumptions; declare it: sympy.symbols("p", positive=True)'
        )
    return number


def is_zero(x: Any) -> bool:
    """Whether the number is zero, or the expression zero for all values that its assumptions allow, wherever it is defined.

    True by the normal form of rational functions, roots, logarithms and exponentials of their own terms being further variables; False by a
    rational point that satisfies the assumptions and an enclosure of the value there that is apart from zero. Else UndecidedError.

    >>> from sympy import exp, symbols
    >>> a, b, t = symbols("a b tau", positive=True)
    >>> is_zero(a / (a + b) + b / (a + b) - 1), is_zero(exp(-2 / t) - exp(-1 / t)), is_zero((exp(-1 / t) + 1) ** 2 - exp(-2 / t) - 1)
    (True, False, False)
    """
    number = value(x)
    if isinstance(number, Real):
        return number == 0
    side = _formula(number, "number")
    if is_formal_zero(side):
        return True
    if any(_is_apart(side, point) for point in _points(number.free_symbols)):
        return False
    names = ", ".join(sorted(side.parameters()))
    question = f"is an expression in {names if len(names) < 60 else 'many symbols'} zero for all their values?"
    raise UndecidedError(question, "(-oo, oo)", "functions of symbols", False)


def total(values: Iterable[Value]) -> Value:
    """The sum; zero for none.

    >>> from sympy import symbols
    >>> p = symbols("p")
    >>> total([]), total([Real.of("1/2"), p]), total([p, Real.of(1), -p])
    (Real('0'), p + 1/2, Real('1'))
    """
    numbers: list[Real] = []
    expressions: list[Any] = []
    for x in values:
        (numbers if isinstance(x, Real) else expressions).append(x)
    constant = sum(numbers, ZERO)
    if not expressions:
        return constant
    return settled(sys.modules["sympy"].Add(*expressions) + constant)


def settled(x: Any) -> Value:
    """The result of arithmetic with expressions: a Real once its symbols have cancelled.

    >>> from sympy import symbols
    >>> p = symbols("p")
    >>> settled(p - p), settled(p * Real.of(2))
    (Real('0'), 2*p)
    """
    return x if isinstance(x, Real) or has_symbols(x) else Real.of(x)


def _formula(x: Any, place: str) -> Formula:
    names = sorted(symbol.name if getattr(symbol, "is_Symbol", False) else str(symbol) for symbol in x.free_symbols)
    twice = next((name for name, following in pairwise(names) if name == following), None)
    if twice is not None:
        raise InputError(place, twice, "two symbols of one name and different assumptions")
    formula: Formula = read(x, FormulaBuilder({name: i for i, name in enumerate(names)}), place)
    return formula


def _is_nonnegative_quotient(x: Any, place: str) -> bool:
    return all(symbol.is_nonnegative for symbol in x.free_symbols) and has_nonnegative_coefficients(_formula(x, place))


def _is_apart(side: Formula, point: Mapping[str, Fraction]) -> bool:
    try:
        ball = enclose(value_at(side, point).expression, _BITS)
    except (DomainError, LimitError, UndecidedError):
        return False
    return bool(ball > 0 or ball < 0)


def _points(symbols: Iterable[Any]) -> Iterator[dict[str, Fraction]]:
    """Points that satisfy the assumptions of the symbols."""
    allowed = {symbol.name: [x for x in _SAMPLES if _satisfies(x, symbol)] for symbol in sorted(symbols, key=str)}
    if not all(allowed.values()):
        return
    for r in range(_POINTS):
        yield {name: values[(37 * r + 11 * i * (r + 1)) % len(values)] for i, (name, values) in enumerate(allowed.items())}


def _satisfies(x: Fraction, symbol: Any) -> bool:
    number = sys.modules["sympy"].Rational(x.numerator, x.denominator)
    return all(getattr(number, f"is_{name}") is truth for name, truth in symbol.assumptions0.items())
