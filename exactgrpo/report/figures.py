"""The published benchmark as printed, sampled and exact: JSON data and tables."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from exactgrpo.report.numbers import Format
from exactgrpo.report.tables import plain_table
from exactgrpo.tabular.figures import SOURCE, PublishedFigures, Quality

STATEMENT = (
    "A figure is bias(naive)/bias(estimator). The sampled ones divide norms of noisy mean gradients, and noise is of the size of the bias "
    "that RAC and waiting leave; the exact ones have no noise. The bias identity of the source is right under its hypotheses, but does not "
    "apply here: the target is another functional than what the estimators estimate within the horizon."
)


def figures_data(found: PublishedFigures) -> dict[str, Any]:
    """JSON data; exact numbers as everywhere, samples as doubles."""
    form, ranking = Format(searches=False), found.ranking
    return {
        "source": SOURCE,
        "figures": [
            {
                "figure": f.name,
                "published": f.published,
                "sampled": f.sampled,
                "standard_error": f.standard_error,
                "exact": form.data(f.exact),
            }
            for f in found.figures
        ],
        "ranking": {
            "samples": ranking.count,
            "rac_above_wait_for_slow": ranking.sampled_mean,
            "is_exactly_above": ranking.exact_mean,
            "by_delay": [
                {"delay": delay, "rac_above_wait_for_slow": sampled, "is_exactly_above": exact}
                for delay, sampled, exact in zip(ranking.delays, ranking.sampled_by_delay, ranking.exact_by_delay, strict=True)
            ],
        },
        "cost_and_quality": [
            {
                "estimator": q.estimator,
                "cost": {"stop_and_wait": str(q.cost.stop_and_wait), "pipelined": str(q.cost.pipelined)},
                "reduction": form.data(q.reduction),
                "is_best": {"stop_and_wait": q.is_best_stop_and_wait, "pipelined": q.is_best_pipelined},
            }
            for q in found.qualities
        ],
        "samples_changed": found.changed,
    }


def figures_parts(found: PublishedFigures) -> list[Any]:
    """The parts of a report: the figures, the ranking, cost and quality."""
    form, ranking = Format(digits=6, searches=False), found.ranking
    table = plain_table("reduction of the bias", "published", "sampled", "standard error", "exact")
    for f in found.figures:
        drawn = ["" if x is None else f"{x:.4g}" for x in (f.sampled, f.standard_error)]
        table.add_row(f.name, f.published or "", *drawn, form.text(f.exact))
    above = "above" if ranking.exact_mean else "below or level"
    by_delay = ", ".join(
        f"{sampled} at delay {delay} ({'above' if exact else 'below or level'} exactly)"
        for delay, sampled, exact in zip(ranking.delays, ranking.sampled_by_delay, ranking.exact_by_delay, strict=True)
    )
    order = (
        f"rac is above wait_for_slow in {ranking.sampled_mean} of {ranking.count} samples of the published size "
        f"({above} exactly), by delay in {by_delay}"
    )
    quality = plain_table("cost and reduction", "stop and wait", "pipelined", "exact reduction", "not beaten in both at once")
    for q in found.qualities:
        quality.add_row(q.estimator, str(q.cost.stop_and_wait), str(q.cost.pipelined), form.text(q.reduction), _best(q))
    parts = [Text(f"the published benchmark ({SOURCE})", "bold"), table, Text(order), quality, Text(STATEMENT)]
    if found.changed is not None:
        seen = f"not as bundled at {', '.join(found.changed[:5])}" if found.changed else "as bundled"
        parts.append(Text(f"samples drawn again: {seen}"))
    return parts


def _best(q: Quality) -> str:
    costs = [name for name, is_best in (("stop and wait", q.is_best_stop_and_wait), ("pipelined", q.is_best_pipelined)) if is_best]
    return ", ".join(costs)
