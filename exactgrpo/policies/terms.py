"""Sums of terms, each a coefficient times a product of entries of x: polynomials, and the token products."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from exactgrpo.numbers.arithmetic import Arithmetic, Column, Exact, Rows, index

Polynomial = Mapping[tuple[int, ...], Fraction]
"""Coefficients by exponent tuple, one exponent for each parameter."""


class Terms:
    """value_j = sum over the terms (c, path) of j of c * prod_{i in path} x_i, with its pullback; no division anywhere.

    Theorem: gR_correct (Poly.v), for polynomials.

    >>> from exactgrpo.numbers.rationals import Rationals
    >>> from exactgrpo.numbers.arithmetic import Column
    >>> terms = Terms.of_polynomials([{(2, 0): Fraction(3), (0, 1): Fraction(1)}], 2)  # 3 a^2 + b
    >>> value, pullback = terms.at(Rationals(), Rationals().exact(Column([2, 5])))
    >>> value.entries, pullback(Rationals().exact(Column([1]))).entries
    ([17], [12, 1])
    """

    def __init__(self, terms: Sequence[Sequence[tuple[Exact, Sequence[int]]]], size: int) -> None:
        flat = [(c, path) for one in terms for c, path in one]
        self.size = size
        self.coefficient = Column(c for c, _ in flat)
        self.sum = Rows(map(len, terms))
        self.product = Rows(len(path) for _, path in flat)
        path = [i for _, one in flat for i in one]
        order = sorted(range(len(path)), key=path.__getitem__)
        count = [0] * size
        for i in path:
            count[i] += 1
        self.path, self.by_entry, self.entry = index(path), index(order), Rows(count)
        self.is_plain = all(c == 1 for c in self.coefficient) and self.sum.count == len(flat)

    @classmethod
    def of_polynomials(cls, polynomials: Iterable[Polynomial], size: int) -> Terms:
        """One value for each polynomial in `size` variables."""
        return cls(
            [[(c, [k for k, e in enumerate(powers) for _ in range(e)]) for powers, c in p.items() if c != 0] for p in polynomials], size
        )

    def at(self, arithmetic: Arithmetic, x: Any) -> tuple[Any, Callable[[Any], Any]]:
        """The values at x and their pullback."""
        factors = x[self.path]
        if self.is_plain:
            coefficient: Any = 1
            value = arithmetic.products(factors, self.product)
        else:
            coefficient = arithmetic.exact(self.coefficient)
            value = arithmetic.sums(coefficient * arithmetic.products(factors, self.product), self.sum)

        def pullback(cotangent: Any) -> Any:
            scale = cotangent if self.is_plain else coefficient * cotangent[self.sum.owner]
            each = scale[self.product.owner] * arithmetic.cofactors(factors, self.product)
            return arithmetic.sums(each[self.by_entry], self.entry)

        return value, pullback
