"""Exact numbers as JSON data and as short text. Nothing here rounds in silence: a number without a short exact form is enclosed."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any

from exactgrpo.errors import LimitError, UndecidedError
from exactgrpo.numbers.decision import decide_sign
from exactgrpo.numbers.expression import LEAF, enclose
from exactgrpo.numbers.real import Real
from exactgrpo.numbers.rounding import outward
from exactgrpo.update.run import Run

DIGITS = 11
SHORT = 12
"""Characters of an exact number in a table with many columns."""
PRINTED = 20
"""Digits beyond this many are cut in tables; JSON has them all."""
ZERO_BITS = 1024
"""Bits to which a value that may be zero is refined for a report."""
SEARCHED_SIZE = 256
"""Masses times parameters of the problems whose computed values are searched for a short exact form."""


@dataclass(frozen=True, slots=True)
class Format:
    """How numbers are written: decimals to `digits`; `searches` says whether a short exact form of a computed value is searched for."""

    digits: int = DIGITS
    searches: bool = True

    @classmethod
    def of(cls, run: Run, digits: int) -> Format:
        """Of a run: computed values of large problems have no short exact form, and looking for one would take longer than the run."""
        family = run.problem.family
        return cls(digits, family.rows.size * family.size <= SEARCHED_SIZE)

    def exact(self, x: Real) -> str | None:
        """Exact text while it is short."""
        return x.exact() if self.searches or x.expression.kind != LEAF else None

    def data(self, x: Real) -> dict[str, Any]:
        """JSON data of a number: `exact` text while it is short, `decimal` correctly rounded to `digits`, `float64` the nearest double.

        Without a short exact form `exact` is null, and `lower` and `upper` are decimals that enclose the number. `decimal` and
        `float64` are null where they cannot be told (a number that may be zero, or one whose decimals nobody could print). A double
        that overflows is the text "inf" or "-inf".

        >>> Format().data(Real.of(Fraction(7, 5)))
        {'exact': '7/5', 'decimal': '1.4000000000', 'float64': 1.4}
        """
        data: dict[str, Any] = {"exact": None, "decimal": None, "float64": None}
        try:
            x = _told_from_zero(x)
            data["exact"] = self.exact(x)
            data["decimal"] = x.digits(self.digits)
            double = x.to_float64()
            data["float64"] = double if abs(double) != float("inf") else "-inf" if double < 0 else "inf"
        except (UndecidedError, LimitError):
            pass
        if data["exact"] is None:
            data["lower"], data["upper"] = enclosing_decimals(x, self.digits)
        return data

    def text(self, x: Real, *, longest: int = 2 * PRINTED) -> str:
        """One number in a table: exact text of at most `longest` characters, else its leading digits and an ellipsis.

        >>> Format().text(Real.of(2).sqrt()), Format().text(Real.of(Fraction(10**40, 3**60)))
        ('sqrt(2)', '2.3589824876e11...')
        """
        try:
            x = _told_from_zero(x)
            exact = self.exact(x)
            if exact is not None and len(exact) <= longest:
                return exact
            return f"{x.digits(min(self.digits, PRINTED))}..."
        except UndecidedError:
            lower, upper = enclosing_decimals(x, 3)
            return f"[{lower}, {upper}]"
        except LimitError:
            return "too large to print"


def _told_from_zero(x: Real) -> Real:
    """x, or 0 if it is proved to be; UndecidedError after a modest effort, since a report should not take longer than its run."""
    if enclose(x.expression, ZERO_BITS // 4).contains(0) and decide_sign(x.expression, max_bits=ZERO_BITS).value == 0:
        return Real(0)
    return x


def enclosing_decimals(x: Real, digits: int) -> tuple[str, str]:
    """Two decimals with lower <= x <= upper, of `digits` + 3 significant digits."""
    lower, upper = outward(x.expression, digits)
    return _decimal(lower, digits + 3, ROUND_FLOOR), _decimal(upper, digits + 3, ROUND_CEILING)


def _decimal(q: Fraction | None, digits: int, rounding: str) -> str:
    if q is None:
        return "-inf" if rounding == ROUND_FLOOR else "inf"
    context = Context(prec=digits, rounding=rounding, Emax=10**9, Emin=-(10**9))
    return str(context.divide(Decimal(q.numerator), Decimal(q.denominator)))
