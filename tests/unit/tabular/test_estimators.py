"""The estimators of the benchmark: the exact column of the published table, limits, best weights, several late channels, and costs."""

from __future__ import annotations

from fractions import Fraction as F

import pytest
from hypothesis import given, settings, strategies as st
from tabular_mdps import mdps

from exactgrpo import InputError
from exactgrpo.numbers.real import Real
from exactgrpo.strategies import rationals
from exactgrpo.tabular.comparison import compare
from exactgrpo.tabular.estimators import (
    ESTIMATORS,
    break_even_delay,
    cost,
    decide_smaller_bias,
    reductions,
    weights,
)
from exactgrpo.tabular.file import load_benchmark, load_mdp
from exactgrpo.tabular.gradients import average_gradient, estimator_gradients, reference_gradient
from exactgrpo.tabular.mdp import Mdp
from exactgrpo.tabular.policy_bias import PolicyBias, limit_bias, policy_bias

OPTIONS = {"discount": "9/10", "time_constant": 1000}


def line(best: F, least: F = F(0)) -> PolicyBias:
    """One late channel with the bias (w - best)^2 + least."""
    return PolicyBias(("slow",), ((best**2 + least, -best), (-best, F(1))))


def direct(mdp: Mdp, weight: F, *, late: str = "slow") -> F:
    """The squared bias, from the one reward that has the weights."""
    mixed = tuple(
        tuple(sum((weight if name == late else 1) * table[s][a] for name, table in mdp.rewards.items()) for a in range(mdp.actions))
        for s in range(mdp.states)
    )
    (gradient,) = estimator_gradients(mdp, [mixed])
    target = reference_gradient(mdp, mdp.reward())
    return sum(((x - y) ** 2 for row, other in zip(gradient, target, strict=True) for x, y in zip(row, other, strict=True)), F(0))


# ---- the published instance


def test_the_exact_column_of_the_published_table() -> None:
    mdp = load_mdp("3x2")
    found = reductions(policy_bias(mdp), [5, 20, 50], steps=50, **OPTIONS)
    assert [x.digits(3) for x in found["rac"].by_delay] == ["69.3", "83.7", "27.5"]
    assert found["rac"].mean_of_ratios.digits(3) == "60.2"
    assert found["rac"].ratio_of_means.digits(4) == "47.83"
    assert found["wait_for_slow"].mean_of_ratios.digits(3) == "54.9"
    assert found["retrace_a"].mean_of_ratios.digits(3) == "1.55"
    assert found["wait_for_slow"].cost.stop_and_wait == 26
    assert [found["naive"].mean_of_ratios, found["naive"].ratio_of_means] == [1, 1]


def test_two_precisions_of_the_published_reduction_agree() -> None:
    ratio = reductions(policy_bias(load_mdp("3x2")), [5, 20, 50], steps=50, **OPTIONS)["rac"].mean_of_ratios
    (low, high), (lower, upper) = ratio.enclose(30), ratio.enclose(200)
    assert low <= lower < upper <= high
    assert abs(F(ratio.digits(30)) - lower) < F(1, 10**28)


def test_limits_are_the_inverse_slack() -> None:
    found = reductions(limit_bias(load_mdp("3x2")), [5, 20, 50], steps=50, **OPTIONS)
    assert [x.digits(4) for x in found["rac"].by_delay] == ["200.5", "50.50", "20.50"]
    for x, delay in zip(found["rac"].by_delay, (5, 20, 50), strict=True):
        low, high = (x * (1 - Real(F(-delay, 1000)).exp())).enclose(30)
        assert abs(low - 1) < F(1, 10**29)
        assert abs(high - 1) < F(1, 10**29)
    assert found["wait_for_slow"].by_delay == (None, None, None)
    unit = reductions(limit_bias(load_mdp("3x2")).in_units_of_naive(), [5], steps=50, **OPTIONS)
    assert unit["rac"].by_delay[0] == 1 / (1 - Real(F(-5, 1000)).exp())


