"""Problems from Python: what `Problem.of` and the constructors below it accept, and what they say when they do not."""

from __future__ import annotations

from typing import Any

import pytest

from exactgrpo.errors import PromptError
from exactgrpo.policies.simplex import Simplex
from exactgrpo.update.draws import Seed
from exactgrpo.update.problem import Problem, Prompt


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
