"""Verdicts on a model of delayed rewards as JSON data and as tables."""

from __future__ import annotations

from typing import Any

from rich.table import Table
from rich.text import Text

from exactgrpo.rac.hypotheses import STATEMENTS, Hypothesis
from exactgrpo.rac.values import Value
from exactgrpo.rac.verdict import ModelVerdict, Verdicts
from exactgrpo.report.numbers import Format
from exactgrpo.report.tables import MAX_ROWS, plain_table, printable

_STYLES = {"follows": "green", "holds here": "yellow", "vacuous": "yellow", "undecided": "bold yellow", "refuted": "bold red"}


def verdicts_data(verdicts: Verdicts) -> dict[str, Any]:
    """JSON data of all verdicts on one model; numbers as everywhere. `error` is that of the delay law, zero where it is meant exactly."""
    bias, kernel = verdicts.bias, verdicts.model.kernel
    names = [channel.name for channel in kernel.channels]
    return {
        "claims": [
            {
                "claim": v.claim,
                "statement": v.statement,
                "verdict": v.kind,
                "expected": v.expected,
                "why": v.why,
                "left": _number(v.left),
                "right": _number(v.right),
            }
            for v in verdicts.claims
        ],
        "hypotheses": [
            {
                "name": h.name,
                "statement": STATEMENTS[h.name],
                "reading": h.reading,
                "answer": h.answer,
                "place": h.place,
                "value": _number(h.value),
            }
            for h in verdicts.hypotheses
        ],
        "delays": [{"channel": channel.name, "error": _number(channel.delay.error)} for channel in kernel.channels],
        "bias": {
            "cumulative": _number(bias.cumulative),
            "closed_form": _number(bias.closed_form),
            "naive": _number(bias.naive),
            "by_step": [_number(x) for x in bias.by_step],
            "variance": _number(bias.variance),
            "mean_squared_error": _number(bias.mean_squared_error),
            "terms": [
                {
                    "channel": names[t.channel],
                    "step": t.step,
                    "mean_residual": _number(t.mean_residual),
                    "slack": _number(t.slack),
                    "saturation_gain": _number(kernel.saturation_gain(t.channel, t.step)),
                    "landed": _number(kernel.landed(t.channel, t.step)),
                    "from_slack": _number(t.from_slack),
                    "from_informative_delay": _number(t.from_informative_delay),
                    "from_ratio": _number(t.from_ratio),
                    "bias": _number(t.bias),
                }
                for t in bias.terms
            ],
        },
    }


def verdicts_parts(verdicts: Verdicts) -> list[Any]:
    """The parts of a report on one model: claims, hypotheses, numbers, and the bias by term."""
    claims = plain_table("claim", "verdict", "left", "right", "why")
    for v in verdicts.claims:
        claims.add_row(Text(f"{v.claim}: {v.statement}"), Text(v.kind, _STYLES[v.kind]), _text(v.left), _text(v.right), Text(_why(v)))
    bias = verdicts.bias
    numbers = (
        f"cumulative bias {_text(bias.cumulative)}, naive bias {_text(bias.naive)}, variance {_text(bias.variance)}, "
        f"mean squared error {_text(bias.mean_squared_error)}"
    )
    shown, rest = bias.by_step[:MAX_ROWS], len(bias.by_step) - MAX_ROWS
    steps = ", ".join(map(_text, shown)) + (f", and {rest} more" if rest > 0 else "")
    notes = [Text(line) for line in _stand_ins(verdicts)]
    return [claims, _hypotheses(verdicts.hypotheses), _terms(verdicts), Text(numbers), Text(f"bias by step {steps}"), *notes]


def _why(v: ModelVerdict) -> str:
    if v.expected is None:
        return v.why
    return f"{v.why}; as expected" if v.is_expected else f"{v.why}; expected: {v.expected}"


def _stand_ins(verdicts: Verdicts) -> list[str]:
    """What each delay law that stands for a continuous one is away from it."""
    return [
        f"delay of {printable(channel.name)}: within {Format(digits=3).text(channel.delay.error)} of the continuous law on these delays, "
        "in total variation"
        for channel in verdicts.model.kernel.channels
        if channel.delay.error != 0
    ]


def _hypotheses(hypotheses: tuple[Hypothesis, ...]) -> Table:
    table = plain_table("hypothesis", "reading", "answer", "where it fails", "value")
    for h in hypotheses:
        style = {"holds": "green", "fails": "bold red", "vacuous": "yellow", "undecided": "bold yellow"}[h.answer]
        table.add_row(f"{h.name} {STATEMENTS[h.name]}", h.reading, Text(h.answer, style), printable(h.place), _text(h.value))
    return table


def _terms(verdicts: Verdicts) -> Table:
    kernel = verdicts.model.kernel
    table = plain_table("channel", "step", "E X", "slack", "-slack E X", "informative delay", "ratio", "bias")
    for t in verdicts.bias.terms[:MAX_ROWS]:
        numbers = (t.mean_residual, t.slack, t.from_slack, t.from_informative_delay, t.from_ratio, t.bias)
        table.add_row(printable(kernel.channels[t.channel].name), str(t.step), *map(_text, numbers))
    if len(verdicts.bias.terms) > MAX_ROWS:
        table.add_row(f"and {len(verdicts.bias.terms) - MAX_ROWS} more")
    return table


def _number(x: Value | None) -> Any:
    return None if x is None else Format().data(x)


def _text(x: Value | None) -> str:
    return "" if x is None else Format().text(x)
