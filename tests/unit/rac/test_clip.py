"""Clipped ratios and injected residuals: instances by hand, and sums over responses in fractions as the second route."""

from __future__ import annotations

from fractions import Fraction as F
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from exactgrpo import InexactInputError, InputError, Real
from exactgrpo.field.expected_gradient import reward_gradient
from exactgrpo.rac.clip import (
    clip_range,
    clipped_ratio,
    clipped_ratio_mean,
    clipped_residual_mean,
    decide_clip,
    injected_elsewhere_gradient,
    injected_gradient,
    moved_policy_ratio_mean,
    truncated_policy,
    unweighted_elsewhere_gradient,
)
from exactgrpo.rac.divergence import total_variation
from exactgrpo.strategies import positive_rationals, positive_simplex_points, rationals

HALF, TARGET = [F(1, 2), F(1, 2)], [F(3, 4), F(1, 4)]
SLOPES = [F(3, 16), F(-3, 16)]  # d pi/dt of one logit on the first response: pi_1 pi_2
TWO_SIDED: Any = {"ceiling": F(6, 5), "floor": F(4, 5)}


def bounds() -> st.SearchStrategy[dict[str, Any]]:
    """A ceiling, a floor, both with floor <= ceiling, or none."""
    number = positive_rationals(max=3, denominator=6)
    one_sided = number.map(lambda c: {"ceiling": c})
    two_sided = st.tuples(number, number).map(lambda pair: {"floor": min(pair), "ceiling": max(pair)})
    return st.one_of(st.just({}), one_sided, two_sided, number.map(lambda f: {"floor": f}))


def laws(count: int) -> st.SearchStrategy[Any]:
    return st.integers(2, 4).flatmap(lambda n: st.tuples(*[positive_simplex_points(size=n) for _ in range(count)]))


def clip(x: F, ceiling: F | None = None, floor: F | None = None) -> F:
    x = x if floor is None else max(floor, x)
    return x if ceiling is None else min(ceiling, x)


@st.composite
def problems(draw: st.DrawFn) -> tuple[Any, Any, list[F], list[F], dict[str, Any]]:
    """Behaviour, target, derivatives of the target, residuals and a clip."""
    mu, pi = draw(laws(2))
    numbers = st.lists(rationals(), min_size=len(mu), max_size=len(mu))
    features, residuals = draw(numbers), draw(numbers)
    mean = sum((p * h for p, h in zip(pi, features, strict=True)), F(0))
    return mu, pi, [p * (h - mean) for p, h in zip(pi, features, strict=True)], residuals, draw(bounds())


# ---- hand-worked instances


def test_the_clip_that_binds() -> None:
    # ratios 3/2, 1/2; clipped at 1: (1 + 1/2)/2, and with X = (1, -1): (1 - 1/2)/2
    seen = decide_clip(HALF, TARGET, ceiling=1)
    assert (seen.mean, seen.lost, seen.added) == (F(3, 4), F(1, 4), 0)
    assert (seen.acts, seen.is_unbiased) == (True, False)
    assert clipped_residual_mean(HALF, TARGET, [1, -1], ceiling=1) == F(1, 4)
    assert clipped_residual_mean(HALF, TARGET, [1, -1]) == F(1, 2)


def test_the_two_sided_clip_that_acts_and_has_mean_one() -> None:
    # ratios 3/2 -> 6/5, 1/2 -> 4/5; with X = (1, -1): (6/5 - 4/5)/2
    seen = decide_clip(HALF, TARGET, **TWO_SIDED)
    assert (seen.mean, seen.acts, seen.is_unbiased) == (1, True, True)
    assert seen.lost == seen.added == F(3, 20)
    assert clipped_residual_mean(HALF, TARGET, [1, -1], **TWO_SIDED) == F(1, 5)


def test_a_ceiling_that_is_reached_does_not_act() -> None:
    # the largest ratio is 3/2
    for ceiling, acts in ((F(3, 2), False), (F(149, 100), True)):
        seen = decide_clip(HALF, TARGET, ceiling=ceiling)
        assert (seen.acts, seen.is_unbiased) == (acts, not acts)


