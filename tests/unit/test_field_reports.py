"""Public reports about GRPO and PPO code as exact cases: advantages, clip, sequence ratio, exact KL.

The number of each test is that of the report in the project's collection; sources are named where the test stands. `epsilon` is
1/4 unless said.
"""

from __future__ import annotations

from fractions import Fraction as F
from itertools import product
from typing import Any

import pytest

import exactgrpo as eg
from exactgrpo import Problem, Prompt, Rational, Real, ReferenceMasses, Softmax, Tape, advantages, clip_term, population_std, run

QUARTER = F(1, 4)


def clip(rho: Any, advantage: Any, epsilon: Any = QUARTER) -> eg.ClipTerm:
    return clip_term(rho, advantage, epsilon=epsilon)


def two_kinks(inner_steps: int = 2) -> Problem:
    """Report 15: pi = (t, 1 - t), t0 = 1/2, R = (1, 0), eta = 1/16, both responses drawn."""
    prompt = Prompt.of("q", ["a", "b"], [1, 0])
    return Problem.of(
        prompts=[prompt],
        family=Rational.of([["t", "1 - t"]], parameters=["t"], inequalities=["t > 0", "t < 1"]),
        theta0=["1/2"],
        group_size=2,
        outer_iterations=1,
        inner_steps=inner_steps,
        epsilon=QUARTER,
        beta=0,
        step_size="1/16",
        draws=Tape.of([[["a", "b"]]], [prompt]),
    )


# ---- advantages


def test_01_seven_equal_rewards_have_zero_std_and_the_outlier_a_finite_advantage() -> None:
    # NVIDIA-NeMo/RL#4161. Whole group: mean 49/160, variance (7/20)^2 (7/64), s = 7 sqrt(7)/160
    assert population_std(["7/20"] * 7).as_fraction() == 0
    rewards = [0, *["7/20"] * 7]
    assert population_std(rewards) == 7 * Real.of(7).sqrt() / 160
    assert [a.exact() for a in advantages(rewards)] == ["-sqrt(7)"] + ["sqrt(7)/7"] * 7


@pytest.mark.parametrize(("reward", "size"), [("7/20", 7), ("1/5", 8), ("3/10", 6), ("1/10", 7), ("1/10", 3)])
def test_02_03_equal_rewards_have_zero_advantages_whatever_their_binary_rounding(reward: str, size: int) -> None:
    # verl#4597, atropos#481: float code returns +-0.9 for every sample, or a complex number
    assert all(a.as_fraction() == 0 for a in advantages([reward] * size))
    assert population_std([reward] * size).as_fraction() == 0


def test_04_three_ones_and_five_zeros_under_the_population_std() -> None:
    # TorchFort#38: mean 3/8, s = sqrt(15)/8, so A = (5/8, -3/8) 8/sqrt(15) = (sqrt(15)/3, -sqrt(15)/5)
    group = advantages([1, 1, 1, 0, 0, 0, 0, 0])
    root = Real.of(15).sqrt()
    assert [a.digits(11) for a in (group[0], group[-1])] == ["1.2909944487", "-0.77459666924"]
    assert group[0] == root / 3
    assert group[-1] == -root / 5
    # the sample std has another factor: A_sample = sqrt((G-1)/G) A
    assert (group[0] * (Real.of(7) / 8).sqrt()).digits(11) == "1.2076147288"


def test_05_a_group_of_one_has_advantage_zero_and_an_update_refuses_it() -> None:
    # verl#7581, DeepAnalyze#116
    assert advantages(["5/2"])[0].as_fraction() == 0
    problem = two_kinks()
    with pytest.raises(eg.UpdateError, match="group_size: 1: an integer of at least 2"):
        Problem.of(
            prompts=problem.prompts, family=problem.family, theta0=["1/2"], group_size=1, outer_iterations=1, inner_steps=1,
            epsilon=QUARTER, beta=0, step_size=1, draws=Tape.of([[["a"]]], problem.prompts),
        )  # fmt: skip


def test_08_standardised_binary_rewards_with_two_samples_are_unbiased() -> None:
    # tinker-cookbook#135: pi = (2/3, 1/3) by one logit, r = (1, 0). True gradient p(1-p) = 2/9; centring alone halves it, and
    # dividing by the population std gives 2/9 again: the expectation over the four draws.
    prompt = Prompt.of("q", ["a", "b"], [1, 0])
    total = Real.of(0)
    for draws in product("ab", repeat=2):
        problem = Problem.of(
            prompts=[prompt],
            family=Softmax.of([[[1], [0]]], size=1),
            theta0=["log(2)"],
            group_size=2,
            outer_iterations=1,
            inner_steps=1,
            epsilon=QUARTER,
            beta=0,
            step_size=1,
            draws=Tape.of([[list(draws)]], [prompt]),
        )
        gradient = run(problem).steps[0].gradient
        assert gradient is not None
        probability = F(1)
        for response in draws:
            probability *= F(2, 3) if response == "a" else F(1, 3)
        total = total + probability * gradient[0]
    assert total == F(2, 9)


