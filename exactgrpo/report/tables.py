"""A run as tables for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from exactgrpo.numbers.real import Real
from exactgrpo.report.numbers import DIGITS, Format
from exactgrpo.update.run import Run
from exactgrpo.update.trace import Step

MAX_ROWS = 16
"""Tables of terms and vectors show this many entries; JSON has them all."""


def run_tables(run: Run, *, digits: int = DIGITS) -> Iterator[RenderableType]:
    """The parts of a run's report, in order: status, steps, terms, evidence, counts."""
    problem, form = run.problem, Format.of(run, digits)
    sizes = f"M = {len(problem.prompts)}, G = {problem.group_size}, T = {problem.outer_iterations}, K = {problem.inner_steps}"
    yield Text.assemble(("status  ", "bold"), (run.status, "bold green" if run.status == "complete" else "bold yellow"), f"   ({sizes})")
    yield Text.assemble(("theta   ", "bold"), _vector(problem.parameters, run.theta, form))
    if run.undecided is not None:
        yield Text(str(run.undecided))
    yield _steps(run, form)
    shows_all = sum(len(step.terms) for step in run.steps) <= 2 * MAX_ROWS
    for step in run.steps:
        if shows_all or (step.evidence is not None and len(step.terms) <= MAX_ROWS):
            yield Text(f"terms at step {step.level[0]},{step.level[1]}", "bold")
            yield _terms(step, form)
        if step.evidence is not None:
            yield from _evidence(step, form)
    counts = run.counts
    yield Text(
        f"counts  draws {counts.draws}, reward evaluations {counts.reward_evaluations}, mass evaluations {counts.mass_evaluations}, "
        f"gradient attempts {counts.gradient_attempts}, domain calls {counts.domain_calls}, square roots {counts.square_roots}, "
        f"logarithms {counts.logarithms}"
    )
    proofs = ", ".join(f"{kind} {count}" for kind, count in sorted(run.proof_counts().items()))
    yield Text(f"proofs  {proofs or 'no comparison was needed'}")


def printable(text: str) -> Text:
    """A name as text of a cell: what a terminal would obey or hide is escaped."""
    return Text(text if text.isprintable() else repr(text)[1:-1])


def plain_table(*columns: str) -> Table:
    """A table without frames, whose cells fold."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _vector(names: Sequence[str], values: Sequence[Real], form: Format) -> str:
    shown = ", ".join(f"{name} = {form.text(x)}" for name, x in zip(names[:MAX_ROWS], values, strict=False))
    return shown if len(values) <= MAX_ROWS else f"{shown}, ... ({len(values)} parameters; --json has all)"


def _steps(run: Run, form: Format) -> Table:
    names = run.problem.parameters
    short = len(names) <= 4
    table = plain_table("t,k", "terms", "F_t", "gradient of F_t", "next theta")
    for step in run.steps:
        sides = ", ".join(f"{count} {side}" for side, count in Counter(term.side for term in step.terms).items())
        if step.evidence is not None:
            gradient, proposal = "undefined", ""
        elif step.gradient is None:
            gradient, proposal = "undecided", ""
        else:
            gradient = _column(step.gradient, form, short)
            proposal = _column(step.proposal or (), form, short)
            if step.in_domain is False:
                proposal += "\noutside U"
        objective = "" if step.objective is None else form.text(step.objective)
        table.add_row(f"{step.level[0]},{step.level[1]}", sides, objective, gradient, proposal)
    return table


def _column(values: Sequence[Real], form: Format, short: bool) -> str:
    shown = values if short else values[:3]
    text = "\n".join(form.text(x) for x in shown)
    return text if short else f"{text}\n... ({len(values)} entries)"


def _terms(step: Step, form: Format) -> Table:
    table = plain_table("prompt", "sample", "response", "A", "rho", "side", "proof")
    for term in step.terms:
        ratio = "" if term.ratio is None else form.text(term.ratio)
        proof = "" if term.proof is None else f"{term.proof.kind}: {term.proof.detail}"
        table.add_row(
            printable(term.prompt), str(term.sample + 1), printable(term.response), form.text(term.advantage), ratio, term.side, proof
        )
    return table


def _evidence(step: Step, form: Format) -> Iterator[RenderableType]:
    evidence = step.evidence
    if evidence is None:
        return
    kinks = ", ".join(f"{response!r} to {prompt!r}" for prompt, response in evidence.terms[:MAX_ROWS])
    more = "" if len(evidence.terms) <= MAX_ROWS else f" and {len(evidence.terms) - MAX_ROWS} more"
    yield Text(f"no gradient at step {step.level[0]},{step.level[1]}: at a kink are {kinks}{more}")
    table = plain_table("parameter", "left derivative", "right derivative")
    for name, (left, right) in list(zip(step.problem.parameters, evidence.one_sided(), strict=True))[:MAX_ROWS]:
        table.add_row(name, form.text(left), form.text(right))
    yield table
