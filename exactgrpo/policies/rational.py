"""The rational family: mass_j = w_j(theta) / sum w(theta) with polynomial weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from exactgrpo.numbers.arithmetic import Arithmetic, Rows
from exactgrpo.policies.family import Policy, PolicyFamily
from exactgrpo.policies.inputs import InequalityInput, PolynomialInput, parameter_names, polynomial, polynomial_bounds, table
from exactgrpo.policies.terms import Terms


@dataclass(frozen=True, eq=False)
class Rational(PolicyFamily):
    """pi_theta(y_j|q) = w_j(theta) / sum_i w_i(theta), polynomials over Q.

    Theorems: pirat_pos, pirat_sum, pirat_diff (RatFam.v), rational_family (Instances.v).

    U is the set where every weight, and every further `inequalities` polynomial, is positive.
    """

    rows: Rows
    size: int
    weights: Terms
    inequalities: Terms | None = None
    parameters: tuple[str, ...] = ()
    masses_by_construction = True

    @classmethod
    def of(
        cls,
        weights: Sequence[Sequence[PolynomialInput]],
        *,
        parameters: Sequence[Any] | None = None,
        size: int | None = None,
        inequalities: Sequence[InequalityInput] = (),
    ) -> Rational:
        """Return the family of the weights: weights[prompt][response] is a polynomial in the parameters.

        Polynomials, inequalities and parameters may be written in the forms that `exactgrpo.policies.inputs` lists; with `size`
        in place of `parameters` these are called theta1, theta2, ... Raises PolicyError for a wrong shape or kind, and the
        errors of `numbers.text`, each with its place, such as ``weights[0][1]``.

        >>> family = Rational.of([["t", "1 - t"], ["t^2", "1/2"]], parameters=["t"], inequalities=["t < 1"])
        >>> family.size, family.rows.lengths
        (1, (2, 2))
        """
        names = parameter_names(parameters, size)
        rows = table(weights, "weights")
        flat = [polynomial(w, names, f"weights[{q}][{j}]") for q, row in enumerate(rows) for j, w in enumerate(row)]
        bounds = polynomial_bounds(inequalities, names)
        return cls(
            Rows(map(len, rows)),
            len(names),
            Terms.of_polynomials(flat, len(names)),
            Terms.of_polynomials(bounds, len(names)) if bounds else None,
            tuple(names),
        )

    def at(self, arithmetic: Arithmetic, theta: Any) -> Policy:
        rows = self.rows
        weight, back = self.weights.at(arithmetic, theta)
        inverse = (1 / arithmetic.sums(weight, rows))[rows.owner]
        mass = weight * inverse

        def pullback(cotangent: Any) -> Any:
            mean = arithmetic.sums(mass * cotangent, rows)[rows.owner]
            return back((cotangent - mean) * inverse)

        return Policy(mass, lambda: arithmetic.log(mass), pullback)

    def domain(self, arithmetic: Arithmetic, theta: Any) -> Iterator[Any]:
        if self.inequalities is not None:
            yield self.inequalities.at(arithmetic, theta)[0]
        yield self.weights.at(arithmetic, theta)[0]
