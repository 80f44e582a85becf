"""Strategies yield what they say, within their bounds, without health complaints; options are checked at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction as F
from typing import Any

import pytest
from hypothesis import Phase, Verbosity, find, given, settings, strategies as st

from exactgrpo import InputError, Problem, Run, run
from exactgrpo.spec import loaded, problem as built
from exactgrpo.strategies import (
    FAMILIES,
    PolicyAt,
    binary_rewards,
    epsilons,
    near_misses,
    policies,
    positive_rationals,
    positive_simplex_points,
    problems,
    problems_at_a_tangency,
    problems_on_a_bound,
    problems_on_a_kink,
    problems_on_a_smooth_tie,
    rationals,
    ratios,
    reward_groups,
    simplex_points,
)
from exactgrpo.update.domain import check_parameter

healthy = settings(max_examples=60, derandomize=True, database=None, deadline=None)
few = settings(healthy, max_examples=20)


def smallest(strategy: st.SearchStrategy[Any], condition: Callable[[Any], bool] = lambda x: True) -> Any:
    """The simplest value; the explain phase would try others after it."""
    return find(strategy, condition, settings=settings(healthy, phases=(Phase.generate, Phase.shrink), verbosity=Verbosity.quiet))


# ---- numbers


@healthy
@given(rationals(min="-3/2", max=5, denominator=6), positive_rationals(max="3/2", denominator=5), epsilons(), ratios())
def test_numbers_lie_in_their_ranges(x: F, positive: F, epsilon: F, rho: F) -> None:
    assert F(-3, 2) <= x <= 5
    assert x.denominator <= 6
    assert 0 < positive <= F(3, 2)
    assert positive.denominator <= 5
    assert 0 < epsilon < 1
    assert 0 < rho <= 4


@healthy
@given(simplex_points(size=3), positive_simplex_points(size=4), simplex_points(min_size=1, max_size=3), positive_simplex_points())
def test_masses_sum_to_one_exactly(masses: tuple[F, ...], positive: tuple[F, ...], short: tuple[F, ...], some: tuple[F, ...]) -> None:
    assert sum(masses) == sum(positive) == sum(short) == sum(some) == 1
    assert (len(masses), len(positive)) == (3, 4)
    assert 1 <= len(short) <= 3
    assert 2 <= len(some) <= 4
    assert min(*masses, *short) >= 0 < min(*positive, *some)


@healthy
@given(reward_groups(min_size=2, max_size=5), binary_rewards())
def test_groups_have_their_sizes(rewards: list[F], binary: list[F]) -> None:
    assert 2 <= len(rewards) <= 5
    assert all(isinstance(r, F) for r in rewards)
    assert set(binary) <= {0, 1}


def test_ratios_reach_one_and_both_bounds() -> None:
    for rho in (F(1), F(5, 7), F(9, 7)):
        assert smallest(ratios(epsilon="2/7"), lambda x, rho=rho: x == rho) == rho


def test_numbers_shrink_to_the_simplest() -> None:
    assert smallest(rationals()) == 0
    assert smallest(rationals(), lambda x: x > 1) == 2
    assert smallest(rationals(), lambda x: 0 < x < 1) == F(1, 2)
    assert smallest(positive_rationals()) == 1
    assert smallest(positive_rationals(), lambda x: 1 < x < 2) == F(3, 2)
    assert smallest(ratios()) == 1
    assert smallest(simplex_points(size=3)) in ((1, 0, 0), (0, 1, 0), (0, 0, 1))
    assert smallest(positive_simplex_points(size=3)) == (F(1, 3),) * 3
    assert smallest(positive_simplex_points(), lambda masses: len(masses) > 2) == (F(1, 3),) * 3
    assert smallest(reward_groups()) == smallest(binary_rewards()) == [0, 0]


# ---- policies and problems


@pytest.mark.parametrize("family", FAMILIES)
def test_policies_of_every_family_lie_in_their_domain(family: Any) -> None:
    @healthy
    @given(policies(family=family, max_prompts=3, max_responses=4))
    def check(policy: PolicyAt) -> None:
        assert type(policy.family).__name__.lower().startswith(family)
        assert [len(responses) for responses in policy.responses] == list(policy.family.rows.lengths)
        assert 1 <= len(policy.prompts) <= 3
        assert all(2 <= n <= 4 for n in policy.family.rows.lengths)
        check_parameter(policy.family, built_column(policy), "theta0")
        assert family in repr(policy)

    check()


def built_column(policy: PolicyAt) -> Any:
    from exactgrpo import Column

    return Column(policy.theta0)


@pytest.mark.parametrize("family", FAMILIES)
def test_problems_shrink_to_tiny_ones(family: Any) -> None:
    problem = smallest(problems(families=[family]))
    assert len(problem.prompts) == problem.inner_steps == problem.outer_iterations == 1
    assert problem.group_size == len(problem.prompts[0].responses) == 2
    assert set(problem.prompts[0].rewards) == {0}


@healthy
@given(problems(families=["softmax", "simplex"], beta="1/3", max_prompts=1, min_group_size=3, max_group_size=3, max_steps=2))
def test_problems_have_the_sizes_asked_for(problem: Problem) -> None:
    assert len(problem.prompts) == 1
    assert problem.group_size == 3
    assert problem.inner_steps <= 2
    assert problem.beta == F(1, 3)
    assert problem.step_sizes.is_rational
    assert type(problem.family).__name__ in ("Softmax", "Simplex")


def test_step_sizes_are_irrational_only_where_that_is_asked_for() -> None:
    problem = smallest(problems(irrational_steps=True), lambda problem: not problem.step_sizes.is_rational)
    assert run(problem).status in ("complete", "invalid-update")


@few
@given(problems(irrational_steps=True))
def test_a_problem_prints_as_the_data_that_build_it(problem: Problem) -> None:
    text = repr(problem)
    again = built(loaded(json.loads(text.replace("'", '"'))))
    assert len(text) < 1500
    assert (run(again).status, run(again).counts) == (run(problem).status, run(problem).counts)


# ---- on a bound


def second_steps(strategy: st.SearchStrategy[Problem], check: Callable[[Problem, Run, set[str]], None]) -> None:
    @few
    @given(strategy)
    def look(problem: Problem) -> None:
        finished = run(problem)
        check(problem, finished, {term.side for term in finished.steps[1].terms})

    look()


@pytest.mark.parametrize("family", FAMILIES)
def test_kinks_have_no_gradient(family: Any) -> None:
    def check(problem: Problem, finished: Run, sides: set[str]) -> None:
        assert finished.status == "undefined-gradient"
        assert "kink" in sides
        assert finished.steps[1].evidence is not None

    second_steps(problems_on_a_kink(families=[family]), check)


@pytest.mark.parametrize("family", FAMILIES)
def test_smooth_ties_have_a_gradient(family: Any) -> None:
    def check(problem: Problem, finished: Run, sides: set[str]) -> None:
        assert finished.steps[1].gradient is not None
        assert sides & {"smooth tie", "undecided"}

    second_steps(problems_on_a_smooth_tie(families=[family]), check)


@pytest.mark.parametrize("family", ["rational", "softmax", "expression"])
def test_tangencies_are_kinks_with_a_gradient(family: Any) -> None:
    def check(problem: Problem, finished: Run, sides: set[str]) -> None:
        assert finished.steps[1].gradient is not None
        assert "kink" in sides

    second_steps(problems_at_a_tangency(families=[family]), check)


def test_near_misses_are_on_no_bound() -> None:
    def check(problem: Problem, finished: Run, sides: set[str]) -> None:
        assert sides <= {"unclipped", "clipped", "zero advantage"}
        term_misses = [
            abs(abs(term.ratio - 1) - threshold)
            for term in finished.steps[1].terms
            for threshold in (problem.epsilon_low, problem.epsilon_high)
            if term.ratio is not None
        ]
        assert any(miss == F(1, 10**e) for miss in term_misses for e in (60, 300))

    second_steps(near_misses(), check)


def test_kinks_of_different_size_and_form_are_drawn() -> None:
    """Nothing is planted: the thresholds that land on a kink differ from one problem to the next."""
    seen: set[str] = set()
    second_steps(problems_on_a_kink(), lambda problem, finished, sides: seen.add(f"{problem.epsilon_low}, {problem.epsilon_high}"))
    assert len(seen) > 10


def test_problems_on_a_bound_reach_kinks_and_smooth_ties() -> None:
    seen: set[str] = set()
    second_steps(problems_on_a_bound(), lambda problem, finished, sides: seen.update(sides))
    assert {"kink", "smooth tie"} <= seen


@pytest.mark.parametrize("miss", ["10^-60", "10^-300", "-(10^-300)"])
def test_what_misses_a_bound_is_on_none(miss: str) -> None:
    seen: set[str] = set()
    second_steps(problems_on_a_bound(miss=miss, families=["simplex", "rational"]), lambda problem, finished, sides: seen.update(sides))
    assert seen <= {"unclipped", "clipped", "zero advantage"}


@pytest.mark.parametrize(
    "make",
    [
        lambda: rationals(min=2, max=1),
        lambda: rationals(min=0.5),
        lambda: rationals(denominator=0),
        lambda: rationals(min="1/7", denominator=6),
        lambda: rationals(min="sqrt(2)"),
        lambda: positive_rationals(max=0),
        lambda: positive_rationals(max="1/5", denominator=4),
        lambda: ratios(epsilon=1),
        lambda: ratios(epsilon=0.2),
        lambda: ratios(denominator=0),
        lambda: simplex_points(size=0),
        lambda: simplex_points(min_size=3, max_size=2),
        lambda: positive_simplex_points(size=2, weight=0),
        lambda: reward_groups(min_size=3, max_size=2),
        lambda: binary_rewards(min_size=0),
        lambda: epsilons(denominator=1),
        lambda: policies(family="tabular"),  # type: ignore[arg-type]
        lambda: policies(max_responses=1),
        lambda: problems(families=["tabular"]),  # type: ignore[list-item]
        lambda: problems(families="softmax"),
        lambda: problems(families=[]),
        lambda: problems(max_group_size=1),
        lambda: problems(min_group_size=5),
        lambda: problems(beta=-1),
        lambda: problems(beta=0.1),
        lambda: problems(irrational_steps=1),  # type: ignore[arg-type]
        lambda: problems_on_a_bound(miss="pi"),
        lambda: problems_on_a_kink(families=[]),
        lambda: problems_on_a_smooth_tie(families=["tabular"]),  # type: ignore[list-item]
        lambda: problems_at_a_tangency(families=["simplex"]),
        lambda: near_misses(exponents=[0]),
        lambda: near_misses(exponents=[]),
    ],
)
def test_options_without_values_are_refused_at_once(make: Callable[[], Any]) -> None:
    with pytest.raises(InputError):
        make()
