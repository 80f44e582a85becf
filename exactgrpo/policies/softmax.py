"""The softmax family: mass_j proportional to base_j exp(phi_j . theta)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from exactgrpo.errors import PolicyError
from exactgrpo.numbers.arithmetic import Arithmetic, Column, Matrix, Rows
from exactgrpo.numbers.decision import decide_sign
from exactgrpo.numbers.inputs import exact_list, listed
from exactgrpo.policies.family import Policy, PolicyFamily
from exactgrpo.policies.inputs import InequalityInput, Number, described, parameter_names, polynomial_bounds, table
from exactgrpo.policies.terms import Terms


@dataclass(frozen=True, eq=False)
class Softmax(PolicyFamily):
    """pi_theta(y_j|q) = base_j exp(phi_j . theta) / sum_i base_i exp(phi_i . theta), with grad pi_j = pi_j (phi_j - E phi).

    Theorems: softmax_pos, softmax_sum, softmax_diff (Softmax.v), softmax_family (Instances.v).

    U is R^d, or the part of it where every `inequalities` polynomial is positive (an open box or polytope).
    """

    rows: Rows
    size: int
    features: Matrix
    base: Column | None = None
    inequalities: Terms | None = None
    parameters: tuple[str, ...] = ()
    masses_by_construction = True

    @classmethod
    def of(
        cls,
        features: Sequence[Sequence[Sequence[Number]]],
        *,
        parameters: Sequence[Any] | None = None,
        size: int | None = None,
        base: Sequence[Sequence[Number]] | None = None,
        inequalities: Sequence[InequalityInput] = (),
    ) -> Softmax:
        """Return the family of the features: features[prompt][response] is the row phi, one exact number for each parameter.

        base[prompt][response] is positive (1 where it is missing). Numbers are what `exactgrpo.numbers.rational.exact` accepts;
        inequalities may be written in the forms that `exactgrpo.policies.inputs` lists, in the names `parameters`, or
        theta1, theta2, ... without them. Raises PolicyError for a wrong shape or a base that is not positive, and the errors of
        `exact`, each with its place, such as ``features[0][1][2]``; UndecidedError if the sign of a base cannot be decided.

        >>> family = Softmax.of([[["1/2", 0], [0, 1]]], base=[[1, "sqrt(2)"]], inequalities=["theta1 < 5"])
        >>> family.size, family.features.rows
        (2, [[(0, Fraction(1, 2))], [(1, Fraction(1, 1))]])
        """
        matrices = [
            [listed(row, f"features[{q}][{j}]", error=PolicyError) for j, row in enumerate(matrix)]
            for q, matrix in enumerate(table(features, "features"))
        ]
        names = parameter_names(parameters, len(matrices[0][0]) if parameters is None and size is None else size)
        for q, matrix in enumerate(matrices):
            for j, row in enumerate(matrix):
                if len(row) != len(names):
                    rule = f"a row of features has one number for each of the {len(names)} parameters"
                    raise PolicyError(f"features[{q}][{j}]", f"{len(row)} numbers", rule)
        phi = [exact_list(row, f"features[{q}][{j}]") for q, matrix in enumerate(matrices) for j, row in enumerate(matrix)]
        bounds = polynomial_bounds(inequalities, names)
        return cls(
            Rows(map(len, matrices)),
            len(names),
            Matrix(phi, len(names)),
            None if base is None else _base(base, list(map(len, matrices))),
            Terms.of_polynomials(bounds, len(names)) if bounds else None,
            tuple(names),
        )

    def at(self, arithmetic: Arithmetic, theta: Any) -> Policy:
        rows = self.rows
        logit = arithmetic.shift(arithmetic.linear(self.features, theta), rows)
        weight = arithmetic.exp(logit)
        if self.base is not None:
            weight = weight * arithmetic.exact(self.base)
        total = arithmetic.sums(weight, rows)
        mass = weight * (1 / total)[rows.owner]

        def log_weight() -> Any:
            return logit if self.base is None else logit + arithmetic.log(arithmetic.exact(self.base))

        def log_mass() -> Any:
            return log_weight() - arithmetic.log(total)[rows.owner]

        def pullback(cotangent: Any) -> Any:
            mean = arithmetic.sums(mass * cotangent, rows)[rows.owner]
            return arithmetic.adjoint(self.features, mass * (cotangent - mean))

        return Policy(mass, log_mass, pullback, log_weight)

    def domain(self, arithmetic: Arithmetic, theta: Any) -> Iterator[Any]:
        if self.inequalities is not None:
            yield self.inequalities.at(arithmetic, theta)[0]


def _base(base: Sequence[Sequence[Number]], lengths: Sequence[int]) -> Column:
    rows = table(base, "base")
    if [len(row) for row in rows] != lengths:
        raise PolicyError("base", f"rows of {described(map(len, rows))}", f"base has one number for each response: {described(lengths)}")
    masses = [exact_list(row, f"base[{q}]") for q, row in enumerate(rows)]
    for q, row in enumerate(masses):
        for j, mass in enumerate(row):
            place = f"base[{q}][{j}]"
            if decide_sign(mass, question=f"{place} > 0").value <= 0:
                raise PolicyError(place, rows[q][j], "a base mass is positive")
    return Column(mass for row in masses for mass in row)
