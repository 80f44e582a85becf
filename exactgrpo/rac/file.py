"""Files of kind "rac": a kernel of delayed channels and the joint outcomes of a rollout, read into a model."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from exactgrpo.errors import InputError
from exactgrpo.numbers.inputs import whole
from exactgrpo.numbers.real import Real
from exactgrpo.rac import age
from exactgrpo.rac.clip import clip_range
from exactgrpo.rac.delay_law import DelayLaw
from exactgrpo.rac.kernel import Channel, Kernel
from exactgrpo.rac.latency import latency_law
from exactgrpo.rac.outcomes import Model, Outcome
from exactgrpo.spec.reading import located, parse_data, read_text

KIND = "rac"
Clip = tuple[Real | None, Real | None]
"""Floor and ceiling."""
_DELAYS = {"deterministic": ("delay",), "geometric": ("p", "max", "rest")}
_AGES: dict[str, tuple[Callable[..., age.AgeWeight], tuple[str, ...]]] = {
    "none": (age.none, ()),
    "exponential": (age.exponential, ("tau",)),
    "geometric": (age.geometric, ("ratio",)),
    "hyperbolic": (age.hyperbolic, ("rate",)),
    "table": (age.table, ("weights",)),
    "inverse-arrival": (age.inverse_arrival, ()),
}


def load_model(path: str | os.PathLike[str]) -> Model:
    """The model of a .toml or .json file of kind "rac"; errors name the file.

    Keys: horizon; offset (0 or 1, by default 1); drain (by default 0); clip = {floor, ceiling}, applied to every ratio; channels, each with
    name, delay, age and gain; outcomes, each with probability, residual by channel, and as needed ratio (pi/mu at arrival, a number or one
    for each delay; by default 1) or behaviour and target masses, delay (a law given this outcome), context, step. Outcomes of a step
    replace those without one. A delay is a table from delays and "never" to probabilities, {law = "geometric", p, max, rest},
    {law = "deterministic", delay} or {file, column, unit, failed, where}, a CSV beside this file.
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
    _keys(data, ("kind", "horizon", "channels", "outcomes"), ("offset", "drain", "clip"), "")
    if data["kind"] != KIND:
        raise InputError("kind", str(data["kind"]), f"the kind of a file of delayed rewards is {KIND!r}")
    channels = [_channel(x, f"channels[{i}]", folder) for i, x in enumerate(_list(data["channels"], "channels"))]
    horizon = whole(data["horizon"], "horizon", least=1)
    kernel = Kernel.of(channels, horizon=horizon, offset=data.get("offset", 1), drain=data.get("drain", 0))
    bounds = _table(data.get("clip", {}), "clip")
    _keys(bounds, (), ("floor", "ceiling"), "clip")
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
    return Model.of(kernel, [by_step.get(step, shared) for step in range(horizon)] if by_step else shared)


def _channel(entry: Any, place: str, folder: Path) -> Channel:
    table = _table(entry, place)
    _keys(table, ("name", "delay"), ("age", "gain"), place)
    weight = _age(_table(table.get("age", {"law": "none"}), f"{place}.age"), f"{place}.age")
    with located(place):
        return Channel.of(table["name"], _delay(table["delay"], "delay", folder), weight=weight, gain=table.get("gain", 1))


def _delay(given: Any, place: str, folder: Path) -> DelayLaw:
    if not isinstance(given, Mapping):
        return DelayLaw.of({given: 1}, place)
    if "file" in given:
        _keys(given, ("file", "column", "unit"), ("failed", "where"), place)
        if not isinstance(given["file"], str):
            raise InputError(f"{place}.file", str(given["file"]), "the name of a CSV file")
        options = {key: given[key] for key in ("column", "unit", "failed", "where") if key in given}
        return latency_law(folder / given["file"], **options)
    if "law" not in given:
        return DelayLaw.of(given, place)
    law, parameters = _law(given, _DELAYS, place)
    with located(place):
        return DelayLaw.deterministic(**parameters) if law == "deterministic" else DelayLaw.geometric(**parameters)


def _age(given: Mapping[str, Any], place: str) -> age.AgeWeight:
    law, parameters = _law(given, {name: keys for name, (_, keys) in _AGES.items()}, place)
    with located(place):
        return _AGES[law][0](*parameters.values())


def _law(given: Mapping[str, Any], known: Mapping[str, tuple[str, ...]], place: str) -> tuple[str, dict[str, Any]]:
    law = given.get("law")
    if not isinstance(law, str) or law not in known:
        raise InputError(f"{place}.law", str(law), f"one of {', '.join(known)}")
    needed = tuple(key for key in known[law] if key != "rest")
    _keys(given, ("law", *needed), known[law][len(needed) :], place)
    return law, {key: given[key] for key in known[law] if key in given}


def _outcome(entry: Mapping[str, Any], channels: list[Channel], clip: Clip, place: str, folder: Path) -> Outcome:
    _keys(entry, ("probability", "residual"), ("ratio", "behaviour", "target", "delay", "context", "step"), place)
    ratios = dict(_table(entry.get("ratio", {}), f"{place}.ratio"))
    if ("behaviour" in entry) != ("target" in entry) or (ratios and "target" in entry):
        raise InputError(place, "behaviour, target, ratio", "either ratios, or a behaviour and a target mass")
    if "target" in entry:
        behaviour, target = (Real.of(entry[key], f"{place}.{key}") for key in ("behaviour", "target"))
        if behaviour <= 0:
            raise InputError(f"{place}.behaviour", repr(behaviour), "what was drawn has a positive mass")
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
    number, (floor, ceiling) = Real.of(ratio, place), clip
    if number < 0:
        raise InputError(place, repr(number), "a ratio is not negative")
    number = number if floor is None or number > floor else floor
    return number if ceiling is None or number < ceiling else ceiling


def _table(given: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise InputError(place, str(given)[:100], "a table is needed")
    return given


def _list(given: Any, place: str) -> list[Any]:
    if not isinstance(given, list) or not given:
        raise InputError(place, str(given)[:100], "a list of at least one table")
    return given


def _keys(table: Mapping[str, Any], needed: tuple[str, ...], more: tuple[str, ...], place: str) -> None:
    known = (*needed, *more)
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(str(key)[:100], known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"the keys here are {', '.join(known)}"
            raise InputError(f"{place}.{key}".removeprefix("."), str(key), f"unknown key; {hint}")
    for key in needed:
        if key not in table:
            raise InputError(place or "file", key, "this key is missing")
