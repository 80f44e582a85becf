"""Discounted returns, n-step returns and generalised advantages of one trajectory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exactgrpo.field.inputs import ZERO, reals
from exactgrpo.numbers.inputs import whole
from exactgrpo.numbers.real import Real


def discounted_returns(rewards: Sequence[Any], *, gamma: Any, bootstrap: Any = 0) -> tuple[Real, ...]:
    """G_t = r_t + gamma G_{t+1}, with G_T = `bootstrap` (0: the trajectory ended).

    Source: Sutton and Barto, Reinforcement learning (2018), section 3.3.

    >>> discounted_returns([0, 0, 1], gamma=1), discounted_returns([1, 0, 2], gamma="1/2", bootstrap=4)
    ((Real('1'), Real('1'), Real('1')), (Real('2'), Real('2'), Real('4')))
    """
    discount, following = Real.of(gamma, "gamma"), Real.of(bootstrap, "bootstrap")
    out = []
    for r in reversed(reals(rewards, "rewards")):
        following = r + discount * following
        out.append(following)
    return tuple(reversed(out))


def n_step_returns(rewards: Sequence[Any], values: Sequence[Any], *, n: int, gamma: Any, bootstrap: Any) -> tuple[Real, ...]:
    """sum_{j<n} gamma^j r_{t+j} + gamma^n V(s_{t+n}) for each t, cut at the end, where the value is `bootstrap`.

    Source: Sutton and Barto (2018), equation 7.1. `values` holds V(s_0)..V(s_{T-1}).

    >>> n_step_returns([1, 0, 2], [1, 2, 0], n=1, gamma="1/2", bootstrap=4)
    (Real('2'), Real('0'), Real('4'))
    """
    r, v, following, discount = trajectory(rewards, values, gamma, bootstrap)
    steps = whole(n, "n", least=1)
    states = [*v, following[-1]]
    out = []
    for t in range(len(r)):
        end = min(t + steps, len(r))
        out.append(discounted_returns(r[t:end], gamma=discount, bootstrap=states[end])[0])
    return tuple(out)


def td_errors(rewards: Sequence[Any], values: Sequence[Any], *, gamma: Any, bootstrap: Any) -> tuple[Real, ...]:
    """delta_t = r_t + gamma V(s_{t+1}) - V(s_t), with V(s_T) = `bootstrap`.

    >>> td_errors([1, 0, 2], [1, 2, 0], gamma="1/2", bootstrap=4)
    (Real('1'), Real('-2'), Real('4'))
    """
    r, v, following, discount = trajectory(rewards, values, gamma, bootstrap)
    return tuple(x + discount * after - now for x, after, now in zip(r, following, v, strict=True))


def gae(rewards: Sequence[Any], values: Sequence[Any], *, gamma: Any, lambda_: Any, bootstrap: Any) -> tuple[Real, ...]:
    """A_t = delta_t + gamma lambda A_{t+1}, A_T = 0: generalised advantage estimation.

    lambda = 1 gives the discounted return minus the value, lambda = 0 the TD error. Source: Schulman et al., High-dimensional
    continuous control using generalized advantage estimation (2016), equation 16.

    >>> gae([1, 0, 2], [1, 2, 0], gamma="1/2", lambda_=1, bootstrap=4)
    (Real('1'), Real('0'), Real('4'))
    """
    decay, after, out = Real.of(gamma, "gamma") * Real.of(lambda_, "lambda_"), ZERO, []
    for delta in reversed(td_errors(rewards, values, gamma=gamma, bootstrap=bootstrap)):
        after = delta + decay * after
        out.append(after)
    return tuple(reversed(out))


def trajectory(rewards: Any, values: Any, gamma: Any, bootstrap: Any) -> tuple[list[Real], list[Real], list[Real], Real]:
    """Rewards, values, values one step later (the last is the bootstrap) and the discount, checked."""
    r = reals(rewards, "rewards")
    v = reals(values, "values", length=len(r), rule=f"one value for each of the {len(r)} rewards")
    return r, v, [*v[1:], Real.of(bootstrap, "bootstrap")], Real.of(gamma, "gamma")
