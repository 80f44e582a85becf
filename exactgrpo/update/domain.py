"""Checks of exact data: whether a parameter lies in the open domain U of a family, clipping thresholds, signs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from exactgrpo.errors import PolicyError, ThetaError, UpdateError
from exactgrpo.numbers.arithmetic import Arithmetic, Column, Exact
from exactgrpo.numbers.decision import decide_sign
from exactgrpo.numbers.ladder import Execution
from exactgrpo.numbers.rational import exact
from exactgrpo.numbers.real import Real
from exactgrpo.numbers.symbols import node
from exactgrpo.policies.family import PolicyFamily


def sign(x: Exact, question: str) -> int:
    """The decided sign of one exact number."""
    if isinstance(x, Fraction):
        return (x > 0) - (x < 0)
    return decide_sign(x, question=question).value


def shown(x: Exact) -> object:
    """An exact number as the value of an error."""
    if isinstance(x, Fraction):
        return str(x) if max(x.numerator.bit_length(), x.denominator.bit_length()) < 2000 else x
    return repr(Real(node(x)))


def _shown_parameter(theta: Column) -> str:
    texts = ["a long fraction" if isinstance(value, Fraction) else str(value) for value in map(shown, theta[:5])]
    return ", ".join(texts + ["..."] * (len(theta) > 5))


def check_parameter(family: PolicyFamily, theta: Column, place: str) -> None:
    """theta lies in U; for a family that is not one of ours also: its masses there are positive and sum to one."""
    if len(theta) != family.size:
        raise ThetaError(place, f"{len(theta)} numbers", f"one number for each of the {family.size} parameters")

    def program(arithmetic: Arithmetic) -> tuple[str, int] | None:
        point = arithmetic.exact(theta)
        for stage, quantity in enumerate(family.domain(arithmetic, point)):
            outside = (arithmetic.signs((place, "domain", stage), quantity, quantity * 0) <= 0).nonzero()[0]
            if len(outside):
                return "domain", int(outside[0])
        if not family.masses_by_construction:
            mass = family.at(arithmetic, point).mass
            bad = (arithmetic.signs((place, "mass"), mass, mass * 0) <= 0).nonzero()[0]
            if len(bad):
                return "mass", int(bad[0])
            total = arithmetic.sums(mass, family.rows)
            off = arithmetic.signs((place, "sum"), total, total * 0 + 1).nonzero()[0]
            if len(off):
                return "sum", int(off[0])
        return None

    execution = Execution(program, describe=lambda key, i: f"{place}: sign of {key[1]} condition {i + 1}")
    if execution.undecided is not None:
        raise execution.undecided
    if execution.outcome is not None:
        what, i = execution.outcome
        if what == "domain":
            raise ThetaError(place, _shown_parameter(theta), f"lies in the open domain U: strict condition {i + 1} fails")
        rule = f"the masses of prompt {i + 1} sum to one" if what == "sum" else f"mass {i + 1} is positive"
        raise PolicyError(place, _shown_parameter(theta), rule)


def thresholds(epsilon: Any, place: str) -> tuple[Exact, Exact]:
    """The lower and the upper clipping threshold of one number in (0, 1), or of a pair whose upper one may be larger."""
    is_pair = isinstance(epsilon, (list, tuple))
    if is_pair and len(epsilon) != 2:
        raise UpdateError(place, f"{len(epsilon)} numbers", "one number, or the pair (epsilon_low, epsilon_high)")
    places = (f"{place}_low", f"{place}_high") if is_pair else (place, place)
    low, high = (exact(x, at) for x, at in zip(epsilon if is_pair else (epsilon, epsilon), places, strict=True))
    if sign(low, "epsilon > 0") <= 0 or sign(low - 1, "epsilon < 1") >= 0:
        raise UpdateError(places[0], shown(low), "0 < epsilon < 1")
    if is_pair and sign(high, "epsilon_high > 0") <= 0:
        raise UpdateError(places[1], shown(high), "epsilon_high > 0")
    return low, high
