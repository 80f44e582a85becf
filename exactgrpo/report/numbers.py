"""Exact numbers as JSON data and as short text. Nothing here rounds in silence: a number without a short exact form is enclosed."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any

from exactgrpo.errors import LimitError, UndecidedError
from exactgrpo.numbers.real import Real
from exactgrpo.numbers.rounding import outward

DIGITS = 11
MAX_DIGITS = 100_000
_PRINTED = 20
"""Digits beyond this many are cut in tables; JSON has them all."""


def number_data(x: Real, digits: int = DIGITS) -> dict[str, Any]:
    """JSON data of a number: `exact` text while it is short, `decimal` correctly rounded to `digits`, `float64` the nearest double.

    Without a short exact form `exact` is null, and `lower` and `upper` are decimals that enclose the number. `decimal` and
    `float64` are null where they cannot be told (a number that may be zero, or one whose decimals nobody could print). A double
    that overflows is the text "inf" or "-inf".

    >>> number_data(Real.of(Fraction(7, 5)))
    {'exact': '7/5', 'decimal': '1.4000000000', 'float64': 1.4}
    """
    exact = x.exact()
    data: dict[str, Any] = {"exact": exact, "decimal": None, "float64": None}
    try:
        data["decimal"] = x.digits(digits)
        double = x.to_float64()
        data["float64"] = double if abs(double) != float("inf") else "-inf" if double < 0 else "inf"
    except (UndecidedError, LimitError):
        pass
    if exact is None:
        data["lower"], data["upper"] = enclosing_decimals(x, digits)
    return data


def enclosing_decimals(x: Real, digits: int) -> tuple[str, str]:
    """Two decimals with lower <= x <= upper, of `digits` + 3 significant digits."""
    lower, upper = outward(x.expression, digits)
    return _decimal(lower, digits + 3, ROUND_FLOOR), _decimal(upper, digits + 3, ROUND_CEILING)


def _decimal(q: Fraction | None, digits: int, rounding: str) -> str:
    if q is None:
        return "-inf" if rounding == ROUND_FLOOR else "inf"
    context = Context(prec=digits, rounding=rounding, Emax=10**9, Emin=-(10**9))
    return str(context.divide(Decimal(q.numerator), Decimal(q.denominator)))


def number_text(x: Real, digits: int = DIGITS) -> str:
    """One number in a table: exact text if short, else its leading digits and an ellipsis.

    >>> number_text(Real.of(2).sqrt()), number_text(Real.of(Fraction(10**40, 3**60)))
    ('sqrt(2)', '2.3589824876e11...')
    """
    exact = x.exact()
    if exact is not None and len(exact) <= 2 * _PRINTED:
        return exact
    shown = min(max(digits, 1), _PRINTED)
    try:
        return f"{x.digits(shown)}..."
    except UndecidedError:
        lower, upper = enclosing_decimals(x, 3)
        return f"[{lower}, {upper}]"
    except LimitError:
        return "too large to print"
