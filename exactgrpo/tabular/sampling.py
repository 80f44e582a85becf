"""Trajectories by the published sampling protocol, and their gradients: doubles, a sample and no more. Nothing is decided with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from exactgrpo.errors import InputError, LimitError
from exactgrpo.numbers.inputs import listed, whole
from exactgrpo.tabular.mdp import Mdp, Table

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.intp]

TRAJECTORIES = 1000
"""For each seed of the protocol."""
MAX_ENTRIES = 2 * 10**7
"""Steps of all trajectories of a sample, and numbers of all their gradients."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One gradient a row, flattened over state and action, of the fast and of the slow reward along the same trajectories."""

    fast: Floats
    slow: Floats

    def deviations(self, weight: float, reference: Floats) -> Floats:
        """fast + weight * slow - reference, one row for each trajectory."""
        return self.fast + weight * self.slow - reference


def sample(mdp: Mdp, seeds: Sequence[int], *, trajectories: int = TRAJECTORIES) -> Sample:
    """The gradients (1/T) sum_t G_t grad log pi(a_t|s_t) of the channels "fast" and "slow", `trajectories` for each seed.

    G_t is the discounted reward to go inside the horizon T; the expectation is `estimator_gradients`. Source: the sampling protocol of
    Retroactive Advantage Correction, arXiv:2606.27580. InputError for no seed or a start that is not uniform, LimitError beyond
    20,000,000 steps or numbers.

    >>> coin = Mdp.of([[[1], [1]]], [["1/2", "1/2"]], {"fast": [[0, 1]], "slow": [[0, 0]]}, discount=0, horizon=1)
    >>> sorted({tuple(map(float, row)) for row in sample(coin, [0], trajectories=20).fast})
    [(-0.5, 0.5), (0.0, 0.0)]
    """
    row = [whole(x, f"seeds[{i}]", least=0) for i, x in enumerate(listed(seeds, "seeds"))]
    each = whole(trajectories, "trajectories", least=2)
    if not row:
        raise InputError("seeds", "an empty list", "there is at least one seed")
    entries = len(row) * each * max(mdp.horizon, mdp.states * mdp.actions)
    if entries > MAX_ENTRIES:
        raise LimitError("trajectories", f"{len(row)} times {each}", f"at most {MAX_ENTRIES} steps and numbers of gradients in a sample")
    paths = [draw(mdp, seed, trajectories=each) for seed in row]
    states, actions = (np.concatenate(parts) for parts in zip(*paths, strict=True))
    fast, slow = (_gradients(mdp, mdp.reward(name), states, actions) for name in ("fast", "slow"))
    return Sample(fast, slow)


def draw(mdp: Mdp, seed: int, *, trajectories: int = TRAJECTORIES) -> tuple[Counts, Counts]:
    """States and actions [trajectory][step]: NumPy's `default_rng(seed)`, and in order of trajectories `integers(0, states)`, then at each
    step `choice(actions, p=policy[s])` and `choice(states, p=transition[s][a])`.

    Such a choice is the place of one uniform double in the cumulated masses, so that the doubles of a trajectory can be taken at once.

    >>> coin = Mdp.of([[[1], [1]]], [["1/2", "1/2"]], {"fast": [[0, 1]]}, discount=0, horizon=8)
    >>> states, actions = draw(coin, 0, trajectories=2)
    >>> actions.tolist()
    [[1, 0, 1, 1, 1, 1, 1, 1], [1, 0, 0, 1, 1, 1, 1, 1]]
    """
    if len(set(mdp.start)) > 1:
        raise InputError("start", "not uniform", "the sampling protocol starts in each state alike")
    rng = np.random.default_rng(seed)
    policy, transition = _cumulated(mdp.policy), _cumulated(mdp.transition)
    state = np.empty(trajectories, np.intp)
    uniform = np.empty((trajectories, mdp.horizon, 2))
    for i in range(trajectories):
        state[i] = rng.integers(0, mdp.states)
        uniform[i] = rng.random((mdp.horizon, 2))
    states, actions = (np.empty((trajectories, mdp.horizon), np.intp) for _ in range(2))
    for t in range(mdp.horizon):
        states[:, t] = state
        actions[:, t] = (policy[state] <= uniform[:, t, :1]).sum(1)
        state = (transition[state, actions[:, t]] <= uniform[:, t, 1:]).sum(1)
    return states, actions


def doubles(table: Table, place: str) -> Floats:
    """The nearest doubles of a table."""
    try:
        return np.array([[float(x) for x in row] for row in table])
    except OverflowError:
        raise LimitError(place, "a number beyond 10^308", "sampling is done in doubles") from None


def _cumulated(masses: object) -> Floats:
    """As `Generator.choice` cumulates them."""
    sums = np.array(masses, float).cumsum(-1)
    cumulated: Floats = sums / sums[..., -1:]
    return cumulated


def _gradients(mdp: Mdp, reward: Table, states: Counts, actions: Counts) -> Floats:
    rewards = doubles(reward, "rewards")[states, actions]
    discount, count = float(mdp.discount), len(states)
    returns = np.empty_like(rewards)
    to_go = np.zeros(count)
    for t in reversed(range(mdp.horizon)):
        to_go = rewards[:, t] + discount * to_go
        returns[:, t] = to_go
    pairs = (np.arange(count)[:, None] * mdp.states + states) * mdp.actions + actions
    sums = np.bincount(pairs.ravel(), returns.ravel(), count * mdp.states * mdp.actions).reshape(count, mdp.states, mdp.actions)
    scores = sums - np.array(mdp.policy, float) * sums.sum(-1, keepdims=True)
    rows: Floats = scores.reshape(count, -1) / mdp.horizon
    return rows
