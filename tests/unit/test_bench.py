"""The bench runs at small sizes, and what it compares agrees; how fast anything is, it says by itself."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from bench import __main__ as command, rows
from bench.cases import rational_case, softmax_case
from bench.rows import Row

from exactgrpo.update.groups import Groups


def test_certified_step_agrees_with_flint_and_numpy_by_hand() -> None:
    assert [row.name for row in rows.step(size=(3, 5, 4, 2), rounds=1)] == ["step-flint", "step-numpy", "decisions-numpy"]


def test_rational_step_agrees_with_sympy() -> None:
    (row,) = rows.symbolic(size=(1, 3, 4, 2), rounds=1)
    assert row.at_least
    assert "stopped" not in row.detail


def test_sympy_is_stopped_at_the_time_limit() -> None:
    (row,) = rows.symbolic(size=(1, 3, 4, 2), rounds=1, limit=0.001)
    assert "stopped after 0.001 s" in row.detail


def test_kinks_are_proved_and_near_misses_are_told_from_them() -> None:
    assert [row.claim for row in rows.kink(rounds=1)] == [text for text, _, _ in rows.KINKS]


def test_package_and_command_start() -> None:
    assert all(row.measured > 0 for row in rows.start(rounds=1))


@pytest.mark.parametrize("case", [softmax_case(3, 5, 4, 2), rational_case(2, 4, 8, 3)])
def test_group_statistics_by_hand_are_those_of_the_package(case: object) -> None:
    problem = case.problem  # type: ignore[attr-defined]
    groups = Groups.of(problem.draws.positions[0], problem.rewards, problem.family.rows.start, problem.epsilon_low, problem.epsilon_high)
    scale = case.group_size * case.prompts  # type: ignore[attr-defined]
    by_hand = {(t.prompt * case.responses + t.response): t.count * t.deviation / scale for t in case.terms()}  # type: ignore[attr-defined]
    assert by_hand == dict(zip(groups.drawn.tolist(), groups.share, strict=True))


def test_a_row_holds_up_to_its_limit_and_a_budget_up_to_its_slack() -> None:
    assert Row("r", "c", 1.0, 1.0).holds
    assert not Row("r", "c", 1.01, 1.0).holds
    assert Row("r", "c", 50.0, 20.0, slack=3.0).holds
    assert not Row("r", "c", 61.0, 20.0, slack=3.0).holds
    assert not Row("r", "c", 999.0, 1000.0, at_least=True).holds


def test_exit_code_is_1_where_a_limit_is_broken(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    measured = {"good": [Row("good", "c", 1.0, 2.0)], "bad": [Row("bad", "c", 3.0, 2.0)]}
    monkeypatch.setattr(command, "ROWS", {name: (lambda made=made: made) for name, made in measured.items()})
    assert command.main(["--row", "good"]) == 0
    capsys.readouterr()
    assert command.main(["--json"]) == 1
    assert [row["holds"] for row in json.loads(capsys.readouterr().out)["rows"]] == [True, False]


def test_disagreement_is_an_error() -> None:
    with pytest.raises(rows.Disagreement):
        rows.agree(Fraction(1) == 2, "one and two")
