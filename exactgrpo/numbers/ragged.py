"""Ragged reductions on numpy arrays, shared by the vectorised arithmetics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from exactgrpo.numbers.arithmetic import Rows


def _dense_shape(rows: Rows) -> tuple[bool, npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    shape = rows.cache.get("dense")
    if shape is None:
        lengths = np.array(rows.lengths, dtype=np.intp)
        start = np.array(rows.start[:-1], dtype=np.intp)
        dense = len(set(rows.lengths)) == 1 and rows.lengths[0] > 0
        shape = rows.cache["dense"] = (dense, start, np.flatnonzero(lengths))
    return shape  # type: ignore[no-any-return]


def row_reduce(function: np.ufunc, x: npt.NDArray[np.float64], rows: Rows) -> npt.NDArray[np.float64]:
    """function reduced over each row; 0 for an empty row (reduceat alone returns an element of the next row there)."""
    dense, start, full = _dense_shape(rows)
    if dense:
        return function.reduce(x.reshape(rows.count, -1), axis=1)  # type: ignore[no-any-return]
    if len(full) == rows.count:
        return function.reduceat(x, start)  # type: ignore[no-any-return]
    out = np.zeros(rows.count)
    if len(full):
        out[full] = function.reduceat(x, start[full])
    return out


def longest(rows: Rows) -> int:
    """Length of the longest row."""
    return max(rows.lengths, default=0)


def cumulated(x: npt.NDArray[np.float64], rows: Rows) -> npt.NDArray[np.float64]:
    """Running sums inside each row, added from left to right."""
    width = longest(rows)
    table = np.zeros((rows.count, width))
    position = np.arange(rows.size) - np.array(rows.start[:-1], dtype=np.intp)[rows.owner]
    table[rows.owner, position] = x
    return np.cumsum(table, axis=1)[rows.owner, position]  # type: ignore[no-any-return]


def _levels(rows: Rows) -> list[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]]:
    """For k = 0, 1, ... the rows that have a k-th entry and its position: ragged products as few whole-vector products."""
    levels = rows.cache.get("levels")
    if levels is None:
        lengths, start = np.array(rows.lengths, np.intp), np.array(rows.start[:-1], np.intp)
        levels = rows.cache["levels"] = []
        for k in range(longest(rows)):
            owners = np.flatnonzero(lengths > k)
            levels.append((owners, start[owners] + k))
    return levels  # type: ignore[no-any-return]


def row_products(x: Any, rows: Rows, ones: Callable[[int], Any], put: Callable[[Any, Any, Any], None]) -> Any:
    """One product for each row, for any vector type with gather, * and the in-place `put`."""
    product = ones(rows.count)
    for k, (owners, at) in enumerate(_levels(rows)):
        put(product, owners, x[at] if k == 0 else product[owners] * x[at])
    return product


def row_cofactors(x: Any, rows: Rows, ones: Callable[[int], Any], put: Callable[[Any, Any, Any], None]) -> Any:
    """For each entry the product of the others in its row."""
    out, levels = ones(rows.size), _levels(rows)
    before = ones(rows.count)
    for k, (owners, at) in enumerate(levels):
        if k:
            put(out, at, before[owners])
        put(before, owners, x[at] if k == 0 else before[owners] * x[at])
    after = ones(rows.count)
    started = np.zeros(rows.count, bool)
    for k, (owners, at) in reversed(list(enumerate(levels))):
        old = started[owners]
        if old.any():
            put(out, at[old], out[at[old]] * after[owners[old]] if k else after[owners[old]])
            put(after, owners[old], after[owners[old]] * x[at[old]])
        if not old.all():
            put(after, owners[~old], x[at[~old]])
            started[owners] = True
    return out
