"""The exact tabular benchmark as JSON data and as tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from exactgrpo.numbers.real import Real
from exactgrpo.report.numbers import SHORT, Format
from exactgrpo.report.tables import plain_table
from exactgrpo.tabular.comparison import Comparison
from exactgrpo.tabular.estimators import Reduction

NO_BIAS = "no bias"
Shortened = Callable[[Real | None], str]


def benchmark_data(comparison: Comparison, *, digits: int) -> dict[str, Any]:
    """JSON data; numbers as everywhere. A reduction is null where the estimator has no bias, so that it would be infinite or 0/0."""
    mdp, form = comparison.benchmark.mdp, Format(digits)
    number = _optional(form.data)
    return {
        "states": mdp.states,
        "actions": mdp.actions,
        "discount": str(mdp.discount),
        "horizon": mdp.horizon,
        "delays": list(comparison.benchmark.delays),
        "age_time_constant": str(comparison.benchmark.time_constant),
        "reductions": _reductions_data(comparison.reductions, form),
        "bias": {name: [form.data(x) for x in found.bias] for name, found in comparison.reductions.items()},
        "limits": {name: [number(x) for x in found.by_delay] for name, found in comparison.limits.items()},
        "is_one_over_slack": comparison.bias_of_waiting == 0,
        "best_weight": number(_best(comparison)),
        "least_bias": number(_least(comparison)),
        "break_even_delay": number(comparison.break_even),
        "rac_against_waiting": [{"horizon": d.horizon, "delay": d.delay, "smaller_bias": d.smaller} for d in comparison.decisions],
        "both_channels_late": {
            "delays": [list(pair) for pair in comparison.pairs],
            "reductions": _reductions_data(comparison.both_late, form),
        },
        "gradients": {d.name: {"norm": form.data(d.norm), "cosine_with_target": number(d.cosine)} for d in comparison.directions},
    }


def benchmark_parts(comparison: Comparison, *, digits: int) -> list[Any]:
    """The parts of a report: reductions, bias, limits, RAC against waiting, both channels late, gradients."""
    benchmark, short = comparison.benchmark, _shortened(digits)
    mdp, names = benchmark.mdp, [f"delay {delay}" for delay in benchmark.delays]
    bias = plain_table("bias", *comparison.reductions)
    limits = plain_table("limit of the reduction as the horizon grows", *comparison.limits)
    for i, name in enumerate(names):
        bias.add_row(name, *(short(found.bias[i]) for found in comparison.reductions.values()))
        limits.add_row(name, *(short(found.by_delay[i]) for found in comparison.limits.values()))
    horizons = list(dict.fromkeys(d.horizon for d in comparison.decisions))
    against = plain_table("smaller bias: rac or wait_for_slow", *(f"horizon {horizon}" for horizon in horizons))
    for name, delay in zip(names, benchmark.delays, strict=True):
        against.add_row(name, *(d.smaller for d in comparison.decisions if d.delay == delay))
    directions = plain_table("gradient of", "norm", "cosine with the target")
    for d in comparison.directions:
        directions.add_row(d.name, short(d.norm), "" if d.cosine is None else short(d.cosine))
    return [
        Text(
            f"{mdp.states} states, {mdp.actions} actions, discount {mdp.discount}, horizon {mdp.horizon}, "
            f"RAC weights exp(-delay/{benchmark.time_constant})"
        ),
        _reductions_table("reduction, slow late", names, comparison.reductions, short),
        bias,
        limits,
        Text(_about_slack(comparison, short)),
        against,
        Text(_about_weights(comparison, short)),
        _reductions_table("reduction, fast and slow late", [f"delays {a}, {b}" for a, b in comparison.pairs], comparison.both_late, short),
        directions,
    ]


def _about_slack(comparison: Comparison, short: Shortened) -> str:
    left = comparison.bias_of_waiting
    if left == 0:
        return "a reduction is one over the slack 1 - w, at this horizon too: the gradients of both rewards sum to the target"
    return (
        "in the limit a reduction is one over the slack 1 - w: the gradients of both rewards sum to the target. At horizon "
        f"{comparison.benchmark.mdp.horizon} they miss it by {short(left)}, the bias at w = 1, so the rule does not apply"
    )


def _about_weights(comparison: Comparison, short: Shortened) -> str:
    best, least = _best(comparison), _least(comparison)
    if best is None or least is None:
        return "the slow reward has no gradient here, so its weight does not matter"
    even = comparison.break_even
    if even is not None:
        verdict = f"RAC has a smaller bias than waiting at the delays below {short(even)}"
    else:
        verdict = f"RAC has a smaller bias than waiting at {'no delay' if best >= 1 else 'every delay above 0'}"
    return f"bias is least, {short(least)}, at the weight {short(best)}; {verdict}"


def _best(comparison: Comparison) -> Real | None:
    return None if comparison.best_weight is None else Real(comparison.best_weight)


def _least(comparison: Comparison) -> Real | None:
    return None if comparison.best_weight is None else comparison.bias.norm([Real(comparison.best_weight)])


def _reductions_data(found: Mapping[str, Reduction], form: Format) -> dict[str, Any]:
    number = _optional(form.data)
    return {
        name: {
            "by_delay": [number(x) for x in reduction.by_delay],
            "mean_of_ratios": number(reduction.mean_of_ratios),
            "ratio_of_means": number(reduction.ratio_of_means),
            "cost": {
                "stop_and_wait": form.data(Real(reduction.cost.stop_and_wait)),
                "pipelined": form.data(Real(reduction.cost.pipelined)),
            },
        }
        for name, reduction in found.items()
    }


def _reductions_table(title: str, names: Sequence[str], found: Mapping[str, Reduction], short: Shortened) -> Table:
    table, columns = plain_table(title, *found), list(found.values())
    for i, name in enumerate(names):
        table.add_row(name, *(short(reduction.by_delay[i]) for reduction in columns))
    table.add_row("mean of ratios", *(short(reduction.mean_of_ratios) for reduction in columns))
    table.add_row("ratio of means", *(short(reduction.ratio_of_means) for reduction in columns))
    table.add_row("cost, stop and wait", *(str(reduction.cost.stop_and_wait) for reduction in columns))
    table.add_row("cost, pipelined", *(str(reduction.cost.pipelined) for reduction in columns))
    return table


def _shortened(digits: int) -> Shortened:
    form = Format(digits)
    return lambda x: NO_BIAS if x is None else form.text(x, longest=SHORT)


def _optional(shown: Callable[[Real], Any]) -> Callable[[Real | None], Any]:
    return lambda x: None if x is None else shown(x)
