"""Problems from Python: what `Problem.of` and the constructors below it accept, and what they say when they do not."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction as F
from hashlib import sha256
from typing import Any

import numpy as np
import pytest

from exactgrpo.errors import (
    DrawError,
    InexactInputError,
    InputError,
    ParseError,
    PolicyError,
    PromptError,
    ReferenceMassError,
    RewardError,
    ThetaError,
    UpdateError,
)
from exactgrpo.numbers.arithmetic import Column, DecisionTable
from exactgrpo.numbers.rationals import Rationals
from exactgrpo.policies.family import PolicyFamily
from exactgrpo.policies.rational import Rational
from exactgrpo.policies.simplex import Simplex
from exactgrpo.update.draws import Seed, Tape
from exactgrpo.update.problem import Problem, Prompt
from exactgrpo.update.reference import ReferenceLogits, ReferenceMasses, ReferenceParameter


def _problem(**changes: Any) -> Problem:
    """A problem with one prompt and two responses, some of its parts replaced."""
    parts: dict[str, Any] = {
        "prompts": [Prompt("q", ("a", "b"), (1, 0))],  # type: ignore[arg-type]
        "family": Simplex.of([2]),
        "theta0": ["1/2"],
        "group_size": 2,
        "outer_iterations": 1,
        "inner_steps": 1,
        "epsilon": "1/4",
        "beta": 0,
        "step_size": "1/16",
        "draws": Seed(7),
    }
    return Problem.of(**{**parts, **changes})


class _Counted(str):
    """A name that counts how often names are compared."""

    comparisons = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        _Counted.comparisons += 1
        return str.__eq__(self, other)


def test_distinct_names_take_no_comparison_of_each_with_each() -> None:
    names = [_Counted(i) for i in range(500)]
    _Counted.comparisons = 0
    _problem(
        prompts=[Prompt(name, tuple(names), (1,) * 500) for name in names[:10]],  # type: ignore[arg-type]
        family=Simplex.of([500] * 10),
        theta0=["1/1000"] * 4990,
    )
    assert _Counted.comparisons < 2000
    _Counted.comparisons = 0
    with pytest.raises(PromptError, match="distinct") as caught:
        _problem(prompts=[Prompt("q", (*names, names[-1]), (1,) * 501)])  # type: ignore[arg-type]
    assert caught.value.place == "prompts[0].responses[500]"
    assert _Counted.comparisons < 2000
    with pytest.raises(PromptError) as caught:
        _problem(prompts=[Prompt(name, ("a",), (1,)) for name in ["p", "q", "r", "q"]])  # type: ignore[arg-type]
    assert caught.value.place == "prompts[3].name"


# ---- what Problem.of converts


def test_rewards_references_and_names_are_converted() -> None:
    problem = _problem(
        prompts=[Prompt("q", ["a", "b"], ["1/2", Decimal("0.25")])],  # type: ignore[arg-type]
        reference=ReferenceMasses.of([["1/3", "2/3"]]),
        theta0=np.array([F(1, 2)]),
        epsilon=["1/5", "0.28"],
        beta=np.int64(1),
        step_size=(("1/2", 1), range(1, 3)),
        outer_iterations=np.int16(2),
        inner_steps=2,
    )
    assert problem.prompts == (Prompt("q", ("a", "b"), (F(1, 2), F(1, 4))),)
    assert (problem.epsilon_low, problem.epsilon_high, problem.beta) == (F(1, 5), F(7, 25), F(1))
    assert [problem.step_size(t, k) for t in (1, 2) for k in (1, 2)] == [F(1, 2), 1, 1, 2]
    assert type(problem.outer_iterations) is int
    assert problem.theta0 == (F(1, 2),)
    assert problem.parameters == ("theta1",)


def test_names_of_parameters_come_from_the_family_unless_given() -> None:
    family = Rational.of([["t", "1 - t"]], parameters=["t"])
    assert _problem(family=family).parameters == ("t",)
    assert _problem(family=family, parameters=["s"]).parameters == ("s",)


def test_a_seed_may_be_a_numpy_integer_and_draws_the_same() -> None:
    for seed in (7, np.int64(7)):
        problem = _problem(draws=Seed(seed))  # type: ignore[arg-type]
        mass = problem.family.at(Rationals(), Rationals().exact(problem.theta0)).mass
        table = DecisionTable()
        assert problem.draws.take(Rationals(table), 1, mass, problem.family.rows, 4) == _draws_of_seed_7()


def _draws_of_seed_7() -> tuple[tuple[int, ...], ...]:
    """Masses 1/2, 1/2: the first bit of SHA-256 of "7,0,0,i,0" is the draw."""
    return (tuple(sha256(f"7,0,0,{i},0".encode()).digest()[0] >> 7 for i in range(4)),)


# ---- what Problem.of and the constructors refuse


class _Nothing(PolicyFamily):
    """A family that defines nothing."""


class _Everywhere:
    """Callable and indexable, but nothing that is asked for."""

    def __getitem__(self, key: object) -> int:
        return 0


COUNTS = ("group_size", "outer_iterations", "inner_steps")
LONG = F(-1, 10**5000)
Q = Prompt("q", ("a", "b"), (F(1), F(0)))
BAD: list[tuple[dict[str, Any], str, type[InputError]]] = [
    ({"prompts": []}, "prompts", PromptError),
    ({"prompts": None}, "prompts", PromptError),
    ({"prompts": "q"}, "prompts", PromptError),
    ({"prompts": Q}, "prompts", PromptError),
    ({"prompts": {"q": Q}}, "prompts", PromptError),
    ({"prompts": (p for p in [Q])}, "prompts", PromptError),
    ({"prompts": [("q", ["a", "b"], [1, 0])]}, "prompts[0]", PromptError),
    ({"prompts": ["q"]}, "prompts[0]", PromptError),
    ({"prompts": [Prompt(1, ("a", "b"), (1, 0))]}, "prompts[0].name", PromptError),  # type: ignore[arg-type]
    ({"prompts": [Prompt("q", "ab", (1, 0))]}, "prompts[0].responses", PromptError),  # type: ignore[arg-type]
    ({"prompts": [Prompt("q", (), ())]}, "prompts[0].responses", PromptError),
    ({"prompts": [Prompt("q", ("a", 1), (1, 0))]}, "prompts[0].responses[1]", PromptError),  # type: ignore[arg-type]
    ({"prompts": [Prompt("q", ("a", ["b"]), (1, 0))]}, "prompts[0].responses[1]", PromptError),  # type: ignore[arg-type]
    ({"prompts": [Prompt("q", ("a", "a"), (1, 0))]}, "prompts[0].responses[1]", PromptError),  # type: ignore[arg-type]
    ({"prompts": [Prompt("q", ("a", "b"), (1,))]}, "prompts[0].rewards", RewardError),  # type: ignore[arg-type]
    ({"prompts": [Prompt("q", ("a", "b"), 1)]}, "prompts[0].rewards", RewardError),  # type: ignore[arg-type]
    ({"prompts": [Prompt("q", ("a", "b"), None)]}, "prompts[0].rewards", RewardError),  # type: ignore[arg-type]
    ({"prompts": [Prompt("q", ("a", "b"), (1, 0.5))]}, "prompts[0].rewards[1]", InexactInputError),  # type: ignore[arg-type]
    ({"prompts": [Prompt("q", ("a", "b"), np.array([1.0, 0]))]}, "prompts[0].rewards[0]", InexactInputError),  # type: ignore[arg-type]
    ({"prompts": [Prompt("q", ("a", "b"), (1, float("nan")))]}, "prompts[0].rewards[1]", InexactInputError),  # type: ignore[arg-type]
    ({"prompts": [Prompt("q", ("a", "b"), (1, None))]}, "prompts[0].rewards[1]", InputError),  # type: ignore[arg-type]
    ({"prompts": [Prompt("q", ("a", "b"), (1, True))]}, "prompts[0].rewards[1]", InputError),
    ({"prompts": [Prompt("q", ("a", "b"), (1, "one"))]}, "prompts[0].rewards[1]", ParseError),  # type: ignore[arg-type]
    ({"prompts": [Q, Q]}, "prompts[1].name", PromptError),
    ({"family": None}, "policy", PolicyError),
    ({"family": Simplex}, "policy", PolicyError),
    ({"family": "softmax"}, "policy", PolicyError),
    ({"family": _Nothing()}, "policy", PolicyError),
    ({"family": Simplex.of([3])}, "policy", PolicyError),
    ({"family": Simplex.of([2, 2])}, "policy", PolicyError),
    ({"theta0": None}, "policy.theta0", ThetaError),
    ({"theta0": "1/2"}, "policy.theta0", ThetaError),
    ({"theta0": F(1, 2)}, "policy.theta0", ThetaError),
    ({"theta0": 0.5}, "policy.theta0", InexactInputError),
    ({"theta0": [0.5]}, "policy.theta0[0]", InexactInputError),
    ({"theta0": [np.float64(0.5)]}, "policy.theta0[0]", InexactInputError),
    ({"theta0": np.array([0.5])}, "policy.theta0[0]", InexactInputError),
    ({"theta0": np.array(1)}, "policy.theta0", ThetaError),
    ({"theta0": [None]}, "policy.theta0[0]", InputError),
    ({"theta0": [["1/2"]]}, "policy.theta0[0]", InputError),
    ({"theta0": (x for x in ["1/2"])}, "policy.theta0", ThetaError),
    ({"theta0": {"t": "1/2"}}, "policy.theta0", ThetaError),
    ({"theta0": []}, "policy.theta0", ThetaError),
    ({"theta0": ["1/2", "1/2"]}, "policy.theta0", ThetaError),
    ({"theta0": [LONG]}, "policy.theta0", ThetaError),
    ({"theta0": [Decimal("-0")]}, "policy.theta0", ThetaError),
    ({"parameters": "t"}, "policy.parameters", ThetaError),
    ({"parameters": [1]}, "policy.parameters[0]", ThetaError),
    ({"parameters": ["s", "t"]}, "policy.parameters", ThetaError),
    ({"parameters": ["a b"]}, "policy.parameters", ParseError),
    *[({name: value}, f"update.{name}", UpdateError) for name in COUNTS for value in (0, True, "2", None, [2])],
    *[({name: 2.0}, f"update.{name}", InexactInputError) for name in COUNTS],
    ({"group_size": 1}, "update.group_size", UpdateError),
    ({"epsilon": 0.2}, "update.epsilon", InexactInputError),
    ({"epsilon": ("1/5", np.float32(0.2))}, "update.epsilon_high", InexactInputError),
    ({"epsilon": ("1/5",)}, "update.epsilon", UpdateError),
    ({"epsilon": ()}, "update.epsilon", UpdateError),
    ({"epsilon": ("1/5", 0)}, "update.epsilon_high", UpdateError),
    ({"epsilon": (1, 1)}, "update.epsilon_low", UpdateError),
    ({"epsilon": LONG}, "update.epsilon", UpdateError),
    ({"epsilon": None}, "update.epsilon", InputError),
    ({"epsilon": Decimal("NaN")}, "update.epsilon", InputError),
    ({"beta": 0.1}, "update.beta", InexactInputError),
    ({"beta": float("inf")}, "update.beta", InexactInputError),
    ({"beta": False}, "update.beta", InputError),
    ({"beta": LONG}, "update.beta", UpdateError),
    ({"beta": "-1/9^60000"}, "update.beta", UpdateError),
    ({"beta": 1}, "reference", ReferenceMassError),
    ({"step_size": 0.1}, "update.step_size", InexactInputError),
    ({"step_size": None}, "update.step_size", InputError),
    ({"step_size": (x for x in [[1]])}, "update.step_size", InputError),
    ({"step_size": Decimal("-0.0")}, "update.step_size", UpdateError),
    ({"step_size": LONG}, "update.step_size", UpdateError),
    ({"step_size": [1]}, "update.step_size[0]", UpdateError),
    ({"step_size": []}, "update.step_size", UpdateError),
    ({"step_size": [[]]}, "update.step_size", UpdateError),
    ({"step_size": [[1], [1]]}, "update.step_size", UpdateError),
    ({"step_size": ["1"]}, "update.step_size[0]", UpdateError),
    ({"step_size": [[0.5]]}, "update.step_size[0][0]", InexactInputError),
    ({"step_size": np.array([[0.5]])}, "update.step_size[0][0]", InexactInputError),
    ({"step_size": [[0]]}, "update.step_size[0][0]", UpdateError),
    ({"step_size": {"1": 1}}, "update.step_size", UpdateError),
    ({"draws": None}, "update.draws", DrawError),
    ({"draws": [[["a", "b"]]]}, "update.draws", DrawError),
    ({"draws": 7}, "update.draws", DrawError),
    ({"draws": 7.0}, "update.draws", InexactInputError),
    ({"draws": Seed}, "update.draws", DrawError),
    ({"draws": Seed(7.0)}, "update.draws.seed", InexactInputError),  # type: ignore[arg-type]
    ({"draws": Seed("7")}, "update.draws.seed", DrawError),  # type: ignore[arg-type]
    ({"draws": Seed(True)}, "update.draws.seed", DrawError),
    ({"draws": Seed(None)}, "update.draws.seed", DrawError),  # type: ignore[arg-type]
    ({"draws": Seed(1 << 256)}, "update.draws.seed", DrawError),
    ({"draws": Seed(10**5000)}, "update.draws.seed", DrawError),
    ({"reference": [["1/2", "1/2"]]}, "reference", ReferenceMassError),
    ({"reference": _Everywhere()}, "reference", ReferenceMassError),
    ({"reference": ReferenceMasses}, "reference", ReferenceMassError),
    ({"reference": ReferenceMasses(["1/2", "1/2"])}, "reference", ReferenceMassError),  # type: ignore[arg-type]
    ({"reference": ReferenceMasses(Column(["1/2", "1/2"]))}, "reference", ReferenceMassError),  # type: ignore[list-item]
    ({"reference": ReferenceMasses.of([["1/2", "1/3"]])}, "prompts[0].reference", ReferenceMassError),
    ({"reference": ReferenceMasses.of([[1]])}, "reference", ReferenceMassError),
    ({"reference": ReferenceMasses.of([[1, LONG]])}, "prompts[0].reference[1]", ReferenceMassError),
    ({"reference": ReferenceMasses.of([[1, -LONG]])}, "prompts[0].reference", ReferenceMassError),
    ({"reference": ReferenceLogits.of([[1, 2, 3]])}, "reference", ReferenceMassError),
    ({"reference": ReferenceLogits(None)}, "reference", ReferenceMassError),  # type: ignore[arg-type]
    ({"reference": ReferenceParameter.of([2])}, "reference.theta", ThetaError),
    ({"reference": ReferenceParameter.of([])}, "reference.theta", ThetaError),
    ({"reference": ReferenceParameter("t")}, "reference.theta", ThetaError),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("change", "place", "error"), BAD, ids=[f"{i}-{row[1]}" for i, row in enumerate(BAD)])
def test_a_bad_problem_is_refused_with_its_place(change: dict[str, Any], place: str, error: type[InputError]) -> None:
    with pytest.raises(error) as caught:
        _problem(**change)
    _is_one_line(caught.value, place)


def _is_one_line(error: InputError, place: str) -> None:
    assert error.place == place
    line = str(error)
    assert line.startswith(place + ": ")
    assert line.isprintable()
    assert len(line) < 300


MAKERS: list[tuple[Callable[[], Any], str, type[InputError]]] = [
    (lambda: Tape.of(None, [Q]), "update.draws", DrawError),  # type: ignore[arg-type]
    (lambda: Tape.of("ab", [Q]), "update.draws", DrawError),
    (lambda: Tape.of(0.5, [Q]), "update.draws", InexactInputError),  # type: ignore[arg-type]
    (lambda: Tape.of([["ab"]], [Q]), "update.draws[0][0]", DrawError),
    (lambda: Tape.of([[("a" for _ in range(2))]], [Q]), "update.draws[0][0]", DrawError),  # type: ignore[list-item]
    (lambda: Tape.of(["a"], [Q]), "update.draws[0]", DrawError),
    (lambda: Tape.of([[]], [Q]), "update.draws[0]", DrawError),
    (lambda: Tape.of([[["a", "c"]]], [Q]), "update.draws[0][0][1]", DrawError),
    (lambda: Tape.of([[["a", 1]]], [Q]), "update.draws[0][0][1]", DrawError),  # type: ignore[list-item]
    (lambda: Tape.of([[["a", 0.5]]], [Q]), "update.draws[0][0][1]", InexactInputError),  # type: ignore[list-item]
    (lambda: Tape.of([[["a", ["b"]]]], [Q]), "update.draws[0][0][1]", DrawError),  # type: ignore[list-item]
    (lambda: Tape.of([[["a", None]]], [Q]), "update.draws[0][0][1]", DrawError),  # type: ignore[list-item]
    (lambda: Tape.of([[["a", "b"]]], None), "prompts", DrawError),  # type: ignore[arg-type]
    (lambda: Tape.of([[["a", "b"]]], ["q"]), "prompts[0]", DrawError),  # type: ignore[list-item]
    (lambda: Prompt.of(None, ["a"], [1]), "prompt.name", PromptError),  # type: ignore[arg-type]
    (lambda: Prompt.of("q", ["a"], [0.5]), "prompt.rewards[0]", InexactInputError),
    (lambda: Prompt.of("q", ["a"], "1"), "prompt.rewards", RewardError),
    (lambda: ReferenceMasses.of("1"), "reference", ReferenceMassError),
    (lambda: ReferenceMasses.of(["1/2", "1/2"]), "reference[0]", ReferenceMassError),
    (lambda: ReferenceMasses.of([[0.5, 0.5]]), "reference[0][0]", InexactInputError),
    (lambda: ReferenceLogits.of([[None]]), "reference[0][0]", InputError),
    (lambda: ReferenceParameter.of(0.5), "reference.theta", InexactInputError),  # type: ignore[arg-type]
    (lambda: ReferenceParameter.of(["x"]), "reference.theta[0]", ParseError),
]


@pytest.mark.parametrize(("make", "place", "error"), MAKERS, ids=[f"{i}-{row[1]}" for i, row in enumerate(MAKERS)])
def test_a_part_that_is_bad_by_itself_is_refused_with_its_place(make: Callable[[], Any], place: str, error: type[InputError]) -> None:
    with pytest.raises(error) as caught:
        make()
    _is_one_line(caught.value, place)


def test_tapes_take_arrays_of_names() -> None:
    tape = Tape.of(np.array([[["b", "a"]]]), [Q])  # type: ignore[arg-type]
    assert tape.positions == (((1, 0),),)
    assert _problem(draws=tape).draws is tape
