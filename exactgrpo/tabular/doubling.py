"""Sums over the steps of a trajectory by doubling, in integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def power_sums(a: Any, inner: Sequence[Any], c: Any, count: int) -> list[Any]:
    """sum_{t<count} a^t x c^(count-1-t) for each x, with fmpz_mat a, x, c and count >= 1.

    By f(2n) = a^n f(n) + f(n) c^n and f(n+1) = a f(n) + x c^n, from the highest binary digit of the count. Ours.

    >>> from flint import fmpz_mat
    >>> a, x, c = (fmpz_mat(1, 1, [k]) for k in (2, 1, 3))
    >>> [power_sums(a, [x], c, n)[0][0, 0] for n in (1, 2, 3)]
    [1, 5, 19]
    """
    sums, left, right = list(inner), a, c
    digits = bin(count)[3:]
    for i, digit in enumerate(digits, start=1):
        sums = [left * f + f * right for f in sums]
        if digit == "0" and i == len(digits):
            break  # the longest products would not be used
        left, right = left * left, right * right
        if digit == "1":
            sums = [a * f + x * right for f, x in zip(sums, inner, strict=True)]
            left, right = a * left, c * right
    return sums
