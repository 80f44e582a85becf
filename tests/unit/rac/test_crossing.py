"""Where the bounds cross: published digits, two routes, the sign change in rationals, and an interval arithmetic of others."""

from __future__ import annotations

from fractions import Fraction as F
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings, strategies as st

from exactgrpo import InexactInputError, InputError, LimitError, Real
from exactgrpo.rac.crossing import MAX_DIGITS, Crossing, crossing, crossing_by_lambert

WEAK: Any = "weak bretagnolle-huber"


def squares(x: F) -> Real:
    return 1 - (-Real(x)).exp() - Real(x) / 2


def weak(x: F) -> Real:
    return 1 - (-Real(x)).exp() / 2 - (Real(x) / 2).sqrt()


def test_the_published_digits() -> None:
    assert crossing(9).truncated == "1.59362426"
    assert crossing(9, rival=WEAK).truncated == "1.62587391"
    # the enclosure of the machine-checked theorem
    assert F(1593624, 10**6) < crossing(9).lower < crossing(9).upper < F(1593625, 10**6)


@given(st.integers(1, 400))
@settings(max_examples=60, deadline=None)
def test_digits_agree_with_the_enclosure_and_with_lambert(n: int) -> None:
    first, second = crossing(n), crossing(n, rival=WEAK)
    assert first == crossing_by_lambert(n)
    for point, difference in ((first, squares), (second, weak)):
        assert difference(point.lower) > 0
        assert difference(point.upper) < 0
        check_text(point, n)


def check_text(point: Crossing, n: int) -> None:
    unit = F(1, 10 ** (n - 1))
    truncated, rounded = F(point.truncated), F(point.rounded)
    assert len(point.truncated) == len(point.rounded) == (n + 1 if n > 1 else 1)
    assert truncated <= point.lower < point.upper < truncated + unit
    assert rounded - unit / 2 <= point.lower < point.upper <= rounded + unit / 2
    assert 0 < point.upper - point.lower < unit


def test_more_digits_continue_fewer() -> None:
    for rival in ("bretagnolle-huber", WEAK):
        long = crossing(3000, rival=rival).truncated
        assert all(long.startswith(crossing(n, rival=rival).truncated) for n in (2, 17, 999))


def test_bisection_in_rationals_ends_at_the_same_places() -> None:
    for rival, difference in (("bretagnolle-huber", squares), (WEAK, weak)):
        low, high = F(1), F(2)
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if difference(middle) > 0 else (low, middle)
        point = crossing(22, rival=rival)
        assert max(low, point.lower) < min(high, point.upper)


def test_mpmath_intervals_find_the_same_places() -> None:
    """Contractions: x -> 2 (1 - exp(-x)), and u -> 1 - exp(-2 u^2)/2 for u = sqrt(x/2); a map into itself has its root inside."""
    with mpmath.workdps(60):
        iv = mpmath.iv
        iv.dps = 60
        for rival, step, back in (
            ("bretagnolle-huber", lambda x: 2 * (1 - iv.exp(-x)), lambda x: x),
            (WEAK, lambda u: 1 - iv.exp(-2 * u * u) / 2, lambda u: 2 * u * u),
        ):
            box = iv.mpf([1, 2] if rival != WEAK else ["0.8", "1"])
            assert step(box) in box
            for _ in range(400):
                box = step(box)
            point, root = crossing(45, rival=rival), back(box)
            assert mpmath.mpf(root.delta) < mpmath.mpf(10) ** -50
            assert mpmath.mpf(point.lower.numerator) / point.lower.denominator < root.b
            assert root.a < mpmath.mpf(point.upper.numerator) / point.upper.denominator


def test_a_hundred_thousand_digits() -> None:
    assert crossing(100_000) == crossing_by_lambert(100_000)


@pytest.mark.parametrize("digits", [0, -1, "5", None, True])
def test_digits_are_a_positive_count(digits: Any) -> None:
    for function in (crossing, crossing_by_lambert):
        with pytest.raises(InputError, match="digits"):
            function(digits)


def test_other_bad_input_is_refused() -> None:
    with pytest.raises(InexactInputError, match="digits"):
        crossing(2.0)  # type: ignore[arg-type]
    with pytest.raises(LimitError, match="digits"):
        crossing(MAX_DIGITS + 1)
    for rival in ("pinsker", None, ["bretagnolle-huber"]):
        with pytest.raises(InputError, match="rival"):
            crossing(5, rival=rival)  # type: ignore[arg-type]
