"""Claims, true and false, about kernels of late rewards: truncation, gains, age weights, matched delays, naive and cumulative bias."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exactgrpo.claims.catalogue.variables import entries, epsilon, law, nonnegative_number, number, numbers, positive_number, whole
from exactgrpo.claims.claim import Claim
from exactgrpo.field.inputs import sum_of
from exactgrpo.numbers.real import Real
from exactgrpo.rac import age
from exactgrpo.rac.bias import Bias, expected_bias
from exactgrpo.rac.delay_law import DelayLaw
from exactgrpo.rac.kernel import Channel, Kernel
from exactgrpo.rac.outcomes import Model, Outcome

RAC = "Retroactive Advantage Correction, arXiv:2606.27580"
LAW = law(4)
"""Masses of the delays 0, 1 and 2, and of never."""
SIZES = {"horizon": [1, 2, 3, 4], "offset": [0, 1]}


def _delay(masses: Sequence[Any]) -> DelayLaw:
    return DelayLaw.of({**dict(enumerate(masses[:-1])), "never": masses[-1]})


def _kernel(masses: Sequence[Any], horizon: Any, offset: Any, weights: Sequence[Any] | None = None, gain: Any = 1) -> Kernel:
    weight = age.none() if weights is None else age.table(list(weights))
    return Kernel.of([Channel.of("c", _delay(masses), weight=weight, gain=gain)], horizon=int(horizon), offset=int(offset))


def _slacks(kernel: Kernel) -> list[Any]:
    return [kernel.slack(0, t) for t in range(kernel.horizon)]


def _overhang(masses: Sequence[Any], horizon: Any, offset: Any) -> Real:
    lost = [Real.of(p * min(d + int(offset), int(horizon))) for d, p in enumerate(masses[:-1])]
    return sum_of([*lost, Real.of(masses[-1] * int(horizon))])


def _inverse_arrival_saturates(masses: Sequence[Any], horizon: Any, offset: Any) -> bool:
    channel = Channel.of("c", _delay(masses), weight=age.inverse_arrival())
    kernel = Kernel.of([channel], horizon=int(horizon), offset=int(offset))
    return all(kernel.slack(0, t) == (1 if kernel.landed(0, t) == 0 else 0) for t in range(kernel.horizon))


def _mean_weight(masses: Sequence[Any], weights: Sequence[Any]) -> Real:
    return sum_of([Real.of(p * w) for p, w in zip(masses, weights, strict=True)])


def _gained(masses: Sequence[Any], weights: Sequence[Any], horizon: Any) -> list[Any]:
    """The slacks under the gain 1/E w(D), offset 0."""
    return _slacks(_kernel(masses, horizon, 0, weights, 1 / _mean_weight(masses[:-1], weights)))


def _estimated(masses: Sequence[Any], estimate: Sequence[Any], weights: Sequence[Any]) -> Real:
    """|slack| under the true law of a row where everything lands, the gain being that of the estimate."""
    return abs(1 - _mean_weight(masses, weights) / _mean_weight(estimate, weights))


def _estimation_bound(masses: Sequence[Any], estimate: Sequence[Any], weights: Sequence[Any]) -> Any:
    distance = sum_of([abs(Real.of(p - q)) for p, q in zip(masses, estimate, strict=True)]) / 2
    return distance * (max(weights) - min(weights)) / _mean_weight(estimate, weights)


def _on_policy(row_sums: Sequence[Sequence[Any]], means: Sequence[Sequence[Any]]) -> Bias:
    """The bias of channels (rows) over steps (columns), without delay and on policy; entries of the table are the row sums."""
    names = [f"c{k}" for k in range(len(row_sums))]
    weights = [age.table([[w] for w in sums]) for sums in row_sums]
    channels = [Channel.of(name, {0: 1}, weight=weight) for name, weight in zip(names, weights, strict=True)]
    horizon = len(row_sums[0])
    steps = [
        [Outcome.of(1, channels, residual={name: row[t] for name, row in zip(names, means, strict=True)})] for t in range(horizon)
    ]
    return expected_bias(Model.of(Kernel.of(channels, horizon=horizon, offset=0), steps))


def _late_by_one(means: Sequence[Any]) -> Bias:
    channel = Channel.of("c", {1: 1})
    steps = [[Outcome.of(1, [channel], residual={"c": x})] for x in means]
    return expected_bias(Model.of(Kernel.of([channel], horizon=len(means), offset=0), steps))


def _naive(means: Sequence[Any], delay: Any) -> Any:
    """|naive bias|: nothing is injected, whatever the delay."""
    channel = Channel.of("c", {int(delay): 1}, gain=0)
    steps = [[Outcome.of(1, [channel], residual={"c": x})] for x in means]
    bias = expected_bias(Model.of(Kernel.of([channel], horizon=len(means), offset=0), steps))
    return abs(bias.cumulative)


def _lost(mean: Any, delay: Any, horizon: Any) -> Any:
    """|bias| of a residual with weight one whose injection the horizon cuts off."""
    channel = Channel.of("c", {int(delay): 1})
    outcome = Outcome.of(1, [channel], residual={"c": mean})
    return abs(expected_bias(Model.of(Kernel.of([channel], horizon=int(horizon), offset=0), [outcome])).cumulative)


def _error(masses: Sequence[Any], weights: Sequence[Any] | None, excess: Sequence[Any], mean: Any, samples: Any) -> Any:
    """The mean squared error of weights, or of the best ones; E[rho_d^2 X^2] = mean^2 + excess."""
    given = {"second_moments": {d: mean * mean + x for d, x in enumerate(excess)}, "mean": mean, "samples": int(samples)}
    best = age.mse_optimal(**given) if weights is None else age.table(list(weights))
    return age.mean_squared_error(DelayLaw.of(dict(enumerate(masses))), best, **given)


SPREAD = {"masses": law(2), "excess": entries(positive_number(), 2), "mean": number(), "samples": [1, 2, 5]}

CLAIMS = (
    Claim(
        "slack-of-truncation",
        "At weight one the slacks sum to the mean number of steps by which the delay passes the horizon.",
        {"masses": LAW, **SIZES},
        left=lambda masses, horizon, offset: sum_of(_slacks(_kernel(masses, horizon, offset))),
        right=_overhang,
        latex=r"\sum_t \mathrm{slack}_t = E \min(D + \iota, N)",
        theorem="truncation_sum (Delay.v)",
    ),
    Claim(
        "last-row-is-lost",
        "Injected one step after arrival, the residual of the last step is always lost.",
        {"masses": LAW, "weights": entries(nonnegative_number(), 3), "gain": nonnegative_number(), "horizon": [1, 2, 3, 4]},
        left=lambda masses, weights, gain, horizon: _slacks(_kernel(masses, horizon, 1, weights, gain))[-1],
        right=1,
        source=RAC + ": injection at arrival + 1",
        theorem="last_row_slack (Delay.v)",
    ),
    Claim(
        "inverse-arrival-saturates",
        "Weights 1/P(lands) give slack 0 where arrival is possible and leave slack 1 where it is not.",
        {"masses": LAW, **SIZES},
        conclusion=_inverse_arrival_saturates,
        latex=r"w_t(d) = 1/P(D \le N - 1 - t - \iota)",
        theorem="inverse_arrival_saturates (Delay.v)",
    ),
    Claim(
        "ageing-never-saturates",
        "Weights below one never saturate a row without a gain.",
        {"masses": LAW, "weights": entries(epsilon(), 3), **SIZES},
        conclusion=lambda masses, weights, horizon, offset: all(s > 0 for s in _slacks(_kernel(masses, horizon, offset, weights))),
        latex=r"w < 1 \Rightarrow \mathrm{slack} > 0",
        theorem="small_weights_never_saturate (Delay.v)",
    ),
    Claim(
        "gain-of-the-mean-weight-saturates",
        "The gain 1/E w(D) makes every row sum to one.",
        {"masses": LAW, "weights": entries(positive_number(), 3), "horizon": [1, 2, 3, 4]},
        left=_gained,
        right=lambda horizon: [0] * int(horizon),
        hypotheses={"a signal can arrive": lambda masses: masses[-1] != 1},
        source=RAC,
        latex=r"\alpha = 1/E w(D)",
        expected=False,
    ),
    Claim(
        "estimated-law-leaves-little-slack",
        "With the gain of an estimated law, the slack is at most TV (max w - min w)/E w under the estimate.",
        {"masses": law(3), "estimate": law(3), "weights": entries(positive_number(), 3)},
        left=_estimated,
        right=_estimation_bound,
        relation="<=",
        theorem="estimated_law_slack (Delay.v)",
    ),
    Claim(
        "common-slack-scales-the-naive-bias",
        "With one slack for all channels and steps, on policy, the bias is the slack times the naive bias.",
        {"row_sum": nonnegative_number(), "means": entries(numbers(2), 2)},
        left=lambda row_sum, means: _on_policy([[row_sum] * 2] * 2, means).cumulative,
        right=lambda row_sum, means: (1 - row_sum) * _on_policy([[row_sum] * 2] * 2, means).naive,
        source=RAC,
        latex=r"\mathrm{bias} = \eta\, \mathrm{bias}_{\text{naive}}",
        theorem="bias_uniform_slack (Kernel.v)",
    ),
    Claim(
        "correction-never-worse-than-naive",
        "On policy, correcting never leaves more bias than leaving out the late rewards.",
        {"row_sums": entries(nonnegative_number(), 2), "means": numbers(2)},
        left=lambda row_sums, means: abs(_on_policy([[w] for w in row_sums], [[x] for x in means]).cumulative),
        right=lambda row_sums, means: abs(_on_policy([[w] for w in row_sums], [[x] for x in means]).naive),
        relation="<=",
        source=RAC,
        expected=False,
    ),
    Claim(
        "unbiased-only-if-saturated",
        "On policy, a cumulative bias of zero means that every row sums to one.",
        {"row_sums": entries(nonnegative_number(), 2), "means": numbers(2)},
        conclusion=lambda row_sums, means: _on_policy([row_sums], [means]).cumulative != 0 or all(w == 1 for w in row_sums),
        hypotheses={"every mean residual differs from zero": lambda means: all(x != 0 for x in means)},
        source=RAC,
        expected=False,
    ),
    Claim(
        "cumulative-bias-shows-the-steps",
        "Where the cumulative bias is zero, each step has the correction that it is owed.",
        {"means": numbers(2)},
        conclusion=lambda means: _late_by_one(means).cumulative != 0 or all(x == 0 for x in _late_by_one(means).by_step),
        source="ours: delay 1",
        expected=False,
    ),
    Claim(
        "naive-bias-grows-with-the-delay",
        "The naive bias grows when signals arrive one step later.",
        {"means": numbers(2), "delay": whole(0, 4)},
        left=lambda means, delay: _naive(means, delay + 1),
        right=lambda means, delay: _naive(means, delay),
        relation=">",
        hypotheses={"there is a naive bias": lambda means: sum(means) != 0},
        source=RAC + ": said to grow linearly in the delay",
        expected=False,
    ),
    Claim(
        "truncation-linear-in-the-delay",
        "Twice the delay loses twice as much at the end of the horizon.",
        {"mean": number(), "delay": whole(0, 3), "horizon": [1, 2, 3, 4]},
        left=lambda mean, delay, horizon: _lost(mean, 2 * delay, horizon),
        right=lambda mean, delay, horizon: 2 * _lost(mean, delay, horizon),
        source=RAC + ": said to grow linearly in the delay",
        expected=False,
    ),
    Claim(
        "mean-ageing-within-its-bound",
        "The mean of exp(-D/tau) exceeds exp(-E D/tau) by at most Var(D)/(2 tau^2), and is never below it.",
        {"masses": law(3), "tau": positive_number()},
        conclusion=lambda masses, tau: age.decide_ageing_gap(DelayLaw.of(dict(enumerate(masses))), tau).holds,
        latex=r"0 \le E e^{-D/\tau} - e^{-E D/\tau} \le \mathrm{Var}(D)/(2 \tau^2)",
        theorem="matched_mean_delay (Ageing.v)",
    ),
    Claim(
        "matched-mean-delay-is-matched-weight",
        "Laws of one mean delay lose the same to ageing: the mean weight is the weight of the mean delay.",
        {"masses": law(3), "tau": positive_number()},
        conclusion=lambda masses, tau: age.decide_ageing_gap(DelayLaw.of(dict(enumerate(masses))), tau).gap == 0,
        source=RAC + ": robustness over delay laws of one mean",
        latex=r"E e^{-D/\tau} = e^{-E D/\tau}",
        expected=False,
    ),
    Claim(
        "best-age-weights",
        "No age weights have a smaller mean squared error than lambda/s_d.",
        {**SPREAD, "weights": entries(nonnegative_number(), 2)},
        left=lambda masses, excess, mean, samples: _error(masses, None, excess, mean, samples),
        right=_error,
        relation="<=",
        theorem="best_age_weights (Ageing.v)",
    ),
    Claim(
        "ageing-always-pays",
        "Halving the weight of what is late never makes the mean squared error larger.",
        SPREAD,
        left=lambda masses, excess, mean, samples: _error(masses, [1, Real.of("1/2")], excess, mean, samples),
        right=lambda masses, excess, mean, samples: _error(masses, [1, 1], excess, mean, samples),
        relation="<=",
        source="ours: only where the second moment grows with the delay",
        expected=False,
    ),
)
