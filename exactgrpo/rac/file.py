"""Files of kind "rac": a kernel of delayed channels and the joint outcomes of a rollout, read into a model."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from exactgrpo.errors import InputError
from exactgrpo.numbers.inputs import whole
from exactgrpo.numbers.real import Real
from exactgrpo.rac import age
from exactgrpo.rac.clip import clip_range, clipped_ratio
from exactgrpo.rac.delay_law import DelayLaw
from exactgrpo.rac.discretised import PARAMETERS, discretised
from exactgrpo.rac.kernel import Channel, Kernel
from exactgrpo.rac.latency import latency_law
from exactgrpo.rac.outcomes import Model, Outcome
from exactgrpo.rac.schema import AGE_LAWS, CHANNEL, CLIP, DELAY_LAWS, FILE, LATENCY_FILE, OUTCOME, Schema
from exactgrpo.rac.verdict import Verdicts, decide_model
from exactgrpo.spec.keys import check_keys
from exactgrpo.spec.reading import located, parse_data, read_text

Clip = tuple[Real | None, Real | None]
"""Floor and ceiling."""
_AGES: dict[str, Callable[..., age.AgeWeight]] = {
    "none": age.none,
    "exponential": age.exponential,
    "geometric": age.geometric,
    "hyperbolic": age.hyperbolic,
    "table": age.table,
    "inverse-arrival": age.inverse_arrival,
    "mse-optimal": age.mse_optimal,
}


def load_model(path: str | os.PathLike[str]) -> Model:
    """The model of a .toml or .json file of kind "rac"; errors name the file. `decide_data` also reads its key `expected`.

    Keys: horizon; offset (0 or 1, by default 1); drain (by default 0); clip = {floor, ceiling}, applied to every ratio; channels, each with
    name, delay, age and gain; outcomes, each with probability, residual by channel, and as needed ratio (pi/mu at arrival, a number or one
    for each delay; by default 1) or behaviour and target masses, delay (a law given this outcome), context, step. Outcomes of a step
    replace those without one. A delay is a number of steps, a table from delays and "never" to probabilities, {law = ..., ...} by the
    methods of `DelayLaw` or by `discretised`, or {file, column, unit, failed, where}, a CSV beside this file. Every key stands in
    `exactgrpo schema rac`.
    """
    with located(str(path)):
        return model_of(parse_data(*read_text(path)), Path(path).parent)


def model_of(data: Mapping[str, Any], folder: Path) -> Model:
    """The model that plain data describe; latency files are looked for in the folder.

    >>> channel = {"name": "judge", "delay": {"0": "1/2", "1": "1/2"}}
    >>> outcome = {"probability": 1, "residual": {"judge": 1}}
    >>> model_of({"kind": "rac", "horizon": 2, "offset": 0, "channels": [channel], "outcomes": [outcome]}, Path()).kernel.slack(0, 1)
    Real('1/2')
    """
    _keys(data, FILE, "")
    if data["kind"] != "rac":
        raise InputError("kind", str(data["kind"]), "the kind of a file of delayed rewards is 'rac'")
    channels = [_channel(x, f"channels[{i}]", folder) for i, x in enumerate(_list(data["channels"], "channels"))]
    horizon = whole(data["horizon"], "horizon", least=1)
    kernel = Kernel.of(channels, horizon=horizon, offset=data.get("offset", 1), drain=data.get("drain", 0))
    bounds = _table(data.get("clip", {}), "clip")
    _keys(bounds, CLIP, "clip")
    with located("clip"):
        clip = clip_range(bounds.get("ceiling"), bounds.get("floor"))
    shared: list[Outcome] = []
    by_step: dict[int, list[Outcome]] = {}
    for i, entry in enumerate(_list(data["outcomes"], "outcomes")):
        place = f"outcomes[{i}]"
        outcome = _outcome(_table(entry, place), channels, clip, place, folder)
        if "step" not in entry:
            shared.append(outcome)
            continue
        step = whole(entry["step"], f"{place}.step", least=0)
        if step >= horizon:
            raise InputError(f"{place}.step", step, f"a step from 0 to {horizon - 1}")
        by_step.setdefault(step, []).append(outcome)
    if shared and len(by_step) == horizon:
        raise InputError("outcomes", f"{len(shared)} without a step", "every step has outcomes of its own")
    return Model.of(kernel, [by_step.get(step, shared) for step in range(horizon)] if by_step else shared)


def decide_data(data: Mapping[str, Any], folder: Path) -> Verdicts:
    """The verdicts on the model that plain data describe, and whether they are those that the data expect."""
    return decide_model(model_of(data, folder), expected=_table(data.get("expected", {}), "expected"))


def _channel(entry: Any, place: str, folder: Path) -> Channel:
    table = _table(entry, place)
    _keys(table, CHANNEL, place)
    weight = _age(_table(table.get("age", {"law": "none"}), f"{place}.age"), f"{place}.age")
    with located(place):
        return Channel.of(table["name"], _delay(table["delay"], "delay", folder), weight=weight, gain=table.get("gain", 1))


def _delay(given: Any, place: str, folder: Path) -> DelayLaw:
    if not isinstance(given, Mapping):
        with located(place):
            return DelayLaw.deterministic(whole(given, "delay", least=0))
    if "file" in given:
        _keys(given, LATENCY_FILE, place)
        if not isinstance(given["file"], str):
            raise InputError(f"{place}.file", str(given["file"]), "the name of a CSV file")
        options = {key: given[key] for key in ("column", "unit", "failed", "where") if key in given}
        return latency_law(folder / given["file"], **options)
    if "law" not in given:
        return DelayLaw.of(given, place)
    law, parameters = _law(given, DELAY_LAWS, place)
    with located(place):
        if law in PARAMETERS:
            return discretised(law, **parameters)  # type: ignore[arg-type]
        return DelayLaw.deterministic(**parameters) if law == "deterministic" else DelayLaw.geometric(**parameters)


def _age(given: Mapping[str, Any], place: str) -> age.AgeWeight:
    law, parameters = _law(given, AGE_LAWS, place)
    with located(place):
        return _AGES[law](**parameters)


def _law(given: Mapping[str, Any], known: Mapping[str, Schema], place: str) -> tuple[str, dict[str, Any]]:
    law = given.get("law")
    if not isinstance(law, str) or law not in known:
        raise InputError(f"{place}.law", str(law), f"one of {', '.join(known)}")
    _keys(given, known[law], place)
    return law, {key: x for key, x in given.items() if key != "law"}


def _outcome(entry: Mapping[str, Any], channels: list[Channel], clip: Clip, place: str, folder: Path) -> Outcome:
    _keys(entry, OUTCOME, place)
    ratios = dict(_table(entry.get("ratio", {}), f"{place}.ratio"))
    if ("behaviour" in entry) != ("target" in entry) or (ratios and "target" in entry):
        raise InputError(place, "behaviour, target, ratio", "either ratios, or a behaviour and a target mass")
    if "target" in entry:
        behaviour, target = (Real.of(entry[key], f"{place}.{key}") for key in ("behaviour", "target"))
        if behaviour <= 0:
            raise InputError(f"{place}.behaviour", repr(behaviour), "what was drawn has a positive mass")
        if target < 0:
            raise InputError(f"{place}.target", repr(target), "a mass is not negative")
        ratios = {channel.name: target / behaviour for channel in channels}
    for channel in channels:
        given = ratios.get(channel.name, 1)
        where = f"{place}.ratio.{channel.name}"
        ratios[channel.name] = [_clipped(x, clip, where) for x in given] if isinstance(given, list) else _clipped(given, clip, where)
    delays = {name: _delay(x, f"{place}.delay.{name}", folder) for name, x in _table(entry.get("delay", {}), f"{place}.delay").items()}
    return Outcome.of(
        entry["probability"],
        channels,
        residual=_table(entry["residual"], f"{place}.residual"),
        ratio=ratios,
        delay=delays,
        context=entry.get("context", ""),
        place=place,
    )


def _clipped(ratio: Any, clip: Clip, place: str) -> Real:
    with located(place):
        return clipped_ratio(ratio, floor=clip[0], ceiling=clip[1])


def _table(given: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise InputError(place, str(given)[:100], "a table is needed")
    return given


def _list(given: Any, place: str) -> list[Any]:
    if not isinstance(given, list) or not given:
        raise InputError(place, str(given)[:100], "a list of at least one table")
    return given


def _keys(table: Mapping[str, Any], schema: Schema, place: str) -> None:
    check_keys(table, schema["required"], schema["properties"], place)
