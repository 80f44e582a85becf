"""Candidates for integer relations between real numbers, by lattice reduction. A candidate proves nothing: verify it exactly."""

from __future__ import annotations

from collections.abc import Sequence

from flint import arb, fmpz_mat

from exactgrpo.numbers.expression import Expression, enclose
from exactgrpo.numbers.precision import precision


def relation_candidate(numbers: Sequence[Expression], bits: int, *, height: int = 2000) -> list[int] | None:
    """Integers v with v[0] != 0 and sum v[i] numbers[i] within about 2^-bits of zero, none above `height`; None if there are none.

    >>> x = Expression.of(2).sqrt()
    >>> relation_candidate([x / 3 + 1, Expression.of(1), x], 64)
    [3, -3, -1]
    """
    balls = [enclose(x, bits + 64) for x in numbers]
    if not all(ball.is_finite() for ball in balls):
        return None
    size = len(balls)
    with precision(bits + 64):
        scaled = [int((ball.mid() * arb(2) ** bits).floor().unique_fmpz() or 0) for ball in balls]
    rows = [[int(i == j) for j in range(size)] + [scaled[i]] for i in range(size)]
    reduced = fmpz_mat(rows).lll()
    for i in range(size):
        vector = [int(reduced[i, j]) for j in range(size)]
        if vector[0] == 0 or max(map(abs, vector)) > height or abs(int(reduced[i, size])) > size * height:
            continue
        with precision(bits + 64):
            total = sum((v * ball for v, ball in zip(vector, balls, strict=True)), arb(0))
        if total.contains(0):
            return vector if vector[0] > 0 else [-v for v in vector]
    return None
