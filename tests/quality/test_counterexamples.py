"""Every false claim of the catalogue is refuted in seconds, from nothing, by an instance no larger than the size pinned here.

The size of an instance is the number of its numbers plus the bits of their numerators and denominators.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from fractions import Fraction as F
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

import exactgrpo
from exactgrpo import Claim, Real, advantages, clip_term, falsify, kl_policy_from_reference
from exactgrpo.claims.registry import bundled, find_claim
from exactgrpo.claims.saved import replay
from exactgrpo.claims.verdict import need
from exactgrpo.strategies import epsilons, positive_simplex_points, ratios, reward_groups

FALSE = {id: claim for id, claim in bundled().items() if not claim.expected}
SIZES = {
    "step-never-lowers-expected-reward": 32,
    "inner-step-never-lowers-the-objective": 21,
    "expected-step-is-the-policy-gradient": 15,
    "updates-get-shorter": 26,
    "updates-never-come-back": 14,
    "k2-value-is-kl": 17,
    "k1-nonnegative": 11,
    "k1-gradient-is-kl-gradient": 20,
    "k3-gradient-is-kl-gradient": 20,
    "weighted-k2-gradient-off-policy": 28,
    "plain-k2-gradient-off-policy": 28,
    "plain-k3-gradient-off-policy": 28,
    "ratio-weight-is-a-no-op-on-policy": 20,
    "geometric-ratio-changes-measure": 23,
    "geometric-ratio-mean-one": 20,
    "token-clipping-equals-sequence-clipping": 16,
    "truncated-ratio-mean-one": 17,
    "sample-std-changes-nothing": 3,
    "epsilon-keeps-scale-invariance": 13,
    "centring-unbiased": 17,
    "standardising-keeps-the-direction": 26,
    "binary-groups-unbiased": 17,
    "min-before-advantage": 14,
    "sign-times-min": 14,
    "dual-clip-for-every-sign": 17,
    "dual-clip-changes-nothing": 24,
    "dual-clip-kinks-never-cancel": 21,
    "cispo-follows-the-clipped-term": 14,
    "self-ratio-has-the-gradient-of-the-surrogate": 14,
    "ratio-once-in-the-advantage": 8,
    "token-mean-is-mean-of-means": 4,
    "sum-mode-divides-by-length": 3,
    "vtrace-is-the-n-step-return": 15,
    "vtrace-ratio-on-the-reward-only": 15,
    "vtrace-carry-from-bootstrap": 8,
    "retrace-trace-of-this-step": 16,
    "retrace-trace-after-next": 18,
    "retrace-ratio-on-the-error": 15,
    "trace-may-hold-the-current-ratio-twice": 13,
    "reward-one-slot-late": 4,
    "late-credit-follows-the-gradient": 14,
    "two-sided-clip-with-mean-one-never-acts": 23,
    "ratio-has-mean-one-when-the-rollout-moved-the-policy": 25,
    "clipped-injection-on-another-rollout-has-no-gradient": 20,
    "current-policy-on-average-is-enough": 31,
    "identity-kernel-off-policy-is-vtrace": 10,
    "identity-kernel-over-several-steps-is-vtrace": 10,
    "pinsker-is-always-the-smaller-bound": 15,
    "bretagnolle-huber-is-always-the-smaller-bound": 11,
    "reweighting-is-bounded-by-the-largest-change": 12,
    "shared-residual-in-rewards-or-advantages": 4,
    "residual-added-to-the-advantage-is-that-of-the-slow-reward": 5,
    "half-arrived-group-has-the-slow-advantages": 8,
    "late-bias-with-marginal-hypotheses": 29,
    "clamping-keeps-the-mean": 12,
    "gain-of-the-mean-weight-saturates": 22,
    "correction-never-worse-than-naive": 7,
    "unbiased-only-if-saturated": 8,
    "cumulative-bias-shows-the-steps": 3,
    "naive-bias-grows-with-the-delay": 4,
    "truncation-linear-in-the-delay": 6,
    "matched-mean-delay-is-matched-weight": 14,
    "ageing-always-pays": 17,
}
CLIP = "the clip never acts"
H1, H2, H3 = find_claim("late-bias-is-minus-slack").hypotheses
WITHOUT = {  # of claims about late rewards, with one hypothesis dropped
    ("late-bias-is-minus-slack", H1): 22,
    ("late-bias-is-minus-slack", H2): 30,
    ("late-bias-is-minus-slack", H3): 24,
    ("saturated-row-is-unbiased", H1): 22,
    ("saturated-row-is-unbiased", H2): 30,
    ("saturated-row-is-unbiased", H3): 25,
    ("saturated-row-is-unbiased", "the row sums to one"): 19,
    ("weighted-residual-keeps-its-mean", "the clipped ratio has mean one"): 25,
    ("weighted-residual-keeps-its-mean", "ratio and residual are uncorrelated"): 25,
    ("injection-on-its-own-rollout-is-the-missing-gradient", CLIP): 27,
    ("injection-on-another-rollout-has-no-gradient", CLIP): 27,
    (
        "unweighted-injection-on-another-rollout-has-no-gradient",
        "the other rollout draws from the current policy, given the residual",
    ): 39,
    ("identity-kernel-recovers-vtrace", "on policy"): 17,
    ("identity-kernel-recovers-vtrace", "the ceiling is at least one"): 16,
    ("identity-kernel-recovers-vtrace", "injected at its own step"): 14,
    ("identity-kernel-recovers-vtrace", "gain times age weight is one"): 15,
    ("discounted-injection-is-vtrace", "on policy"): 17,
    ("exact-injections-sum-to-the-slow-advantages", "every residual arrives"): 8,
}


def size(value: Any) -> int:
    if isinstance(value, Mapping):
        return sum(map(size, value.values()))
    if isinstance(value, (list, tuple)):
        return sum(map(size, value))
    number = F(value)
    return 1 + number.numerator.bit_length() + (number.denominator.bit_length() if number.denominator > 1 else 0)


def test_every_false_claim_has_a_pinned_size() -> None:
    assert set(SIZES) == set(FALSE)


@pytest.mark.parametrize("id", FALSE)
def test_false_claims_are_refuted_by_small_instances(id: str) -> None:
    start = time.process_time()
    found = falsify(FALSE[id], seconds=60).counterexample
    assert found is not None
    assert time.process_time() - start < 10
    assert not found.sides.holds
    assert FALSE[id].satisfied(found.instance)
    assert size(found.instance) <= SIZES[id]


def test_every_hypothesis_about_late_rewards_has_a_pinned_size() -> None:
    assert set(WITHOUT) == {(claim.id, name) for claim in bundled("delay").values() if claim.expected for name in claim.hypotheses}


@pytest.mark.parametrize(("id", "hypothesis"), WITHOUT)
def test_every_hypothesis_about_late_rewards_is_needed_as_a_small_instance_shows(id: str, hypothesis: str) -> None:
    result = falsify(bundled()[id], drop=[hypothesis], seconds=60)
    assert need(result) == "needed"
    assert result.counterexample is not None
    assert result.counterexample.violated == (hypothesis,)
    assert size(result.counterexample.instance) <= WITHOUT[id, hypothesis]


# Published counterexamples in the same variables: the policy moved with the delay, or with the residual; the reward that is 1 is late.
PUBLISHED = {
    "H1": {"cells": (0, 0, F(1, 2), F(1, 2)), "residuals": [1, 1], "ratios": [F(3, 2), F(1, 2)] * 2, "weights": [1, 0]},
    "H2": {"cells": (F(1, 2), 0, F(1, 2), 0), "residuals": [1, -1], "ratios": [F(3, 2), 1, F(1, 2), 1], "weights": [1, 1]},
    "H3": {"cells": (F(1, 2), 0, 0, F(1, 2)), "residuals": [0, 1], "ratios": [1, 1, 1, 1], "weights": [1, 0]},
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_counterexamples_are_no_smaller_than_those_found(name: str) -> None:
    claim, instance = find_claim("late-bias-is-minus-slack"), PUBLISHED[name]
    (dropped,) = (hypothesis for hypothesis in claim.hypotheses if hypothesis.startswith(name))
    assert not claim.at(instance).holds
    assert claim.satisfied(instance, without=[dropped])
    found = falsify(claim, drop=[dropped], seconds=60).counterexample
    assert found is not None
    assert size(found.instance) <= size(instance)


SHIPPED = Path(exactgrpo.__file__).parent / "examples" / "counterexamples"


def test_every_false_claim_ships_a_counterexample() -> None:
    assert {path.stem for path in SHIPPED.glob("*.json")} == set(FALSE)


@pytest.mark.parametrize("id", FALSE)
def test_shipped_counterexamples_are_reproduced_and_as_small_as_those_found(id: str) -> None:
    again = replay(json.loads((SHIPPED / f"{id}.json").read_text(encoding="utf-8")))
    assert again.is_reproduced
    assert again.claim is FALSE[id]
    assert size(again.instance) <= SIZES[id]


# ---- three false identities written after the strategies were frozen


def test_advantages_do_not_add_up_over_concatenated_groups() -> None:
    claim = Claim(
        "concatenation",
        "The advantages of two groups, one behind the other, are those of the joined group.",
        {"first": reward_groups(), "second": reward_groups()},
        left=lambda first, second: [*advantages(first), *advantages(second)],
        right=lambda first, second: advantages([*first, *second]),
    )
    found = falsify(claim).counterexample
    assert found is not None
    assert size(found.instance) <= 6


def test_the_divergence_is_not_symmetric() -> None:
    laws = {"p": positive_simplex_points(size=2), "q": positive_simplex_points(size=2)}
    claim = Claim(
        "symmetry",
        "KL(p || q) = KL(q || p)",
        laws,
        left=lambda p, q: kl_policy_from_reference(p, q),
        right=lambda p, q: kl_policy_from_reference(q, p),
    )
    found = falsify(claim).counterexample
    assert found is not None
    assert size(found.instance) <= 18


def test_the_clipped_term_is_not_linear_in_the_advantage() -> None:
    numbers = {"rho": ratios(), "epsilon": epsilons(), "a": st.integers(-3, 3).map(F)}
    claim = Claim(
        "odd",
        "f(rho, -A) = -f(rho, A)",
        numbers,
        left=lambda rho, epsilon, a: clip_term(rho, -a, epsilon=epsilon).value,
        right=lambda rho, epsilon, a: -clip_term(rho, a, epsilon=epsilon).value,
    )
    found = falsify(claim).counterexample
    assert found is not None
    assert isinstance(found.sides.left, Real)
    assert size(found.instance) <= 14
