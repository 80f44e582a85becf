"""The reference policy: by its masses, by logits, or as the policy family at a parameter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from exactgrpo.errors import InputError, ReferenceMassError, ThetaError
from exactgrpo.numbers.arithmetic import Arithmetic, Column
from exactgrpo.numbers.expression import Expression
from exactgrpo.numbers.inputs import exact_list, listed, refusal
from exactgrpo.policies.family import PolicyFamily
from exactgrpo.update.domain import check_parameter, shown, sign

Number = Any


class Reference(Protocol):
    """The reference policy: positive on exactly the policy support."""

    def log_mass(self, arithmetic: Arithmetic, family: PolicyFamily) -> Any:
        """log pi_ref(y|q) for all prompts and responses, flat over the family's rows."""

    def check(self, family: PolicyFamily) -> None:
        """Raise ReferenceMassError or ThetaError unless this is a reference for the family."""


@dataclass(frozen=True, eq=False)
class ReferenceMasses(Reference):
    """The reference by its masses: positive, summing to one for each prompt."""

    masses: Column

    @classmethod
    def of(cls, masses: Sequence[Sequence[Number]]) -> ReferenceMasses:
        """Return the reference with masses[prompt][response]. `Problem.of` checks it against the policy support.

        >>> ReferenceMasses.of([["1/2", "1/2"], [1]]).masses
        (Fraction(1, 2), Fraction(1, 2), Fraction(1, 1))
        """
        return cls(_flat(masses, "reference"))

    def log_mass(self, arithmetic: Arithmetic, family: PolicyFamily) -> Any:
        return arithmetic.log(arithmetic.exact(self.masses))

    def check(self, family: PolicyFamily) -> None:
        _check_numbers(self.masses, family.rows.size, "reference", "ReferenceMasses.of", ReferenceMassError)
        for q, row in enumerate(family.rows):
            for j, i in enumerate(row):
                if sign(self.masses[i], f"reference[{q}][{j}] > 0") <= 0:
                    raise ReferenceMassError(f"prompts[{q}].reference[{j}]", shown(self.masses[i]), "a reference mass is positive")
            total = sum((self.masses[i] for i in row), Fraction(0))
            if sign(total - 1, f"sum of reference[{q}] = 1"):
                raise ReferenceMassError(f"prompts[{q}].reference", shown(total), "reference masses sum to one")


@dataclass(frozen=True, eq=False)
class ReferenceLogits(Reference):
    """The reference by logits: mass_j proportional to exp(logit_j)."""

    logits: Column

    @classmethod
    def of(cls, logits: Sequence[Sequence[Number]]) -> ReferenceLogits:
        """Return the reference with logits[prompt][response]. `Problem.of` checks it against the policy support.

        >>> ReferenceLogits.of([[0, "log(2)"]]).logits[0]
        Fraction(0, 1)
        """
        return cls(_flat(logits, "reference"))

    def log_mass(self, arithmetic: Arithmetic, family: PolicyFamily) -> Any:
        logit = arithmetic.exact(self.logits)
        shifted = arithmetic.shift(logit, family.rows)
        return shifted - arithmetic.log(arithmetic.sums(arithmetic.exp(shifted), family.rows))[family.rows.owner]

    def check(self, family: PolicyFamily) -> None:
        _check_numbers(self.logits, family.rows.size, "reference", "ReferenceLogits.of", ReferenceMassError)


@dataclass(frozen=True, eq=False)
class ReferenceParameter(Reference):
    """The reference as the policy family at a parameter in U."""

    theta: Column

    @classmethod
    def of(cls, theta: Sequence[Number]) -> ReferenceParameter:
        """Return the reference at theta. `Problem.of` checks that it lies in U.

        >>> ReferenceParameter.of([0, "1/2"]).theta
        (Fraction(0, 1), Fraction(1, 2))
        """
        return cls(Column(exact_list(theta, "reference.theta", error=ThetaError)))

    def log_mass(self, arithmetic: Arithmetic, family: PolicyFamily) -> Any:
        return family.at(arithmetic, arithmetic.exact(self.theta)).log_mass()

    def check(self, family: PolicyFamily) -> None:
        _check_numbers(self.theta, family.size, "reference.theta", "ReferenceParameter.of", ThetaError, "parameters")
        check_parameter(family, self.theta, "reference.theta")


def _flat(rows: Sequence[Sequence[Number]], place: str) -> Column:
    """The exact numbers of a table [prompt][response] in one column."""
    return Column(
        x
        for q, row in enumerate(listed(rows, place, error=ReferenceMassError))
        for x in exact_list(row, f"{place}[{q}]", error=ReferenceMassError)
    )


def _check_numbers(column: object, size: int, place: str, maker: str, error: type[InputError], what: str = "responses") -> None:
    if not isinstance(column, Column) or not all(isinstance(x, (Fraction, Expression)) for x in column):
        raise refusal(place, column, f"{maker} makes exact numbers of what it is given", error)
    if len(column) != size:
        raise error(place, f"{len(column)} numbers", f"one number for each of the {size} {what}")


