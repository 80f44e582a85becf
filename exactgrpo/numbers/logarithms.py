"""Logarithms of elements of a tower, as linear forms in logarithms that are independent as far as is known."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from flint import fmpq

from exactgrpo.numbers import expression as ex
from exactgrpo.numbers.coprime import split_rational
from exactgrpo.numbers.plan import Restart
from exactgrpo.numbers.polynomials import Polynomial, factor
from exactgrpo.numbers.relations import relation_candidate
from exactgrpo.numbers.tower import Element, Tower

_NORM_DEGREE = 64
_RELATION_DIMENSION = 12
_RELATION_HEIGHT = 1 << 16


def log_of(tower: Tower, x: Element) -> Element:
    """log x for a positive element: log |numerator| - log |denominator|."""
    above = _log_of_polynomial(tower, x[0])
    if x[1].is_one():
        return above
    return tower.add(above, tower.scale(_log_of_polynomial(tower, x[1]), -1))


def log_of_rational(tower: Tower, q: Any) -> Polynomial:
    """log q over the coprime base, for a positive rational."""
    parts = split_rational(tower.plan.base, q)
    if parts is None:
        tower.plan.request(int(q.p), 1)
        tower.plan.request(int(q.q), 1)
        raise Restart
    return sum((e * _log_of_base(tower, b) for b, e in parts), tower.zero)


def _log_of_base(tower: Tower, b: int) -> Polynomial:
    made = tower.generator(("log", b), "log", ex.log(ex.rational(b)), meaning=tower.ring.constant(b))
    return tower.variable(made)


def _log_of_polynomial(tower: Tower, p: Polynomial) -> Element:
    """log |p| for a polynomial that is not zero in value."""
    if p.is_constant():
        return log_of_rational(tower, abs(p.leading_coefficient())), tower.one
    content, factors = factor(p)
    total: Element = log_of_rational(tower, abs(content)), tower.one
    for f, e in factors:
        total = tower.add(total, tower.scale(_log_of_factor(tower, f), e))
    return total


def _log_of_factor(tower: Tower, f: Polynomial) -> Element:
    if len(f) == 1 and f.total_degree() == 1:
        (generator,) = tower.used(f)
        if generator.degree:
            return tower.scale(_log_of_polynomial(tower, generator.radicand), fmpq(1, generator.degree))
        if generator.kind == "exp":
            exponent, denominator, _ = generator.meaning
            return tower.scale(exponent, fmpq(1, denominator))
    if tower.sign(f) < 0:
        f = -f
    return _log_of_atom(tower, f)


def _log_of_atom(tower: Tower, f: Polynomial) -> Element:
    """log f for a positive f that does not split: in terms of earlier logarithms if a multiplicative relation is proved."""
    key = tower.key(f)
    known = tower.log_atoms.get(key)
    if known is None:
        known = tower.log_atoms[key] = f, _related(tower, f) or _new_atom(tower, f, key)
    return known[1]


def _new_atom(tower: Tower, f: Polynomial, key: int) -> Element:
    made = tower.generator(("log of", key), "log", ex.log(tower.express(f)), meaning=f)
    return tower.variable(made), tower.one


def _related(tower: Tower, f: Polynomial) -> Element | None:
    """log f as a rational combination of earlier logarithms, from f^v0 a1^v1 ... an^vn = 1."""
    if not any(g.degree for g in tower.used(f)):
        return None  # irreducible over Q: factors of other polynomials are either the same or coprime
    if tower.is_algebraic(f):
        norm = _norm(tower, f)
        if norm is not None:
            log_of_rational(tower, norm)  # makes the logarithms of its base elements available as candidates
    candidates = [g for g in tower.generators.values() if g.kind == "log"][-_RELATION_DIMENSION:]
    if not candidates:
        return None
    numbers = [ex.log(tower.express(f)), *(g.node for g in candidates)]
    vector = relation_candidate(numbers, tower.plan.relation_bits, height=_RELATION_HEIGHT)
    if vector is None:
        return None
    above, below = tower.power(f, vector[0]), tower.one
    for g, v in zip(candidates, vector[1:], strict=True):
        if v > 0:
            above = tower.reduce(tower.times(above, tower.power(g.meaning, v)))
        elif v < 0:
            below = tower.reduce(tower.times(below, tower.power(g.meaning, -v)))
    if not tower.is_zero(tower.reduce(above - below)):
        return None
    total = tower.zero
    for g, v in zip(candidates, vector[1:], strict=True):
        total += fmpq(-v, vector[0]) * tower.variable(g)
    return total, tower.one


def _norm(tower: Tower, f: Polynomial) -> Any:
    """|norm| of an algebraic f to the rationals, up to a power, by resultants; None if it would be large."""
    degree = 1
    while not f.is_constant():
        generator = min(tower.used(f), key=lambda g: g.index)
        degree *= generator.degree
        if degree > _NORM_DEGREE:
            return None
        f = generator.modulus.resultant(f, f"g{generator.index}")
    return abs(f.leading_coefficient()) or None


def power_of_argument(tower: Tower, argument: Polynomial, exponent: Fraction) -> Element:
    """argument^exponent for the positive argument of a logarithm generator."""
    if argument.is_constant():
        return tower.rational_power(argument.leading_coefficient(), exponent), tower.one
    if exponent >= 0:
        return tower.fractional_power(argument, exponent), tower.one
    whole = -(exponent.numerator // exponent.denominator)
    return tower.normal(tower.fractional_power(argument, exponent + whole), tower.power(argument, whole))
