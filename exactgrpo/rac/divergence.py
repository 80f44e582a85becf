"""Bounds on the total variation between two policies from their KL divergence, each decided on the policies at hand.

Everywhere KL is KL(policy || reference) = sum_y pi(y) log(pi(y)/pi_ref(y)), in nats. The group-relative update calls this direction the
forward KL, much of the field the reverse one. The other direction bounds the same total variation by another number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

from exactgrpo.errors import InputError
from exactgrpo.field.inputs import ZERO, greatest_of, least_of, reals, sum_of
from exactgrpo.numbers.real import Real
from exactgrpo.update.divergence import kl_policy_from_reference

Name = Literal["pinsker", "bretagnolle-huber", "minimum", "weak bretagnolle-huber"]
NAMES: tuple[Name, ...] = get_args(Name)
_MAX_PRODUCT_BITS = 1 << 14


@dataclass(frozen=True, slots=True)
class TotalVariationBound:
    """One bound at one pair of policies: its `name`, the `total_variation`, the `bound`, and whether the former is at most the latter."""

    name: Name
    total_variation: Real
    bound: Real
    holds: bool


def total_variation(policy: Sequence[Any], reference: Sequence[Any]) -> Real:
    """TV = (1/2) sum_y |pi(y) - pi_ref(y)|, between 0 and 1; masses are not negative and sum to one (InputError).

    UndecidedError if irrational masses leave their sum or the sign of a difference undecided.

    >>> total_variation(["1/2", "1/2"], ["1/4", "3/4"])
    Real('1/4')
    """
    pi, ref = _laws(policy, reference)
    return sum_of([greatest_of(ZERO, p - r) for p, r in zip(pi, ref, strict=True)])


def exp_minus_kl(policy: Sequence[Any], reference: Sequence[Any]) -> Real:
    """exp(-KL) = prod_y (pi_ref(y)/pi(y))^pi(y): for rational masses an algebraic number, made without a logarithm.

    ReferenceMassError where the policy is positive and the reference is not: KL is infinite there.

    >>> exp_minus_kl(["1/2", "1/2"], ["1/4", "3/4"])
    Real('sqrt(3)/2')
    """
    kl = kl_policy_from_reference(policy, reference)
    masses = [(p.as_fraction(), r.as_fraction()) for p, r in zip(*_laws(policy, reference), strict=True)]
    rational = [(p, r) for p, r in masses if p is not None and r is not None and p]
    if not all(p is not None and r is not None for p, r in masses):
        return (-kl).exp()
    index = math.lcm(*(p.denominator for p, _ in rational))
    if index * max(_bits(p) + _bits(r) for p, r in rational) > _MAX_PRODUCT_BITS:  # the same number, with logarithms
        return (-kl).exp()
    return Real(math.prod(((r / p) ** int(p * index) for p, r in rational), start=Fraction(1))).root(index)


def pinsker(policy: Sequence[Any], reference: Sequence[Any]) -> Real:
    """sqrt(KL/2), Pinsker's bound on the total variation; it says nothing once KL >= 2.

    Masses are not negative, and the reference is positive wherever the policy is (ReferenceMassError). UndecidedError if irrational masses
    leave the sign of KL undecided. Source: Tsybakov, Introduction to nonparametric estimation (2009), lemma 2.5. Theorem: pinsker
    (Divergence.v), for a positive reference.

    >>> pinsker(["1/2", "1/2"], ["1/4", "3/4"])
    Real('sqrt(log(4/3))/2')
    """
    return _squared_pinsker(policy, reference).sqrt()


def bretagnolle_huber(policy: Sequence[Any], reference: Sequence[Any]) -> Real:
    """sqrt(1 - exp(-KL)), the bound of Bretagnolle and Huber on the total variation: below 1 however large KL is.

    Masses and errors are those of `pinsker`. Source: Tsybakov (2009), lemma 2.6 and equation 2.25. Theorem: bretagnolle_huber
    (Divergence.v), for a positive reference.

    >>> bretagnolle_huber(["1/2", "1/2"], ["1/5", "4/5"])
    Real('sqrt(5)/5')
    """
    return _squared_bretagnolle_huber(policy, reference).sqrt()


def weak_bretagnolle_huber(policy: Sequence[Any], reference: Sequence[Any]) -> Real:
    """1 - exp(-KL)/2, the form of the bound of Bretagnolle and Huber without a square root; never the smaller of the two.

    Masses and errors are those of `pinsker`. Source: Tsybakov (2009), equation 2.25; sqrt(1 - x) <= 1 - x/2 gives it from the other.

    >>> weak_bretagnolle_huber(["1/2", "1/2"], ["1/5", "4/5"])
    Real('3/5')
    """
    return 1 - exp_minus_kl(policy, reference) / 2


def least_bound(policy: Sequence[Any], reference: Sequence[Any]) -> Real:
    """min(sqrt(KL/2), sqrt(1 - exp(-KL))), the per-step bound of Retroactive Advantage Correction.

    The first is the smaller one up to KL = 1.59362..., the second beyond: `crossing`. Masses and errors are those of `pinsker`. Theorem:
    TV_bound (Divergence.v), for a positive reference.

    >>> least_bound(["1/2", "1/2"], ["1/100", "99/100"]) == bretagnolle_huber(["1/2", "1/2"], ["1/100", "99/100"])
    True
    """
    return least_of(_squared_pinsker(policy, reference), _squared_bretagnolle_huber(policy, reference)).sqrt()


def decide_bound(policy: Sequence[Any], reference: Sequence[Any], *, name: Name = "minimum") -> TotalVariationBound:
    """Whether the total variation is at most the bound: both numbers and the decision, at these two policies.

    For the policy that uses late rewards against the one that does not, either may be the `policy`: the total variation is the same, and
    KL(policy || reference) is not. Where the reference is positive the bounds are theorems (see each), so a decision that fails would be
    an error of ours. Masses and errors are those of `pinsker`. Rational masses are decided, unless they agree to thousands of digits
    without being equal: then UndecidedError.

    >>> seen = decide_bound(["1/2", "1/2"], ["1/5", "4/5"], name="bretagnolle-huber")
    >>> seen.total_variation, seen.bound, seen.holds
    (Real('3/10'), Real('sqrt(5)/5'), True)
    """
    if not isinstance(name, str) or name not in _BOUNDS:
        raise InputError("name", name, f"one of {', '.join(NAMES)}")
    variation, bound = total_variation(policy, reference), _BOUNDS[name](policy, reference)
    return TotalVariationBound(name, variation, bound, variation <= bound)


def decide_bounds(policy: Sequence[Any], reference: Sequence[Any]) -> tuple[TotalVariationBound, ...]:
    """`decide_bound` for all four bounds.

    >>> [(seen.name, seen.bound.digits(6)) for seen in decide_bounds(["1/2", "1/2"], ["1/5", "4/5"])][:2]
    [('pinsker', '0.334024'), ('bretagnolle-huber', '0.447214')]
    """
    return tuple(decide_bound(policy, reference, name=name) for name in NAMES)


_BOUNDS: dict[str, Callable[[Sequence[Any], Sequence[Any]], Real]] = {
    "pinsker": pinsker,
    "bretagnolle-huber": bretagnolle_huber,
    "minimum": least_bound,
    "weak bretagnolle-huber": weak_bretagnolle_huber,
}


def pmf(values: Any, place: str, *, length: int | None = None) -> list[Real]:
    """A probability mass function, zeros allowed.

    >>> pmf([1, 0], "policy")
    [Real('1'), Real('0')]
    """
    masses = reals(values, place, length=length)
    for i, x in enumerate(masses):
        if x < 0:
            raise InputError(f"{place}[{i}]", repr(x), "a mass is not negative")
    if sum_of(masses) != 1:
        raise InputError(place, f"sum {sum_of(masses)!r}", "masses sum to one")
    return masses


def _laws(policy: Any, reference: Any) -> tuple[list[Real], list[Real]]:
    pi = pmf(policy, "policy")
    return pi, pmf(reference, "reference", length=len(pi))


def _squared_pinsker(policy: Any, reference: Any) -> Real:
    return kl_policy_from_reference(policy, reference) / 2


def _squared_bretagnolle_huber(policy: Any, reference: Any) -> Real:
    return 1 - exp_minus_kl(policy, reference)


def _bits(x: Fraction) -> int:
    return x.numerator.bit_length() + x.denominator.bit_length()
