"""The bundled claims: hand-worked sides at the instances of the field reports, names, theorems, and that each false one is refuted."""

from __future__ import annotations

import json
import re
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from exactgrpo import Real
from exactgrpo.numbers.rational import exact

pytest.importorskip("exactgrpo.strategies")

from exactgrpo.claims.catalogue import delay, field, update
from exactgrpo.claims.claim import Claim

CLAIMS = {claim.id: claim for claim in (*update.CLAIMS, *field.CLAIMS, *delay.CLAIMS)}
FALSE = [id for id, claim in CLAIMS.items() if not claim.expected]
TRUE = [id for id, claim in CLAIMS.items() if claim.expected]
THEOREMS = json.loads((Path(__file__).parents[3] / "proofs" / "theorems.json").read_text())["theorems"]


def made(value: Any) -> Any:
    """Texts as fractions where they are rational, inside lists and tuples too."""
    if isinstance(value, (list, tuple)):
        return type(value)(made(x) for x in value)
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return value
    number = exact(value)
    return number if isinstance(number, Fraction) else Real.of(number)


def sides(id: str, **instance: Any) -> tuple[Any, Any, bool]:
    claim = CLAIMS[id]
    values = {name: made(value) for name, value in instance.items()}
    assert set(values) == set(claim.variables)
    assert claim.satisfied(values)
    seen = claim.at(values)
    return seen.left, seen.right, seen.holds


KL = {"policy": ["1/2", "1/2"], "reference": ["1/4", "3/4"], "features": [1, 0]}  # pi' = (1/4, -1/4)
OFF = {**KL, "old": ["3/4", "1/4"]}
COIN = {"policy": ["2/3", "1/3"], "features": [1, 0], "rewards": [1, 0], "group_size": 2}  # pi' = (2/9, -2/9)
TERM = {"epsilon": "1/4"}
VTRACE = {"rewards": [1, 0, 2], "values": [1, 2, 0], "gamma": "1/2", "bootstrap": 4}
CREDIT = {"policy": ["1/2", "1/2"], "features": [1, 0], "payoff": [1, 0]}
LOSSES = {"losses": [[6], [1, 2, 3]]}
EIGHT = {"rewards": [1, 1, 1, 0, 0, 0, 0, 0]}
DRIFT = {"behaviour": ["1/2", "1/2"], "target": ["3/4", "1/4"], "features": [1, 0], "ceiling": "3/2"}  # pi' = (3/16, -3/16), no clip acts
ONE_STEP = {"fast": 1, "residual": 2, "value": 3, "ceiling": 2}
LATE = {**VTRACE, "rewards": [0, 0, 0], "residuals": [1, 0, 2]}