def test_10_a_tiny_reward_difference_gives_unit_advantages() -> None:
    # Liger-Kernel#553: an epsilon in the denominator breaks A(c R) = A(R)
    assert [a.as_fraction() for a in advantages(["1/10000", 0])] == [1, -1]
    assert [a.as_fraction() for a in advantages([f"1e-{300}", 0])] == [1, -1]


def test_11_a_group_without_variance_still_counts_through_kl_and_through_the_average() -> None:
    # trl#5640: dF/dt = 1/4 - (1/40) log 3; dropping the first group would give 1/2 - (1/40) log 3
    prompts = [Prompt.of("q1", ["a", "b"], [1, 1]), Prompt.of("q2", ["a", "b"], [1, 0])]
    problem = Problem.of(
        prompts=prompts,
        family=Softmax.of([[[1], [0]], [[1], [0]]], size=1),
        theta0=[0],
        group_size=2,
        outer_iterations=1,
        inner_steps=1,
        epsilon=QUARTER,
        beta="1/10",
        step_size=1,
        draws=Tape.of([[["a", "b"], ["a", "b"]]], prompts),
        reference=ReferenceMasses.of([["1/4", "3/4"]] * 2),
    )
    gradient = run(problem).steps[0].gradient
    assert gradient is not None
    assert gradient[0] == QUARTER - Real.of(3).log() / 40
    assert gradient[0].digits(10) == "0.2225346928"


# ---- clip


def test_13_14_kinks_have_no_derivative_and_smooth_ties_have_derivative_a() -> None:
    # pytorch#184572, jax#37821: three conventions for one function; at the smooth ties some return A/2 or 3A/4
    upper, lower = clip("5/4", 1), clip("3/4", -1)
    assert (upper.side, upper.left, upper.right, upper.derivative) == ("kink", 1, 0, None)
    assert (lower.side, lower.left, lower.right, lower.derivative) == ("kink", 0, -1, None)
    assert (clip("3/4", 1).side, clip("3/4", 1).derivative) == ("smooth tie", 1)
    assert (clip("5/4", -1).side, clip("5/4", -1).derivative) == ("smooth tie", -1)


def test_15_the_second_inner_step_lands_on_both_kinks() -> None:
    # trl#3434, minimind#775. Step 1: gradient 2, t = 5/8. Step 2: one-sided derivatives 2 and 0
    result = run(two_kinks())
    assert result.status == "undefined-gradient"
    assert result.theta[0].as_fraction() == F(5, 8)
    evidence = result.steps[1].evidence
    assert evidence is not None
    assert evidence.one_sided() == ((Real.of(2), Real.of(0)),)


def test_16_a_third_response_with_the_masses_of_the_dual_clip_case_is_no_kink_of_the_plain_objective() -> None:
    # dual clip adds a convex kink at rho = 2 for A < 0; the plain objective has none there: rho = 2 with A = -1 is unclipped
    assert (clip(2, -1).side, clip(2, -1).value, clip(2, -1).derivative) == ("unclipped", -2, -1)
    assert clip("5/4", 1).side == "kink"


def test_18_a_ratio_exactly_on_the_bound_is_on_it_for_every_representation() -> None:
    # RLinf#1534: 6/5 is reached from three pairs of masses, which float64 puts on, above and below the bound
    for new, old in ((F(3, 5), F(1, 2)), (F(2, 5), F(1, 3)), (F(3, 10), F(1, 4))):
        assert clip(new / old, 1, F(1, 5)).side == "kink"
        assert clip(eg.sequence_ratio([new], [old]), 1, F(1, 5)).side == "kink"


@pytest.mark.parametrize(
    ("report", "rho", "advantage", "epsilon", "value", "derivative"),
    [
        ("tianshou#433", "3/2", 1, QUARTER, "5/4", 0),
        ("verl#784", 4, -1, QUARTER, -4, -1),
        ("ray#37334", 100, -1, QUARTER, -100, -1),
        ("takuseno/ppo#3", 2, -1, QUARTER, -2, -1),
        ("takuseno/ppo#3", "1/2", -1, QUARTER, "-3/4", 0),
        ("AReaL#285", "6/5", 1, ("1/5", "7/25"), "6/5", 1),
        ("AReaL#285", "13/10", 1, ("1/5", "7/25"), "32/25", 0),
        ("PufferLib#306", "3/2", 1, "1/2", "3/2", None),
    ],
)
def test_19_to_25_values_and_derivatives_of_clipped_terms(
    report: str, rho: Any, advantage: int, epsilon: Any, value: Any, derivative: int | None
) -> None:
    term = clip(rho, advantage, epsilon)
    assert term.value == Real.of(value)
    assert term.derivative == derivative if derivative is not None else term.derivative is None


