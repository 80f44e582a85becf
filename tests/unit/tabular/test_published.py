"""The published instances: every digit by digest, and the draws by a second route with plain NumPy."""

from __future__ import annotations

import json
from fractions import Fraction as F
from hashlib import sha256
from typing import Any

import numpy as np
import pytest

import exactgrpo.tabular.published
from exactgrpo import InputError
from exactgrpo.tabular.file import benchmark_of
from exactgrpo.tabular.published import INSTANCES, SIZES, published_data, published_instance

DIGEST = "b346d5fffed9909ee63a7461606d9683513c20b7765ffddaec9bc0a825daa711"
"""Of the digests of all instances, from the files as they were published."""


def test_every_instance_is_as_published() -> None:
    texts = [json.dumps(published_data(s, a, k), indent=1) for s, a in SIZES for k in range(INSTANCES)]
    assert sha256("".join(sha256(text.encode()).hexdigest() for text in texts).encode()).hexdigest() == DIGEST


@pytest.mark.parametrize(("states", "actions"), SIZES)
def test_numbers_are_those_of_the_generator_up_to_rounding(states: int, actions: int) -> None:
    rng = np.random.default_rng(1337 + 3)
    weights = np.exp(rng.standard_normal((states, actions, states)))
    fast, slow = rng.random((states, actions)) - 0.5, rng.random((states, actions)) * 0.6 - 0.3
    slow[0, actions - 1] += 0.6
    policy = np.exp(0.3 * np.random.default_rng(7 + 3).standard_normal((states, actions)))
    mdp = published_instance(states, actions, 3).mdp
    for seen, wanted in (
        (mdp.transition, weights / weights.sum(-1, keepdims=True)),
        (mdp.rewards["fast"], fast),
        (mdp.rewards["slow"], slow),
        (mdp.policy, policy / policy.sum(-1, keepdims=True)),
    ):
        assert np.allclose(np.array(seen, float), wanted, rtol=1e-13, atol=1e-15)


def test_rows_sum_to_one_exactly_and_all_else_is_dyadic() -> None:
    data = published_data(5, 3, 4)
    assert all(sum(map(F, row)) == 1 for row in [*data["policy"], *(row for rows in data["transition"] for row in rows)])
    assert all(float(F(x)) == F(x) for row in [*data["reward_fast"], *data["reward_slow"], *data["theta"]] for x in row)
    assert benchmark_of(data).mdp.start == (F(1, 5),) * 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, 3, 0), "size: '3x3': one of 3x2, 5x3, 10x5, 20x8"),
        ((3, 2, 5), "instance: 5: 0 to 4"),
        ((3, 2, -1), "instance: -1: an integer of at least 0"),
    ],
)
def test_other_instances_were_not_published(arguments: tuple[int, int, int], message: str) -> None:
    with pytest.raises(InputError) as caught:
        published_instance(*arguments)
    assert str(caught.value) == message


def test_other_random_streams_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    record: dict[str, Any] = {**exactgrpo.tabular.published._records()["3x2_0"], "up": [0], "down": []}
    monkeypatch.setattr(exactgrpo.tabular.published, "_records", lambda: {"3x2_0": record})
    with pytest.raises(InputError, match="3x2_0"):
        published_data()