VALUES = [
    # reports 36 to 38
    ("k1-gradient-is-kl-gradient", KL, "0", "log(3)/4"),
    ("k2-gradient-is-kl-gradient", KL, "log(3)/4", "log(3)/4"),
    ("k3-gradient-is-kl-gradient", KL, "1/4", "log(3)/4"),
    ("k3-gradient-is-the-other-kl-gradient", KL, "1/4", "1/4"),
    ("weighted-k3-gradient-off-policy", OFF, "log(3)/4", "log(3)/4"),
    ("detached-k2-gradient-off-policy", OFF, "log(3)/4", "log(3)/4"),
    ("plain-k3-gradient-off-policy", OFF, "1/4", "1/4"),  # at pi = (1/2, 1/2) the sampler does not matter
    ("ratio-weight-is-a-no-op-on-policy", KL, "log(3)/4", "1/4"),
    # 29, 27, 61
    ("product-ratio-changes-measure", {**OFF, "old": ["1/4", "3/4"], "first": [1, 0], "second": [1, 0]}, "1/4", "1/4"),
    ("geometric-ratio-changes-measure", {**OFF, "old": ["1/4", "3/4"], "first": [1, 0], "second": [1, 0]}, "1/8", "1/4"),
    ("token-clipping-equals-sequence-clipping", {**TERM, "first": "3/2", "second": "2/3", "advantage": 1}, "23/24", "1"),
    ("truncated-ratio-mean-one", {"policy": ["3/4", "1/4"], "old": ["1/4", "3/4"]}, "1/2", "1"),
    # 8 and the reversal
    ("centring-unbiased", COIN, "1/9", "2/9"),
    ("centring-shrinks-the-gradient", COIN, "1/9", "1/9"),
    ("rloo-unbiased", COIN, "2/9", "2/9"),
    ("binary-pairs-unbiased", COIN, "2/9", "2/9"),
    ("binary-groups-unbiased", {**COIN, "group_size": 3}, "sqrt(2)*2/9", "2/9"),
    ("binary-rewards-rate", {**COIN, "group_size": 3}, "sqrt(2)*2/9", "sqrt(2)*2/9"),
    # expected step -2/3, gradient 7
    ("standardising-keeps-the-direction", {"policy": ["1/3"] * 3, "features": [6, -9, 3], "rewards": [0, 1, 10]}, "-14/3", "0"),
    # 4: sqrt(14)/4 of (sqrt 15/3, -sqrt 15/5)
    ("sample-std-changes-nothing", EIGHT, ["sqrt(210)/12"] * 3 + ["-sqrt(210)/20"] * 5, ["sqrt(15)/3"] * 3 + ["-sqrt(15)/5"] * 5),
    # 22, 21, 19, 20
    ("min-before-advantage", {**TERM, "rho": 2, "advantage": -1}, "-5/4", "-2"),
    ("min-before-advantage", {**TERM, "rho": "1/2", "advantage": -1}, "-1/2", "-3/4"),
    ("sign-times-min", {**TERM, "rho": 100, "advantage": -1}, "-5/4", "-100"),
    ("dual-clip-for-every-sign", {**TERM, "rho": "3/2", "advantage": 1, "ceiling": 3}, "3", "5/4"),
    ("dual-clip-changes-nothing", {**TERM, "rho": 4, "advantage": -1, "ceiling": 3}, "-3", "-4"),
    # 32, 51
    ("self-ratio-has-the-gradient-of-the-surrogate", {**TERM, "rho": "5/4", "advantage": 1}, ["1", "1"], ["5/4", "0"]),
    ("cispo-follows-the-clipped-term", {**TERM, "rho": 3, "advantage": 1}, ["5/4", "5/4"], ["0", "0"]),
    ("ratio-once-in-the-advantage", {"rho": "3/2", "advantage": 1}, "9/4", "3/2"),
    # 44, 45
    ("token-mean-is-mean-of-means", LOSSES, "3", "4"),
    ("sum-mode-divides-by-length", LOSSES, "6", "4"),
    # 51 to 54, 59, 60
    ("vtrace-ratio-on-the-reward-only", {**VTRACE, "ratios": [2, "1/2", 3]}, ["3/2", "1", "4"], ["2", "2", "4"]),
    ("vtrace-on-policy-is-the-n-step-return", VTRACE, ["2", "2", "4"], ["2", "2", "4"]),
    ("vtrace-carry-from-bootstrap", VTRACE, ["3/2", "1", "6"], ["1", "0", "4"]),
    ("gae-one-is-the-return-minus-the-value", VTRACE, ["1", "0", "4"], ["1", "0", "4"]),
    (
        "retrace-trace-after-next",
        {"errors": ["9/8", "-9/4", "1/2"], "ratios": ["1/7", 1, "2/3", 1], "gamma": "1/2"},
        ["11/24", "-2", "1/2"],
        ["1/12", "-25/12", "1/2"],
    ),
    ("trace-may-hold-the-current-ratio-twice", {"features": [1, 1], "ratios": [2, "1/2"], "decay": "1/2"}, ["2", "5/8"], ["2", "1"]),
    ("reward-one-slot-late", {"rewards": [0, 0, 1], "gamma": 1}, ["0", "0", "0"], ["1", "1", "1"]),
    ("late-credit-follows-the-gradient", CREDIT, "0", "1/4"),
    ("late-credit-has-no-gradient", CREDIT, "0", "0"),
    # drawn (y1, y2): A = (-1, 1), logits move by (-1, 1, 0): weights (1/(4e), e/2, 1/4)
    (
        "step-never-lowers-expected-reward",
        {"policy": ["1/4", "1/2", "1/4"], "rewards": [0, 1, 10], "drawn": [0, 1], "step_size": 2},
        "(exp(1)/2 + 5/2)/(exp(-1)/4 + exp(1)/2 + 1/4)",
        "3",
    ),
    ("expected-step-is-the-policy-gradient", {"policy": ["1/2", "1/2"], "features": [1, 0], "rewards": [2, 0]}, "1/4", "1/2"),
    # d/dt of the log-odds is log 3 at 1/2, and the penalty pulls by that
    ("updates-get-shorter", {"policy": ["1/2", "1/2"], "reference": ["1/4", "3/4"], "step_size": "1/4"}, None, "log(3)/4"),
    (
        "inner-step-never-lowers-the-objective",
        {"policy": ["1/2", "1/2"], "reference": ["1/4", "3/4"], "step_size": "1/4"},
        None,
        "-log(4/3)/2",
    ),
    # late rewards: ratios 3/2 and 1/2, scores 1/4 and -3/4
    ("clip-at-one-loses-the-total-variation", DRIFT, "3/4", "3/4"),
    ("two-sided-clip-loses-above-and-adds-below", {**DRIFT, "epsilon": "1/5"}, "1", "1"),
    ("ratio-has-mean-one-when-the-rollout-moved-the-policy", {**DRIFT, "moved": [["3/4", "1/4"], ["1/4", "3/4"]]}, "3/2", "1"),
    ("weighted-residual-keeps-its-mean", {**DRIFT, "residuals": [5, 5]}, "5", "5"),
    ("injection-on-its-own-rollout-is-the-missing-gradient", {**DRIFT, "residuals": [1, -1]}, "3/8", "3/8"),
    ("injection-on-another-rollout-has-no-gradient", {**DRIFT, "residual": 7}, "0", "0"),
    ("clipped-injection-on-another-rollout-has-no-gradient", DRIFT, "-1/16", "0"),
    (
        "current-policy-on-average-is-enough",
        {
            "probabilities": ["1/2", "1/2"],
            "residuals": [1, -1],
            "behaviours": [["3/4", "1/4"], ["1/4", "3/4"]],
            "features": [1, 0],
        },
        "1/4",
        "0",
    ),
    # -2 + rho 2 against rho 0
    ("identity-kernel-off-policy-is-vtrace", {**ONE_STEP, "ratio": "1/2"}, "-1", "0"),
    ("identity-kernel-leaves-the-fast-part-unweighted", {**ONE_STEP, "ratio": "3/2"}, "1", "1"),
    ("identity-kernel-recovers-vtrace", {**ONE_STEP, "ratio": 1, "offset": 0, "gain": 2, "age_weight": "1/2"}, "0", "0"),
    # 51 with every reward late: returns of nothing but the bootstrap (1/2, 1, 2) minus values, plus X
    ("identity-kernel-over-several-steps-is-vtrace", LATE, ["1/2", "-1", "4"], ["1", "0", "4"]),
    ("identity-kernel-misses-later-residuals", LATE, ["1", "0", "4"], ["1", "0", "4"]),
    ("discounted-injection-is-vtrace", {**LATE, "ratios": [1, 1, 1]}, ["1", "0", "4"], ["1", "0", "4"]),
    (
        "advantages-tend-to-those-of-the-identity-kernel",
        {"residuals": [2, -1], "ratios": [1, 1], "kernel": [["3/4", "1/4"], [0, "1/2"]]},
        ["1/2", "1"],
        ["1/2", "1"],
    ),
    ("pinsker-bound", KL, "1/4", "sqrt(log(4/3))/2"),
    ("bretagnolle-huber-bound", {**KL, "reference": ["1/5", "4/5"]}, "3/10", "sqrt(5)/5"),
    ("per-step-bound", {"policy": [1, 0], "reference": ["1/5", "4/5"]}, "4/5", "2*sqrt(5)/5"),
    ("pinsker-is-always-the-smaller-bound", {"policy": [1, 0], "reference": ["1/5", "4/5"]}, "sqrt(log(5)/2)", "2*sqrt(5)/5"),
    ("bretagnolle-huber-is-always-the-smaller-bound", {"policy": [1, 0], "reference": ["1/4", "3/4"]}, "sqrt(3)/2", "sqrt(log(4)/2)"),
    ("reweighting-moves-a-policy-by-at-most-tanh", {"policy": ["1/3", "2/3"], "changes": ["log(4)", 0]}, "1/3", "1/3"),
    ("tanh-is-reached", {"width": "2*log(3)"}, "1/2", "1/2"),
    (
        "reweighting-is-bounded-by-the-largest-change",
        {"policy": ["1/2", "1/2"], "changes": [1, -1]},
        "(exp(2) - 1)/(2*(exp(2) + 1))",
        "(exp(1/2) - 1)/(exp(1/2) + 1)",
    ),
    ("shared-residual-in-rewards-or-advantages", {"rewards": [1, 0], "residual": 2}, ["1", "-1"], ["3", "1"]),
    # (1 - 1 (-2))/2 + 3 (1 - 2)/2
    ("shared-residual-in-the-advantages-adds-the-mean-score", {"rewards": [1, 0], "residual": 3, "scores": [1, -2]}, "0", "0"),
    ("residual-added-to-the-advantage-is-that-of-the-slow-reward", {"rewards": [1, 0], "residuals": [-1, 1]}, ["0", "0"], ["-1", "1"]),
    (
        "exact-injections-sum-to-the-slow-advantages",
        {"rewards": [1, 0], "residuals": [-1, 1], "arrivals": [1, 0]},
        ["-1", "1"],
        ["-1", "1"],
    ),
    (
        "half-arrived-group-has-the-slow-advantages",
        {"rewards": [0, 0], "residuals": [1, 1], "arrived": [True, False]},
        ["1", "-1"],
        ["0", "0"],
    ),
]


