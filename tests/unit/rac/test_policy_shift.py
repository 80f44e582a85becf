"""Reweighted policies: hand-worked shifts, the bound everywhere, equality at two points, and the library's own softmax steps."""

from __future__ import annotations

from fractions import Fraction as F
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings, strategies as st

import exactgrpo as eg
from exactgrpo import InexactInputError, InputError, Real, advantages
from exactgrpo.numbers.ladder import Execution
from exactgrpo.rac.divergence import decide_bounds, total_variation
from exactgrpo.rac.policy_shift import (
    PolicyShift,
    decide_corrected_step,
    decide_shift,
    extremal_shift,
    oscillation,
    score_changes,
    shift_bound,
    shifted,
)
from exactgrpo.strategies import positive_rationals, positive_simplex_points, rationals

HALF = [F(1, 2), F(1, 2)]


@st.composite
def shifts(draw: st.DrawFn) -> tuple[Any, list[F]]:
    """A policy and rational changes of its scores, from none to large."""
    policy = draw(positive_simplex_points(min_size=2, max_size=4, weight=12))
    reach = draw(st.sampled_from((1, 4, 40)))
    return policy, draw(st.lists(rationals(min=-reach, max=reach), min_size=len(policy), max_size=len(policy)))


@st.composite
def steps(draw: st.DrawFn) -> dict[str, Any]:
    """One softmax step: frozen policy, features, draws, advantages and corrections."""
    policy = draw(positive_simplex_points(min_size=2, max_size=3))
    columns = draw(st.integers(1, 2))
    row = st.lists(rationals(min=-2, max=2, denominator=3), min_size=columns, max_size=columns)
    drawn = draw(st.lists(st.integers(0, len(policy) - 1), min_size=1, max_size=3))
    numbers = st.lists(rationals(denominator=3), min_size=len(drawn), max_size=len(drawn))
    return {
        "policy": policy,
        "features": [draw(row) for _ in policy],
        "drawn": drawn,
        "advantages": draw(numbers),
        "corrections": draw(numbers),
        "step_size": draw(positive_rationals(max=2, denominator=4)),
    }


# ---- by hand


def test_one_shift_by_hand() -> None:
    # (1/3) 4, 2/3 over 2: (2/3, 1/3), TV 1/3; u = exp(log 4/2) = 2: (2 - 1)/(2 + 1)
    seen = decide_shift([F(1, 3), F(2, 3)], ["log(4)", 0])
    assert seen.after == (F(2, 3), F(1, 3))
    assert seen.oscillation == Real.of("log(4)")
    assert (seen.total_variation, seen.bound, seen.holds) == (F(1, 3), F(1, 3), True)
    # the same change at (1/2, 1/2): (4/5, 1/5), TV 3/10 < 1/3
    assert decide_shift(HALF, ["log(4)", 0]).total_variation == F(3, 10)


def test_equal_changes_move_nothing_however_they_are_written() -> None:
    for changes in ([0, 0], [5, 5], ["sqrt(8)", "2*sqrt(2)"], ["log(6)", "log(2) + log(3)"]):
        seen = decide_shift([F(1, 3), F(2, 3)], changes)
        assert seen.after == (F(1, 3), F(2, 3))
        assert (seen.total_variation, seen.bound, seen.holds) == (0, 0, True)


def test_huge_changes_stay_exact() -> None:
    seen = decide_shift(HALF, [800, -800])
    assert seen.holds
    # 1 - 2/(e^800 + 1) against (1/2)(1 - 2/(e^1600 + 1))
    assert F(1, 2) - F(1, 10**690) < seen.total_variation < F(1, 2)
    assert 1 - F(1, 10**340) < seen.bound < 1


@pytest.mark.parametrize("width", [0, "1/3", 1, 7, "2*log(3)", "log(2)", "sqrt(2)"])
def test_two_responses_meet_the_bound(width: Any) -> None:
    policy, changes = extremal_shift(width)
    seen = decide_shift(policy, changes)
    assert seen.total_variation == seen.bound == shift_bound(changes)
    assert seen.holds


@given(rationals(min=0, max=6), st.integers(1, 30))
@settings(max_examples=30, deadline=None)
def test_the_extremal_policy_is_the_only_one_of_two_responses(width: F, k: int) -> None:
    (first, second), changes = extremal_shift(width)
    moved = (first * (1 - F(1, 2**k)), second + first * F(1, 2**k))
    seen = decide_shift(moved, changes)
    assert seen.holds
    assert (seen.total_variation < seen.bound) == (width > 0)


