"""Returns, V-trace, Retrace and eligibility traces at hand-worked trajectories: field reports 50 to 54, 57 and 59."""

from __future__ import annotations

from fractions import Fraction

import pytest

from exactgrpo import InputError, Real
from exactgrpo.field.eligibility import eligibility_traces
from exactgrpo.field.retrace import retrace_errors, retrace_targets
from exactgrpo.field.returns import discounted_returns, gae, n_step_returns, td_errors
from exactgrpo.field.vtrace import vtrace_advantages, vtrace_targets

REWARDS, VALUES, RATIOS = [1, 0, 2], [1, 2, 0], [2, "1/2", 3]
SETTING = {"gamma": "1/2", "bootstrap": 4}


def plain(numbers: tuple[Real, ...]) -> list[Fraction | None]:
    return [x.as_fraction() for x in numbers]


def test_51_vtrace_with_all_bars_one() -> None:
    # errors 1, (1/2)(-2), 4; targets from the back: 4, 2 - 1 + (1/2)(1/2) 4, 1 + 1 + (1/2)(2 - 2)
    assert plain(vtrace_targets(REWARDS, VALUES, RATIOS, **SETTING)) == [2, 2, 4]
    assert plain(vtrace_advantages(REWARDS, VALUES, RATIOS, **SETTING)) == [1, 0, 4]


def test_51_vtrace_with_rho_bars_two() -> None:
    assert plain(vtrace_targets(REWARDS, VALUES, RATIOS, rho_bar=2, **SETTING)) == [Fraction(7, 2), 3, 8]
    assert plain(vtrace_advantages(REWARDS, VALUES, RATIOS, rho_bar=2, pg_rho_bar=2, **SETTING)) == [3, 1, 8]


def test_52_on_policy_vtrace_is_the_return_that_bootstraps_at_the_end() -> None:
    ones = [1, 1, 1]
    expected = [2, 2, 4]
    assert plain(vtrace_targets(REWARDS, VALUES, ones, **SETTING)) == expected
    assert plain(n_step_returns(REWARDS, VALUES, n=3, **SETTING)) == expected
    assert plain(discounted_returns(REWARDS, **SETTING)) == expected
    assert plain(vtrace_advantages(REWARDS, VALUES, ones, **SETTING)) == [1, 0, 4]


def test_53_the_current_ratio_acts_once_on_a_trace() -> None:
    # z_0 = 2, z_1 = (1/2)((1/2) 2 + 1)
    assert plain(eligibility_traces([1, 1], [2, "1/2"], gamma="1/2", lambda_=1)) == [2, 1]


def test_54_retrace_errors_use_the_trace_of_the_next_step() -> None:
    # errors 9/8, -9/4, 1/2; traces of steps 1, 2: 1, 2/3; gamma = 1/2
    errors = ["9/8", "-9/4", "1/2"]
    assert plain(retrace_errors(errors, [0] * 3, [0] * 3, ["1/7", 1, "2/3"], gamma="1/2")) == [
        Fraction(1, 12),
        Fraction(-25, 12),
        Fraction(1, 2),
    ]
    # one index late: traces 2/3, 1
    assert plain(retrace_errors(errors, [0] * 3, [0] * 3, ["1/7", "2/3", 1], gamma="1/2")) == [Fraction(11, 24), -2, Fraction(1, 2)]


def test_57_the_ratio_the_wrong_way_round() -> None:
    inverted = ["1/2", 2, "1/3"]
    assert plain(vtrace_targets(REWARDS, VALUES, inverted, **SETTING)) == [Fraction(7, 6), Fraction(2, 3), Fraction(4, 3)]
    assert plain(vtrace_advantages(REWARDS, VALUES, inverted, **SETTING)) == [Fraction(1, 6), Fraction(-4, 3), Fraction(4, 3)]


def test_59_a_reward_one_slot_late_vanishes() -> None:
    assert plain(discounted_returns([0, 0, 1], gamma=1)) == [1, 1, 1]


def test_50_no_bootstrap_leaks_over_two_joined_trajectories() -> None:
    for value in (1, 100):
        assert plain(vtrace_advantages([0, 0], [value] * 2, [1, 1], gamma=1, bootstrap=value)) == [0, 0]


def test_gae_between_td_error_and_return() -> None:
    assert plain(td_errors(REWARDS, VALUES, **SETTING)) == [1, -2, 4]
    assert plain(gae(REWARDS, VALUES, lambda_=0, **SETTING)) == [1, -2, 4]
    assert plain(gae(REWARDS, VALUES, lambda_=1, **SETTING)) == [1, 0, 4]
    # lambda = 1/2: 4, -2 + (1/4) 4, 1 + (1/4)(-1)
    assert plain(gae(REWARDS, VALUES, lambda_="1/2", **SETTING)) == [Fraction(3, 4), -1, 4]


def test_lambda_shortens_vtrace_and_no_bar_does_not_truncate() -> None:
    # lambda = 0: V + rho delta = 1 + 1, 2 - 1, 4
    assert plain(vtrace_targets(REWARDS, VALUES, RATIOS, lambda_=0, **SETTING)) == [2, 1, 4]
    # no bars: 12, 2 - 1 + (1/2)(1/2) 12, 1 + 2 + (1/2) 2 (4 - 2)
    assert plain(vtrace_targets(REWARDS, VALUES, RATIOS, rho_bar=None, c_bar=None, **SETTING)) == [5, 4, 12]


def test_n_step_returns_are_cut_at_the_end() -> None:
    # n = 2: 1 + 0 + (1/4) V_2, 0 + 1 + (1/4) 4, 2 + (1/2) 4
    assert plain(n_step_returns(REWARDS, VALUES, n=2, **SETTING)) == [1, 2, 4]


def test_retrace_targets_add_the_value() -> None:
    # errors 2 - 1 = 1, then 1 - 1 + (1/2) 1
    assert plain(retrace_targets([1, 2], [1, 1], [0, 0], [1, 1], gamma="1/2")) == [Fraction(3, 2), 2]


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="values"):
        gae([1, 2], [1], gamma=1, lambda_=1, bootstrap=0)
    with pytest.raises(InputError, match="ratios"):
        vtrace_targets([1], [1], [0], gamma=1, bootstrap=0)
    with pytest.raises(InputError, match="rho_bar"):
        vtrace_targets([1], [1], [1], gamma=1, bootstrap=0, rho_bar=0)
    with pytest.raises(InputError, match="n"):
        n_step_returns([1], [1], n=0, gamma=1, bootstrap=0)
    with pytest.raises(InputError, match="rewards"):
        discounted_returns([], gamma=1)
