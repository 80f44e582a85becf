"""The instances of the published tabular benchmark, drawn again: every double of them, as the exact rational that it is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb

from exactgrpo.errors import InputError
from exactgrpo.numbers.inputs import whole
from exactgrpo.numbers.precision import precision
from exactgrpo.numbers.rounding import bounds
from exactgrpo.tabular.file import DELAYS, TIME_CONSTANT, Benchmark, benchmark_of

Floats = npt.NDArray[np.float64]

SIZES = ((3, 2), (5, 3), (10, 5), (20, 8))
"""States and actions of the published size sweep; the published table is instance 0 of the first."""
INSTANCES = 5
"""Of each size."""
TRANSITION_SEED, POLICY_SEED = 1337, 7
SPREAD = 0.3
BONUS = 0.6
"""In the slow reward, for the last action in state 0."""
_NOTE = (
    "P[s][a][s'], policy[s][a]: the doubles of the published benchmark taken as exact dyadic rationals; "
    "the last entry of each row is one minus the others"
)
_DATA = Path(__file__).parent / "published.json"


def published_instance(states: int = 3, actions: int = 2, instance: int = 0) -> Benchmark:
    """Instance 0 to 4 of one of the published `SIZES`.

    >>> benchmark = published_instance()
    >>> benchmark.mdp.states, benchmark.mdp.horizon, benchmark.mdp.discount, benchmark.delays
    (3, 50, Fraction(9, 10), (5, 20, 50))
    """
    return benchmark_of(published_data(states, actions, instance))


def published_data(states: int = 3, actions: int = 2, instance: int = 0) -> dict[str, Any]:
    """The same as the data of a file that `load_benchmark` reads.

    Source: Retroactive Advantage Correction, arXiv:2606.27580, the tabular benchmark and its size sweep. With the streams of NumPy's
    `default_rng(1337 + k)`: transitions are row softmaxes of standard normals, the fast reward is uniform on (-1/2, 1/2), the slow one on
    (-3/10, 3/10) with 3/5 added to the last action of state 0; with `default_rng(7 + k)`: the policy is the softmax of 3/10 times standard
    normals. Exponentials are rounded to the nearest double and then moved by the units in the last place that the published ones are off;
    a digest tells that every digit is as published. InputError for another size or instance, or if this machine's NumPy draws differently.

    >>> published_data()["reward_fast"][0]
    ['-2144300319680895/4503599627370496', '3024800550020489/9007199254740992']
    """
    if (states, actions) not in SIZES:
        raise InputError("size", f"{states}x{actions}", f"one of {', '.join(f'{s}x{a}' for s, a in SIZES)}")
    k = whole(instance, "instance", least=0)
    if k >= INSTANCES:
        raise InputError("instance", k, f"0 to {INSTANCES - 1}")
    name = f"{states}x{actions}_{k}"
    record = _records()[name]
    data = _drawn(states, actions, k, record)
    if sha256(json.dumps(data, indent=1).encode()).hexdigest() != record["sha256"]:
        raise InputError("instance", name, "the random streams of NumPy on this machine are not those of the published benchmark")
    return data


def _drawn(states: int, actions: int, k: int, record: Mapping[str, Any]) -> dict[str, Any]:
    rng = np.random.default_rng(TRANSITION_SEED + k)
    logits = rng.standard_normal((states, actions, states))
    fast = rng.uniform(-0.5, 0.5, (states, actions))
    slow = rng.uniform(-0.3, 0.3, (states, actions))
    slow[0, -1] += BONUS
    theta = np.random.default_rng(POLICY_SEED + k).standard_normal((states, actions)) * SPREAD
    scores = [*(row for rows in logits for row in rows), *theta]
    weights = exponentials([x for row in scores for x in row - row.max()])
    for direction, step in (("up", 1), ("down", -1)):
        weights.view(np.int64)[record[direction]] += step
    laws = weights[: logits.size].reshape(logits.shape)
    policy = weights[logits.size :].reshape(theta.shape)
    return {
        "states": states,
        "actions": actions,
        "discount": "9/10",
        "horizon": 50,
        "note": _NOTE,
        "transition": [[_law(row) for row in rows] for rows in laws / laws.sum(-1, keepdims=True)],
        "reward_fast": [[str(_dyadic(x)) for x in row] for row in fast],
        "reward_slow": [[str(_dyadic(x)) for x in row] for row in slow],
        "theta": [[str(_dyadic(x)) for x in row] for row in theta],
        "policy": [_law(row) for row in policy / policy.sum(-1, keepdims=True)],
        "delays": list(DELAYS),
        "age_time_constant": TIME_CONSTANT,
    }


def exponentials(numbers: Iterable[float]) -> Floats:
    """The doubles nearest to exp(x)."""
    with precision(192):
        enclosures = [bounds(arb(float(x)).exp()) for x in numbers]
    return np.array([float((low + high) / 2) for low, high in enclosures])


def _law(row: Floats) -> list[str]:
    masses = [_dyadic(x) for x in row[:-1]]
    return [str(x) for x in (*masses, 1 - sum(masses))]


def _dyadic(x: np.float64) -> Fraction:
    return Fraction(float(x))


@cache
def _records() -> dict[str, Any]:
    return json.loads(_DATA.read_text(encoding="utf-8"))  # type: ignore[no-any-return]
