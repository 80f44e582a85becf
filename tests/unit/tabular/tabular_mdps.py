"""Random small MDPs, and one by hand."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

from hypothesis import strategies as st

from exactgrpo.strategies import rationals
from exactgrpo.tabular.mdp import Law, Mdp

FILE: dict[str, Any] = {
    "states": 2,
    "actions": 2,
    "discount": "1/2",
    "horizon": 3,
    "transition": [[["1/2", "1/2"], [0, 1]], [["1/4", "3/4"], [1, 0]]],
    "policy": [["1/3", "2/3"], ["1/2", "1/2"]],
    "reward_fast": [[1, 0], [0, "-1/2"]],
    "reward_slow": [[0, "0.5"], [2, 1]],
}


@st.composite
def laws(draw: Any, size: int, *, least: int = 0) -> Law:
    """Masses of at least `least`/total; zeros are likely if `least` is 0."""
    weights = draw(st.lists(st.integers(least, 5), min_size=size, max_size=size).filter(any))
    return tuple(Fraction(w, sum(weights)) for w in weights)


@st.composite
def mdps(
    draw: Any, *, states: int = 4, actions: int = 3, horizon: int = 4, channels: tuple[str, ...] = ("fast", "slow"), mixes: bool = False
) -> Mdp:
    """MDPs with up to so many states, actions and steps; if it `mixes`, each state leads to each, so that all chains have one class."""
    size, choices = draw(st.integers(1, states)), draw(st.integers(1, actions))
    return Mdp.of(
        [[draw(laws(size, least=int(mixes))) for _ in range(choices)] for _ in range(size)],
        [draw(laws(choices, least=1)) for _ in range(size)],
        {name: [[draw(rationals()) for _ in range(choices)] for _ in range(size)] for name in channels},
        discount=draw(rationals(min=0, max=1).filter(lambda x: x < 1)),
        horizon=draw(st.integers(1, horizon)),
        start=draw(st.none() | laws(size)),
    )


def trajectories(mdp: Mdp) -> Iterator[tuple[Fraction, tuple[int, ...], tuple[int, ...]]]:
    """Every trajectory of positive probability: its probability, states and actions."""
    pairs = list(product(range(mdp.states), range(mdp.actions)))
    for steps in product(pairs, repeat=mdp.horizon):
        mass = mdp.start[steps[0][0]]
        for s, a in steps:
            mass *= mdp.policy[s][a]
        for (s, a), (t, _) in pairwise(steps):
            mass *= mdp.transition[s][a][t]
        if mass:
            yield mass, tuple(s for s, _ in steps), tuple(a for _, a in steps)
