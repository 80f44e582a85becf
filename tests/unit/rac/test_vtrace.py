"""Late residuals against V-trace: hand-worked cases, a second route in fractions, and what on-policy targets are."""

from __future__ import annotations

from fractions import Fraction as F
from typing import Any

import pytest
from hypothesis import assume, given, settings, strategies as st

from exactgrpo import InexactInputError, InputError, LimitError, Real
from exactgrpo.field.retrace import retrace_targets
from exactgrpo.field.returns import n_step_returns
from exactgrpo.field.vtrace import vtrace_advantages, vtrace_targets
from exactgrpo.rac.vtrace import (
    MAX_STEPS,
    corrected_advantages,
    decide_kernel_change,
    decide_vtrace,
    discounted_kernel,
    identity_kernel,
)
from exactgrpo.strategies import positive_rationals, rationals, ratios

REPORTED: dict[str, Any] = {"rewards": [1, 0, 2], "values": [1, 2, 0], "ratios": [2, F(1, 2), 3], "gamma": F(1, 2), "bootstrap": 4}


@st.composite
def trajectories(draw: st.DrawFn, *, max_steps: int = 4) -> dict[str, Any]:
    """A trajectory with residuals; values, discount and bootstrap are any small rationals."""
    steps = draw(st.integers(1, max_steps))
    numbers = st.lists(rationals(denominator=4), min_size=steps, max_size=steps)
    return {
        "rewards": draw(numbers),
        "values": draw(numbers),
        "residuals": draw(numbers),
        "ratios": draw(st.lists(ratios(), min_size=steps, max_size=steps)),
        "gamma": draw(rationals(min=0, max=2, denominator=4)),
        "bootstrap": draw(rationals(denominator=4)),
    }


def kernels(steps: int) -> st.SearchStrategy[list[list[F]]]:
    """Any kernel without negative entries, rows that sum to more or less than one and entries that look back included."""
    row = st.lists(rationals(min=0, max=2, denominator=4), min_size=steps, max_size=steps)
    return st.lists(row, min_size=steps, max_size=steps)


def ceilings() -> st.SearchStrategy[F | None]:
    return st.none() | positive_rationals(max=3, denominator=4)


CEILINGS = st.none() | positive_rationals().map(lambda x: 1 + x)


def clip(x: F, ceiling: F | None) -> F:
    return x if ceiling is None else min(ceiling, x)


def vtrace_by_definition(case: dict[str, Any], *, ceiling: F | None, c_bar: F | None) -> list[F]:
    """rho_s (r_s + X_s + gamma v_{s+1} - V_s) with v as the sum over later steps, in fractions."""
    slow = [r + x for r, x in zip(case["rewards"], case["residuals"], strict=True)]
    states, gamma, steps = [*case["values"], case["bootstrap"]], case["gamma"], len(slow)
    rho, c = [clip(x, ceiling) for x in case["ratios"]], [clip(x, c_bar) for x in case["ratios"]]
    target = list(states)
    for s in range(steps):
        for t in range(s, steps):
            product = F(1)
            for i in range(s, t):
                product *= gamma * c[i]
            target[s] += product * rho[t] * (slow[t] + gamma * states[t + 1] - states[t])
    return [rho[s] * (slow[s] + gamma * target[s + 1] - states[s]) for s in range(steps)]


def corrected_by_definition(case: dict[str, Any], kernel: list[list[F]], *, ceiling: F | None) -> list[F]:
    gamma, steps = case["gamma"], len(case["rewards"])
    advantages = []
    for s in range(steps):
        following = sum((gamma ** (t - s) * case["rewards"][t] for t in range(s, steps)), F(0)) + gamma ** (steps - s) * case["bootstrap"]
        injected = sum((kernel[t][s] * clip(case["ratios"][t], ceiling) * case["residuals"][t] for t in range(steps)), F(0))
        advantages.append(following - case["values"][s] + injected)
    return advantages


# ---- the reported instance, and the targets that are reused


def test_the_reported_instance() -> None:
    assert vtrace_targets(**REPORTED) == (2, 2, 4)
    assert vtrace_advantages(**REPORTED) == (1, 0, 4)
    assert vtrace_targets(**REPORTED, rho_bar=2) == (F(7, 2), 3, 8)
    assert vtrace_advantages(**REPORTED, rho_bar=2, pg_rho_bar=2) == (3, 1, 8)
    # every reward late: nothing fast, residuals in their place; the slow trajectory is the reported one
    late = {**REPORTED, "rewards": [0, 0, 0], "residuals": [1, 0, 2]}
    for ceiling, advantages in ((1, (1, 0, 4)), (2, (3, 1, 8))):
        seen = decide_vtrace(**late, ceiling=ceiling)
        assert seen.vtrace == advantages
        # G = (1/2, 1, 2), minus V = (-1/2, -1, 2), plus rho X = ceiling (1, 0, 2)
        assert seen.corrected == (F(-1, 2) + ceiling, -1, 2 + 2 * ceiling)


