"""The simplex family: theta holds the first n-1 masses of each prompt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from exactgrpo.errors import LimitError, PolicyError
from exactgrpo.numbers.arithmetic import Arithmetic, Exact, Rows
from exactgrpo.numbers.inputs import listed, whole
from exactgrpo.policies.family import Policy, PolicyFamily
from exactgrpo.policies.inputs import InequalityInput, parameter_names, polynomial_bounds
from exactgrpo.policies.protocol import MAX_RESPONSES
from exactgrpo.policies.terms import Terms


@dataclass(frozen=True, eq=False)
class Simplex(PolicyFamily):
    """pi_theta(y_j|q) = theta_{q,j} for j < n_q, and one minus their sum for the last response; U is the open simplex.

    Theorems: simplex_masses, simplex_domain, simplex_family (Simplex.v).
    """

    rows: Rows
    size: int
    masses: Terms
    inequalities: Terms | None = None
    parameters: tuple[str, ...] = ()
    masses_by_construction = True

    @classmethod
    def of(
        cls, lengths: Sequence[int], *, parameters: Sequence[Any] | None = None, inequalities: Sequence[InequalityInput] = ()
    ) -> Simplex:
        """Return the family of these supports: lengths[prompt] is the number of responses.

        theta has sum(lengths) - len(lengths) entries, prompt by prompt; they are called theta1, theta2, ... where `parameters`
        does not name them. Inequalities may be written in the forms that `exactgrpo.policies.inputs` lists. Raises PolicyError for
        lengths that are no positive integers, LimitError for more than a million responses.

        >>> Simplex.of([3, 2], inequalities=["theta1 < 1/2"]).size
        3
        """
        lengths = [
            whole(n, f"lengths[{q}]", least=1, error=PolicyError) for q, n in enumerate(listed(lengths, "lengths", error=PolicyError))
        ]
        if not lengths:
            raise PolicyError("lengths", [], "there is at least one prompt")
        if sum(lengths) > MAX_RESPONSES:
            raise LimitError("lengths", sum(lengths), f"at most {MAX_RESPONSES} responses")
        size = sum(lengths) - len(lengths)
        names = parameter_names(parameters, size)
        one, start = Fraction(1), 0
        terms: list[list[tuple[Exact, Sequence[int]]]] = []
        for length in lengths:
            own = range(start, start + length - 1)
            terms += [[(one, [k])] for k in own]
            terms.append([(one, []), *((-one, [k]) for k in own)])
            start += length - 1
        bounds = polynomial_bounds(inequalities, names)
        return cls(Rows(lengths), size, Terms(terms, size), Terms.of_polynomials(bounds, size) if bounds else None, tuple(names))

    def at(self, arithmetic: Arithmetic, theta: Any) -> Policy:
        mass, pullback = self.masses.at(arithmetic, theta)
        return Policy(mass, lambda: arithmetic.log(mass), pullback)

    def domain(self, arithmetic: Arithmetic, theta: Any) -> Iterator[Any]:
        if self.inequalities is not None:
            yield self.inequalities.at(arithmetic, theta)[0]
        yield self.masses.at(arithmetic, theta)[0]