@pytest.mark.parametrize(
    ("horizon", "expected"),
    [(10, ["first", "first", "first"]), (50, ["first", "first", "second"]), (200, ["first", "second", "second"])],
)
def test_rac_against_waiting_is_decided_at_each_horizon(horizon: int, expected: list[str]) -> None:
    bias = policy_bias(load_mdp("3x2").with_horizon(horizon))
    assert [decide_smaller_bias(bias, "rac", "wait_for_slow", [delay], **OPTIONS) for delay in (5, 20, 50)] == expected


def test_the_bias_tends_to_its_limit() -> None:
    mdp = load_mdp("3x2")
    limit = reductions(limit_bias(mdp), [20], steps=50, **OPTIONS)["rac"].by_delay[0]
    gaps = [abs(reductions(policy_bias(mdp.with_horizon(t)), [20], steps=50, **OPTIONS)["rac"].by_delay[0] - limit) for t in (50, 200, 800)]
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 3


# ---- any instance


@settings(deadline=None)
@given(mdps(mixes=True), rationals(min=0, max=2))
def test_the_bias_is_that_of_one_weighted_reward(mdp: Mdp, weight: F) -> None:
    assert policy_bias(mdp).squared([weight]) == direct(mdp, weight)
    assert policy_bias(mdp, ["fast"]).squared([weight]) == direct(mdp, weight, late="fast")


@settings(deadline=None)
@given(mdps(mixes=True), rationals(min=-1, max=2), rationals(min=-1, max=2))
def test_no_weights_have_less_bias_than_the_best(mdp: Mdp, first: F, second: F) -> None:
    one, two = policy_bias(mdp), policy_bias(mdp, ["fast", "slow"])
    for bias, chosen in ((one, [first]), (two, [first, second])):
        best = bias.best_weights()
        if best is not None:
            assert bias.squared(best) <= bias.squared(chosen)
    if one.best_weights() is None:
        assert one.squared([first]) == one.squared([second])


@settings(deadline=None, max_examples=30)
@given(mdps(mixes=True, states=3, actions=2), st.integers(1, 60))
def test_the_limit_of_the_reduction_is_one_over_one_minus_w_whatever_the_mdp(mdp: Mdp, delay: int) -> None:
    bias = limit_bias(mdp).in_units_of_naive()
    found = reductions(bias, [delay], steps=10, **OPTIONS)
    assert found["wait_for_slow"].by_delay == (None,)
    if any(x for row in reference_gradient(mdp, mdp.reward("slow")) for x in row):
        assert found["retrace_a"].by_delay[0] == 1 / (1 - F(9, 10) ** delay)
        assert found["rac"].by_delay[0] == 1 / (1 - Real(F(-delay, 1000)).exp())
    else:
        assert found["rac"].by_delay == (None,)


@settings(deadline=None, max_examples=30)
@given(mdps(mixes=True, channels=("a", "b", "c")), st.lists(st.integers(0, 30), min_size=2, max_size=2))
def test_two_late_channels_have_weights_of_their_own(mdp: Mdp, delays: list[int]) -> None:
    bias = policy_bias(mdp, ["c", "a"])
    (w_c, w_a), gamma = [x.as_fraction() for x in weights("retrace_a", delays, discount="1/2")], F(1, 2)
    assert (w_c, w_a) == (gamma ** delays[0], gamma ** delays[1])
    mixed = tuple(
        tuple(w_a * mdp.rewards["a"][s][a] + mdp.rewards["b"][s][a] + w_c * mdp.rewards["c"][s][a] for a in range(mdp.actions))
        for s in range(mdp.states)
    )
    (gradient,) = estimator_gradients(mdp, [mixed])
    target = reference_gradient(mdp, mdp.reward())
    size = sum(((x - y) ** 2 for row, other in zip(gradient, target, strict=True) for x, y in zip(row, other, strict=True)), F(0))
    assert bias.squared([w_c, w_a]) == size
    (norm,) = reductions(bias, [delays], discount="1/2", steps=5)["retrace_a"].bias
    assert norm * norm == size


