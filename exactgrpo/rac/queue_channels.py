"""What a queue of late rewards is told: channels with gain and age weights, steps, and names of rollouts."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from exactgrpo.errors import InputError, LimitError
from exactgrpo.numbers.inputs import listed, whole
from exactgrpo.rac.queue_numbers import Number, Numbers

AgeWeight: TypeAlias = Callable[[int, int], Any]
Rollout: TypeAlias = int | str

MAX_STEP = 10**9
MAX_CHANNELS = 1000
MAX_TABLE = 1_000_000
"""Age weights of one channel, if they are given as a table."""
MAX_NAME = 1000
MAX_ROLLOUT = 2**63


@dataclass(frozen=True, slots=True)
class QueueChannel:
    """One source of late rewards: its gain, and its age weights as a function of (step, delay), as a table by delay, or None for one."""

    gain: Number
    weights: AgeWeight | dict[int, Number] | None

    def weight(self, step: int, delay: int, arithmetic: Numbers, place: str) -> Number:
        """w(step, delay), which is not negative."""
        if self.weights is None:
            return arithmetic.one
        if isinstance(self.weights, dict):
            if delay not in self.weights:
                raise InputError(place, f"delay {delay}", "the table has no weight for this delay")
            return self.weights[delay]
        return nonnegative(arithmetic, self.weights(step, delay), f"{place}({step}, {delay})")


def read_channels(channels: Any, arithmetic: Numbers) -> dict[str, QueueChannel]:
    """The channels by name, checked: gains and weights are not negative."""
    if not isinstance(channels, Mapping) or not channels:
        raise InputError("channels", channels, "a table from the name of each channel to its gain and weights")
    if len(channels) > MAX_CHANNELS:
        raise LimitError("channels", f"{len(channels)} channels", f"at most {MAX_CHANNELS}")
    out = {}
    for name, data in channels.items():
        if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or not name.isprintable():
            raise InputError("channels", name, f"a name of 1 to {MAX_NAME} printable characters")
        place = f"channel {name!r}"
        if not isinstance(data, Mapping) or not set(data) <= {"gain", "weights"}:
            raise InputError(place, data, "a table with gain and weights, both optional")
        gain = nonnegative(arithmetic, data.get("gain", 1), f"{place}: gain")
        out[name] = QueueChannel(gain, _weights(arithmetic, data.get("weights"), f"{place}: weights"))
    return out


def _weights(arithmetic: Numbers, weights: Any, place: str) -> AgeWeight | dict[int, Number] | None:
    if weights is None:
        return None
    if callable(weights):
        function: AgeWeight = weights
        return function
    table = weights if isinstance(weights, Mapping) else listed(weights, place, "a function of (step, delay), or weights by delay")
    if len(table) > MAX_TABLE:
        raise LimitError(place, f"{len(table)} weights", f"at most {MAX_TABLE}")
    pairs = table.items() if isinstance(table, Mapping) else enumerate(table)
    return {step_number(d, f"{place}: delay"): nonnegative(arithmetic, w, f"{place}[{d}]") for d, w in pairs}


def nonnegative(arithmetic: Numbers, x: Any, place: str) -> Number:
    """A number that is not negative."""
    number = arithmetic.read(x, place)
    if number < 0:
        raise InputError(place, x, "not negative")
    return number


def step_number(x: Any, place: str, *, least: int = 0) -> int:
    """A step, or a number of steps.

    >>> step_number(-1, "delay")
    Traceback (most recent call last):
    exactgrpo.errors.InputError: delay: -1: an integer of at least 0
    """
    step = whole(x, place, least=least)
    if step > MAX_STEP:
        raise LimitError(place, step, f"at most {MAX_STEP}")
    return step


def rollout_name(x: Any, place: str = "rollout") -> Rollout:
    """The name of a rollout: an integer, or a text that is not long."""
    if isinstance(x, str):
        if len(x) > MAX_NAME:
            raise LimitError(place, x, f"a name has at most {MAX_NAME} characters")
        return str(x)
    if isinstance(x, numbers.Integral) and not isinstance(x, bool):
        name = whole(x, place, least=-MAX_ROLLOUT)
        if name < MAX_ROLLOUT:
            return name
    raise InputError(place, x, "a rollout is named by a text, or by an integer of 64 bits")
