"""The builder of formula trees over named parameters."""

from __future__ import annotations

from fractions import Fraction

from flint import fmpq

from exactgrpo.errors import LimitError, ParseError
from exactgrpo.numbers.builders import MAX_POWER, Budget, ExactBuilder, Number, check_name, check_power, fraction
from exactgrpo.numbers.formula import Formula, formula

NAME_COST = 1000
NODE_COST = 5000
"""Of the budget, for a quotient, power or function: a policy evaluates all its formulas node by node at every step."""


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
        check_name(name, self.parameters)
        self.budget.charge(NAME_COST)
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
        self.budget.charge(NODE_COST)
        x, y = x.as_product(), y.as_product()
        if y.is_number():
            x.constant = self._rational(self.constants.div(x.constant, y.constant))
            return x
        x.denominator.append(y.node())
        return self._of_degree(x, x.degree + y.degree)

    def power(self, x: _Draft, exponent: Fraction) -> _Draft:
        self.budget.charge(NODE_COST)
        if x.is_number():
            value = self.constants.power(x.constant, exponent)
            if isinstance(value, fmpq):
                return _Draft(value)
        check_power(exponent)
        return self._of_degree(
            _Draft(fmpq(1), formula("power", (x.node(),), exponent)), -(-x.degree * abs(exponent.numerator) // exponent.denominator)
        )

    def call(self, function: str, x: _Draft) -> _Draft:
        if function == "sqrt":
            return self.power(x, Fraction(1, 2))
        self.budget.charge(NODE_COST)
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
