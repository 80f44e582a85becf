"""Rational inputs of bounded length."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import lcm
from typing import Any

from exactgrpo.errors import InputError, LimitError
from exactgrpo.numbers.inputs import listed, whole
from exactgrpo.numbers.rational import exact

MAX_BITS = 16_384
"""Of a number, and of a common denominator."""
MAX_DELAY = 10_000


def rational(value: Any, place: str) -> Fraction:
    """The rational number, of at most 16,384 bits."""
    number = exact(value, place)
    if not isinstance(number, Fraction):
        raise InputError(place, str(value), "a rational number is needed")
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > MAX_BITS:
        raise LimitError(place, number, f"at most {MAX_BITS} bits")
    return number


def short_text(x: Fraction) -> str:
    """The number as p/q, or its size where that is long.

    >>> short_text(Fraction(9, 10)), short_text(1 + Fraction(1, 2**300))
    ('9/10', 'between 1 and 2')
    """
    if x.numerator.bit_length() + x.denominator.bit_length() <= 160:
        return str(x)
    floor = x.numerator // x.denominator
    return f"between {floor} and {floor + 1}" if floor.bit_length() < 100 else f"a number of {floor.bit_length()} bits"


def check_common_denominator(place: str, numbers: Iterable[Fraction], most: int = MAX_BITS) -> None:
    """LimitError unless the common denominator has at most this many bits."""
    common = 1
    for denominator in {x.denominator for x in numbers}:
        common = lcm(common, denominator)
        if common.bit_length() > most:
            raise LimitError(place, f"a common denominator of over {most} bits", "fewer different denominators, or shorter ones")


def delays_in_steps(delays: Any, place: str) -> tuple[int, ...]:
    """Integers from 0 to 10,000.

    >>> delays_in_steps([5, -1], "delays")
    Traceback (most recent call last):
    exactgrpo.errors.InputError: delays[1]: -1: an integer of at least 0
    """
    steps = tuple(whole(x, f"{place}[{i}]", least=0) for i, x in enumerate(listed(delays, place)))
    for i, delay in enumerate(steps):
        if delay > MAX_DELAY:
            raise LimitError(f"{place}[{i}]", delay, f"at most {MAX_DELAY} steps")
    return steps