def same(side: Any, expected: Any) -> bool:
    if isinstance(expected, list):
        return len(side) == len(expected) and all(map(same, side, expected))
    return expected is None or bool(side == Real.of(expected))


@pytest.mark.parametrize(("id", "instance", "left", "right"), VALUES, ids=[f"{i}-{row[0]}" for i, row in enumerate(VALUES)])
def test_sides_at_hand_worked_instances(id: str, instance: dict[str, Any], left: Any, right: Any) -> None:
    wanted = {name: value for name, value in instance.items() if name in CLAIMS[id].variables}
    seen_left, seen_right, holds = sides(id, **wanted)
    assert same(seen_left, left), seen_left
    assert same(seen_right, right), seen_right
    if left is not None and CLAIMS[id].relation == "==":
        assert holds == (left == right)


def test_37_wrong_gradients_have_the_reported_digits() -> None:
    for id, digits in {"weighted-k2-gradient-off-policy": "0.3141594547", "plain-k2-gradient-off-policy": "0.3106133312"}.items():
        left, right, holds = sides(id, **OFF)
        assert (left.digits(10), holds) == (digits, False)
        assert right == Real.of("log(3)/4")


def test_16_a_convex_kink_cancels_a_concave_one() -> None:
    # e = 1/4, c = 2: rho = (2, 5/4), A = (-1, 1), both ratios move with slope 1
    terms = [(-1, 4, 1), (1, 1, 1)]
    assert not sides("dual-clip-kinks-never-cancel", terms=terms, ceiling_place=4, epsilon="1/4")[2]
    assert sides("dual-clip-kinks-never-cancel", terms=terms, ceiling_place=8, epsilon="1/4")[2]


