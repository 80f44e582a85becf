"""From problems back to files, and JSON files that are whole or not there."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from exactgrpo.errors import InputError, PolicyError
from exactgrpo.numbers.arithmetic import Column, Exact
from exactgrpo.numbers.real import Real
from exactgrpo.policies.expression import Expressions
from exactgrpo.policies.rational import Rational
from exactgrpo.policies.simplex import Simplex
from exactgrpo.policies.softmax import Softmax
from exactgrpo.policies.terms import Terms
from exactgrpo.update.draws import Seed, Tape
from exactgrpo.update.problem import Problem
from exactgrpo.update.reference import ReferenceLogits, ReferenceMasses, ReferenceParameter


def problem_data(problem: Problem) -> dict[str, Any]:
    """JSON data of kind "update" that `loaded` and `problem` take back to the same problem.

    Raises PolicyError for a family that files do not describe, or tokens, whose tables are not kept; InputError for a number
    without a short exact text.
    """
    rows = problem.family.rows
    prompts: list[dict[str, Any]] = [
        {"name": p.name, "responses": list(p.responses), "rewards": [_number(r, "reward") for r in p.rewards]} for p in problem.prompts
    ]
    data: dict[str, Any] = {"kind": "update", "prompts": prompts, "policy": _policy(problem)}
    match problem.reference:
        case ReferenceMasses(masses=column):
            _place(prompts, "reference", column, rows)
        case ReferenceLogits(logits=column):
            _place(prompts, "reference_logits", column, rows)
        case ReferenceParameter(theta=theta):
            data["reference"] = {"theta": [_number(x, "reference") for x in theta]}
        case None:
            pass
        case other:
            raise InputError("reference", type(other).__name__, "a reference that files describe")
    data["update"] = {
        "group_size": problem.group_size,
        "outer_iterations": problem.outer_iterations,
        "inner_steps": problem.inner_steps,
        "epsilon_low": _number(problem.epsilon_low, "epsilon"),
        "epsilon_high": _number(problem.epsilon_high, "epsilon"),
        "beta": _number(problem.beta, "beta"),
        "step_size": _steps(problem),
        "draws": _draws(problem),
    }
    return data


def write_json(path: str | os.PathLike[str], data: Any) -> None:
    """Write JSON to a file: a temporary file beside it first, then a rename. InputError if that cannot be done."""
    target = Path(path)
    name = None
    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            name = file.name
            json.dump(data, file, indent=2, ensure_ascii=False, allow_nan=False)
            file.write("\n")
        Path(name).replace(target)
    except OSError as error:
        raise InputError("file name", str(path), f"the file cannot be written: {error.strerror}") from None
    finally:
        if name is not None:
            Path(name).unlink(missing_ok=True)


def _number(x: Exact, place: str) -> str:
    if isinstance(x, Fraction):
        return str(x)
    text = Real(x).exact()
    if text is None:
        raise InputError(place, repr(Real(x)), "a number with a short exact text")
    return text


def _place(prompts: list[dict[str, Any]], key: str, column: Column, rows: Iterable[range]) -> None:
    for prompt, row in zip(prompts, rows, strict=True):
        prompt[key] = [_number(column[i], key) for i in row]


def _steps(problem: Problem) -> Any:
    texts, K = [_number(x, "step_size") for x in problem.step_sizes], problem.inner_steps
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


def _policy(problem: Problem) -> dict[str, Any]:
    family, names = problem.family, problem.parameters
    data: dict[str, Any] = {"parameters": list(names), "theta0": [_number(x, "theta0") for x in problem.theta0]}
    of_prompt = [(p.name, row) for p, row in zip(problem.prompts, family.rows, strict=True)]
    match family:
        case Simplex(inequalities=bounds):
            return {"family": "simplex", **data, "domain": _domain(bounds, names)}
        case Rational(weights=weights, inequalities=bounds):
            texts = _polynomials(weights, names)
            by_prompt = {q: texts[row.start : row.stop] for q, row in of_prompt}
            return {"family": "rational", **data, "weights": by_prompt, "domain": _domain(bounds, names)}
        case Softmax(features=matrix, base=base, inequalities=bounds):
            dense = [[_number(dict(row).get(j, Fraction(0)), "feature") for j in range(family.size)] for row in matrix.rows]
            data |= {"family": "softmax", "domain": _domain(bounds, names)}
            data["features"] = {q: dense[row.start : row.stop] for q, row in of_prompt}
            if base is not None:
                data["base"] = {q: [_number(base[i], "base") for i in row] for q, row in of_prompt}
            return data
        case Expressions(weights=formulas, inequalities=bounds):
            data |= {"family": "expression", "weights": {q: [str(formulas[i]) for i in row] for q, row in of_prompt}}
            return {**data, "domain": [f"{bound} > 0" for bound in bounds]}
        case other:
            raise PolicyError("policy", type(other).__name__, "a family that can be written: simplex, rational, softmax or expression")


def _domain(bounds: Terms | None, names: Sequence[str]) -> list[str]:
    return [] if bounds is None else [f"{text} > 0" for text in _polynomials(bounds, names)]


def _polynomials(terms: Terms, names: Sequence[str]) -> list[str]:
    products = list(terms.product)

    def text(k: int) -> str:
        factors = [names[int(terms.path[i])] for i in products[k]]
        return " * ".join([f"({_number(terms.coefficient[k], 'weight')})", *factors])

    return [" + ".join(map(text, row)) or "0" for row in terms.sum]
