"""SymPy expressions as what the text that SymPy prints for them would be: the same builders, called in the same order.

Supported are rational numbers, E, symbols, sums, products, rational powers, exp and log. Nothing here imports SymPy: whoever holds
an expression has done so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import reduce
from typing import Any

from exactgrpo.errors import InexactInputError, InputError, LimitError, ParseError

MAX_NODES = 20_000
MAX_DEPTH = 100


def is_sympy(x: object) -> bool:
    """True for any object of SymPy."""
    sympy = sys.modules.get("sympy")
    return sympy is not None and isinstance(x, sympy.Basic)


def is_symbol(x: object) -> bool:
    """True for a SymPy symbol."""
    return is_sympy(x) and bool(getattr(x, "is_Symbol", False))


def bare_names(x: Any, place: str, *, error: type[InputError] = InputError) -> list[str]:
    """The names of the symbols of an expression, sorted; `error` unless they are symbols without assumptions.

    Assumptions let SymPy simplify what is then false for other values: with n an integer, cos(2 pi n) is 1.

    >>> from sympy import symbols
    >>> bare_names(symbols("q") + symbols("p"), "side"), bare_names(symbols("n", integer=True), "side")
    Traceback (most recent call last):
    exactgrpo.errors.InputError: side: 'n': a symbol without assumptions, from sympy.symbols("n")
    """
    for symbol in sorted(x.free_symbols, key=str):
        if type(symbol).__name__ != "Symbol" or symbol.assumptions0 != {"commutative": True}:
            raise error(place, str(symbol), f'a symbol without assumptions, from sympy.symbols("{symbol}")')
    return sorted(str(symbol) for symbol in x.free_symbols)


def read(x: Any, builder: Any, place: str, *, error: type[InputError] = InputError) -> Any:
    """Return `builder.finish` of the expression (see `builders.Builder`).

    Raises `error` for what the builders know no form of (sin(x), x**y, oo, I), InexactInputError for a SymPy Float, LimitError for
    more than `MAX_NODES` nodes or `MAX_DEPTH` levels.

    >>> from sympy import symbols, exp
    >>> from exactgrpo.numbers.formula_text import FormulaBuilder
    >>> t = symbols("t")
    >>> print(read(t * exp(-t) / 2, FormulaBuilder({"t": 0}), "weight"))
    ((1/2)*t*exp(((-1)*t)))
    """
    _check(x, place, error)
    return _guarded(lambda: builder.finish(_Walk(builder).value(x)), x, place, error)


def read_inequality(x: Any, new_builder: Callable[[], Any], place: str, *, error: type[InputError] = InputError) -> list[Any]:
    """Return what a strict inequality, or several joined by And, says is positive.

    >>> from sympy import symbols, Rational
    >>> from exactgrpo.numbers.polynomial_text import PolynomialBuilder
    >>> read_inequality(symbols("t") < Rational(1, 2), lambda: PolynomialBuilder({"t": 0}), "inequality")
    [{(0,): Fraction(1, 2), (1,): Fraction(-1, 1)}]
    """
    sympy: Any = sys.modules["sympy"]
    if isinstance(x, sympy.And):
        return [positive for part in sorted(x.args, key=str) for positive in read_inequality(part, new_builder, place, error=error)]
    if not isinstance(x, (sympy.StrictGreaterThan, sympy.StrictLessThan)):
        raise error(place, _value(x), "the domain is open: a strict inequality is needed")
    _check(x.gts, place, error)
    _check(x.lts, place, error)
    builder = new_builder()
    walk = _Walk(builder)
    return [_guarded(lambda: builder.finish(builder.sub(walk.value(x.gts), walk.value(x.lts))), x, place, error)]


def _check(x: Any, place: str, error: type[InputError]) -> None:
    """Kinds, number and nesting of the nodes, before anything that works on the whole expression."""
    open_, nodes = [(x, 1)], 0
    while open_:
        node, depth = open_.pop()
        nodes += 1
        if nodes > MAX_NODES or depth > MAX_DEPTH:
            rule = f"expressions have at most {MAX_NODES} nodes and nest at most {MAX_DEPTH} deep"
            raise LimitError(place, _value(x), rule)
        if node.is_Float:
            raise InexactInputError(place, node, "a Float is not exact; write Rational(1, 2), or text")
        if not _is_supported(node):
            rule = f"{type(node).__name__} has no exact form here; there are + - * /, rational powers, exp and log"
            raise error(place, _value(node), rule)
        if node.is_Pow and not (node.exp.is_Rational or node.exp.is_Float or node.base is sys.modules["sympy"].E):
            raise error(place, _value(node), "an exponent is a rational number")
        open_.extend((arg, depth + 1) for arg in node.args)


def _is_supported(x: Any) -> bool:
    sympy: Any = sys.modules["sympy"]
    return isinstance(x, (sympy.Rational, sympy.Symbol, sympy.Add, sympy.Mul, sympy.Pow, sympy.exp, sympy.log)) or x is sympy.E


def _guarded(work: Callable[[], Any], x: Any, place: str, error: type[InputError]) -> Any:
    """The work; an error of the builder, which knows neither place nor value, gets them."""
    try:
        return work()
    except InputError as refused:
        kind = error if isinstance(refused, ParseError) else type(refused)
        raise kind(place, _value(x), refused.rule) from None


def _value(x: Any) -> object:
    """The expression itself in an error, if it is short: shared parts may make its text exponentially long."""
    open_ = [x]
    for _ in range(100):
        if not open_:
            return x
        open_.extend(open_.pop().args)
    return "a SymPy expression"


class _Walk:
    """The recursion is as deep as `_check` allows. Products and powers are taken apart as SymPy's printer does."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder
        self.e = sys.modules["sympy"].E

    def value(self, x: Any) -> Any:
        if x.is_Rational:
            return self.builder.number(Fraction(int(x.p), int(x.q)))
        if x.is_Symbol:
            return self.builder.name(x.name)
        if x.is_Add:
            return reduce(self.builder.add, map(self.value, x.as_ordered_terms()))
        if x.is_Mul:
            return self._product(x)
        if x is self.e:
            return self._exp(self.builder.number(Fraction(1)))
        if x.is_Pow and x.base is self.e:
            return self._exp(self.value(x.exp))
        if x.is_Pow and x.exp in (-1, sys.modules["sympy"].Rational(-1, 2)):
            return self.builder.div(self.builder.number(Fraction(1)), self._power(x.base, -x.exp))
        if x.is_Pow:
            return self._power(x.base, x.exp)
        return self.builder.call(type(x).__name__, self.value(x.args[0]))

    def _exp(self, argument: Any) -> Any:
        return self.builder.call("exp", argument)

    def _power(self, base: Any, exponent: Any) -> Any:
        value = self.value(base)
        return value if exponent == 1 else self.builder.power(value, Fraction(int(exponent.p), int(exponent.q)))

    def _product(self, x: Any) -> Any:
        above: list[Any] = []
        below: list[Any] = []
        for factor in x.as_ordered_factors():
            if factor.is_Rational:
                above += [self.builder.number(Fraction(int(factor.p)))] if factor.p != 1 else []
                below += [self.builder.number(Fraction(int(factor.q)))] if factor.q != 1 else []
            elif factor.is_Pow and factor.exp.is_Rational and factor.exp < 0:
                below.append(self._power(factor.base, -factor.exp))
            else:
                above.append(self.value(factor))
        numerator = self._multiplied(above or [self.builder.number(Fraction(1))])
        return self.builder.div(numerator, self._multiplied(below)) if below else numerator

    def _multiplied(self, factors: Iterable[Any]) -> Any:
        return reduce(self.builder.mul, factors)
