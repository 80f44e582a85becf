"""Counterexamples as files: what `falsify` writes and `verify` replays."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

from exactgrpo.claims.claim import Claim, Sides, shown
from exactgrpo.claims.registry import bundled, find_claim, is_bundled
from exactgrpo.claims.search import Counterexample, violated
from exactgrpo.errors import ClaimError, InputError
from exactgrpo.numbers.rational import exact
from exactgrpo.numbers.real import Real
from exactgrpo.numbers.written import number_text
from exactgrpo.update.problem import Problem

Status = Literal["reproduced", "vacuous", "not reproduced"]
FORMAT = "exactgrpo.counterexample/1"
KIND = "counterexample"
ONLY_BUNDLED = "only counterexamples to claims that `exactgrpo claims` lists are kept and computed again"
_KEYS = {"format", "kind", "claim", "dropped", "instance", "left", "right"}


def counterexample_data(claim: Claim, found: Counterexample, *, dropped: Sequence[str] = ()) -> dict[str, Any]:
    """JSON data of a counterexample to a bundled claim; numbers are exact texts."""
    if not is_bundled(claim):
        raise ClaimError("claim", claim.id, f"not a bundled claim; {ONLY_BUNDLED}")
    return {
        "format": FORMAT,
        "kind": KIND,
        "claim": claim.id,
        "dropped": [claim.hypothesis(name) for name in dropped],
        "instance": {name: _encoded(value, name) for name, value in found.instance.items()},
        "left": _side_text(found.sides.left),
        "right": _side_text(found.sides.right),
    }


def _side_text(side: Any) -> str | None:
    return None if side is None else shown(side)


@dataclass(frozen=True, slots=True)
class Replay:
    """A saved counterexample, computed again: both sides if it satisfies the hypotheses that it does not drop, and whether those are
    the saved ones.
    """

    claim: Claim
    dropped: tuple[str, ...]
    instance: Mapping[str, Any]
    sides: Sides | None
    is_same: bool
    violated: tuple[str, ...]

    @property
    def status(self) -> Status:
        """``reproduced``: it satisfies the hypotheses and not the conclusion, with the sides that were saved; ``vacuous``: it does not
        satisfy the hypotheses, so there are no sides."""
        if self.sides is None:
            return "vacuous"
        return "reproduced" if not self.sides.holds and self.is_same else "not reproduced"

    @property
    def is_reproduced(self) -> bool:
        """Whether the status says so."""
        return self.status == "reproduced"

    @property
    def is_surprise(self) -> bool:
        """It is not reproduced, or it refutes a claim that is expected to be true."""
        return self.status == "not reproduced" or (self.is_reproduced and self.claim.expected and not self.violated)


def replay(data: Mapping[str, Any]) -> Replay:
    """Check the data of a saved counterexample and compute it again."""
    for key in data:
        if key not in _KEYS:
            raise InputError(key, key, f"unknown key; the keys of a counterexample are {', '.join(sorted(_KEYS))}")
    if data.get("format") != FORMAT:
        raise InputError("format", str(data.get("format")), f"this version reads {FORMAT!r}")
    identity, dropped, instance = data.get("claim"), data.get("dropped", []), data.get("instance")
    if not isinstance(identity, str):
        raise InputError("claim", identity, "the id of a bundled claim")
    if identity not in bundled():
        raise ClaimError("claim", identity, f"no bundled claim has this id; {ONLY_BUNDLED}")
    claim = find_claim(identity)
    if not isinstance(dropped, list) or any(not isinstance(name, str) or name not in claim.hypotheses for name in dropped):
        raise InputError("dropped", dropped, f"a list of hypotheses of the claim: {', '.join(claim.hypotheses) or 'it has none'}")
    if not isinstance(instance, dict) or set(instance) != set(claim.variables):
        raise InputError("instance", instance, f"a table with a value for each variable: {', '.join(claim.variables)}")
    values = {name: _decoded(value, f"instance.{name}") for name, value in instance.items()}
    claim.check(values, "instance")
    sides = claim.at(values) if claim.satisfied(values, without=dropped) else None
    is_same = sides is not None and all(data.get(k) in (None, _side_text(getattr(sides, k))) for k in ("left", "right"))
    return Replay(claim, tuple(dropped), values, sides, is_same, violated(claim, values, dropped))


def write_counterexample(path: str | os.PathLike[str], claim: Claim, found: Counterexample, *, dropped: Sequence[str] = ()) -> None:
    """Write a counterexample to a .json file: a temporary file first, then a rename."""
    from exactgrpo.spec.json_file import write_json

    write_json(path, counterexample_data(claim, found, dropped=dropped))


def _encoded(value: Any, place: str) -> Any:
    match value:
        case bool():
            return value
        case int() | Fraction():
            return str(value)
        case str():
            return {"text": value}
        case list():
            return [_encoded(x, f"{place}[{i}]") for i, x in enumerate(value)]
        case tuple():
            return {"tuple": [_encoded(x, f"{place}[{i}]") for i, x in enumerate(value)]}
        case Mapping():
            return {"table": [[str(key), _encoded(x, f"{place}.{key}")] for key, x in value.items()]}
        case Real():
            return number_text(value.expression, place)
        case Problem():
            from exactgrpo.spec.writing import problem_data

            return {"problem": problem_data(value)}
    raise ClaimError(place, shown(value), "this kind of value cannot be written to a file")


def _decoded(value: Any, place: str) -> Any:
    match value:
        case bool():
            return value
        case str() | int() | Decimal():
            number = exact(value, place)
            return number if isinstance(number, Fraction) else Real.of(number)
        case list():
            return [_decoded(x, f"{place}[{i}]") for i, x in enumerate(value)]
        case {"text": str(text), **rest} if not rest:
            return text
        case {"tuple": list(entries), **rest} if not rest:
            return tuple(_decoded(x, f"{place}[{i}]") for i, x in enumerate(entries))
        case {"table": list(entries), **rest} if not rest and all(isinstance(e, list) and len(e) == 2 for e in entries):
            return {str(key): _decoded(x, f"{place}.{key}") for key, x in entries}
        case {"problem": dict(data), **rest} if not rest:
            from exactgrpo.spec import loaded, problem

            return problem(loaded(data))
    raise InputError(place, value, "a number as exact text, true or false, a list, or a table with text, tuple, table or problem")
