"""MDPs: what is accepted, and the one line that refuses the rest."""

from __future__ import annotations

from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest

from exactgrpo import InexactInputError, InputError, LimitError
from exactgrpo.tabular import mdp as module
from exactgrpo.tabular.mdp import Mdp

GOOD: dict[str, Any] = {
    "transition": [[[1, 0], ["1/2", "1/2"]], [[0, 1], ["0.25", "0.75"]]],
    "policy": [["1/3", "2/3"], ["1/2", "1/2"]],
    "rewards": {"fast": [[0, 1], [2, 3]], "slow": [["1/2", 0], [0, 0]]},
    "discount": "9/10",
    "horizon": 5,
    "start": None,
}


def made(**changes: Any) -> Mdp:
    transition, policy, rewards = (changes.pop(name, GOOD[name]) for name in ("transition", "policy", "rewards"))
    return Mdp.of(transition, policy, rewards, **{**{name: GOOD[name] for name in ("discount", "horizon", "start")}, **changes})


def test_numbers_are_kept_as_fractions() -> None:
    mdp = made()
    assert (mdp.states, mdp.actions, mdp.horizon, mdp.discount, mdp.start) == (2, 2, 5, F(9, 10), (F(1, 2), F(1, 2)))
    assert mdp.transition[1][1] == (F(1, 4), F(3, 4))
    assert mdp.reward() == ((F(1, 2), F(1)), (F(2), F(3)))
    assert mdp.reward("slow", "slow")[0][0] == 1
    assert made(start=[0, 1]).start == (0, 1)
    assert mdp.with_horizon(7).horizon == 7
    assert mdp.horizon == 5


def test_arrays_of_integers_are_lists() -> None:
    assert made(transition=np.array([[[1, 0], [0, 1]], [[0, 1], [1, 0]]])).transition[0][1] == (0, 1)


@pytest.mark.parametrize(
    ("changes", "place", "rule"),
    [
        ({"transition": [[[1, 0], ["1/2", "1/3"]], [[0, 1], [0, 1]]]}, "transition[0][1]", "masses sum to one"),
        ({"transition": [[[1, 0], ["3/2", "-1/2"]], [[0, 1], [0, 1]]]}, "transition[0][1][1]", "a mass is not negative"),
        ({"transition": [[[1, 0], [1]], [[0, 1], [0, 1]]]}, "transition[0][1]", "one entry for each of the 2 states"),
        ({"transition": [[[1, 0]], [[0, 1], [0, 1]]]}, "transition[1]", "one entry for each of the 1 actions"),
        ({"transition": []}, "transition", "there is at least one state"),
        ({"transition": [[], []]}, "transition[0]", "there is at least one action"),
        ({"transition": 7}, "transition", "a list is needed"),
        ({"transition": [7, 8]}, "transition[0]", "a list is needed"),
        ({"transition": {"a": 1}}, "transition", "a list is needed"),
        ({"policy": [["1/3", "2/3"]]}, "policy", "one entry for each of the 2 states"),
        ({"policy": [["1/3", "2/3"], [1, 0]]}, "policy[1][1]", "a softmax policy has positive masses"),
        ({"policy": [["1/3", "2/3"], ["1/2", "1/3"]]}, "policy[1]", "masses sum to one"),
        ({"rewards": {}}, "rewards", "a table of at least one reward channel"),
        ({"rewards": [1]}, "rewards", "a table of at least one reward channel"),
        ({"rewards": {"a b": [[0, 0], [0, 0]]}}, "rewards", "the name of a channel"),
        ({"rewards": {"fast": [[0, 0], [0]]}}, "rewards.fast[1]", "one entry for each of the 2 actions"),
        ({"rewards": {"fast": [[0, "nan"], [0, 0]]}}, "rewards.fast[0][1]", ""),
        ({"rewards": {"fast": [[0, "sqrt(2)"], [0, 0]]}}, "rewards.fast[0][1]", "a rational number is needed"),
        ({"discount": 1}, "discount", "0 <= discount < 1"),
        ({"discount": "-1/10"}, "discount", "0 <= discount < 1"),
        ({"horizon": 0}, "horizon", "an integer of at least 1"),
        ({"horizon": "5"}, "horizon", "an integer of at least 1"),
        ({"start": ["1/2", "1/3"]}, "start", "masses sum to one"),
        ({"start": [1]}, "start", "one entry for each of the 2 states"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], place: str, rule: str) -> None:
    with pytest.raises(InputError) as caught:
        made(**changes)
    assert caught.value.place == place
    assert rule in caught.value.rule
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("changes", [{"discount": 0.9}, {"policy": [[0.5, 0.5], ["1/2", "1/2"]]}, {"horizon": 5.0}])
def test_floats_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InexactInputError):
        made(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"horizon": module.MAX_HORIZON + 1},
        {"transition": [[[]]] * (module.MAX_STATES + 1)},
        {"transition": [[[]] * 1025] * 2},
        {"rewards": {f"c{i}": [[0, 0], [0, 0]] for i in range(module.MAX_CHANNELS + 1)}},
        {"rewards": {"fast": [[F(1, 3**9000), F(1, 2**9000)], [0, 0]]}},
        {"rewards": {"fast": [[2**20000, 0], [0, 0]]}},
        {"start": [F(1, 2**16384), 1 - F(1, 2**16384)]},
        {"transition": [[[F(1, 2**9000), 1 - F(1, 2**9000)], [0, 1]], [[F(1, 3**6000), 1 - F(1, 3**6000)], [0, 1]]]},
    ],
)
def test_sizes_are_bounded(changes: dict[str, Any]) -> None:
    with pytest.raises(LimitError):
        made(**changes)


def test_a_long_sum_is_told_by_its_place_on_the_line() -> None:
    tiny = F(1, 2**15000)
    with pytest.raises(InputError) as caught:
        made(start=[tiny, F(1)])
    assert str(caught.value) == "start: 'sum between 1 and 2': masses sum to one"


def test_an_unknown_channel_is_named() -> None:
    with pytest.raises(InputError, match="the channels here are fast, slow"):
        made().reward("medium")
