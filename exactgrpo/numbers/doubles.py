"""IEEE doubles, not certified: the yardstick of speed, and the second opinion of tests. Nothing is decided with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from exactgrpo.numbers.arithmetic import Column, Exact, Key, Matrix, Rows, Signs
from exactgrpo.numbers.balls import ball
from exactgrpo.numbers.precision import precision
from exactgrpo.numbers.ragged import cumulated, row_cofactors, row_products, row_reduce

Floats = npt.NDArray[np.float64]


def double(value: Exact | int) -> float:
    """A nearby double; not promised to be the nearest."""
    if isinstance(value, int):
        return float(value)
    with precision(96):
        return float(ball(value))


class Doubles:
    def number(self, value: Exact | int) -> float:
        return double(value)

    def exact(self, column: Column) -> Floats:
        vector = column.cache.get("doubles")
        if vector is None:
            vector = column.cache["doubles"] = np.array([double(x) for x in column], float)
        return vector  # type: ignore[no-any-return]

    def exp(self, x: Floats) -> Floats:
        return np.exp(x)  # type: ignore[no-any-return]

    def log(self, x: Floats) -> Floats:
        return np.log(x)  # type: ignore[no-any-return]

    def root(self, x: Floats, degree: int) -> Floats:
        return np.sqrt(x) if degree == 2 else x ** (1 / degree)  # type: ignore[no-any-return]

    def _dense(self, matrix: Matrix) -> Floats:
        dense = matrix.cache.get("doubles")
        if dense is None:
            dense = matrix.cache["doubles"] = np.zeros((matrix.height, matrix.width))
            for i, row in enumerate(matrix.rows):
                for j, v in row:
                    dense[i, j] = double(v)
        return dense  # type: ignore[no-any-return]

    def linear(self, matrix: Matrix, x: Floats) -> Floats:
        return self._dense(matrix) @ x  # type: ignore[no-any-return]

    def adjoint(self, matrix: Matrix, y: Floats) -> Floats:
        return y @ self._dense(matrix)  # type: ignore[no-any-return]

    def sums(self, x: Floats, rows: Rows) -> Floats:
        return row_reduce(np.add, x, rows)

    def cumulate(self, x: Floats, rows: Rows) -> Floats:
        return cumulated(x, rows)

    def products(self, x: Floats, rows: Rows) -> Floats:
        return row_products(x, rows, np.ones, np.ndarray.__setitem__)  # type: ignore[no-any-return]

    def cofactors(self, x: Floats, rows: Rows) -> Floats:
        return row_cofactors(x, rows, np.ones, np.ndarray.__setitem__)  # type: ignore[no-any-return]

    def place(self, x: Floats, positions: npt.NDArray[np.intp], size: int) -> Floats:
        out = np.zeros(size)
        out[positions] = x
        return out

    def join(self, vectors: Sequence[Floats]) -> Floats:
        return np.concatenate(vectors)

    def shift(self, x: Floats, rows: Rows) -> Floats:
        return x - row_reduce(np.maximum, x, rows)[rows.owner]  # type: ignore[no-any-return]

    def signs(self, key: Key, x: Any, y: Any, *, soft: bool = False) -> Signs:
        return np.sign(x - y).astype(np.int8)  # type: ignore[no-any-return]

    def mark(self, level: Key, x: Floats) -> Floats:
        return x

    def observe(self, name: str, level: Key, x: Callable[[], Any]) -> None:
        return