def test_15_two_kinks_bend_one_way() -> None:
    # A = (1, -1), rho = (5/4, 3/4), slopes (2, -2): one-sided derivatives 4 and 0, the sum of both directions -4
    left, right, _ = sides("kinks-bend-one-way", terms=[(1, 1, 2), (-1, -1, -2)], epsilon="1/4")
    assert left == -4
    assert right == -4


def test_the_two_cycle_of_equal_rewards_is_found_exactly() -> None:
    # logit log 2, pull 9 (2/3)(1/3) log 2 = 2 log 2: to -log 2 and back
    assert not sides("updates-never-come-back", policy=["2/3", "1/3"], step_size=9)[2]
    assert sides("updates-never-come-back", policy=["2/3", "1/3"], step_size=8)[2]
    assert sides("updates-never-come-back", policy=["1/2", "1/2"], step_size=9)[2]


def test_10_an_epsilon_breaks_scale_invariance() -> None:
    left, right, holds = sides("epsilon-keeps-scale-invariance", rewards=["1/10000", 0], scale=10**4, epsilon="1/10000")
    assert right[0] == 1 - Real.of(2).sqrt() / 2
    assert left[0] == Real.of("1/2") / (Real.of(2).sqrt() / 2 + Real.of("1/10000"))
    assert not holds