def test_61_the_clipped_ratio_is_biased_and_correlated_with_the_residual() -> None:
    # mu = (1/4, 3/4), pi = (3/4, 1/4), x = (1, 0): min(1, rho) = (1, 1/3)
    mu, pi, x = [F(1, 4), F(3, 4)], [F(3, 4), F(1, 4)], [1, 0]
    assert clipped_residual_mean(mu, pi, x, ceiling=1) == F(1, 4)
    assert clipped_ratio_mean(mu, pi, ceiling=1) * F(1, 4) == F(1, 8)
    assert clipped_residual_mean(mu, pi, x) == F(3, 4)
    assert truncated_policy(mu, pi, ceiling=1) == (F(1, 2), F(1, 2))
    # a row-stochastic kernel alone: bias 1/4 - 3/4
    assert clipped_residual_mean(mu, pi, x, ceiling=1) - clipped_residual_mean(mu, pi, x) == F(-1, 2)


def test_the_rollout_that_moved_the_policy_has_ratio_three_halves_always() -> None:
    moved = [TARGET, TARGET[::-1]]
    assert moved_policy_ratio_mean(HALF, moved) == F(3, 2)
    # clipping at 1 then gives mean one although it always acts
    assert moved_policy_ratio_mean(HALF, moved, ceiling=1) == 1
    # a target that no draw moves: the ordinary mean
    assert moved_policy_ratio_mean(HALF, [TARGET, TARGET], ceiling=1) == F(3, 4)


def test_injection_on_another_rollout() -> None:
    # scores 1/4, -3/4: without a clip (1/2)(3/2)(1/4) - (1/2)(1/2)(3/4) = 0, at ceiling 1 (1/2)(1/4) - (1/2)(1/2)(3/4)
    assert injected_elsewhere_gradient(HALF, TARGET, SLOPES, residual=7) == 0
    assert injected_elsewhere_gradient(HALF, TARGET, SLOPES, ceiling=1) == F(-1, 16)
    assert injected_elsewhere_gradient(HALF, TARGET, SLOPES, ceiling=1, residual=-8) == F(1, 2)


def test_injection_on_the_same_rollout_is_the_missing_gradient() -> None:
    # (1/2)(3/2)(1/4) + (1/2)(1/2)(3/4) = 3/8 = d/dt E X; at ceiling 1: 1/8 + 3/16
    assert injected_gradient(HALF, TARGET, SLOPES, [1, -1]) == F(3, 8) == reward_gradient(SLOPES, [1, -1]).as_fraction()
    assert injected_gradient(HALF, TARGET, SLOPES, [1, -1], ceiling=1) == F(5, 16)


def test_a_law_that_is_current_on_average_only_leaves_a_gradient() -> None:
    # scores 1/2, -1/2; residual 1 with law (3/4, 1/4): 1/4, residual -1 with (1/4, 3/4): -(-1/4); half of each
    slopes = [F(1, 4), F(-1, 4)]
    assert unweighted_elsewhere_gradient(HALF, [1, -1], [TARGET, TARGET[::-1]], HALF, slopes) == F(1, 4)
    assert unweighted_elsewhere_gradient(HALF, [5, -1], [HALF, HALF], HALF, slopes) == 0


# ---- laws


@given(problems())
@settings(max_examples=300, deadline=None)
def test_sums_over_responses_in_fractions_agree(problem: Any) -> None:
    mu, pi, slopes, x, bound = problem
    rho = [clip(p / m, **bound) for m, p in zip(mu, pi, strict=True)]
    assert clipped_ratio_mean(mu, pi, **bound) == sum(m * r for m, r in zip(mu, rho, strict=True))
    assert clipped_residual_mean(mu, pi, x, **bound) == sum(m * r * y for m, r, y in zip(mu, rho, x, strict=True))
    expected = sum(m * r * y * d / p for m, p, r, y, d in zip(mu, pi, rho, x, slopes, strict=True))
    assert injected_gradient(mu, pi, slopes, x, **bound) == expected
    elsewhere = sum(m * r * x[0] * d / p for m, p, r, d in zip(mu, pi, rho, slopes, strict=True))
    assert injected_elsewhere_gradient(mu, pi, slopes, residual=x[0], **bound) == elsewhere


@given(problems())
@settings(max_examples=300, deadline=None)
def test_the_closed_form_is_the_direct_sum(problem: Any) -> None:
    mu, pi, _, _, bound = problem
    seen = decide_clip(mu, pi, **bound)
    assert seen.mean == 1 - seen.lost + seen.added
    assert seen.acts == any(clip(p / m, **bound) != p / m for m, p in zip(mu, pi, strict=True))
    assert seen.is_unbiased == (seen.lost == seen.added)
    if "floor" not in bound:
        assert seen.is_unbiased == (not seen.acts)


