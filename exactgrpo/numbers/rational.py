"""The door for numbers: int, Fraction, Decimal, text and exact objects become exact numbers; a binary float is refused."""

from __future__ import annotations

import math
import numbers
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from flint import arb, fmpq

from exactgrpo.errors import InexactInputError, InputError, LimitError
from exactgrpo.numbers.expression import RATIONAL, Expression, cone, enclose
from exactgrpo.numbers.from_sympy import is_sympy, read
from exactgrpo.numbers.precision import precision

Exact: TypeAlias = Fraction | Expression

MAX_BITS = 200_000
"""Numerator and denominator of an exact rational together take at most this many bits."""
MAX_DIGITS = 10_000
"""A number literal has at most this many digits."""
MAX_EXPONENT = 10_000
"""The decimal exponent of a number literal is at most this large, in absolute value."""


def exact(x: object, place: str = "value") -> Exact:
    """Return `x` as an exact number: a `Fraction` when it is rational, else an `Expression`.

    Accepted are int, Fraction, Decimal (the decimal itself), integers of NumPy, text in the grammar of `exactgrpo.numbers.text`,
    exact expressions and reals, and SymPy expressions without symbols or Floats. `place` names the input in error messages.

    Raises InexactInputError for a float, LimitError for a number of more than `MAX_BITS` bits, ParseError and DomainError
    for text, InputError for anything else (a bool is not a number; NaN and infinities are not numbers).

    >>> exact("3/7"), exact("0.1"), exact(2), exact("2^-3")
    (Fraction(3, 7), Fraction(1, 10), Fraction(2, 1), Fraction(1, 8))
    >>> exact(0.5, place="beta")
    Traceback (most recent call last):
    exactgrpo.errors.InexactInputError: beta: 0.5: a float is not exact; write "0.5" or Fraction(1, 2), or eg.dyadic(0.5) for the double
    """
    if isinstance(x, str):
        from exactgrpo.numbers.text import parse_exact

        return parse_exact(x, place)
    if isinstance(x, bool):
        raise InputError(place, x, "a bool is not a number")
    if isinstance(x, Fraction):
        return _bounded(x, place)
    if isinstance(x, int):
        return _bounded(Fraction(x), place)
    if isinstance(x, Decimal):
        return from_decimal(x, place)
    if isinstance(x, numbers.Rational):
        with suppress(TypeError, ValueError):  # NumPy's time spans call themselves integers
            return _bounded(Fraction(int(x.numerator), int(x.denominator)), place)
    if isinstance(x, numbers.Real) and not isinstance(x, numbers.Rational):
        raise InexactInputError(place, x, _how_to_write(float(x)))
    return _from_object(x, place)


def _from_object(x: object, place: str) -> Exact:
    from exactgrpo.numbers.real import Real

    if isinstance(x, Real):
        x = x.expression
    if isinstance(x, Expression):
        return settled(x)
    if is_sympy(x):
        from exactgrpo.numbers.builders import ExactBuilder

        number: Exact = read(x, ExactBuilder(), place)
        return number
    raise InputError(place, x, "an exact number is needed: int, Fraction, Decimal, text, Expression or Real")


def settled(x: Expression) -> Exact:
    """Return a Fraction if x looks rational, with a denominator below 2^40, and a proof of it is cheap; else x itself.

    >>> settled(Expression.of(4).log() / Expression.of(2).log())
    Fraction(2, 1)
    """
    if x.kind == RATIONAL:
        return Fraction(int(x.payload.p), int(x.payload.q))
    with precision(192):
        ball = +enclose(x, 192)  # rounded: an enclosure that is remembered may have any number of bits
    if not ball.is_finite() or len(cone(x)) > 100:
        return x
    mantissa, exponent = ball.mid().man_exp()
    if abs(int(exponent)) > 400:
        return x
    guess = Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
    guess = guess.limit_denominator(1 << 40)
    with precision(192):  # at a lower one the guess itself is rounded
        if not ball.overlaps(arb(fmpq(guess.numerator, guess.denominator))):
            return x
    from exactgrpo.numbers.display import rational_value

    value = rational_value(x)
    return x if value is None else value


def _bounded(x: Fraction, place: str) -> Fraction:
    bits = x.numerator.bit_length() + x.denominator.bit_length()
    if bits > MAX_BITS:
        raise LimitError(place, f"a rational number of {bits} bits", f"exact numbers have at most {MAX_BITS} bits")
    return x


def from_decimal(x: Decimal, place: str = "value") -> Fraction:
    """Return the decimal itself as a Fraction; its digits and exponent are bounded before it is expanded.

    >>> from_decimal(Decimal("1e-3"))
    Fraction(1, 1000)
    """
    if not x.is_finite():
        raise InputError(place, str(x), "NaN and infinities are not numbers")
    _, digits, exponent = x.as_tuple()
    if len(digits) > MAX_DIGITS:
        raise LimitError(place, f"a decimal of {len(digits)} digits", f"number literals have at most {MAX_DIGITS} digits")
    if not isinstance(exponent, int) or abs(exponent) > MAX_EXPONENT + len(digits):
        raise LimitError(place, str(x), f"decimal exponents are at most {MAX_EXPONENT} in absolute value")
    return _bounded(Fraction(x), place)


def _how_to_write(x: float) -> str:
    if not math.isfinite(x):
        return "NaN and infinities are not numbers"
    rational = repr(Fraction(repr(x))) if 1e-12 < abs(x) < 1e12 else None
    text = f'"{x!r}"' if rational is None else f'"{x!r}" or {rational}'
    return f"a float is not exact; write {text}, or eg.dyadic({x!r}) for the double"


def dyadic(x: float, place: str = "value") -> Fraction:
    """Return the double `x` itself, as the dyadic rational that it is.

    Raises InputError for NaN, infinities and anything that is not a float.

    >>> dyadic(0.1)
    Fraction(3602879701896397, 36028797018963968)
    """
    if not isinstance(x, float):
        raise InputError(place, x, "a float is needed")
    if not math.isfinite(x):
        raise InputError(place, x, "NaN and infinities are not numbers")
    return Fraction(x)
