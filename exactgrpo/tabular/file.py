"""Files of the tabular benchmark: an MDP with a fast and a slow reward, the delays of the slow one, and the constant of its age weight."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from exactgrpo.errors import InputError, LimitError
from exactgrpo.numbers.inputs import listed, whole
from exactgrpo.spec.keys import check_keys
from exactgrpo.spec.reading import located, parse_data, read_text
from exactgrpo.tabular.inputs import delays_in_steps, rational, short_text
from exactgrpo.tabular.mdp import Mdp

FAST, SLOW = "fast", "slow"
DELAYS = (5, 20, 50)
TIME_CONSTANT = 1000
MAX_DELAYS = 64
_BUNDLED = {"3x2": Path(__file__).parents[1] / "examples" / "tabular_3x2.json"}
_NEEDED = ("discount", "horizon", "transition", "policy", "reward_fast", "reward_slow")
_MORE = ("states", "actions", "start", "delays", "age_time_constant", "theta", "note")


@dataclass(frozen=True, slots=True)
class Benchmark:
    """An instance of the benchmark: its MDP with channels "fast" and "slow", the delays in steps, and tau of the weight exp(-delay/tau)."""

    mdp: Mdp
    delays: tuple[int, ...]
    time_constant: Fraction


def load_benchmark(path: str | os.PathLike[str]) -> Benchmark:
    """The instance of a .json or .toml file, or a bundled one by its name, "3x2"; errors name the file.

    Keys: transition[s][a][s'], policy[s][a], reward_fast[s][a], reward_slow[s][a], discount, horizon; optional: start[s] (by default
    uniform), delays (by default 5, 20, 50), age_time_constant (by default 1000), and states and actions, which must fit. `note` and
    `theta`, the logits of which the policy is the rounded softmax, are not used.

    >>> load_benchmark("3x2").delays
    (5, 20, 50)
    """
    with located(str(path)):
        return benchmark_of(parse_data(*read_text(_BUNDLED.get(str(path), path))))


def load_mdp(path: str | os.PathLike[str]) -> Mdp:
    """The MDP of a file, as `load_benchmark` reads it."""
    return load_benchmark(path).mdp


def benchmark_of(data: Mapping[str, Any]) -> Benchmark:
    """The instance that plain data describe.

    >>> one = {"transition": [[[1]]], "policy": [[1]], "reward_fast": [[0]], "reward_slow": [["1/2"]], "discount": 0, "horizon": 3}
    >>> benchmark_of(one).delays, benchmark_of(one).mdp.rewards["slow"]
    ((5, 20, 50), ((Fraction(1, 2),),))
    >>> benchmark_of({**one, "states": 2})
    Traceback (most recent call last):
    exactgrpo.errors.InputError: states: '2': there are 1 of them in 'policy'
    """
    check_keys(data, _NEEDED, (*_NEEDED, *_MORE))
    tables = {FAST: data["reward_fast"], SLOW: data["reward_slow"]}
    try:
        mdp = Mdp.of(
            data["transition"],
            data["policy"],
            tables,
            discount=data["discount"],
            horizon=data["horizon"],
            start=data.get("start"),
        )
    except InputError as error:  # the file says reward_fast where the library says rewards.fast
        raise type(error)(error.place.replace("rewards.", "reward_"), error.value, error.rule) from None
    for key, count in (("states", mdp.states), ("actions", mdp.actions)):
        if whole(data.get(key, count), key, least=1) != count:
            raise InputError(key, str(data[key]), f"there are {count} of them in 'policy'")
    return Benchmark(mdp, checked_delays(data.get("delays", DELAYS)), checked_time_constant(data.get("age_time_constant", TIME_CONSTANT)))


def with_changes(benchmark: Benchmark, *, delays: str | None = None, horizon: int | None = None) -> Benchmark:
    """The instance with other delays, as text, and another horizon, where these are given.

    >>> with_changes(load_benchmark("3x2"), delays="1, 2").delays
    (1, 2)
    """
    mdp = benchmark.mdp if horizon is None else benchmark.mdp.with_horizon(horizon)
    if delays is None:
        return replace(benchmark, mdp=mdp)
    words = delays.split(",")
    for word in words:
        if not re.fullmatch(r" *[0-9]{1,9} *", word):
            raise InputError("delays", word, "integers with commas between them, such as 5,20,50")
    return replace(benchmark, mdp=mdp, delays=checked_delays([int(word) for word in words]))


def checked_delays(delays: Any, place: str = "delays") -> tuple[int, ...]:
    """Delays in steps: 1 to 64 different integers from 0 to 10,000.

    >>> checked_delays([5, -1])
    Traceback (most recent call last):
    exactgrpo.errors.InputError: delays[1]: -1: an integer of at least 0
    """
    row = listed(delays, place)
    if not row:
        raise InputError(place, "an empty list", "there is at least one delay")
    if len(row) > MAX_DELAYS:
        raise LimitError(place, f"{len(row)} delays", f"at most {MAX_DELAYS} delays")
    steps = delays_in_steps(row, place)
    for i, delay in enumerate(steps):
        if delay in steps[:i]:
            raise InputError(f"{place}[{i}]", delay, "delays are different")
    return steps


def checked_time_constant(tau: Any) -> Fraction:
    """tau > 0 of the age weight exp(-delay/tau).

    >>> checked_time_constant("2000/2")
    Fraction(1000, 1)
    """
    number = rational(tau, "age_time_constant")
    if number <= 0:
        raise InputError("age_time_constant", short_text(number), "a time constant is positive")
    return number
