"""Ratios, surrogate terms and aggregation at hand-worked values: field reports 16, 19 to 22, 27, 29, 44 and 61."""

from __future__ import annotations

import pytest

from exactgrpo import InputError, Real, UpdateError
from exactgrpo.field.aggregation import constant_length, mean_of_sequence_means, mean_of_sums, token_mean
from exactgrpo.field.ratios import geometric_mean_ratio, token_ratios, truncated_ratio
from exactgrpo.field.surrogate import cispo_term, cispo_weight, dual_clip_term, token_level_term
from exactgrpo.update.clip import clip_term
from exactgrpo.update.ratio import sequence_ratio

QUARTER = "1/4"


def test_16_the_dual_clip_kink_is_convex() -> None:
    # rho = c = 2, A = -1: left derivative -1 below the ceiling, 0 above it; value -2
    term = dual_clip_term(2, -1, epsilon=QUARTER, ceiling=2)
    assert (term.value.as_fraction(), term.left.as_fraction(), term.right.as_fraction(), term.derivative) == (-2, -1, 0, None)


def test_19_dual_clip_leaves_positive_advantages_alone() -> None:
    assert dual_clip_term("3/2", 1, epsilon=QUARTER, ceiling=3).value == Real.of("5/4")
    assert dual_clip_term(4, 0, epsilon=QUARTER, ceiling=3).value == 0


def test_20_dual_clip_bounds_negative_advantages_from_below() -> None:
    term = dual_clip_term(4, -1, epsilon=QUARTER, ceiling=3)
    assert (term.value.as_fraction(), term.side, term.left.as_fraction(), term.right.as_fraction()) == (-3, "clipped", 0, 0)
    plain = clip_term(4, -1, epsilon=QUARTER)
    assert (plain.value.as_fraction(), plain.left.as_fraction()) == (-4, -1)
    assert dual_clip_term("5/2", -1, epsilon=QUARTER, ceiling=3).value == Real.of("-5/2")


def test_27_token_and_sequence_clipping_differ() -> None:
    assert token_level_term(["3/2", "2/3"], 1, epsilon=QUARTER) == Real.of("23/24")
    assert clip_term(sequence_ratio(["3/2", "2/3"], [1, 1]), 1, epsilon=QUARTER).value == 1


def test_29_four_ratios_of_one_half() -> None:
    policy, old = ["1/4"] * 4, ["1/2"] * 4
    assert sequence_ratio(policy, old) == Real.of("1/16")
    assert geometric_mean_ratio(policy, old) == Real.of("1/2")
    assert [r.as_fraction() for r in token_ratios(policy, old)] == [Real.of("1/2").as_fraction()] * 4


def test_29_only_the_product_changes_the_measure() -> None:
    # mu = (1/4, 3/4), pi = (1/2, 1/2), x = 1 on (first, first): product 1/4, geometric mean 1/8
    mu, pi, x = [Real.of("1/4"), Real.of("3/4")], [Real.of("1/2")] * 2, Real.of(0)
    y = Real.of(0)
    for i in range(2):
        for j in range(2):
            payoff = int(i == j == 0)
            x = x + mu[i] * mu[j] * sequence_ratio([pi[i], pi[j]], [mu[i], mu[j]]) * payoff
            y = y + mu[i] * mu[j] * geometric_mean_ratio([pi[i], pi[j]], [mu[i], mu[j]]) * payoff
    assert (x.as_fraction(), y.as_fraction()) == (Real.of("1/4").as_fraction(), Real.of("1/8").as_fraction())


def test_44_four_aggregations_of_two_sequences() -> None:
    losses = [[6], [1, 2, 3]]
    assert [token_mean(losses).as_fraction(), mean_of_sequence_means(losses).as_fraction()] == [3, 4]
    assert [mean_of_sums(losses).as_fraction(), constant_length(losses, length=3).as_fraction()] == [6, 2]


def test_61_a_truncated_ratio_has_mean_below_one() -> None:
    # mu = (1/4, 3/4), pi = (3/4, 1/4): 1/4 min(1, 3) + 3/4 min(1, 1/3) = 1/2
    mean = Real.of("1/4") * truncated_ratio(3, ceiling=1) + Real.of("3/4") * truncated_ratio("1/3", ceiling=1)
    assert mean == Real.of("1/2")


def test_cispo_keeps_the_gradient_of_tokens_that_the_clip_drops() -> None:
    # rho = 3, A = 1, bound 5/4: the clipped term has derivative 0, CISPO keeps 5/4 log pi
    assert clip_term(3, 1, epsilon=QUARTER).left == 0
    assert cispo_weight(3, epsilon_high=QUARTER) == Real.of("5/4")
    assert cispo_term("3/4", "1/4", 2, epsilon_high=QUARTER) == Real.of("5/2") * Real.of("3/4").log()
    assert cispo_weight("1/10", epsilon_high=QUARTER, epsilon_low=QUARTER) == Real.of("3/4")


def test_bad_input_is_refused() -> None:
    with pytest.raises(UpdateError, match="ceiling"):
        dual_clip_term(2, -1, epsilon=QUARTER, ceiling=1)
    with pytest.raises(InputError, match=r"ratios\[1\]"):
        token_level_term([1, 0], 1, epsilon=QUARTER)
    with pytest.raises(InputError, match="old"):
        token_ratios(["1/2"], ["1/2", "1/2"])
    with pytest.raises(InputError, match=r"losses\[1\]"):
        token_mean([[1], []])
    with pytest.raises(InputError, match="losses"):
        mean_of_sums([])
    with pytest.raises(InputError, match="length"):
        constant_length([[1]], length=0)
