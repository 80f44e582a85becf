"""Errors about bad input: one printable line, whatever the place, the value and the rule are."""

from __future__ import annotations

import pickle
from fractions import Fraction as F
from time import perf_counter
from typing import Any

import numpy as np
import pytest

from exactgrpo.errors import InexactInputError, InputError, LimitError, UpdateError
from exactgrpo.update.problem import Prompt


class _Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no text for you")


class _Colourful:
    def __repr__(self) -> str:
        return "\x1b[31mred\n\x07"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("sqrt(2)", "'sqrt(2)'"),
        ("a\n  b\tc", "'a b c'"),
        ("\x1b[31mred\x00", r"'\x1b[31mred\x00'"),
        ("a\u202eb\ud800", r"'a\u202eb\ud800'"),
        ("x" * 80, repr("x" * 80)),
        ("x" * 81, repr("x" * 60 + "... (81 characters)")),
        (12, "12"),
        (None, "None"),
        (-0.0, "-0.0"),
        (10**5000, "an integer of 16610 bits"),
        (F(-1, 10**5000), "a fraction of 16611 bits"),
        ([1, 10**5000], "[1, an integer of 16610 bits]"),
        (list(range(100)), "[0, 1, 2, 3, 4, 5, ...]"),
        ({i: i for i in range(101)}, "a dict of 101"),
        (set(range(101)), "a set of 101"),
        (_Hostile(), "<_Hostile>"),
        ([_Hostile()], "[<_Hostile>]"),
        (_Colourful(), r"\x1b[31mred \x07"),
        (np.zeros((2, 2), int), "array([[0, 0], [0, 0]])"),
        (Prompt("q", ("a",) * 10**6, ()), "<Prompt>"),
    ],
    ids=range(20),
)
def test_a_value_is_shown_in_short(value: Any, expected: str) -> None:
    assert str(InputError("beta", value, "beta >= 0")) == f"beta: {expected}: beta >= 0"


GIANTS = ["x" * 10**7, "\n" * 10**6, [10**5000] * 10**5, list(range(10**6)), dict.fromkeys(range(10**5), "\n"), 1 << 10**7, [[]] * 10**6]


@pytest.mark.parametrize("value", GIANTS, ids=range(len(GIANTS)))
def test_a_giant_value_costs_no_time_to_show(value: Any) -> None:
    start = perf_counter()
    line = str(InputError("beta", value, "beta >= 0"))
    assert perf_counter() - start < 0.1
    assert len(line) < 200


def test_place_and_rule_stay_in_the_line_and_are_bounded() -> None:
    line = str(InputError("weights['a\nb\x1b']" + "x" * 10**6, 1, "no\r\nway" + "y" * 10**6))
    assert line.isprintable()
    assert line.startswith(r"weights['a\nb\x1b']xxx")
    assert r": 1: no\r\nwayyyy" in line
    assert len(line) < 2100


def test_errors_are_the_builtin_that_a_caller_expects_and_survive_pickling() -> None:
    error = pickle.loads(pickle.dumps(UpdateError("beta", -1, "beta >= 0")))
    assert (type(error), error.place, error.value, error.rule) == (UpdateError, "beta", -1, "beta >= 0")
    assert isinstance(error, ValueError)
    assert isinstance(InexactInputError("beta", 0.5, "exact"), TypeError)
    assert isinstance(LimitError("beta", "9^9^9", "too large"), InputError)
