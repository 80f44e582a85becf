"""Exponentials of elements of a tower: exp(a + b) = exp a exp b over a basis of exponents, exp(r log y) = y^r."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from flint import fmpq, fmpq_mat

from exactgrpo.numbers.logarithms import power_of_argument
from exactgrpo.numbers.polynomials import Polynomial, is_dense_trouble
from exactgrpo.numbers.relations import relation_candidate
from exactgrpo.numbers.tower import Element, Tower


def exp_of(tower: Tower, x: Element) -> Element:
    """exp x. The polynomial part of x is split into its monomials, the rest over earlier fractional exponents."""
    numerator, denominator = x
    if denominator.is_one():
        return _exp_of_polynomial(tower, numerator)
    if is_dense_trouble(numerator):
        return _exp_of_fraction(tower, numerator, denominator)
    quotient, rest = divmod(numerator, denominator)
    return tower.mul(_exp_of_polynomial(tower, quotient), _exp_of_fraction(tower, rest, denominator))


def _exp_of_polynomial(tower: Tower, p: Polynomial) -> Element:
    result: Element = tower.one, tower.one
    for monomial, c in p.terms():
        result = tower.mul(result, _exp_of_term(tower, tuple(monomial), Fraction(int(c.p), int(c.q))))
    return result


def _exp_of_term(tower: Tower, monomial: tuple[int, ...], c: Fraction) -> Element:
    used = [(tower.generators[i], e) for i, e in enumerate(monomial) if e]
    if len(used) == 1 and used[0][1] == 1 and used[0][0].kind == "log":
        return power_of_argument(tower, used[0][0].meaning, c)
    exponent = tower.ring.from_dict({monomial: 1}), tower.one
    identifier = tower.plan.identify(("exponent", tower.monomial_key(monomial)))
    return _related(tower, exponent, identifier, c) or tower.exponential(identifier, exponent, c)


def _is_algebraic(tower: Tower, x: Element) -> bool:
    return tower.is_algebraic(x[0]) and tower.is_algebraic(x[1])


def hides_relations(tower: Tower, exponent: Element) -> bool:
    """True for exponents whose rational independence is not visible: monomials in roots over a coprime base are independent."""
    return not exponent[1].is_one() or any(g.kind == "radical" for g in tower.used(exponent[0]))


def _related(tower: Tower, exponent: Element, identifier: int, c: Fraction) -> Element | None:
    """exp(c exponent) for an algebraic exponent that is a proved rational combination of earlier algebraic ones."""
    if not _is_algebraic(tower, exponent):
        return None
    made = {g.meaning[2]: g.meaning[0] for g in tower.generators.values() if g.kind == "exp"}
    earlier = {i: x for i, x in made.items() if _is_algebraic(tower, x)}
    if not earlier or identifier in made or not any(hides_relations(tower, x) for x in (exponent, *earlier.values())):
        return None
    bits = tower.plan.relation_bits
    numbers = [tower.express_element(x) for x in (exponent, *earlier.values())]
    vector = relation_candidate(numbers, bits, height=1 << (bits // (len(numbers) + 1)))
    if vector is None:
        return None
    total = tower.scale(exponent, vector[0])
    for x, v in zip(earlier.values(), vector[1:], strict=True):
        total = tower.add(total, tower.scale(x, v))
    if not tower.is_zero(total[0]):
        return None
    result: Element = tower.one, tower.one
    for (i, x), v in zip(earlier.items(), vector[1:], strict=True):
        if v:
            result = tower.mul(result, tower.exponential(i, x, -c * Fraction(v, vector[0])))
    return result


def _exp_of_fraction(tower: Tower, rest: Polynomial, denominator: Polynomial) -> Element:
    """exp(rest/denominator), with the exponent written over earlier fractional exponents where that is possible."""
    if tower.is_zero(rest):
        return tower.one, tower.one
    solution = _combination(tower, rest, denominator)
    if solution is None:
        key = ("exponent", tower.key(rest), tower.key(denominator))
        identifier = tower.plan.identify(key)
        related = _related(tower, (rest, denominator), identifier, Fraction(1))
        if related is not None:
            return related
        known = [i for _, i in tower.fraction_exponents]
        if identifier not in known:
            tower.fraction_exponents.append(((rest, denominator), identifier))
            known.append(identifier)
        solution = [Fraction(i == identifier) for i in known]
    result: Element = tower.one, tower.one
    for (exponent, identifier), c in zip(tower.fraction_exponents, solution, strict=True):
        if c:
            result = tower.mul(result, tower.exponential(identifier, exponent, c))
    return result


def _combination(tower: Tower, rest: Polynomial, denominator: Polynomial) -> list[Fraction] | None:
    """Rationals c with rest/denominator = sum c_j exponent_j, by linear algebra over a common denominator; None if none exist."""
    earlier = [exponent for exponent, _ in tower.fraction_exponents]
    if not earlier:
        return None
    if any(is_dense_trouble(p) for exponent in (*earlier, (rest, denominator)) for p in exponent):
        return None
    common = denominator
    for _, q in earlier:
        common = tower.times(common, divmod(q, common.gcd(q))[0])
    columns = [tower.reduce(tower.times(p, divmod(common, q)[0])).to_dict() for p, q in (*earlier, (rest, denominator))]
    monomials = sorted(set().union(*columns))
    matrix = fmpq_mat([[fmpq(column.get(m, 0)) for column in columns] for m in monomials])
    reduced, rank = matrix.rref()
    solution = [Fraction(0)] * len(earlier)
    for i in range(rank):
        pivot = next(j for j in range(len(columns)) if reduced[i, j] != 0)
        if pivot == len(earlier):
            return None
        solution[pivot] = _fraction(reduced[i, len(earlier)])
    return solution


def _fraction(q: Any) -> Fraction:
    return Fraction(int(q.p), int(q.q))
