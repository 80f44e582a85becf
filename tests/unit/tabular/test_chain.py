"""The chain of an MDP: stationary laws that are unique, occupancies, and recurrent classes against a second route."""

from __future__ import annotations

from fractions import Fraction as F
from itertools import product

import pytest
from hypothesis import assume, given, settings
from tabular_mdps import mdps, trajectories

from exactgrpo import InputError
from exactgrpo.tabular.chain import occupancies, recurrent_classes, state_chain, stationary_law
from exactgrpo.tabular.mdp import Mdp


def chain(*rows: list[object]) -> Mdp:
    return Mdp.of([[row] for row in rows], [[1]] * len(rows), {"r": [[0]] * len(rows)}, discount=0, horizon=3)


@settings(deadline=None)
@given(mdps())
def test_the_stationary_law_is_kept_by_the_chain(mdp: Mdp) -> None:
    assume(len(recurrent_classes(mdp)) == 1)
    law, rows = stationary_law(mdp), state_chain(mdp)
    assert sum(law) == 1
    assert all(x >= 0 for x in law)
    assert tuple(sum(d * row[t] for d, row in zip(law, rows, strict=True)) for t in range(mdp.states)) == law
    assert {s for s, x in enumerate(law) if x} == set(recurrent_classes(mdp)[0])


@settings(deadline=None)
@given(mdps())
def test_recurrent_classes_by_paths(mdp: Mdp) -> None:
    size, rows = mdp.states, state_chain(mdp)
    reach = [{s} for s in range(size)]
    for _ in range(size):
        for s, t in product(range(size), repeat=2):
            if rows[s][t]:
                reach[s] |= reach[t]
    recurrent = {s for s in range(size) if all(s in reach[t] for t in reach[s])}
    assert sorted({tuple(sorted(reach[s])) for s in recurrent}) == sorted(recurrent_classes(mdp))


@settings(deadline=None)
@given(mdps(states=3, actions=2, horizon=3))
def test_occupancies_are_sums_over_paths(mdp: Mdp) -> None:
    laws = [[F(0)] * mdp.states for _ in range(mdp.horizon)]
    for mass, states, _ in trajectories(mdp):
        for t, s in enumerate(states):
            laws[t][s] += mass
    assert occupancies(mdp) == tuple(map(tuple, laws))
    assert occupancies(mdp, 1) == (mdp.start,)


def test_by_hand() -> None:
    # d0/2 = d1 and d0 + d1 = 1
    assert stationary_law(chain(["1/2", "1/2"], [1, 0])) == (F(2, 3), F(1, 3))
    # periodic: the law of a step does not converge, the stationary law is unique all the same
    assert stationary_law(chain([0, 1], [1, 0])) == (F(1, 2), F(1, 2))
    # transient states have no mass
    assert stationary_law(chain(["1/2", "1/2"], [0, 1])) == (0, 1)


@pytest.mark.parametrize("rows", [[[1, 0], [0, 1]], [["1/3", "1/3", "1/3"], [0, 1, 0], [0, 0, 1]]])
def test_several_recurrent_classes_are_refused(rows: list[list[object]]) -> None:
    with pytest.raises(InputError, match=r"2 recurrent classes: .*unique for one class only"):
        stationary_law(chain(*rows))
