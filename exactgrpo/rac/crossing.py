"""Where Pinsker's bound on the total variation stops being the smaller one, to any number of digits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from flint import arb, fmpz

from exactgrpo.errors import InputError, LimitError
from exactgrpo.numbers.inputs import whole
from exactgrpo.numbers.precision import precision

MAX_DIGITS = 1_000_000
_GUARD = 8
_START = 64

Rival = Literal["bretagnolle-huber", "weak bretagnolle-huber"]


@dataclass(frozen=True, slots=True)
class Crossing:
    """A KL value (in nats) at which two bounds agree, to `digits` significant digits: `rounded` correctly, and `truncated`.

    It lies strictly between `lower` and `upper`, which are closer than one unit of the last digit. No exact value is kept: the number is
    transcendental (x algebraic and not 0 makes exp(-x) transcendental, by Lindemann), so it is neither a tie nor a decimal fraction.
    """

    digits: int
    rounded: str
    truncated: str
    scaled: int
    places: int

    @property
    def lower(self) -> Fraction:
        """A rational below the crossing."""
        return Fraction(self.scaled - 1, 10**self.places)

    @property
    def upper(self) -> Fraction:
        """A rational above the crossing."""
        return Fraction(self.scaled + 1, 10**self.places)


def crossing(digits: int, *, rival: Rival = "bretagnolle-huber") -> Crossing:
    """The one KL > 0 at which sqrt(KL/2) equals the rival bound: Pinsker's is the smaller one before it, and the larger one after it.

    The rivals: sqrt(1 - exp(-KL)), "bretagnolle-huber", where x/2 = 1 - exp(-x), and 1 - exp(-KL)/2, "weak bretagnolle-huber", where
    sqrt(x/2) = 1 - exp(-x)/2. Two rationals are returned between which the difference of the bounds changes sign, certified by balls.
    There is one such place: bounds_cross_once (Crossing.v) for the first; for the second the difference 1 - exp(-x)/2 - sqrt(x/2) falls
    everywhere, since sqrt(2x) exp(-x) <= exp(-1/2) < 1 (ours). `digits` counts significant digits, 1 to 1,000,000 (LimitError).

    >>> crossing(15).rounded, crossing(15, rival="weak bretagnolle-huber").rounded
    ('1.59362426004004', '1.62587391582380')
    >>> point = crossing(3)
    >>> point.truncated, point.lower < Fraction("1.593625") and Fraction("1.593624") < point.upper
    ('1.59', True)
    """
    if not isinstance(rival, str) or rival not in _DIFFERENCES:
        raise InputError("rival", rival, f"one of {', '.join(_DIFFERENCES)}")
    difference, slope = _DIFFERENCES[rival]

    def bracket(places: int) -> int | None:
        """An integer m such that the difference is positive at (m - 1)/10^places and negative at (m + 1)/10^places."""
        with precision(_bits(places)):
            unit = arb(10) ** places
            scaled = (_root(difference, slope, places) * unit).mid().floor().unique_fmpz()
            is_certain = difference((scaled - 1) / unit) > 0 and difference((scaled + 1) / unit) < 0
        return scaled if is_certain else None

    return _written(_checked(digits), bracket)


def crossing_by_lambert(digits: int) -> Crossing:
    """The crossing of Pinsker and Bretagnolle-Huber by another route: 2 + W(-2 exp(-2)), W the principal branch of Lambert's function.

    For y = x - 2 the equation x/2 = 1 - exp(-x) is y exp(y) = -2 exp(-2); its other root, y = -2, is KL = 0. Ours.

    >>> crossing_by_lambert(30) == crossing(30)
    True
    """

    def bracket(places: int) -> int | None:
        with precision(_bits(places)):
            unit = arb(10) ** places
            point = (2 + (-2 * arb(-2).exp()).lambertw()) * unit
            scaled = point.mid().floor().unique_fmpz()
            is_certain = scaled - 1 < point and point < scaled + 1
        return scaled if is_certain else None

    return _written(_checked(digits), bracket)


# ---- the differences of the bounds, which are positive below the crossing, and their derivatives


def _square_difference(x: Any) -> Any:
    return 1 - (-x).exp() - x / 2


def _square_slope(x: Any) -> Any:
    return (-x).exp() - arb(1) / 2


def _weak_difference(x: Any) -> Any:
    return 1 - (-x).exp() / 2 - (x / 2).sqrt()


def _weak_slope(x: Any) -> Any:
    return (-x).exp() / 2 - 1 / (8 * x).sqrt()


_DIFFERENCES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "bretagnolle-huber": (_square_difference, _square_slope),
    "weak bretagnolle-huber": (_weak_difference, _weak_slope),
}


def _root(difference: Callable[[Any], Any], slope: Callable[[Any], Any], places: int) -> Any:
    """About where the difference is zero: Newton's method with a growing precision; a sign change has yet to confirm it."""
    x, bits, last = arb(8) / 5, _START, _bits(places)
    steps = 4
    while True:
        with precision(bits):
            for _ in range(steps):
                x = (x - difference(x) / slope(x)).mid()
        if bits == last:
            return x
        bits, steps = min(2 * bits - 8, last), 1


def _bits(places: int) -> int:
    return _START + (places * 10 + 2) // 3


def _checked(digits: Any) -> int:
    count = whole(digits, "digits", least=1)
    if count > MAX_DIGITS:
        raise LimitError("digits", count, f"at most {MAX_DIGITS}")
    return count


def _written(digits: int, bracket: Callable[[int], Any]) -> Crossing:
    """Digits that both ends of a bracket agree on. The crossing is no tie, so a bracket that is narrow enough exists."""
    guard = _GUARD
    while True:
        places = digits - 1 + guard
        scaled, unit = bracket(places), fmpz(10) ** guard
        if scaled is not None:
            truncated = {(end // unit) for end in (scaled - 1, scaled + 1)}
            rounded = {((2 * end + unit) // (2 * unit)) for end in (scaled - 1, scaled + 1)}
            if len(truncated) == len(rounded) == 1:
                return Crossing(digits, _text(rounded.pop(), digits), _text(truncated.pop(), digits), int(scaled), places)
        guard *= 2


def _text(scaled: Any, digits: int) -> str:
    written = str(scaled)
    return written if digits == 1 else f"{written[:1]}.{written[1:]}"