@given(trajectories(max_steps=6), CEILINGS, CEILINGS)
@settings(max_examples=100, deadline=None)
def test_on_policy_targets_are_the_n_step_return(case: dict[str, Any], rho_bar: F | None, c_bar: F | None) -> None:
    steps = len(case["rewards"])
    common = {"gamma": case["gamma"], "bootstrap": case["bootstrap"]}
    for rho, c in ((rho_bar, c_bar), (F(1), F(1))):
        targets = vtrace_targets(case["rewards"], case["values"], [1] * steps, **common, rho_bar=rho, c_bar=c)
        assert targets == n_step_returns(case["rewards"], case["values"], n=steps, **common)
    by_hand = [
        sum((case["gamma"] ** (t - s) * case["rewards"][t] for t in range(s, steps)), case["gamma"] ** (steps - s) * case["bootstrap"])
        for s in range(steps)
    ]
    assert list(targets) == by_hand


@given(trajectories(max_steps=6))
@settings(max_examples=100, deadline=None)
def test_on_policy_retrace_targets_are_returns_where_the_action_value_is_the_expected_one(case: dict[str, Any]) -> None:
    steps = len(case["rewards"])
    expected = [*case["values"][1:], case["bootstrap"]]
    targets = retrace_targets(case["rewards"], case["values"], expected, [1] * steps, gamma=case["gamma"])
    assert targets == n_step_returns(case["rewards"], case["values"], n=steps, gamma=case["gamma"], bootstrap=case["bootstrap"])


def test_on_policy_targets_are_the_return_at_irrational_numbers() -> None:
    r, v = ["sqrt(2)", "log(3)", 0], [1, "exp(1)", "sqrt(5)"]
    common: dict[str, Any] = {"gamma": "sqrt(2)/2", "bootstrap": "log(2)"}
    assert vtrace_targets(r, v, [1, 1, 1], **common) == n_step_returns(r, v, n=3, **common)


# ---- the cases by hand


def test_one_step_on_policy_is_vtrace() -> None:
    # (1 - 3) + (3 - 1) = 0 = 3 - 3
    for ceiling in (1, 2, None):
        seen = decide_vtrace([1], [3], [2], [1], gamma=1, bootstrap=0, ceiling=ceiling)
        assert (seen.corrected, seen.vtrace, seen.gap) == ((0,), (0,), (0,))
        assert (seen.has_unit_weights, seen.is_identity, seen.is_equal) == (True, True, True)


def test_a_ceiling_below_one_acts_on_policy() -> None:
    # rho = 1/2: (1 - 3) + 2/2 = -1 against (1/2)(3 - 3) = 0
    seen = decide_vtrace([1], [3], [2], [1], gamma=1, bootstrap=0, ceiling=F(1, 2))
    assert (seen.corrected, seen.vtrace, seen.gap) == ((-1,), (0,), (-1,))
    assert not seen.has_unit_weights
    assert not decide_vtrace([1], [3], [2], [1], gamma=1, bootstrap=0, c_bar=F(1, 2)).has_unit_weights


def test_one_step_off_policy_is_off_by_the_fast_part() -> None:
    # fast 1, slow 3, V = 3, rho = 3/2: -2 + 3 = 1 against 0; (1 - 3/2)(1 - 3) = 1
    seen = decide_vtrace([1], [3], [2], [F(3, 2)], gamma=1, bootstrap=0, ceiling=None)
    assert (seen.corrected, seen.vtrace, seen.gap) == ((1,), (0,), (1,))
    assert (seen.from_fast, seen.from_residuals) == ((1,), (0,))
    # truncated at one the same ratio weighs nothing
    assert decide_vtrace([1], [3], [2], [F(3, 2)], gamma=1, bootstrap=0).is_equal


def test_injection_one_step_late_loses_the_last_residual() -> None:
    # offset 1 in two steps: the first residual lands on the second step, the last one nowhere
    seen = decide_vtrace([0, 0], [0, 0], [1, 2], [1, 1], gamma=1, bootstrap=0, kernel=[[0, 1], [0, 0]])
    assert (seen.corrected, seen.vtrace) == ((0, 1), (3, 2))
    assert not seen.is_identity


