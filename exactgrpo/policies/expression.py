"""The expression family: mass_j = e_j(theta) / sum e(theta), with formulas of + - * / exp log and rational powers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from exactgrpo.numbers.arithmetic import Arithmetic, Column, Rows, index
from exactgrpo.numbers.formula import Formula
from exactgrpo.policies.family import Policy, PolicyFamily
from exactgrpo.policies.inputs import FormulaInput, InequalityInput, formula_bounds, formula_of, parameter_names, table

Values = dict[Formula, Any]


@dataclass(frozen=True, eq=False)
class Expressions(PolicyFamily):
    """pi_theta(y_j|q) = e_j(theta) / sum_i e_i(theta).

    U is the set where every e_j, every log argument, every base of a fractional power and every `inequalities` formula is
    positive and every divisor is non-zero; so sqrt(x^2) at x = 0 lies outside U. Gradients are by reverse accumulation.
    Theorem: expression_family (Expression.v).
    """

    rows: Rows
    size: int
    weights: tuple[Formula, ...]
    inequalities: tuple[Formula, ...]
    parameters: tuple[str, ...]
    masses_by_construction = True

    @classmethod
    def of(
        cls,
        weights: Sequence[Sequence[FormulaInput]],
        *,
        parameters: Sequence[Any],
        inequalities: Sequence[InequalityInput] = (),
    ) -> Expressions:
        """Return the family of the weights: weights[prompt][response] is a formula in the named parameters.

        Formulas, inequalities and parameters may be written in the forms that `exactgrpo.policies.inputs` lists. Raises PolicyError
        for a wrong shape or kind, and the errors of `numbers.text`, each with its place, such as ``weights[0][1]``.

        >>> family = Expressions.of([["exp(-t)", "sqrt(t)/2"]], parameters=["t"], inequalities=["t < 3"])
        >>> [str(formula) for formula in (*family.weights, *family.inequalities)]
        ['exp(((-1)*t))', '((1/2)*(t)^(1/2))', '(((-1)*t) + 3)']
        """
        names = parameter_names(parameters, None)
        rows = table(weights, "weights")
        flat = tuple(formula_of(w, names, f"weights[{q}][{j}]") for q, row in enumerate(rows) for j, w in enumerate(row))
        return cls(Rows(map(len, rows)), len(names), flat, tuple(formula_bounds(inequalities, names)), tuple(names))

    def at(self, arithmetic: Arithmetic, theta: Any) -> Policy:
        rows = self.rows
        order = _ordered(self.weights)
        values: Values = {}
        for node in order:
            values[node] = self._value(arithmetic, theta, node, values)
        weight = arithmetic.join([values[e] for e in self.weights])
        inverse = (1 / arithmetic.sums(weight, rows))[rows.owner]
        mass = weight * inverse

        def pullback(cotangent: Any) -> Any:
            mean = arithmetic.sums(mass * cotangent, rows)[rows.owner]
            return self._pullback(arithmetic, order, values, (cotangent - mean) * inverse)

        return Policy(mass, lambda: arithmetic.log(mass), pullback)

    def domain(self, arithmetic: Arithmetic, theta: Any) -> Iterator[Any]:
        order = _ordered((*self.inequalities, *self.weights))
        values: Values = {}
        for node in order:
            if node.op == "log" or (node.op == "power" and _exponent(node).denominator > 1):
                yield values[node.args[0]]
            elif node.op == "div" or (node.op == "power" and _exponent(node) < 0):
                divisor = values[node.args[-1]]
                yield divisor * divisor
            values[node] = self._value(arithmetic, theta, node, values)
        yield arithmetic.join([values[e] for e in (*self.inequalities, *self.weights)])

    def _value(self, arithmetic: Arithmetic, theta: Any, node: Formula, values: Values) -> Any:
        args = [values[a] for a in node.args]
        match node.op:
            case "number":
                return arithmetic.exact(_constant(node))
            case "parameter":
                return theta[index([self.parameters.index(str(node.value))])]
            case "add":
                return _folded(args, lambda a, b: a + b)
            case "mul":
                return _folded(args, lambda a, b: a * b)
            case "div":
                return args[0] / args[1]
            case "power":
                return _power(arithmetic, args[0], _exponent(node))
            case "log":
                return arithmetic.log(args[0])
            case "exp":
                return arithmetic.exp(args[0])

    def _pullback(self, arithmetic: Arithmetic, order: Sequence[Formula], values: Values, cotangent: Any) -> Any:
        adjoint: Values = {}

        def receive(node: Formula, share: Any) -> None:
            adjoint[node] = adjoint[node] + share if node in adjoint else share

        for j, e in enumerate(self.weights):
            receive(e, cotangent[index([j])])
        total = arithmetic.exact(Column([0] * self.size))
        for node in reversed(order):
            c, args = adjoint.get(node), node.args
            if c is None:
                continue  # reached only through x^0
            match node.op:
                case "parameter":
                    at = index([self.parameters.index(str(node.value))])
                    total = total + arithmetic.place(c, at, self.size)
                case "add":
                    for a in args:
                        receive(a, c)
                case "mul":
                    for i, a in enumerate(args):
                        others = [values[b] for j, b in enumerate(args) if j != i]
                        receive(a, _folded([c, *others], lambda x, y: x * y))
                case "div":
                    receive(args[0], c / values[args[1]])
                    receive(args[1], -(c * values[node] / values[args[1]]))
                case "power":
                    exponent = _exponent(node)
                    if exponent == 0:
                        continue  # x^0 = 1, also at x = 0
                    slope = _power(arithmetic, values[args[0]], exponent - 1) if exponent != 1 else 1
                    receive(args[0], c * slope * arithmetic.number(exponent))
                case "log":
                    receive(args[0], c / values[args[0]])
                case "exp":
                    receive(args[0], c * values[node])
        return total


def _ordered(formulas: Sequence[Formula]) -> list[Formula]:
    """All distinct nodes, arguments first."""
    return list(dict.fromkeys(node for e in formulas for node in e.nodes()))


def _exponent(node: Formula) -> Fraction:
    return Fraction(node.value) if node.value is not None else Fraction(1)


def _constant(node: Formula) -> Column:
    return Column([Fraction(node.value) if node.value is not None else 0])


def _folded(args: Sequence[Any], operation: Any) -> Any:
    total = args[0]
    for a in args[1:]:
        total = operation(total, a)
    return total


def _power(arithmetic: Arithmetic, x: Any, exponent: Fraction) -> Any:
    """x^(p/q) as the p-th power of the q-th root."""
    base = x if exponent.denominator == 1 else arithmetic.root(x, exponent.denominator)
    n = abs(exponent.numerator)
    result = None
    while n:
        if n & 1:
            result = base if result is None else result * base
        base, n = (base * base if n > 1 else base), n >> 1
    if result is None:
        return arithmetic.exact(Column([1]))[np.zeros(len(x), np.intp)]
    return 1 / result if exponent < 0 else result