def test_another_target_may_be_given() -> None:
    mdp = load_mdp("3x2")
    target = average_gradient(mdp, mdp.reward())
    assert policy_bias(mdp, target=target).squared([1]) != policy_bias(mdp).squared([1])


# ---- aggregation, ties, and what has no bias


def test_aggregation_by_hand() -> None:
    # naive 1; retrace_a at discount 1/2: w = 1/2, 1/4, bias 1/2, 3/4
    found = reductions(line(F(1)), [1, 2], discount="1/2", time_constant=1, steps=4)["retrace_a"]
    assert found.bias == (F(1, 2), F(3, 4))
    assert found.by_delay == (2, F(4, 3))
    assert (found.mean_of_ratios, found.ratio_of_means) == (F(5, 3), F(8, 5))


def test_an_estimator_without_bias_has_no_ratio() -> None:
    found = reductions(line(F(1, 2)), [1, 3], discount="1/2", time_constant=1, steps=4)
    assert found["retrace_a"].by_delay == (None, F(4, 3))
    assert found["retrace_a"].mean_of_ratios is None
    # naive 1/2 twice over 0 + 3/8
    assert found["retrace_a"].ratio_of_means == F(8, 3)
    nothing = reductions(PolicyBias(("slow",), ((F(0), F(0)), (F(0), F(0)))), [1], discount="1/2", steps=4)
    assert [(x.by_delay, x.mean_of_ratios, x.ratio_of_means) for x in nothing.values()] == [((None,), None, None)] * 5


def test_a_naive_estimator_without_bias_cannot_be_bettered() -> None:
    found = reductions(line(F(0)), [1], discount="1/2", steps=4)
    assert found["naive"].by_delay == (None,)
    assert found["wait_for_slow"].by_delay == (0,)
    assert found["wait_for_slow"].ratio_of_means == 0


def test_ties_are_proved() -> None:
    # w = exp(-1/1000) and w = 1 are equally far from the midpoint; as that is irrational, the tie at delay 0 is the only one
    assert decide_smaller_bias(line(F(1, 3)), "rac", "wait_for_slow", [0], **OPTIONS) == "equal"
    assert decide_smaller_bias(line(F(1, 3)), "vtrace", "wait_for_slow", [9], **OPTIONS) == "equal"
    assert decide_smaller_bias(line(F(3, 4)), "retrace_a", "wait_for_slow", [1], discount="1/2") == "equal"


def test_a_very_close_race_is_decided() -> None:
    w = Real(F(-1, 200)).exp()
    low, high = ((w + 1) / 2).enclose(60)
    assert decide_smaller_bias(line(low), "rac", "wait_for_slow", [5], **OPTIONS) == "first"
    assert decide_smaller_bias(line(high), "rac", "wait_for_slow", [5], **OPTIONS) == "second"


@settings(deadline=None)
@given(rationals(min=0, max=2, denominator=50), rationals(min=0))
def test_below_the_break_even_delay_rac_has_less_bias_than_waiting(best: F, least: F) -> None:
    bias, tau = line(best, least), 20

    def smaller(delay: int) -> str:
        return decide_smaller_bias(bias, "rac", "wait_for_slow", [delay], discount=0, time_constant=tau)

    even = break_even_delay(bias, time_constant=tau)
    if F(1, 2) < best < 1:
        below = int(even.enclose(20)[0])
        assert below < even < below + 1
        assert (smaller(below), smaller(below + 1)) == ("first" if below else "equal", "second")
    else:
        assert even is None
        assert {smaller(1), smaller(200)} == {"first" if best <= F(1, 2) else "second"}


def test_weights_at_delay_zero() -> None:
    assert [weights(name, [0], discount="9/10")[0] for name in ESTIMATORS] == [0, 1, 1, 1, 1]


