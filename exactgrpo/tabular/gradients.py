"""Expected policy gradients over the logits of a tabular softmax policy: what an estimator has, and what it is compared with.

A gradient is a table [s][b] of derivatives by the logit of action b in state s. By d log pi(a|s)/d theta[s][b] = 1{a=b} - pi(b|s), each
is sum over states of a weight(s) pi(b|s) (Q(s,b) - V(s)); they differ in the weight and in Q.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from flint import fmpz

from exactgrpo.tabular.chain import scaled_occupancies, state_chain, stationary_law
from exactgrpo.tabular.matrices import matrix, table, unscaled
from exactgrpo.tabular.mdp import Law, Mdp, Table
from exactgrpo.tabular.values import Values, differential_values, scaled_values, values


def estimator_gradients(mdp: Mdp, rewards: Sequence[Table]) -> list[Table]:
    """E[(1/T) sum_t G_t grad log pi(a_t|s_t)] for each reward: T the horizon, G_t = sum_{t<=u<T} gamma^(u-t) r_u.

    That is (1/T) sum_t d_t(s) pi(b|s) (Q_{T-t}(s,b) - V_{T-t}(s)), d_t the law of step t and Q_n the discounted value of n steps. Linear in
    the reward. Source: the tabular benchmark of Retroactive Advantage Correction, arXiv:2606.27580.

    >>> mdp = Mdp.of([[[1], [1]]], [["1/2", "1/2"]], {"r": [[0, 1]]}, discount="1/2", horizon=2)
    >>> estimator_gradients(mdp, [mdp.reward()])
    [((Fraction(-1, 4), Fraction(1, 4)),)]
    """
    return _finite(mdp, rewards, discounts=False, factor=Fraction(1, mdp.horizon))


def finite_gradient(mdp: Mdp, reward: Table) -> Table:
    """The gradient of E sum_{t<T} gamma^t r_t, T the horizon: sum_t gamma^t d_t(s) pi(b|s) (Q_{T-t}(s,b) - V_{T-t}(s)).

    >>> mdp = Mdp.of([[[1], [1]]], [["1/2", "1/2"]], {"r": [[0, 1]]}, discount="1/2", horizon=2)
    >>> finite_gradient(mdp, mdp.reward())
    ((Fraction(-3, 8), Fraction(3, 8)),)
    """
    (gradient,) = _finite(mdp, [reward], discounts=True, factor=Fraction(1))
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


def _finite(mdp: Mdp, rewards: Sequence[Table], *, discounts: bool, factor: Fraction) -> list[Table]:
    """factor sum_t w^t d_t(s) pi(b|s) (Q_{T-t}(s,b) - V_{T-t}(s)) for each reward, w = gamma if it `discounts`, else 1.

    In integers: d_t has the denominator c D^t, the advantage of n steps e (g D)^(n-1), with g that of gamma. Their product for n = T - t,
    times g^t w^t, which is an integer, is over c e (g D)^(T-1) for each t.
    """
    actions, columns, gamma = mdp.actions, len(rewards), mdp.discount
    step_factor = fmpz(gamma.numerator if discounts else gamma.denominator)
    steps = list(scaled_values(mdp, rewards, mdp.horizon))
    laws, start_denominator, _ = scaled_occupancies(mdp, mdp.horizon)
    sums = [fmpz(0)] * (mdp.states * actions * columns)
    for t, (law, (q, v, _)) in enumerate(zip(laws, reversed(steps), strict=True)):
        q_entries, v_entries = q.entries(), v.entries()
        for s, mass in enumerate(law):
            weight = mass * step_factor**t
            for i in range(s * actions * columns, (s + 1) * actions * columns):
                sums[i] += weight * (q_entries[i] - v_entries[s * columns + i % columns])
    denominator = start_denominator * steps[-1][2]
    gradients = [unscaled(sums[k::columns], denominator, actions) for k in range(columns)]
    return [
        tuple(tuple(factor * p * x for p, x in zip(masses, row, strict=True)) for masses, row in zip(mdp.policy, gradient, strict=True))
        for gradient in gradients
    ]
