"""SymPy sides of a claim: their exact value at an instance, and a proof for all values by the normal form of rational functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from flint import fmpq, fmpq_mpoly, fmpq_mpoly_ctx

from exactgrpo.errors import ClaimError, DomainError
from exactgrpo.numbers.formula import Formula
from exactgrpo.numbers.formula_text import FormulaBuilder
from exactgrpo.numbers.from_sympy import bare_names, is_sympy, read
from exactgrpo.numbers.real import Real

MAX_TERMS = 100_000
"""Products of terms in one multiplication of polynomials."""
MAX_DEGREE = 200


class _TooLarge(Exception):
    """Polynomials beyond the budget, or no rational function at all."""


def formula_of(side: Any, place: str) -> Formula:
    """A SymPy expression as a formula over its symbols."""
    names = bare_names(side, place, error=ClaimError)
    result: Formula = read(side, FormulaBuilder({name: i for i, name in enumerate(names)}), place, error=ClaimError)
    return result


def value_of(side: Any, instance: Mapping[str, Any]) -> Real:
    """The exact value of a SymPy expression whose symbols are the variables of a claim.

    >>> from sympy import symbols
    >>> p, q = symbols("p q")
    >>> value_of(p / (p + q), {"p": Fraction(1, 2), "q": 1})
    Real('1/3')
    """

    def visit(node: Formula, args: tuple[Real, ...]) -> Real:
        match node.op:
            case "number":
                return Real.of(node.value)
            case "parameter":
                return Real.of(instance[str(node.value)], str(node.value))
            case "add":
                return sum(args[1:], args[0])
            case "mul":
                product = args[0]
                for factor in args[1:]:
                    product = product * factor
                return product
            case "div":
                return args[0] / args[1]
            case "power":
                exponent = Fraction(node.value or 0)
                base = args[0] if exponent.denominator == 1 else args[0].root(exponent.denominator)
                return base ** int(exponent.numerator)
            case "log":
                return args[0].log()
            case "exp":
                return args[0].exp()

    return formula_of(side, "side").fold(visit)


def is_identity(left: Any, right: Any) -> bool:
    """True if both sides are rational functions with one normal form: they are equal wherever both are defined.

    False says nothing: the sides may differ, or be outside the class or its budget.

    >>> from sympy import symbols
    >>> p, q = symbols("p q")
    >>> is_identity((p**2 - q**2) / (p - q), p + q), is_identity(p, q), is_identity(p, 1)
    (True, False, False)
    """
    sides = [side if is_sympy(side) else None for side in (left, right)]
    if all(side is None for side in sides):
        return False
    try:
        names = sorted({str(symbol) for side in sides if side is not None for symbol in side.free_symbols})
        ring = fmpq_mpoly_ctx.get(names or ["x"], "lex")
        (above, below), (over, under) = (_fraction(side, names, ring) for side in (left, right))
        return bool(_times(above, under) == _times(over, below))
    except (_TooLarge, DomainError, ZeroDivisionError):
        return False


def _fraction(side: Any, names: Sequence[str], ring: Any) -> tuple[Any, Any]:
    """Numerator and denominator."""
    if not is_sympy(side):
        number = Real.of(side).as_fraction()
        if number is None:
            raise _TooLarge
        return ring.constant(fmpq(number.numerator, number.denominator)), ring.constant(1)
    variables = dict(zip(names, ring.gens(), strict=False))
    one = ring.constant(1)

    def visit(node: Formula, args: tuple[tuple[Any, Any], ...]) -> tuple[Any, Any]:
        match node.op:
            case "number":
                value = Fraction(node.value or 0)
                return ring.constant(fmpq(value.numerator, value.denominator)), one
            case "parameter":
                return variables[str(node.value)], one
            case "add":
                total = args[0]
                for a in args[1:]:
                    total = _times(total[0], a[1]) + _times(a[0], total[1]), _times(total[1], a[1])
                return total
            case "mul":
                product = args[0]
                for a in args[1:]:
                    product = _times(product[0], a[0]), _times(product[1], a[1])
                return product
            case "div":
                if args[1][0] == 0:
                    raise ZeroDivisionError
                return _times(args[0][0], args[1][1]), _times(args[0][1], args[1][0])
            case "power":
                exponent = Fraction(node.value or 0)
                if exponent.denominator != 1 or abs(exponent) > MAX_DEGREE:
                    raise _TooLarge
                base = args[0] if exponent >= 0 else (args[0][1], args[0][0])
                if base[1] == 0:
                    raise ZeroDivisionError
                n = abs(int(exponent))
                return _power(base[0], n), _power(base[1], n)
            case _:
                raise _TooLarge

    return formula_of(side, "side").fold(visit)


def _times(p: fmpq_mpoly, q: fmpq_mpoly) -> Any:
    if len(p) * len(q) > MAX_TERMS or p.total_degree() + q.total_degree() > MAX_DEGREE:
        raise _TooLarge
    return p * q


def _power(p: fmpq_mpoly, n: int) -> Any:
    product = p**0
    for _ in range(n):
        product = _times(product, p)
    return product
