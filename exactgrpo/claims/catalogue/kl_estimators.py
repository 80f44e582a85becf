"""Claims, true and false, about the value and the gradient of k1, k2 and k3, on and off policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from exactgrpo.claims.catalogue.variables import laws, mass, numbers, slopes
from exactgrpo.claims.claim import Claim
from exactgrpo.field.kl import k1, k3
from exactgrpo.field.kl_expectations import expected_gradient, expected_value, kl_gradient, kl_gradient_from_policy
from exactgrpo.numbers.real import Real
from exactgrpo.update.divergence import kl_policy_from_reference

SOURCE = "Schulman, Approximating KL divergence (2020)"
REPORT = "field report: OpenRLHF#1309, NeMo-RL#2506, verl#2953"
OFF_POLICY = "field report: THUDM/slime#1004, trl#4638"

Side = Callable[..., Real]


def _value(name: str) -> Side:
    return lambda policy, reference: expected_value(name, policy, reference)


def _gradient(name: str, weights: str = "none") -> Side:
    return lambda policy, reference, features: expected_gradient(name, policy, slopes(policy, features), reference, weights=weights)


def _off_policy_gradient(name: str, weights: str) -> Side:
    return lambda policy, reference, old, features: expected_gradient(
        name, policy, slopes(policy, features), reference, sampler=old, weights=weights
    )


def _kl(policy: Any, reference: Any) -> Real:
    return kl_policy_from_reference(policy, reference)


def _true_gradient(policy: Any, reference: Any, features: Any) -> Real:
    return kl_gradient(policy, slopes(policy, features), reference)


def _other_gradient(policy: Any, reference: Any, features: Any) -> Real:
    return kl_gradient_from_policy(policy, slopes(policy, features), reference)


def _variables(size: int, *, is_off_policy: bool = False) -> dict[str, Any]:
    names = ("policy", "reference", "old") if is_off_policy else ("policy", "reference")
    return {**laws(size, *names), "features": numbers(size)}


PAIR = {"mass": mass(), "reference_mass": mass()}

CLAIMS = (
    Claim(
        "k1-value-is-kl",
        "The mean of k1 under the policy is KL(policy || reference).",
        laws(3, "policy", "reference"),
        left=_value("k1"),
        right=_kl,
        source=SOURCE,
        latex=r"E_\pi k_1 = \mathrm{KL}(\pi \| \pi_{\text{ref}})",
    ),
    Claim(
        "k3-value-is-kl",
        "The mean of k3 under the policy is KL(policy || reference).",
        laws(3, "policy", "reference"),
        left=_value("k3"),
        right=_kl,
        source=SOURCE,
        latex=r"E_\pi k_3 = \mathrm{KL}(\pi \| \pi_{\text{ref}})",
    ),
    Claim(
        "k2-value-is-kl",
        "The mean of k2 under the policy is KL(policy || reference).",
        laws(2, "policy", "reference"),
        left=_value("k2"),
        right=_kl,
        source=SOURCE,
        latex=r"E_\pi k_2 = \mathrm{KL}(\pi \| \pi_{\text{ref}})",
        expected=False,
    ),
    Claim(
        "k3-nonnegative",
        "k3 of a single draw is never negative.",
        PAIR,
        left=lambda mass, reference_mass: k3(mass, reference_mass),
        right=0,
        relation=">=",
        source=SOURCE,
        latex=r"k_3 \ge 0",
    ),
    Claim(
        "k1-nonnegative",
        "k1 of a single draw is never negative.",
        PAIR,
        left=lambda mass, reference_mass: k1(mass, reference_mass),
        right=0,
        relation=">=",
        source=SOURCE,
        latex=r"k_1 \ge 0",
        expected=False,
    ),
    Claim(
        "k1-gradient-vanishes",
        "On policy, the expected gradient of the sampled k1 is zero.",
        _variables(3),
        left=_gradient("k1"),
        right=0,
        source=REPORT,
        latex=r"E_\pi \nabla k_1 = 0",
    ),
    Claim(
        "k1-gradient-is-kl-gradient",
        "On policy, the sampled k1 follows the gradient of KL(policy || reference).",
        _variables(2),
        left=_gradient("k1"),
        right=_true_gradient,
        source=REPORT,
        expected=False,
    ),
    Claim(
        "k2-gradient-is-kl-gradient",
        "On policy, the sampled k2 follows the gradient of KL(policy || reference).",
        _variables(3),
        left=_gradient("k2"),
        right=_true_gradient,
        source=REPORT,
        latex=r"E_\pi \nabla k_2 = \nabla \mathrm{KL}(\pi \| \pi_{\text{ref}})",
    ),
    Claim(
        "k3-gradient-is-kl-gradient",
        "On policy, the sampled k3 follows the gradient of KL(policy || reference).",
        _variables(2),
        left=_gradient("k3"),
        right=_true_gradient,
        source=REPORT,
        expected=False,
    ),
    Claim(
        "k3-gradient-is-the-other-kl-gradient",
        "On policy, the sampled k3 follows the gradient of KL(reference || policy).",
        _variables(3),
        left=_gradient("k3"),
        right=_other_gradient,
        source=REPORT,
        latex=r"E_\pi \nabla k_3 = \nabla \mathrm{KL}(\pi_{\text{ref}} \| \pi)",
    ),
    Claim(
        "weighted-k3-gradient-off-policy",
        "Off policy, k3 times the differentiated ratio follows the gradient of KL(policy || reference).",
        _variables(3, is_off_policy=True),
        left=_off_policy_gradient("k3", "ratio"),
        right=_true_gradient,
        source=OFF_POLICY,
        latex=r"E_{\text{old}} \nabla(\rho k_3) = \nabla \mathrm{KL}(\pi \| \pi_{\text{ref}})",
    ),
    Claim(
        "weighted-k2-gradient-off-policy",
        "Off policy, k2 times the differentiated ratio follows the gradient of KL(policy || reference).",
        _variables(2, is_off_policy=True),
        left=_off_policy_gradient("k2", "ratio"),
        right=_true_gradient,
        source=OFF_POLICY,
        latex=r"E_{\text{old}} \nabla(\rho k_2) = \nabla \mathrm{KL}(\pi \| \pi_{\text{ref}})",
        expected=False,
    ),
    Claim(
        "detached-k2-gradient-off-policy",
        "Off policy, k2 times the detached ratio follows the gradient of KL(policy || reference).",
        _variables(3, is_off_policy=True),
        left=_off_policy_gradient("k2", "detached ratio"),
        right=_true_gradient,
        source=OFF_POLICY,
        latex=r"E_{\text{old}} [\mathrm{sg}(\rho) \nabla k_2] = \nabla \mathrm{KL}(\pi \| \pi_{\text{ref}})",
    ),
    Claim(
        "plain-k2-gradient-off-policy",
        "Off policy, k2 without a ratio follows the gradient of KL(policy || reference).",
        _variables(2, is_off_policy=True),
        left=_off_policy_gradient("k2", "none"),
        right=_true_gradient,
        source=OFF_POLICY,
        expected=False,
    ),
    Claim(
        "plain-k3-gradient-off-policy",
        "Off policy, k3 without a ratio follows the gradient of KL(reference || policy), as it does on policy.",
        _variables(2, is_off_policy=True),
        left=_off_policy_gradient("k3", "none"),
        right=_other_gradient,
        source=OFF_POLICY,
        expected=False,
    ),
    Claim(
        "ratio-weight-is-a-no-op-on-policy",
        "On policy the ratio is one, so weighting k3 with it changes no gradient.",
        _variables(2),
        left=_gradient("k3", "ratio"),
        right=_gradient("k3"),
        source="field report: trl#6503",
        expected=False,
    ),
)
