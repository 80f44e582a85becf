"""The published figures of the tabular benchmark by its own sampling protocol, and how far a sample of that size can be trusted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import isclose, sqrt
from pathlib import Path
from typing import Any

import numpy as np

from exactgrpo.errors import InputError, LimitError
from exactgrpo.numbers.inputs import whole
from exactgrpo.tabular.estimators import weights
from exactgrpo.tabular.file import Benchmark
from exactgrpo.tabular.gradients import reference_gradient
from exactgrpo.tabular.mdp import Table
from exactgrpo.tabular.published import INSTANCES, SIZES, published_instance
from exactgrpo.tabular.sampling import TRAJECTORIES, Floats, doubles, sample

RAC, WAIT_FOR_SLOW = "rac", "wait_for_slow"
ROWS = ("naive", RAC, WAIT_FOR_SLOW, "retrace_a")
SEEDS = (0, 1, 2)
REPLICATES = 200
MAX_REPLICATES = 10_000
_DATA = Path(__file__).parent / "sampled.json"
_SIGNIFICANT = 12


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimator beside the naive one, from one sample.

    `bias` is the norm of (mean gradient - reference), `reduction` that of the naive estimator over it: the published figure. Its
    `standard_error` is by the delta method over trajectories. `squared_bias` has no bias of its own: the mean inner product of
    two different trajectories' deviations, which is bias^2 - noise^2; it may be negative. `noise` is the root of the trace of the
    covariance of the mean gradient.
    """

    reduction: float
    standard_error: float
    bias: float
    squared_bias: float
    noise: float


@dataclass(frozen=True, slots=True)
class Row:
    """An estimator by delay. The draws of different delays are independent, and so are the errors."""

    by_delay: tuple[Estimate, ...]

    @property
    def mean(self) -> float:
        """The mean of the reductions over the delays."""
        return sum(x.reduction for x in self.by_delay) / len(self.by_delay)

    @property
    def standard_error(self) -> float:
        """Of the mean."""
        return sqrt(sum(x.standard_error**2 for x in self.by_delay)) / len(self.by_delay)


def table_seeds(delay: int, seeds: Sequence[int] = SEEDS) -> list[int]:
    """Seeds of the published table: 10007 seed + 97 delay.

    >>> table_seeds(5)
    [485, 10492, 20499]
    """
    return [10007 * seed + 97 * delay for seed in seeds]


def sweep_seeds(delay: int, states: int, actions: int, instance: int) -> list[int]:
    """The seed of the published size sweep: 10007 k + 97 delay + 31 states + actions.

    >>> sweep_seeds(5, 3, 2, 1)
    [10587]
    """
    return [10007 * instance + 97 * delay + 31 * states + actions]


def sampled_table(
    benchmark: Benchmark, reference: Table, seeds: Sequence[Sequence[int]], *, trajectories: int = TRAJECTORIES
) -> dict[str, Row]:
    """Rows of the naive estimator, RAC, wait-for-slow and Retrace-A; `seeds` holds those of each delay, whose trajectories are one sample.

    `reference` is what the mean gradients are compared with, by state and action. Every estimator is g_fast + w g_slow with the
    `weights` of the exact benchmark, rounded, and all share the draws. Source: as `sample`. InputError and LimitError: as there.

    >>> benchmark = published_instance()
    >>> target = reference_gradient(benchmark.mdp, benchmark.mdp.reward())
    >>> rows = sampled_table(benchmark, target, [table_seeds(delay) for delay in benchmark.delays])
    >>> [(name, round(row.mean, 2)) for name, row in rows.items()]
    [('naive', 1.0), ('rac', 47.88), ('wait_for_slow', 27.15), ('retrace_a', 1.51)]
    """
    mdp = benchmark.mdp
    target = doubles(reference, "reference").ravel()
    if target.shape != (mdp.states * mdp.actions,):
        raise InputError("reference", f"{target.size} numbers", f"one for each of the {mdp.states * mdp.actions} pairs of state and action")
    if len(seeds) != len(benchmark.delays):
        raise InputError("seeds", f"{len(seeds)} lists", f"one list of seeds for each of the {len(benchmark.delays)} delays")
    estimates: dict[str, list[Estimate]] = {name: [] for name in ROWS}
    for delay, row in zip(benchmark.delays, seeds, strict=True):
        drawn = sample(mdp, row, trajectories=trajectories)
        naive = drawn.deviations(0, target)
        for name, row_estimates in estimates.items():
            (weight,) = weights(name, [delay], discount=mdp.discount, time_constant=benchmark.time_constant)
            row_estimates.append(_estimate(naive, drawn.deviations(weight.to_float64(), target)))
    return {name: Row(tuple(row)) for name, row in estimates.items()}


def _estimate(naive: Floats, corrected: Floats) -> Estimate:
    count = len(naive)
    before, after = naive.mean(0), corrected.mean(0)
    square, naive_square = float(after @ after), float(before @ before)
    if not square or not naive_square:
        raise InputError("mean gradient", "no bias at all", "a reduction is a ratio of two biases that are not zero")
    reduction = sqrt(naive_square / square)
    influence = reduction * ((naive - before) @ before / naive_square - (corrected - after) @ after / square)
    noise_square = float(((corrected - after) ** 2).sum()) / (count - 1) / count
    return Estimate(reduction, float(influence.std(ddof=1)) / sqrt(count), sqrt(square), square - noise_square, sqrt(noise_square))


