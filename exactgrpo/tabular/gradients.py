"""Expected policy gradients over the logits of a tabular softmax policy: what an estimator has, and what it is compared with.

A gradient is a table [s][b] of derivatives by the logit of action b in state s. By d log pi(a|s)/d theta[s][b] = 1{a=b} - pi(b|s), each
is sum over states of a weight(s) pi(b|s) (Q(s,b) - V(s)); they differ in the weight and in Q.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flint import fmpz_mat

from exactgrpo.tabular.chain import check_growth, policy_blocks, state_chain, stationary_law, transition_rows
from exactgrpo.tabular.doubling import power_sums
from exactgrpo.tabular.matrices import matrix, scaled, table, unscaled
from exactgrpo.tabular.mdp import Law, Mdp, Table
from exactgrpo.tabular.values import Values, check_reward, differential_values, values


def estimator_gradients(mdp: Mdp, rewards: Sequence[Table]) -> list[Table]:
    """E[(1/T) sum_t G_t grad log pi(a_t|s_t)] for each reward: T the horizon, G_t = sum_{t<=u<T} gamma^(u-t) r_u.

    That is (1/T) sum_t d_t(s) pi(b|s) (Q_{T-t}(s,b) - V_{T-t}(s)), d_t the law of step t and Q_n the discounted value of n steps. Linear in
    the reward. Source: the tabular benchmark of Retroactive Advantage Correction, arXiv:2606.27580.

    >>> mdp = Mdp.of([[[1], [1]]], [["1/2", "1/2"]], {"r": [[0, 1]]}, discount="1/2", horizon=2)
    >>> estimator_gradients(mdp, [mdp.reward()])
    [((Fraction(-1, 4), Fraction(1, 4)),)]
    """
    return _finite(mdp, rewards, discounts=False, divisor=mdp.horizon)


def finite_gradient(mdp: Mdp, reward: Table) -> Table:
    """The gradient of E sum_{t<T} gamma^t r_t, T the horizon: sum_t gamma^t d_t(s) pi(b|s) (Q_{T-t}(s,b) - V_{T-t}(s)).

    >>> mdp = Mdp.of([[[1], [1]]], [["1/2", "1/2"]], {"r": [[0, 1]]}, discount="1/2", horizon=2)
    >>> finite_gradient(mdp, mdp.reward())
    ((Fraction(-3, 8), Fraction(3, 8)),)
    """
    (gradient,) = _finite(mdp, [reward], discounts=True, divisor=1)
    return gradient


def reference_gradient(mdp: Mdp, reward: Table) -> Table:
    """sum_s d(s) sum_a pi(a|s) Q(s,a) grad log pi(a|s): d the undiscounted stationary law, Q the discounted value without a horizon.

    The benchmark's target. It mixes the two, so it is the gradient of no objective here: `discounted_gradient`, `finite_gradient` and
    `average_gradient` are. InputError if d is not unique. Source: as `estimator_gradients`.

    >>> mdp = Mdp.of([[[1], [1]]], [["1/2", "1/2"]], {"r": [[0, 1]]}, discount="1/2", horizon=2)
    >>> reference_gradient(mdp, mdp.reward())
    ((Fraction(-1, 4), Fraction(1, 4)),)
    """
    return _weighted(mdp, stationary_law(mdp), values(mdp, reward))


def discounted_gradient(mdp: Mdp, reward: Table) -> Table:
    """The gradient of E sum_t gamma^t r_t without a horizon, from the start: the weight of s is sum_t gamma^t d_t(s).

    Source: Sutton et al., Policy gradient methods for reinforcement learning with function approximation (1999), theorem 1.

    >>> mdp = Mdp.of([[[1], [1]]], [["1/2", "1/2"]], {"r": [[0, 1]]}, discount="1/2", horizon=2)
    >>> discounted_gradient(mdp, mdp.reward())
    ((Fraction(-1, 2), Fraction(1, 2)),)
    """
    return _weighted(mdp, discounted_occupancy(mdp), values(mdp, reward))


def average_gradient(mdp: Mdp, reward: Table) -> Table:
    """The gradient of the average reward sum_s d(s) sum_a pi(a|s) r(s,a). InputError if the stationary law d is not unique.

    Source: as `discounted_gradient`.

    >>> mdp = Mdp.of([[[1], [1]]], [["1/2", "1/2"]], {"r": [[0, 1]]}, discount="1/2", horizon=2)
    >>> average_gradient(mdp, mdp.reward())
    ((Fraction(-1, 4), Fraction(1, 4)),)
    """
    return _weighted(mdp, stationary_law(mdp), differential_values(mdp, reward)[1])


def discounted_occupancy(mdp: Mdp) -> Law:
    """sum_t gamma^t d_t(s), whose sum is 1/(1 - gamma).

    >>> discounted_occupancy(Mdp.of([[[0, 1]], [[0, 1]]], [[1], [1]], {"r": [[0], [0]]}, discount="1/2", horizon=1))
    (Fraction(1, 2), Fraction(3, 2))
    """
    chain, size = state_chain(mdp), range(mdp.states)
    system = matrix([[(s == t) - mdp.discount * chain[s][t] for s in size] for t in size])
    return tuple(x for (x,) in table(system.solve(matrix([[x] for x in mdp.start]))))


def _weighted(mdp: Mdp, weights: Law, of: Values) -> Table:
    rows = zip(weights, mdp.policy, of.advantages, strict=True)
    return tuple(tuple(weight * p * x for p, x in zip(masses, row, strict=True)) for weight, masses, row in rows)


def _finite(mdp: Mdp, rewards: Sequence[Table], *, discounts: bool, divisor: int) -> list[Table]:
    """sum_t w^t d_t(s) pi(b|s) (Q_{T-t}(s,b) - V_{T-t}(s)) / divisor for each reward, w = gamma if it `discounts`, else 1.

    As Q_n = r + gamma P V_{n-1}, what has to be summed is w^t d_t and w^t d_t V_{T-1-t}. The column (V_n, 1) is the n-th power of the
    matrix with rows (gamma P_pi, r_pi) and (0, 1), applied to (0, 1), so both are entries of one `power_sums`. In integers: all matrices
    have the denominator `step`, that of gamma P_pi.
    """
    for of_channel in rewards:
        check_reward(mdp, of_channel)
    check_growth(mdp, mdp.horizon)
    states, actions, gamma, channels = mdp.states, mdp.actions, mdp.discount, len(rewards)
    policy, policy_factor = scaled(mdp.policy)
    transition, factor = scaled(transition_rows(mdp))
    start, start_factor = scaled([mdp.start])
    reward, reward_factor = scaled([row for of_channel in rewards for row in of_channel])
    step = gamma.denominator * factor * policy_factor
    chain = scaled(policy_blocks(mdp))[0] * transition
    law = chain.transpose() * (gamma.numerator if discounts else gamma.denominator)
    mean = [[sum(policy[s, a] * reward[k * states + s, a] for a in range(actions)) for s in range(states)] for k in range(channels)]
    size = states + channels
    ahead, first = fmpz_mat(size, size), [fmpz_mat(states, size) for _ in rewards]
    for s in range(states):
        for t in range(states):
            ahead[s, t] = chain[t, s] * gamma.numerator
    for k in range(channels):
        ahead[states + k, states + k] = step
        for s in range(states):
            ahead[states + k, s] = mean[k][s] * gamma.denominator * factor
            first[k][s, states + k] = start[0, s]
    denominator = step ** (mdp.horizon - 1) * start_factor * reward_factor * gamma.denominator * factor * policy_factor**2 * divisor
    gradients = []
    for k, sums in enumerate(power_sums(law, first, ahead, mdp.horizon)):
        entries: list[Any] = []
        for s in range(states):
            now, later = sums[s, states + k] * gamma.denominator * factor, [sums[s, t] * gamma.numerator for t in range(states)]
            q = [
                reward[k * states + s, a] * now + sum(transition[s * actions + a, t] * x for t, x in enumerate(later))
                for a in range(actions)
            ]
            v = sum(policy[s, a] * x for a, x in enumerate(q))
            entries += [policy[s, a] * (policy_factor * x - v) for a, x in enumerate(q)]
        gradients.append(unscaled(entries, denominator, actions))
    return gradients
