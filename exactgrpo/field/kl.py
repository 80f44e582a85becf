"""Estimators of KL(policy || reference) from one draw: k1, k2 and k3, with their derivatives."""

from __future__ import annotations

from typing import Any

from exactgrpo.errors import InputError
from exactgrpo.field.inputs import positive
from exactgrpo.numbers.real import Real


def k1(policy: Any, reference: Any) -> Real:
    """k1 = log(pi(y) / pi_ref(y)) for the masses of the drawn response y; under pi its mean is KL(pi || pi_ref).

    Source: Schulman, Approximating KL divergence (2020), "k1". InputError unless both masses are positive.

    >>> k1("1/2", "1/4")
    Real('log(2)')
    """
    return _ratio(policy, reference).log()


def k2(policy: Any, reference: Any) -> Real:
    """k2 = (1/2) log(pi(y) / pi_ref(y))^2: a biased value, whose gradient under pi is that of KL(pi || pi_ref).

    Source: Schulman, Approximating KL divergence (2020), "k2". InputError unless both masses are positive.

    >>> k2("1/2", "1/4")
    Real('1/2*log(2)^2')
    """
    return _ratio(policy, reference).log() ** 2 / 2


def k3(policy: Any, reference: Any) -> Real:
    """k3 = r - 1 - log r with r = pi_ref(y) / pi(y): never negative, and under pi its mean is KL(pi || pi_ref).

    Its gradient under pi is that of KL(pi_ref || pi) instead. Source: Schulman, Approximating KL divergence (2020), "k3"; the penalty
    of Shao et al., DeepSeekMath (2024), equation 4. InputError unless both masses are positive.

    >>> k3("1/2", "1/4"), k3("1/2", "3/4")
    (Real('-1/2 + log(2)'), Real('1/2 + log(2/3)'))
    """
    ratio = _ratio(policy, reference)
    return 1 / ratio - 1 + ratio.log()


def derivative_in_log_mass(estimator: Any, policy: Any, reference: Any) -> Real:
    """dk/d(log pi(y)) of k1, k2 or k3: 1, log(pi/pi_ref), 1 - pi_ref/pi; the reference does not move.

    >>> [derivative_in_log_mass(k, "1/2", "1/4") for k in ("k1", "k2", "k3")]
    [Real('1'), Real('log(2)'), Real('1/2')]
    """
    ratio = _ratio(policy, reference)
    match named(estimator):
        case "k1":
            return Real.of(1)
        case "k2":
            return ratio.log()
        case _:
            return 1 - 1 / ratio


ESTIMATORS = {"k1": k1, "k2": k2, "k3": k3}


def named(estimator: Any) -> str:
    """The name of an estimator, checked."""
    name = getattr(estimator, "__name__", estimator)
    if not isinstance(name, str) or name not in ESTIMATORS:
        raise InputError("estimator", estimator, "k1, k2 or k3")
    return name


def _ratio(policy: Any, reference: Any) -> Real:
    return positive(policy, "policy", "a mass is positive") / positive(reference, "reference", "a mass is positive")
