"""Importance ratios of one response from its token masses, other than their product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exactgrpo.errors import InputError
from exactgrpo.field.inputs import positive, positives
from exactgrpo.numbers.real import Real
from exactgrpo.update.ratio import sequence_ratio


def token_ratios(policy: Sequence[Any], old: Sequence[Any]) -> tuple[Real, ...]:
    """rho_t = pi(y_t | q, y_<t)/pi_old(y_t | q, y_<t), one for each token; masses are positive.

    Source: Shao et al., DeepSeekMath (2024), equation 3. Their product is the sequence ratio: token_ratio_eq (Tokens.v).

    >>> token_ratios(["3/4", "1/3"], ["1/2", "1/2"])
    (Real('3/2'), Real('2/3'))
    """
    new = positives(policy, "policy", rule="a token mass is positive")
    rule = f"one mass for each of the {len(new)} tokens"
    if len(old) != len(new):
        raise InputError("old", f"{len(old)} masses", rule)
    return tuple(a / b for a, b in zip(new, positives(old, "old", rule="a token mass is positive"), strict=True))


def geometric_mean_ratio(policy: Sequence[Any], old: Sequence[Any]) -> Real:
    """s = (prod_t rho_t)^(1/L) over the L tokens of a response: the exponential of the mean log-ratio.

    Not a change of measure: for responses of one length its mean under the old policy is below one unless the policies agree.
    Source: Zheng et al., Group sequence policy optimization (2025), section 4.1. Theorem: geometric_ratio_mean (GeometricRatio.v).

    >>> geometric_mean_ratio(["1/2", "1/2"], ["1/4", "1/4"]), geometric_mean_ratio(["1/2", "1/2"], ["1/4", "1/2"])
    (Real('2'), Real('sqrt(2)'))
    """
    return sequence_ratio(policy, old).root(len(policy))


def truncated_ratio(rho: Any, *, ceiling: Any) -> Real:
    """min(ceiling, rho) for rho > 0, ceiling > 0; its mean is 1 - sum_y (pi(y) - ceiling pi_old(y))_+ .

    Source: Espeholt et al., IMPALA (2018), section 4.1. Theorem: truncated_ratio_mean (Premise.v).

    >>> truncated_ratio(3, ceiling=1)
    Real('1')
    """
    ratio, bound = positive(rho, "rho", "a ratio of positive masses is positive"), positive(ceiling, "ceiling", "a ceiling is positive")
    return ratio if ratio <= bound else bound