@pytest.mark.parametrize("id", CLAIMS)
def test_ids_statements_and_theorems_are_well_formed(id: str) -> None:
    claim = CLAIMS[id]
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", id)
    assert claim.statement.endswith(".")
    assert claim.expected or claim.theorem is None
    if claim.theorem is not None:
        match = re.fullmatch(r"(\w+) \((\w+)\.v\)", claim.theorem)
        assert match is not None
        assert f"{match[2]}.{match[1]}" in THEOREMS


def test_ids_are_distinct() -> None:
    assert len(CLAIMS) == len(update.CLAIMS) + len(field.CLAIMS) + len(delay.CLAIMS)


def is_refuted(claim: Claim, instance: dict[str, Any]) -> bool:
    return claim.satisfied(instance) and not claim.at(instance).holds


def variables(claim: Claim) -> st.SearchStrategy[dict[str, Any]]:
    drawn = {name: st.sampled_from(v) if isinstance(v, (list, tuple)) else v.strategy for name, v in claim.variables.items()}
    return st.fixed_dictionaries(drawn)


@pytest.mark.parametrize("id", FALSE)
def test_each_false_claim_is_refuted_from_an_empty_database(id: str) -> None:
    found: list[float] = []
    start = time.monotonic()

    def refutes(instance: dict[str, Any]) -> bool:
        if is_refuted(CLAIMS[id], instance):
            found.append(time.monotonic() - start)
            return True
        return False

    settings = hypothesis.settings(
        database=None,
        max_examples=20_000,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    hypothesis.find(variables(CLAIMS[id]), refutes, settings=settings)
    assert found[0] < 30  # the budget is 10 s


@pytest.mark.parametrize("id", TRUE)
def test_each_true_claim_holds_on_instances_that_satisfy_it(id: str) -> None:
    claim, satisfied = CLAIMS[id], []

    @hypothesis.seed(1)
    @hypothesis.settings(
        database=None,
        max_examples=60,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(variables(claim))
    def holds(instance: dict[str, Any]) -> None:
        hypothesis.assume(claim.satisfied(instance))
        satisfied.append(instance)
        assert claim.at(instance).holds

    holds()
    assert len(satisfied) >= 10


def test_on_either_side_of_the_crossing_another_bound_is_the_smaller_one() -> None:
    # KL = 159/100 and 160/100 around 1.5936...; the sign of 1 - exp(-KL) - KL/2
    for kl, excess in (("159/100", 1), ("8/5", -1)):
        number = Real.of(kl)
        assert sides("bounds-cross-once", kl=kl)[2]
        assert (1 - (-number).exp() - number / 2 > 0) == (excess > 0)


def test_a_clip_that_acts_on_both_sides_may_have_mean_one() -> None:
    drift = {"behaviour": ["1/2", "1/2"], "target": ["3/4", "1/4"]}
    assert not sides("two-sided-clip-with-mean-one-never-acts", **drift, epsilon="1/5")[2]
    assert sides("two-sided-clip-with-mean-one-never-acts", **drift, epsilon="1/2")[2]  # at its bounds


def test_the_step_with_corrections_is_within_the_bound() -> None:
    # h = (2 log 2, 0) at (1/2, 1/2): 3/10 against 1/3
    step = {"policy": ["1/2", "1/2"], "features": ["log(2)", 0], "drawn": [0, 1], "advantages": [0, 0], "step_size": 4}
    assert sides("corrections-move-a-step-by-at-most-tanh", **step, corrections=["1/log(2)", "-1/log(2)"])[2]


def test_whole_numbers_may_come_back_from_files_as_fractions() -> None:
    instance = {"policy": ["1/4", "1/2", "1/4"], "rewards": [0, 1, 10], "drawn": [Fraction(0), Fraction(1)], "step_size": 2}
    assert not sides("step-never-lowers-expected-reward", **instance)[2]
    assert not sides("centring-unbiased", **{**COIN, "group_size": Fraction(2)})[2]
    assert not sides("geometric-ratio-mean-one", policy=["1/2", "1/2"], old=["1/3", "2/3"], length=Fraction(2))[2]
