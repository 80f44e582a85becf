"""What a user sees of a number: comparisons, roundings, text."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from exactgrpo.errors import InexactInputError
from exactgrpo.numbers.real import Real

of = Real.of


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (lambda: of(7) / 5, "7/5"),
        (lambda: of(7).sqrt() / 20 + of(4).log() / 2 - of(3).log() / 2, "sqrt(7)/20 + 1/2*log(4/3)"),
        (lambda: of(2).log(), "log(2)"),
        (lambda: of(Fraction(1, 2)).log(), "-log(2)"),
        (lambda: -of(800).exp(), "-exp(800)"),
        (lambda: of(1) / 4 - of(3).log() / 40, "1/4 - 1/40*log(3)"),
        (lambda: of(2).log().exp() * 9, "18"),
        (lambda: 3 * of(2).root(3) / 5, "3*2^(1/3)/5"),
        (lambda: 1 / (of(2).sqrt() + 1), "-1 + sqrt(2)"),
        (lambda: 3 * (of(2).sqrt() - 5).exp(), "3*exp(-5 + sqrt(2))"),
        (lambda: of(8).log() * of(3).log(), "3*log(2)*log(3)"),
        (lambda: of(0) * of(2).sqrt(), "0"),
        (lambda: (5 - 2 * of(6).sqrt()).sqrt(), "-sqrt(2) + sqrt(3)"),
        (lambda: (5 + 2 * of(6).sqrt()).sqrt(), "sqrt(2) + sqrt(3)"),
    ],
)
def test_exact_text(number: object, text: str) -> None:
    value = number()  # type: ignore[operator]
    assert value.exact() == text
    assert repr(value) == f"Real('{text}')"


def test_long_numbers_have_no_exact_text_but_digits() -> None:
    x = sum((of(n).sqrt() for n in range(2, 60)), of(0))
    assert x.exact() is None
    assert repr(x).startswith("Real([")
    assert x.latex().endswith(r"\ldots")


def test_comparisons_are_exact() -> None:
    x = of(2).sqrt()
    assert x * x == 2
    assert (x != x + 0) is False
    assert x < Fraction(3, 2) <= Fraction(3, 2) + x - x
    assert not x < x
    assert x <= x
    assert x >= x
    assert not x > x
    assert x > of(Fraction(14142135623730950488016887242097, 10**31)) - Fraction(1, 10**31)
    assert abs(-x) == x
    assert x != "2"


def test_numbers_are_not_hashable_and_have_no_truth_value() -> None:
    with pytest.raises(TypeError):
        hash(of(1))
    with pytest.raises(TypeError):
        bool(of(1))
    with pytest.raises(TypeError):
        float(of(1))
    for operation in (lambda: of(1) + 0.5, lambda: of(1) < 0.5, lambda: of(1) == 0.5, lambda: of(0.5)):  # type: ignore[arg-type]
        with pytest.raises(InexactInputError):
            operation()


@pytest.mark.parametrize(
    ("number", "n", "digits"),
    [
        (lambda: of(Fraction(5, 2)), 1, "2"),  # a tie goes to the even digit
        (lambda: of(Fraction(7, 2)), 1, "4"),
        (lambda: of(2).sqrt() ** 2 * of(3).sqrt() * of(3).sqrt() * Fraction(5, 12), 1, "2"),
        (lambda: (of(2).sqrt() * of(3).sqrt() - of(6).sqrt()) + Fraction(5, 2), 1, "2"),
        (lambda: (of(2).sqrt() * of(3).sqrt() - of(6).sqrt()) + Fraction(5, 2) + Fraction(1, 10**300), 1, "3"),
        (lambda: of(2).sqrt() * 0 + Fraction(999, 100), 2, "10"),
        (lambda: of(10) - of(Fraction(-200)).exp(), 4, "10.00"),
        (lambda: of(123456), 3, "1.23e5"),
        (lambda: of(-1) / 80000, 3, "-0.0000125"),
        (lambda: of(1) / 8000000, 3, "1.25e-7"),
        (lambda: of(8).sqrt() - 2 * of(2).sqrt(), 5, "0"),
    ],
)
def test_digits(number: object, n: int, digits: str) -> None:
    assert number().digits(n) == digits  # type: ignore[operator]


def test_binary_ties_and_limits() -> None:
    zero = of(2).sqrt() * of(3).sqrt() - of(6).sqrt()
    half_ulp = Fraction(1, 2**53)
    assert (zero + 1 + half_ulp).to_float64() == 1.0
    assert (zero + 1 + 3 * half_ulp).to_float64() == 1 + 2**-51
    assert (zero + 1 + half_ulp + Fraction(1, 2**400)).to_float64() == 1 + 2**-52
    assert of(Fraction(1, 2**1075)).to_float64() == 0.0
    assert of(Fraction(3, 2**1076)).to_float64() == 5e-324
    assert math.copysign(1, (-of(-2000).exp()).to_float64()) == -1
    assert of(2**1024 - 2**970).to_float64() == math.inf
    assert (-of(10**6).exp()).to_float64() == -math.inf
    assert of(Fraction(257, 256)).to_bfloat16() == 1.0
    assert (of(Fraction(257, 256)) + Fraction(1, 10**9)).to_bfloat16() == 1.0078125


@given(st.fractions())
def test_float64_agrees_with_true_division(q: Fraction) -> None:
    assert of(q).to_float64() == q.numerator / q.denominator


@given(st.floats(min_value=2.0**-140, max_value=2.0**120, allow_nan=False))
def test_float32_agrees_with_struct(x: float) -> None:
    assert of(Fraction(x)).to_float32() == struct.unpack("f", struct.pack("f", x))[0]


def test_enclosure_is_as_narrow_as_promised() -> None:
    lower, upper = (of(-1000).exp()).enclose(50)
    assert 0 < lower < upper
    assert (upper - lower) * 10**50 <= lower
    assert (of(2).sqrt() ** 2).enclose(10) == (2, 2)
    assert (of(8).sqrt() - 2 * of(2).sqrt()).enclose(10) == (0, 0)


def test_rational_values_are_found() -> None:
    assert (of(8).log() / of(2).log()).as_fraction() == 3
    assert of(2).log().as_fraction() is None
