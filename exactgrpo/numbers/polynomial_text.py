"""The builder of polynomials over Q in named parameters."""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

from flint import fmpq

from exactgrpo.errors import DomainError, LimitError, ParseError
from exactgrpo.numbers.builders import Budget, ExactBuilder, Number, check_name, fraction, height

MAX_POLYNOMIAL_DEGREE = 64
MAX_POLYNOMIAL_TERMS = 10_000
MAX_POLYNOMIAL_TABLE = 2_000_000
"""Terms times parameters of one polynomial."""
PAIR_COST = 128
"""Of the budget, for a product of two terms."""
ENTRY_COST = 10
"""Of the budget, for one exponent in the table: all polynomials of a file together have at most four million."""

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
        check_name(name, self.parameters)
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
        bits = max(map(height, x.values())) + max(map(height, y.values()))
        self.budget.charge(len(x) * len(y) * (PAIR_COST + (bits if bits > 256 else 0)))
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
        self.budget.charge(ENTRY_COST * len(x) * len(self.parameters))
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
        new = self.constants.checked(coefficient if old is None else old + coefficient)
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
