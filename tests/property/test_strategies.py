"""Strategies yield what they say, within their bounds, without health complaints; options are checked at once."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction as F
from typing import Any

import pytest
from hypothesis import find, given, settings, strategies as st

from exactgrpo import InputError, Problem, run
from exactgrpo.strategies import (
    binary_rewards,
    epsilons,
    positive_simplex_points,
    problems,
    problems_on_a_bound,
    rationals,
    ratios,
    reward_groups,
    simplex_points,
)

healthy = settings(max_examples=60, derandomize=True, database=None, deadline=None)


@healthy
@given(rationals(min="-3/2", max=5, denominator=6), epsilons(), ratios(), simplex_points(size=3), positive_simplex_points(size=4))
def test_numbers_lie_in_their_ranges(x: F, epsilon: F, rho: F, masses: tuple[F, ...], positive: tuple[F, ...]) -> None:
    assert F(-3, 2) <= x <= 5
    assert x.denominator <= 6
    assert 0 < epsilon < 1
    assert 0 < rho <= 4
    assert sum(masses) == sum(positive) == 1
    assert (len(masses), len(positive)) == (3, 4)
    assert min(masses) >= 0 < min(positive)


@healthy
@given(reward_groups(min_size=2, max_size=5), binary_rewards())
def test_groups_have_their_sizes(rewards: list[F], binary: list[F]) -> None:
    assert 2 <= len(rewards) <= 5
    assert all(isinstance(r, F) for r in rewards)
    assert set(binary) <= {0, 1}


def test_they_shrink_to_the_simplest() -> None:
    assert find(rationals(), lambda x: True) == 0
    assert find(simplex_points(size=3), lambda masses: True) in ((1, 0, 0), (0, 1, 0), (0, 0, 1))
    assert find(positive_simplex_points(size=3), lambda masses: True) == (F(1, 3),) * 3
    assert find(reward_groups(), lambda rewards: True) == [0, 0]
    smallest = find(problems(), lambda problem: True)
    assert len(smallest.prompts) == smallest.inner_steps == smallest.outer_iterations == 1
    assert smallest.group_size == 2


@healthy
@given(problems(families=["softmax", "simplex"], max_prompts=1, max_steps=2))
def test_problems_have_the_sizes_asked_for(problem: Problem) -> None:
    assert len(problem.prompts) == 1
    assert problem.inner_steps <= 2
    assert type(problem.family).__name__ in ("Softmax", "Simplex")


def seen_sides(strategy: st.SearchStrategy[Problem]) -> set[str]:
    seen: set[str] = set()

    @settings(max_examples=40, derandomize=True, database=None, deadline=None)
    @given(strategy)
    def look(problem: Problem) -> None:
        seen.update(term.side for term in run(problem).steps[1].terms)

    look()
    return seen


def test_problems_on_a_bound_reach_kinks_and_smooth_ties() -> None:
    assert {"kink", "smooth tie"} <= seen_sides(problems_on_a_bound())


@pytest.mark.parametrize("miss", ["10^-60", "10^-300", "-(10^-300)"])
def test_near_misses_are_never_on_a_bound_that_only_they_miss(miss: str) -> None:
    sides = seen_sides(problems_on_a_bound(miss=miss))
    assert sides <= {"unclipped", "clipped", "zero advantage"}


@pytest.mark.parametrize(
    "make",
    [
        lambda: rationals(min=2, max=1),
        lambda: rationals(min=0.5),
        lambda: rationals(denominator=0),
        lambda: rationals(min="1/7", denominator=6),
        lambda: rationals(min="sqrt(2)"),
        lambda: simplex_points(size=0),
        lambda: positive_simplex_points(size=2, weight=0),
        lambda: reward_groups(min_size=3, max_size=2),
        lambda: epsilons(denominator=1),
        lambda: problems(families=["tabular"]),  # type: ignore[list-item]
        lambda: problems(families=[]),
        lambda: problems(max_group_size=1),
    ],
)
def test_options_without_values_are_refused_at_once(make: Callable[[], Any]) -> None:
    with pytest.raises(InputError):
        make()