def test_costs() -> None:
    # mean delay 25; of pairs, the longer delay counts
    grid = [(5,), (20,), (50,)]
    found = {name: (cost(name, grid, 50).stop_and_wait, cost(name, grid, 50).pipelined) for name in ESTIMATORS}
    once = (F(1), F(1))
    assert found == {"naive": once, "rac": once, "retrace_a": once, "wait_for_slow": (26, F(3, 2)), "vtrace": (F(3, 2), F(3, 2))}
    assert cost("wait_for_slow", [(5, 50), (20, 20)], 70).stop_and_wait == 36


# ---- what is refused


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: weights("best", [1], discount=0), "estimator: 'best': one of naive, rac"),
        (lambda: weights("rac", [-1], discount=0), r"delays\[0\]: -1: an integer of at least 0"),
        (lambda: weights("rac", [10**9], discount=0), r"delays\[0\]: 1000000000: at most 10000 steps"),
        (lambda: weights("rac", [1], discount=0, time_constant=0), "tau"),
        (lambda: reductions(line(F(1)), [], discount=0, steps=1), "there is at least one delay"),
        (lambda: reductions(line(F(1)), [[1, 2]], discount=0, steps=1), r"delays\[0\]: '2 delays': one delay for each of the 1"),
        (lambda: reductions(line(F(1)), [1], discount=0, steps=0), "steps: 0: an integer of at least 1"),
        (lambda: policy_bias(load_mdp("3x2"), ["medium"]), "channel: 'medium': the channels here are fast, slow"),
        (lambda: policy_bias(load_mdp("3x2"), []), "at least one channel, each once"),
        (lambda: policy_bias(load_mdp("3x2"), ["slow", "slow"]), "at least one channel, each once"),
        (lambda: line(F(1)).norm([1, 1]), "weights: '2 numbers': 1 numbers"),
        (lambda: break_even_delay(policy_bias(load_mdp("3x2"), ["slow", "fast"])), "late: '2 channels': one late channel"),
    ],
)
def test_what_is_refused(call: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()  # type: ignore[operator]


# ---- all of it


def test_the_comparison_of_the_published_instance() -> None:
    found = compare(load_benchmark("3x2"))
    assert [(d.horizon, d.delay) for d in found.decisions if d.smaller == "rac"] == [
        (10, 5),
        (10, 20),
        (10, 50),
        (50, 5),
        (50, 20),
        (200, 5),
    ]
    assert found.pairs == ((5, 5), (5, 20), (5, 50), (20, 20), (20, 50), (50, 50))
    both = policy_bias(load_mdp("3x2"), ["fast", "slow"])
    assert found.both_late["rac"].bias[2] == both.norm(weights("rac", (5, 50), discount=0))
    assert found.both_late["rac"].bias[2] != both.norm(weights("rac", (50, 5), discount=0))
    # both late by 5: the two gradients have one weight, as has their sum
    same = reductions(found.bias, [5], steps=50, **OPTIONS)
    assert found.both_late["wait_for_slow"].bias[0] == same["wait_for_slow"].bias[0]
    assert found.best_weight is not None
    assert found.bias.norm([found.best_weight]) < found.bias.norm(weights("rac", [20], discount=0))
    assert found.directions[0].cosine == 1
    assert all(0 < d.cosine < 1 for d in found.directions[1:] if d.cosine is not None)


def test_an_instance_whose_slow_reward_has_no_gradient() -> None:
    benchmark = load_benchmark("3x2")
    flat = Mdp.of(
        benchmark.mdp.transition,
        benchmark.mdp.policy,
        {"fast": benchmark.mdp.rewards["fast"], "slow": [[0, 0]] * 3},
        discount="9/10",
        horizon=3,
    )
    found = compare(type(benchmark)(flat, (5,), F(1000)))
    assert (found.best_weight, found.break_even) == (None, None)
    assert [x.by_delay for x in found.reductions.values()] == [(1,)] * 5
    assert [x.by_delay for x in found.limits.values()] == [(None,)] * 5
    assert {d.smaller for d in found.decisions} == {"equal"}
