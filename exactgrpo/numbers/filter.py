"""The float64 filter: certified midpoint-radius arithmetic on IEEE doubles, vectorised; it decides ordinary comparisons cheaply.

u = 2^-53. Radii are computed in round-to-nearest and then multiplied by UP = 1 + 2^-49, which covers at most 12 roundings of
non-negative terms, and TINY = 2^-1000 is added, which covers every underflow (below 2^-1020 in total). NaN or infinity means
"knows nothing": all tests are written so that NaN answers false, and the decision stays open.

Bounds used, for operands (a, r_a) and (b, r_b) with computed midpoint m:
    a + b   r_a + r_b + u|m|
    a b     |a| r_b + (|b| + r_b) r_a + u|m|
    a / b   with f = r_b/(|b| - r_b):  r_a/(|b| - r_b) + |m| f + u|m|, finite only if f < 1024 and |b| - r_b > 2^-900
    root    relative, through (r/m) for the square root; higher roots through exp and log
    sums    |computed - exact| <= gamma_k |A||x| for any order of summation and with or without fma (Higham, Accuracy and
            Stability of Numerical Algorithms, section 3.1), so BLAS may be used
    exp     own code: Cody-Waite reduction with 64 table entries and a Taylor polynomial of degree 6, total below 3u; 4u used
    log     numpy's logarithm y, checked afterwards: d = |m exp(-y) - 1| + 6u bounds |exp(log m - y) - 1|, so that
            |log m - y| <= d (1 + 2d) for d < 1/4
The filter is skipped where the thread does not round to nearest or flushes subnormals (`is_ieee`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb, fmpz

from exactgrpo.numbers.arithmetic import OPEN, Column, DecisionTable, Exact, Key, Matrix, NotRepresentable, Rows, Signs
from exactgrpo.numbers.balls import ball
from exactgrpo.numbers.decision import Proof
from exactgrpo.numbers.expression import Expression
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
# exact integers and fractions: Arb's precision is global, and another thread may have changed it
_LN2 = Fraction("0.69314718055994530941723212145817656807550013436026")
_LN2_64_LOW = float(_LN2 / 64 - Fraction(float(_LN2_64_HIGH)))
_POWERS = np.array([float(Fraction(int(fmpz(2 ** (64 * 100 + j)).root(64)), 2**100)) for j in range(64)])


_TAYLOR = (1 / 120, 1 / 24, 1 / 6, 0.5, 1.0)


def _exp(a: Floats) -> Floats:
    """exp with relative error below 3u for |a| <= 690."""
    k = np.rint(a * 92.33248261893589)  # 64 / log 2; any integer within one of the true quotient does
    n = k.astype(np.int64)
    r = k * _LN2_64_HIGH
    np.subtract(a, r, out=r)
    k *= _LN2_64_LOW
    r -= k
    p = r * (1 / 720)
    for coefficient in _TAYLOR:
        p += coefficient
        p *= r
    t: Floats = _POWERS.take(n & 63)
    p *= t
    t += p
    n &= -64
    n <<= 46
    t.view(np.int64)[...] += n  # times 2^(n >> 6), exactly: t is near [1, 2) and |n >> 6| < 1000, so t stays a normal number
    return t


class Interval:
    """A vector of midpoints m with radii r."""

    __slots__ = ("m", "r")
    __array_ufunc__ = None

    def __init__(self, m: Floats, r: Floats) -> None:
        self.m, self.r = m, r

    def __len__(self) -> int:
        return len(self.m)

    def __getitem__(self, positions: Any) -> Interval:
        return Interval(self.m.take(positions), self.r.take(positions))

    @staticmethod
    def ones(size: int) -> Interval:
        return Interval(np.ones(size), np.zeros(size))

    def put(self, positions: Any, x: Interval) -> None:
        self.m[positions], self.r[positions] = x.m, x.r

    def __neg__(self) -> Interval:
        return Interval(-self.m, self.r)

    def __add__(self, other: Any) -> Interval:
        other = _interval(other)
        return self._rounded(self.m + other.m, other)

    def __sub__(self, other: Any) -> Interval:
        other = _interval(other)
        return self._rounded(self.m - other.m, other)

    def __rsub__(self, other: Any) -> Interval:
        return _interval(other) - self

    def _rounded(self, m: Floats, other: Interval) -> Interval:
        """The computed sum or difference m with its radius; in place, since passes over memory are what the filter costs."""
        r = np.abs(m)
        r *= U
        r += self.r
        r += other.r
        r *= UP
        r += TINY
        return Interval(m, r)

    def __mul__(self, other: Any) -> Interval:
        other = _interval(other)
        if len(other.m) == 1:
            b, r_b = float(other.m[0]), float(other.r[0])
            if abs(b) > 2.0**-900 and r_b < abs(b) / 2:
                return self._scaled(b, r_b)
        m = self.m * other.m
        r = np.abs(other.m)
        r += other.r
        r = r * self.r
        part = np.abs(self.m) * other.r
        r += part
        np.abs(m, out=part)
        part *= U  # never |a| (u|b|): that product may underflow first
        r += part
        r *= UP
        r += TINY
        return Interval(m, r)

    def _scaled(self, b: float, r_b: float) -> Interval:
        """Times one number b, not tiny: |a| r_b = |a b| (r_b/|b|), and UP enters through the scalars, not by a pass over the vector."""
        m = self.m * b
        r = self.r * ((abs(b) + r_b) * UP)
        part = np.abs(m)
        part *= (U + r_b / abs(b)) * UP
        r += part
        r += TINY
        return Interval(m, r)

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


def _added(m: Floats, r: Floats) -> Interval:
    """Computed sums m with their radii: a partial sum may overflow where the radius, smaller by 2^-50, does not."""
    return Interval(m, np.where(np.isfinite(m), r, np.inf))


def _interval(x: Any) -> Interval:
    return x if isinstance(x, Interval) else enclosed([x])


def enclosed(numbers: Sequence[Exact | int]) -> Interval:
    """Exact numbers as midpoints and radii."""
    pairs = [_enclosed(x) for x in numbers]
    return Interval(np.array([m for m, _ in pairs], float), np.array([r for _, r in pairs], float))


def _enclosed(x: Exact | int) -> tuple[float, float]:
    if not isinstance(x, Expression):
        above, below = x.numerator, x.denominator
        if above == 0:
            return 0.0, 0.0
        if abs(above.bit_length() - below.bit_length()) < 899:
            middle = above / below  # correctly rounded: Python's quotient of ints is, at any length
            is_exact = abs(above) <= 2**53 and below & (below - 1) == 0
            return middle, 0.0 if is_exact else U * abs(middle) * UP + TINY
    with precision(128):
        exact = ball(x)
        middle = float(exact.mid())
        if not abs(middle) < 1e300:
            return middle, np.inf
        error = abs(exact - arb(middle))
        is_tight = error == 0 and (middle == 0 or abs(middle) > 2.0**-900)
        return middle, 0.0 if is_tight else float(error.upper()) * UP + TINY


class Filter:
    """Decides by separated midpoint-radius intervals; whatever they do not separate stays open."""

    def __init__(self, table: DecisionTable | None = None) -> None:
        self.table = table if table is not None else DecisionTable()
        self.proof = Proof("enclosure", 53, "float64 midpoint and radius")
        self._numbers: dict[Exact | int, Interval] = {}

    def number(self, value: Exact | int) -> Interval:
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = enclosed([value])
        return number

    def exact(self, column: Column) -> Interval:
        vector = column.cache.get("filter")
        if vector is None:
            vector = column.cache["filter"] = enclosed(column)
        return vector  # type: ignore[no-any-return]

    def exp(self, x: Interval) -> Interval:
        near = (np.abs(x.m) < 690) & (x.r <= 0.5)
        everywhere = bool(near.all())
        m = _exp(x.m if everywhere else np.where(near, x.m, 0.0))
        r = x.r + 1  # exp(r) - 1 <= r (1 + r) for r <= 1/2
        r *= x.r
        r += 4 * U
        r *= m
        r *= UP
        r += TINY
        if not everywhere:
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
                    a[i, j], extra[i, j] = _enclosed(v)
            b = np.abs(a)
            if (extra > U * b * UP + TINY).any() or matrix.width > MAX_TERMS or matrix.height > MAX_TERMS:
                raise NotRepresentable("a matrix entry too large for doubles")
            dense = matrix.cache["filter"] = (a, np.ascontiguousarray(a.T), b, np.ascontiguousarray(b.T))
        return dense  # type: ignore[no-any-return]

    def _apply(self, a: Floats, b: Floats, x: Interval, terms: int) -> Interval:
        # gamma_k |A||x| for the sum, one more u for the rounding of A itself, two in reserve; TINY covers underflow of each product
        e = (terms + 4) * U
        size = np.abs(x.m)
        tiny = TINY * (1 + terms * (1 + size.max(initial=0.0) + x.r.max(initial=0.0)))
        size *= e
        size += x.r
        r = b @ size
        r *= 1 + 4 * e
        r += tiny
        return _added(a @ x.m, r)

    def linear(self, matrix: Matrix, x: Interval) -> Interval:
        a, _, b, _ = self._dense(matrix)
        return self._apply(a, b, x, matrix.width)

    def adjoint(self, matrix: Matrix, y: Interval) -> Interval:
        _, a, _, b = self._dense(matrix)
        return self._apply(a, b, y, matrix.height)

    def sums(self, x: Interval, rows: Rows) -> Interval:
        e = (longest(rows) + 2) * U
        each = np.abs(x.m)
        each *= e
        each += x.r
        return _added(row_reduce(np.add, x.m, rows), row_reduce(np.add, each, rows) * (1 + 4 * e) + TINY)

    def cumulate(self, x: Interval, rows: Rows) -> Interval:
        e = (longest(rows) + 2) * U
        return _added(cumulated(x.m, rows), cumulated(x.r + e * np.abs(x.m), rows) * (1 + 4 * e) + TINY)

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
        m = row_reduce(np.maximum, x.m, rows).take(rows.owner)
        np.subtract(x.m, m, out=m)
        r = np.abs(m)
        r *= U
        r += x.r
        r *= UP
        r += TINY
        return Interval(m, r)

    def signs(self, key: Key, x: Interval, y: Interval, *, soft: bool = False) -> Signs:
        def decide(signs: Signs, todo: npt.NDArray[np.intp]) -> None:
            d, r = x.m - y.m, (x.r + y.r) * UP + TINY  # UP also covers the rounding of d: |x - y| >= |d|/(1 + u)
            signs[todo] = np.where(np.abs(d) > r, np.sign(d), OPEN)[todo]

        return self.table.ask(key, len(x), decide, self.proof, soft=soft)

    def mark(self, level: Key, x: Interval) -> Interval:
        return x

    def observe(self, name: str, level: Key, x: Callable[[], Any]) -> None:
        return
