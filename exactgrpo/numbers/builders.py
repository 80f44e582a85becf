"""What a parsed text becomes: builders of exact numbers, of polynomials over Q, and of formula trees.

A builder receives each part of a text once, innermost first, and each value that it returns is used once: polynomial and formula
builders therefore extend their left operand in place. Errors carry the rule only; the parser adds place and text.
"""

from __future__ import annotations

import difflib
from fractions import Fraction
from typing import Any, Protocol, TypeAlias, TypeVar

from flint import fmpq, fmpz

from exactgrpo.errors import DomainError, LimitError, ParseError
from exactgrpo.numbers.expression import POWER, RATIONAL, ROOT, Expression, enclose, rational
from exactgrpo.numbers.formula import Formula, formula
from exactgrpo.numbers.rational import MAX_BITS, Exact, settled

MAX_POWER = 10_000
"""Powers of irrational numbers and formulas: exponents, and formal degrees, are at most this large."""
MAX_POLYNOMIAL_DEGREE = 64
MAX_POLYNOMIAL_TERMS = 10_000
MAX_POLYNOMIAL_TABLE = 2_000_000
"""Terms times parameters of one polynomial."""
MAX_IRRATIONAL_NODES = 10_000
"""Operations on irrational numbers in one text."""
MAX_EXP = 10**9
"""Arguments of exp are at most this large, in absolute value: beyond, no enclosure of the result is of use."""

V = TypeVar("V")


class Builder(Protocol[V]):
    """What the parser calls; `exponent` is rational, `function` is sqrt, log or exp. Numbers in exponents share the budget."""

    @property
    def budget(self) -> Budget: ...

    def number(self, value: Fraction) -> V: ...
    def name(self, name: str) -> V: ...
    def add(self, x: V, y: V) -> V: ...
    def sub(self, x: V, y: V) -> V: ...
    def mul(self, x: V, y: V) -> V: ...
    def div(self, x: V, y: V) -> V: ...
    def neg(self, x: V) -> V: ...
    def power(self, x: V, exponent: Fraction) -> V: ...
    def call(self, function: str, x: V) -> V: ...


class Budget:
    """Work that the texts of one file may cause beyond what is proportional to their length; about a second's worth.

    >>> Budget(100).charge(101)
    Traceback (most recent call last):
    exactgrpo.errors.LimitError: : '': the arithmetic written here needs too much work
    """

    __slots__ = ("left",)

    def __init__(self, left: int = 40_000_000) -> None:
        self.left = left

    def charge(self, cost: int) -> None:
        """Take `cost` from what is left; raise LimitError when it does not suffice."""
        self.left -= cost
        if self.left < 0:
            raise LimitError("", "", "the arithmetic written here needs too much work")


