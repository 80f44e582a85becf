"""The published benchmark as printed, sampled and exact: what the table holds, where it comes from, and how `verify` shows it."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from decimal import Decimal
from itertools import pairwise
from math import exp, sqrt

import numpy as np
import pytest

from exactgrpo.claims.audit import Audit
from exactgrpo.cli import ExitCode
from exactgrpo.report.figures import figures_data, figures_parts
from exactgrpo.tabular.figures import figures, published_figures, qualities, ranking
from exactgrpo.tabular.published import INSTANCES, SIZES, published_instance
from exactgrpo.tabular.sampled import sampled


def verified(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "exactgrpo.cli", "verify", "--about", "benchmark", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def in_doubles(states: int, actions: int, instance: int) -> dict[str, float]:
    """The mean of ratios by NumPy: dense linear algebra for the target, powers step by step for the estimators."""
    benchmark = published_instance(states, actions, instance)
    mdp = benchmark.mdp
    transition, policy = (np.array(x, dtype=float) for x in (mdp.transition, mdp.policy))
    rewards = {name: np.array(mdp.reward(name), dtype=float) for name in ("fast", "slow")}
    discount, steps = float(mdp.discount), mdp.horizon
    chain = np.einsum("sa,sat->st", policy, transition)
    system = np.vstack([chain.T - np.eye(states), np.ones(states)])
    law = np.linalg.lstsq(system, np.r_[np.zeros(states), 1], rcond=None)[0]

    def gradient(at: np.ndarray, q: np.ndarray) -> np.ndarray:
        return at[:, None] * policy * (q - (policy * q).sum(1, keepdims=True))

    both = rewards["fast"] + rewards["slow"]
    values = np.linalg.solve(np.eye(states) - discount * chain, (policy * both).sum(1))
    target = gradient(law, both + discount * transition @ values)

    def estimated(reward: np.ndarray) -> np.ndarray:
        value, q = np.zeros(states), []
        for _ in range(steps):
            q.append(reward + discount * transition @ value)
            value = (policy * q[-1]).sum(1)
        at, found = np.full(states, 1 / states), np.zeros((states, actions))
        for t in range(steps):
            found += gradient(at, q[steps - 1 - t]) / steps
            at = at @ chain
        return found

    fast, slow = estimated(rewards["fast"]), estimated(rewards["slow"])

    def bias(weight: float) -> float:
        return sqrt(((fast + weight * slow - target) ** 2).sum())

    weights = {"rac": lambda d: exp(-d / 1000), "wait_for_slow": lambda d: 1.0, "retrace_a": lambda d: discount**d}
    return {name: sum(bias(0) / bias(w(d)) for d in (5, 20, 50)) / 3 for name, w in weights.items()}


def test_the_exact_column_is_that_of_plain_doubles() -> None:
    exact = {figure.name: figure.exact.to_float64() for figure in figures()}
    for name, value in in_doubles(3, 2, 0).items():
        assert exact[f"{name}, 3x2"] == pytest.approx(value, rel=1e-8)
    for states, actions in SIZES:
        mean = sum(in_doubles(states, actions, k)["rac"] for k in range(INSTANCES)) / INSTANCES
        assert exact[f"rac, mean of {INSTANCES} of size {states}x{actions}"] == pytest.approx(mean, rel=1e-8)


def test_samples_have_the_published_digits_and_exact_numbers_do_not_shrink() -> None:
    found = figures()
    printed = [(f.published, f.sampled) for f in found if f.published is not None and f.sampled is not None]
    assert [published for published, _ in printed] == ["47.9", "27.1", "1.5", "17.87", "4.65"]
    for published, value in printed:
        digits = -int(Decimal(published).as_tuple().exponent)
        assert f"{value:.{digits}f}" == published
    (cost,) = [f for f in found if f.sampled is None]
    assert (cost.published, cost.exact) == ("26", 26)
    sizes = [f.exact for f in found if "of size" in f.name]
    assert all(a < b for a, b in pairwise(sizes))


def test_the_ranking_inverts_and_rac_is_not_beaten() -> None:
    found = ranking()
    assert (found.exact_mean, found.exact_by_delay) == (True, (True, True, False))
    assert 2 * found.sampled_mean < found.count
    best = {q.estimator: (q.is_best_stop_and_wait, q.is_best_pipelined) for q in qualities()}
    assert best == {"rac": (True, True)} | dict.fromkeys(("naive", "wait_for_slow", "retrace_a", "vtrace"), (False, False))


def test_verify_shows_the_table_and_its_json() -> None:
    done = verified()
    assert (done.returncode, done.stderr) == (ExitCode.DONE, "")
    for text in ("47.9", "60.1629", "72.1444", "87 of 200 samples", "delay 50 (below or level exactly)"):
        assert text in done.stdout
    data = json.loads(verified("--json").stdout)
    rows = {row["figure"]: row for row in data["benchmark"]["figures"]}
    assert rows["rac, 3x2"]["exact"]["decimal"] == "60.162876898"
    assert data["benchmark"]["samples_changed"] is None
    assert (data["claims"], data["models"]) == ([], [])


def test_samples_that_differ_are_a_surprise() -> None:
    draws = copy.deepcopy(sampled())
    assert published_figures(draws).changed == []
    draws["table"]["rac"]["mean"] = 47.88
    found = published_figures(draws)
    assert found.changed == ["table.rac.mean"]
    assert Audit(benchmark=found).has_surprise
    assert not Audit(benchmark=published_figures()).has_surprise
    assert figures_data(found)["samples_changed"] == ["table.rac.mean"]
    assert "not as bundled at table.rac.mean" in str(figures_parts(found)[-1])


def test_sampling_goes_without_files() -> None:
    done = verified("--sample", "some.toml")
    assert (done.returncode, done.stdout) == (ExitCode.BAD_INPUT, "")
    assert "--sample goes without FILES" in done.stderr
