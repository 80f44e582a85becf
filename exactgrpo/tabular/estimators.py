"""The estimators of the tabular benchmark: the weight that each gives to a late reward, and what it costs in wall clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Literal

from exactgrpo.errors import InputError
from exactgrpo.field.inputs import ONE, ZERO, sum_of
from exactgrpo.field.ratios import truncated_ratio
from exactgrpo.numbers.inputs import listed, whole
from exactgrpo.numbers.real import Real
from exactgrpo.rac.age import exponential, geometric
from exactgrpo.tabular.inputs import delays_in_steps
from exactgrpo.tabular.policy_bias import PolicyBias

Delays = tuple[int, ...]
"""One delay for each late channel."""


@dataclass(frozen=True, slots=True)
class Estimator:
    """Every estimator is g_fast + w g_slow: `weight`(delay, discount, tau) is its w. `waits`: it needs the late reward for its own update.

    `stops`: and nothing else is done meanwhile.
    """

    weight: Callable[[int, Fraction, Fraction], Real]
    waits: bool = False
    stops: bool = False


ESTIMATORS: Mapping[str, Estimator] = MappingProxyType(
    {
        "naive": Estimator(lambda delay, discount, tau: ZERO),
        "rac": Estimator(lambda delay, discount, tau: exponential(tau)(0, delay)),
        "wait_for_slow": Estimator(lambda delay, discount, tau: ONE, waits=True, stops=True),
        "retrace_a": Estimator(lambda delay, discount, tau: geometric(discount)(0, delay)),
        "vtrace": Estimator(lambda delay, discount, tau: truncated_ratio(ONE, ceiling=1), waits=True),
    }
)
"""naive drops late rewards, w = 0; rac ages them, w = exp(-delay/tau); retrace_a is w = discount^delay, which is not Retrace; wait_for_slow
has w = 1. vtrace (our reading: the source has no such row): actors go on, the learner takes each trajectory once its late rewards are there
and weights it by min(1, pi/mu). The policy of the benchmark is fixed, so that ratio is one and w = 1: V-trace corrects for old policies,
and has nothing to say of late rewards. Source: Retroactive Advantage Correction, arXiv:2606.27580."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Wall clock as a multiple of naive, if an update takes one step.

    `stop_and_wait` if updates stop until late rewards are there, 1 + mean delay; `pipelined` if they go on and only the last of N updates
    have to be waited for, (N + mean delay)/N. Both are 1 for an estimator that does not wait, and equal for one that never stops.
    """

    stop_and_wait: Fraction
    pipelined: Fraction


@dataclass(frozen=True, slots=True)
class Reduction:
    """Bias of naive over bias of an estimator. A ratio is None where the estimator has no bias: it would be infinite, or 0/0.

    `bias` and `by_delay` have one number for each entry of the delays; `mean_of_ratios` is the mean of `by_delay`, as the source
    has it, `ratio_of_means` the mean bias of naive over the mean bias of the estimator.
    """

    bias: tuple[Real, ...]
    by_delay: tuple[Real | None, ...]
    mean_of_ratios: Real | None
    ratio_of_means: Real | None
    cost: Cost


def weights(estimator: str, delays: Sequence[int], *, discount: Any, time_constant: Any = 1000) -> tuple[Real, ...]:
    """The weight of each late channel with its own delay.

    >>> [weights(name, [5], discount="9/10")[0] for name in ESTIMATORS]
    [Real('0'), Real('exp(-1/200)'), Real('1'), Real('59049/100000'), Real('1')]
    """
    if estimator not in ESTIMATORS:
        raise InputError("estimator", estimator, f"one of {', '.join(ESTIMATORS)}")
    rule = ESTIMATORS[estimator].weight
    return tuple(rule(delay, discount, time_constant) for delay in delays_in_steps(delays, "delays"))


def reductions(
    bias: PolicyBias, delays: Sequence[int | Sequence[int]], *, discount: Any, time_constant: Any = 1000, steps: int
) -> dict[str, Reduction]:
    """The reduction of each estimator over a list of delays, whose entries count equally.

    An entry is a delay, the same for all late channels, or a delay for each of them. `steps` is the number of updates over which a
    pipeline is filled. Costs take the longest delay of an entry.

    >>> bias = PolicyBias(("slow",), ((Fraction(1), Fraction(-1)), (Fraction(-1), Fraction(1))))
    >>> found = reductions(bias, [1, 2], discount="1/2", steps=10)
    >>> found["retrace_a"].by_delay, found["retrace_a"].mean_of_ratios, found["retrace_a"].ratio_of_means, found["vtrace"].by_delay
    ((Real('2'), Real('4/3')), Real('5/3'), Real('8/5'), (None, None))
    >>> found["wait_for_slow"].cost, found["rac"].by_delay[0]
    (Cost(stop_and_wait=Fraction(5, 2), pipelined=Fraction(23, 20)), Real('(exp(1/1000))/(-1 + exp(1/1000))'))
    """
    grid = [_entry(entry, f"delays[{i}]", len(bias.late)) for i, entry in enumerate(listed(delays, "delays"))]
    if not grid:
        raise InputError("delays", "an empty list", "there is at least one delay")
    updates = whole(steps, "steps", least=1)
    dropped = bias.norm([ZERO] * len(bias.late))
    has_bias = dropped != 0
    found = {}
    for name in ESTIMATORS:
        norms = tuple(bias.norm(weights(name, entry, discount=discount, time_constant=time_constant)) for entry in grid)
        by_delay = tuple(None if norm == 0 else dropped / norm for norm in norms)
        ratios = [ratio for ratio in by_delay if ratio is not None]
        mean = sum_of(ratios) / len(grid) if len(ratios) == len(grid) else None
        shares = [norm / dropped for norm in norms] if has_bias else []
        of_means = (len(grid) / sum_of(shares) if has_bias else ZERO) if ratios else None
        found[name] = Reduction(norms, by_delay, mean, of_means, cost(name, grid, updates))
    return found


def cost(estimator: str, delays: Sequence[Delays], steps: int) -> Cost:
    """The wall clock of an estimator over a list of delays, of which the longest of each entry counts.

    >>> cost("wait_for_slow", [(5,), (20,), (50,)], 100), cost("vtrace", [(5,), (20,), (50,)], 100)
    (Cost(stop_and_wait=Fraction(26, 1), pipelined=Fraction(5, 4)), Cost(stop_and_wait=Fraction(5, 4), pipelined=Fraction(5, 4)))
    """
    kind, mean = ESTIMATORS[estimator], Fraction(sum(max(entry) for entry in delays), len(delays))
    pipelined = 1 + mean / steps if kind.waits else Fraction(1)
    return Cost(1 + mean if kind.stops else pipelined, pipelined)


def decide_smaller_bias(
    bias: PolicyBias, first: str, second: str, delays: Sequence[int], *, discount: Any, time_constant: Any = 1000
) -> Literal["first", "second", "equal"]:
    """Which of two estimators has the smaller bias at these delays, one for each late channel: by the sign of a difference of squares.

    Rationals and exponentials of rationals are decided unconditionally (Lindemann and Weierstrass).

    >>> bias = PolicyBias(("slow",), ((Fraction(1), Fraction(-1)), (Fraction(-1), Fraction(1))))
    >>> decide_smaller_bias(bias, "rac", "wait_for_slow", [5], discount="9/10"), decide_smaller_bias(bias, "rac", "naive", [5], discount=0)
    ('second', 'first')
    """
    one, two = (bias.squared(weights(name, delays, discount=discount, time_constant=time_constant)) for name in (first, second))
    sign = (one - two).sign().value
    return "first" if sign < 0 else "second" if sign > 0 else "equal"


def break_even_delay(bias: PolicyBias, *, time_constant: Any = 1000) -> Real | None:
    """The delay up to which RAC has a smaller bias than waiting, with one late channel; None if it has so at every delay > 0, or at none.

    The bias is a parabola in w with its least value at w*, so exp(-delay/tau) < 1 is better than 1 iff it is above 2 w* - 1: iff the delay
    is below -tau log(2 w* - 1). At every delay if w* <= 1/2, at none if w* >= 1. Ours.

    >>> break_even_delay(PolicyBias(("slow",), ((Fraction(1), Fraction(-3, 4)), (Fraction(-3, 4), Fraction(1)))))
    Real('1000*log(2)')
    """
    best = bias.best_weights()
    if len(bias.late) > 1:
        raise InputError("late", f"{len(bias.late)} channels", "one late channel")
    if best is None or not Fraction(1, 2) < best[0] < 1:
        return None
    return -Real.of(time_constant, "time_constant") * Real(2 * best[0] - 1).log()


def _entry(entry: Any, place: str, count: int) -> Delays:
    delays = delays_in_steps([entry] * count if isinstance(entry, int) else entry, place)
    if len(delays) != count:
        raise InputError(place, f"{len(delays)} delays", f"one delay for each of the {count} late channels")
    return delays
