"""The simplex family: theta holds the first n-1 masses of each prompt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from exactgrpo.numbers.arithmetic import Arithmetic, Exact, Rows
from exactgrpo.policies.family import Policy, PolicyFamily
from exactgrpo.policies.terms import Polynomial, Terms


@dataclass(frozen=True, eq=False)
class Simplex(PolicyFamily):
    """pi_theta(y_j|q) = theta_{q,j} for j < n_q, and one minus their sum for the last response; U is the open simplex."""

    rows: Rows
    size: int
    masses: Terms
    inequalities: Terms | None = None
    masses_by_construction = True

    @classmethod
    def of(cls, lengths: Sequence[int], *, inequalities: Sequence[Polynomial] = ()) -> Simplex:
        """lengths[prompt] is the number of responses; theta has sum(lengths) - len(lengths) entries, prompt by prompt.

        >>> Simplex.of([3, 2]).size
        3
        """
        size = sum(lengths) - len(lengths)
        one, start = Fraction(1), 0
        terms: list[list[tuple[Exact, Sequence[int]]]] = []
        for length in lengths:
            own = range(start, start + length - 1)
            terms += [[(one, [k])] for k in own]
            terms.append([(one, []), *((-one, [k]) for k in own)])
            start += length - 1
        bounds = Terms.of_polynomials(inequalities, size) if inequalities else None
        return cls(Rows(lengths), size, Terms(terms, size), bounds)

    def at(self, arithmetic: Arithmetic, theta: Any) -> Policy:
        mass, pullback = self.masses.at(arithmetic, theta)
        return Policy(mass, lambda: arithmetic.log(mass), pullback)

    def domain(self, arithmetic: Arithmetic, theta: Any) -> Iterator[Any]:
        if self.inequalities is not None:
            yield self.inequalities.at(arithmetic, theta)[0]
        yield self.masses.at(arithmetic, theta)[0]
