"""Advantages and expected gradients at hand-worked groups: field reports 1, 4, 5, 8 and 10."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest

from exactgrpo import InexactInputError, InputError, Real, RewardError, advantages
from exactgrpo.field.advantages import (
    dr_grpo,
    epsilon_normalised,
    leave_one_out_normalised,
    leave_one_out_std,
    rloo,
    sample_normalised,
    sample_std,
)
from exactgrpo.field.expected_gradient import binary_factor, expected_group_gradient, reward_gradient

OUTLIER = [0, *["7/20"] * 7]


def test_01_the_outlier_has_baseline_7_20_and_leave_one_out_std_zero() -> None:
    assert rloo(OUTLIER)[0] == Real.of("-7/20")
    assert leave_one_out_std(OUTLIER)[0].as_fraction() == 0
    assert leave_one_out_normalised(OUTLIER)[0].as_fraction() == 0


def test_04_sample_and_population_advantages_differ_by_a_constant_factor() -> None:
    # three ones, five zeros: (1.2076147288, -0.7245688373), sqrt(14)/4 times the population advantages
    rewards = [1, 1, 1, 0, 0, 0, 0, 0]
    sample = sample_normalised(rewards)
    assert (sample[0].digits(11), sample[7].digits(10)) == ("1.2076147288", "-0.7245688373")
    assert list(sample) == [Real.of(14).sqrt() / 4 * a for a in advantages(rewards)]


def test_05_a_group_of_one_has_no_leave_one_out_baseline() -> None:
    for formula in (rloo, sample_std, sample_normalised):
        with pytest.raises(RewardError):
            formula(["5/2"])
    assert dr_grpo(["5/2"])[0] == 0


def test_08_centring_halves_the_gradient_and_standardising_restores_it() -> None:
    policy, slopes, rewards = ["2/3", "1/3"], ["2/9", "-2/9"], [1, 0]
    assert reward_gradient(slopes, rewards) == Real.of("2/9")
    expected = {dr_grpo: "1/9", advantages: "2/9", rloo: "2/9"}
    for estimator, value in expected.items():
        assert expected_group_gradient(policy, slopes, rewards, group_size=2, advantages=estimator) == Real.of(value)


def test_multisets_and_all_ordered_draws_agree() -> None:
    policy, slopes, rewards = (
        [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)],
        [Fraction(1, 5), Fraction(1, 7), Fraction(-12, 35)],
        [0, 1, 10],
    )
    total = Real.of(0)
    for group in itertools.product(range(3), repeat=3):
        weight = policy[group[0]] * policy[group[1]] * policy[group[2]]
        for a, y in zip(advantages([rewards[y] for y in group]), group, strict=True):
            total = total + weight * a * slopes[y] / policy[y] / 3
    assert total == expected_group_gradient(policy, slopes, rewards, group_size=3, advantages=advantages)


def test_standardising_can_reverse_the_expected_gradient() -> None:
    # pi = (1/3 + 2t, 1/3 - 3t, 1/3 + t), r = (0, 1, 10), G = 2: true 7, expected -2/3
    policy, slopes, rewards = ["1/3"] * 3, [2, -3, 1], [0, 1, 10]
    assert reward_gradient(slopes, rewards) == 7
    assert expected_group_gradient(policy, slopes, rewards, group_size=2, advantages=advantages) == Real.of("-2/3")


def test_binary_factor_is_one_for_two_and_root_two_for_three() -> None:
    # G = 2: 2 p (1-p) sqrt(1)/(2 p (1-p)); G = 3: (3 p (1-p)^2 + 3 p^2 (1-p)) sqrt(2)/(3 p (1-p))
    assert binary_factor("2/7", 2) == 1
    assert binary_factor("2/7", 3) == Real.of(2).sqrt()
    # G = 4, p = 1/2: (4 sqrt 3 + 6 * 2 + 4 sqrt 3)/16 over 1
    assert binary_factor("1/2", 4) == (8 * Real.of(3).sqrt() + 12) / 16


def test_10_an_epsilon_in_the_denominator_is_seen_at_small_rewards() -> None:
    # R = (1/10^4, 0): deviation 1/20000, sample std sqrt(2)/20000
    rewards = ["1/10000", 0]
    assert epsilon_normalised(rewards, epsilon="1/10000")[0] == 1 - Real.of(2).sqrt() / 2
    assert epsilon_normalised(rewards, epsilon="1/1000000")[0].digits(8) == "0.69724623"
    assert advantages(rewards)[0] == 1


def test_rloo_and_centring_by_hand() -> None:
    # R = (1, 2, 6): mean 3; others' means 4, 7/2, 3/2
    assert [a.as_fraction() for a in dr_grpo([1, 2, 6])] == [-2, -1, 3]
    assert [a.as_fraction() for a in rloo([1, 2, 6])] == [-3, Fraction(-3, 2), Fraction(9, 2)]
    # squares 4 + 1 + 9 = 14 over 2
    assert sample_std([1, 2, 6]) == Real.of(7).sqrt()


def test_bad_input_is_refused() -> None:
    with pytest.raises(InexactInputError, match=r"rewards\[0\]"):
        rloo([0.5, 1])
    with pytest.raises(InputError, match="epsilon"):
        epsilon_normalised([1, 0], epsilon=0)
    with pytest.raises(InputError, match="divisor"):
        epsilon_normalised([1, 0], epsilon=1, divisor="G")
    with pytest.raises(InputError, match="success"):
        binary_factor(1, 2)
    with pytest.raises(InputError, match="group_size"):
        expected_group_gradient(["1/2"] * 2, [1, -1], [1, 0], group_size=10**6, advantages=advantages)
