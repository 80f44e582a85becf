"""Polynomials over Q with their sizes checked before every operation that might take long: C code cannot be stopped."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from flint import Ordering, fmpq, fmpq_mpoly_ctx

Polynomial = Any  # flint.fmpq_mpoly, which has no type stubs

COEFFICIENT_BITS = 4000
_FACTOR_TERMS = 60
_POWER_TERMS = 200  # longer polynomials of low degree are still searched for powers
_POWER_DEGREE = 12
_FACTOR_DEGREE = 40
_DENSE_DEGREE = 2000


@lru_cache(maxsize=8)
def ring(slots: int) -> tuple[Any, tuple[Polynomial, ...]]:
    """The polynomial ring with this many variables, and the variables; the first is the largest."""
    made = fmpq_mpoly_ctx.get([f"g{i}" for i in range(slots)], Ordering.lex)
    return made, made.gens()


def height_bits(p: Polynomial) -> int:
    """The height of the coefficients in bits; long polynomials are sampled by their first and last term."""
    if len(p) <= 16:
        return max((int(c.height_bits()) for c in p.coeffs()), default=0)
    coefficients = p.coeffs()
    return max(int(c.height_bits()) for c in (coefficients[0], coefficients[len(coefficients) // 2], coefficients[-1]))


def factor(p: Polynomial) -> tuple[Any, list[tuple[Polynomial, int]]]:
    """Content and factors; p counts as its own factor where factoring might take long."""
    content = p.leading_coefficient()
    lowest = [min(column) for column in zip(*p.monoms(), strict=True)]
    variables = p.context().gens()
    factors = [(variables[i], int(e)) for i, e in enumerate(lowest) if e]
    if factors:
        p = divmod(p, p.context().from_dict({tuple(lowest): 1}))[0]
    if len(p) == 1:
        return content, factors
    deflated, strides = p.deflation()
    limit = _POWER_TERMS if p.total_degree() <= _POWER_DEGREE else _FACTOR_TERMS
    if len(p) > limit or height_bits(p) > COEFFICIENT_BITS or is_dense_trouble(deflated):
        return content, [*factors, (p * (1 / content), 1)]
    content, found = _factor_fully(p) or _factor_sparse(deflated, strides)
    return content, [*factors, *found]


def _factor_fully(p: Polynomial) -> tuple[Any, list[tuple[Polynomial, int]]] | None:
    """Content and irreducible factors; None where that might take long."""
    if len(p) > _FACTOR_TERMS or p.total_degree() > 3 * _FACTOR_DEGREE or p.deflation()[0].total_degree() > _FACTOR_DEGREE:
        return None
    content, found = p.factor()
    return content, [(f, int(e)) for f, e in found]


def _factor_sparse(deflated: Polynomial, strides: Any) -> tuple[Any, list[tuple[Polynomial, int]]]:
    """Content and factors of a polynomial in powers of its variables, each factor as far as it can be split quickly."""
    content, found = deflated.factor_squarefree()
    result: list[tuple[Polynomial, int]] = []
    for f, e in found:
        inflated = f.inflate(strides)
        inner, parts = _factor_fully(inflated) or (1, [(inflated, 1)])
        content *= fmpq(inner) ** int(e)
        result.extend((part, d * int(e)) for part, d in parts)
    return content, result


def is_dense_trouble(p: Polynomial) -> bool:
    """True if the degree is so high that division, gcd, roots or factors might fill the memory: C code cannot be stopped."""
    return not p.is_zero() and max(p.degrees()) > _DENSE_DEGREE
