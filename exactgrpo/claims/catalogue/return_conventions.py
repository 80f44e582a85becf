"""Claims, true and false, about returns, V-trace, Retrace, traces, and which action a reward is credited to."""

from __future__ import annotations

from typing import Any

from exactgrpo.claims.catalogue.variables import discount, entries, laws, number, numbers, ratio, slopes
from exactgrpo.claims.claim import Claim
from exactgrpo.field.eligibility import eligibility_traces
from exactgrpo.field.expected_gradient import reward_gradient
from exactgrpo.field.inputs import sum_of
from exactgrpo.field.retrace import retrace_errors
from exactgrpo.field.returns import discounted_returns, gae, n_step_returns
from exactgrpo.field.vtrace import vtrace_advantages, vtrace_targets
from exactgrpo.numbers.real import Real

IMPALA = "Espeholt et al., IMPALA (2018), section 4.1"
RETRACE = "field report: trfl#24, deep_rl_zoo#15"


def _trajectory(size: int) -> dict[str, Any]:
    return {"rewards": numbers(size), "values": numbers(size), "gamma": discount(), "bootstrap": number()}


def _off_policy(size: int) -> dict[str, Any]:
    return {**_trajectory(size), "ratios": entries(ratio(), size)}


def _targets(rewards: Any, values: Any, ratios: Any, gamma: Any, bootstrap: Any) -> Any:
    return vtrace_targets(rewards, values, ratios, gamma=gamma, bootstrap=bootstrap)


def _final_returns(rewards: Any, values: Any, gamma: Any, bootstrap: Any) -> Any:
    return n_step_returns(rewards, values, n=len(rewards), gamma=gamma, bootstrap=bootstrap)


def _ratio_on_reward_only(rewards: Any, values: Any, ratios: Any, gamma: Any, bootstrap: Any) -> list[Real]:
    """V-trace with rho r + gamma V' - V, the parentheses missing."""
    out: list[Real] = []
    following = [*values[1:], bootstrap]
    for t in reversed(range(len(rewards))):
        rho = min(ratios[t], 1)
        target = Real.of(rho * rewards[t] + gamma * following[t])
        out.append(target + gamma * rho * (out[-1] - values[t + 1]) if out else target)
    return out[::-1]


def _carry_from_bootstrap(rewards: Any, values: Any, gamma: Any, bootstrap: Any) -> list[Real]:
    """On-policy V-trace advantages whose backward sum starts with the bootstrap value instead of zero."""
    out, carry, following = [], Real.of(bootstrap), [*values[1:], bootstrap]
    for t in reversed(range(len(rewards))):
        carry = rewards[t] + gamma * following[t] - values[t] + gamma * carry
        out.append(carry)
    return out[::-1]


def _errors(errors: Any, ratios: Any, gamma: Any) -> Any:
    zeros = [0] * len(errors)
    return retrace_errors(errors, zeros, zeros, ratios, gamma=gamma)


def _trace_of_this_step(errors: Any, ratios: Any, gamma: Any) -> list[Real]:
    out: list[Real] = []
    for t in reversed(range(len(errors))):
        out.append(errors[t] + gamma * min(ratios[t], 1) * out[-1] if out else Real.of(errors[t]))
    return out[::-1]


def _trace_after_next(errors: Any, ratios: Any, gamma: Any) -> list[Real]:
    out: list[Real] = []
    for t in reversed(range(len(errors))):
        out.append(errors[t] + gamma * min(ratios[t + 2], 1) * out[-1] if out else Real.of(errors[t]))
    return out[::-1]


def _ratio_twice(features: Any, ratios: Any, decay: Any) -> Any:
    """The trace decays by the current ratio, which then multiplies the update again."""
    trace, out = Real.of(0), []
    for phi, rho in zip(features, ratios, strict=True):
        trace = decay * rho * trace + phi
        out.append(rho * trace)
    return out


def _late_credit(policy: Any, features: Any, payoff: Any) -> Real:
    """E[R(a) d log pi(a')] for the action a that earned it and the independent later action a' that gets the credit."""
    moves = slopes(policy, features)
    return sum_of([Real.of(p * r * q * (d / q)) for p, r in zip(policy, payoff, strict=True) for q, d in zip(policy, moves, strict=True)])


CREDIT = {**laws(2, "policy"), "features": numbers(2), "payoff": numbers(2)}
ERRORS = {"errors": numbers(3), "ratios": entries(ratio(), 3), "gamma": discount()}
TRACES = {"features": numbers(2), "ratios": entries(ratio(), 2), "decay": discount()}

