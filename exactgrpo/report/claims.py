"""Verdicts, searches and replays as JSON data and as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from exactgrpo.claims.audit import Audit
from exactgrpo.claims.claim import Claim, shown
from exactgrpo.claims.saved import Replay
from exactgrpo.claims.search import Counterexample, Search
from exactgrpo.claims.verdict import Verdict, need
from exactgrpo.report.rac import verdicts_data, verdicts_parts
from exactgrpo.report.tables import plain_table


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
        "instance": {name: shown(value) for name, value in found.instance.items()},
        "left": None if sides.left is None else shown(sides.left),
        "right": None if sides.right is None else shown(sides.right),
    }


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
        "satisfied": replay.satisfied,
        "violated": list(replay.violated),
        "is_reproduced": replay.is_reproduced,
        "counterexample": found_data(Counterexample(replay.instance, replay.sides)),
    }


def verdict_table(verdicts: Sequence[Verdict]) -> Table:
    """One row for each claim: what it says, the verdict, and why."""
    table = plain_table("claim", "statement", "verdict", "by")
    for verdict in verdicts:
        why = verdict.by if verdict.counterexample is None else str(verdict.counterexample)
        style = "green" if verdict.is_expected else "bold red"
        table.add_row(Text(verdict.claim.id), Text(verdict.claim.statement), Text(verdict.kind, style), Text(f"{why}{_end(verdict)}"))
    return table


def necessity_table(results: Mapping[str, Search]) -> Table:
    """One row for each hypothesis: what the search without it says."""
    table = plain_table("hypothesis", "need", "without it")
    for name, result in results.items():
        table.add_row(Text(name), Text(need(result)), Text(_without(result)))
    return table


def _without(result: Search) -> str:
    if result.counterexample is not None:
        return f"{result.counterexample}{_end(result)}"
    if result.undefined is not None:
        return f"a side is undefined: {result.undefined}{_end(result)}"
    return f"none in {result.satisfied} instances{_end(result)}"


def _end(result: Search | Verdict) -> str:
    return "" if result.ended == "finished" else f" ({result.ended})"


def claim_table(claims: Sequence[Claim]) -> Table:
    """One row for each claim."""
    table = plain_table("claim", "statement", "hypotheses", "expected", "theorem")
    for claim in claims:
        expected = "true" if claim.expected else "false"
        table.add_row(Text(claim.id), Text(claim.statement), Text("; ".join(claim.hypotheses)), expected, Text(claim.theorem or ""))
    return table


def search_parts(claim: Claim, result: Search, dropped: Sequence[str]) -> list[Any]:
    """What a search says, in order."""
    without = f" without {', '.join(map(repr, dropped))}" if dropped else ""
    tried = f"{result.satisfied} of {result.tried} instances satisfied the hypotheses{without}{_end(result)}"
    if result.counterexample is None:
        return [Text(claim.statement), Text("no counterexample found; that proves nothing", "bold yellow"), Text(tried)]
    found = result.counterexample
    lines = [Text(claim.statement), Text("refuted", "bold"), Text(f"  {shown(found.instance)}")]
    if found.sides.left is not None:
        lines += [Text(f"  left   {shown(found.sides.left)}"), Text(f"  right  {shown(found.sides.right)}")]
    if dropped:
        violated = ", ".join(map(repr, found.violated))
        lines.append(Text(f"  violates {violated}" if violated else "  satisfies every hypothesis: the claim itself is refuted"))
    return [*lines, Text(tried)]


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
        parts += [Text("non-claims: false in general, with a smallest witness", "bold"), verdict_table(false)] if false else []
    for file, verdicts in audit.updates.items():
        parts += [Text(f"{file}: as an instance", "bold"), verdict_table(verdicts)]
    for file, of_model in audit.models.items():
        parts += [Text(f"{file}: delayed rewards", "bold"), *verdicts_parts(of_model)]
    for file, replay in audit.replays.items():
        found = Counterexample(replay.instance, replay.sides)
        status = "reproduced" if replay.is_reproduced else "not reproduced"
        parts += [Text(f"{file}: {status}", "bold"), Text(replay.claim.statement), Text(f"  {found}")]
    everything = [*audit.verdicts, *(v for verdicts in audit.updates.values() for v in verdicts)]
    surprises = sum(not v.is_expected for v in everything)
    if everything:
        parts.append(Text(f"{len(everything)} verdicts, {len(everything) - surprises} as expected"))
    if audit.is_interrupted:
        parts.append(Text("interrupted: what is not listed was not verified", "bold yellow"))
    return parts