def test_the_largest_change_is_not_the_oscillation() -> None:
    # h = (1, -1): osc = 2, TV = tanh(1)/2 = 0.3807..., tanh(1/4) = 0.2449..., tanh(2/4) = 0.4621...
    seen = decide_shift(HALF, [1, -1])
    assert seen.total_variation.digits(5) == "0.38080"
    assert shift_bound([F(1, 2), F(-1, 2)]).digits(4) == "0.2449"
    assert seen.bound.digits(4) == "0.4621"


# ---- laws


def by_mpmath(policy: Any, changes: Any) -> tuple[Any, Any]:
    """TV and tanh(osc/4) by intervals of mpmath."""
    iv = mpmath.iv
    iv.dps = 60
    weights = [
        iv.mpf(p.numerator) / p.denominator * iv.exp(iv.mpf(h.numerator) / h.denominator) for p, h in zip(policy, changes, strict=True)
    ]
    total = sum(weights, iv.mpf(0))
    variation = sum((abs(w / total - iv.mpf(p.numerator) / p.denominator) for w, p in zip(weights, policy, strict=True)), iv.mpf(0)) / 2
    width = max(changes) - min(changes)
    u = iv.exp(iv.mpf(width.numerator) / width.denominator / 2)
    return variation, (u - 1) / (u + 1)


def contains(interval: Any, number: Real) -> bool:
    low, high = number.enclose(50)
    with mpmath.workdps(80):
        return bool(
            interval.a <= mpmath.mpf(high.numerator) / high.denominator + mpmath.mpf(10) ** -48
            and mpmath.mpf(low.numerator) / low.denominator - mpmath.mpf(10) ** -48 <= interval.b
        )


@given(shifts())
@settings(max_examples=120, deadline=None)
def test_the_bound_holds_and_other_intervals_agree(shift: Any) -> None:
    policy, changes = shift
    seen = decide_shift(policy, changes)
    assert seen.holds
    variation, bound = by_mpmath(policy, changes)
    assert contains(variation, seen.total_variation)
    assert contains(bound, seen.bound)
    assert sum(seen.after, Real(0)) == 1


@given(shifts(), rationals())
@settings(max_examples=40, deadline=None)
def test_a_constant_added_to_all_changes_is_nothing(shift: Any, constant: F) -> None:
    policy, changes = shift
    moved = [h + constant for h in changes]
    assert shifted(policy, moved) == shifted(policy, changes)
    assert oscillation(moved) == oscillation(changes)


@given(positive_simplex_points(min_size=2, max_size=3), st.data())
@settings(max_examples=60, deadline=None)
def test_rational_weights_need_no_exponentials(policy: Any, data: st.DataObject) -> None:
    weights = data.draw(st.lists(positive_rationals(), min_size=len(policy), max_size=len(policy)))
    seen = decide_shift(policy, [Real(w).log() for w in weights])
    total = sum((p * w for p, w in zip(policy, weights, strict=True)), F(0))
    after = [p * w / total for p, w in zip(policy, weights, strict=True)]
    assert list(seen.after) == after
    assert seen.total_variation == sum((abs(a - p) for a, p in zip(after, policy, strict=True)), F(0)) / 2
    # TV <= (u - 1)/(u + 1) with u^2 the ratio of the extreme weights, decided in rationals: u >= (1 + TV)/(1 - TV)
    variation = seen.total_variation.as_fraction()
    assert variation is not None
    assert seen.holds is (((1 + variation) / (1 - variation)) ** 2 <= max(weights) / min(weights))


@given(steps())
@settings(max_examples=60, deadline=None)
def test_a_corrected_step_is_the_softmax_step_of_both_parts(step: Any) -> None:
    policy, features, drawn, rate = step["policy"], step["features"], step["drawn"], step["step_size"]
    columns = range(len(features[0]))
    mean = [sum(p * row[k] for p, row in zip(policy, features, strict=True)) for k in columns]

    def moved(signal: Any) -> list[F]:
        move = [rate * sum(a * (features[y][k] - mean[k]) for a, y in zip(signal, drawn, strict=True)) / len(drawn) for k in columns]
        return [sum(x * m for x, m in zip(row, move, strict=True)) for row in features]

    both = [a + d for a, d in zip(step["advantages"], step["corrections"], strict=True)]
    seen = decide_corrected_step(**step)
    assert seen.score_changes == tuple(moved(step["corrections"]))
    assert seen.shift.before == shifted(policy, moved(step["advantages"]))
    assert seen.shift.after == shifted(policy, moved(both))
    assert seen.shift.holds
    assert seen.shift.bound <= seen.coarse_bound
    assert seen.shift.total_variation == total_variation(seen.shift.before, seen.shift.after)


