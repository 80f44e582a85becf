"""The tabular benchmark of one instance, exactly: all estimators, both readings of "K = 2", limits, and RAC against waiting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement

from exactgrpo.errors import LimitError
from exactgrpo.numbers.real import Real
from exactgrpo.tabular.estimators import Delays, Reduction, break_even_delay, decide_smaller_bias, reductions
from exactgrpo.tabular.file import FAST, SLOW, Benchmark
from exactgrpo.tabular.gradients import (
    average_gradient,
    discounted_gradient,
    estimator_gradients,
    finite_gradient,
    reference_gradient,
)
from exactgrpo.tabular.mdp import Table
from exactgrpo.tabular.policy_bias import PolicyBias, inner_products, limit_bias, policy_bias

HORIZONS = (10, 50, 200)
RAC, WAITING = "rac", "wait_for_slow"
_SIDES = {"first": RAC, "second": WAITING, "equal": "equal"}


@dataclass(frozen=True, slots=True)
class Decision:
    """Which of RAC and wait-for-slow has the smaller bias at a horizon and a delay: "rac", "wait_for_slow" or "equal"."""

    horizon: int
    delay: int
    smaller: str


@dataclass(frozen=True, slots=True)
class Direction:
    """A gradient that might be wanted: its norm, and the cosine of its angle with the benchmark's target (None if one of them is 0)."""

    name: str
    norm: Real
    cosine: Real | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The exact benchmark of one instance.

    `reductions` has the slow channel late, as published; `limits` is that as the horizon grows, where C4 of the source applies and each
    reduction is 1/|1 - w|. `both_late` is the other reading of "K = 2": both channels late with delays of their own, `pairs`. `best_weight`
    has the least bias of all weights (None if the slow reward has no gradient); RAC has a smaller bias than waiting at the delays below
    `break_even` (None: at all delays, or at none).
    """

    benchmark: Benchmark
    bias: PolicyBias
    reductions: dict[str, Reduction]
    limits: dict[str, Reduction]
    pairs: tuple[Delays, ...]
    both_late: dict[str, Reduction]
    best_weight: Fraction | None
    break_even: Real | None
    decisions: tuple[Decision, ...]
    directions: tuple[Direction, ...]

    @property
    def bias_of_waiting(self) -> Real:
        """The bias at weight one: what the horizon and the target leave. Where it is 0, each reduction is one over the slack, 1/|1 - w|.

        That is C4 of the source: bias = slack x naive bias needs estimators whose sum of fast and slow gradients is the target.
        """
        return self.bias.norm([1])


def compare(benchmark: Benchmark, *, progress: Callable[[str], None] = lambda text: None) -> Comparison:
    """The exact benchmark of an instance. InputError if its stationary law is not unique, LimitError if it would take too long.

    Horizons of `HORIZONS` that would take too long are left out of the decisions. A pipeline is taken as filled over as many updates as a
    trajectory has steps.

    >>> from exactgrpo.tabular.file import load_benchmark
    >>> found = compare(load_benchmark("3x2"))
    >>> [ratio.digits(3) for ratio in found.reductions["rac"].by_delay], found.reductions["rac"].mean_of_ratios.digits(12)
    (['69.3', '83.7', '27.5'], '60.1628768980')
    """
    mdp, delays = benchmark.mdp, benchmark.delays
    options = {"discount": mdp.discount, "time_constant": benchmark.time_constant}
    fast, slow = mdp.reward(FAST), mdp.reward(SLOW)
    progress("target")
    target = reference_gradient(mdp, mdp.reward())
    progress(f"gradients at horizon {mdp.horizon}")
    on_time, late = estimator_gradients(mdp, [fast, slow])
    bias = PolicyBias.of(on_time, [(SLOW, late)], target)
    both = PolicyBias.of(_nothing(on_time), [(FAST, on_time), (SLOW, late)], target)
    pairs = tuple(combinations_with_replacement(sorted(delays), 2))
    by_horizon = {mdp.horizon: bias}
    for horizon in HORIZONS:
        progress(f"gradients at horizon {horizon}")
        if horizon not in by_horizon:
            try:
                by_horizon[horizon] = policy_bias(mdp.with_horizon(horizon), (SLOW,), target=target)
            except LimitError:
                continue
    progress("comparisons")
    decisions = tuple(
        Decision(horizon, delay, _SIDES[decide_smaller_bias(by_horizon[horizon], RAC, WAITING, [delay], **options)])
        for horizon in sorted(by_horizon)
        for delay in delays
    )
    best = bias.best_weights()
    return Comparison(
        benchmark,
        bias,
        reductions(bias, delays, steps=mdp.horizon, **options),
        reductions(limit_bias(mdp, (SLOW,)).in_units_of_naive(), delays, steps=mdp.horizon, **options),
        pairs,
        reductions(both, pairs, steps=mdp.horizon, **options),
        None if best is None else best[0],
        break_even_delay(bias, time_constant=benchmark.time_constant),
        decisions,
        _directions(benchmark, target),
    )


def _directions(benchmark: Benchmark, target: Table) -> tuple[Direction, ...]:
    mdp = benchmark.mdp
    reward = mdp.reward()
    gradients = {
        "target of the benchmark": target,
        "discounted return": discounted_gradient(mdp, reward),
        "return within the horizon": finite_gradient(mdp, reward),
        "average reward": average_gradient(mdp, reward),
    }
    products = inner_products(list(gradients.values()))
    norms = [Real(row[i]).sqrt() for i, row in enumerate(products)]
    return tuple(
        Direction(name, norm, None if 0 in (products[0][0], products[i][i]) else Real(products[0][i]) / (norms[0] * norm))
        for i, (name, norm) in enumerate(zip(gradients, norms, strict=True))
    )


def _nothing(gradient: Table) -> Table:
    return tuple((Fraction(0),) * len(row) for row in gradient)
