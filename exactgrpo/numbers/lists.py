"""Vectors that are lists of scalars which know + - * /: the shared part of the ball and the rational arithmetic."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from exactgrpo.numbers.arithmetic import Column, DecisionTable, Exact, Key, Rows


class ListVector:
    """A list of scalars; `scalar` makes one from an exact number."""

    __slots__ = ("entries",)

    def __init__(self, entries: list[Any]) -> None:
        self.entries = entries

    @staticmethod
    def scalar(value: Any) -> Any:
        raise TypeError("a subclass names its scalar")

    def _zip(self, operation: Callable[[Any, Any], Any], other: Any) -> Any:
        right = other.entries if isinstance(other, ListVector) else itertools.repeat(self.scalar(other))
        return type(self)(list(map(operation, self.entries, right)))

    def __add__(self, other: Any) -> Any:
        return self._zip(operator.add, other)

    def __sub__(self, other: Any) -> Any:
        return self._zip(operator.sub, other)

    def __mul__(self, other: Any) -> Any:
        return self._zip(operator.mul, other)

    def __truediv__(self, other: Any) -> Any:
        return self._zip(operator.truediv, other)

    def __rtruediv__(self, other: Any) -> Any:
        number = self.scalar(other)
        return type(self)([number / x for x in self.entries])

    def __rsub__(self, other: Any) -> Any:
        number = self.scalar(other)
        return type(self)([number - x for x in self.entries])

    def __neg__(self) -> Any:
        return type(self)(list(map(operator.neg, self.entries)))

    def __getitem__(self, positions: npt.NDArray[np.intp]) -> Any:
        entries = self.entries
        return type(self)(list(map(entries.__getitem__, positions.tolist())))

    def __len__(self) -> int:
        return len(self.entries)


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
        entries, start, zero = x.entries, rows.start, self.Vector.scalar(0)
        return self.Vector([sum(entries[a + 1 : b], entries[a]) if b > a else zero for a, b in itertools.pairwise(start)])

    def cumulate(self, x: Any, rows: Rows) -> Any:
        out: list[Any] = []
        for a, b in itertools.pairwise(rows.start):
            out += itertools.accumulate(x.entries[a:b])
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
        out = [self.Vector.scalar(0)] * size
        for i, value in zip(positions.tolist(), x.entries, strict=True):
            out[i] = value
        return self.Vector(out)

    def join(self, vectors: Sequence[Any]) -> Any:
        return self.Vector(list(itertools.chain.from_iterable(v.entries for v in vectors)))

    def shift(self, x: Any, rows: Rows) -> Any:
        return x

    def observe(self, name: str, level: Key, x: Callable[[], Any]) -> None:
        self.observed[name, level] = x().entries
