"""The rational family: mass_j = w_j(theta) / sum w(theta) with polynomial weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from exactgrpo.numbers.arithmetic import Arithmetic, Rows
from exactgrpo.policies.family import Policy, PolicyFamily
from exactgrpo.policies.terms import Polynomial, Terms


@dataclass(frozen=True, eq=False)
class Rational(PolicyFamily):
    """pi_theta(y_j|q) = w_j(theta) / sum_i w_i(theta), polynomials over Q.

    U is the set where every weight, and every further `inequalities` polynomial, is positive.
    """

    rows: Rows
    size: int
    weights: Terms
    inequalities: Terms | None = None
    masses_by_construction = True

    @classmethod
    def of(cls, weights: Sequence[Sequence[Polynomial]], *, size: int, inequalities: Sequence[Polynomial] = ()) -> Rational:
        """weights[prompt][response] is a polynomial in `size` parameters."""
        flat = [w for one in weights for w in one]
        bounds = Terms.of_polynomials(inequalities, size) if inequalities else None
        return cls(Rows(map(len, weights)), size, Terms.of_polynomials(flat, size), bounds)

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
