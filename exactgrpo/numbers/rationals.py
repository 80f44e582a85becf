"""Plain rationals: what stays rational is decided here, and stays exact. Irrational or oversized values raise `NotRepresentable`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import fmpq, fmpq_mat, fmpz

from exactgrpo.numbers.arithmetic import DecisionTable, Exact, Key, Matrix, NotRepresentable, Rows, Signs
from exactgrpo.numbers.decision import Proof
from exactgrpo.numbers.expression import Expression
from exactgrpo.numbers.lists import ListArithmetic, ListVector, rational_matrix

BUDGET_BITS = 4096
"""Numbers longer than this leave the rational arithmetic: with a varying normaliser their length multiplies at every step."""


def rational_scalar(value: Exact | int | fmpq) -> fmpq:
    if isinstance(value, fmpq):
        return value
    if isinstance(value, Expression):
        raise NotRepresentable("an irrational input")
    return small(fmpq(value.numerator, value.denominator))


def small(value: fmpq) -> fmpq:
    """The value, or NotRepresentable beyond the budget: asked before it is multiplied further."""
    if value.height_bits() > BUDGET_BITS:
        raise NotRepresentable(f"a rational of more than {BUDGET_BITS} bits")
    return value


def exact_root(value: fmpq, degree: int) -> fmpq:
    """The rational root of a non-negative rational; NotRepresentable when there is none."""
    if value < 0:
        raise NotRepresentable("a root of a negative number")
    parts = [fmpz(value.p), fmpz(value.q)]
    roots = [part.root(degree) for part in parts]
    if any(r**degree != part for r, part in zip(roots, parts, strict=True)):
        raise NotRepresentable("an irrational root")
    return fmpq(*roots)


class RationalVector(ListVector):
    __slots__ = ()
    scalar = staticmethod(rational_scalar)


class Rationals(ListArithmetic):
    Vector, key = RationalVector, "rationals"

    def __init__(self, table: DecisionTable | None = None) -> None:
        self.table = table if table is not None else DecisionTable()
        self.observed: dict[tuple[str, Key], list[Any]] = {}
        self.proof = Proof("rational", None, "exact rationals")

    def exp(self, x: Any) -> Any:
        if any(a != 0 for a in x.entries):
            raise NotRepresentable("an exponential")
        return RationalVector([fmpq(1)] * len(x))

    def log(self, x: Any) -> Any:
        if any(a != 1 for a in x.entries):
            raise NotRepresentable("a logarithm")
        return RationalVector([fmpq(0)] * len(x))

    def root(self, x: Any, degree: int) -> Any:
        return RationalVector([exact_root(a, degree) for a in x.entries])

    def linear(self, matrix: Matrix, x: Any) -> Any:
        return self._small((self._matrix(matrix) * fmpq_mat(len(x), 1, x.entries)).entries())

    def adjoint(self, matrix: Matrix, y: Any) -> Any:
        return self._small((fmpq_mat(1, len(y), y.entries) * self._matrix(matrix)).entries())

    def sums(self, x: Any, rows: Rows) -> Any:
        return self._small(super().sums(x, rows).entries)

    def products(self, x: Any, rows: Rows) -> Any:
        return self._small(super().products(x, rows).entries)

    def signs(self, key: Key, x: Any, y: Any, *, soft: bool = False) -> Signs:
        def decide(signs: Signs, todo: npt.NDArray[np.intp]) -> None:
            left, right = x.entries, y.entries
            for i in todo.tolist():
                signs[i] = (left[i] > right[i]) - (left[i] < right[i])

        return self.table.ask(key, len(x), decide, self.proof, soft=soft)

    def mark(self, level: Key, x: Any) -> Any:
        self.observed["theta", level] = x.entries
        return self._small(x.entries)

    def observe(self, name: str, level: Key, x: Callable[[], Any]) -> None:
        try:
            super().observe(name, level, x)
        except NotRepresentable:
            return

    def _small(self, entries: list[fmpq]) -> RationalVector:
        return RationalVector([small(a) for a in entries])

    def _matrix(self, matrix: Matrix) -> fmpq_mat:
        if not matrix.is_rational:
            raise NotRepresentable("an irrational matrix")
        return rational_matrix(matrix)
