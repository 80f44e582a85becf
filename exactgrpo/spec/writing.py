"""From problems back to the data of a file."""

from __future__ import annotations

from typing import Any

from exactgrpo.errors import InputError
from exactgrpo.numbers.arithmetic import Column
from exactgrpo.numbers.written import number_text
from exactgrpo.spec.family_writing import family_data
from exactgrpo.spec.loading import loaded
from exactgrpo.update.draws import Seed, Tape
from exactgrpo.update.problem import Problem
from exactgrpo.update.reference import ReferenceLogits, ReferenceMasses, ReferenceParameter


def problem_data(problem: Problem) -> dict[str, Any]:
    """JSON data of kind "update", numbers as exact texts, that `loaded` and `problem` take back to the same problem.

    Raises PolicyError for a family that files do not describe, InputError for a reference, draws or names that they do not
    describe, and LimitError for a number without an exact text of reasonable length, each with its place.

    >>> from exactgrpo import Seed, Simplex, Prompt, Problem
    >>> written = problem_data(Problem.of(
    ...     prompts=[Prompt.of("q", ["a", "b"], [1, "sqrt(8)"])], family=Simplex.of([2]), theta0=["1/2"], group_size=2,
    ...     outer_iterations=1, inner_steps=3, epsilon="0.2", beta=0, step_size="1/16", draws=Seed(7),
    ... ))
    >>> written["prompts"][0]["rewards"], written["update"]["epsilon"], written["policy"]
    (['1', '2*sqrt(2)'], '1/5', {'family': 'simplex', 'parameters': ['theta1'], 'theta0': ['1/2']})
    """
    named = [(p.name, p.responses) for p in problem.prompts]
    policy = family_data(problem.family, problem.parameters, named)
    protocol = policy.pop("protocol", None)
    theta0 = [number_text(x, f"policy.theta0[{i}]") for i, x in enumerate(problem.theta0)]
    kind = policy.pop("family")
    data: dict[str, Any] = {"kind": "update"}
    if protocol is not None:
        data["protocol"] = protocol
    prompts: list[dict[str, Any]] = [
        {"name": p.name, "rewards": [number_text(r, f"prompts[{q}].rewards[{j}]") for j, r in enumerate(p.rewards)]}
        | ({"responses": list(p.responses)} if protocol is None else {})
        for q, p in enumerate(problem.prompts)
    ]
    data |= {"prompts": prompts, "policy": {"family": kind, "parameters": list(problem.parameters), "theta0": theta0, **policy}}
    _write_reference(problem, data)
    low, high = number_text(problem.epsilon_low, "update.epsilon_low"), number_text(problem.epsilon_high, "update.epsilon_high")
    data["update"] = {
        "group_size": problem.group_size,
        "outer_iterations": problem.outer_iterations,
        "inner_steps": problem.inner_steps,
        **({"epsilon": low} if low == high else {"epsilon_low": low, "epsilon_high": high}),
        "beta": number_text(problem.beta, "update.beta"),
        "step_size": _steps(problem),
        "draws": _draws(problem),
    }
    loaded(data)  # names and sizes that a file may not have are refused here
    return data


# ---- draws, step sizes, reference


def _write_reference(problem: Problem, data: dict[str, Any]) -> None:
    def place(key: str, column: Column) -> None:
        for q, (prompt, row) in enumerate(zip(data["prompts"], problem.family.rows, strict=True)):
            prompt[key] = [number_text(column[i], f"prompts[{q}].{key}[{j}]") for j, i in enumerate(row)]

    match problem.reference:
        case ReferenceMasses(masses=column):
            place("reference", column)
        case ReferenceLogits(logits=column):
            place("reference_logits", column)
        case ReferenceParameter(theta=theta):
            data["reference"] = {"theta": [number_text(x, f"reference.theta[{i}]") for i, x in enumerate(theta)]}
        case None:
            pass
        case other:
            raise InputError("reference", type(other).__name__, "a reference that files describe: masses, logits or a parameter")


def _steps(problem: Problem) -> Any:
    texts, K = [number_text(x, "update.step_size") for x in problem.step_sizes], problem.inner_steps
    return texts[0] if len(texts) == 1 else [texts[i : i + K] for i in range(0, len(texts), K)]


def _draws(problem: Problem) -> Any:
    match problem.draws:
        case Seed(seed=seed):
            return {"seed": int(seed)}
        case Tape(positions=positions):
            names = [p.responses for p in problem.prompts]
            return [[[names[q][y] for y in group] for q, group in enumerate(outer)] for outer in positions]
        case other:
            raise InputError("update.draws", type(other).__name__, "draws that files describe: a tape or a seed")


