"""Topologies, delay laws and sizes: rows by hand, the effect of a law by doubles and by its bound, and what is not invariant."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction as F
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import assume, given, settings, strategies as st
from tabular_mdps import mdps

from exactgrpo import InputError
from exactgrpo.cli import app
from exactgrpo.rac.delay_law import DelayLaw
from exactgrpo.report.grid import grid_data
from exactgrpo.tabular.chain import stationary_law
from exactgrpo.tabular.file import load_benchmark
from exactgrpo.tabular.grid import LAWS, TOPOLOGIES, Cell, decide_delay_effect, delay_law, grid, with_topology
from exactgrpo.tabular.policy_bias import PolicyBias, policy_bias
from exactgrpo.tabular.published import published_instance


@pytest.fixture(scope="module")
def small() -> list[Cell]:
    return grid(sizes=[(3, 2)])


def _rows(name: str) -> list[list[list[F]]]:
    """Of three states and two actions, which move on with 1/3 and 2/3."""
    return [[list(row) for row in rows] for rows in with_topology(published_instance().mdp, name).transition]


def test_topologies_by_hand() -> None:
    t, u, q = F(1, 3), F(2, 3), F(1, 4)
    assert _rows("chain") == [[[u, t, 0], [t, u, 0]], [[u, 0, t], [t, 0, u]], [[0, u, t], [0, t, u]]]
    assert _rows("cyclic") == [[[u, t, 0], [t, u, 0]], [[0, u, t], [0, t, u]], [[t, 0, u], [u, 0, t]]]
    assert _rows("terminal") == [[[u, t, 0], [t, u, 0]], [[0, u, t], [0, t, u]], [[t, t, t], [t, t, t]]]
    assert _rows("dense") == [[[q, 2 * q, q], [q, q, 2 * q]], [[q, q, 2 * q], [2 * q, q, q]], [[2 * q, q, q], [q, 2 * q, q]]]


@settings(max_examples=30)
@given(mdps(states=5, actions=3), st.sampled_from([name for name in TOPOLOGIES if name != "canonical"]))
def test_topologies_have_one_stationary_law_in_any_size(mdp: Any, name: str) -> None:
    changed = with_topology(mdp, name)
    assert all(x > 0 for x in stationary_law(changed))
    assert (changed.policy, changed.rewards, changed.start, changed.discount) == (mdp.policy, mdp.rewards, mdp.start, mdp.discount)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("mean", [1, 5, 50])
def test_laws_have_exactly_the_mean(name: str, mean: int) -> None:
    law = delay_law(name, mean)
    assert law.mean() == mean
    assert law.never == 0
    assert law.largest <= 4 * mean


@pytest.mark.parametrize(
    ("name", "below"),
    [
        ("gaussian", lambda x: math.erfc((50 - x) / 12.5 / math.sqrt(2)) / 2),
        ("log-normal", lambda x: math.erfc((math.log(50) - 1 / 8 - math.log(x)) / 0.5 / math.sqrt(2)) / 2 if x > 0 else 0),
        ("pareto", lambda x: 1 - (100 / 3 / x) ** 3 if x > 100 / 3 else 0),
        ("cauchy", lambda x: math.atan((x - 50) / 5) / math.pi),
    ],
)
def test_laws_have_nearly_the_variance_of_their_cells(name: str, below: Callable[[float], float]) -> None:
    """Matching the mean moves little mass."""
    masses = [below(d + 0.5) - below(d - 0.5) for d in range(201)]
    mean = sum(d * p for d, p in enumerate(masses)) / sum(masses)
    variance = sum((d - mean) ** 2 * p for d, p in enumerate(masses)) / sum(masses)
    assert delay_law(name, 50).variance().to_float64() == pytest.approx(variance, rel=1e-3)


def test_canonical_and_deterministic_is_the_benchmark(small: list[Cell]) -> None:
    found = [cell.effect.reduction for cell in small if (cell.topology, cell.law) == ("canonical", "deterministic")]
    assert [x.digits(3) for x in found if x is not None] == ["69.3", "83.7", "27.5"]


def test_every_combination_is_there_and_proved(small: list[Cell]) -> None:
    assert len({(cell.topology, cell.law, cell.mean_delay) for cell in small}) == len(small) == 5 * 5 * 3
    assert all(cell.effect.holds for cell in small)


def test_effects_by_doubles(small: list[Cell]) -> None:
    mdp = published_instance().mdp
    for cell in small:
        weight = sum(mass.to_float64() * math.exp(-delay / 1000) for delay, mass in delay_law(cell.law, cell.mean_delay).masses)
        gram = [[float(x) for x in row] for row in policy_bias(with_topology(mdp, cell.topology)).gram]
        bias = math.sqrt(gram[0][0] + 2 * weight * gram[0][1] + weight**2 * gram[1][1])
        assert cell.effect.weight.to_float64() == pytest.approx(weight, rel=1e-12)
        assert cell.effect.bias.to_float64() == pytest.approx(bias, rel=1e-6)
        assert cell.effect.reduction is not None
        assert cell.effect.reduction.to_float64() == pytest.approx(math.sqrt(gram[0][0]) / bias, rel=1e-6)


def test_reductions_are_within_one_percent_over_laws_but_not_over_topologies(small: list[Cell]) -> None:
    reductions: dict[tuple[int, str], list[float]] = {}
    for cell in small:
        assert cell.effect.reduction is not None
        reductions.setdefault((cell.mean_delay, cell.topology), []).append(cell.effect.reduction.to_float64())
    assert all(max(row) / min(row) < 1.01 for row in reductions.values())
    assert min(reductions[5, "dense"]) > 3 * max(reductions[5, "terminal"])


def test_a_long_chain_has_a_small_reduction() -> None:
    """Trajectories of 50 steps from a uniform start do not see the stationary law that the target is weighted with."""
    found = grid(topologies=["chain", "dense"], sizes=[(20, 8)], laws=["deterministic"])
    assert [cell.effect.reduction.digits(3) for cell in found if cell.effect.reduction is not None] == [
        *("3.38", "3.38", "3.35"),
        *("196", "50.3", "20.5"),
    ]


def test_laws_of_one_mean_and_a_large_spread_have_other_reductions() -> None:
    """E exp(-D/1000) is 0.9 + 0.1 exp(-1/2) = 0.9607 against exp(-1/20) = 0.9512: 1/slack goes from 20.5 to 25.4 where C4 applies."""
    bias = policy_bias(load_benchmark("3x2").mdp)
    near, far = (decide_delay_effect(bias, DelayLaw.of(law)) for law in ({50: 1}, {0: "9/10", 500: "1/10"}))
    assert near.reduction is not None
    assert far.reduction is not None
    assert far.reduction > near.reduction * F(6, 5)
    assert far.holds


@settings(max_examples=40)
@given(
    st.dictionaries(st.integers(0, 30), st.integers(1, 5), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9), st.integers(-9, 9)), min_size=1, max_size=3),
    st.integers(1, 50),
)
def test_the_bound_holds_for_any_law_and_any_gradients(law: dict[int, int], vectors: list[tuple[int, int, int]], tau: int) -> None:
    fast, slow, target = (tuple((F(x[i]),) for x in vectors) for i in range(3))
    assume(any(x != (0,) for x in slow))
    bias = PolicyBias.of(fast, [("slow", slow)], target)
    effect = decide_delay_effect(bias, DelayLaw.of({d: F(n, sum(law.values())) for d, n in law.items()}), time_constant=tau)
    assert effect.holds
    assert abs(effect.bias.to_float64() - effect.matched_bias.to_float64()) <= effect.bound.to_float64() * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topologies": ["ring"]}, "topology: 'ring': one of canonical, chain, cyclic, dense, terminal"),
        ({"laws": ["normal"]}, "law: 'normal': one of deterministic, gaussian, log-normal, pareto, cauchy"),
        ({"laws": "pareto"}, "laws: 'pareto': a list is needed"),
        ({"sizes": [(4, 4)]}, "size: '4x4': one of 3x2, 5x3, 10x5, 20x8"),
    ],
)
def test_unknown_names_in_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        grid(**options)
    assert str(caught.value) == message


def test_one_late_channel_that_arrives_is_needed() -> None:
    bias = policy_bias(load_benchmark("3x2").mdp, ("fast", "slow"))
    with pytest.raises(InputError, match="one late channel"):
        decide_delay_effect(bias, DelayLaw.deterministic(1))
    with pytest.raises(InputError):
        decide_delay_effect(policy_bias(load_benchmark("3x2").mdp), DelayLaw.of({"never": 1}))


def test_command(small: list[Cell]) -> None:
    arguments = ["grid", "--size", "3x2", "--json"]
    assert json.loads(CliRunner().invoke(app, arguments).stdout) == grid_data(small)
    text = CliRunner().invoke(app, ["grid", "--size", "3x2"]).stdout
    assert "proved in 75 of 75 cells" in text
    assert CliRunner().invoke(app, ["grid", "--size", "4x4"]).exit_code == 2
