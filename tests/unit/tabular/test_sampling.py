"""Sampling by the published protocol: its draws literally, its figures to the printed digits, and the exact figures from its estimates."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from tabular_mdps import FILE, mdps

from exactgrpo import InputError, LimitError
from exactgrpo.tabular.file import benchmark_of
from exactgrpo.tabular.gradients import estimator_gradients, reference_gradient
from exactgrpo.tabular.mdp import Mdp
from exactgrpo.tabular.policy_bias import policy_bias
from exactgrpo.tabular.published import published_instance
from exactgrpo.tabular.sampled import ROWS, differences, resample, sampled, sampled_table, table_seeds
from exactgrpo.tabular.sampling import draw, sample


def _literally(mdp: Mdp, seed: int, trajectories: int) -> tuple[list[list[int]], list[list[int]]]:
    """The protocol as it is written down, one call of NumPy for each draw."""
    rng = np.random.default_rng(seed)
    policy, transition = np.array(mdp.policy, float), np.array(mdp.transition, float)
    states: list[list[int]] = []
    actions: list[list[int]] = []
    for _ in range(trajectories):
        state = int(rng.integers(0, mdp.states))
        states.append([])
        actions.append([])
        for _ in range(mdp.horizon):
            action = int(rng.choice(mdp.actions, p=policy[state]))
            states[-1].append(state)
            actions[-1].append(action)
            state = int(rng.choice(mdp.states, p=transition[state, action]))
    return states, actions


@pytest.mark.parametrize(("size", "instance", "seed"), [((3, 2), 0, 485), ((3, 2), 4, 20499), ((20, 8), 2, 21127), ((5, 3), 1, 0)])
def test_draws_are_those_of_choice(size: tuple[int, int], instance: int, seed: int) -> None:
    mdp = published_instance(*size, instance).mdp
    assert tuple(x.tolist() for x in draw(mdp, seed, trajectories=40)) == _literally(mdp, seed, 40)


@settings(max_examples=40)
@given(mdps(states=4, actions=3, horizon=6), st.integers(0, 2**32))
def test_draws_are_those_of_choice_with_masses_of_zero(mdp: Mdp, seed: int) -> None:
    mdp = Mdp.of(mdp.transition, mdp.policy, mdp.rewards, discount=mdp.discount, horizon=mdp.horizon)
    assert tuple(x.tolist() for x in draw(mdp, seed, trajectories=5)) == _literally(mdp, seed, 5)


class _Fixed:
    """A generator that always draws the first state and this uniform number."""

    def __init__(self, uniform: float) -> None:
        self.uniform = uniform

    def integers(self, low: int, high: int) -> int:
        return low

    def random(self, shape: tuple[int, ...]) -> Any:
        return np.full(shape, self.uniform)


EDGES = np.cumsum([0.1] * 10) / np.cumsum([0.1] * 10)[-1]


@pytest.mark.parametrize("uniform", [0.0, 0.1, *map(float, EDGES[:9]), 1 - 2**-53])
def test_draws_on_the_edge_of_a_cell_are_those_of_choice(monkeypatch: pytest.MonkeyPatch, uniform: float) -> None:
    """`choice` divides the cumulated masses by the last, which is 1 - 2^-53 for ten tenths, and then looks right of equal ones."""
    tenths = [F(1, 10)] * 10
    mdp = Mdp.of([[tenths] * 10] * 10, [tenths] * 10, {"fast": [[0] * 10] * 10}, discount=0, horizon=1)
    assert np.cumsum([0.1] * 10)[-1] < 1
    monkeypatch.setattr(np.random, "default_rng", lambda seed: _Fixed(uniform))
    actions = draw(mdp, 0, trajectories=2)[1]
    assert actions.tolist() == [[int(EDGES.searchsorted(uniform, side="right"))]] * 2


@settings(max_examples=40)
@given(mdps(states=3, actions=3, horizon=4), st.integers(0, 2**32))
def test_gradients_of_trajectories_by_the_formula_in_rationals(mdp: Mdp, seed: int) -> None:
    mdp = Mdp.of(mdp.transition, mdp.policy, mdp.rewards, discount=mdp.discount, horizon=mdp.horizon)
    found = sample(mdp, [seed], trajectories=3)
    for row, states, actions in zip(found.slow, *draw(mdp, seed, trajectories=3), strict=True):
        wanted = [[F(0)] * mdp.actions for _ in range(mdp.states)]
        for t in range(mdp.horizon):
            later = range(t, mdp.horizon)
            to_go = sum((mdp.discount ** (u - t) * mdp.rewards["slow"][states[u]][actions[u]] for u in later), F(0))
            for b in range(mdp.actions):
                wanted[states[t]][b] += to_go * ((actions[t] == b) - mdp.policy[states[t]][b]) / mdp.horizon
        size = max(1.0, *(float(abs(x)) for table in mdp.rewards["slow"] for x in table)) * mdp.horizon
        assert np.allclose(row, np.array(wanted, float).ravel(), rtol=1e-12, atol=1e-13 * size)


def test_mean_gradients_approach_the_exact_expectation() -> None:
    mdp = benchmark_of(FILE).mdp
    found = sample(mdp, [0, 1], trajectories=20_000)
    for rows, exact in zip((found.fast, found.slow), estimator_gradients(mdp, [mdp.reward("fast"), mdp.reward("slow")]), strict=True):
        errors = rows.std(0, ddof=1) / np.sqrt(len(rows))
        assert (abs(rows.mean(0) - np.array(exact, float).ravel()) < 4.5 * errors).all()


# ---- the published figures


@pytest.fixture(scope="module")
def again() -> dict[str, Any]:
    return resample(replicates=2)


def test_published_table_to_its_printed_digits(again: dict[str, Any]) -> None:
    table = again["table"]
    assert [f"{table[name]['mean']:.1f}" for name in ROWS] == ["1.0", "47.9", "27.1", "1.5"]
    assert [f"{table[name]['mean']:.2f}" for name in ROWS] == ["1.00", "47.88", "27.15", "1.51"]
    assert [f"{x['reduction']:.1f}" for x in table["rac"]["by_delay"]] == ["30.2", "29.4", "84.0"]


def test_published_size_sweep_to_its_printed_digits(again: dict[str, Any]) -> None:
    assert [f"{again['sizes'][size]['mean']:.2f}" for size in ("3x2", "20x8")] == ["17.87", "4.65"]


def test_bundled_figures_are_drawn_again(again: dict[str, Any]) -> None:
    bundled = sampled()
    assert differences({**bundled, "replicates": 0}, {**again, "replicates": 0}) == []
    assert bundled["replicates"]["count"] == 200


def test_a_figure_that_moved_is_noticed() -> None:
    moved = sampled()
    moved["table"]["rac"]["by_delay"][2]["bias"] *= 1 + 1e-8
    del moved["sizes"]["5x3"]
    assert differences(sampled(), moved) == ["table.rac.by_delay[2].bias", "sizes"]


def test_unbiased_squares_of_the_replicates_agree_with_the_exact_ones() -> None:
    """Against the exact squares of the bias; the plug-in squares, two to eight times as large, would fail this."""
    replicates = sampled()["replicates"]
    bias = policy_bias(published_instance().mdp)
    weights = {"rac": ["exp(-1/200)", "exp(-1/50)", "exp(-1/20)"], "wait_for_slow": [1, 1, 1], "naive": [0, 0, 0]}
    for name, row in weights.items():
        for weight, mean, error in zip(
            row, replicates[name]["squared_bias_by_delay"], replicates[name]["squared_bias_error_by_delay"], strict=True
        ):
            assert abs(mean - bias.squared([weight]).to_float64()) < 3 * error


def test_ranking_of_the_published_table_is_that_of_its_seeds() -> None:
    """Exactly, RAC has the larger mean reduction (60.2 to 54.9); of 200 replicates of the protocol fewer than half say so."""
    replicates = sampled()["replicates"]
    assert replicates["rac_above_wait_for_slow"] == {"mean": 87, "by_delay": [154, 123, 60]}
    assert replicates["rac"]["mean"] < 35 < 54 < 60.2


# ---- estimates


def _deviations(rows: Sequence[Sequence[float]]) -> list[float]:
    """Mean inner product of the rows of two different trajectories, pair by pair."""
    pairs = [sum(x * y for x, y in zip(a, b, strict=True)) for i, a in enumerate(rows) for j, b in enumerate(rows) if i != j]
    return [sum(pairs) / len(pairs)]


def test_squared_bias_is_the_mean_over_all_pairs_of_trajectories() -> None:
    benchmark = benchmark_of({**FILE, "delays": [3]})
    target = reference_gradient(benchmark.mdp, benchmark.mdp.reward())
    rows = sampled_table(benchmark, target, [[7]], trajectories=30)
    found = sample(benchmark.mdp, [7], trajectories=30)
    reference = np.array(target, float).ravel()
    for name, weight in (("naive", 0.0), ("wait_for_slow", 1.0), ("retrace_a", 0.125)):
        estimate = rows[name].by_delay[0]
        assert [estimate.squared_bias] == pytest.approx(_deviations(found.deviations(weight, reference).tolist()), rel=1e-10)
        assert estimate.squared_bias == pytest.approx(estimate.bias**2 - estimate.noise**2, rel=1e-10)
        naive = np.linalg.norm(found.deviations(0, reference).mean(0))
        assert estimate.reduction == pytest.approx(naive / np.linalg.norm(found.deviations(weight, reference).mean(0)))


def test_standard_error_is_the_spread_of_samples_where_the_bias_is_large() -> None:
    benchmark = benchmark_of({**FILE, "delays": [3]})
    target = reference_gradient(benchmark.mdp, benchmark.mdp.reward())
    found = [sampled_table(benchmark, target, [[seed]], trajectories=400)["retrace_a"] for seed in range(200)]
    spread = np.std([row.mean for row in found], ddof=1)
    assert np.mean([row.standard_error for row in found]) == pytest.approx(spread, rel=0.15)


# ---- bad input


@pytest.mark.parametrize(
    ("seeds", "trajectories", "message"),
    [
        ([], 10, "seeds: 'an empty list': there is at least one seed"),
        ([-1], 10, "seeds[0]: -1: an integer of at least 0"),
        ([0.5], 10, "seeds[0]: 0.5: an integer of at least 0"),
        ("ab", 10, "seeds: 'ab': a list is needed"),
        ([0], 1, "trajectories: 1: an integer of at least 2"),
        ([0], 10**9, "trajectories: '1 times 1000000000': at most 20000000 steps and numbers of gradients in a sample"),
    ],
)
def test_bad_samples_in_one_line(seeds: Any, trajectories: int, message: str) -> None:
    with pytest.raises(InputError) as caught:
        sample(benchmark_of(FILE).mdp, seeds, trajectories=trajectories)
    assert str(caught.value) == message


def test_a_start_that_is_not_uniform_is_no_protocol() -> None:
    with pytest.raises(InputError, match="start"):
        sample(benchmark_of({**FILE, "start": ["1/3", "2/3"]}).mdp, [0])


def test_references_and_seeds_of_other_shapes_are_refused() -> None:
    benchmark = benchmark_of(FILE)
    with pytest.raises(InputError, match="reference"):
        sampled_table(benchmark, ((F(0),),), [[0]] * 3)
    with pytest.raises(InputError, match="seeds"):
        sampled_table(benchmark, ((F(0), F(0)), (F(0), F(0))), [[0]])
    with pytest.raises(LimitError, match="replicates"):
        resample(replicates=10**6)


def test_numbers_that_doubles_do_not_hold_are_refused() -> None:
    with pytest.raises(LimitError, match="rewards"):
        sample(benchmark_of({**FILE, "reward_slow": [["1e400", 0], [0, 0]]}).mdp, [0])


def test_a_reduction_needs_a_bias() -> None:
    one = {**FILE, "actions": 1, "transition": [[[0, 1]], [[1, 0]]], "policy": [[1], [1]]}
    benchmark = benchmark_of({**one, "reward_fast": [[1], [0]], "reward_slow": [[0], [1]]})
    with pytest.raises(InputError, match="no bias at all"):
        sampled_table(benchmark, ((F(0),), (F(0),)), [[0]] * 3)


def test_seeds_of_the_protocol() -> None:
    assert table_seeds(50, [0, 2]) == [4850, 24864]
