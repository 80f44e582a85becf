"""KL(policy || reference) as an exact finite sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exactgrpo.errors import InputError, PolicyError, ReferenceMassError
from exactgrpo.numbers.inputs import listed
from exactgrpo.numbers.real import Real


def kl_policy_from_reference(policy: Sequence[Any], reference: Sequence[Any]) -> Real:
    """KL(pi || pi_ref) = sum_y pi(y) log(pi(y) / pi_ref(y)), with 0 log 0 = 0; in nats.

    Both are probability mass functions of one length, given as exact numbers (int, Fraction, Decimal, text, Real). Where the
    policy is positive and the reference zero, the sum is infinite: ReferenceMassError. Much of the field calls this the reverse
    KL. UndecidedError if the sign or the sum of irrational masses cannot be decided.
    Theorems: KL_nonneg, KL_eq0_iff (KL.v).

    >>> kl_policy_from_reference(["1/2", "1/2"], ["1/4", "3/4"])
    Real('1/2*log(4/3)')
    """
    pi = _masses(policy, "policy", PolicyError)
    ref = _masses(reference, "reference", ReferenceMassError)
    if len(pi) != len(ref):
        raise InputError("reference", f"{len(ref)} masses", f"one mass for each of the {len(pi)} masses of the policy")
    total = Real.of(0)
    for j, (p, r) in enumerate(zip(pi, ref, strict=True)):
        if p == 0:
            continue
        if r == 0:
            raise ReferenceMassError(f"reference[{j}]", "0", "positive wherever the policy is: the divergence is infinite")
        total = total + p * (p / r).log()
    return total


def _masses(masses: Sequence[Any], name: str, error: type[InputError]) -> list[Real]:
    exact = [Real.of(x, f"{name}[{j}]") for j, x in enumerate(listed(masses, name, error=error))]
    for j, x in enumerate(exact):
        if x < 0:
            raise error(f"{name}[{j}]", repr(x), "a mass is not negative")
    total = sum(exact, Real.of(0))
    if total != 1:
        raise error(name, f"sum {total!r}", "masses sum to one")
    return exact
