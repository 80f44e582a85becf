"""An interrupt that no callback can swallow."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def lasting_interrupt() -> Iterator[Callable[[], None]]:
    """Yield a check that raises KeyboardInterrupt once the user has interrupted.

    An interrupt raises KeyboardInterrupt at once, wherever the program is. Inside a callback of the garbage collector, or a `except
    BaseException` of somebody else's, that is lost; the check raises it again, so Python is kept from reporting the loss. A handler of
    the caller's own stays in place.

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
    interrupted = False

    def remember(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        interrupted = True
        raise KeyboardInterrupt

    def check() -> None:
        if interrupted:
            raise KeyboardInterrupt

    is_ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not is_ours:
        yield check
        return
    report = sys.unraisablehook

    def report_others(lost: Any) -> None:
        if not isinstance(lost.exc_value, KeyboardInterrupt):
            report(lost)

    sys.unraisablehook = report_others
    signal.signal(signal.SIGINT, remember)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = report
