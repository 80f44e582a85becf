"""Fractions of polynomials over Q in generators with relations: the ring in which normal forms live.

A generator denotes one real number: a root g with g^k = r, a logarithm, an exponential, or an opaque leaf. Every element denotes
the number that its numerator and denominator denote; denominators are products of numbers known to be non-zero. A tower is built
for one query. What it must know in advance (the coprime base, orders of roots, common denominators of exponents) sits in its
`Plan`; when a plan turns out too small it is extended and the query starts again (`Restart`).
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import fmpq, fmpq_mat

from exactgrpo.numbers import expression as ex
from exactgrpo.numbers.coprime import split_rational
from exactgrpo.numbers.expression import Expression, enclose
from exactgrpo.numbers.plan import NoNormalForm, Plan, Restart
from exactgrpo.numbers.polynomials import COEFFICIENT_BITS, Polynomial, height_bits, is_dense_trouble, ring
from exactgrpo.numbers.separation import sign_by_separation

Element = tuple[Polynomial, Polynomial]

_MAX_SLOTS = 64
_MAX_TERMS = 4000
_GCD_TERMS = 400
_INVERSE_DIMENSION = 36
_INVERSE_TERMS = 128
_SIGN_BITS = 1 << 13
_MAX_BITS = 100_000


@dataclass(slots=True)
class Generator:
    """One generator. `kind`: root (of a base element), radical (any other root), log, exp, leaf.

    `degree` and `radicand` belong to roots: generator^degree = radicand. `meaning` is the (positive) argument of a log as a
    polynomial, or (exponent, denominator, identifier) of an exp. `algebraic` numbers are roots over algebraic radicands.
    """

    index: int
    kind: str
    identifier: int
    node: Expression
    degree: int = 0
    radicand: Polynomial = None
    modulus: Polynomial = None
    meaning: Any = None
    algebraic: bool = False


class Tower:
    """The ring of one query. Later generators are larger in the lexicographic order, so relations reduce from the top down."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.ring, self.variables = ring(plan.slots)
        self.zero, self.one = self.ring.constant(0), self.ring.constant(1)
        self.generators: dict[int, Generator] = {}  # by index, latest (smallest index) last
        self.by_identifier: dict[int, Generator] = {}
        self.relations: list[Generator] = []  # latest first
        self.log_atoms: dict[int, tuple[Polynomial, Element]] = {}
        self.fraction_exponents: list[tuple[Element, int]] = []
        self.proved_by_separation = 0
        self._spent = 0

    # -- generators -------------------------------------------------------------------------------------------------------------

    def generator(self, key: Hashable, kind: str, node: Expression, **properties: Any) -> Generator:
        """The generator with this key, made on first use."""
        identifier = self.plan.identify(key)
        found = self.by_identifier.get(identifier)
        if found is not None:
            return found
        index = self.plan.slots - 1 - len(self.generators)
        if index < 0:
            if self.plan.slots >= _MAX_SLOTS:
                raise NoNormalForm("too many generators")
            self.plan.slots *= 2
            raise Restart
        made = Generator(index, kind, identifier, node, **properties)
        if made.degree:
            made.modulus = self.variables[index] ** made.degree - made.radicand
            self.relations.insert(0, made)
        self.generators[index] = made
        self.by_identifier[identifier] = made
        return made

    def used(self, p: Polynomial) -> list[Generator]:
        """The generators in a polynomial."""
        return [self.generators[i] for i, d in enumerate(p.degrees()) if d > 0]

    def variable(self, generator: Generator) -> Polynomial:
        """A generator as a polynomial."""
        return self.variables[generator.index]

    def rational_power(self, q: Any, exponent: Fraction) -> Polynomial:
        """q^exponent for a positive rational q: a rational number times root generators over the coprime base."""
        if q <= 0:
            raise NoNormalForm("a root of a number that is not positive")
        parts = split_rational(self.plan.base, q)
        if parts is None:
            self.plan.request(int(q.p), 1)
            self.plan.request(int(q.q), 1)
            raise Restart
        result = self.one
        for b, e in parts:
            total = e * exponent
            whole, rest = divmod(total.numerator, total.denominator)
            if abs(whole) * b.bit_length() > _MAX_BITS:
                raise NoNormalForm("coefficients too long")
            result *= fmpq(b) ** whole
            if rest:
                order = self.plan.orders.get(b, 1)
                if order % total.denominator:
                    self.plan.request(b, total.denominator)
                    raise Restart
                node = ex.root(ex.rational(b), order)
                made = self.generator(("root", b, order), "root", node, degree=order, radicand=self.ring.constant(b), algebraic=True)
                result *= self.variable(made) ** (rest * order // total.denominator)
        return result

    def fractional_power(self, p: Polynomial, exponent: Fraction) -> Polynomial:
        """p^exponent for a positive polynomial and exponent >= 0, by one root generator for all exponents of this polynomial."""
        whole, rest = divmod(exponent.numerator, exponent.denominator)
        result = self.power(p, whole)
        if rest:
            key = self.key(p)
            order = self.plan.radical_orders.get(key, 1)
            if order % exponent.denominator:
                self.plan.radical_orders[key] = math.lcm(order, exponent.denominator)
                raise Restart
            node = ex.root(self.express(p), order)
            properties = {"degree": order, "radicand": p, "algebraic": self.is_algebraic(p)}
            made = self.generator(("radical", key, order), "radical", node, **properties)
            result = self.reduce(self.times(result, self.variable(made) ** (rest * order // exponent.denominator)))
        return result

    def exponential(self, identifier: int, exponent: Element, c: Fraction) -> Element:
        """exp(c * exponent), as a power of one generator for all rational multiples of this exponent."""
        denominator = self.plan.exponent_denominators.get(identifier, 1)
        if denominator % c.denominator:
            self.plan.exponent_denominators[identifier] = math.lcm(denominator, c.denominator)
            raise Restart
        node = ex.exp(ex.mul(ex.rational(Fraction(1, denominator)), self.express_element(exponent)))
        made = self.generator(("exp", identifier, denominator), "exp", node, meaning=(exponent, denominator, identifier))
        power = int(c * denominator)
        if power >= 0:
            return self.variable(made) ** power, self.one
        return self.one, self.variable(made) ** -power

    # -- arithmetic -------------------------------------------------------------------------------------------------------------

    def times(self, p: Polynomial, q: Polynomial) -> Polynomial:
        """The product, with the budget checked before the multiplication."""
        size = len(p) * len(q)
        self._spent += size
        if size > 40 * _MAX_TERMS or self._spent > self.plan.work:
            raise NoNormalForm("too many terms")
        return p * q

    def reduce(self, p: Polynomial) -> Polynomial:
        """The remainder modulo the relations g^k = r."""
        if len(p) > _MAX_TERMS:
            raise NoNormalForm("too many terms")
        if self.relations:
            degrees = p.degrees()
            for generator in self.relations:
                if degrees[generator.index] >= generator.degree:
                    p = divmod(p, generator.modulus)[1]
                    degrees = p.degrees()
        return p

    def power(self, p: Polynomial, n: int) -> Polynomial:
        """p^n reduced at every step."""
        result = None
        while n:
            if n & 1:
                result = p if result is None else self.reduce(self.times(result, p))
            n >>= 1
            if n:
                p = self.reduce(self.times(p, p))
                _check_bits(p)
        return self.one if result is None else result

    def normal(self, numerator: Polynomial, denominator: Polynomial) -> Element:
        """Reduced fraction: algebraic denominators are made rational, common factors cancelled, the denominator monic."""
        numerator = self.reduce(numerator)
        if denominator.is_one():
            return numerator, denominator
        denominator = self.reduce(denominator)
        if denominator.is_zero():
            raise NoNormalForm("a denominator is formally zero")
        if numerator.is_zero():
            return self.zero, self.one
        if denominator.is_constant():
            return numerator * (1 / denominator.leading_coefficient()), self.one
        inverse = self.inverse(denominator)
        if inverse is not None:
            return self.reduce(self.times(numerator, inverse)), self.one
        monomial = self._common_monomial(numerator, denominator)
        if monomial is not None:
            numerator, denominator = divmod(numerator, monomial)[0], divmod(denominator, monomial)[0]
        small = len(numerator) + len(denominator) <= _GCD_TERMS and not (is_dense_trouble(numerator) or is_dense_trouble(denominator))
        if small and len(denominator) > 1 and height_bits(numerator) + height_bits(denominator) <= 2 * COEFFICIENT_BITS:
            common = numerator.gcd(denominator)
            if not common.is_constant():
                numerator, denominator = divmod(numerator, common)[0], divmod(denominator, common)[0]
        leading = denominator.leading_coefficient()
        if leading != 1:
            numerator, denominator = numerator * (1 / leading), denominator * (1 / leading)
        return numerator, denominator

    def _common_monomial(self, p: Polynomial, q: Polynomial) -> Polynomial | None:
        """The largest monomial that divides both; None if it is 1."""
        lowest = [min(column) for column in zip(*p.monoms(), *q.monoms(), strict=True)]
        return self.ring.from_dict({tuple(lowest): 1}) if any(lowest) else None

    def add(self, x: Element, y: Element) -> Element:
        """x + y."""
        (p, q), (r, s) = x, y
        if q == s:
            return self.normal(p + r, q)
        return self.normal(self.times(p, s) + self.times(r, q), self.times(q, s))

    def mul(self, x: Element, y: Element) -> Element:
        """x y."""
        return self.normal(self.times(x[0], y[0]), self.times(x[1], y[1]))

    def div(self, x: Element, y: Element) -> Element:
        """x / y for y that is not zero in value."""
        return self.mul(x, (y[1], y[0]))

    def scale(self, x: Element, c: Any) -> Element:
        """c x for a rational c."""
        return (x[0] * c, x[1]) if c else (self.zero, self.one)

    def inverse(self, p: Polynomial) -> Polynomial | None:
        """1/p as a polynomial if p is algebraic and its field of moderate degree; None otherwise."""
        if not self.is_algebraic(p):
            return None
        closure = self._closure(p)
        if len(p) == 1:
            return self._inverse_monomial(p)
        if all(g.degree == 2 for g in closure):
            return self._inverse_by_conjugates(p)
        dimension = math.prod(g.degree for g in closure)
        if dimension > _INVERSE_DIMENSION or height_bits(p) * dimension > 20 * COEFFICIENT_BITS:
            return None
        basis: list[Polynomial] = [self.one]
        for g in closure:
            variable = self.variable(g)
            basis = [m * variable**e for e in range(g.degree) for m in basis]
        position = {tuple(m.monoms()[0]): i for i, m in enumerate(basis)}
        matrix = fmpq_mat(dimension, dimension)
        for j, m in enumerate(basis):
            for monomial, c in self.reduce(p * m).terms():
                matrix[position[tuple(monomial)], j] = c
        target = fmpq_mat(dimension, 1)
        target[0, 0] = 1
        try:
            solution = matrix.solve(target)
        except ZeroDivisionError:  # a hidden relation makes p a zero divisor; the fraction stays
            return None
        return sum((solution[i, 0] * m for i, m in enumerate(basis)), self.zero)

    def _inverse_by_conjugates(self, p: Polynomial) -> Polynomial | None:
        """1/(a + b g) = (a - b g) / (a^2 - b^2 r) for square roots g, the latest first; None if that grows or meets zero."""
        result = self.one
        while not p.is_constant():
            g = min(self.used(p), key=lambda h: h.index)
            a, b = self.split(p, g)
            conjugate = a - b * self.variable(g)
            p = self.reduce(self.times(p, conjugate))
            result = self.reduce(self.times(result, conjugate))
            if p.is_zero() or len(result) > _INVERSE_TERMS or height_bits(p) > 20 * COEFFICIENT_BITS:
                return None
        return result * (1 / p.leading_coefficient())

    def split(self, p: Polynomial, g: Generator) -> tuple[Polynomial, Polynomial]:
        """(a, b) with p = a + b g, for a generator of degree 2."""
        parts: dict[int, dict[tuple[int, ...], Any]] = {0: {}, 1: {}}
        for monomial, c in p.terms():
            stripped = tuple(0 if i == g.index else e for i, e in enumerate(monomial))
            parts[int(monomial[g.index])][stripped] = c
        return self.ring.from_dict(parts[0]), self.ring.from_dict(parts[1])

    def _inverse_monomial(self, p: Polynomial) -> Polynomial | None:
        ((monomial, c),) = p.terms()
        result = self.ring.constant(1 / c)
        for g in self.used(p):
            e = monomial[g.index]
            inner = self.inverse(g.radicand) if not g.radicand.is_constant() else self.ring.constant(1 / g.radicand.leading_coefficient())
            if inner is None:
                return None
            result = self.reduce(self.times(result, self.variable(g) ** (g.degree - e) * inner))
        return result

    def _closure(self, p: Polynomial) -> list[Generator]:
        found: dict[int, Generator] = {}
        pending = self.used(p)
        while pending:
            g = pending.pop()
            if g.index not in found:
                found[g.index] = g
                pending.extend(self.used(g.radicand))
        return [found[i] for i in sorted(found, reverse=True)]

    # -- properties and values --------------------------------------------------------------------------------------------------

    def is_algebraic(self, p: Polynomial) -> bool:
        """True if all generators of p are algebraic numbers."""
        return all(g.algebraic for g in self.used(p))

    def key(self, p: Polynomial) -> int:
        """An identifier of a polynomial that survives restarts."""
        terms = [(self.monomial_key(m), int(c.p), int(c.q)) for m, c in p.terms()]
        return self.plan.identify(("polynomial", tuple(sorted(terms))))

    def monomial_key(self, monomial: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
        """The exponents of a monomial by identifiers of generators."""
        return tuple(sorted((self.generators[i].identifier, int(e)) for i, e in enumerate(monomial) if e))

    def express(self, p: Polynomial) -> Expression:
        """The expression that a polynomial denotes."""
        total = ex.ZERO
        for monomial, c in p.terms():
            term = ex.rational(c)
            for i, e in enumerate(monomial):
                if e:
                    term = ex.mul(term, ex.power(self.generators[i].node, int(e)))
            total = ex.add(total, term)
        return total

    def express_element(self, x: Element) -> Expression:
        """The expression that an element denotes."""
        return self.express(x[0]) if x[1].is_one() else ex.div(self.express(x[0]), self.express(x[1]))

    def sign(self, p: Polynomial) -> int:
        """The sign of a polynomial in value, by enclosure; NoNormalForm if it cannot be told from zero."""
        node = self.express(p)
        bits = 64
        while bits <= _SIGN_BITS:
            ball = enclose(node, bits)
            if ball > 0 or ball < 0:
                return 1 if ball > 0 else -1
            bits *= 2
        raise NoNormalForm("a factor cannot be told from zero")

    def is_zero(self, p: Polynomial) -> bool:
        """A proof that p is zero in value: formally, or because all its algebraic coefficients are zero by the separation bound."""
        if p.is_zero():
            return True
        if not any(g.kind == "radical" and g.algebraic for g in self.used(p)):
            return False
        if any(_certainly_nonzero(c) for c in self.coefficients(p)):
            return False
        for coefficient in self.coefficients(p):
            decided = sign_by_separation(self.express(coefficient))
            if decided is None or decided[0] != 0:
                return False
            self.proved_by_separation = max(self.proved_by_separation, decided[1])
        return True

    def without_zeros(self, p: Polynomial) -> Polynomial:
        """p without the algebraic coefficients that are zero by the separation bound."""
        if not any(g.kind == "radical" and g.algebraic for g in self.used(p)):
            return p
        kept = self.zero
        for monomial, coefficient in self._by_transcendental_monomial(p):
            if not self.is_zero(coefficient):
                kept += monomial * coefficient
        return kept

    def coefficients(self, p: Polynomial) -> list[Polynomial]:
        """The algebraic coefficients of p as a polynomial in its transcendental generators."""
        return [coefficient for _, coefficient in self._by_transcendental_monomial(p)]

    def _by_transcendental_monomial(self, p: Polynomial) -> list[tuple[Polynomial, Polynomial]]:
        algebraic = {i for i, g in self.generators.items() if g.algebraic}
        groups: dict[tuple[int, ...], dict[tuple[int, ...], Any]] = {}
        for monomial, c in p.terms():
            outer = tuple(0 if i in algebraic else e for i, e in enumerate(monomial))
            inner = tuple(e if i in algebraic else 0 for i, e in enumerate(monomial))
            groups.setdefault(outer, {})[inner] = c
        return [(self.ring.from_dict({outer: 1}), self.ring.from_dict(group)) for outer, group in groups.items()]


def _certainly_nonzero(p: Polynomial) -> bool:
    return bool(p.is_constant()) and not p.is_zero()


def _check_bits(p: Polynomial) -> None:
    if height_bits(p) > _MAX_BITS:
        raise NoNormalForm("coefficients too long")
