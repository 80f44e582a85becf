"""The float64 filter: certified midpoint-radius arithmetic on IEEE doubles, vectorised; it decides ordinary comparisons cheaply.

u = 2^-53. Radii are computed in round-to-nearest and then multiplied by UP = 1 + 2^-49, which covers at most 12 roundings of
non-negative terms, and TINY = 2^-1000 is added, which covers every underflow (below 2^-1020 in total). NaN or infinity means "knows nothing": all tests are
written so that NaN answers false, and the decision stays open.

Bounds used, for operands (a, r_a) and (b, r_b) with computed midpoint m:
    a + b   r_a + r_b + u|m|
    a b     |a| r_b + (|b| + r_b) r_a + u|m|
    a / b   with f = r_b/(|b| - r_b):  r_a/(|b| - r_b) + |m| f + u|m|, finite only if f < 1024 and |b| - r_b > 2^-900
    root    relative, through (r/m) for the square root; higher roots through exp and log
    sums    |computed - exact| <= gamma_k |A||x| for any order of summation and with or without fma (Higham, Accuracy and
            Stability of Numerical Algorithms, section 3.1), so BLAS may be used
    exp     own code: Cody-Waite reduction with 64 table entries and a Taylor polynomial of degree 6, total below 3u; 4u used
    log     numpy's logarithm y, checked afterwards: d = |m exp(-y) - 1| + 6u bounds |exp(log m - y) - 1|, so |log m - y| <= d (1 + 2d) for d < 1/4
The filter is skipped where the thread does not round to nearest or flushes subnormals (`is_ieee`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb, fmpq

from exactgrpo.numbers.arithmetic import OPEN, Column, DecisionTable, Exact, Key, Matrix, NotRepresentable, Rows, Signs
from exactgrpo.numbers.balls import ball
from exactgrpo.numbers.decision import Proof
from exactgrpo.numbers.precision import precision
from exactgrpo.numbers.ragged import cumulated, longest, row_cofactors, row_products, row_reduce

Floats = npt.NDArray[np.float64]

U, UP, TINY = 2.0**-53, 1 + 2.0**-49, 2.0**-1000
MAX_TERMS = 2**30


def is_ieee() -> bool:
    """True if this thread rounds to nearest and keeps subnormal numbers; a library built with -ffast-math may have changed both."""
    x = np.array([1.0, -1.0, 2.0**-1074, 2.0**-1022])
    half = x[:2] + np.array([2.0**-53, -(2.0**-53)])
    above = x[:2] + np.array([1.5 * 2.0**-53, -1.5 * 2.0**-53])
    keeps = (x[2:3] * 1.0)[0] != 0 and (x[3:] * 0.5)[0] == 2.0**-1023
    return bool(half[0] == 1 and half[1] == -1 and above[0] == 1 + 2.0**-52 and above[1] == -1 - 2.0**-52 and keeps)


_LN2_64_HIGH = np.float64(round(0.010830424696249145 * 2**42)) / 2**42  # 36 significant bits: products with |k| < 2^16 are exact
with precision(256):
    _LN2_64_LOW = float(arb(2).log() / 64 - arb(fmpq(int(_LN2_64_HIGH * 2**42), 2**42)))
    _POWERS = np.array([float(arb(2) ** (arb(j) / 64)) for j in range(64)])


def _exp(a: Floats) -> Floats:
    """exp with relative error below 3u for |a| <= 690."""
    k = np.rint(a * 92.33248261893589)  # 64 / log 2; any integer within one of the true quotient does
    r = (a - k * _LN2_64_HIGH) - k * _LN2_64_LOW
    p = r * (1 + r * (0.5 + r * (1 / 6 + r * (1 / 24 + r * (1 / 120 + r * (1 / 720))))))
    n = k.astype(np.int64)
    t = _POWERS.take(n & 63)
    t = t + t * p
    scale: Floats = (((n >> 6) + 1023) << 52).view(np.float64)
    return t * scale  # type: ignore[no-any-return]


class Interval:
    """A vector of midpoints m with radii r."""

    __slots__ = ("m", "r")
    __array_ufunc__ = None

    def __init__(self, m: Floats, r: Floats) -> None:
        self.m, self.r = m, r

    def __len__(self) -> int:
        return len(self.m)

    def __getitem__(self, positions: Any) -> Interval:
        return Interval(self.m[positions], self.r[positions])

    @staticmethod
    def ones(size: int) -> Interval:
        return Interval(np.ones(size), np.zeros(size))

    def put(self, positions: Any, x: Interval) -> None:
        self.m[positions], self.r[positions] = x.m, x.r

    def __neg__(self) -> Interval:
        return Interval(-self.m, self.r)

    def __add__(self, other: Any) -> Interval:
        other = _interval(other)
        m = self.m + other.m
        return Interval(m, (self.r + other.r + U * np.abs(m)) * UP + TINY)

    def __sub__(self, other: Any) -> Interval:
        return self + (-_interval(other))

    def __rsub__(self, other: Any) -> Interval:
        return _interval(other) + (-self)

    def __mul__(self, other: Any) -> Interval:
        other = _interval(other)
        m = self.m * other.m
        return Interval(m, (np.abs(self.m) * other.r + (np.abs(other.m) + other.r) * self.r + U * np.abs(m)) * UP + TINY)

    def __truediv__(self, other: Any) -> Interval:
        other = _interval(other)
        m = self.m / other.m
        below = np.abs(other.m) - other.r
        size = np.abs(m)
        f = other.r / below
        r = (self.r / below + size * f + U * size) * UP + TINY  # never (r_a + |m| r_b) / below: that product may underflow first
        return Interval(m, np.where((below > 2.0**-900) & (f < 1024), r, np.inf))

    def __rtruediv__(self, other: Any) -> Interval:
        return _interval(other) / self


def _interval(x: Any) -> Interval:
    return x if isinstance(x, Interval) else enclosed([x])


def enclosed(numbers: Sequence[Exact | int]) -> Interval:
    """Exact numbers as midpoints and radii."""
    m, r = np.zeros(len(numbers)), np.zeros(len(numbers))
    with precision(128):
        for i, x in enumerate(numbers):
            exact = ball(x)
            middle = float(exact.mid())
            m[i] = middle
            if abs(middle) < 1e300:
                error = abs(exact - arb(middle))
                tight = error == 0 and (middle == 0 or abs(middle) > 2.0**-900)
                r[i] = 0.0 if tight else float(error.upper()) * UP + TINY
            else:
                r[i] = np.inf
    return Interval(m, r)


class Filter:
    """Decides by separated midpoint-radius intervals; whatever they do not separate stays open."""

    def __init__(self, table: DecisionTable | None = None) -> None:
        self.table = table if table is not None else DecisionTable()
        self.proof = Proof("enclosure", 53, "float64 midpoint and radius")

    def number(self, value: Exact | int) -> Interval:
        return enclosed([value])

    def exact(self, column: Column) -> Interval:
        vector = column.cache.get("filter")
        if vector is None:
            vector = column.cache["filter"] = enclosed(column)
        return vector  # type: ignore[no-any-return]

    def exp(self, x: Interval) -> Interval:
        near = (np.abs(x.m) < 690) & (x.r <= 0.5)
        m = _exp(np.where(near, x.m, 0.0))
        r = (m * (x.r * (1 + x.r) + 4 * U)) * UP + TINY  # exp(r) - 1 <= r (1 + r) for r <= 1/2
        if not near.all():
            low = (x.m <= -690) & (x.r <= 0.5)  # exp(-689.5) < 2^-990
            m, r = np.where(near, m, 0.0), np.where(near, r, np.where(low, 2.0**-990, np.inf))
        return Interval(m, r)

    def log(self, x: Interval) -> Interval:
        y = np.log(x.m)
        safe = np.where(np.abs(y) < 690, y, 0.0)
        d = np.abs(x.m * _exp(-safe) - 1) + 6 * U
        low = x.m - x.r
        r = (d * (1 + 2 * d) + x.r / low) * UP + TINY
        return Interval(y, np.where((low > 2.0**-990) & (np.abs(y) < 690) & (d < 0.25), r, np.inf))

    def root(self, x: Interval, degree: int) -> Interval:
        if degree != 2:
            return self.exp(self.log(x) / degree)
        m = np.sqrt(x.m)
        return Interval(m, np.where((x.m > x.r) & (x.m > 2.0**-900), (x.r / m + U * m) * UP + TINY, np.inf))

    def _dense(self, matrix: Matrix) -> tuple[Floats, Floats, Floats, Floats]:
        dense = matrix.cache.get("filter")
        if dense is None:
            a = np.zeros((matrix.height, matrix.width))
            extra = np.zeros((matrix.height, matrix.width))
            for i, row in enumerate(matrix.rows):
                for j, v in row:
                    entry = enclosed([v])
                    a[i, j], extra[i, j] = entry.m[0], entry.r[0]
            b = np.abs(a)
            if (extra > U * b * UP + TINY).any() or matrix.width > MAX_TERMS or matrix.height > MAX_TERMS:
                raise NotRepresentable("a matrix entry too large for doubles")
            dense = matrix.cache["filter"] = (a, np.ascontiguousarray(a.T), b, np.ascontiguousarray(b.T))
        return dense  # type: ignore[no-any-return]

    def _apply(self, a: Floats, b: Floats, x: Interval, terms: int) -> Interval:
        # gamma_k |A||x| for the sum, one more u for the rounding of A itself, two in reserve; TINY covers underflow of each product
        e = (terms + 4) * U
        tiny = TINY * (1 + terms * (1 + np.abs(x.m).max(initial=0.0) + x.r.max(initial=0.0)))
        return Interval(a @ x.m, (b @ (x.r + e * np.abs(x.m))) * (1 + 4 * e) + tiny)

    def linear(self, matrix: Matrix, x: Interval) -> Interval:
        a, _, b, _ = self._dense(matrix)
        return self._apply(a, b, x, matrix.width)

    def adjoint(self, matrix: Matrix, y: Interval) -> Interval:
        _, a, _, b = self._dense(matrix)
        return self._apply(a, b, y, matrix.height)

    def sums(self, x: Interval, rows: Rows) -> Interval:
        e = (longest(rows) + 2) * U
        return Interval(row_reduce(np.add, x.m, rows), row_reduce(np.add, x.r + e * np.abs(x.m), rows) * (1 + 4 * e) + TINY)

    def cumulate(self, x: Interval, rows: Rows) -> Interval:
        e = (longest(rows) + 2) * U
        return Interval(cumulated(x.m, rows), cumulated(x.r + e * np.abs(x.m), rows) * (1 + 4 * e) + TINY)

    def products(self, x: Interval, rows: Rows) -> Interval:
        return row_products(x, rows, Interval.ones, Interval.put)  # type: ignore[no-any-return]

    def cofactors(self, x: Interval, rows: Rows) -> Interval:
        return row_cofactors(x, rows, Interval.ones, Interval.put)  # type: ignore[no-any-return]

    def place(self, x: Interval, positions: npt.NDArray[np.intp], size: int) -> Interval:
        m, r = np.zeros(size), np.zeros(size)
        m[positions], r[positions] = x.m, x.r
        return Interval(m, r)

    def join(self, vectors: Sequence[Interval]) -> Interval:
        return Interval(np.concatenate([v.m for v in vectors]), np.concatenate([v.r for v in vectors]))

    def shift(self, x: Interval, rows: Rows) -> Interval:
        m = x.m - row_reduce(np.maximum, x.m, rows)[rows.owner]
        return Interval(m, (x.r + U * np.abs(m)) * UP + TINY)

    def signs(self, key: Key, x: Interval, y: Interval, *, soft: bool = False) -> Signs:
        def decide(signs: Signs, todo: npt.NDArray[np.intp]) -> None:
            d = x - y
            signs[(signs == OPEN) & (d.m > d.r)] = 1
            signs[(signs == OPEN) & (d.m < -d.r)] = -1

        return self.table.ask(key, len(x), decide, self.proof, soft=soft)

    def mark(self, level: Key, x: Interval) -> Interval:
        return x

    def observe(self, name: str, level: Key, x: Callable[[], Any]) -> None:
        return
