"""Times that mean something on a shared machine: minima of repeats, interleaved where two things are compared."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from typing import Any


def seconds(work: Callable[[], Any]) -> float:
    """One run, timed."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def interleaved(works: Sequence[Callable[[], float]], *, rounds: int, repeats: Sequence[int]) -> list[float]:
    """The smallest time of each; works[i] times itself and runs repeats[i] times in each round, all of them in turn."""
    best = [float("inf")] * len(works)
    for _ in range(rounds):
        for i, (work, times) in enumerate(zip(works, repeats, strict=True)):
            best[i] = min(best[i], *(work() for _ in range(times)))
    return best


def within(limit: float, work: Callable[..., Any], *args: Any) -> Any | None:
    """What work(*args) returns in a process of its own; None if that takes more than `limit` seconds."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(sender, work, args))
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(limit) else None
    finally:
        process.terminate()
        process.join()


def _send(sender: Any, work: Callable[..., Any], args: tuple[Any, ...]) -> None:
    sender.send(work(*args))
