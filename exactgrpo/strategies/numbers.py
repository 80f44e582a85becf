"""Strategies of numbers: rationals, thresholds, ratios, probability mass functions and groups of rewards."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor
from typing import Any

from hypothesis import strategies as st

from exactgrpo.errors import InputError
from exactgrpo.numbers.inputs import whole
from exactgrpo.numbers.rational import exact

Strategy = st.SearchStrategy


def rationals(*, min: Any = -4, max: Any = 4, denominator: int = 12) -> Strategy[Fraction]:
    """Rationals from `min` to `max` with denominators up to `denominator`; they shrink towards 0 and small denominators.

    >>> from hypothesis import find
    >>> find(rationals(min=2, max=3), lambda x: x > 2)
    Fraction(5, 2)
    """
    low, high = rational(min, "min"), rational(max, "max")
    if low > high:
        raise InputError("min", str(low), f"not above max, {high}")
    whole(denominator, "denominator", least=1)
    if any(bound.denominator > denominator for bound in (low, high)):
        raise InputError("denominator", denominator, f"at least those of the bounds {low} and {high}")
    return st.fractions(min_value=low, max_value=high, max_denominator=denominator)


def positive_rationals(*, max: Any = 4, denominator: int = 12) -> Strategy[Fraction]:
    """Rationals above 0, up to `max`, with denominators up to `denominator`; they shrink towards 1 and small denominators.

    >>> from hypothesis import find
    >>> find(positive_rationals(), lambda x: x > 1), find(positive_rationals(), lambda x: x < 1)
    (Fraction(2, 1), Fraction(1, 2))
    """
    high = rational(max, "max")
    if high <= 0:
        raise InputError("max", str(high), "above 0")
    least = ceil(1 / high)
    if whole(denominator, "denominator", least=1) < least:
        raise InputError("denominator", denominator, f"at least {least}, so that there are such numbers up to {high}")
    divisors = st.integers(least, denominator)
    return divisors.flatmap(lambda d: st.integers(1, floor(high * d)).map(lambda n: Fraction(n, d)))


def epsilons(*, denominator: int = 12) -> Strategy[Fraction]:
    """Clipping thresholds strictly between 0 and 1."""
    whole(denominator, "denominator", least=2)
    return rationals(min=Fraction(1, denominator), max=1 - Fraction(1, denominator), denominator=denominator)


def ratios(*, max: Any = 4, denominator: int = 8, epsilon: Any = None) -> Strategy[Fraction]:
    """Importance ratios: positive, up to `max`; exactly 1 is likely, and so are exactly 1 - epsilon and 1 + epsilon where it is given.

    >>> from hypothesis import find
    >>> find(ratios(epsilon="1/5"), lambda rho: rho > 1)
    Fraction(6, 5)
    """
    likely = st.just(Fraction(1))
    if epsilon is not None:
        threshold = rational(epsilon, "epsilon")
        if not 0 < threshold < 1:
            raise InputError("epsilon", str(threshold), "0 < epsilon < 1")
        likely = st.sampled_from((Fraction(1), 1 + threshold, 1 - threshold))
    return likely | rationals(min=Fraction(1, whole(denominator, "denominator", least=1)), max=max, denominator=denominator)


def simplex_points(*, size: int | None = None, min_size: int = 2, max_size: int = 4, weight: int = 6) -> Strategy[tuple[Fraction, ...]]:
    """Probability mass functions, zeros allowed, from integer weights up to `weight`, so that sums are exactly one.

    They have `size` masses, or from `min_size` to `max_size` where no size is given, and shrink to a point mass.
    """
    return _simplex_points(0, size, min_size, max_size, weight)


def positive_simplex_points(
    *, size: int | None = None, min_size: int = 2, max_size: int = 4, weight: int = 6
) -> Strategy[tuple[Fraction, ...]]:
    """Probability mass functions with positive masses, as `simplex_points` has them; they shrink to the uniform one.

    >>> from hypothesis import find
    >>> find(positive_simplex_points(size=2), lambda masses: True)
    (Fraction(1, 2), Fraction(1, 2))
    """
    return _simplex_points(1, size, min_size, max_size, weight)


def _simplex_points(least: int, size: int | None, min_size: int, max_size: int, weight: int) -> Strategy[tuple[Fraction, ...]]:
    weights = st.integers(least, whole(weight, "weight", least=1))
    if size is not None:
        min_size = max_size = whole(size, "size", least=1)
    check_sizes(min_size, max_size)
    return st.lists(weights, min_size=min_size, max_size=max_size).filter(any).map(_normalised)


def reward_groups(*, min_size: int = 2, max_size: int = 6, denominator: int = 4) -> Strategy[list[Fraction]]:
    """The rewards of one group: equal ones are likely, all equal possible."""
    check_sizes(min_size, max_size)
    return st.lists(rationals(denominator=denominator), min_size=min_size, max_size=max_size)


def binary_rewards(*, min_size: int = 2, max_size: int = 6) -> Strategy[list[Fraction]]:
    """The rewards of one group, each 0 or 1."""
    check_sizes(min_size, max_size)
    return st.lists(st.sampled_from((Fraction(0), Fraction(1))), min_size=min_size, max_size=max_size)


def _normalised(weights: Sequence[int]) -> tuple[Fraction, ...]:
    return tuple(Fraction(w, sum(weights)) for w in weights)


def rational(x: Any, place: str) -> Fraction:
    """The option as a Fraction, or InputError.

    >>> rational("1/2", "min")
    Fraction(1, 2)
    """
    value = exact(x, place)
    if not isinstance(value, Fraction):
        raise InputError(place, str(x), "a rational number")
    return value


def check_sizes(low: int, high: int, place: str = "size", *, least: int = 1) -> None:
    """InputError unless least <= low <= high."""
    if whole(low, f"min_{place}", least=least) > whole(high, f"max_{place}", least=least):
        raise InputError(f"max_{place}", high, f"at least {low}")
