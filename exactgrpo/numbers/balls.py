"""Certified balls (Arb): every operation returns an enclosure of the exact result at the working precision."""

from __future__ import annotations

from collections.abc import Callable, Collection
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb, arb_mat, ctx, fmpq

from exactgrpo.numbers.arithmetic import DecisionTable, Exact, Key, Matrix, Signs
from exactgrpo.numbers.decision import Proof
from exactgrpo.numbers.expression import Expression, enclose
from exactgrpo.numbers.lists import ListArithmetic, ListVector, rational_matrix


def ball(value: Exact | int | arb) -> arb:
    """An exact number as a ball at the working precision."""
    if isinstance(value, arb):
        return value
    if isinstance(value, Expression):
        return enclose(value, ctx.prec)
    return arb(fmpq(value.numerator, value.denominator))


_EXP, _LOG, _SQRT = (np.frompyfunc(function, 1, 1) for function in (arb.exp, arb.log, arb.sqrt))


class BallVector(ListVector):
    __slots__ = ()
    scalar = staticmethod(ball)


class Balls(ListArithmetic):
    """Balls at a fixed precision; the caller keeps the working precision set to `bits` while it runs a program.

    `record` names the observed vectors to be kept, None for all of them; marked ones are always kept. Comparisons are decided by
    separated balls; equality only between exact points.
    """

    Vector = BallVector

    def __init__(self, bits: int, table: DecisionTable | None = None, *, record: Collection[str] | None = ()) -> None:
        self.bits, self.key = bits, f"balls{bits}"
        self.table = table if table is not None else DecisionTable()
        self.record = None if record is None else frozenset(record)
        self.observed: dict[tuple[str, Key], list[Any]] = {}
        self.proof = Proof("enclosure", bits, "separated balls")

    def exp(self, x: Any) -> Any:
        return BallVector(_EXP(x.array))

    def log(self, x: Any) -> Any:
        return BallVector(_LOG(x.array))

    def root(self, x: Any, degree: int) -> Any:
        if degree == 2:
            return BallVector(_SQRT(x.array))
        return BallVector([a.root(degree) for a in x.entries])

    def _matrices(self, matrix: Matrix) -> tuple[arb_mat, arb_mat]:
        pair = matrix.cache.get(self.key)
        if pair is None:
            if matrix.is_rational:
                a = arb_mat(rational_matrix(matrix))
            else:
                dense = [[0] * matrix.width for _ in range(matrix.height)]
                for i, row in enumerate(matrix.rows):
                    for j, v in row:
                        dense[i][j] = ball(v)
                a = arb_mat(matrix.height, matrix.width, [v for row in dense for v in row])
            pair = matrix.cache[self.key] = (a, a.transpose())
        return pair  # type: ignore[no-any-return]

    def linear(self, matrix: Matrix, x: Any) -> Any:
        return BallVector((self._matrices(matrix)[0] * arb_mat(len(x), 1, x.entries)).entries())

    def adjoint(self, matrix: Matrix, y: Any) -> Any:
        return BallVector((self._matrices(matrix)[1] * arb_mat(len(y), 1, y.entries)).entries())

    def signs(self, key: Key, x: Any, y: Any, *, soft: bool = False) -> Signs:
        def decide(signs: Signs, todo: npt.NDArray[np.intp]) -> None:
            left, right = x.array.take(todo), y.array.take(todo)
            below = (left < right).astype(bool)
            signs[todo[below]] = -1
            rest = np.flatnonzero(~below)
            for i, a, b in zip(todo[rest].tolist(), left.take(rest).tolist(), right.take(rest).tolist(), strict=True):
                if a > b:
                    signs[i] = 1
                elif a.is_exact() and b.is_exact() and a == b:
                    signs[i] = 0

        return self.table.ask(key, len(x), decide, self.proof, soft=soft)

    def mark(self, level: Key, x: Any) -> Any:
        self.observed["theta", level] = x.entries
        return x

    def observe(self, name: str, level: Key, x: Callable[[], Any]) -> None:
        if self.record is None or name in self.record:
            self.observed[name, level] = x().entries


def as_fraction(value: fmpq) -> Fraction:
    """A FLINT rational as a Python one."""
    return Fraction(int(value.p), int(value.q))
