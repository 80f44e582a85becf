"""Response sets of the generation protocol."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
import pytest

from exactgrpo.errors import InexactInputError, InputError, LimitError, PolicyError
from exactgrpo.policies.protocol import MAX_RESPONSES, GenerationProtocol

MANY = [f"t{i}" for i in range(MAX_RESPONSES)]


def test_responses_are_in_depth_first_order() -> None:
    protocol = GenerationProtocol.of(["x", "y"], end=".", max_length=2)
    expected = [("x", "x"), ("x", "y"), ("x", "."), ("y", "x"), ("y", "y"), ("y", "."), (".",)]
    assert list(protocol.responses()) == expected
    deeper = GenerationProtocol.of(("x", "y", "z"), end="!", max_length=4)
    place = {token: i for i, token in enumerate(deeper.tokens)}
    responses = deeper.responses()
    assert list(responses) == sorted(responses, key=lambda response: [place[token] for token in response])


@pytest.mark.parametrize(("width", "length"), [(1, 1), (1, 7), (2, 5), (3, 4), (7, 1)])
def test_the_size_of_the_response_set_is_the_number_of_responses(width: int, length: int) -> None:
    protocol = GenerationProtocol.of([f"t{i}" for i in range(width)], end=".", max_length=length)
    expected = 1 + width  # S(1) = V + 1, S(L) = V S(L - 1) + 1
    for _ in range(length - 1):
        expected = width * expected + 1
    assert expected == protocol.support_size() == len(set(protocol.responses()))


def test_responses_may_be_longer_than_the_stack_of_python() -> None:
    responses = GenerationProtocol.of(["x"], end=".", max_length=3000).responses()
    assert len(responses) == 3001
    assert [len(response) for response in responses[:3]] == [3000, 3000, 2999]
    assert responses[-1] == (".",)


@pytest.mark.parametrize(
    ("vocabulary", "length"),
    [(["x"], 10**12), (["x"], 999_999), (["x"], 5000), (["x", "y"], 10**12), (["x", "y"], 19), (MANY, 1)],
)
def test_response_sets_that_would_fill_the_memory_are_refused_at_once(vocabulary: list[str], length: int) -> None:
    start = perf_counter()
    with pytest.raises(LimitError) as caught:
        GenerationProtocol.of(vocabulary, end=".", max_length=length)
    assert perf_counter() - start < 3
    assert caught.value.place == "protocol.max_length"


def test_the_largest_response_sets_are_accepted() -> None:
    assert GenerationProtocol.of(["x"], end=".", max_length=4470).support_size() == 4471
    assert GenerationProtocol.of(["x", "y"], end=".", max_length=18).support_size() == 2**19 - 1
    assert GenerationProtocol.of(MANY[1:], end=".", max_length=1).support_size() == MAX_RESPONSES


def test_a_numpy_integer_is_a_length() -> None:
    protocol = GenerationProtocol.of(np.array(["x", "y"]), end=".", max_length=np.int64(2))  # type: ignore[arg-type]
    assert type(protocol.max_length) is int
    assert protocol.support_size() == 7


@pytest.mark.parametrize(
    ("change", "place", "error"),
    [
        ({"max_length": True}, "protocol.max_length", PolicyError),
        ({"max_length": 0}, "protocol.max_length", PolicyError),
        ({"max_length": "2"}, "protocol.max_length", PolicyError),
        ({"max_length": None}, "protocol.max_length", PolicyError),
        ({"max_length": 2.0}, "protocol.max_length", InexactInputError),
        ({"max_length": np.float32(2)}, "protocol.max_length", InexactInputError),
        ({"vocabulary": "xy"}, "protocol.vocabulary", PolicyError),
        ({"vocabulary": {"x", "y"}}, "protocol.vocabulary", PolicyError),
        ({"vocabulary": None}, "protocol.vocabulary", PolicyError),
        ({"vocabulary": []}, "protocol.vocabulary", PolicyError),
        ({"vocabulary": (c for c in "xy")}, "protocol.vocabulary", PolicyError),
        ({"vocabulary": ["x", 1]}, "protocol.vocabulary[1]", PolicyError),
        ({"vocabulary": ["x", "a b"]}, "protocol.vocabulary[1]", PolicyError),
        ({"vocabulary": ["x", ""]}, "protocol.vocabulary[1]", PolicyError),
        ({"vocabulary": ["x", "x"]}, "protocol.vocabulary[1]", PolicyError),
        ({"vocabulary": ["x", ["y"]]}, "protocol.vocabulary[1]", PolicyError),
        ({"end": "x"}, "protocol.end", PolicyError),
        ({"end": None}, "protocol.end", PolicyError),
    ],
)
def test_a_bad_protocol_is_refused(change: dict[str, Any], place: str, error: type[InputError]) -> None:
    with pytest.raises(error) as caught:
        GenerationProtocol.of(**{"vocabulary": ["x", "y"], "end": ".", "max_length": 2, **change})
    assert caught.value.place == place
