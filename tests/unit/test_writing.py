"""Problems written to data and read back are the same problems; JSON files are whole or not there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings

import exactgrpo as eg
from exactgrpo import InputError, Problem, Prompt, Seed, run
from exactgrpo.cli import EXAMPLES
from exactgrpo.spec import loaded, loads, problem
from exactgrpo.spec.writing import problem_data, write_json
from exactgrpo.strategies import problems

relaxed = settings(max_examples=30, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))


def same(first: Problem, second: Problem) -> None:
    one, two = run(first), run(second)
    assert (one.status, one.counts) == (two.status, two.counts)
    assert first.parameters == second.parameters
    assert [x.digits(40) for x in one.theta] == [x.digits(40) for x in two.theta]


@relaxed
@given(problems())
def test_written_problems_are_read_back(given_: Problem) -> None:
    text = json.dumps(problem_data(given_))
    again = problem(loads(text, "json"))
    same(given_, again)
    assert json.dumps(problem_data(again)) == text


@pytest.mark.parametrize("name", ["kink", "huge_ratio", "logged_groups", "two_cycle", "zero_variance"])
def test_examples_are_read_back(name: str) -> None:
    given_ = eg.load_problem(EXAMPLES / f"{name}.toml")
    same(given_, problem(loaded(problem_data(given_))))


def one_prompt(family: Any, **changes: Any) -> Problem:
    fields: dict[str, Any] = {
        "prompts": [Prompt.of("q", ["a", "b"], [1, "sqrt(2)"])], "family": family, "theta0": ["log(2)"], "group_size": 2,
        "outer_iterations": 2, "inner_steps": 2, "epsilon": ("1/5", "sqrt(3)/4"), "beta": "1/10",
        "step_size": [[1, "1/2"], ["sqrt(2)", 2]], "draws": Seed(4),
        "reference": eg.ReferenceLogits.of([[0, "log(3)"]]),
    }  # fmt: skip
    return Problem.of(**{**fields, **changes})


def test_irrational_data_and_every_form_are_read_back() -> None:
    softmax = eg.Softmax.of([[[1], ["1/2"]]], size=1, base=[[1, "sqrt(2)"]], inequalities=["theta1 > -5"])
    expression = eg.Expressions.of([["exp(-t^2)", "sqrt(1 + t)"]], parameters=["t"], inequalities=["t > 0"])
    for family in (softmax, expression):
        masses = eg.ReferenceMasses.of([["1/3", "2/3"]])
        for reference in (eg.ReferenceLogits.of([[0, "log(3)"]]), eg.ReferenceParameter.of(["1/2"]), masses):
            given_ = one_prompt(family, reference=reference)
            same(given_, problem(loads(json.dumps(problem_data(given_)), "json")))


def test_what_files_cannot_describe_is_refused() -> None:
    class Own(eg.PolicyFamily):
        rows, size = eg.Rows([2]), 1

        def at(self, arithmetic: Any, theta: Any) -> eg.Policy:
            return eg.Softmax.of([[[1], [0]]], size=1).at(arithmetic, theta)

    with pytest.raises(eg.PolicyError, match="a family that can be written"):
        problem_data(one_prompt(Own()))


def test_nothing_half_written_stays_behind(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    write_json(path, {"a": 1})
    with mock.patch("json.dump", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        write_json(path, {"a": 2})
    assert [p.name for p in tmp_path.iterdir()] == ["data.json"]
    assert json.loads(path.read_text()) == {"a": 1}
    with pytest.raises(InputError, match="the file cannot be written"):
        write_json(tmp_path / "no" / "data.json", {})
