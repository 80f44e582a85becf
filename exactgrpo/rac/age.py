"""Age weights: what is left of a late residual by the time it arrives, the weights of least squared error, and matched mean delays."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from exactgrpo.errors import InputError, LimitError
from exactgrpo.field.inputs import ONE, ZERO
from exactgrpo.numbers.inputs import listed, whole
from exactgrpo.numbers.real import Real
from exactgrpo.rac.delay_law import DelayLaw, by_delay
from exactgrpo.rac.values import Value, is_zero, nonnegative, positive, settled, total, value

MAX_ENTRIES = 1_000_000
"""Weights of one table."""
_WEIGHT = "an age weight is not negative"

Rule = Callable[[int, int, DelayLaw | None, int | None], Value]


@dataclass(frozen=True, slots=True)
class AgeWeight:
    """An age weight w(step, delay) >= 0, by name and parameters; make one with the functions of this module.

    It is a function of a step and a delay, as a channel takes it. `inverse_arrival` and `mse_optimal` also depend on the law of the delay,
    the horizon and the offset, so they are asked through `weight`.

    >>> age = geometric("1/2")
    >>> age(0, 3), age.weight(7, 1), age
    (Real('1/8'), Real('1/2'), AgeWeight(name='geometric', parameters=(('ratio', Real('1/2')),)))
    """

    name: str
    parameters: tuple[tuple[str, Any], ...]
    rule: Rule = field(repr=False, compare=False)

    def __call__(self, step: int, delay: int) -> Value:
        """`weight` without a law."""
        return self.weight(step, delay)

    def weight(self, step: int, delay: int, *, law: DelayLaw | None = None, horizon: int | None = None, offset: int = 1) -> Value:
        """The weight of a residual of this step that arrives `delay` steps later and is injected at step + delay + offset.

        `horizon` is the number of steps at which something is injected, a drain included; None for no end. InputError if the weight needs
        a law and there is none.

        >>> law = DelayLaw.of({0: "1/2", 1: "1/3", "never": "1/6"})
        >>> [inverse_arrival().weight(step, 0, law=law, horizon=3, offset=0) for step in (1, 2)]
        [Real('6/5'), Real('2')]
        """
        return self.rule(step, delay, law, None if horizon is None else horizon - 1 - offset - step)


def none() -> AgeWeight:
    """w = 1 at every age.

    >>> none()(0, 5)
    Real('1')
    """
    return AgeWeight("none", (), lambda step, delay, law, within: ONE)


def exponential(tau: Any) -> AgeWeight:
    """w(d) = exp(-d/tau), tau > 0.

    Source: Retroactive Advantage Correction, arXiv:2606.27580.

    >>> exponential(1000)(0, 20)
    Real('exp(-1/50)')
    """
    scale = positive(tau, "tau", "tau > 0")
    return AgeWeight("exponential", (("tau", scale),), lambda step, delay, law, within: _exp(settled(Real(-delay) / scale)))


def geometric(ratio: Any) -> AgeWeight:
    """w(d) = ratio^d, ratio >= 0; with the discount as ratio this is what arXiv:2606.27580 calls Retrace-A.

    >>> geometric("9/10")(0, 2)
    Real('81/100')
    """
    base = nonnegative(ratio, "ratio", "ratio >= 0")
    return AgeWeight("geometric", (("ratio", base),), lambda step, delay, law, within: settled(base**delay))


def hyperbolic(rate: Any) -> AgeWeight:
    """w(d) = 1/(1 + rate d), rate >= 0.

    >>> hyperbolic("1/2")(0, 3)
    Real('2/5')
    """
    slope = nonnegative(rate, "rate", "rate >= 0")
    return AgeWeight("hyperbolic", (("rate", slope),), lambda step, delay, law, within: settled(1 / settled(1 + slope * Real(delay))))


def table(weights: Any) -> AgeWeight:
    """w(d) from a list (its entry d) or a table from delays, or w_t(d) from a list with such a row for each step.

    A step or delay that the table does not have is an InputError when it is asked for; at most 1,000,000 weights (LimitError).

    >>> table([1, "1/2"])(9, 1), table({0: 1, 20: "1/3"})(0, 20), table([[1, "1/2"], [2]])(1, 0)
    (Real('1/2'), Real('1/3'), Real('2'))
    """
    by_step = not isinstance(weights, Mapping) and any(isinstance(row, (list, tuple, Mapping)) for row in listed(weights, "weights"))
    given = listed(weights, "weights") if by_step else [weights]
    places = [f"weights[{i}]" if by_step else "weights" for i in range(len(given))]
    count = sum(len(row if isinstance(row, Mapping) else listed(row, place)) for row, place in zip(given, places, strict=True))
    if count > MAX_ENTRIES:
        raise LimitError("weights", f"{count} weights", f"at most {MAX_ENTRIES}")
    rows = [_row(row, place) for row, place in zip(given, places, strict=True)]

    def rule(step: int, delay: int, law: DelayLaw | None, within: int | None) -> Value:
        if by_step and not 0 <= step < len(rows):
            raise InputError("weights", f"step {step}", f"there are rows for the steps 0 to {len(rows) - 1}")
        row = rows[step if by_step else 0]
        if delay not in row:
            raise InputError(places[step if by_step else 0], f"delay {delay}", "there is no weight for this delay")
        return row[delay]

    return AgeWeight("table", (("weights", rows if by_step else rows[0]),), rule)


def inverse_arrival() -> AgeWeight:
    """w_t(d) = 1/P(a residual of step t lands), the same at every age; 0 where none can land.

    With gain 1 a row that can land has slack 0, and one that cannot keeps slack 1. Ours. Theorems: inverse_arrival_saturates,
    no_arrival_slack (Delay.v).

    >>> law = DelayLaw.of({1: "1/2", 2: "1/2"})
    >>> [inverse_arrival().weight(step, 1, law=law, horizon=4, offset=1) for step in range(4)]
    [Real('1'), Real('2'), Real('0'), Real('0')]
    """

    def inverse(law: DelayLaw, within: int) -> Value:
        lands = law.landed(within)
        return ZERO if is_zero(lands) else settled(1 / lands)

    by_row = _remembered(inverse)
    return AgeWeight("inverse-arrival", (), lambda step, delay, law, within: by_row("inverse-arrival", law, within))


def mse_optimal(*, second_moments: Mapping[Any, Any], mean: Any, samples: int) -> AgeWeight:
    """w_d = lambda/s_d with lambda = n m^2/(1 + (n - 1) m^2 H) and H = sum p_d/s_d over the delays that land: least mean squared error.

    `second_moments` gives s_d = E[rho_d^2 X^2 | D = d] > 0 for each delay d of the law, `mean` is m = E X, `samples` is n >= 1; numbers
    without symbols must have s_d >= m^2, since E[rho_d X | D = d] = m. The error is that of `mean_squared_error`, under hypotheses H1 to H3
    given the delay. Weights fall with the delay only where s_d grows. A row where nothing lands has weight 0. Ours.
    Theorem: best_age_weights (Ageing.v).

    >>> age = mse_optimal(second_moments={0: 1, 1: 2}, mean=1, samples=2)
    >>> [age.weight(0, d, law=DelayLaw.of({0: "1/2", 1: "1/2"})) for d in (0, 1)]
    [Real('8/7'), Real('4/7')]
    """
    moments, center, n = _moments(second_moments, mean, samples)
    square = settled(center**2)

    def gain(law: DelayLaw, within: int) -> Value:
        inverse = total(settled(mass / _moment(moments, d)) for d, mass in law.masses if d <= within)
        return settled(n * square / settled(1 + (n - 1) * square * inverse))

    by_row = _remembered(gain)

    def rule(step: int, delay: int, law: DelayLaw | None, within: int | None) -> Value:
        factor = by_row("mse-optimal", law, within)
        return ZERO if within is not None and delay > within else settled(factor / _moment(moments, delay))

    return AgeWeight("mse-optimal", (("second_moments", moments), ("mean", center), ("samples", n)), rule)


def mean_weight(law: DelayLaw, age: AgeWeight, *, step: int = 0, horizon: int | None = None, offset: int = 1) -> Value:
    """sum_d P(D = d) w(step, d) over the delays that land, all of them without a horizon; a dropped signal weighs nothing.

    One minus this is the slack of the row at gain 1, and one over it the gain that saturates it.

    >>> mean_weight(DelayLaw.of({0: "1/2", 1: "1/3", 2: "1/6"}), geometric("1/2"))
    Real('17/24')
    """
    return total(settled(mass * w) for mass, w, _ in _landing(law, age, step, horizon, offset))


def mean_squared_error(
    law: DelayLaw,
    age: AgeWeight,
    *,
    second_moments: Mapping[Any, Any],
    mean: Any,
    samples: int,
    step: int = 0,
    horizon: int | None = None,
    offset: int = 1,
) -> Value:
    """E(mean of n injected J_i - m)^2 = (sum p_d w_d^2 s_d - (m W)^2)/n + (m W - m)^2 with W = sum p_d w_d: variance and squared bias.

    Injected is J = w_D rho_D X where the residual lands, else 0, for independent samples under hypotheses H1 to H3 given the delay;
    arguments are those of `mse_optimal`. Stated as mse in Ageing.v.

    >>> half = DelayLaw.of({0: "1/2", 1: "1/2"})
    >>> given = {"second_moments": {0: 1, 1: 2}, "mean": 1, "samples": 2}
    >>> mean_squared_error(half, none(), **given), mean_squared_error(half, mse_optimal(**given), **given)
    (Real('1/4'), Real('1/7'))
    """
    moments, center, n = _moments(second_moments, mean, samples)
    landing = _landing(law, age, step, horizon, offset)
    first = settled(center * total(settled(mass * w) for mass, w, _ in landing))
    second = total(settled(mass * w**2 * _moment(moments, d)) for mass, w, d in landing)
    return settled(settled(second - first**2) / n + settled(first - center) ** 2)


@dataclass(frozen=True, slots=True)
class AgeingGap:
    """Mean weight against the weight of the mean delay: `gap` = `mean_weight` - `weight_of_mean`, and whether 0 <= gap <= `bound`."""

    mean_weight: Real
    weight_of_mean: Real
    gap: Real
    bound: Real
    holds: bool


def decide_ageing_gap(law: DelayLaw, tau: Any) -> AgeingGap:
    """Whether 0 <= E exp(-D/tau) - exp(-E D/tau) <= Var(D)/(2 tau^2), given that the signal arrives, with all numbers.

    Laws of one mean delay have this much room in their mean weight, so matching the mean does not match the bias. Masses and tau > 0 are
    numbers, not symbols; InputError if the signal never arrives. Ours. Theorem: matched_mean_delay (Ageing.v), so a decision that fails
    would be an error of ours.

    >>> seen = decide_ageing_gap(DelayLaw.of({0: "1/2", 2: "1/2"}), 1)
    >>> seen.gap == (1 - Real.of(-1).exp()) ** 2 / 2, seen.bound, seen.holds
    (True, Real('1/2'), True)
    """
    age, mean, variance = exponential(tau), law.mean(), law.variance()
    scale = age.parameters[0][1]
    average = settled(mean_weight(law, age) / law.landed(law.largest))
    if not all(isinstance(x, Real) for x in (scale, mean, average)):
        raise InputError("law", law, "masses and tau without symbols: a comparison is decided for numbers")
    central = (-mean / scale).exp()
    gap, bound = average - central, variance / (2 * scale**2)
    return AgeingGap(average, central, gap, bound, 0 <= gap <= bound)


def _exp(x: Value) -> Value:
    return x.exp() if isinstance(x, Real) else sys.modules["sympy"].exp(x)


def _row(row: Any, place: str) -> dict[int, Value]:
    entries = row if isinstance(row, Mapping) else dict(enumerate(listed(row, place)))
    return {delay: nonnegative(w, f"{place}.{delay}", _WEIGHT) for delay, w in by_delay(entries, place).items()}


def _remembered(compute: Callable[[DelayLaw, int], Value]) -> Callable[[str, DelayLaw | None, int | None], Value]:
    """The number of each row, computed once for each law."""
    known: dict[tuple[int, int], tuple[DelayLaw, Value]] = {}  # the law is kept, so that its id stays its own

    def by_row(name: str, law: DelayLaw | None, within: int | None) -> Value:
        if law is None:
            raise InputError("law", law, f"the law of the delay, which {name} weights depend on")
        steps = law.largest if within is None else min(within, law.largest)
        if (id(law), steps) not in known:
            known[id(law), steps] = law, compute(law, steps)
        return known[id(law), steps][1]

    return by_row


def _moments(second_moments: Any, mean: Any, samples: Any) -> tuple[dict[int, Value], Value, int]:
    if not isinstance(second_moments, Mapping):
        raise InputError("second_moments", second_moments, "a table from delays to E[rho^2 X^2]")
    center, n = value(mean, "mean"), whole(samples, "samples", least=1)
    moments: dict[int, Value] = {}
    for delay, moment in by_delay(second_moments, "second_moments").items():
        place = f"second_moments.{delay}"
        moments[delay] = positive(moment, place, "a second moment is positive")
        if isinstance(moments[delay], Real) and isinstance(center, Real) and moments[delay] < center**2:
            raise InputError(place, repr(moments[delay]), f"at least {center**2!r}, the squared mean")
    return moments, center, n


def _moment(moments: Mapping[int, Value], delay: int) -> Value:
    if delay not in moments:
        raise InputError("second_moments", f"delay {delay}", "a second moment for each delay of the law")
    return moments[delay]


def _landing(law: DelayLaw, age: AgeWeight, step: int, horizon: int | None, offset: int) -> list[tuple[Value, Value, int]]:
    """Mass, weight and delay of each delay that lands."""
    landing = [(mass, d) for d, mass in law.masses if horizon is None or step + d + offset < horizon]
    return [(mass, age.weight(step, d, law=law, horizon=horizon, offset=offset), d) for mass, d in landing]
