"""Values and policy gradients by two further routes: all trajectories at small horizons, and derivatives of the exact value by SymPy."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from tabular_mdps import mdps, trajectories

from exactgrpo import InputError, LimitError
from exactgrpo.tabular.chain import occupancies, stationary_law
from exactgrpo.tabular.file import load_mdp
from exactgrpo.tabular.gradients import (
    average_gradient,
    discounted_gradient,
    discounted_occupancy,
    estimator_gradients,
    finite_gradient,
    reference_gradient,
)
from exactgrpo.tabular.mdp import Mdp, Table
from exactgrpo.tabular.values import differential_values, finite_values, values

SMALL = {"states": 2, "actions": 3, "horizon": 3}


def score(mdp: Mdp, s: int, a: int) -> dict[tuple[int, int], F]:
    """The derivatives of log pi(a|s) by the logits."""
    return {(s, b): (1 if a == b else 0) - mdp.policy[s][b] for b in range(mdp.actions)}


def total(mdp: Mdp, terms: list[tuple[F, dict[tuple[int, int], F]]]) -> Table:
    out = [[F(0)] * mdp.actions for _ in range(mdp.states)]
    for factor, derivatives in terms:
        for (s, b), x in derivatives.items():
            out[s][b] += factor * x
    return tuple(map(tuple, out))


# ---- all trajectories


@settings(deadline=None)
@given(mdps(**SMALL))
def test_the_estimator_has_the_mean_over_all_trajectories(mdp: Mdp) -> None:
    for name, found in zip(mdp.rewards, estimator_gradients(mdp, list(mdp.rewards.values())), strict=True):
        terms = []
        for mass, states, actions in trajectories(mdp):
            rewards = [mdp.rewards[name][s][a] for s, a in zip(states, actions, strict=True)]
            for t, (s, a) in enumerate(zip(states, actions, strict=True)):
                to_go = sum(mdp.discount ** (u - t) * rewards[u] for u in range(t, mdp.horizon))
                terms.append((mass * to_go / mdp.horizon, score(mdp, s, a)))
        assert found == total(mdp, terms)


@settings(deadline=None)
@given(mdps(**SMALL))
def test_the_gradient_of_the_return_has_every_score_times_every_reward(mdp: Mdp) -> None:
    terms = []
    for mass, states, actions in trajectories(mdp):
        whole = sum(mdp.discount**t * mdp.rewards["fast"][s][a] for t, (s, a) in enumerate(zip(states, actions, strict=True)))
        terms += [(mass * whole, score(mdp, s, a)) for s, a in zip(states, actions, strict=True)]
    assert finite_gradient(mdp, mdp.rewards["fast"]) == total(mdp, terms)


@settings(deadline=None)
@given(mdps(**SMALL))
def test_finite_values_are_means_over_all_trajectories(mdp: Mdp) -> None:
    mean = sum(
        mass * sum(mdp.discount**t * mdp.rewards["slow"][s][a] for t, (s, a) in enumerate(zip(states, actions, strict=True)))
        for mass, states, actions in trajectories(mdp)
    )
    found = finite_values(mdp, mdp.rewards["slow"])
    assert sum(p * v for p, v in zip(mdp.start, found.v, strict=True)) == mean


# ---- dynamic programming, step by step


@settings(deadline=None)
@given(mdps(states=3, horizon=33))
def test_the_gradients_are_sums_over_steps(mdp: Mdp) -> None:
    check_by_steps(mdp)


def test_the_gradients_of_the_published_instance_are_sums_over_steps() -> None:
    check_by_steps(load_mdp("3x2"))


def check_by_steps(mdp: Mdp) -> None:
    laws = occupancies(mdp)
    advantages = [finite_values(mdp, mdp.rewards["slow"], mdp.horizon - t).advantages for t in range(mdp.horizon)]
    for discount, scale, found in (
        (F(1), F(1, mdp.horizon), estimator_gradients(mdp, [mdp.rewards["fast"], mdp.rewards["slow"]])[1]),
        (mdp.discount, F(1), finite_gradient(mdp, mdp.rewards["slow"])),
    ):
        expected = tuple(
            tuple(scale * p * sum(discount**t * law[s] * advantages[t][s][a] for t, law in enumerate(laws)) for a, p in enumerate(masses))
            for s, masses in enumerate(mdp.policy)
        )
        assert found == expected


# ---- derivatives by SymPy


def symbolic(mdp: Mdp) -> tuple[list[list[sympy.Symbol]], list[list[sympy.Expr]], dict[sympy.Symbol, sympy.Expr]]:
    """Logits, the policy as a function of them, and the logits of the policy that the MDP has."""
    theta = [[sympy.Symbol(f"theta_{s}_{a}") for a in range(mdp.actions)] for s in range(mdp.states)]
    policy = [[sympy.exp(x) / sum(map(sympy.exp, row)) for x in row] for row in theta]
    point = {
        x: sympy.log(sympy.Rational(p)) for row, masses in zip(theta, mdp.policy, strict=True) for x, p in zip(row, masses, strict=True)
    }
    return theta, policy, point


def by_policy(mdp: Mdp, policy: list[list[sympy.Expr]], reward: Table) -> tuple[sympy.Matrix, sympy.Matrix]:
    """The chain and the mean reward of each state as functions of the logits."""
    size = range(mdp.states)
    chain = sympy.Matrix(
        mdp.states, mdp.states, lambda s, t: sum(p * sympy.Rational(mdp.transition[s][a][t]) for a, p in enumerate(policy[s]))
    )
    return chain, sympy.Matrix([sum(p * sympy.Rational(reward[s][a]) for a, p in enumerate(policy[s])) for s in size])


def derivatives(value: sympy.Expr, theta: list[list[sympy.Symbol]], point: dict[sympy.Symbol, sympy.Expr]) -> Table:
    found = [[sympy.diff(value, x).subs(point) for x in row] for row in theta]
    assert all(x.is_Rational for row in found for x in row)  # exp(log(p)) is p
    return tuple(tuple(F(int(x.p), int(x.q)) for x in row) for row in found)


@settings(max_examples=10, deadline=None)
@given(mdps(states=2, actions=2, horizon=3, channels=("fast",)))
def test_discounted_and_finite_gradients_are_derivatives_of_the_value(mdp: Mdp) -> None:
    theta, policy, point = symbolic(mdp)
    chain, mean = by_policy(mdp, policy, mdp.reward())
    start, gamma = sympy.Matrix([list(map(sympy.Rational, mdp.start))]), sympy.Rational(mdp.discount)
    value = (start * (sympy.eye(mdp.states) - gamma * chain).inv() * mean)[0]
    assert discounted_gradient(mdp, mdp.reward()) == derivatives(value, theta, point)
    law, finite = start, sympy.Integer(0)
    for t in range(mdp.horizon):
        finite += gamma**t * (law * mean)[0]
        law = law * chain
    assert finite_gradient(mdp, mdp.reward()) == derivatives(finite, theta, point)


@settings(max_examples=10, deadline=None)
@given(mdps(states=2, actions=2, channels=("fast",), mixes=True))
def test_the_average_gradient_is_the_derivative_of_the_average_reward(mdp: Mdp) -> None:
    theta, policy, point = symbolic(mdp)
    chain, mean = by_policy(mdp, policy, mdp.reward())
    balance = (chain.T - sympy.eye(mdp.states)).row_del(0) if mdp.states == 1 else (chain.T - sympy.eye(mdp.states))[:-1, :]
    system = sympy.ones(1, 1) if mdp.states == 1 else balance.col_join(sympy.ones(1, mdp.states))
    law = system.inv() * sympy.Matrix([0] * (mdp.states - 1) + [1])
    assert average_gradient(mdp, mdp.reward()) == derivatives((law.T * mean)[0], theta, point)


@settings(max_examples=10, deadline=None)
@given(mdps(states=2, actions=2, channels=("fast",), mixes=True))
def test_the_reference_is_the_derivative_with_frozen_state_law_and_values(mdp: Mdp) -> None:
    theta, policy, point = symbolic(mdp)
    law, frozen = stationary_law(mdp), values(mdp, mdp.reward()).q
    value = sum(sympy.Rational(law[s]) * p * sympy.Rational(frozen[s][a]) for s, masses in enumerate(policy) for a, p in enumerate(masses))
    assert reference_gradient(mdp, mdp.reward()) == derivatives(sympy.sympify(value), theta, point)


# ---- laws


@settings(deadline=None)
@given(mdps())
def test_values_satisfy_their_equations(mdp: Mdp) -> None:
    found = values(mdp, mdp.reward())
    for s, (row, masses) in enumerate(zip(found.q, mdp.policy, strict=True)):
        assert found.v[s] == sum(p * x for p, x in zip(masses, row, strict=True))
        for a, x in enumerate(row):
            ahead = sum(p * v for p, v in zip(mdp.transition[s][a], found.v, strict=True))
            assert x == mdp.reward()[s][a] + mdp.discount * ahead
    assert sum(discounted_occupancy(mdp)) * (1 - mdp.discount) == 1
    returns = sum(p * v for p, v in zip(mdp.start, found.v, strict=True))
    by_state = [sum(p * x for p, x in zip(m, row, strict=True)) for m, row in zip(mdp.policy, mdp.reward(), strict=True)]
    assert sum(d * x for d, x in zip(discounted_occupancy(mdp), by_state, strict=True)) == returns


@settings(deadline=None)
@given(mdps(mixes=True))
def test_differential_values_satisfy_their_equations(mdp: Mdp) -> None:
    average, found = differential_values(mdp, mdp.reward())
    for s, row in enumerate(found.q):
        for a, x in enumerate(row):
            assert x == mdp.reward()[s][a] - average + sum(p * v for p, v in zip(mdp.transition[s][a], found.v, strict=True))
    assert sum(d * v for d, v in zip(stationary_law(mdp), found.v, strict=True)) == 0


@settings(deadline=None)
@given(mdps(mixes=True))
def test_gradients_are_linear_in_the_reward_and_each_state_sums_to_zero(mdp: Mdp) -> None:
    for gradient in (reference_gradient, discounted_gradient, finite_gradient, average_gradient):
        fast, slow, both = (gradient(mdp, mdp.reward(*names)) for names in (("fast",), ("slow",), ("fast", "slow")))
        assert both == tuple(tuple(x + y for x, y in zip(*rows, strict=True)) for rows in zip(fast, slow, strict=True))
        assert all(sum(row) == 0 for row in both)


@settings(deadline=None)
@given(mdps(mixes=True))
def test_with_the_stationary_start_the_last_step_has_the_weight_of_the_reference(mdp: Mdp) -> None:
    still = Mdp.of(mdp.transition, mdp.policy, mdp.rewards, discount=0, horizon=3, start=stationary_law(mdp))
    assert estimator_gradients(still, [still.reward()])[0] == reference_gradient(still, still.reward())


def test_without_a_discount_no_later_reward_counts_and_powers_of_zero_are_one() -> None:
    mdp = Mdp.of([[[1], [1]]], [["1/2", "1/2"]], {"fast": [[0, 4]]}, discount=0, horizon=3)
    assert finite_gradient(mdp, mdp.reward()) == ((F(-1), F(1)),)
    assert estimator_gradients(mdp, [mdp.reward()]) == [((F(-1), F(1)),)]


def test_the_published_instance_in_doubles() -> None:
    mdp = load_mdp("3x2")
    transition, policy, reward = (np.array(x, dtype=float) for x in (mdp.transition, mdp.policy, mdp.reward()))
    chain, gamma = np.einsum("sa,sat->st", policy, transition), float(mdp.discount)
    v = np.linalg.solve(np.eye(3) - gamma * chain, (policy * reward).sum(1))
    law = np.linalg.matrix_power(chain, 1000)[0]
    expected = law[:, None] * policy * (reward + gamma * transition @ v - v[:, None])
    np.testing.assert_allclose(np.array(reference_gradient(mdp, mdp.reward()), dtype=float), expected, rtol=0, atol=1e-14)
    (estimate,) = estimator_gradients(mdp, [mdp.reward()])
    law, to_go, total_of = np.full(3, 1 / 3), [np.zeros(3)], np.zeros((3, 2))
    for _ in range(mdp.horizon):
        to_go.append((policy * (reward + gamma * transition @ to_go[-1])).sum(1))
    for t in range(mdp.horizon):
        q = reward + gamma * transition @ to_go[mdp.horizon - t - 1]
        total_of += law[:, None] * policy * (q - to_go[mdp.horizon - t][:, None]) / mdp.horizon
        law = law @ chain
    np.testing.assert_allclose(np.array(estimate, dtype=float), total_of, rtol=0, atol=1e-14)


def test_work_is_bounded_before_it_starts() -> None:
    mdp = load_mdp("3x2").with_horizon(10_000)
    for call in (lambda: finite_values(mdp, mdp.reward()), lambda: finite_gradient(mdp, mdp.reward()), lambda: occupancies(mdp)):
        with pytest.raises(LimitError, match=r"horizon: 10000: at most [0-9]+ steps"):
            call()


def test_a_reward_of_another_shape_is_refused() -> None:
    mdp = load_mdp("3x2")
    for function in (values, finite_values, reference_gradient, finite_gradient):
        with pytest.raises(InputError, match="a table of 3 states and 2 actions"):
            function(mdp, ((F(0),),))
