"""Planted violations of the hypotheses of the bias identity: answers by definition, in plain fractions, and what a verdict may then say."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction as F
from itertools import product
from typing import NamedTuple

from hypothesis import given, settings, strategies as st

from exactgrpo.rac.hypotheses import READINGS, SUFFICIENT, decide_hypotheses
from exactgrpo.rac.kernel import Channel, Kernel
from exactgrpo.rac.outcomes import Model, Outcome
from exactgrpo.rac.verdict import decide_model

DELAYS = (0, 1)
WRONG = ("delay", "context", "residual", "residual and context", "residual and delay", "late", "late context")
SHIFTS = (F(0), F(1, 4), F(1, 2))


class Row(NamedTuple):
    """An outcome with one delay and its ratio."""

    probability: F
    context: str
    residual: F
    delay: int
    ratio: F


class Case(NamedTuple):
    rows: list[Row]
    weights: tuple[F, F]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Residuals in two contexts; ratios 1 +- shift that do not depend on them; then up to two things go wrong, each in its own way.

    Ratios may drift with the delay, with the context, with the residual, with residual and context (so that all is well over both
    contexts), or with residual and delay; and the delay may depend on the residual or on the context.
    """
    residuals = draw(st.tuples(*[st.sampled_from((F(-1), F(0), F(1), F(2)))] * 2))
    shift = draw(st.sampled_from(SHIFTS))
    wrong = draw(st.sets(st.sampled_from(WRONG), max_size=2))
    size = draw(st.sampled_from((F(1, 4), F(1, 8), F(1, 10**60))))
    rows = []
    for (c, context), (x, residual), sign in product(((1, "a"), (-1, "b")), ((1, residuals[0]), (-1, residuals[1])), (1, -1)):
        late = F(1, 2) + (size * x if "late" in wrong else 0) + (size * c if "late context" in wrong else 0)
        for delay, mass, d in ((0, 1 - late, 1), (1, late, -1)):
            signs = {"delay": d, "context": c, "residual": x, "residual and context": x * c, "residual and delay": x * d}
            ratio = 1 + sign * shift + sum((size * value for name, value in signs.items() if name in wrong), F(0))
            rows.append(Row(F(1, 8) * mass, context, residual, delay, ratio))
    return Case(rows, draw(st.sampled_from(((F(1), F(1)), (F(1), F(1, 2)), (F(1), F(0)), (F(0), F(2)), (F(0), F(0))))))


def mean(rows: list[Row], values: list[F]) -> F:
    return sum((r.probability * x for r, x in zip(rows, values, strict=True)), F(0)) / sum(r.probability for r in rows)


def by_definition(case: Case) -> dict[tuple[str, str], str]:
    landing = [r for r in case.rows if case.weights[r.delay] != 0]
    owed = mean(case.rows, [r.residual for r in case.rows])
    contexts = ("a", "b")
    groups = {
        "given the delay": [[r for r in landing if r.delay == d] for d in DELAYS],
        "given context and delay": [[r for r in landing if (r.delay, r.context) == (d, c)] for d in DELAYS for c in contexts],
        "given the context": [[r for r in case.rows if r.context == c] for c in contexts],
        "marginal": [case.rows],
    }
    answers: dict[tuple[str, str], str] = {}
    for reading, parts in groups.items():
        kept = [part for part in parts if part]
        ratios = [mean(part, [r.ratio for r in part]) for part in kept]
        x = [mean(part, [r.residual for r in part]) for part in kept]
        both = [mean(part, [r.ratio * r.residual for r in part]) for part in kept]
        found = {"H1": all(a == 1 for a in ratios), "H2": all(c == a * b for a, b, c in zip(ratios, x, both, strict=True))}
        if reading == "given the delay":
            found["H3"] = all(a == owed for a in x)
        answers.update({(name, reading): ("holds" if true else "fails") if kept else "vacuous" for name, true in found.items()})
    return answers


