"""Vectors of scalars which know + - * /, kept as object arrays: the shared part of the ball and the rational arithmetic.

NumPy walks an object array with the operators of its entries, which is faster than `map` over lists, and gathers without
touching the entries at all. Results are the same objects that the operators give.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Sequence, Sized
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
from flint import fmpq, fmpq_mat

from exactgrpo.numbers.arithmetic import Column, DecisionTable, Exact, Key, Matrix, Rows
from exactgrpo.numbers.ragged import row_reduce

Objects = npt.NDArray[np.object_]


class _Entries(Sized, Iterable[Any], Protocol):
    """A list, or an object array."""


class ListVector:
    """An object array of scalars; `scalar` makes one from an exact number."""

    __slots__ = ("array",)

    def __init__(self, entries: _Entries) -> None:
        self.array: Objects = entries if isinstance(entries, np.ndarray) else np.fromiter(entries, np.object_, len(entries))

    @staticmethod
    def scalar(value: Any) -> Any:
        raise TypeError("a subclass names its scalar")

    @property
    def entries(self) -> list[Any]:
        """The scalars as a list."""
        return self.array.tolist()  # type: ignore[no-any-return]

    def _with(self, operation: np.ufunc, other: Any) -> Any:
        return type(self)(operation(self.array, other.array if isinstance(other, ListVector) else self.scalar(other)))

    def __add__(self, other: Any) -> Any:
        return self._with(np.add, other)

    def __sub__(self, other: Any) -> Any:
        return self._with(np.subtract, other)

    def __mul__(self, other: Any) -> Any:
        return self._with(np.multiply, other)

    def __truediv__(self, other: Any) -> Any:
        return self._with(np.true_divide, other)

    def __rtruediv__(self, other: Any) -> Any:
        return type(self)(np.true_divide(self.scalar(other), self.array))

    def __rsub__(self, other: Any) -> Any:
        return type(self)(np.subtract(self.scalar(other), self.array))

    def __neg__(self) -> Any:
        return type(self)(np.negative(self.array))

    def __getitem__(self, positions: npt.NDArray[np.intp]) -> Any:
        return type(self)(self.array.take(positions))

    def __len__(self) -> int:
        return len(self.array)


def rational_matrix(matrix: Matrix) -> fmpq_mat:
    """A matrix of rationals for FLINT, made once for all arithmetics."""
    made = matrix.cache.get("rational")
    if made is None:
        flat = [fmpq(0)] * (matrix.height * matrix.width)
        for i, row in enumerate(matrix.rows):
            for j, v in row:
                flat[i * matrix.width + j] = fmpq(v.numerator, v.denominator)  # type: ignore[union-attr]
        made = matrix.cache["rational"] = fmpq_mat(matrix.height, matrix.width, flat)
    return made


class ListArithmetic:
    """The structural operations over `ListVector`; a subclass adds the functions, the comparisons and the name of its cache."""

    Vector: ClassVar[type[ListVector]]
    key: str
    table: DecisionTable
    observed: dict[tuple[str, Key], list[Any]]

    def number(self, value: Exact | int) -> Any:
        return self.Vector.scalar(value)

    def exact(self, column: Column) -> Any:
        vector = column.cache.get(self.key)
        if vector is None:
            scalar = self.Vector.scalar
            vector = column.cache[self.key] = self.Vector([scalar(x) for x in column])
        return vector

    def sums(self, x: Any, rows: Rows) -> Any:
        if rows.count and min(rows.lengths):
            return self.Vector(row_reduce(np.add, x.array, rows))
        entries, start, zero = x.entries, rows.start, self.Vector.scalar(0)
        return self.Vector([sum(entries[a + 1 : b], entries[a]) if b > a else zero for a, b in itertools.pairwise(start)])

    def cumulate(self, x: Any, rows: Rows) -> Any:
        entries: list[Any] = x.entries
        out: list[Any] = []
        for a, b in itertools.pairwise(rows.start):
            out += itertools.accumulate(entries[a:b])
        return self.Vector(out)

    def products(self, x: Any, rows: Rows) -> Any:
        entries, out, one = x.entries, [], self.Vector.scalar(1)
        for a, b in itertools.pairwise(rows.start):
            product = entries[a] if b > a else one
            for i in range(a + 1, b):
                product = product * entries[i]
            out.append(product)
        return self.Vector(out)

    def cofactors(self, x: Any, rows: Rows) -> Any:
        entries, out, one = x.entries, [], self.Vector.scalar(1)
        for a, b in itertools.pairwise(rows.start):
            before = list(itertools.accumulate(entries[a : b - 1], operator.mul, initial=one))[: b - a]
            after = list(itertools.accumulate(reversed(entries[a + 1 : b]), operator.mul, initial=one))[: b - a][::-1]
            out += [after[0], *map(operator.mul, before[1:-1], after[1:-1]), before[-1]][: b - a] if b > a else []
        return self.Vector(out)

    def place(self, x: Any, positions: npt.NDArray[np.intp], size: int) -> Any:
        out = np.empty(size, np.object_)
        out.fill(self.Vector.scalar(0))
        out[positions] = x.array
        return self.Vector(out)

    def join(self, vectors: Sequence[Any]) -> Any:
        return self.Vector(np.concatenate([v.array for v in vectors]))

    def shift(self, x: Any, rows: Rows) -> Any:
        return x

    def observe(self, name: str, level: Key, x: Callable[[], Any]) -> None:
        self.observed[name, level] = x().entries
