"""A constructive zero bound for real algebraic expressions, after Burnikel, Fleischer, Mehlhorn and Schirra (BFMSS, 2001).

Write the value of each node as U/L, where U and L are algebraic integers in the field K that the radicals below generate:
p/q has U = p, L = q; sums, products and quotients follow the rules for fractions; a k-th root of U/L is (U L^(k-1))^(1/k) / L, or
U / (U^(k-1) L)^(1/k). Let u and l bound the absolute values of all images of U and of L under the embeddings of K into the
complex numbers. The rules for u and l are the same, because an image of a k-th root is some k-th root of the image. Each root node
adjoins one k-th root of an element that is already there, so [K:Q] <= D, the product of the indices k of the distinct root nodes.
If U is not zero, its norm is a non-zero integer, so 1 <= |U| u^(D-1), and therefore |U/L| >= 1/(u^(D-1) l).
A number below this bound is zero: this decides every real algebraic expression by evaluation alone.
"""

from __future__ import annotations

from typing import Any

from flint import arb

from exactgrpo.numbers.expression import LOG, POWER, PRODUCT, QUOTIENT, RATIONAL, ROOT, SUM, Expression, cone, enclose

BUDGET_BITS = 200_000
_UNIT = 64  # logarithms to base 2 are kept as integers, in 1/64 of a bit, rounded up


def separation_bits(x: Expression) -> int | None:
    """B such that x = 0 or |x| >= 2^-B; None if x is not built from rationals, + - * /, integer powers and real roots.

    >>> root2 = Expression.of(2).sqrt()
    >>> separation_bits(root2 * root2 - 2), separation_bits(1 + root2)
    (0, 2)
    """
    bounds: dict[Expression, tuple[int, int]] = {}
    degree = 1
    for node in cone(x):
        if node.kind >= LOG:
            return None
        if node.kind == ROOT:
            degree *= node.payload
        bounds[node] = _bounds(node, bounds)
    above, below = bounds[x]
    return -((-above * (degree - 1) - below) // _UNIT)


def _bounds(node: Expression, bounds: dict[Expression, tuple[int, int]]) -> tuple[int, int]:
    """Upper bounds of log2 u and log2 l, in units."""
    kind = node.kind
    if kind == RATIONAL:
        return _log2(abs(int(node.payload.p))), _log2(int(node.payload.q))
    u, l = bounds[node.args[0]]  # noqa: E741
    if kind == POWER:
        return u * node.payload, l * node.payload
    if kind == ROOT:
        k = node.payload
        return (-((-u - l * (k - 1)) // k), l) if u >= l else (u, -((-u * (k - 1) - l) // k))
    v, m = bounds[node.args[1]]
    if kind == SUM:
        return max(u + m, l + v) + _UNIT, l + m
    if kind == PRODUCT:
        return u + v, l + m
    if kind == QUOTIENT:
        return u + m, l + v
    raise ValueError(f"not an algebraic operation: {kind}")


def _log2(n: int) -> int:
    """An upper bound of log2 n in units; 0 for n = 0, where any bound of |U| = 0 serves."""
    if n <= 1:
        return 0
    shift = max(n.bit_length() - 64, 0)
    head = (n >> shift) + (shift > 0)
    return int(pow(head, _UNIT).bit_length()) + shift * _UNIT


def sign_by_separation(x: Expression, budget: int = BUDGET_BITS) -> tuple[int, int] | None:
    """(sign, bits used) of a real algebraic expression; None if it is not one, or if its bound exceeds the budget."""
    limit = separation_bits(x)
    if limit is None or limit > budget:
        return None
    bits = 64
    while True:
        ball = enclose(x, bits)
        if ball > 0 or ball < 0:
            return (1 if ball > 0 else -1), bits
        if ball.is_finite() and is_below(ball, limit):
            return 0, bits
        if bits > 4 * budget:
            return None
        bits *= 2


def is_below(ball: Any, bits: int) -> bool:
    """True if the ball certainly lies inside (-2^-bits, 2^-bits)."""
    return bool(ball.abs_upper() < arb(2) ** (-bits))
