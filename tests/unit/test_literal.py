"""The literal procedure with oracles of one's own: the same loop, statuses and counts as a run of the same update."""

from __future__ import annotations

from fractions import Fraction as F
from typing import Any

import pytest

import exactgrpo as eg
from exactgrpo import FrozenData, Outcome, Problem, Prompt, Rational, Real, Tape, run, run_procedure


def sign(x: Real) -> int:
    return x.sign().value


def kink_gradient(frozen: FrozenData, theta: tuple[Real, ...]) -> list[Real] | None:
    """grad F for pi = (t, 1 - t), epsilon = 1/4, written down by hand: rho_a = t/t_old, rho_b = (1 - t)/(1 - t_old)."""
    t, old = theta[0], frozen.theta_old[0]
    ratio = {"a": t / old, "b": (1 - t) / (1 - old)}
    slope = {"a": 1 / old, "b": -1 / (1 - old)}
    total = Real.of(0)
    for y, advantage in zip(frozen.draws[0], frozen.advantages[0], strict=True):
        bound = F(5, 4) if sign(advantage) > 0 else F(3, 4)
        outside = sign(ratio[y] - bound) * sign(advantage)
        if sign(advantage) and outside == 0:
            return None
        if outside < 0:
            total = total + advantage * slope[y] / 2
    return [total]


def procedure(**changes: Any) -> Outcome:
    given: dict[str, Any] = {
        "theta0": ["1/2"],
        "prompts": ["q"],
        "draw": lambda t, theta, prompt, sample: "ab"[sample],
        "reward": lambda prompt, response: int(response == "a"),
        "gradient": kink_gradient,
        "domain": lambda theta: sign(theta[0]) > 0 and sign(1 - theta[0]) > 0,
        "group_size": 2,
        "outer_iterations": 1,
        "inner_steps": 3,
        "step_size": "1/16",
    }
    return run_procedure(**{**given, **changes})


def same_update(step_size: Any, inner_steps: int, outer_iterations: int = 1) -> eg.Run:
    prompt = Prompt.of("q", ["a", "b"], [1, 0])
    problem = Problem.of(
        prompts=[prompt],
        family=Rational.of([["t", "1 - t"]], parameters=["t"], inequalities=["0 < t < 1"]),
        theta0=["1/2"],
        group_size=2,
        outer_iterations=outer_iterations,
        inner_steps=inner_steps,
        epsilon="1/4",
        beta=0,
        step_size=step_size,
        draws=Tape.of([[["a", "b"]]] * outer_iterations, [prompt]),
    )
    return run(problem)


@pytest.mark.parametrize(
    ("step_size", "inner_steps", "outer_iterations"),
    [("1/16", 3, 1), ("1/20", 3, 1), ("1/4", 3, 2), ("sqrt(2)/64", 4, 2), ("1/100", 2, 3), ([["1/20", "1/16"]], 2, 1)],
)
def test_the_procedure_and_a_run_of_the_same_update_agree(step_size: Any, inner_steps: int, outer_iterations: int) -> None:
    by_hand = procedure(step_size=step_size, inner_steps=inner_steps, outer_iterations=outer_iterations)
    by_family = same_update(step_size, inner_steps, outer_iterations)
    assert by_hand.status == by_family.status
    assert by_hand.theta[0] == by_family.theta[0]
    for name in ("draws", "reward_evaluations", "gradient_attempts", "domain_calls", "square_roots"):
        assert getattr(by_hand.counts, name) == getattr(by_family.counts, name), name
    assert [step.level for step in by_hand.steps] == [step.level for step in by_family.steps]


def test_all_three_statuses_are_reached() -> None:
    assert procedure().status == "undefined-gradient"
    assert procedure(step_size="1/100").status == "complete"
    outside = procedure(step_size="1/4")
    assert (outside.status, outside.steps[-1].in_domain) == ("invalid-update", False)
    assert outside.theta[0] == F(1, 2)  # t = 1 is outside U: the last valid parameter is theta0


def test_what_an_oracle_cannot_decide_ends_the_run_as_undecided() -> None:
    def undecidable(frozen: FrozenData, theta: tuple[Real, ...]) -> list[Any]:
        if theta[0] > F(1, 2):
            raise eg.UndecidedError("is it?", "[-1, 1]", "unknown", False)
        return [2]

    outcome = procedure(gradient=undecidable)
    assert (outcome.status, outcome.theta[0].as_fraction()) == ("undecided", F(5, 8))
    assert outcome.undecided is not None
    assert outcome.counts.gradient_attempts == 2


def test_frozen_data_hold_the_draws_and_their_advantages() -> None:
    seen: list[FrozenData] = []

    def gradient(frozen: FrozenData, theta: tuple[Real, ...]) -> list[Any]:
        seen.append(frozen)
        return [0]

    procedure(gradient=gradient, outer_iterations=2, inner_steps=1)
    assert [frozen.t for frozen in seen] == [1, 2]
    assert seen[0].draws == (("a", "b"),)
    assert [[a.as_fraction() for a in group] for group in seen[0].advantages] == [[1, -1]]


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"theta0": [0.5]}, eg.InexactInputError, r"theta0\[0\]: 0.5"),
        ({"theta0": [2]}, eg.ThetaError, "lies in the open domain"),
        ({"group_size": 1}, eg.UpdateError, "at least 2"),
        ({"inner_steps": True}, eg.UpdateError, "at least 1"),
        ({"step_size": 0}, eg.UpdateError, "step sizes are positive"),
        ({"prompts": []}, eg.PromptError, "non-empty"),
        ({"prompts": ["q", "q"]}, eg.PromptError, "distinct"),
        ({"gradient": lambda frozen, theta: [1, 2]}, eg.InputError, "one number for each of the 1 parameters"),
        ({"gradient": lambda frozen, theta: [0.5]}, eg.InexactInputError, "gradient at outer iteration 1, inner step 1, entry 1: 0.5"),
        ({"domain": lambda theta: 1}, eg.InputError, "returns True or False"),
        ({"reward": lambda prompt, response: 0.1}, eg.InexactInputError, "reward"),
    ],
)
def test_what_callables_return_is_checked(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        procedure(**changes)