def test_25_the_kink_of_an_asymmetric_bound_is_at_its_own_place() -> None:
    assert clip("32/25", 1, ("1/5", "7/25")).side == "kink"
    with pytest.raises(eg.UpdateError, match="0 < epsilon < 1"):
        clip(1, 1, (3, 3))
    with pytest.raises(eg.UpdateError, match="0 < epsilon < 1"):
        clip(1, 1, (0, "1/5"))


# ---- sequence ratio


def test_27_a_sequence_ratio_of_one_is_unclipped() -> None:
    # reasoning-from-scratch#243: token ratios 3/2 and 2/3; clipping tokens would give (5/4 + 2/3)/2 = 23/24
    rho = eg.sequence_ratio(["3/4", "1/3"], ["1/2", "1/2"])
    assert rho == 1
    assert (clip(rho, 1).value, clip(rho, 1).side) == (1, "unclipped")
    assert (clip("3/2", 1).value + clip("2/3", 1).value) / 2 == F(23, 24)


def test_29_only_the_product_of_token_ratios_is_a_change_of_measure() -> None:
    # trl#5814: mu = (1/4, 3/4), pi = (1/2, 1/2), two independent tokens, x = 1 on (first, first)
    mu, pi = (F(1, 4), F(3, 4)), (F(1, 2), F(1, 2))
    by_product = sum(
        (mu[i] * mu[j] * eg.sequence_ratio([pi[i], pi[j]], [mu[i], mu[j]]) * int(i == j == 0) for i, j in product(range(2), repeat=2)),
        Real.of(0),
    )
    by_mean = mu[0] * mu[0] * eg.sequence_ratio([pi[0]] * 2, [mu[0]] * 2).sqrt()
    assert by_product == QUARTER
    assert by_mean == F(1, 8)
    assert eg.sequence_ratio(["1/2"] * 4, [1] * 4) == F(1, 16)


def test_32_a_detached_ratio_is_right_only_at_the_first_inner_step() -> None:
    # torchforge#571: at t = 5/8 the detached surrogate has gradient (1/2)(8/5 + 8/3) = 32/15; the objective has none
    step = eg.evaluate_at(two_kinks(), ["5/8"])
    assert step.gradient is None
    assert step.evidence is not None
    assert step.evidence.one_sided() == ((Real.of(2), Real.of(0)),)
    first = eg.evaluate_at(two_kinks(), ["1/2"]).gradient
    assert first is not None
    assert first[0] == 2


def test_34_a_log_ratio_of_800_overflows_nothing() -> None:
    # OpenRLHF#1293: floats give NaN
    rho = Real.of("exp(800)")
    assert (clip(rho, 1).value, clip(rho, 1).derivative) == (F(5, 4), 0)
    assert (clip(rho, 0).value, clip(rho, 0).derivative) == (0, 0)
    assert clip(rho, -1).value.exact() == "-exp(800)"
    assert clip(rho, -1).derivative == -1
    assert clip(Real.of("exp(25)"), -1).value.digits(5) == "-7.2005e10"


# ---- exact KL


def test_39_kl_of_the_policy_from_the_reference() -> None:
    # trl#2914: (1/2) log(4/3) = 0.14384, not KL(reference || policy) = (3/4) log 3 - log 2 = 0.13081
    value = eg.kl_policy_from_reference(["1/2", "1/2"], ["1/4", "3/4"])
    assert value == Real.of("log(4/3)/2")
    assert value.digits(5) == "0.14384"
    other = eg.kl_policy_from_reference(["1/4", "3/4"], ["1/2", "1/2"])
    assert other == Real.of("3/4*log(3) - log(2)")
    assert other.digits(5) == "0.13081"


def test_39_the_gradient_of_the_exact_kl_is_a_quarter_of_log_3() -> None:
    # equal rewards and beta = 1 leave F = -KL; d KL/d logit = (1/4) log 3
    prompt = Prompt.of("q", ["a", "b"], [1, 1])
    problem = Problem.of(
        prompts=[prompt], family=Softmax.of([[[1], [0]]], size=1), theta0=[0], group_size=2, outer_iterations=1, inner_steps=1,
        epsilon=QUARTER, beta=1, step_size=1, draws=Tape.of([[["a", "b"]]], [prompt]), reference=ReferenceMasses.of([["1/4", "3/4"]]),
    )  # fmt: skip
    step = run(problem).steps[0]
    assert step.gradient is not None
    assert step.objective is not None
    assert step.gradient[0] == -Real.of(3).log() / 4
    assert step.objective == -Real.of("log(4/3)/2")


def test_43_zero_masses_contribute_nothing_and_a_zero_reference_is_refused() -> None:
    # torchmetrics#1029, optax#1786
    assert eg.kl_policy_from_reference(["1/2", "1/2", 0], ["1/4", "3/4", 0]) == Real.of("log(4/3)/2")
    with pytest.raises(eg.ReferenceMassError, match=r"reference\[2\].*infinite"):
        eg.kl_policy_from_reference(["3/10", "3/10", "2/5"], ["1/2", "1/2", 0])
