"""Roots of elements of a tower: perfect powers are found, square roots denested, the rest becomes generators."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from flint import fmpq

from exactgrpo.numbers import expression as ex
from exactgrpo.numbers.relations import relation_candidate
from exactgrpo.numbers.tower import Element, Polynomial, Tower

_RECOGNISE_DIMENSION = 8


def root_of(tower: Tower, x: Element, k: int) -> Element:
    """The real k-th root of a non-negative element.

    With x = p/q and q > 0 the root is (p q^(k-1))^(1/k) / q, so that only polynomials remain.
    """
    p, q = x
    if p.is_zero():
        return tower.zero, tower.one
    if not q.is_constant():
        if tower.sign(q) < 0:
            p, q = -p, -q
        p = tower.reduce(tower.times(p, tower.power(q, k - 1)))
    return tower.normal(root_of_polynomial(tower, p, k), q)


def root_of_polynomial(tower: Tower, p: Polynomial, k: int) -> Polynomial:
    """The k-th root of a positive polynomial, as a polynomial."""
    if p.is_constant():
        return tower.rational_power(p.leading_coefficient(), Fraction(1, k))
    if tower.is_algebraic(p):
        found = _denest(tower, p) if k == 2 else None
        if found is None:
            found = _recognise(tower, p, k)
        if found is not None:
            return found
    content, factors = tower.factor(p)
    result = tower.one
    for f, e in factors:
        if tower.sign(f) < 0:
            f, content = -f, content * (-1) ** e
        whole, rest = divmod(e, k)
        result = tower.reduce(tower.times(result, tower.power(f, whole)))
        if rest:
            result = tower.reduce(tower.times(result, _root_of_factor(tower, f, k, rest)))
    return tower.reduce(tower.times(result, tower.rational_power(content, Fraction(1, k))))


def _root_of_factor(tower: Tower, f: Polynomial, k: int, e: int) -> Polynomial:
    """f^(e/k) for a positive irreducible factor, 0 < e < k."""
    if len(f) == 1 and f.total_degree() == 1:
        (generator,) = tower.used(f)
        if generator.kind == "root":
            return tower.power(tower.rational_power(generator.radicand.leading_coefficient(), Fraction(1, generator.degree * k)), e)
        if generator.kind == "exp":
            exponent, denominator, identifier = generator.meaning
            return tower.exponential(identifier, exponent, Fraction(e, denominator * k))[0]
    return tower.power(tower.variable(tower.radical(f, k)), e)


def _denest(tower: Tower, p: Polynomial) -> Polynomial | None:
    """sqrt(a + b) with rational a > 0 and rational b^2: sqrt((a+w)/2) +- sqrt((a-w)/2), where w^2 = a^2 - b^2 is a square."""
    terms = list(p.terms())
    if len(terms) != 2:
        return None
    a, surd = None, None
    for monomial, c in terms:
        if not any(monomial):
            a = c
        else:
            surd = tower.ring.from_dict({tuple(monomial): c})
    if a is None or a <= 0 or surd is None:
        return None
    square = tower.reduce(surd * surd)
    if not square.is_constant():
        return None
    w = _rational_sqrt(a * a - square.leading_coefficient())
    if w is None:
        return None
    larger, smaller = (tower.rational_power((a + s * w) / 2, Fraction(1, 2)) for s in (1, -1))
    return larger + tower.sign(surd) * smaller


def _rational_sqrt(q: Any) -> Any:
    if q <= 0 or not (q.p.is_square() and q.q.is_square()):
        return None
    return fmpq(q.p.isqrt(), q.q.isqrt())


def _recognise(tower: Tower, p: Polynomial, k: int) -> Polynomial | None:
    """The k-th root of an algebraic p if it lies in the field of p; found by lattice reduction, verified by raising it to k."""
    closure = tower._closure(p)
    basis: list[Polynomial] = [tower.one]
    for g in closure:
        basis = [m * tower.variable(g) ** e for e in range(g.degree) for m in basis]
        if len(basis) > _RECOGNISE_DIMENSION:
            return None
    value = ex.root(tower.express(p), k)
    bits = 64 + 40 * len(basis)
    relation = relation_candidate([value, *map(tower.express, basis)], bits, height=1 << 24)
    if relation is None:
        return None
    candidate = sum((fmpq(-v, relation[0]) * m for v, m in zip(relation[1:], basis, strict=True)), tower.zero)
    # Both the candidate and the root are real; equal k-th powers and a positive value make them equal.
    if tower.power(candidate, k) == p and tower.sign(candidate) > 0:
        return candidate
    return None