# ---- the published figures


def sampled() -> dict[str, Any]:
    """The bundled figures, which `resample` gives again.

    >>> round(sampled()["table"]["rac"]["mean"], 1), round(sampled()["sizes"]["20x8"]["mean"], 2)
    (47.9, 4.65)
    """
    return json.loads(_DATA.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def resample(*, sizes: Sequence[tuple[int, int]] = SIZES, replicates: int = REPLICATES) -> dict[str, Any]:
    """The published figures by the published protocol, drawn again, with what the protocol itself leaves open.

    `table`: 3x2 with seeds 0, 1, 2; for each estimator the reductions `by_delay`, their `mean` and `standard_error`, the `bias`, unbiased
    `squared_bias` and `noise` by delay. `sizes`: the reductions of RAC by instance, one seed each. `replicates`: the table again
    with seeds 3r, 3r+1, 3r+2, replicate r = 0 being the published one: mean, standard deviation and range of the reductions, the mean
    unbiased `squared_bias` with its `squared_bias_error`, and how often RAC's reduction is above that of wait-for-slow. Doubles, to 12
    digits: a machine may differ in the last of them. LimitError beyond 10,000 replicates.
    """
    count = whole(replicates, "replicates", least=2)
    if count > MAX_REPLICATES:
        raise LimitError("replicates", count, f"at most {MAX_REPLICATES}")
    benchmark = published_instance()
    target = reference_gradient(benchmark.mdp, benchmark.mdp.reward())
    drawn = []
    for r in range(count):
        seeds = [3 * r + seed for seed in SEEDS]
        drawn.append(sampled_table(benchmark, target, [table_seeds(delay, seeds) for delay in benchmark.delays]))
    return {
        "delays": list(benchmark.delays),
        "table": {name: _row_data(row) for name, row in drawn[0].items()},
        "sizes": {f"{states}x{actions}": _size_data(states, actions) for states, actions in sizes},
        "replicates": _replicate_data(drawn),
    }


def differences(first: Any, second: Any, place: str = "") -> list[str]:
    """The places where two such figures differ by more than 10^-9 of their size, or in form.

    >>> differences({"a": [1.0, 2.0]}, {"a": [1.0, 2.5]}), differences(sampled(), sampled())
    (['a[1]'], [])
    """
    if isinstance(first, dict) and isinstance(second, dict) and first.keys() == second.keys():
        pairs = [(first[key], second[key], f"{place}.{key}".removeprefix(".")) for key in first]
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        pairs = [(x, y, f"{place}[{i}]") for i, (x, y) in enumerate(zip(first, second, strict=True))]
    elif isinstance(first, (int, float)) and isinstance(second, (int, float)):
        return [] if isclose(first, second, rel_tol=1e-9, abs_tol=1e-12) else [place]
    else:
        return [place or "all"]
    return [found for x, y, where in pairs for found in differences(x, y, where)]


def _row_data(row: Row) -> dict[str, Any]:
    fields = ("reduction", "standard_error", "bias", "squared_bias", "noise")
    return {
        "mean": _short(row.mean),
        "standard_error": _short(row.standard_error),
        "by_delay": [{field: _short(getattr(x, field)) for field in fields} for x in row.by_delay],
    }


def _size_data(states: int, actions: int) -> dict[str, Any]:
    rows = []
    for k in range(INSTANCES):
        benchmark = published_instance(states, actions, k)
        target = reference_gradient(benchmark.mdp, benchmark.mdp.reward())
        seeds = [sweep_seeds(delay, states, actions, k) for delay in benchmark.delays]
        rows.append(sampled_table(benchmark, target, seeds)[RAC])
    return {
        "mean": _short(sum(row.mean for row in rows) / INSTANCES),
        "standard_error": _short(sqrt(sum(row.standard_error**2 for row in rows)) / INSTANCES),
        "by_instance": [_short(row.mean) for row in rows],
    }


def _replicate_data(drawn: Sequence[dict[str, Row]]) -> dict[str, Any]:
    data: dict[str, Any] = {"count": len(drawn)}
    for name in drawn[0]:
        means = np.array([rows[name].mean for rows in drawn])
        by_delay = np.array([[x.reduction for x in rows[name].by_delay] for rows in drawn])
        squares = np.array([[x.squared_bias for x in rows[name].by_delay] for rows in drawn])
        data[name] = {
            "mean": _short(means.mean()),
            "standard_deviation": _short(means.std(ddof=1)),
            "least": _short(means.min()),
            "greatest": _short(means.max()),
            "mean_by_delay": [_short(x) for x in by_delay.mean(0)],
            "standard_deviation_by_delay": [_short(x) for x in by_delay.std(axis=0, ddof=1)],
            "squared_bias_by_delay": [_short(x) for x in squares.mean(0)],
            "squared_bias_error_by_delay": [_short(x) for x in squares.std(axis=0, ddof=1) / sqrt(len(drawn))],
        }
    pairs = [(rows[RAC], rows[WAIT_FOR_SLOW]) for rows in drawn]
    data["rac_above_wait_for_slow"] = {
        "mean": sum(rac.mean > wait.mean for rac, wait in pairs),
        "by_delay": [
            sum(rac.by_delay[i].reduction > wait.by_delay[i].reduction for rac, wait in pairs) for i in range(len(pairs[0][0].by_delay))
        ],
    }
    return data


def _short(x: float) -> float:
    return float(f"{x:.{_SIGNIFICANT}g}")
