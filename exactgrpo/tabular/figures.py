"""The figures of the published benchmark: as printed, as its own protocol samples them, and exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from exactgrpo.errors import InputError
from exactgrpo.field.inputs import sum_of
from exactgrpo.numbers.real import Real
from exactgrpo.tabular.estimators import ESTIMATORS, Cost, Reduction, reductions
from exactgrpo.tabular.policy_bias import policy_bias
from exactgrpo.tabular.published import INSTANCES, SIZES, published_instance
from exactgrpo.tabular.sampled import RAC, WAIT_FOR_SLOW, differences, sampled

SOURCE = "Retroactive Advantage Correction, arXiv:2606.27580"
PUBLISHED = {RAC: "47.9", WAIT_FOR_SLOW: "27.1", "retrace_a": "1.5"}
PUBLISHED_COST = "26"
PUBLISHED_SIZES = {(3, 2): "17.87", (20, 8): "4.65"}


@dataclass(frozen=True, slots=True)
class Figure:
    """A number as the source prints it (None: it does not), by its protocol with a standard error (None: not sampled), and exactly."""

    name: str
    published: str | None
    sampled: float | None
    standard_error: float | None
    exact: Real


@dataclass(frozen=True, slots=True)
class Ranking:
    """In how many of `count` samples of the published size RAC has a larger reduction than wait-for-slow, and whether it does exactly.

    In the mean over the delays, and for each delay.
    """

    count: int
    delays: tuple[int, ...]
    sampled_mean: int
    sampled_by_delay: tuple[int, ...]
    exact_mean: bool
    exact_by_delay: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Quality:
    """What an estimator costs, and its exact mean of ratios. `is_best` at a cost: no other is as good and as cheap, and better in one."""

    estimator: str
    cost: Cost
    reduction: Real
    is_best_stop_and_wait: bool
    is_best_pipelined: bool


def figures(draws: Mapping[str, Any] | None = None) -> list[Figure]:
    """Each published figure beside its sample and its exact value; the samples are the bundled ones, or `draws` from `resample`.

    Reductions are the mean over the delays of bias(naive)/bias(estimator), as published; for a size, the mean over its five instances.
    The exact values are computed, not stored.

    >>> [(figure.name, figure.published, round(figure.sampled, 2), figure.exact.digits(6)) for figure in figures()[:2]]
    [('rac, 3x2', '47.9', 47.88, '60.1629'), ('wait_for_slow, 3x2', '27.1', 27.15, '54.8821')]
    """
    found = sampled() if draws is None else draws
    exact = _exact(3, 2, 0)
    rows = [
        Figure(f"{name}, 3x2", printed, found["table"][name]["mean"], found["table"][name]["standard_error"], _mean(exact[name]))
        for name, printed in PUBLISHED.items()
    ]
    rows.append(Figure("wall clock of wait_for_slow", PUBLISHED_COST, None, None, Real(exact[WAIT_FOR_SLOW].cost.stop_and_wait)))
    for states, actions in SIZES:
        mean = sum_of([_mean(_exact(states, actions, k)[RAC]) for k in range(INSTANCES)]) / INSTANCES
        drawn = found["sizes"].get(f"{states}x{actions}", {})
        name = f"rac, mean of {INSTANCES} of size {states}x{actions}"
        rows.append(Figure(name, PUBLISHED_SIZES.get((states, actions)), drawn.get("mean"), drawn.get("standard_error"), mean))
    return rows


def ranking(draws: Mapping[str, Any] | None = None) -> Ranking:
    """How often the sampled order of RAC and wait-for-slow is the exact one; samples as for `figures`.

    >>> found = ranking()
    >>> found.count, found.sampled_by_delay, found.exact_by_delay
    (200, (154, 123, 60), (True, True, False))
    """
    found = (sampled() if draws is None else draws)["replicates"]
    above = found["rac_above_wait_for_slow"]
    exact = _exact(3, 2, 0)
    rac, waiting = exact[RAC], exact[WAIT_FOR_SLOW]
    by_delay = tuple(a is not None and b is not None and a > b for a, b in zip(rac.by_delay, waiting.by_delay, strict=True))
    delays = tuple(published_instance().delays)
    return Ranking(found["count"], delays, above["mean"], tuple(above["by_delay"]), _mean(rac) > _mean(waiting), by_delay)


def qualities() -> list[Quality]:
    """Cost beside exact reduction on the published instance, and which estimators are not beaten in both at once.

    >>> [(q.estimator, q.cost.stop_and_wait) for q in qualities() if q.is_best_stop_and_wait]
    [('rac', Fraction(1, 1))]
    """
    exact = {name: (found.cost, _mean(found)) for name, found in _exact(3, 2, 0).items()}

    def is_best(name: str, price: str) -> bool:
        own = _point(exact[name], price)
        others = [_point(x, price) for other, x in exact.items() if other != name]
        return not any(a <= own[0] and b >= own[1] and (a < own[0] or b > own[1]) for a, b in others)

    return [Quality(name, *exact[name], is_best(name, "stop_and_wait"), is_best(name, "pipelined")) for name in ESTIMATORS]


def _point(x: tuple[Cost, Real], price: str) -> tuple[Fraction, Real]:
    return getattr(x[0], price), x[1]


@cache
def _exact(states: int, actions: int, instance: int) -> dict[str, Reduction]:
    benchmark = published_instance(states, actions, instance)
    mdp = benchmark.mdp
    bias = policy_bias(mdp, ("slow",)).in_units_of_naive()
    return reductions(bias, benchmark.delays, discount=mdp.discount, time_constant=benchmark.time_constant, steps=mdp.horizon)


def _mean(reduction: Reduction) -> Real:
    if reduction.mean_of_ratios is None:
        raise InputError("reduction", "no bias at some delay", "every figure of the benchmark is of an estimator that has a bias")
    return reduction.mean_of_ratios


@dataclass(frozen=True, slots=True)
class PublishedFigures:
    """All of it; `changed` are the places where new samples are not the bundled ones, None without new samples."""

    figures: list[Figure]
    ranking: Ranking
    qualities: list[Quality]
    changed: list[str] | None


def published_figures(draws: Mapping[str, Any] | None = None) -> PublishedFigures:
    """The whole table, from the bundled samples, or from `draws` of `resample`, which are held against those."""
    return PublishedFigures(figures(draws), ranking(draws), qualities(), None if draws is None else differences(sampled(), dict(draws)))