def test_a_reward_at_the_end_reaches_earlier_steps_only_if_it_is_injected_there() -> None:
    # X = (0, 0, 8), gamma = 1/2: V-trace (2, 4, 8), the identity kernel (0, 0, 8)
    last: dict[str, Any] = {"rewards": [0, 0, 0], "values": [0, 0, 0], "residuals": [0, 0, 8], "ratios": [1, 1, 1], "gamma": F(1, 2)}
    seen = decide_vtrace(**last, bootstrap=0)
    assert (seen.corrected, seen.vtrace, seen.gap) == ((0, 0, 8), (2, 4, 8), (-2, -4, 0))
    assert decide_vtrace(**last, bootstrap=0, kernel=discounted_kernel(3, F(1, 2))).is_equal
    # with discount one that is the same number at every step, as an update by whole responses adds it
    assert corrected_advantages(**{**last, "gamma": 1}, bootstrap=0, kernel=discounted_kernel(3, 1)) == (8, 8, 8)


# ---- laws


@given(st.data(), trajectories(), ceilings(), ceilings())
@settings(max_examples=150, deadline=None)
def test_numbers_gap_and_closed_form_agree_with_the_definitions(
    data: st.DataObject, case: dict[str, Any], ceiling: F | None, c_bar: F | None
) -> None:
    steps = len(case["rewards"])
    kernel = data.draw(kernels(steps) | st.none())
    seen = decide_vtrace(**case, kernel=kernel, ceiling=ceiling, c_bar=c_bar)
    unit = [[F(int(s == t)) for s in range(steps)] for t in range(steps)]
    assert list(seen.corrected) == corrected_by_definition(case, kernel or unit, ceiling=ceiling)
    assert list(seen.vtrace) == vtrace_by_definition(case, ceiling=ceiling, c_bar=c_bar)
    assert seen.gap == tuple(a - b for a, b in zip(seen.corrected, seen.vtrace, strict=True))
    assert seen.gap == tuple(a + b for a, b in zip(seen.from_fast, seen.from_residuals, strict=True))
    assert seen.is_equal == all(a == b for a, b in zip(seen.corrected, seen.vtrace, strict=True))
    assert seen.is_identity == (kernel in (None, unit))
    assert seen.has_unit_weights == all(clip(rho, bar) == 1 for rho in case["ratios"] for bar in (ceiling, c_bar))
    assert corrected_advantages(**case, kernel=kernel, ceiling=ceiling) == seen.corrected


@given(trajectories(max_steps=1), ceilings())
@settings(max_examples=100, deadline=None)
def test_the_one_step_gap(case: dict[str, Any], ceiling: F | None) -> None:
    seen = decide_vtrace(**case, ceiling=ceiling)
    (rho,), (r,), (v,) = ([clip(x, ceiling) for x in case["ratios"]], case["rewards"], case["values"])
    error = r + case["gamma"] * case["bootstrap"] - v
    assert seen.gap == ((1 - rho) * error,)
    assert seen.is_equal == (rho == 1 or error == 0)


@given(trajectories())
@settings(max_examples=100, deadline=None)
def test_on_policy_the_gap_is_the_discounted_later_residuals(case: dict[str, Any]) -> None:
    steps, gamma, x = len(case["rewards"]), case["gamma"], case["residuals"]
    case = {**case, "ratios": [1] * steps}
    seen = decide_vtrace(**case)
    assert seen.has_unit_weights
    assert seen.gap == tuple(-sum((gamma ** (t - s) * x[t] for t in range(s + 1, steps)), F(0)) for s in range(steps))
    assert decide_vtrace(**case, kernel=discounted_kernel(steps, gamma)).is_equal


@given(st.data(), trajectories(), ceilings())
@settings(max_examples=100, deadline=None)
def test_the_kernel_moves_advantages_by_at_most_the_bound(data: st.DataObject, case: dict[str, Any], ceiling: F | None) -> None:
    steps = len(case["rewards"])
    kernel = data.draw(kernels(steps))
    seen = decide_kernel_change(case["residuals"], case["ratios"], kernel, ceiling=ceiling)
    there, here = (corrected_advantages(**case, kernel=k, ceiling=ceiling) for k in (kernel, identity_kernel(steps)))
    assert seen.changes == tuple(a - b for a, b in zip(there, here, strict=True))
    assert seen.holds
    weight = [abs(clip(rho, ceiling) * x) for rho, x in zip(case["ratios"], case["residuals"], strict=True)]
    for s in range(steps):
        assert seen.bounds[s] == sum((abs(kernel[t][s] - (s == t)) * weight[t] for t in range(steps)), F(0))
        assert abs(seen.changes[s]) <= seen.bounds[s]


