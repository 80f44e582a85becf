"""A run as JSON data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from exactgrpo.errors import UndecidedError
from exactgrpo.numbers.decision import Proof
from exactgrpo.numbers.expression import Expression
from exactgrpo.numbers.real import Real
from exactgrpo.report.numbers import DIGITS, Format
from exactgrpo.update.run import Run
from exactgrpo.update.trace import Evidence, Step, Term

FORMAT = "exactgrpo.run/1"


def run_data(run: Run, *, digits: int = DIGITS) -> dict[str, Any]:
    """JSON data of a run: status, theta, counts, proofs by kind, and every step with its terms and decisions.

    Numbers are those of `report.numbers.Format.data`, vectors have one entry for each parameter in the order of `parameters`.
    """
    writer = _Writer(Format.of(run, digits))
    return {
        "format": FORMAT,
        "status": run.status,
        "undecided": None if run.undecided is None else _undecided(run.undecided),
        "parameters": list(run.problem.parameters),
        "theta": writer.vector(run.theta),
        "counts": asdict(run.counts),
        "proofs": run.proof_counts(),
        "steps": [writer.step(step) for step in run.steps],
    }


def _undecided(error: UndecidedError) -> dict[str, Any]:
    return {
        "question": error.question,
        "enclosure": error.enclosure,
        "number_class": error.number_class,
        "formally_nonzero": error.formally_nonzero,
    }


class _Writer:
    def __init__(self, form: Format) -> None:
        self.form = form
        self.known: dict[Expression, dict[str, Any]] = {}

    def number(self, x: Real) -> dict[str, Any]:
        """The data of one expression is made once: samples with the same response share theirs."""
        known = self.known.get(x.expression)
        if known is None:
            known = self.known[x.expression] = self.form.data(x)
        return known

    def vector(self, xs: tuple[Real, ...]) -> list[dict[str, Any]]:
        return [self.number(x) for x in xs]

    def step(self, step: Step) -> dict[str, Any]:
        return {
            "outer": step.level[0],
            "inner": step.level[1],
            "theta": self.vector(step.theta),
            "objective": None if step.objective is None else self.number(step.objective),
            "gradient": None if step.gradient is None else self.vector(step.gradient),
            "evidence": None if step.evidence is None else self.evidence(step, step.evidence),
            "proposal": None if step.proposal is None else self.vector(step.proposal),
            "in_domain": step.in_domain,
            "terms": [self.term(term) for term in step.terms],
            "decisions": [{"question": d.question, "sign": d.sign, "proof": _proof(d.proof)} for d in step.decisions()],
            "draw_comparisons": step.draw_comparisons(),
        }

    def term(self, term: Term) -> dict[str, Any]:
        return {
            "prompt": term.prompt,
            "sample": term.sample,
            "response": term.response,
            "advantage": self.number(term.advantage),
            "ratio": None if term.ratio is None else self.number(term.ratio),
            "side": term.side,
            "proof": _proof(term.proof),
        }

    def evidence(self, step: Step, evidence: Evidence) -> dict[str, Any]:
        names = step.problem.parameters
        return {
            "kinks": [{"prompt": prompt, "response": response} for prompt, response in evidence.terms],
            "one_sided": [
                {"parameter": name, "left": self.number(left), "right": self.number(right)}
                for name, (left, right) in zip(names, evidence.one_sided(), strict=True)
            ],
            "clarke": {"rest": self.vector(evidence.rest), "generators": [self.vector(g) for g in evidence.generators]},
        }


def _proof(proof: Proof | None) -> dict[str, Any] | None:
    return None if proof is None else {"kind": proof.kind, "bits": proof.bits, "detail": proof.detail}
