"""Formulas as rational functions of their parameters: their value at a point, and a normal form that proves one zero everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import lcm
from typing import Any, TypeAlias

from flint import fmpq, fmpq_mpoly_ctx

from exactgrpo.numbers.formula import Formula, formula
from exactgrpo.numbers.real import Real

MAX_TERMS = 100_000
"""Products of terms in one multiplication of polynomials."""
MAX_DEGREE = 200
MAX_VARIABLES = 60
_GCD_TERMS = 10_000  # a common divisor of denominators is looked for below this product of terms

Quotient: TypeAlias = tuple[Any, Any]
"""Numerator and denominator, polynomials of one ring (python-flint is untyped)."""
Table: TypeAlias = Mapping[Formula, Quotient]


def value_at(side: Formula, point: Mapping[str, Any]) -> Real:
    """The exact value of a formula at exact numbers for its parameters; DomainError where it is undefined.

    >>> t = formula("parameter", value="t")
    >>> value_at(formula("div", (t, formula("add", (t, t)))), {"t": 3})
    Real('1/2')
    """

    def visit(node: Formula, args: tuple[Real, ...]) -> Real:
        match node.op:
            case "number":
                return Real.of(node.value)
            case "parameter":
                return Real.of(point[str(node.value)], str(node.value))
            case "add":
                return sum(args[1:], args[0])
            case "mul":
                product = args[0]
                for factor in args[1:]:
                    product = product * factor
                return product
            case "div":
                return args[0] / args[1]
            case "power":
                exponent = Fraction(node.value or 0)
                base = args[0] if exponent.denominator == 1 else args[0].root(exponent.denominator)
                return base ** int(exponent.numerator)
            case "log":
                return args[0].log()
            case "exp":
                return args[0].exp()

    return side.fold(visit)


def is_rational_zero(side: Formula) -> bool:
    """True if the formula is a rational function over Q with normal form zero: it is zero wherever it is defined. False says nothing.

    >>> t = formula("parameter", value="t")
    >>> is_rational_zero(formula("add", (t, formula("mul", (formula("number", value=Fraction(-1)), t)))))
    True
    """
    return _is_zero(_quotient(side, _parameters(side)))


def is_formal_zero(side: Formula) -> bool:
    """`is_rational_zero` with logarithms, roots and exponentials as further variables; exp(a + b) is exp(a) exp(b) there.

    >>> from exactgrpo.numbers.text import parse_formula
    >>> is_formal_zero(parse_formula("exp(-2/t) - exp(-1/t)^2 + log(t) - log(t)", ["t"]))
    True
    """
    parameters = _parameters(side)
    arguments = {node: _quotient(node.args[0], parameters) for node in side.nodes() if node.op == "exp"}
    units: dict[Any, int] = {}  # a variable stands for exp(-term/unit)
    for quotient in arguments.values():
        for key, coefficient in _terms(quotient):
            units[key] = lcm(units.get(key, 1), coefficient.denominator)
    others = [node for node in side.nodes() if (node.op == "exp" and arguments[node] is None) or node.op == "log" or _is_root(node)]
    names = sorted(side.parameters())
    leaves = list(dict.fromkeys(map(_leaf, others)))
    count = len(names) + len(units) + len(leaves)
    if count > MAX_VARIABLES:
        return False
    ring = _ring(count)
    one, variables = ring.constant(1), iter(ring.gens())
    table: dict[Formula, Quotient] = {formula("parameter", value=name): (next(variables), one) for name in names}
    bases = {key: (next(variables), one) for key in units}
    leaf_variables = {leaf: (next(variables), one) for leaf in leaves}
    for node in others:
        power = _power(leaf_variables[_leaf(node)], Fraction(node.value or 0).numerator if _is_root(node) else 1)
        if power is None:
            return False
        table[node] = power
    for node, quotient in arguments.items():
        product: Quotient | None = (one, one)
        for key, coefficient in _terms(quotient):
            product = _times(product, _power(bases[key], -int(coefficient * units[key])))
        if quotient is not None:
            if product is None:
                return False
            table[node] = product
    return _is_zero(_quotient(side, table))


def has_nonnegative_coefficients(side: Formula) -> bool:
    """True if numerator and denominator of the rational function have non-negative coefficients: it is not negative for parameters >= 0.

    >>> from exactgrpo.numbers.text import parse_formula
    >>> has_nonnegative_coefficients(parse_formula("1 - a/(a + b)", ["a", "b"]))
    True
    """
    quotient = _quotient(side, _parameters(side))
    if quotient is None:
        return False
    signs = {c > 0 for polynomial in quotient for c in polynomial.coeffs()}
    return len(signs) <= 1


def _is_zero(quotient: Quotient | None) -> bool:
    return quotient is not None and bool(quotient[0] == 0)


def _is_root(node: Formula) -> bool:
    return node.op == "power" and Fraction(node.value or 0).denominator != 1


def _leaf(node: Formula) -> Formula:
    """The root of the base that a fractional power is a whole power of; any other node itself."""
    return formula("power", node.args, Fraction(1, Fraction(node.value or 0).denominator)) if _is_root(node) else node


def _ring(count: int) -> Any:
    return fmpq_mpoly_ctx.get([f"x{i}" for i in range(max(count, 1))], "lex")


def _parameters(side: Formula) -> Table:
    names = sorted(side.parameters())
    if len(names) > MAX_VARIABLES:
        return {}
    ring = _ring(len(names))
    one = ring.constant(1)
    return {formula("parameter", value=name): (x, one) for name, x in zip(names, ring.gens(), strict=False)}


def _terms(quotient: Quotient | None) -> list[tuple[Any, Fraction]]:
    """The terms of the numerator of a reduced quotient, each as (what it is a multiple of, the rational multiple)."""
    if quotient is None:
        return []
    above, below = quotient
    common = above.gcd(below)
    above, below = above / common, below / common
    lead = below.leading_coefficient()
    return [((monomial, str(below / lead)), Fraction(int(c.p), int(c.q))) for monomial, c in ((m, k / lead) for m, k in above.terms())]


def _quotient(side: Formula, table: Table) -> Quotient | None:
    """Numerator and denominator over the variables of the table; None if it is no rational function of them, or beyond the budget."""
    ring = next(iter(table.values()))[0].context() if table else _ring(0)
    one = ring.constant(1)

    def visit(node: Formula, args: tuple[Quotient | None, ...]) -> Quotient | None:
        if node in table:
            return table[node]
        match node.op:
            case "number":
                value = Fraction(node.value or 0)
                return ring.constant(fmpq(value.numerator, value.denominator)), one
            case "add":
                total = args[0]
                for a in args[1:]:
                    total = _plus(total, a)
                return total
            case "mul":
                product = args[0]
                for a in args[1:]:
                    product = _times(product, a)
                return product
            case "div":
                return _times(args[0], _power(args[1], -1))
            case "power" if not _is_root(node):
                return _power(args[0], int(Fraction(node.value or 0)))
            case _:
                return None

    return side.fold(visit)


def _plus(x: Quotient | None, y: Quotient | None) -> Quotient | None:
    if x is None or y is None:
        return None
    (a, b), (c, d) = x, y
    if b == d:
        return a + c, b
    if len(b) * len(d) <= _GCD_TERMS:
        common = b.gcd(d)
        b, d = b / common, d / common
    else:
        common = b**0
    first, second, below = _product(a, d), _product(c, b), _product(_product(b, d), common)
    return None if first is None or second is None or below is None else (first + second, below)


def _times(x: Quotient | None, y: Quotient | None) -> Quotient | None:
    if x is None or y is None:
        return None
    above, below = _product(x[0], y[0]), _product(x[1], y[1])
    return None if above is None or below is None else (above, below)


def _power(x: Quotient | None, exponent: int) -> Quotient | None:
    if x is None or abs(exponent) > MAX_DEGREE:
        return None
    base = x if exponent >= 0 else (x[1], x[0])
    if base[1] == 0:
        return None
    product: Quotient | None = (x[0] ** 0, x[0] ** 0)
    for _ in range(abs(exponent)):
        product = _times(product, base)
    return product


def _product(p: Any, q: Any) -> Any:
    if p is None or q is None or len(p) * len(q) > MAX_TERMS or p.total_degree() + q.total_degree() > MAX_DEGREE:
        return None
    return p * q
