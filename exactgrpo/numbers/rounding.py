"""Correct rounding of exact real numbers, ties to even, to decimal digits and to binary formats.

A result is returned only if both ends of an enclosure round to it, or if the position of the number relative to the tie between two
neighbours is decided: an exact tie is proved to be one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import arb

from exactgrpo.errors import LimitError
from exactgrpo.numbers import expression as ex
from exactgrpo.numbers.decision import decide_sign
from exactgrpo.numbers.expression import Expression, enclose

_MAX_EXPONENT = 1 << 22  # |log2| of a number whose digits are printed


@dataclass(frozen=True, slots=True)
class BinaryFormat:
    """A binary floating-point format: bits of precision, exponent of the smallest quantum, exponent of the first overflow."""

    precision: int
    smallest: int
    overflow: int


FLOAT64 = BinaryFormat(53, -1074, 1024)
FLOAT32 = BinaryFormat(24, -149, 128)
BFLOAT16 = BinaryFormat(8, -133, 128)
FLOAT16 = BinaryFormat(11, -24, 16)


def bounds(ball: Any) -> tuple[Fraction, Fraction]:
    """The exact end points of a finite ball."""
    middle, radius = _dyadic(ball.mid()), _dyadic(ball.rad())
    return middle - radius, middle + radius


def outward(x: Expression, digits: int) -> tuple[Fraction | None, Fraction | None]:
    """Rational bounds of x, about 10^-digits |x| apart where x can be told from zero; None for a bound too large to write out.

    It decides nothing: a number that may be zero keeps bounds on both sides of it.

    >>> lower, upper = outward(Expression.of(2).sqrt(), 20)
    >>> lower**2 < 2 < upper**2
    True
    """
    bits = 64 + 4 * digits
    for scale in (1, 2, 4):
        ball = enclose(x, scale * bits)
        if ball.rel_accuracy_bits() > 4 * digits:
            break
    if not ball.is_finite():
        return None, None
    try:
        return bounds(ball)
    except LimitError:
        return (Fraction(0), None) if ball > 0 else (None, Fraction(0)) if ball < 0 else (None, None)


def _dyadic(point: Any) -> Fraction:
    mantissa, exponent = (int(part) for part in point.man_exp())
    if mantissa == 0:
        return Fraction(0)
    if abs(exponent) > _MAX_EXPONENT:
        raise LimitError("number", f"2^{exponent}", "too large or too small to be written out")
    return Fraction(mantissa << exponent) if exponent >= 0 else Fraction(mantissa, 1 << -exponent)


def to_digits(x: Expression, n: int) -> str:
    """x rounded to n significant decimal digits.

    >>> to_digits(Expression.of(2).sqrt(), 10), to_digits(Expression.of(5) / 4, 2), to_digits((-Expression.of(10**4)).exp(), 4)
    ('1.414213562', '1.2', '1.135e-4343')
    """
    if not 1 <= n <= 1_000_000:
        raise LimitError("digits", n, "must be between 1 and 1000000")
    value = _rounded(x, lambda q: _round_decimal(q, n), 4 * n)
    if value == 0:
        return "0"
    exponent = _decimal_exponent(abs(value))
    mantissa = abs(value) / Fraction(10) ** (exponent - n + 1)
    digits = str(mantissa.numerator)
    sign = "-" if value < 0 else ""
    if -5 <= exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    if 0 <= exponent < n:
        point = exponent + 1
        return f"{sign}{digits[:point]}.{digits[point:]}" if point < n else f"{sign}{digits}"
    return f"{sign}{digits[0]}{'.' if n > 1 else ''}{digits[1:]}e{exponent}"


def to_binary(x: Expression, target: BinaryFormat) -> float:
    """x rounded to a binary format, as a Python float: subnormals are kept, overflow gives an infinity.

    >>> to_binary(Expression.of(3).log(), FLOAT64), to_binary(Expression.of(1) / 3, BFLOAT16), to_binary(Expression.of(10**400), FLOAT64)
    (1.0986122886681098, 0.333984375, inf)
    """
    ball = enclose(x, 64)
    if ball.is_finite() and x.kind != ex.RATIONAL:
        if ball.abs_lower() > arb(2) ** (target.overflow + 1):
            return float("inf") if ball > 0 else float("-inf")
        if ball.abs_upper() < arb(2) ** (target.smallest - 2):
            sign = decide_sign(x, question="sign of a tiny number").value
            return -0.0 if sign < 0 else 0.0
    value = _rounded(x, lambda q: _round_binary(q, target), 4 * target.precision)
    if abs(value) >= Fraction(2) ** target.overflow:
        return float("inf") if value > 0 else float("-inf")
    if value == 0 and decide_sign(x, question="sign of a number that rounds to zero").value < 0:
        return -0.0
    return float(value)


def _rounded(x: Expression, rule: Callable[[Fraction], Fraction], bits: int) -> Fraction:
    """The value of a rounding rule whose steps lie halfway between neighbouring results."""
    if x.kind == ex.RATIONAL:
        return rule(Fraction(int(x.payload.p), int(x.payload.q)))
    if decide_sign(x, question="is the number to be rounded zero?").value == 0:
        return Fraction(0)
    bits = max(bits, 64)
    attempts = 0
    while True:
        ball = enclose(x, bits)
        bits *= 2
        if not (ball > 0 or ball < 0):
            continue
        low, high = (rule(end) for end in bounds(ball))
        if low == high:
            return low
        attempts += 1
        tie = (low + high) / 2
        if attempts >= 3 and rule(tie) in (low, high) and _are_neighbours(low, high, tie, rule):
            side = decide_sign(ex.sub(x, ex.rational(tie)), question="is the number a tie between two roundings?").value
            return rule(tie) if side == 0 else (low if side < 0 else high)


def _are_neighbours(low: Fraction, high: Fraction, tie: Fraction, rule: Callable[[Fraction], Fraction]) -> bool:
    """True if everything between low and tie rounds to low, and everything between tie and high to high."""
    quarter = (high - low) / 4
    return rule(tie - quarter) == low and rule(tie + quarter) == high


def _round_decimal(q: Fraction, n: int) -> Fraction:
    if q == 0:
        return q
    quantum = Fraction(10) ** (_decimal_exponent(abs(q)) - n + 1)
    return round(q / quantum) * quantum


def _decimal_exponent(q: Fraction) -> int:
    """floor(log10 q) for q > 0."""
    estimate = (q.numerator.bit_length() - q.denominator.bit_length()) * 30103 // 100000
    while Fraction(10) ** estimate > q:
        estimate -= 1
    while Fraction(10) ** (estimate + 1) <= q:
        estimate += 1
    return estimate


def _round_binary(q: Fraction, target: BinaryFormat) -> Fraction:
    if q == 0:
        return q
    exponent = abs(q).numerator.bit_length() - q.denominator.bit_length()
    if Fraction(2) ** exponent > abs(q):
        exponent -= 1
    quantum = Fraction(2) ** max(exponent - target.precision + 1, target.smallest)
    return round(q / quantum) * quantum