CLAIMS = (
    Claim(
        "vtrace-on-policy-is-the-n-step-return",
        "On policy the V-trace targets are the returns that bootstrap at the end.",
        _trajectory(3),
        left=lambda rewards, values, gamma, bootstrap: _targets(rewards, values, [1] * len(rewards), gamma, bootstrap),
        right=_final_returns,
        source=IMPALA,
        latex=r"\pi = \mu \Rightarrow v_s = \sum_{t \ge s} \gamma^{t-s} r_t + \gamma^{T-s} V_T",
        theorem="vtrace_on_policy (VTrace.v)",
    ),
    Claim(
        "vtrace-advantage-on-policy",
        "On policy the V-trace advantage is that return minus the value.",
        _trajectory(3),
        left=lambda rewards, values, gamma, bootstrap: vtrace_advantages(
            rewards, values, [1] * len(rewards), gamma=gamma, bootstrap=bootstrap
        ),
        right=lambda rewards, values, gamma, bootstrap: [
            g - v for g, v in zip(_final_returns(rewards, values, gamma, bootstrap), values, strict=True)
        ],
        source=IMPALA,
        theorem="vtrace_advantage_on_policy (VTrace.v)",
    ),
    Claim(
        "vtrace-is-the-n-step-return",
        "The V-trace targets are the returns that bootstrap at the end, whatever the ratios.",
        _off_policy(2),
        left=_targets,
        right=_final_returns,
        source=IMPALA,
        expected=False,
    ),
    Claim(
        "vtrace-ratio-on-the-reward-only",
        "In the V-trace error the ratio may multiply the reward alone.",
        _off_policy(2),
        left=_ratio_on_reward_only,
        right=_targets,
        source="field report: PufferLib#598",
        latex=r"\rho r + \gamma V' - V = \rho (r + \gamma V' - V)",
        expected=False,
    ),
    Claim(
        "vtrace-carry-from-bootstrap",
        "The backward sum of V-trace may start from the bootstrap value.",
        _trajectory(2),
        left=_carry_from_bootstrap,
        right=lambda rewards, values, gamma, bootstrap: vtrace_advantages(
            rewards, values, [1] * len(rewards), gamma=gamma, bootstrap=bootstrap
        ),
        source="field report: rl-triton#4",
        expected=False,
    ),
    Claim(
        "gae-one-is-the-return-minus-the-value",
        "With lambda = 1 the generalised advantage is the return minus the value.",
        _trajectory(3),
        left=lambda rewards, values, gamma, bootstrap: gae(rewards, values, gamma=gamma, lambda_=1, bootstrap=bootstrap),
        right=lambda rewards, values, gamma, bootstrap: [
            g - v for g, v in zip(discounted_returns(rewards, gamma=gamma, bootstrap=bootstrap), values, strict=True)
        ],
        source="Schulman et al., generalized advantage estimation (2016), section 3",
        latex=r"\lambda = 1 \Rightarrow A_t = G_t - V_t",
    ),
    Claim(
        "retrace-trace-of-this-step",
        "The Retrace sum may use the trace of the current step in place of the next.",
        ERRORS,
        left=_trace_of_this_step,
        right=_errors,
        source=RETRACE,
        expected=False,
    ),
    Claim(
        "retrace-trace-after-next",
        "The Retrace sum may use the trace of the step after the next in place of the next.",
        {**ERRORS, "ratios": entries(ratio(), 4)},
        left=_trace_after_next,
        right=lambda errors, ratios, gamma: _errors(errors, ratios[:-1], gamma),
        source=RETRACE,
        expected=False,
    ),
    Claim(
        "retrace-ratio-on-the-error",
        "In Retrace a truncated ratio may multiply the error, as it does in V-trace.",
        ERRORS,
        left=lambda errors, ratios, gamma: _errors([min(r, 1) * x for r, x in zip(ratios, errors, strict=True)], ratios, gamma),
        right=_errors,
        source=RETRACE,
        expected=False,
    ),
    Claim(
        "trace-may-hold-the-current-ratio-twice",
        "An eligibility trace may decay by the current ratio and be multiplied by it again.",
        TRACES,
        left=_ratio_twice,
        right=lambda features, ratios, decay: eligibility_traces(features, ratios, gamma=decay, lambda_=1),
        source="field report: asi#462",
        expected=False,
    ),
    Claim(
        "constant-ratio-in-a-trace",
        "With a constant ratio both forms of the trace agree.",
        TRACES,
        left=_ratio_twice,
        right=lambda features, ratios, decay: eligibility_traces(features, ratios, gamma=decay, lambda_=1),
        hypotheses={"constant ratio": lambda ratios: all(r == ratios[0] for r in ratios)},
        source="field report: asi#462",
    ),
    Claim(
        "reward-one-slot-late",
        "A reward stored one step late, the last one lost, leaves the returns as they are.",
        {"rewards": numbers(2), "gamma": discount()},
        left=lambda rewards, gamma: discounted_returns([0, *rewards[:-1]], gamma=gamma),
        right=lambda rewards, gamma: discounted_returns(rewards, gamma=gamma),
        source="field report: spinningup#50",
        expected=False,
    ),
    Claim(
        "late-credit-has-no-gradient",
        "A reward credited to a later independent action has expected gradient zero.",
        CREDIT,
        left=_late_credit,
        right=0,
        source="field report: stable-baselines3#821, striatum#70",
        latex=r"E[R(a_t) \nabla \log \pi(a_{t+2})] = 0",
        theorem="other_rollout_zero (Premise.v)",
    ),
    Claim(
        "late-credit-follows-the-gradient",
        "A reward credited to a later independent action still follows the gradient on average.",
        CREDIT,
        left=_late_credit,
        right=lambda policy, features, payoff: reward_gradient(slopes(policy, features), payoff),
        source="field report: stable-baselines3#821, striatum#70",
        expected=False,
    ),
)
