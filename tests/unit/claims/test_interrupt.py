"""Interrupts that land where Python or somebody else's code swallows them."""

from __future__ import annotations

import contextlib
import gc
import signal
import sys
import time

import pytest
from hypothesis import strategies as st

from exactgrpo.claims.claim import Claim
from exactgrpo.claims.interrupt import lasting_interrupt
from exactgrpo.claims.verdict import falsify


def interrupted_collection(phase: str, _info: object) -> None:
    if phase == "start":
        signal.raise_signal(signal.SIGINT)


def test_an_interrupt_inside_the_garbage_collector_lasts_and_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)
    with lasting_interrupt() as check:
        gc.callbacks.append(interrupted_collection)
        gc.collect()
        gc.callbacks.remove(interrupted_collection)
        with pytest.raises(KeyboardInterrupt):
            check()
    assert reported == []
    assert sys.unraisablehook == reported.append
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_losses_are_still_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        def __del__(self) -> None:
            raise ValueError

    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda lost: seen.append(lost.exc_type))
    with lasting_interrupt():
        Failing()
    assert seen == [ValueError]


def test_a_handler_of_the_callers_own_stays() -> None:
    seen = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        with lasting_interrupt() as check:
            signal.raise_signal(signal.SIGINT)
            check()
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT]


def test_a_side_that_swallows_the_interrupt_does_not_prolong_the_search() -> None:
    def side(x: object) -> object:
        try:
            if not calls:
                signal.raise_signal(signal.SIGINT)
        except BaseException:  # as a bare `except` in a user's function would
            calls.append(x)
        return x

    calls: list[object] = []
    start = time.monotonic()
    result = falsify(Claim("c", "a claim", {"x": st.fractions()}, left=lambda x: x, right=side), seconds=60)
    assert result.ended == "interrupted"
    assert len(calls) == 1
    assert time.monotonic() - start < 30


def test_an_error_that_follows_an_interrupt_is_the_interrupt() -> None:
    def side(x: object) -> object:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise AssertionError from None
        return x

    result = falsify(Claim("c", "a claim", {"x": [1, 2]}, left=lambda x: x, right=side), seconds=60)
    assert (result.ended, result.tried) == ("interrupted", 1)


def test_one_inside_another_shares_its_check() -> None:
    with lasting_interrupt() as outer:
        with lasting_interrupt() as inner, contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        for check in (inner, outer):
            with pytest.raises(KeyboardInterrupt):
                check()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
