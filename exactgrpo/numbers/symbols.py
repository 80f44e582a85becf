"""Symbols: nothing is built until one entry is asked for, so a suspicious comparison costs only its own cone.

Parameter vectors become leaves at every mark: opaque numbers that know their enclosure (the run at any precision) and their
definition one step down. A proof tries with the leaves opaque first and expands them from the newest back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import fmpq

from exactgrpo.numbers import expression as ex
from exactgrpo.numbers.arithmetic import OPEN, Column, DecisionTable, Exact, Key, Matrix, Open, Rows, Signs
from exactgrpo.numbers.expression import Expression


def node(value: Exact | int | fmpq) -> Expression:
    """An exact number as an expression node."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, Fraction):
        return ex.rational(fmpq(value.numerator, value.denominator))
    return ex.rational(fmpq(value))


class Lazy:
    """A vector whose entries are expressions made on demand and remembered."""

    __slots__ = ("_made", "_make", "size")

    def __init__(self, size: int, make: Callable[[int], Expression]) -> None:
        self.size, self._make, self._made = size, make, {}

    _made: dict[int, Expression]

    def at(self, i: int) -> Expression:
        made = self._made.get(i)
        if made is None:
            made = self._made[i] = self._make(i)
        return made

    def __len__(self) -> int:
        return self.size

    def _with(self, operation: Callable[[Expression, Expression], Expression], other: Any, *, swap: bool = False) -> Lazy:
        if isinstance(other, Lazy):
            return Lazy(self.size, lambda i: operation(self.at(i), other.at(i)))
        constant = node(other)
        if swap:
            return Lazy(self.size, lambda i: operation(constant, self.at(i)))
        return Lazy(self.size, lambda i: operation(self.at(i), constant))

    def __add__(self, other: Any) -> Lazy:
        return self._with(ex.add, other)

    def __sub__(self, other: Any) -> Lazy:
        return self._with(ex.sub, other)

    def __mul__(self, other: Any) -> Lazy:
        return self._with(ex.mul, other)

    def __truediv__(self, other: Any) -> Lazy:
        return self._with(ex.div, other)

    def __rtruediv__(self, other: Any) -> Lazy:
        return self._with(ex.div, other, swap=True)

    def __rsub__(self, other: Any) -> Lazy:
        return self._with(ex.sub, other, swap=True)

    def __neg__(self) -> Lazy:
        return Lazy(self.size, lambda i: ex.mul(node(-1), self.at(i)))

    def __getitem__(self, positions: npt.NDArray[np.intp]) -> Lazy:
        order = positions.tolist()
        return Lazy(len(order), lambda j: self.at(order[j]))


class Symbols:
    """Run a program symbolically. `leaf(name, level, i)` makes the opaque number of a marked entry.

    Every comparison is answered from the decision table; the first one that it cannot answer raises `Open`, with its two
    sides kept in `sides`. The definitions of marked and observed vectors are in `definitions`.
    """

    def __init__(self, table: DecisionTable, leaf: Callable[[str, Key, int], Expression]) -> None:
        self.table, self._leaf = table, leaf
        self.definitions: dict[tuple[str, Key], Lazy] = {}
        self.sides: dict[Key, tuple[Lazy, Lazy]] = {}

    def number(self, value: Exact | int) -> Exact | int:
        return value

    def exact(self, column: Column) -> Lazy:
        return Lazy(len(column), lambda i: node(column[i]))

    def exp(self, x: Lazy) -> Lazy:
        return Lazy(len(x), lambda i: ex.exp(x.at(i)))

    def log(self, x: Lazy) -> Lazy:
        return Lazy(len(x), lambda i: ex.log(x.at(i)))

    def root(self, x: Lazy, degree: int) -> Lazy:
        return Lazy(len(x), lambda i: ex.root(x.at(i), degree))

    def linear(self, matrix: Matrix, x: Lazy) -> Lazy:
        return Lazy(matrix.height, lambda i: _total(ex.mul(node(a), x.at(j)) for j, a in matrix.rows[i]))

    def adjoint(self, matrix: Matrix, y: Lazy) -> Lazy:
        return Lazy(matrix.width, lambda j: _total(ex.mul(node(a), y.at(i)) for i, a in matrix.columns[j]))

    def sums(self, x: Lazy, rows: Rows) -> Lazy:
        return Lazy(rows.count, lambda r: _total(map(x.at, range(rows.start[r], rows.start[r + 1]))))

    def cumulate(self, x: Lazy, rows: Rows) -> Lazy:
        return Lazy(rows.size, lambda i: _total(map(x.at, range(rows.start[int(rows.owner[i])], i + 1))))

    def products(self, x: Lazy, rows: Rows) -> Lazy:
        return Lazy(rows.count, lambda r: _product(map(x.at, range(rows.start[r], rows.start[r + 1]))))

    def cofactors(self, x: Lazy, rows: Rows) -> Lazy:
        def make(i: int) -> Expression:
            r = int(rows.owner[i])
            return _product(x.at(j) for j in range(rows.start[r], rows.start[r + 1]) if j != i)

        return Lazy(rows.size, make)

    def place(self, x: Lazy, positions: npt.NDArray[np.intp], size: int) -> Lazy:
        source = {i: j for j, i in enumerate(positions.tolist())}
        return Lazy(size, lambda i: x.at(source[i]) if i in source else node(0))

    def join(self, vectors: Sequence[Lazy]) -> Lazy:
        order = [(v, i) for v in vectors for i in range(len(v))]
        return Lazy(len(order), lambda i: order[i][0].at(order[i][1]))

    def shift(self, x: Lazy, rows: Rows) -> Lazy:
        return x

    def signs(self, key: Key, x: Lazy, y: Lazy, *, soft: bool = False) -> Signs:
        known = self.table.signs.get(key)
        self.sides[key] = (x, y)
        if known is None or (not soft and bool((known == OPEN).any())):
            raise Open(key, np.flatnonzero(known == OPEN) if known is not None else np.arange(len(x)))
        return known

    def mark(self, level: Key, x: Lazy) -> Lazy:
        self.definitions["theta", level] = x
        return Lazy(len(x), lambda i: self._leaf("theta", level, i))

    def observe(self, name: str, level: Key, x: Callable[[], Any]) -> None:
        self.definitions[name, level] = x()


def _total(terms: Iterable[Expression]) -> Expression:
    """Equal terms are one term, so that sums over prompts or responses that are alike stay small."""
    total: Expression = node(0)
    for term, times in Counter(terms).items():
        total = ex.add(total, term if times == 1 else ex.mul(node(times), term))
    return total


def _product(factors: Any) -> Expression:
    product: Expression = node(1)
    for factor in factors:
        product = ex.mul(product, factor)
    return product


def difference(x: Lazy, y: Lazy, i: int) -> Expression:
    """The expression of one comparison: entry i of x - y."""
    return ex.sub(x.at(i), y.at(i))


__all__ = ["Lazy", "Symbols", "difference", "node"]
