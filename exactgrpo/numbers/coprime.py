"""Coprime (gcd-free) bases: integers split into pairwise coprime parts without factoring big numbers.

Elements of a base are pairwise coprime and no perfect powers. That is all that the normal forms need: roots of such integers are
linearly independent over the rationals, and so are their logarithms. Prime factors are used only where they are cheap.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from flint import fmpz

_SMALL_PRIMES = tuple(p for p in range(2, 1000) if all(p % d for d in range(2, int(p**0.5) + 1)))
_FACTOR_BITS = 60


@lru_cache(maxsize=20_000)
def _easy_factors(n: int) -> tuple[tuple[tuple[int, int], ...], int]:
    """Prime powers of n that are cheap to find, and a cofactor: 1, or large and without prime factors below 1000."""
    rest = fmpz(n)
    if rest.bit_length() <= _FACTOR_BITS:
        return tuple((int(p), int(e)) for p, e in rest.factor()) if n > 1 else (), 1
    found = []
    for p in _SMALL_PRIMES:
        exponent = 0
        while rest % p == 0:
            rest //= p
            exponent += 1
        if exponent:
            found.append((p, exponent))
    if rest.bit_length() <= _FACTOR_BITS:
        if rest > 1:
            found.extend((int(p), int(e)) for p, e in rest.factor())
        return tuple(found), 1
    return tuple(found), int(rest)


def primitive_root(n: int) -> tuple[int, int]:
    """(m, k) with m^k = n, k as large as possible, for n > 1.

    >>> primitive_root(3**40), primitive_root(12)
    ((3, 40), (12, 1))
    """
    base, exponent = fmpz(n), 1
    while base.is_perfect_power():
        for p in _SMALL_PRIMES:
            candidate = base.root(p)
            if candidate**p == base:
                base, exponent = candidate, exponent * p
                break
        else:  # a p-th power with p > 1000; it stays as it is, which costs completeness for absurd inputs only
            break
    return int(base), exponent


class CoprimeBase:
    """A growing set of pairwise coprime integers > 1, none of them a perfect power; primes below 1000 are implied.

    >>> base = CoprimeBase()
    >>> p, q, r = 10**40 + 121, 10**42 + 63, 10**44 + 31
    >>> base.insert(p * q), base.insert(q * r)
    (True, True)
    >>> base.split(12 * p * q**2 * r) == [(2, 2), (3, 1), (p, 1), (q, 2), (r, 1)]
    True
    >>> base.split(10**46 + 9) is None
    True
    """

    def __init__(self) -> None:
        self._large: list[int] = []

    def insert(self, n: int) -> bool:
        """Refine the base until n > 0 splits over it; True if the base changed."""
        changed = False
        for part in _large_parts(n):
            if _divide_out(part, self._large)[1] != 1:
                self._refine(part)
                changed = True
        return changed

    def split(self, n: int) -> list[tuple[int, int]] | None:
        """The exponents of n > 0 over the base, sorted; None if n does not split."""
        easy, cofactor = _easy_factors(n)
        exponents = {p: e for p, e in easy if p < 1000}
        for part, multiplicity in (*((p, e) for p, e in easy if p >= 1000), (cofactor, 1)):
            found, rest = _divide_out(part, self._large)
            if rest != 1:
                return None
            for b, e in found:
                exponents[b] = exponents.get(b, 0) + e * multiplicity
        return sorted(exponents.items())

    def _refine(self, part: int) -> None:
        pending = [part]
        while pending:
            m = pending.pop()
            if m == 1:
                continue
            m = primitive_root(m)[0]
            for position, b in enumerate(self._large):
                g = int(fmpz(m).gcd(b))
                if g == 1:
                    continue
                if g == m == b:
                    break
                del self._large[position]
                pending.extend((g, _without(m, g), _without(b, g)))
                break
            else:
                self._large.append(m)


def _large_parts(n: int) -> list[int]:
    easy, cofactor = _easy_factors(n)
    parts = [p for p, _ in easy if p >= 1000]
    return parts if cofactor == 1 else [*parts, cofactor]


def _divide_out(n: int, base: list[int]) -> tuple[list[tuple[int, int]], int]:
    found = []
    for b in base:
        exponent = 0
        while n % b == 0:
            n //= b
            exponent += 1
        if exponent:
            found.append((b, exponent))
    return found, n


def _without(n: int, g: int) -> int:
    """n without the factor g, as often as it divides."""
    while n % g == 0:
        n //= g
    return n


def split_rational(base: CoprimeBase, q: Any) -> list[tuple[int, int]] | None:
    """Exponents (negative ones from the denominator) of a positive fmpq over the base; None if it does not split."""
    above, below = base.split(int(q.p)), base.split(int(q.q))
    if above is None or below is None:
        return None
    return sorted([*above, *((b, -e) for b, e in below)])
