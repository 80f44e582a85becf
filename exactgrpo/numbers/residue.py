"""Values of an expression modulo random primes: a fast end to the search for a formal zero, and a proof of nothing.

Roots are made consistent by taking primes p = 3 mod 4 modulo which all radicands are squares: the squares form a group of odd order,
in which k-th roots are unique for every k prime to that order. Logarithms of a coprime base become independent random residues, and
exp q the power t^(qN) of one random t. Expressions outside this are not judged.
"""

from __future__ import annotations

import math
import random
from functools import lru_cache
from typing import Any

from flint import fmpz

from exactgrpo.numbers import expression as ex
from exactgrpo.numbers.coprime import CoprimeBase, split_rational
from exactgrpo.numbers.expression import Expression, cone

_BITS = 61
_POOL = 256
_ROUNDS = 2


@lru_cache(maxsize=1)
def _primes() -> tuple[int, ...]:
    """Random primes p = 3 mod 4; the seed is a constant, so that runs repeat."""
    generator = random.Random(20_011)
    found: list[int] = []
    while len(found) < _POOL:
        candidate = generator.getrandbits(_BITS) | 1 << (_BITS - 1) | 3
        if fmpz(candidate).is_probable_prime():
            found.append(candidate)
    return tuple(found)


def residue_is_zero(x: Expression) -> bool | None:
    """True if the residues of x vanish at the primes tried, False if one does not, None if x is not of a kind that can be judged.

    >>> a, b = Expression.of(2).sqrt(), Expression.of(3).sqrt()
    >>> residue_is_zero(a * b - Expression.of(6).sqrt()), residue_is_zero(a * b - 2)
    (True, False)
    """
    nodes = cone(x)
    base = CoprimeBase()
    order, exponent_denominator = 1, 1
    radicands: set[int] = set()
    for node in nodes:
        if node.kind in (ex.ROOT, ex.LOG, ex.EXP):
            if node.args[0].kind != ex.RATIONAL:
                return None
            q = node.args[0].payload
            if node.kind == ex.EXP:
                exponent_denominator = math.lcm(exponent_denominator, int(q.q))
                continue
            base.insert(int(q.p))
            base.insert(int(q.q))
            if node.kind == ex.ROOT:
                order = math.lcm(order, node.payload)
                radicands.update((int(q.p), int(q.q)))
    squares = {b for n in radicands for b, _ in base.split(n) or ()}
    chosen = _suitable_primes(squares, order)
    if len(chosen) < _ROUNDS:
        return None
    generator = random.Random(len(nodes))
    for p in chosen:
        try:
            if _evaluate(nodes, base, p, exponent_denominator, generator):
                return False
        except ValueError:  # a divisor vanishes modulo p
            return None
    return True


def _suitable_primes(squares: set[int], order: int) -> list[int]:
    chosen: list[int] = []
    for p in _primes():
        half = (p - 1) // 2
        if math.gcd(order, half) == 1 and all(pow(b, half, p) == 1 for b in squares):
            chosen.append(p)
            if len(chosen) == _ROUNDS:
                break
    return chosen


def _evaluate(nodes: list[Expression], base: CoprimeBase, p: int, denominator: int, generator: random.Random) -> int:
    half = (p - 1) // 2
    logs: dict[int, int] = {}
    t = generator.randrange(2, p)
    values: dict[Expression, int] = {}
    for node in nodes:
        kind, args = node.kind, node.args
        if kind == ex.RATIONAL:
            value = _modulo(node.payload, p)
        elif kind == ex.SUM:
            value = (values[args[0]] + values[args[1]]) % p
        elif kind == ex.PRODUCT:
            value = values[args[0]] * values[args[1]] % p
        elif kind == ex.QUOTIENT:
            value = values[args[0]] * pow(values[args[1]], -1, p) % p
        elif kind == ex.POWER:
            value = pow(values[args[0]], node.payload, p)
        elif kind == ex.ROOT:
            value = pow(values[args[0]], pow(node.payload, -1, half), p)
        elif kind == ex.LOG:
            value = 0
            for b, e in split_rational(base, args[0].payload) or ():
                if b not in logs:
                    logs[b] = generator.randrange(p)
                value += e * logs[b]
            value %= p
        elif kind == ex.EXP:
            value = pow(t, int(args[0].payload.p) * (denominator // int(args[0].payload.q)), p)
        else:
            value = generator.randrange(1, p)
        values[node] = value
    return values[nodes[-1]]


def _modulo(q: Any, p: int) -> int:
    if q.q == 1:
        return int(q.p) % p
    return int(q.p) * pow(int(q.q), -1, p) % p
