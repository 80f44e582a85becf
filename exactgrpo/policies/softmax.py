"""The softmax family: mass_j proportional to base_j exp(phi_j . theta)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from exactgrpo.errors import PolicyError
from exactgrpo.numbers.arithmetic import Arithmetic, Column, Exact, Matrix, Rows
from exactgrpo.numbers.decision import decide_sign
from exactgrpo.policies.family import Policy, PolicyFamily
from exactgrpo.policies.terms import Polynomial, Terms


@dataclass(frozen=True, eq=False)
class Softmax(PolicyFamily):
    """pi_theta(y_j|q) = base_j exp(phi_j . theta) / sum_i base_i exp(phi_i . theta), with grad pi_j = pi_j (phi_j - E phi).

    U is R^d, or the part of it where every `inequalities` polynomial is positive (an open box or polytope).
    """

    rows: Rows
    size: int
    features: Matrix
    base: Column | None = None
    inequalities: Terms | None = None
    masses_by_construction = True

    @classmethod
    def of(
        cls,
        features: Sequence[Sequence[Sequence[Exact | int]]],
        *,
        size: int,
        base: Sequence[Sequence[Exact | int]] | None = None,
        inequalities: Sequence[Polynomial] = (),
    ) -> Softmax:
        """features[prompt][response] is the row phi of `size` exact numbers; base[prompt][response] is positive (default 1)."""
        rows = Rows(map(len, features))
        for q, matrix in enumerate(features):
            for j, row in enumerate(matrix):
                if len(row) != size:
                    raise PolicyError(f"features[{q}][{j}]", len(row), f"a row of features has one number for each of the {size} parameters")
        column = None
        if base is not None:
            if [len(b) for b in base] != list(rows.lengths):
                raise PolicyError("base", [len(b) for b in base], "base has one number for each response")
            column = Column(b for one in base for b in one)
            for q, one in enumerate(base):
                for j, b in enumerate(one):
                    if decide_sign(b, question=f"base[{q}][{j}] > 0").value <= 0:
                        raise PolicyError(f"base[{q}][{j}]", str(b), "a base mass is positive")
        bounds = Terms.of_polynomials(inequalities, size) if inequalities else None
        return cls(rows, size, Matrix((row for matrix in features for row in matrix), size), column, bounds)

    def at(self, arithmetic: Arithmetic, theta: Any) -> Policy:
        rows = self.rows
        logit = arithmetic.shift(arithmetic.linear(self.features, theta), rows)
        weight = arithmetic.exp(logit)
        if self.base is not None:
            weight = weight * arithmetic.exact(self.base)
        total = arithmetic.sums(weight, rows)
        mass = weight * (1 / total)[rows.owner]

        def log_mass() -> Any:
            log_weight = logit if self.base is None else logit + arithmetic.log(arithmetic.exact(self.base))
            return log_weight - arithmetic.log(total)[rows.owner]

        def pullback(cotangent: Any) -> Any:
            mean = arithmetic.sums(mass * cotangent, rows)[rows.owner]
            return arithmetic.adjoint(self.features, mass * (cotangent - mean))

        return Policy(mass, log_mass, pullback)

    def domain(self, arithmetic: Arithmetic, theta: Any) -> Iterator[Any]:
        if self.inequalities is not None:
            yield self.inequalities.at(arithmetic, theta)[0]
