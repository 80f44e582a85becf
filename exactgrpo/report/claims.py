"""Verdicts, searches and replays as JSON data and as tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.text import Text

from exactgrpo.claims.audit import Audit
from exactgrpo.claims.claim import Claim, Sides, shown
from exactgrpo.claims.saved import Replay, Status
from exactgrpo.claims.search import Counterexample, Search, is_finite
from exactgrpo.claims.verdict import Verdict, need
from exactgrpo.errors import LimitError
from exactgrpo.numbers.display import rational_value
from exactgrpo.numbers.expression import RATIONAL
from exactgrpo.numbers.real import Real
from exactgrpo.numbers.written import number_text
from exactgrpo.report.figures import figures_data, figures_parts
from exactgrpo.report.rac import verdicts_data, verdicts_parts
from exactgrpo.report.tables import plain_table

MAX_DIGITS = 60
"""A longer number is cut in tables."""
NARROW = 80
"""Columns of a terminal below which a table is shown as paragraphs."""


def claim_data(claim: Claim) -> dict[str, Any]:
    """JSON data of a claim."""
    return {
        "id": claim.id,
        "statement": claim.statement,
        "latex": claim.latex,
        "hypotheses": list(claim.hypotheses),
        "source": claim.source,
        "expected": claim.expected,
        "theorem": claim.theorem,
    }


def verdict_data(verdict: Verdict) -> dict[str, Any]:
    """JSON data of a verdict."""
    return {
        "claim": claim_data(verdict.claim),
        "verdict": verdict.kind,
        "by": verdict.by,
        "instances": verdict.instances,
        "ended": verdict.ended,
        "is_expected": verdict.is_expected,
        "counterexample": found_data(verdict.counterexample),
    }


def found_data(found: Counterexample | None) -> dict[str, Any] | None:
    """JSON data of a counterexample, its values as exact texts."""
    if found is None:
        return None
    sides = found.sides
    return {
        "instance": {name: shown(value, _full) for name, value in found.instance.items()},
        "left": None if sides.left is None else shown(sides.left, _full),
        "right": None if sides.right is None else shown(sides.right, _full),
    }


def _full(x: Real) -> str:
    try:
        return str(rational_value(x.expression)) if x.expression.kind == RATIONAL else number_text(x.expression)
    except LimitError:
        return f"{x.digits(12)}..."


def search_data(claim: Claim, result: Search, *, dropped: Sequence[str]) -> dict[str, Any]:
    """JSON data of a search for a counterexample."""
    return {
        "claim": claim_data(claim),
        "dropped": list(dropped),
        "tried": result.tried,
        "satisfied": result.satisfied,
        "ended": result.ended,
        "violated": list(result.counterexample.violated) if result.counterexample else [],
        "undefined": None if result.undefined is None else str(result.undefined),
        "counterexample": found_data(result.counterexample),
    }


def replay_data(replay: Replay) -> dict[str, Any]:
    """JSON data of a saved counterexample, computed again."""
    return {
        "claim": claim_data(replay.claim),
        "dropped": list(replay.dropped),
        "status": replay.status,
        "is_reproduced": replay.is_reproduced,
        "violated": list(replay.violated),
        "counterexample": found_data(_of(replay)),
    }


def _of(replay: Replay) -> Counterexample:
    return Counterexample(replay.instance, replay.sides or Sides(holds=False))


def brief(text: str) -> Text:
    """A text of a table, whose long numbers are cut; JSON has them in full.

    >>> brief(f"x = -1/{10**69}, y = {'7' * 60}").plain
    'x = -1/10000000000000000000...(70 digits), y = 777777777777777777777777777777777777777777777777777777777777'
    """
    return Text(re.sub(f"[0-9]{{{MAX_DIGITS + 1},}}", lambda digits: f"{digits[0][:20]}...({len(digits[0])} digits)", text))


class Rows:
    """A table, or, on a terminal too narrow for its columns, a paragraph for each row."""

    def __init__(self, *columns: str) -> None:
        self.columns = columns
        self.rows: list[tuple[Text, ...]] = []

    def add_row(self, *cells: Text) -> None:
        self.rows.append(cells)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if options.max_width >= NARROW:
            table = plain_table(*self.columns)
            for cells in self.rows:
                table.add_row(*cells)
            yield table
            return
        for first, *others in self.rows:
            yield first
            for column, cell in zip(self.columns[1:], others, strict=True):
                if cell:
                    yield Padding(Text.assemble(f"{column}: ", cell), (0, 0, 0, 2))


def verdict_table(verdicts: Sequence[Verdict]) -> Rows:
    """One row for each claim: what it says, the verdict, and why."""
    table = Rows("claim", "statement", "verdict", "by")
    for verdict in verdicts:
        why = verdict.by if verdict.counterexample is None else str(verdict.counterexample)
        style = "green" if verdict.is_expected else "yellow" if verdict.kind == "vacuous" else "bold red"
        table.add_row(Text(verdict.claim.id), Text(verdict.claim.statement), Text(verdict.kind, style), brief(f"{why}{_end(verdict)}"))
    return table


def necessity_table(results: Mapping[str, Search]) -> Rows:
    """One row for each hypothesis: what the search without it says."""
    table = Rows("hypothesis", "need", "without it")
    for name, result in results.items():
        table.add_row(Text(name), Text(need(result)), brief(_without(result)))
    return table


def _without(result: Search) -> str:
    if result.counterexample is not None:
        return f"{result.counterexample}{_end(result)}"
    if result.undefined is not None:
        return f"a side is undefined: {result.undefined}{_end(result)}"
    return f"none in {result.satisfied} instances{_end(result)}"


def _end(result: Search | Verdict) -> str:
    return "" if result.ended == "finished" else f" ({result.ended})"


def claim_table(claims: Sequence[Claim]) -> Rows:
    """One row for each claim."""
    table = Rows("claim", "statement", "hypotheses", "expected", "theorem")
    for claim in claims:
        cells = (claim.id, claim.statement, "; ".join(claim.hypotheses), str(claim.expected).lower(), claim.theorem or "")
        table.add_row(*map(Text, cells))
    return table


def search_parts(claim: Claim, result: Search, dropped: Sequence[str]) -> list[Any]:
    """What a search says, in order."""
    without = f" without {', '.join(map(repr, dropped))}" if dropped else ""
    tried = f"{result.satisfied} of {result.tried} instances satisfied the hypotheses{without}{_end(result)}"
    if result.counterexample is None:
        return [Text(claim.statement), Text("no counterexample found; that proves nothing", "bold yellow"), Text(tried)]
    found = result.counterexample
    lines = [Text(claim.statement), Text(f"refuted by {_which(claim, result)}", "bold"), brief(f"  {shown(found.instance)}")]
    if found.sides.left is not None:
        lines += [brief(f"  left   {shown(found.sides.left)}"), brief(f"  right  {shown(found.sides.right)}")]
    if dropped:
        violated = ", ".join(map(repr, found.violated))
        lines.append(Text(f"  violates {violated}" if violated else "  satisfies every hypothesis: the claim itself is refuted"))
    return [*lines, Text(tried)]


def _which(claim: Claim, result: Search) -> str:
    """What is known of the counterexample; a shrunk one need not be a smallest one."""
    if is_finite(claim):
        return "the first counterexample among all cases in their order"
    return "a shrunk counterexample" if result.ended == "finished" else "a counterexample that may shrink further"


def audit_data(audit: Audit) -> dict[str, Any]:
    """JSON data of an audit."""
    return {
        "format": "exactgrpo.verify/1",
        "claims": [verdict_data(verdict) for verdict in audit.verdicts],
        "updates": [
            {"file": str(file), "claims": [verdict_data(verdict) for verdict in verdicts]} for file, verdicts in audit.updates.items()
        ],
        "models": [{"file": str(file), **verdicts_data(verdicts)} for file, verdicts in audit.models.items()],
        "replays": [{"file": str(file), **replay_data(replay)} for file, replay in audit.replays.items()],
        "benchmark": None if audit.benchmark is None else figures_data(audit.benchmark),
        "ended": "interrupted" if audit.is_interrupted else "finished",
        "is_as_expected": not audit.has_surprise,
    }


def audit_parts(audit: Audit) -> list[Any]:
    """The parts of an audit's report, in order."""
    parts: list[Any] = []
    if audit.verdicts:
        true = [v for v in audit.verdicts if v.claim.expected]
        false = [v for v in audit.verdicts if not v.claim.expected]
        parts += [Text("claims", "bold"), verdict_table(true)] if true else []
        parts += [Text("non-claims: false in general, with a shrunk witness", "bold"), verdict_table(false)] if false else []
    for file, verdicts in audit.updates.items():
        parts += [Text(f"{file}: as an instance", "bold"), verdict_table(verdicts)]
    for file, of_model in audit.models.items():
        parts += [Text(f"{file}: delayed rewards", "bold"), *verdicts_parts(of_model)]
    if audit.benchmark is not None:
        parts += figures_parts(audit.benchmark)
    for file, replay in audit.replays.items():
        why = ": it does not satisfy the hypotheses" if replay.status == "vacuous" else ""
        parts += [Text(f"{file}: {replay.status}{why}", "bold"), Text(replay.claim.statement), brief(f"  {_of(replay)}")]
    everything = [*audit.verdicts, *(v for verdicts in audit.updates.values() for v in verdicts)]
    if everything:
        expected, vacuous = sum(v.is_expected for v in everything), sum(v.kind == "vacuous" for v in everything)
        parts.append(Text(f"{len(everything)} verdicts, {expected} as expected, {vacuous} vacuous"))
    if audit.replays:
        counts = Counter(replay.status for replay in audit.replays.values())
        parts.append(Text(f"counterexamples: {', '.join(f'{counts[status]} {status}' for status in get_args(Status))}"))
    if audit.is_interrupted:
        parts.append(Text("interrupted: what is not listed was not verified", "bold yellow"))
    return parts
