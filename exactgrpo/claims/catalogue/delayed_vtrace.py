"""Claims, true and false, about what the identity kernel of late rewards has to do with V-trace."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from exactgrpo.claims.catalogue.delayed_clip import RAC
from exactgrpo.claims.catalogue.variables import discount, entries, number, numbers, positive_number, ratio
from exactgrpo.claims.claim import Claim
from exactgrpo.field.vtrace import vtrace_advantages
from exactgrpo.numbers.real import Real
from exactgrpo.rac.vtrace import corrected_advantages, decide_kernel_change, decide_vtrace, discounted_kernel

ENDED: dict[str, Any] = {"gamma": 1, "bootstrap": 0}


def _one_step(fast: Any, residual: Any, value: Any, ratio: Any, ceiling: Any, kernel: Any = None) -> Real:
    """The corrected advantage of an episode of one step."""
    return corrected_advantages([fast], [value], [residual], [ratio], **ENDED, kernel=kernel, ceiling=ceiling)[0]


def _one_step_vtrace(fast: Any, residual: Any, value: Any, ratio: Any, ceiling: Any) -> Real:
    return vtrace_advantages([fast + residual], [value], [ratio], **ENDED, rho_bar=ceiling, pg_rho_bar=ceiling)[0]


def _injected_once(fast: Any, residual: Any, value: Any, ratio: Any, ceiling: Any, offset: Any, gain: Any, age_weight: Any) -> Real:
    return _one_step(fast, residual, value, ratio, ceiling, [[gain * age_weight if offset == 0 else 0]])


def _vtrace(rewards: Any, values: Any, residuals: Any, ratios: Any, gamma: Any, bootstrap: Any) -> Any:
    slow = [r + x for r, x in zip(rewards, residuals, strict=True)]
    return vtrace_advantages(slow, values, ratios, gamma=gamma, bootstrap=bootstrap)


def _vtrace_on_policy(rewards: Any, values: Any, residuals: Any, gamma: Any, bootstrap: Any) -> Any:
    return _vtrace(rewards, values, residuals, [1] * len(rewards), gamma, bootstrap)


def _on_policy(rewards: Any, values: Any, residuals: Any, gamma: Any, bootstrap: Any) -> Any:
    return corrected_advantages(rewards, values, residuals, [1] * len(rewards), gamma=gamma, bootstrap=bootstrap)


def _with_later_residuals(rewards: Any, values: Any, residuals: Any, gamma: Any, bootstrap: Any) -> Any:
    own = _on_policy(rewards, values, residuals, gamma, bootstrap)
    return [a + sum(gamma ** (t - s) * residuals[t] for t in range(s + 1, len(residuals))) for s, a in enumerate(own)]


def _change_of_kernel(residuals: Any, ratios: Any, kernel: Any) -> list[Real]:
    zeros = [0] * len(residuals)
    far, near = (corrected_advantages(zeros, zeros, residuals, ratios, **ENDED, kernel=k) for k in (kernel, None))
    return [abs(a - b) for a, b in zip(far, near, strict=True)]


ONE_STEP = {"fast": number(), "residual": number(), "value": number(), "ratio": ratio()}


def _trajectory(size: int) -> dict[str, Any]:
    return {"rewards": numbers(size), "values": numbers(size), "residuals": numbers(size), "gamma": discount(), "bootstrap": number()}


CLAIMS = (
    Claim(
        "identity-kernel-recovers-vtrace",
        "For one step, a late residual that is injected as the identity kernel does gives the advantage of V-trace.",
        {
            **ONE_STEP,
            "ceiling": positive_number(),
            "offset": [0, 1],
            "gain": [Fraction(1), Fraction(2)],
            "age_weight": [Fraction(1), Fraction(1, 2)],
        },
        left=_injected_once,
        right=_one_step_vtrace,
        hypotheses={
            "on policy": lambda ratio: ratio == 1,
            "the ceiling is at least one": lambda ceiling: ceiling >= 1,
            "injected at its own step": lambda offset: offset == 0,
            "gain times age weight is one": lambda gain, age_weight: gain * age_weight == 1,
        },
        source=RAC,
        latex=r"\Lambda = I \Rightarrow A + \rho X = \rho (r + X - V)",
        theorem="one_step_equal_iff (VTrace.v)",
    ),
    Claim(
        "identity-kernel-off-policy-is-vtrace",
        "For one step the identity kernel gives the advantage of V-trace off policy too.",
        ONE_STEP,
        left=lambda fast, residual, value, ratio: _one_step(fast, residual, value, ratio, 1),
        right=lambda fast, residual, value, ratio: _one_step_vtrace(fast, residual, value, ratio, 1),
        source=RAC,
        expected=False,
    ),
    Claim(
        "identity-kernel-leaves-the-fast-part-unweighted",
        "For one step the identity kernel is off V-trace by one minus the ratio, times fast reward minus value.",
        {**ONE_STEP, "ceiling": positive_number()},
        left=lambda fast, residual, value, ratio, ceiling: (
            _one_step(fast, residual, value, ratio, ceiling) - _one_step_vtrace(fast, residual, value, ratio, ceiling)
        ),
        right=lambda fast, value, ratio, ceiling: (1 - min(ceiling, ratio)) * (fast - value),
        latex=r"A_{\mathrm{RAC}} - A_{\text{V-trace}} = (1 - \rho)(r - V)",
        theorem="one_step_gap (VTrace.v)",
    ),
    Claim(
        "identity-kernel-is-vtrace-iff",
        "For one step the identity kernel gives V-trace exactly when the clipped ratio is one or the fast reward is the value.",
        {**ONE_STEP, "ceiling": positive_number()},
        conclusion=lambda fast, residual, value, ratio, ceiling: (
            decide_vtrace([fast], [value], [residual], [ratio], **ENDED, ceiling=ceiling).is_equal
            == (min(ceiling, ratio) == 1 or fast == value)
        ),
        theorem="one_step_equal_iff (VTrace.v)",
    ),
    Claim(
        "identity-kernel-over-several-steps-is-vtrace",
        "On policy the identity kernel gives the advantages of V-trace over several steps too.",
        _trajectory(2),
        left=_on_policy,
        right=_vtrace_on_policy,
        source=RAC,
        expected=False,
    ),
    Claim(
        "identity-kernel-misses-later-residuals",
        "On policy the identity kernel misses the discounted residuals of the later steps, and nothing else.",
        _trajectory(3),
        left=_with_later_residuals,
        right=_vtrace_on_policy,
        latex=r"A_{\text{V-trace}, s} - A_{\mathrm{RAC}, s} = \sum_{j \ge 1} \gamma^j X_{s+j}",
        theorem="several_steps_gap (VTrace.v)",
    ),
    Claim(
        "discounted-injection-is-vtrace",
        "Injected as gamma^j X at the step j before its own, every residual is where V-trace has it.",
        {**_trajectory(2), "ratios": entries(ratio(), 2)},
        left=lambda rewards, values, residuals, ratios, gamma, bootstrap: corrected_advantages(
            rewards, values, residuals, ratios, gamma=gamma, bootstrap=bootstrap, kernel=discounted_kernel(len(rewards), gamma)
        ),
        right=_vtrace,
        hypotheses={"on policy": lambda ratios: all(rho == 1 for rho in ratios)},
        latex=r"\Lambda_{t,s} = \gamma^{t-s}\ (s \le t) \Rightarrow A_{\mathrm{RAC}} = A_{\text{V-trace}}",
        theorem="residual_in_return (VTrace.v)",
    ),
    Claim(
        "advantages-tend-to-those-of-the-identity-kernel",
        "No corrected advantage is further from that of the identity kernel than the kernels are, entry by entry.",
        {"residuals": numbers(2), "ratios": entries(ratio(), 2), "kernel": entries(entries(discount(), 2), 2)},
        left=_change_of_kernel,
        right=lambda residuals, ratios, kernel: decide_kernel_change(residuals, ratios, kernel).bounds,
        relation="<=",
        latex=r"|A_s(\Lambda) - A_s(I)| \le \sum_t |\Lambda - I|_{t,s} |\rho_t X_t|",
    ),
)
