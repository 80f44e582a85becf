"""Rational tables as FLINT matrices and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from flint import fmpq, fmpq_mat

from exactgrpo.numbers.balls import as_fraction
from exactgrpo.tabular.mdp import Table


def matrix(rows: Sequence[Sequence[Fraction]]) -> Any:
    """The fmpq_mat of a table with at least one row and column."""
    return fmpq_mat(len(rows), len(rows[0]), [fmpq(x.numerator, x.denominator) for row in rows for x in row])


def table(mat: Any) -> Table:
    """The table of an fmpq_mat.

    >>> table(matrix([[Fraction(1, 2), Fraction(2)]]))
    ((Fraction(1, 2), Fraction(2, 1)),)
    """
    width, entries = mat.ncols(), [as_fraction(x) for x in mat.entries()]
    return tuple(tuple(entries[i : i + width]) for i in range(0, len(entries), width))


def scaled(rows: Sequence[Sequence[Fraction]]) -> tuple[Any, Any]:
    """An fmpz_mat and the common denominator of a table: the table is their quotient.

    >>> numerators, denominator = scaled([[Fraction(1, 2), Fraction(1, 3)]])
    >>> numerators.entries(), denominator
    ([3, 2], 6)
    """
    numerators, denominator = matrix(rows).numer_denom()
    return numerators, denominator


def unscaled(numerators: Iterable[Any], denominator: Any, width: int) -> Table:
    """The table with rows of this width whose entries are numerators over one denominator."""
    entries = [as_fraction(fmpq(x, denominator)) for x in numerators]
    return tuple(tuple(entries[i : i + width]) for i in range(0, len(entries), width))
