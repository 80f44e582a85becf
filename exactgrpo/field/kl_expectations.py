"""What the KL estimators estimate: their mean and the mean of their gradient, on and off policy, and the gradients to compare with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exactgrpo.errors import InputError
from exactgrpo.field.inputs import positive_pmf, sum_of, tangent
from exactgrpo.field.kl import ESTIMATORS, derivative_in_log_mass, named
from exactgrpo.numbers.real import Real

WEIGHTS = ("none", "ratio", "detached ratio")


def expected_value(
    estimator: Any, policy: Sequence[Any], reference: Sequence[Any], *, sampler: Sequence[Any] | None = None, weights: str = "none"
) -> Real:
    """E over y ~ `sampler` of w(y) k(y); w = 1 for "none", else pi(y)/sampler(y). Without a sampler, draws are from the policy.

    `estimator` is "k1", "k2" or "k3" (or the function), and all masses are positive and sum to one. Source: Schulman, Approximating
    KL divergence (2020). UndecidedError only if irrational masses leave a sum undecided.

    >>> expected_value("k3", ["1/2", "1/2"], ["1/4", "3/4"])
    Real('1/2*log(4/3)')
    """
    kind = ESTIMATORS[named(estimator)]
    pi, ref, mu = _laws(policy, reference, sampler)
    weighted = pi if _checked(weights) != "none" else mu
    return sum_of([w * kind(p, r) for w, p, r in zip(weighted, pi, ref, strict=True)])


def expected_gradient(
    estimator: Any,
    policy: Sequence[Any],
    derivatives: Sequence[Any],
    reference: Sequence[Any],
    *,
    sampler: Sequence[Any] | None = None,
    weights: str = "none",
) -> Real:
    """E over y ~ `sampler` of d/dt (w(y) k(y)), as automatic differentiation of the sampled penalty would average.

    `derivatives` holds d pi(y)/dt, which sum to zero; the sampler and the reference do not move, not even if the sampler is the
    policy. `weights` is "none" (w = 1), "ratio" (w = pi/sampler, differentiated) or "detached ratio" (the same, held fixed). Source:
    ours, by differentiating each term. UndecidedError only if irrational masses leave a sum undecided.

    >>> half, slopes, reference = ["1/2", "1/2"], ["1/4", "-1/4"], ["1/4", "3/4"]
    >>> [expected_gradient(k, half, slopes, reference) for k in ("k1", "k2", "k3")]
    [Real('0'), Real('1/4*log(3)'), Real('1/4')]
    >>> expected_gradient("k3", half, slopes, reference, weights="ratio")
    Real('1/4*log(3)')
    """
    name = named(estimator)
    pi, ref, mu = _laws(policy, reference, sampler)
    slopes = tangent(derivatives, "derivatives", length=len(pi))
    mode, total = _checked(weights), Real.of(0)
    for p, d, r, m in zip(pi, slopes, ref, mu, strict=True):
        drawn = m if mode == "none" else p
        total = total + drawn * derivative_in_log_mass(name, p, r) * d / p
        if mode == "ratio":
            total = total + d * ESTIMATORS[name](p, r)
    return total


def kl_gradient(policy: Sequence[Any], derivatives: Sequence[Any], reference: Sequence[Any]) -> Real:
    """d/dt KL(pi || pi_ref) = sum_y pi'(y) log(pi(y)/pi_ref(y)), since sum pi' = 0.

    >>> kl_gradient(["1/2", "1/2"], ["1/4", "-1/4"], ["1/4", "3/4"])
    Real('1/4*log(3)')
    """
    pi, ref, _ = _laws(policy, reference, None)
    slopes = tangent(derivatives, "derivatives", length=len(pi))
    return sum_of([d * (p / r).log() for p, d, r in zip(pi, slopes, ref, strict=True)])


def kl_gradient_from_policy(policy: Sequence[Any], derivatives: Sequence[Any], reference: Sequence[Any]) -> Real:
    """d/dt KL(pi_ref || pi) = - sum_y pi_ref(y) pi'(y)/pi(y), the other direction.

    >>> kl_gradient_from_policy(["1/2", "1/2"], ["1/4", "-1/4"], ["1/4", "3/4"])
    Real('1/4')
    """
    pi, ref, _ = _laws(policy, reference, None)
    slopes = tangent(derivatives, "derivatives", length=len(pi))
    return -sum_of([r * d / p for p, d, r in zip(pi, slopes, ref, strict=True)])


def _laws(policy: Any, reference: Any, sampler: Any) -> tuple[list[Real], list[Real], list[Real]]:
    pi = positive_pmf(policy, "policy")
    ref = positive_pmf(reference, "reference", length=len(pi))
    return pi, ref, pi if sampler is None else positive_pmf(sampler, "sampler", length=len(pi))


def _checked(weights: Any) -> str:
    if not isinstance(weights, str) or weights not in WEIGHTS:
        raise InputError("weights", weights, "none, ratio or detached ratio")
    return weights