def _check_name(name: str, known: dict[str, int]) -> None:
    if name not in known:
        near = difflib.get_close_matches(name[:100], list(known)[:1000], n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "; the parameters are " + _short(", ".join(list(known)[:10]))
        raise ParseError("", "", f"unknown name {_short(name)!r}{hint}")


def _short(name: str) -> str:
    return name if len(name) <= 40 else name[:40] + "..."


# ---- exact numbers -----------------------------------------------------------------------------------------------------

Number: TypeAlias = Any
"""fmpq or Expression (python-flint is untyped)."""


class ExactBuilder:
    """Numbers without names: rationals are `fmpq` until `finish`, anything else is an `Expression`."""

    def __init__(self, budget: Budget | None = None) -> None:
        self.budget = Budget() if budget is None else budget
        self.irrational = 0

    def number(self, value: Fraction) -> Number:
        return self._checked(fmpq(value.numerator, value.denominator))

    def name(self, name: str) -> Number:
        raise ParseError("", "", f"only numbers are allowed here, not the name {_short(name)!r}")

    def add(self, x: Number, y: Number) -> Number:
        return self._checked(x + y) if isinstance(x, fmpq) and isinstance(y, fmpq) else self._settled(_operand(x) + _operand(y))

    def sub(self, x: Number, y: Number) -> Number:
        return self._checked(x - y) if isinstance(x, fmpq) and isinstance(y, fmpq) else self._settled(_operand(x) - _operand(y))

    def mul(self, x: Number, y: Number) -> Number:
        return self._checked(x * y) if isinstance(x, fmpq) and isinstance(y, fmpq) else self._settled(_operand(x) * _operand(y))

    def div(self, x: Number, y: Number) -> Number:
        if isinstance(y, fmpq) and not y:
            raise DomainError("", "", "division by zero")
        if isinstance(x, fmpq) and isinstance(y, fmpq):
            return self._checked(x / y)
        self._before_decision(y)
        return self._settled(_operand(x) / _operand(y))

    def neg(self, x: Number) -> Number:
        return -x if isinstance(x, fmpq) else self._settled(-x)

    def power(self, x: Number, exponent: Fraction) -> Number:
        p, q = exponent.numerator, exponent.denominator
        if isinstance(x, Expression):
            _check_power(exponent)
            _check_irrational_power(x, p if q == 1 else 1)
            if q > 1 or p < 0:
                self._before_decision(x)
            return self._settled((x if q == 1 else x.root(q)) ** p)
        if q == 1:
            return self._rational_power(x, p)
        if x < 0:
            raise DomainError("", "", "root of a negative number")
        _check_power(Fraction(1, q))
        root = _rational_root(x, q)
        if root is not None:
            return self._rational_power(root, p)
        _check_power(exponent)
        _check_size((_height(x) - 1) * abs(p) // q)
        return self._settled(rational(x).root(q) ** p)

    def call(self, function: str, x: Number) -> Number:
        if function == "sqrt":
            return self.power(x, Fraction(1, 2))
        if isinstance(x, fmpq):
            if function == "log" and x <= 0:
                raise DomainError("", "", "log of a number that is not positive")
            if x == (1 if function == "log" else 0):
                return fmpq(0 if function == "log" else 1)
            x = rational(x)
        if function == "log":
            self._before_decision(x)
            return self._settled(x.log())
        if not bool(abs(enclose(x, 128)) < MAX_EXP):
            raise LimitError("", "", f"arguments of exp are at most {MAX_EXP} in absolute value")
        return self._settled(x.exp())

    def finish(self, x: Number) -> Exact:
        """Return the value as a Fraction or an Expression."""
        return fraction(x) if isinstance(x, fmpq) else settled(x)

    def _rational_power(self, x: fmpq, p: int) -> fmpq:
        if not x:
            if p < 0:
                raise DomainError("", "", "division by zero")
            return fmpq(0 if p else 1)
        if abs(x) == 1:
            return x if p % 2 else fmpq(1)
        _check_size((_height(x) - 1) * abs(p))
        return self._checked(x**p)

    def _checked(self, x: fmpq) -> fmpq:
        bits = x.p.bit_length() + x.q.bit_length()
        if bits > 256:
            _check_size(bits)
            self.budget.charge(bits)
        return x

    def _before_decision(self, x: Number) -> None:
        """A sign that a cheap enclosure leaves open may need a proof, so the texts of a file can ask for few of them."""
        if isinstance(x, Expression) and not bool(enclose(x, 128) != 0):
            self.budget.charge(2_000_000)

    def _settled(self, x: Expression) -> Number:
        self.irrational += 1
        if self.irrational > MAX_IRRATIONAL_NODES:
            raise LimitError("", "", f"a text holds at most {MAX_IRRATIONAL_NODES} operations on irrational numbers")
        return self._checked(x.payload) if x.kind == RATIONAL else x


def _operand(x: Number) -> Expression:
    return x if isinstance(x, Expression) else rational(x)


def fraction(x: fmpq) -> Fraction:
    """Return the rational as a Fraction.

    >>> fraction(fmpq(2, 6))
    Fraction(1, 3)
    """
    return Fraction(int(x.p), int(x.q))


def _height(x: fmpq) -> int:
    return int(max(x.p.bit_length(), x.q.bit_length()))


def _check_size(bits: int) -> None:
    if bits > MAX_BITS:
        raise LimitError("", "", f"a number of about 2^{bits.bit_length() - 1} bits; at most {MAX_BITS} are allowed")


def _check_power(exponent: Fraction) -> None:
    if abs(exponent.numerator) > MAX_POWER or exponent.denominator > MAX_POWER:
        raise LimitError("", "", f"the exponent's numerator and denominator are at most {MAX_POWER} here")


def _check_irrational_power(x: Expression, p: int) -> None:
    """Powers of powers and of roots merge, so the bound is on the merged exponent and on the rational that it may make."""
    if x.kind == POWER:
        p, x = p * x.payload, x.args[0]
        _check_power(Fraction(p))
    if x.kind == ROOT and x.args[0].kind == RATIONAL:
        _check_size((_height(x.args[0].payload) - 1) * abs(p) // x.payload)


def _rational_root(x: fmpq, q: int) -> fmpq | None:
    """The q-th root of x >= 0 if it is rational."""
    root = fmpq(_floor_root(x.p, q), _floor_root(x.q, q))
    return root if root**q == x else None


def _floor_root(n: fmpz, q: int) -> fmpz:
    return n if n <= 1 else fmpz(1) if q >= n.bit_length() else n.root(q)


# ---- polynomials over Q ------------------------------------------------------------------------------------------------

Polynomial: TypeAlias = dict[int, fmpq]
"""Monomial -> non-zero coefficient. A monomial is a packed integer: its lowest byte is the total degree, byte i + 1 the exponent of
the i-th parameter that the text has used. Multiplying monomials is adding them; no byte overflows, since degrees stay below 128."""


class PolynomialBuilder:
    """Polynomials over Q in named parameters."""

    def __init__(self, parameters: dict[str, int], budget: Budget | None = None) -> None:
        self.parameters = parameters
        self.constants = ExactBuilder(budget)
        self.budget = self.constants.budget
        self.used: dict[str, int] = {}

    def number(self, value: Fraction) -> Polynomial:
        return self._constant(self.constants.number(value))

    def name(self, name: str) -> Polynomial:
        _check_name(name, self.parameters)
        place = self.used.setdefault(name, len(self.used))
        return {1 + (1 << 8 * (place + 1)): fmpq(1)}

    def add(self, x: Polynomial, y: Polynomial) -> Polynomial:
        if len(x) < len(y):
            x, y = y, x
        for monomial, coefficient in y.items():
            self._accumulate(x, monomial, coefficient)
        self._check_terms(len(x))
        return x

    def sub(self, x: Polynomial, y: Polynomial) -> Polynomial:
        return self.add(x, self.neg(y))

    def neg(self, x: Polynomial) -> Polynomial:
        for monomial in x:
            x[monomial] = -x[monomial]
        return x

    def mul(self, x: Polynomial, y: Polynomial) -> Polynomial:
        if _degree(x) + _degree(y) > MAX_POLYNOMIAL_DEGREE:
            raise LimitError("", "", f"polynomials have degree at most {MAX_POLYNOMIAL_DEGREE}")
        if not x or not y:
            return {}
        bits = max(map(_height, x.values())) + max(map(_height, y.values()))
        self.budget.charge(len(x) * len(y) * (64 + (bits if bits > 256 else 0)))
        product: Polynomial = {}
        for left, a in x.items():
            for right, b in y.items():
                self._accumulate(product, left + right, a * b)
            self._check_terms(len(product))
        return product

    def div(self, x: Polynomial, y: Polynomial) -> Polynomial:
        if any(y):
            raise ParseError("", "", "a polynomial is divided by numbers only")
        if not y:
            raise DomainError("", "", "division by zero")
        return self.mul(x, {0: 1 / y[0]})

    def power(self, x: Polynomial, exponent: Fraction) -> Polynomial:
        if not any(x):
            return self._constant(self.constants.power(x.get(0, fmpq(0)), exponent))
        if exponent.denominator != 1 or exponent < 0:
            raise ParseError("", "", "the exponents of a polynomial are whole numbers >= 0")
        if _degree(x) * exponent > MAX_POLYNOMIAL_DEGREE:
            raise LimitError("", "", f"polynomials have degree at most {MAX_POLYNOMIAL_DEGREE}")
        result: Polynomial = {0: fmpq(1)}
        for _ in range(int(exponent)):
            result = self.mul(result, x)
        return result

    def call(self, function: str, x: Polynomial) -> Polynomial:
        if any(x):
            raise ParseError("", "", f"a polynomial holds no {function} of a parameter")
        return self._constant(self.constants.call(function, x.get(0, fmpq(0))))

    def finish(self, x: Polynomial) -> dict[tuple[int, ...], Fraction]:
        """Return exponent tuples, one entry for each parameter in order, with their coefficients."""
        self.budget.charge(len(x) * len(self.parameters))
        places = [(self.parameters[name], 8 * (index + 1)) for name, index in self.used.items()]
        table: dict[tuple[int, ...], Fraction] = {}
        for monomial, coefficient in x.items():
            exponents = [0] * len(self.parameters)
            for parameter, shift in places:
                exponents[parameter] = monomial >> shift & 255
            table[tuple(exponents)] = fraction(coefficient)
        return table

    def _constant(self, x: Number) -> Polynomial:
        if not isinstance(x, fmpq):
            raise ParseError("", "", "the coefficients of a polynomial are rational numbers")
        return {0: x} if x else {}

    def _accumulate(self, x: Polynomial, monomial: int, coefficient: fmpq) -> None:
        old = x.get(monomial)
        new = self.constants._checked(coefficient if old is None else old + coefficient)
        if new:
            x[monomial] = new
        elif old is not None:
            del x[monomial]

    def _check_terms(self, terms: int) -> None:
        if terms > MAX_POLYNOMIAL_TERMS:
            raise LimitError("", "", f"polynomials have at most {MAX_POLYNOMIAL_TERMS} terms")
        if terms * len(self.parameters) > MAX_POLYNOMIAL_TABLE:
            raise LimitError("", "", f"terms times parameters of a polynomial are at most {MAX_POLYNOMIAL_TABLE}")


def _degree(x: Polynomial) -> int:
    return max((monomial & 255 for monomial in x), default=0)


# ---- formula trees -----------------------------------------------------------------------------------------------------


class _Draft:
    """A formula that may still grow: `terms` summed with `constant`, or (terms is None) `constant` * numerator / denominator."""

    __slots__ = ("constant", "degree", "denominator", "numerator", "terms")

    def __init__(self, constant: fmpq, node: Formula | None = None, degree: int = 0) -> None:
        self.constant, self.degree = constant, degree
        self.terms: list[Formula] | None = None
        self.numerator: list[Formula] = [] if node is None else [node]
        self.denominator: list[Formula] = []

    def is_number(self) -> bool:
        return not self.terms and not self.numerator and not self.denominator

    def node(self) -> Formula:
        if self.terms is not None:
            return _joined("add", [*self.terms, _number(self.constant)] if self.constant or not self.terms else self.terms)
        factors = [_number(self.constant), *self.numerator] if self.constant != 1 or not self.numerator else self.numerator
        above = _joined("mul", factors)
        return formula("div", (above, _joined("mul", self.denominator))) if self.denominator else above

    def as_sum(self) -> list[Formula]:
        if self.terms is None:
            self.terms, self.constant = ([], self.constant) if self.is_number() else ([self.node()], fmpq(0))
            self.numerator, self.denominator = [], []
        return self.terms

    def as_product(self) -> _Draft:
        if self.terms:
            return _Draft(fmpq(1), self.node(), self.degree)
        self.terms = None
        return self


def _number(x: fmpq) -> Formula:
    return formula("number", value=fraction(x))


def _joined(op: str, nodes: list[Formula]) -> Formula:
    return nodes[0] if len(nodes) == 1 else formula("add" if op == "add" else "mul", tuple(nodes))


class FormulaBuilder:
    """Formula trees. Sums, products and quotients are flat, so a tree is no deeper than a few levels for each bracket."""

    def __init__(self, parameters: dict[str, int], budget: Budget | None = None) -> None:
        self.parameters = parameters
        self.constants = ExactBuilder(budget)
        self.budget = self.constants.budget

    def number(self, value: Fraction) -> _Draft:
        return _Draft(self._rational(self.constants.number(value)))

    def name(self, name: str) -> _Draft:
        _check_name(name, self.parameters)
        return _Draft(fmpq(1), formula("parameter", value=name), 1)

    def add(self, x: _Draft, y: _Draft) -> _Draft:
        terms = x.as_sum()
        terms.extend(y.as_sum())
        x.constant = self._rational(self.constants.add(x.constant, y.constant))
        x.degree = max(x.degree, y.degree)
        return x

    def sub(self, x: _Draft, y: _Draft) -> _Draft:
        return self.add(x, self.neg(y))

    def neg(self, x: _Draft) -> _Draft:
        x = x.as_product()
        x.constant = -x.constant
        return x

    def mul(self, x: _Draft, y: _Draft) -> _Draft:
        x, y = x.as_product(), y.as_product()
        x.numerator.extend(y.numerator)
        x.denominator.extend(y.denominator)
        x.constant = self._rational(self.constants.mul(x.constant, y.constant))
        return self._of_degree(x, x.degree + y.degree)

    def div(self, x: _Draft, y: _Draft) -> _Draft:
        x, y = x.as_product(), y.as_product()
        if y.is_number():
            x.constant = self._rational(self.constants.div(x.constant, y.constant))
            return x
        x.denominator.append(y.node())
        return self._of_degree(x, x.degree + y.degree)

    def power(self, x: _Draft, exponent: Fraction) -> _Draft:
        if x.is_number():
            value = self.constants.power(x.constant, exponent)
            if isinstance(value, fmpq):
                return _Draft(value)
        _check_power(exponent)
        return self._of_degree(
            _Draft(fmpq(1), formula("power", (x.node(),), exponent)), -(-x.degree * abs(exponent.numerator) // exponent.denominator)
        )

    def call(self, function: str, x: _Draft) -> _Draft:
        if function == "sqrt":
            return self.power(x, Fraction(1, 2))
        if x.is_number():
            value = self.constants.call(function, x.constant)
            if isinstance(value, fmpq):
                return _Draft(value)
        return _Draft(fmpq(1), formula("log" if function == "log" else "exp", (x.node(),)), min(x.degree, 1))

    def finish(self, x: _Draft) -> Formula:
        """Return the tree."""
        return x.node()

    def _rational(self, x: Number) -> fmpq:
        if not isinstance(x, fmpq):
            raise ParseError("", "", "a rational number is needed")
        return x

    def _of_degree(self, x: _Draft, degree: int) -> _Draft:
        if degree > MAX_POWER:
            raise LimitError("", "", f"the degree of a formula is at most {MAX_POWER}")
        x.degree = degree
        return x
