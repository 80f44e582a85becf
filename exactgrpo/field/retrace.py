"""Retrace: corrections of action values from one off-policy trajectory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exactgrpo.field.inputs import ONE, positives, reals
from exactgrpo.field.vtrace import truncated
from exactgrpo.numbers.real import Real


def retrace_errors(
    rewards: Sequence[Any],
    action_values: Sequence[Any],
    expected_next: Sequence[Any],
    ratios: Sequence[Any],
    *,
    gamma: Any,
    lambda_: Any = 1,
) -> tuple[Real, ...]:
    """sum_{t>=s} gamma^(t-s) (prod_{i=s+1}^{t} c_i) (r_t + gamma E_pi Q(s_{t+1}, .) - Q(s_t, a_t)), for each s.

    c_i = lambda min(1, pi/mu) at step i: the trace of step s itself does not act, and no ratio multiplies the error.
    `action_values` holds Q(s_t, a_t), `expected_next` E_pi Q(s_{t+1}, .) (0 after the end), `ratios` pi/mu of a_t; the first is not
    used. Source: Munos et al., Safe and efficient off-policy reinforcement learning (2016), section 3.
    Theorems: retrace_step, retrace_on_policy (Retrace.v).

    >>> retrace_errors(["9/8", "-9/4", "1/2"], [0, 0, 0], [0, 0, 0], [5, 1, "2/3"], gamma="1/2")
    (Real('1/12'), Real('-25/12'), Real('1/2'))
    """
    r = reals(rewards, "rewards")
    q = reals(action_values, "action_values", length=len(r))
    after = reals(expected_next, "expected_next", length=len(r))
    rho = positives(ratios, "ratios", length=len(r), rule="a ratio of positive masses is positive")
    discount, mix, traces = Real.of(gamma, "gamma"), Real.of(lambda_, "lambda_"), truncated(rho, ONE, "trace")
    out: list[Real] = []
    for t in reversed(range(len(r))):
        error = r[t] + discount * after[t] - q[t]
        if out:
            error = error + discount * mix * traces[t + 1] * out[-1]
        out.append(error)
    return tuple(reversed(out))


def retrace_targets(
    rewards: Sequence[Any],
    action_values: Sequence[Any],
    expected_next: Sequence[Any],
    ratios: Sequence[Any],
    *,
    gamma: Any,
    lambda_: Any = 1,
) -> tuple[Real, ...]:
    """Q(s_t, a_t) + the Retrace error of step t. Arguments and source as for `retrace_errors`.

    >>> retrace_targets([1, 2], [1, 1], [0, 0], [1, 1], gamma="1/2")
    (Real('3/2'), Real('2'))
    """
    errors = retrace_errors(rewards, action_values, expected_next, ratios, gamma=gamma, lambda_=lambda_)
    return tuple(q + e for q, e in zip(reals(action_values, "action_values"), errors, strict=True))