@given(laws(2))
@settings(max_examples=100, deadline=None)
def test_at_ceiling_one_the_mean_misses_the_total_variation(pair: Any) -> None:
    mu, pi = pair
    assert clipped_ratio_mean(mu, pi, ceiling=1) == 1 - total_variation(mu, pi)


@given(problems())
@settings(max_examples=100, deadline=None)
def test_without_a_clip_the_measure_changes_and_nothing_is_left_elsewhere(problem: Any) -> None:
    mu, pi, slopes, x, _ = problem
    assert clipped_ratio_mean(mu, pi) == 1
    assert clipped_residual_mean(mu, pi, x) == sum(p * y for p, y in zip(pi, x, strict=True))
    assert injected_elsewhere_gradient(mu, pi, slopes, residual=x[0]) == 0
    assert injected_gradient(mu, pi, slopes, x) == reward_gradient(slopes, x)


@given(laws(2), bounds())
@settings(max_examples=100, deadline=None)
def test_a_policy_that_no_draw_moves_is_a_fixed_target(pair: Any, bound: Any) -> None:
    mu, pi = pair
    assert moved_policy_ratio_mean(mu, [pi] * len(mu), **bound) == clipped_ratio_mean(mu, pi, **bound)


@given(laws(2), positive_rationals(max=3, denominator=6))
@settings(max_examples=100, deadline=None)
def test_the_truncated_policy_lies_between(pair: Any, ceiling: F) -> None:
    mu, pi = pair
    truncated = truncated_policy(mu, pi, ceiling=ceiling)
    assert sum(truncated, Real(0)) == 1
    assert total_variation(truncated, pi) <= total_variation(mu, pi)


def test_irrational_masses_meet_the_ceiling_exactly() -> None:
    # mu = (sqrt 2 - 1, 2 - sqrt 2), pi = 3/2 of the first mass: the ratio 3/2 is reached, not exceeded
    mu = ["sqrt(2) - 1", "2 - sqrt(2)"]
    pi = ["3*sqrt(2)/2 - 3/2", "5/2 - 3*sqrt(2)/2"]
    seen = decide_clip(mu, pi, ceiling="3/2")
    assert (seen.acts, seen.is_unbiased) == (False, True)


# ---- bad input


@pytest.mark.parametrize(
    ("bound", "text"),
    [
        ({"ceiling": 0}, "ceiling"),
        ({"ceiling": "-1"}, "ceiling"),
        ({"floor": 0, "ceiling": 1}, "floor"),
        ({"floor": 2, "ceiling": 1}, "a clip is not empty"),
        ({"ceiling": "2 if 1 else 3"}, "ceiling"),
    ],
)
def test_empty_and_impossible_clips_are_refused(bound: Any, text: str) -> None:
    for call in (
        lambda: clip_range(bound.get("ceiling"), bound.get("floor")),
        lambda: clipped_ratio(1, **bound),
        lambda: decide_clip(HALF, TARGET, **bound),
        lambda: moved_policy_ratio_mean(HALF, [TARGET, TARGET], **bound),
        lambda: injected_gradient(HALF, TARGET, SLOPES, [1, 1], **bound),
    ):
        with pytest.raises(InputError, match=text) as error:
            call()
        assert "\n" not in str(error.value)


def test_other_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="rho"):
        clipped_ratio(0, ceiling=1)
    with pytest.raises(InputError, match=r"behaviour\[1\]"):
        clipped_ratio_mean([1, 0], TARGET)
    with pytest.raises(InputError, match="target"):
        clipped_ratio_mean(HALF, [F(1, 2), F(1, 3)])
    with pytest.raises(InputError, match="target"):
        clipped_ratio_mean(HALF, [F(1, 3)] * 3)
    with pytest.raises(InputError, match="residuals"):
        clipped_residual_mean(HALF, TARGET, [1])
    with pytest.raises(InputError, match="derivatives"):
        injected_gradient(HALF, TARGET, [1, 1], [1, 1])
    with pytest.raises(InputError, match="moved"):
        moved_policy_ratio_mean(HALF, [TARGET])
    with pytest.raises(InputError, match=r"moved\[1\]"):
        moved_policy_ratio_mean(HALF, [TARGET, [1]])
    with pytest.raises(InputError, match="behaviours"):
        unweighted_elsewhere_gradient(HALF, [1, 1], [HALF], HALF, [0, 0])
    with pytest.raises(InputError, match="behaviour"):
        clipped_ratio_mean(7, TARGET)  # type: ignore[arg-type]
    with pytest.raises(InexactInputError, match=r"target\[0\]"):
        clipped_ratio_mean(HALF, [0.75, 0.25])
