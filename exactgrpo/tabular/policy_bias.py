"""The bias of an expected gradient in which late rewards have weights, as a quadratic form of the weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from exactgrpo.errors import InputError
from exactgrpo.field.inputs import ONE, reals, sum_of
from exactgrpo.numbers.real import Real
from exactgrpo.tabular.gradients import estimator_gradients, reference_gradient
from exactgrpo.tabular.matrices import matrix, table
from exactgrpo.tabular.mdp import Mdp, Table


@dataclass(frozen=True, slots=True)
class PolicyBias:
    """The Euclidean norm of g_0 + sum_k w_k g_k - g*: g_0 the gradient of the rewards on time, g_k of the late channel k, g* the target.

    `gram` holds the inner products of the vectors g_0 - g*, g_1, ..., g_K; `late` names the K channels.
    """

    late: tuple[str, ...]
    gram: Table

    @classmethod
    def of(cls, on_time: Table, late: Sequence[tuple[str, Table]], target: Table) -> PolicyBias:
        """From gradients, which are tables of one shape."""
        products = inner_products([on_time, target, *(gradient for _, gradient in late)])
        (g, cross, *_), (_, t, *_) = products[:2]
        first = (g - 2 * cross + t, *(products[0][k] - products[1][k] for k in range(2, len(products))))
        rest = tuple((x, *row[2:]) for x, row in zip(first[1:], products[2:], strict=True))
        return cls(tuple(name for name, _ in late), (first, *rest))

    def squared(self, weights: Sequence[Any]) -> Real:
        """The square of the norm, a quadratic polynomial of the weights, one for each late channel."""
        w = [ONE, *reals(weights, "weights", length=len(self.late))]
        return sum_of([w[i] * w[j] * Real(x) for i, row in enumerate(self.gram) for j, x in enumerate(row)])

    def norm(self, weights: Sequence[Any]) -> Real:
        """The norm.

        >>> PolicyBias.of(((Fraction(0),),), [("slow", ((Fraction(2),),))], ((Fraction(3),),)).norm(["1/2"])
        Real('2')
        """
        return self.squared(weights).sqrt()

    def in_units_of_naive(self) -> PolicyBias:
        """The same divided by the bias at weights zero, if that is not zero: reductions stay as they are, and their exact text is shorter.

        >>> PolicyBias.of(((Fraction(0),),), [("slow", ((Fraction(2),),))], ((Fraction(4),),)).in_units_of_naive().gram
        ((Fraction(1, 1), Fraction(-1, 2)), (Fraction(-1, 2), Fraction(1, 4)))
        """
        unit = self.gram[0][0] or Fraction(1)
        return PolicyBias(self.late, tuple(tuple(x / unit for x in row) for row in self.gram))

    def best_weights(self) -> tuple[Fraction, ...] | None:
        """The weights of least bias, or None if there are several such (late gradients that are linearly dependent).

        >>> PolicyBias.of(((Fraction(0),),), [("slow", ((Fraction(2),),))], ((Fraction(3),),)).best_weights()
        (Fraction(3, 2),)
        """
        late = [row[1:] for row in self.gram[1:]]
        system = matrix(late)
        if system.det() == 0:
            return None
        return tuple(x for (x,) in table(system.solve(matrix([[-row[0]] for row in self.gram[1:]]))))


def policy_bias(mdp: Mdp, late: Sequence[str] = ("slow",), *, target: Table | None = None) -> PolicyBias:
    """The bias of the benchmark's estimator over the horizon of the MDP, these channels being late and the others on time.

    The target is `reference_gradient` of the sum of all channels unless another is given. InputError if the stationary law is needed and
    not unique. Source: the tabular benchmark of Retroactive Advantage Correction, arXiv:2606.27580.

    >>> mdp = Mdp.of([[[1], [1]]], [["1/2", "1/2"]], {"fast": [[0, 0]], "slow": [[0, 4]]}, discount=0, horizon=2)
    >>> policy_bias(mdp).norm([0]), policy_bias(mdp).norm([1])
    (Real('sqrt(2)'), Real('0'))
    """
    names, on_time = _split(mdp, late)
    gradients = estimator_gradients(mdp, [on_time, *(mdp.reward(name) for name in names)])
    whole = reference_gradient(mdp, mdp.reward()) if target is None else target
    return PolicyBias.of(gradients[0], list(zip(names, gradients[1:], strict=True)), whole)


def limit_bias(mdp: Mdp, late: Sequence[str] = ("slow",)) -> PolicyBias:
    """What `policy_bias` tends to as the horizon grows: the gradient of each reward tends to its `reference_gradient`.

    For the mean over t < T of the law of step t tends to d, and Q_{T-t} to Q for all but the last steps. So the bias tends to
    |sum_k (1 - w_k) g*_k|: with one late channel, or one common weight w, the reduction against weight 0 tends to 1/|1 - w|, whatever the
    MDP. Ours.

    >>> moves, policy, rewards = [[[1, 0], [0, 1]]] * 2, [["1/2", "1/2"]] * 2, {"fast": [[0, 0]] * 2, "slow": [[0, 0], [4, 4]]}
    >>> mdp = Mdp.of(moves, policy, rewards, discount="1/2", horizon=2)
    >>> [policy_bias(mdp.with_horizon(steps)).norm([1]) for steps in (2, 4, 8)], limit_bias(mdp).norm([1])
    ([Real('1/4'), Real('1/8'), Real('1/16')], Real('0'))
    """
    names, on_time = _split(mdp, late)
    gradients = [(name, reference_gradient(mdp, mdp.reward(name))) for name in names]
    return PolicyBias.of(reference_gradient(mdp, on_time), gradients, reference_gradient(mdp, mdp.reward()))


def _split(mdp: Mdp, late: Sequence[str]) -> tuple[tuple[str, ...], Table]:
    """The late channels, and the sum of the others."""
    names = tuple(late)
    if not names or len(set(names)) < len(names):
        raise InputError("late", str(list(names)), "at least one channel, each once")
    for name in names:
        mdp.reward(name)
    on_time = [name for name in mdp.rewards if name not in names]
    nothing = ((Fraction(0),) * mdp.actions,) * mdp.states
    return names, mdp.reward(*on_time) if on_time else nothing


def inner_products(gradients: Sequence[Table]) -> Table:
    """Of each gradient with each.

    >>> inner_products([((Fraction(1), Fraction(2)),), ((Fraction(3), Fraction(0)),)])
    ((Fraction(5, 1), Fraction(3, 1)), (Fraction(3, 1), Fraction(9, 1)))
    """
    rows = matrix([[x for row in gradient for x in row] for gradient in gradients])
    return table(rows * rows.transpose())
