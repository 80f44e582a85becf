"""The doors of the field's formulas: lists of exact numbers with their place, length and range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exactgrpo.errors import InputError
from exactgrpo.numbers.inputs import listed
from exactgrpo.numbers.real import Real

ZERO = Real(0)
ONE = Real(1)


def reals(values: Any, place: str, *, length: int | None = None, least: int = 1, rule: str | None = None) -> list[Real]:
    """The numbers of a list that has `length` entries, or at least `least`.

    >>> reals([1, "0.5"], "rewards")
    [Real('1'), Real('1/2')]
    """
    row = listed(values, place)
    if len(row) < least or (length is not None and len(row) != length):
        wanted = rule or (f"{length} numbers" if length is not None else f"a list of at least {least}")
        raise InputError(place, f"{len(row)} numbers", wanted)
    return [Real.of(x, f"{place}[{i}]") for i, x in enumerate(row)]


def positive(value: Any, place: str, rule: str) -> Real:
    """A positive number."""
    number = Real.of(value, place)
    if number <= 0:
        raise InputError(place, repr(number), rule)
    return number


def positives(values: Any, place: str, *, length: int | None = None, rule: str = "a mass is positive") -> list[Real]:
    """A list of positive numbers."""
    numbers = reals(values, place, length=length)
    return [positive(x, f"{place}[{i}]", rule) for i, x in enumerate(numbers)]


def positive_pmf(values: Any, place: str, *, length: int | None = None) -> list[Real]:
    """A probability mass function that is positive everywhere."""
    masses = positives(values, place, length=length)
    if sum_of(masses) != 1:
        raise InputError(place, f"sum {sum_of(masses)!r}", "masses sum to one")
    return masses


def tangent(values: Any, place: str, *, length: int) -> list[Real]:
    """Derivatives of masses: they sum to zero."""
    slopes = reals(values, place, length=length)
    if sum_of(slopes) != 0:
        raise InputError(place, f"sum {sum_of(slopes)!r}", "derivatives of masses sum to zero")
    return slopes


def sum_of(numbers: Sequence[Real]) -> Real:
    """The sum, zero for none."""
    return sum(numbers, ZERO)


def least_of(a: Real, b: Real) -> Real:
    """min(a, b), decided exactly."""
    return a if a <= b else b


def greatest_of(a: Real, b: Real) -> Real:
    """max(a, b), decided exactly."""
    return b if a <= b else a


def clipped(x: Real, low: Real, high: Real) -> Real:
    """min(high, max(low, x))."""
    return least_of(high, greatest_of(low, x))