def built(case: Case) -> Model:
    masses = {d: sum(r.probability for r in case.rows if r.delay == d) for d in DELAYS}
    channel = Channel.of("c", masses, weight=lambda step, delay: case.weights[delay])
    outcomes = []
    for first, second in zip(case.rows[::2], case.rows[1::2], strict=True):
        p = first.probability + second.probability
        law = {r.delay: r.probability / p for r in (first, second)}
        ratios = [r.ratio for r in (first, second) if r.probability]
        outcomes.append(
            Outcome.of(p, [channel], residual={"c": first.residual}, ratio={"c": ratios}, delay={"c": law}, context=first.context)
        )
    return Model.of(Kernel.of([channel], horizon=1, offset=0, drain=1), outcomes)


def test_answers_are_those_of_the_definitions_and_no_verdict_says_more() -> None:
    fails: Counter[tuple[str, str]] = Counter()
    kinds: Counter[str] = Counter()

    @settings(max_examples=400, deadline=None, database=None, derandomize=True)
    @given(cases())
    def check(case: Case) -> None:
        model, answers = built(case), by_definition(case)
        assert {(h.name, h.reading): h.answer for h in decide_hypotheses(model)} == answers
        fails.update(key for key, answer in answers.items() if answer == "fails")
        allowed = answers["H3", "given the delay"] != "fails" and any(
            "fails" not in (answers["H1", reading], answers["H2", reading]) for reading in SUFFICIENT
        )
        landed = sum((case.weights[r.delay] * r.probability for r in case.rows), F(0))
        owed = sum((r.probability * r.residual for r in case.rows), F(0))
        injected = sum((case.weights[r.delay] * r.probability * r.ratio * r.residual for r in case.rows), F(0))
        sides = {"bias-is-minus-slack": -(1 - landed) * owed, "bias-is-slack-times-naive": -(1 - landed) * owed}
        if landed == 1:
            sides["saturated-is-unbiased"] = F(0)
        for verdict in decide_model(model).claims:
            if verdict.claim in sides:
                is_equal = injected - owed == sides[verdict.claim]
                assert verdict.kind == ("refuted" if not is_equal else "follows" if allowed else "holds here")
                kinds[verdict.kind] += 1

    check()
    assert set(fails) == {(name, reading) for reading in READINGS for name in ("H1", "H2")} | {("H3", "given the delay")}
    assert set(kinds) == {"follows", "holds here", "refuted"}


def test_a_violation_in_one_reading_alone() -> None:
    # each pair: what goes wrong, and the readings in which H1 or H2 then fail (contexts a and b, residuals 1 and 0)
    def failing(signs: dict[tuple[int, int, int], int]) -> set[tuple[str, str]]:
        rows = [
            Row(F(1, 8), "a" if c > 0 else "b", F(x > 0), (1 - d) // 2, 1 + F(signs.get((c, x, d), 0), 4))
            for c, x, d in product((1, -1), (1, -1), (1, -1))
        ]
        case = Case(rows, (F(1), F(1)))
        found = {(h.name, h.reading) for h in decide_hypotheses(built(case)) if h.answer == "fails"}
        assert found == {key for key, answer in by_definition(case).items() if answer == "fails"}
        return found

    all_signs = list(product((1, -1), (1, -1), (1, -1)))
    assert failing({}) == set()
    assert failing({(c, x, d): d for c, x, d in all_signs}) == {("H1", "given the delay"), ("H1", "given context and delay")}
    assert failing({(c, x, d): c for c, x, d in all_signs}) == {("H1", "given the context"), ("H1", "given context and delay")}
    assert failing({(c, x, d): x for c, x, d in all_signs}) == {("H2", reading) for reading in READINGS}
    assert failing({(c, x, d): x * c for c, x, d in all_signs}) == {("H2", "given the context"), ("H2", "given context and delay")}
    assert failing({(c, x, d): x * d for c, x, d in all_signs}) == {("H2", "given the delay"), ("H2", "given context and delay")}
    assert failing({(c, x, d): x * c * d for c, x, d in all_signs}) == {("H2", "given context and delay")}
    assert failing({(c, x, d): c * d for c, x, d in all_signs}) == {("H1", "given context and delay")}
