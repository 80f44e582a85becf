"""The doors for numbers, lists and counts: what passes, what is refused, and that a refusal is one line."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest

from exactgrpo.errors import InexactInputError, InputError, LimitError, PolicyError
from exactgrpo.numbers.inputs import exact_list, listed, whole
from exactgrpo.numbers.rational import exact

TIMES = [np.timedelta64(5, "s"), np.timedelta64("NaT")]
NO_DECIMALS = [Decimal("NaN"), Decimal("-Infinity")]
NUMPY_FLOATS = [np.float64(1), np.float32(0.1), np.float16("inf"), np.longdouble(2)]
NO_LISTS = [None, 3, "abc", b"abc", {"a": 1}, {1, 2}, frozenset(), (x for x in [1]), iter([1]), object(), np.array(3), list]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.int8(-3), F(-3)),
        (np.uint64(2**64 - 1), F(2**64 - 1)),
        (Decimal("-0"), F(0)),
        (Decimal("-0E-400"), F(0)),
        (" 3/7 ", F(3, 7)),
        ("-0", F(0)),
    ],
)
def test_exact_numbers_pass(value: Any, expected: F) -> None:
    assert exact(value) == expected
    assert type(exact(value)) is F


@pytest.mark.parametrize("value", [0.5, -0.0, float("nan"), float("inf"), *NUMPY_FLOATS])
def test_every_kind_of_float_is_refused_as_a_float(value: Any) -> None:
    for door in (lambda: exact(value, "beta"), lambda: whole(value, "beta", least=1), lambda: listed(value, "beta", error=PolicyError)):
        with pytest.raises(InexactInputError) as caught:
            door()
        assert (caught.value.place, caught.value.value is value) == ("beta", True)


@pytest.mark.parametrize(
    "value", [None, True, np.True_, 1j, b"1", [1], (1,), {}, object(), np.array(3), np.array([3]), *NO_DECIMALS, *TIMES]
)
def test_what_is_no_number_is_refused(value: Any) -> None:
    with pytest.raises(InputError) as caught:
        exact(value, "beta")
    assert caught.value.place == "beta"
    assert not isinstance(caught.value, InexactInputError)


@pytest.mark.parametrize("value", [None, True, np.True_, "2", F(2), Decimal(2), [2], np.array([2]), -1, *TIMES[1:]])
def test_what_is_no_count_is_refused(value: Any) -> None:
    with pytest.raises(PolicyError) as caught:
        whole(value, "steps", least=1, error=PolicyError)
    assert (caught.value.place, caught.value.rule) == ("steps", "an integer of at least 1")


def test_counts_become_python_integers() -> None:
    assert [whole(x, "n", least=1) for x in (1, np.int32(5), 10**30)] == [1, 5, 10**30]
    assert type(whole(np.int32(5), "n", least=1)) is int


@pytest.mark.parametrize("value", NO_LISTS)
def test_what_is_no_list_is_refused(value: Any) -> None:
    with pytest.raises(PolicyError) as caught:
        listed(value, "theta0", error=PolicyError)
    assert (caught.value.place, caught.value.rule) == ("theta0", "a list is needed")


def test_lists_tuples_ranges_views_and_arrays_are_lists() -> None:
    for values in ([1, 2], (1, 2), range(1, 3), {"a": 1, "b": 2}.values(), np.array([1, 2])):
        assert exact_list(values, "theta0") == [F(1), F(2)]


def test_a_bad_number_in_a_list_is_named_by_its_position() -> None:
    with pytest.raises(InexactInputError) as caught:
        exact_list([1, 0.5], "theta0")
    assert caught.value.place == "theta0[1]"
    with pytest.raises(LimitError) as limit:
        exact_list(["1", "1e99999"], "theta0")
    assert limit.value.place == "theta0[1]"