@given(st.data(), trajectories(max_steps=3), st.integers(1, 60))
@settings(max_examples=100, deadline=None)
def test_half_the_way_to_the_identity_halves_the_change(data: st.DataObject, case: dict[str, Any], k: int) -> None:
    steps = len(case["rewards"])
    kernel = data.draw(kernels(steps))
    near = [[(s == t) + (kernel[t][s] - (s == t)) * F(1, 2**k) for s in range(steps)] for t in range(steps)]
    far, close = (decide_kernel_change(case["residuals"], case["ratios"], rows) for rows in (kernel, near))
    assert close.changes == tuple(c / 2**k for c in far.changes)
    assert close.bounds == tuple(b / 2**k for b in far.bounds)


def test_the_bound_is_not_reached_when_changes_cancel() -> None:
    # both residuals leak to the second step: 1/4 - 1/4, bound 1/2
    seen = decide_kernel_change([1, -1], [1, 1], [[1, F(1, 4)], [0, F(5, 4)]])
    assert (seen.changes, seen.bounds) == ((0, 0), (0, F(1, 2)))


@given(trajectories(max_steps=3))
@settings(max_examples=50, deadline=None)
def test_the_limit_is_off_vtrace_by_the_gap_of_the_identity_kernel(case: dict[str, Any]) -> None:
    assume(any(x != 0 for x in case["residuals"]))
    steps = len(case["rewards"])
    at_identity = decide_vtrace(**case).gap
    kernel = [[F(9, 10) if s == t else F(1, 10) for s in range(steps)] for t in range(steps)]
    seen, moved = decide_vtrace(**case, kernel=kernel), decide_kernel_change(case["residuals"], case["ratios"], kernel)
    assert seen.gap == tuple(g + c for g, c in zip(at_identity, moved.changes, strict=True))


# ---- bad input

GOOD: dict[str, Any] = {"rewards": [1, 0], "values": [0, 0], "residuals": [1, 1], "ratios": [1, 1], "gamma": 1, "bootstrap": 0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"residuals": []}, "residuals: "),
        ({"residuals": "ab"}, "residuals: 'ab': a list is needed"),
        ({"residuals": [1]}, "ratios: "),
        ({"rewards": [1]}, "rewards: '1 numbers': one reward for each of the 2 residuals"),
        ({"values": [1]}, "values: '1 numbers': one value for each of the 2 rewards"),
        ({"ratios": [1, 0]}, "ratios[1]: \"Real('0')\": a ratio of positive masses is positive"),
        ({"gamma": -1}, "gamma: \"Real('-1')\": gamma >= 0"),
        ({"ceiling": 0}, "ceiling: \"Real('0')\": a truncation level is positive, or None"),
        ({"c_bar": -1}, "c_bar: \"Real('-1')\": a truncation level is positive, or None"),
        ({"kernel": [[1, 0]]}, "kernel: '1 rows': one row of 2 numbers for each of the 2 steps"),
        ({"kernel": [[1, 0], [1]]}, "kernel[1]: '1 numbers': one row of 2 numbers for each of the 2 steps"),
        ({"kernel": [[1, 0], [-1, 1]]}, "kernel[1][0]: \"Real('-1')\": a weight is not negative"),
        ({"kernel": 3}, "kernel: 3: one row of 2 numbers for each of the 2 steps"),
    ],
)
def test_bad_input_is_one_line(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        decide_vtrace(**{**GOOD, **change})
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("place", ["rewards", "values", "residuals", "ratios"])
def test_floats_are_refused(place: str) -> None:
    with pytest.raises(InexactInputError):
        decide_vtrace(**{**GOOD, place: [1.0, 1]})
    with pytest.raises(InexactInputError):
        decide_vtrace(**GOOD, kernel=[[0.5, 0], [0, 1]])


def test_too_many_steps_are_refused_before_the_work_starts() -> None:
    many = range(1, MAX_STEPS + 2)
    with pytest.raises(LimitError, match="at most 256 steps"):
        decide_vtrace(many, many, many, many, gamma=1, bootstrap=0)
    with pytest.raises(LimitError):
        discounted_kernel(10**9, 1)
    assert len(identity_kernel(MAX_STEPS)) == MAX_STEPS


def test_numbers_may_be_irrational() -> None:
    # rho = sqrt(2): (1 - sqrt 2)(1 - 3)
    seen = decide_vtrace([1], [3], ["log(2)"], ["sqrt(2)"], gamma=1, bootstrap=0, ceiling=None)
    assert seen.gap == (2 * Real.of("sqrt(2)") - 2,)
