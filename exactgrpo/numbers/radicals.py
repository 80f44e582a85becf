"""Roots of elements of a tower: perfect powers are found, square roots denested, the rest becomes generators."""

from __future__ import annotations

import math
from fractions import Fraction

from flint import fmpq
from flint.utils.flint_exceptions import DomainError

from exactgrpo.numbers import expression as ex
from exactgrpo.numbers.polynomials import Polynomial, factor, is_dense_trouble
from exactgrpo.numbers.relations import relation_candidate
from exactgrpo.numbers.tower import Element, Tower

_RECOGNISE_DIMENSION = 8
_DENEST_TERMS = 40


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
    found = _square_root_found(tower, p) if k == 2 else None
    if found is None and tower.is_algebraic(p):
        found = _recognise(tower, p, k)
    if found is not None:
        return found
    content, factors = factor(p)
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
        if generator.kind == "radical":
            return tower.fractional_power(generator.radicand, Fraction(e, generator.degree * k))
        if generator.kind == "exp":
            exponent, denominator, identifier = generator.meaning
            return tower.exponential(identifier, exponent, Fraction(e, denominator * k))[0]
    return tower.fractional_power(f, Fraction(e, k))


def _square_root_found(tower: Tower, p: Polynomial) -> Polynomial | None:
    """The positive root of p if denesting finds one; powers of exponentials are taken as variables where p is sparse in them."""
    strides = [1] * len(tower.variables)
    if is_dense_trouble(p):
        sparse = p.deflation()[1]
        for g in tower.used(p):
            if g.kind == "exp":
                strides[g.index] = int(sparse[g.index])
            elif g.degree and not g.radicand.is_constant():
                return None  # its radicand may contain the exponentials too
        p = p.deflate(strides)
    found = _denest(tower, p)
    if found is None:
        return None
    found = found.inflate(strides)
    return found if tower.sign(found) > 0 else -found


def _denest(tower: Tower, p: Polynomial, depth: int = 1) -> Polynomial | None:
    """sqrt(a + b g) with g^2 = r, as sqrt((a+w)/2) +- sqrt((a-w)/2), where w^2 = a^2 - b^2 r, if all three roots are polynomials.

    `depth`: how often these roots may be denested themselves.
    """
    for g in tower.used(p):
        if g.degree != 2 or len(p) > _DENEST_TERMS or is_dense_trouble(p):
            continue
        variable = tower.variable(g)
        a, b = tower.split(p, g)
        w = _square_root(tower, tower.reduce(a * a - b * b * g.radicand), depth)
        if w is None:
            continue
        halves = [_square_root(tower, h, depth) or _square_root_over(tower, h, g.radicand, variable) for h in ((a + w) / 2, (a - w) / 2)]
        if halves[0] is None or halves[1] is None:
            continue
        for candidate in (halves[0] + halves[1], halves[0] - halves[1]):
            # A real number whose square is p is the root up to sign: this is the proof.
            if tower.reduce(candidate * candidate) == p:
                return candidate
    return None


def _square_root(tower: Tower, p: Polynomial, depth: int = 0) -> Polynomial | None:
    """A polynomial with square p, up to a rational factor whose root is adjoined; None if p is no such square."""
    if p.is_zero():
        return p
    content = p.leading_coefficient()
    if content < 0:
        return None
    if p.is_constant():
        return tower.rational_power(content, Fraction(1, 2))
    for g in tower.relations:
        if g.degree % 2 == 0 and p == g.radicand * (content / g.radicand.leading_coefficient()):
            factor = content / g.radicand.leading_coefficient()
            if factor > 0:
                return tower.variable(g) ** (g.degree // 2) * tower.rational_power(factor, Fraction(1, 2))
    try:
        return (p / content).sqrt() * tower.rational_power(content, Fraction(1, 2))
    except DomainError:
        return _denest(tower, p, depth - 1) if depth else None


def _square_root_over(tower: Tower, p: Polynomial, radicand: Polynomial, variable: Polynomial) -> Polynomial | None:
    quotient, rest = divmod(p, radicand)
    found = _square_root(tower, quotient) if rest.is_zero() else None
    return None if found is None else found * variable


def _recognise(tower: Tower, p: Polynomial, k: int) -> Polynomial | None:
    """The k-th root of an algebraic p if it lies in the field of p; found by lattice reduction, verified by raising it to k."""
    closure = tower._closure(p)
    if math.prod(g.degree for g in closure) > _RECOGNISE_DIMENSION:
        return None
    basis: list[Polynomial] = [tower.one]
    for g in closure:
        basis = [m * tower.variable(g) ** e for e in range(g.degree) for m in basis]
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
