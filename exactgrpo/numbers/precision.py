"""The one place that changes the working precision of Arb balls."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import flint

_LOCK = threading.RLock()


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Set the working precision of Arb to `bits` inside the block, and restore it on the way out, errors included.

    The precision of python-flint is global to the process, so only one thread at a time is inside.

    >>> before = flint.ctx.prec
    >>> with precision(200):
    ...     flint.ctx.prec
    200
    >>> flint.ctx.prec == before
    True
    """
    with _LOCK:
        before = flint.ctx.prec
        flint.ctx.prec = bits
        try:
            yield
        finally:
            flint.ctx.prec = before


def current_precision() -> int:
    """The working precision in bits."""
    return int(flint.ctx.prec)
