"""Exact values of the policy of an MDP: discounted, over a finite number of steps, and relative to the average reward."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import fmpq

from exactgrpo.errors import InputError
from exactgrpo.tabular.chain import check_growth, policy_blocks, state_chain, stationary_law, transition_rows
from exactgrpo.tabular.matrices import matrix, table
from exactgrpo.tabular.mdp import Law, Mdp, Table, checked_horizon


@dataclass(frozen=True, slots=True)
class Values:
    """`q`[s][a] and `v`[s] = sum_a pi(a|s) q[s][a]."""

    q: Table
    v: Law

    @property
    def advantages(self) -> Table:
        """q[s][a] - v[s]."""
        return tuple(tuple(x - v for x in row) for row, v in zip(self.q, self.v, strict=True))


def values(mdp: Mdp, reward: Table) -> Values:
    """Discounted values without a horizon: Q = r + gamma P V, V = pi Q.

    Source: Sutton and Barto, Reinforcement learning (2018), equation 3.14. `reward`[s][a]; see `Mdp.reward`.

    >>> mdp = Mdp.of([[[1], [1]]], [["1/2", "1/2"]], {"r": [[0, 1]]}, discount="1/2", horizon=1)
    >>> values(mdp, mdp.reward()).q
    ((Fraction(1, 2), Fraction(3, 2)),)
    """
    chain, gamma = state_chain(mdp), mdp.discount
    system = matrix([[(s == t) - gamma * x for t, x in enumerate(row)] for s, row in enumerate(chain)])
    return _values(mdp, reward, Fraction(0), gamma, system)


def differential_values(mdp: Mdp, reward: Table) -> tuple[Fraction, Values]:
    """The average reward rho, and Q = r - rho + P V, V = pi Q with d V = 0: values relative to the average.

    Source: Sutton and Barto (2018), section 10.3. InputError if the stationary law d is not unique.

    >>> mdp = Mdp.of([[[0, 1]], [[1, 0]]], [[1], [1]], {"r": [[0], [1]]}, discount=0, horizon=1)
    >>> differential_values(mdp, mdp.reward())[0], differential_values(mdp, mdp.reward())[1].v
    (Fraction(1, 2), (Fraction(-1, 4), Fraction(1, 4)))
    """
    law, chain = stationary_law(mdp), state_chain(mdp)
    average = sum((d * x for d, x in zip(law, _by_state(mdp, reward), strict=True)), Fraction(0))
    system = matrix([[(s == t) - x + law[t] for t, x in enumerate(row)] for s, row in enumerate(chain)])
    return average, _values(mdp, reward, average, Fraction(1), system)


def _values(mdp: Mdp, reward: Table, average: Fraction, gamma: Fraction, system: Any) -> Values:
    check_reward(mdp, reward)
    v = system.solve(matrix([[x - average] for x in _by_state(mdp, reward)]))
    following = [x for (x,) in table(matrix(transition_rows(mdp)) * v)]
    q = tuple(tuple(x - average + gamma * following[s * mdp.actions + a] for a, x in enumerate(row)) for s, row in enumerate(reward))
    return Values(q, tuple(x for (x,) in table(v)))


def finite_values(mdp: Mdp, reward: Table, steps: int | None = None) -> Values:
    """Discounted values of the next `steps` rewards (by default the horizon).

    >>> mdp = Mdp.of([[[1], [1]]], [["1/2", "1/2"]], {"r": [[0, 1]]}, discount="1/2", horizon=2)
    >>> finite_values(mdp, mdp.reward()).q
    ((Fraction(1, 4), Fraction(5, 4)),)
    """
    count = mdp.horizon if steps is None else checked_horizon(steps)
    check_reward(mdp, reward)
    check_growth(mdp, count)
    policy, transition = matrix(policy_blocks(mdp)), matrix(transition_rows(mdp))
    gamma, now = fmpq(mdp.discount.numerator, mdp.discount.denominator), matrix([[x] for row in reward for x in row])
    q = now
    for _ in range(count - 1):
        q = now + transition * (policy * q) * gamma
    (entries,), (v,) = table(q.transpose()), table((policy * q).transpose())
    return Values(tuple(entries[i : i + mdp.actions] for i in range(0, len(entries), mdp.actions)), v)


def _by_state(mdp: Mdp, reward: Table) -> list[Fraction]:
    return [sum((p * x for p, x in zip(masses, row, strict=True)), Fraction(0)) for masses, row in zip(mdp.policy, reward, strict=True)]


def check_reward(mdp: Mdp, reward: Table) -> None:
    """InputError unless the table has the shape of the MDP."""
    if len(reward) != mdp.states or any(len(row) != mdp.actions for row in reward):
        raise InputError("reward", f"{len(reward)} rows", f"a table of {mdp.states} states and {mdp.actions} actions; see Mdp.reward")
