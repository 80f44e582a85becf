"""V-trace: value targets and advantages from one off-policy trajectory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exactgrpo.field.inputs import least_of, positive, positives
from exactgrpo.field.returns import trajectory
from exactgrpo.numbers.real import Real


def vtrace_targets(
    rewards: Sequence[Any],
    values: Sequence[Any],
    ratios: Sequence[Any],
    *,
    gamma: Any,
    bootstrap: Any,
    rho_bar: Any = 1,
    c_bar: Any = 1,
    lambda_: Any = 1,
) -> tuple[Real, ...]:
    """v_s = V_s + sum_{t>=s} gamma^(t-s) (prod_{i=s}^{t-1} c_i) rho_t (r_t + gamma V_{t+1} - V_t), V_T = `bootstrap`.

    rho_t = min(rho_bar, pi/mu), c_t = lambda min(c_bar, pi/mu); `ratios` holds pi/mu of each action. A bar of None does not
    truncate. On policy with bars of at least one and lambda = 1 it is the return that bootstraps at the end. Source: Espeholt et al.,
    IMPALA (2018), equation 1 and remark 2. Theorems: vtrace_step, vtrace_on_policy (VTrace.v).

    >>> vtrace_targets([1, 0, 2], [1, 2, 0], [2, "1/2", 3], gamma="1/2", bootstrap=4)
    (Real('2'), Real('2'), Real('4'))
    >>> vtrace_targets([1, 0, 2], [1, 2, 0], [2, "1/2", 3], gamma="1/2", bootstrap=4, rho_bar=2)
    (Real('7/2'), Real('3'), Real('8'))
    """
    r, v, following, discount = trajectory(rewards, values, gamma, bootstrap)
    taken = _ratios(ratios, len(r))
    rho, trace, mix = truncated(taken, rho_bar, "rho_bar"), truncated(taken, c_bar, "c_bar"), Real.of(lambda_, "lambda_")
    out: list[Real] = []
    for t in reversed(range(len(r))):
        target = v[t] + rho[t] * (r[t] + discount * following[t] - v[t])
        if out:
            target = target + discount * mix * trace[t] * (out[-1] - v[t + 1])
        out.append(target)
    return tuple(reversed(out))


def vtrace_advantages(
    rewards: Sequence[Any],
    values: Sequence[Any],
    ratios: Sequence[Any],
    *,
    gamma: Any,
    bootstrap: Any,
    rho_bar: Any = 1,
    pg_rho_bar: Any = 1,
    c_bar: Any = 1,
    lambda_: Any = 1,
) -> tuple[Real, ...]:
    """rho_s (r_s + gamma v_{s+1} - V_s) with rho_s = min(pg_rho_bar, pi/mu) and the targets v; v_T = `bootstrap`.

    Source: Espeholt et al., IMPALA (2018), section 4.2. Theorem: vtrace_advantage_on_policy (VTrace.v).

    >>> vtrace_advantages([1, 0, 2], [1, 2, 0], [2, "1/2", 3], gamma="1/2", bootstrap=4)
    (Real('1'), Real('0'), Real('4'))
    """
    r, v, following, discount = trajectory(rewards, values, gamma, bootstrap)
    targets = vtrace_targets(r, v, ratios, gamma=discount, bootstrap=following[-1], rho_bar=rho_bar, c_bar=c_bar, lambda_=lambda_)
    rho = truncated(_ratios(ratios, len(r)), pg_rho_bar, "pg_rho_bar")
    later = [*targets[1:], following[-1]]
    return tuple(w * (x + discount * after - now) for w, x, after, now in zip(rho, r, later, v, strict=True))


def truncated(ratios: Sequence[Real], bar: Any, place: str) -> list[Real]:
    """min(bar, rho) of each ratio; None does not truncate."""
    if bar is None:
        return list(ratios)
    ceiling = positive(bar, place, "a truncation level is positive, or None")
    return [least_of(ceiling, rho) for rho in ratios]


def _ratios(ratios: Any, length: int) -> list[Real]:
    return positives(ratios, "ratios", length=length, rule="a ratio of positive masses is positive")