@given(steps())
@settings(max_examples=30, deadline=None)
def test_no_corrections_no_shift(step: Any) -> None:
    seen = decide_corrected_step(**{**step, "corrections": [0] * len(step["drawn"])})
    assert (seen.shift.total_variation, seen.shift.bound, seen.coarse_bound) == (0, 0, 0)
    assert seen.shift.before == seen.shift.after


def masses(family: eg.Softmax, theta: Any) -> list[Real]:
    """The masses of a family at a parameter, through the arithmetic that runs updates."""

    def program(arithmetic: Any) -> None:
        policy = family.at(arithmetic, arithmetic.exact(eg.Column(x.expression for x in theta)))
        arithmetic.observe("mass", (0, 0), lambda: policy.mass)

    execution: Execution[None] = Execution(program)
    return [Real(execution.value("mass", (0, 0), i)) for i in range(execution.length("mass", (0, 0)))]


@pytest.mark.parametrize(
    ("base", "features", "fast", "slow", "drawn", "rate"),
    [
        ([1, 1], [[1], [0]], [1, 0], [0, 1], [0, 1], "1/2"),
        ([1, 2, 3], [[1, 0], [0, 1], [-1, 1]], [0, 1, 3], [2, 0, 3], [0, 1, 2, 1], "3/4"),
        ([2, 1, 1], [[1], [2], [0]], [1, 0, 0], [1, 1, 0], [0, 1, 2], 2),
    ],
)
def test_exact_injection_leads_where_the_update_with_slow_rewards_leads(
    base: Any, features: Any, fast: Any, slow: Any, drawn: Any, rate: Any
) -> None:
    names = ["a", "b", "c"][: len(base)]
    family = eg.Softmax.of([features], base=[base])
    ends = []
    for rewards in (fast, slow):
        prompt = eg.Prompt.of("q", names, rewards)
        problem = eg.Problem.of(
            prompts=[prompt],
            family=family,
            theta0=[0] * len(features[0]),
            group_size=len(drawn),
            outer_iterations=1,
            inner_steps=1,
            epsilon="1/4",
            beta=0,
            step_size=rate,
            draws=eg.Tape.of([[[names[y] for y in drawn]]], [prompt]),
        )
        ends.append(masses(family, eg.run(problem).theta))
    before, after = (advantages([rewards[y] for y in drawn]) for rewards in (fast, slow))
    policy = [F(b, sum(base)) for b in base]
    corrections = [b - a for a, b in zip(before, after, strict=True)]
    seen = decide_corrected_step(policy, features, drawn, before, corrections, step_size=rate)
    for ours, theirs in ((seen.shift.before, ends[0]), (seen.shift.after, ends[1])):
        for x, y in zip(ours, theirs, strict=True):
            (low, high), (least, most) = x.enclose(40), y.enclose(40)
            assert max(low, least) <= min(high, most)
    assert seen.shift.holds
    assert seen.shift.total_variation > 0
    assert all(bound.holds for bound in decide_bounds(seen.shift.after, seen.shift.before))


# ---- bad input


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="changes"):
        decide_shift(HALF, [1])
    with pytest.raises(InputError, match=r"policy\[1\]"):
        shifted([1, 0], [0, 0])
    with pytest.raises(InputError, match="width"):
        extremal_shift(-1)
    with pytest.raises(InexactInputError, match=r"changes\[0\]"):
        shift_bound([0.5])
    good: dict[str, Any] = {"policy": HALF, "features": [[1], [0]], "drawn": [0, 1], "corrections": [1, -1], "step_size": 1}
    assert score_changes(**good)[0] > 0
    for bad, text in (
        ({"features": [[1]]}, "features"),
        ({"features": [[1], [0, 1]]}, r"features\[1\]"),
        ({"features": [[], []]}, r"features\[0\]"),
        ({"drawn": []}, "drawn"),
        ({"drawn": [0, 2]}, r"drawn\[1\]"),
        ({"drawn": [0, -1]}, r"drawn\[1\]"),
        ({"drawn": [0, "1"]}, r"drawn\[1\]"),
        ({"corrections": [1]}, "corrections"),
        ({"step_size": 0}, "step_size"),
        ({"policy": "half"}, "policy"),
    ):
        with pytest.raises(InputError, match=text) as error:
            score_changes(**{**good, **bad})
        assert "\n" not in str(error.value)


def test_a_bound_that_does_not_hold_would_be_seen() -> None:
    policy, changes = extremal_shift(1)
    seen = decide_shift(policy, changes)
    assert isinstance(seen, PolicyShift)
    assert not seen.total_variation <= shift_bound([F(99, 100), 0])
