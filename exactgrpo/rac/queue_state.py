"""A queue of late rewards as JSON data, to resume a training run."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exactgrpo.errors import InputError, LimitError, ParseError
from exactgrpo.numbers.inputs import listed, whole
from exactgrpo.rac.correction import Signal
from exactgrpo.rac.queue_channels import rollout_name, step_number
from exactgrpo.rac.queue_numbers import kind_named

if TYPE_CHECKING:
    from exactgrpo.rac.queue import DelayQueue

FORMAT = "exactgrpo.delay-queue/1"
MAX_BYTES = 2**30
_FUNCTION = "function"
_COUNT_KEYS = {"injected", "dropped"}
_KEYS = {"format", "numbers", "channels", "horizon", "drain", "offset", "floor", "ceiling", "step", "issued", "counts", "signals"}


def state_of(queue: DelayQueue) -> dict[str, Any]:
    """The state of a queue as JSON data. Signals are rows (number, step, rollout, channel), and (arrival, ratio, residual) if arrived."""
    written = queue._numbers.written

    def bound(x: Any, place: str) -> Any:
        return None if x is None else written(x, place)

    def weights(name: str, given: Any) -> Any:
        if given is None:
            return None
        if not isinstance(given, dict):
            return _FUNCTION
        return {str(d): written(w, f"channel {name!r}: weights[{d}]") for d, w in given.items()}

    def row(x: Signal) -> list[Any]:
        known = [x.number, x.step, x.rollout, x.channel]
        place = f"signal {x.number}"
        return known if x.arrival is None else [*known, x.arrival, written(x.ratio, place), written(x.residual, place)]

    floor, ceiling = queue._clip
    return {
        "format": FORMAT,
        "numbers": queue._numbers.name,
        "channels": {
            name: {"gain": written(x.gain, f"channel {name!r}: gain"), "weights": weights(name, x.weights)}
            for name, x in queue._channels.items()
        },
        "horizon": queue._horizon,
        "drain": queue._drain,
        "offset": queue._offset,
        "floor": bound(floor, "floor"),
        "ceiling": bound(ceiling, "ceiling"),
        "step": queue._now,
        "issued": queue._issued,
        "counts": {name: {key: row[key] for key in sorted(_COUNT_KEYS)} for name, row in queue._counts.items()},
        "signals": [row(x) for x in queue._signals()],
    }


def restored(kind: type[DelayQueue], state: Any, weights: Any) -> DelayQueue:
    """The queue with this state, every part of it checked."""
    data = _table(state, "state", _KEYS)
    if data["format"] != FORMAT:
        raise InputError("format", data["format"], f"this version reads {FORMAT!r}")
    queue = kind(
        _channels(data["channels"], weights),
        numbers=kind_named(data["numbers"]),
        **{key: data[key] for key in ("horizon", "drain", "offset", "floor", "ceiling")},
    )
    queue._now = step_number(data["step"], "step")
    if queue.end is not None and queue._now > queue.end:
        raise InputError("step", queue._now, f"at most {queue.end}: horizon + drain")
    counts = _table(data["counts"], "counts", set(queue._channels))
    for name, row in counts.items():
        for key, count in _table(row, f"counts of {name!r}", _COUNT_KEYS).items():
            queue._counts[name][key] = whole(count, f"counts of {name!r}: {key}", least=0)
    issued = whole(data["issued"], "issued", least=0)
    last = -1
    for i, row in enumerate(listed(data["signals"], "signals")):
        signal = _signal(queue, listed(row, f"signals[{i}]"), f"signals[{i}]")
        if not last < signal.number < issued:
            raise InputError(f"signals[{i}]: number", signal.number, f"numbers ascend and are below issued = {issued}")
        last = signal.number
        queue._put(signal)
    if queue.counts().enqueued != issued:
        raise InputError("issued", issued, f"the signals and counts of the state say {queue.counts().enqueued}")
    queue._issued = issued
    return queue


def _signal(queue: DelayQueue, row: Any, place: str) -> Signal:
    if len(row) not in (4, 7):
        raise InputError(place, f"{len(row)} entries", "number, step, rollout, channel, and if arrived: arrival, ratio, residual")
    number, step = whole(row[0], f"{place}: number", least=0), step_number(row[1], f"{place}: step")
    latest = queue._now if queue._horizon is None else min(queue._now, queue._horizon - 1)
    if step > latest:
        raise InputError(f"{place}: step", step, f"at most {latest}: the rollout is made already")
    signal = Signal(rollout_name(row[2], f"{place}: rollout"), queue._known(row[3]), number, step)
    if len(row) == 4:
        return signal
    arrival = step_number(row[4], f"{place}: arrival", least=step)
    if arrival + queue._offset < queue._now:
        raise InputError(f"{place}: arrival", arrival, f"a signal that is still there is injected at step {queue._now} or later")
    ratio = queue._numbers.read(row[5], f"{place}: ratio")
    if ratio < 0:
        raise InputError(f"{place}: ratio", row[5], "not negative")
    return queue._arrived(signal, arrival, row[6], ratio)


def _channels(channels: Any, weights: Any) -> dict[str, Any]:
    if not isinstance(weights, Mapping):
        raise InputError("weights", weights, "a table from channels to functions")
    out: dict[str, Any] = {}
    for name, channel in _table(channels, "channels", None).items():
        place = f"channel {name!r}"
        data, ages = _table(channel, place, {"gain", "weights"}), channel["weights"]
        if ages == _FUNCTION:
            if name not in weights:
                raise InputError(f"{place}: weights", _FUNCTION, f"a state holds no function: give it again, weights={{{name!r}: ...}}")
            ages = weights[name]
        elif ages is not None:
            ages = {_delay(d, place): w for d, w in _table(ages, f"{place}: weights", None).items()}
        out[name] = {"gain": data["gain"], "weights": ages}
    for name in weights:
        if name not in out or out[name]["weights"] is not weights[name]:
            raise InputError("weights", name, "a channel of the state whose weights are a function")
    return out


def _delay(key: str, place: str) -> int:
    if not key.isascii() or not key.isdigit() or len(key) > 10 or str(int(key)) != key:
        raise InputError(f"{place}: weights", key, "a delay is written in digits")
    return int(key)


def _table(data: Any, place: str, keys: set[str] | None) -> dict[str, Any]:
    if not isinstance(data, Mapping) or not all(isinstance(key, str) for key in data):
        raise InputError(place, data, "a table")
    if keys is not None and set(data) != keys:
        off = sorted(set(data) ^ keys)[0]
        raise InputError(place, off, "this key is missing" if off in keys else "unknown key")
    return dict(data)


def read_state(path: str | os.PathLike[str]) -> Any:
    """The data of a JSON file that `save` wrote; at most 1 GB is read."""
    name = Path(path)
    if name.exists() and not name.is_file():
        raise InputError("file name", str(path), "a regular file is needed")
    try:
        with name.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise InputError("file name", str(path), f"the file cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > MAX_BYTES:
        raise LimitError("file size", f"more than {MAX_BYTES} bytes", "a state has at most 1 GB")
    try:
        return json.loads(data, object_pairs_hook=_once)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise ParseError("file", data[:40].decode("utf-8", "replace"), f"not JSON: {error}"[:200]) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ParseError("file", [key for key, _ in pairs][:4], "a key stands twice in one object")
    return table
