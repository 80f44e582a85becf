"""Problems written to data and read back are the same problems; JSON files are whole or not there."""

from __future__ import annotations

import json
from fractions import Fraction as F
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, given, settings

import exactgrpo as eg
from exactgrpo import InputError, LimitError, PolicyError, Problem, Prompt, PromptError, Real, Seed, run
from exactgrpo.cli import EXAMPLES
from exactgrpo.numbers.written import number_text
from exactgrpo.spec import loaded, loads, problem
from exactgrpo.spec.json_file import write_json
from exactgrpo.spec.writing import problem_data
from exactgrpo.strategies import FAMILIES, near_misses, problems, problems_on_a_bound

relaxed = settings(max_examples=30, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))


def same(first: Problem, second: Problem) -> None:
    one, two = run(first), run(second)
    assert (one.status, one.counts) == (two.status, two.counts)
    assert first.parameters == second.parameters
    for x, y in zip((*first.rewards, *first.step_sizes), (*second.rewards, *second.step_sizes), strict=True):
        assert Real.of(x) == Real.of(y)
    assert [x.digits(40) for x in one.theta] == [x.digits(40) for x in two.theta]
    for a, b in zip(one.steps, two.steps, strict=True):
        assert [term.side for term in a.terms] == [term.side for term in b.terms]


def read_back(given_: Problem) -> Problem:
    text = json.dumps(problem_data(given_))
    again = problem(loads(text, "json"))
    assert json.dumps(problem_data(again)) == text
    return again


@pytest.mark.parametrize("family", FAMILIES)
def test_written_problems_are_read_back(family: Any) -> None:
    @relaxed
    @given(problems(families=[family], irrational_steps=True))
    def check(given_: Problem) -> None:
        same(given_, read_back(given_))

    check()


@settings(relaxed, max_examples=20, phases=(Phase.generate,))
@given(problems_on_a_bound(families=["rational", "tokens", "expression"]) | near_misses(families=["simplex", "softmax"]))
def test_kinks_ties_and_near_misses_survive_a_file(given_: Problem) -> None:
    same(given_, problem(loaded(problem_data(given_))))


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.toml") if 'kind = "update"' in path.read_text("utf-8")))
def test_examples_are_read_back(name: str) -> None:
    given_ = eg.load_problem(EXAMPLES / f"{name}.toml")
    again = problem(loaded(problem_data(given_)))
    if name != "large_softmax":
        same(given_, again)


# ---- numbers


@pytest.mark.parametrize(
    "text",
    [
        "2^(1/3) - 10^-100",
        "exp(log(2)/3) + sqrt(2) - 10^-100",
        "log(7)^-3*10^-90 - 1",
        "(1 - sqrt(3)/10^90)/(exp(-2) + 10^-91)",
        "-sqrt(2) - 10^-99",
    ],
)
def test_numbers_without_a_short_text_are_written_as_they_are_built(text: str) -> None:
    number = Real.of(text)
    assert number.exact() is None
    assert Real.of(number_text(number.expression)) == number


def test_numbers_too_long_for_a_file_are_refused_with_their_place() -> None:
    huge = one_prompt(eg.Simplex.of([2]), theta0=["1/2"], step_size=F(1, 10**4000), reference=None, beta=0)
    assert problem_data(huge)["update"]["step_size"] == "1/1" + "0" * 4000
    with pytest.raises(LimitError, match=r"update.step_size.*at most 10000 digits"):
        problem_data(one_prompt(eg.Simplex.of([2]), theta0=["1/2"], step_size=F(1, 10**11000), reference=None, beta=0))
    nested = Real.of(2)
    for _ in range(150):
        nested = (nested + 1).sqrt()
    with pytest.raises(LimitError, match="nest at most 100 deep"):
        number_text(nested.expression)
    many = sum((Real.of(n).log() * Real.of(n + 1).sqrt() for n in range(2, 1000)), Real.of(0))
    with pytest.raises(LimitError, match="at most 2000 operations"):
        number_text(many.expression, "beta")


# ---- tokens


def token_problem(
    tables: Any, *, prompts: tuple[str, ...] = ("q",), conditional: Any = "softmax", responses: Any = None, length: int = 3
) -> Problem:
    protocol = eg.GenerationProtocol.of(["x", "y"], end=".", max_length=length)
    names = responses or [" ".join(tokens) for tokens in protocol.responses()]
    asked = [Prompt.of(name, names, range(len(names))) for name in prompts]
    family = eg.Tokens.of(protocol, prompts, tables, conditional=conditional, parameters=["a", "b"], inequalities=["a + b < 9"])
    return Problem.of(
        prompts=asked, family=family, theta0=["1/2", "1/3"], group_size=2, outer_iterations=1, inner_steps=2, epsilon="1/5", beta=0,
        step_size=1, draws=Seed(3),
    )  # fmt: skip


TABLES = {
    "*": {"x": "a", "y": "b + 1/2", ".": 0},
    "q x": {"x": "2*a - b", "y": "-1/3", ".": "b"},
    "q x y": {"x": "a", "y": "b + 1/2", ".": 0},
    "p": {"x": 0, "y": 0, ".": "a"},
}


def test_token_tables_are_found_again() -> None:
    """'q x y' has the table of '*' and not that of 'q x', so it is written too: as '*' is no longer reached, 'q x' would apply."""
    given_ = token_problem(TABLES, prompts=("q", "p"))
    data = problem_data(given_)
    assert data["protocol"] == {"vocabulary": ["x", "y"], "end": ".", "max_length": 3}
    assert data["policy"]["logits"] == {
        "*": {"x": "a", "y": "b + 1/2", ".": "0"},
        "q x": {"x": "2*a - b", "y": "-1/3", ".": "b"},
        "q x y": {"x": "a", "y": "b + 1/2", ".": "0"},
        "p": {"x": "0", "y": "0", ".": "a"},
    }
    same(given_, read_back(given_))


def test_rational_token_tables_are_found_again() -> None:
    given_ = token_problem({"*": {"x": "a^2", "y": "a*b + 1", ".": 3}, "q y": {"x": 1, "y": "2 - a", ".": "b"}}, conditional="rational")
    same(given_, read_back(given_))


def test_token_policies_that_no_file_describes_are_refused() -> None:
    with pytest.raises(PolicyError, match=r"prompts\[0\].responses.*joined by blanks"):
        problem_data(token_problem(TABLES, length=1, responses=["a", "b", "c d"]))


def test_names_that_no_file_may_have_are_refused() -> None:
    with pytest.raises(PromptError, match="1 to 1000 printable characters"):
        problem_data(
            one_prompt(
                eg.Simplex.of([2]), theta0=["1/2"], reference=None, beta=0, prompts=[Prompt.of("", ["a", "b"], [0, 1])], draws=Seed(1)
            )
        )


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


def test_files_have_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("")
    write_json(tmp_path / "data.json", {})
    assert (tmp_path / "data.json").stat().st_mode == (tmp_path / "other").stat().st_mode
    (tmp_path / "data.json").chmod(0o640)
    write_json(tmp_path / "data.json", {})
    assert (tmp_path / "data.json").stat().st_mode & 0o777 == 0o640


def test_nothing_half_written_stays_behind(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    write_json(path, {"a": 1})
    with mock.patch("pathlib.Path.replace", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        write_json(path, {"a": 2})
    assert [p.name for p in tmp_path.iterdir()] == ["data.json"]
    assert json.loads(path.read_text()) == {"a": 1}
    with pytest.raises(InputError, match="the file cannot be written"):
        write_json(tmp_path / "no" / "data.json", {})
