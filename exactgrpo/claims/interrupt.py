"""An interrupt that no callback can swallow."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class _Interrupt:
    """A handler of SIGINT that remembers it."""

    happened = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.happened = True
        raise KeyboardInterrupt

    def check(self) -> None:
        if self.happened:
            raise KeyboardInterrupt

    @contextmanager
    def lasting(self) -> Iterator[Callable[[], None]]:
        try:
            yield self.check
        except Exception:
            self.check()
            raise


@contextmanager
def lasting_interrupt() -> Iterator[Callable[[], None]]:
    """Yield a check that raises KeyboardInterrupt once the user has interrupted.

    An interrupt raises KeyboardInterrupt at once, wherever the program is. Inside a callback of the garbage collector, or a `except
    BaseException` of somebody else's, that is lost; the check raises it again, so Python is kept from reporting the loss. An error that
    follows an interrupt is taken for its consequence. One inside another shares its check. A handler of the caller's own stays in place.

    >>> with lasting_interrupt() as check:
    ...     try:
    ...         signal.raise_signal(signal.SIGINT)
    ...     except KeyboardInterrupt:
    ...         print("swallowed")
    ...     try:
    ...         check()
    ...     except KeyboardInterrupt:
    ...         print("raised again")
    swallowed
    raised again
    """
    interrupt, handler, report = _Interrupt(), signal.getsignal(signal.SIGINT), sys.unraisablehook
    if isinstance(handler, _Interrupt):
        with handler.lasting() as check:
            yield check
        return
    if threading.current_thread() is not threading.main_thread() or handler is not signal.default_int_handler:
        yield interrupt.check
        return

    def report_others(lost: Any) -> None:
        if not isinstance(lost.exc_value, KeyboardInterrupt):
            report(lost)

    sys.unraisablehook = report_others
    signal.signal(signal.SIGINT, interrupt)
    try:
        with interrupt.lasting() as check:
            yield check
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = report
