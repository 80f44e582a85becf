"""Exact values of the policy of an MDP: discounted, over a finite number of steps, and relative to the average reward."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any

from exactgrpo.errors import InputError, LimitError
from exactgrpo.tabular.chain import policy_blocks, state_chain, stationary_law, transition_rows
from exactgrpo.tabular.matrices import matrix, scaled, table, unscaled
from exactgrpo.tabular.mdp import Law, Mdp, Table, checked_horizon

MAX_WORK = 4 * 10**11
"""Bit operations, about, of a recursion over the steps of a trajectory: half a minute."""


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
    _check_reward(mdp, reward)
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
    *_, (q, v, denominator) = scaled_values(mdp, [reward], count)
    return Values(unscaled(q.entries(), denominator, mdp.actions), unscaled(v.entries(), denominator, mdp.states)[0])


def scaled_values(mdp: Mdp, rewards: Sequence[Table], steps: int) -> Iterator[tuple[Any, Any, Any]]:
    """Q (a row for each state and action) and V (a row for each state) of 1, 2, ..., `steps` steps, a column for each reward.

    Both are fmpz_mat over a denominator e (g D)^(n-1), returned as the third item; D as in `scaled_occupancies`, g that of the discount.
    """
    for reward in rewards:
        _check_reward(mdp, reward)
    r, reward_factor = scaled([[table[s][a] for table in rewards] for s in range(mdp.states) for a in range(mdp.actions)])
    policy, policy_factor = scaled(policy_blocks(mdp))
    transition, factor = scaled(transition_rows(mdp))
    ahead, growth = transition * mdp.discount.numerator, policy_factor * factor * mdp.discount.denominator
    check_work(mdp, steps, growth)
    scale, q = 1, r
    for _ in range(steps):
        v = policy * q
        yield q * policy_factor, v, reward_factor * policy_factor * scale
        scale *= growth
        q = r * scale + ahead * v


def check_work(mdp: Mdp, steps: int, growth: Any) -> None:
    """LimitError if numbers that grow by the factor `growth` at each step would take too long."""
    bits, pairs = int(growth).bit_length(), mdp.states * mdp.actions
    if steps**2 * pairs * (mdp.states + 16) * bits > MAX_WORK:  # 16: the weight of long products beside the recursion
        most = isqrt(MAX_WORK // (pairs * (mdp.states + 16) * bits))
        raise LimitError("horizon", steps, f"at most {most} steps for {pairs} pairs of state and action and {bits} bits a step")


def _by_state(mdp: Mdp, reward: Table) -> list[Fraction]:
    return [sum((p * x for p, x in zip(masses, row, strict=True)), Fraction(0)) for masses, row in zip(mdp.policy, reward, strict=True)]


def _check_reward(mdp: Mdp, reward: Table) -> None:
    if len(reward) != mdp.states or any(len(row) != mdp.actions for row in reward):
        raise InputError("reward", f"{len(reward)} rows", f"a table of {mdp.states} states and {mdp.actions} actions; see Mdp.reward")
