"""One joint outcome of delays, residuals and ratios, run through the queue of late rewards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from exactgrpo.errors import InputError, LimitError
from exactgrpo.numbers.inputs import listed
from exactgrpo.numbers.real import Real
from exactgrpo.rac.correction import Injections
from exactgrpo.rac.queue import DelayQueue, QueueCounts
from exactgrpo.rac.queue_channels import step_number
from exactgrpo.rac.queue_numbers import Number
from exactgrpo.spec.reading import located

MAX_STEPS = 1_000_000
_ROW = "a row: step, rollout, channel, delay, residual, ratio"


@dataclass(frozen=True, slots=True)
class Simulation:
    """One joint outcome: the injections of each step, and what became of the signals."""

    steps: tuple[Injections, ...]
    counts: QueueCounts

    @property
    def totals(self) -> tuple[Number, ...]:
        """The injected total of each step."""
        return tuple(x.total() for x in self.steps)


def simulate(
    horizon: int,
    offset: int,
    signals: Sequence[Any],
    *,
    channels: Mapping[str, Mapping[str, Any]],
    drain: int = 0,
    ceiling: Any = None,
    floor: Any = None,
    numbers: Any = Real,
) -> Simulation:
    """Run the queue on one joint outcome, given as rows (step, rollout, channel, delay, residual, ratio); a delay of None is "never".

    All horizon + drain steps are injected. The order of the rows is that of the sequence numbers of one step. Other arguments as for
    `DelayQueue`; InputError names the row.

    >>> rows = [(t, t, "judge", 1, x, 1) for t, x in enumerate([1, 3, -2, 0])]
    >>> simulate(4, 0, rows, channels={"judge": {}}).totals
    (Real('0'), Real('1'), Real('3'), Real('-2'))
    """
    steps = step_number(horizon, "horizon", least=1) + step_number(drain, "drain")
    if steps > MAX_STEPS:
        raise LimitError("horizon", f"{steps} steps", f"at most {MAX_STEPS} with the drain")
    queue = DelayQueue(channels, horizon=horizon, offset=offset, drain=drain, ceiling=ceiling, floor=floor, numbers=numbers)
    by_step: dict[int, list[tuple[int, Sequence[Any]]]] = {}
    for i, given in enumerate(listed(signals, "signals")):
        row = listed(given, f"signals[{i}]", _ROW)
        if len(row) != 6:
            raise InputError(f"signals[{i}]", f"{len(row)} entries", _ROW)
        t = step_number(row[0], f"signals[{i}]: step")
        if t >= horizon:
            raise InputError(f"signals[{i}]: step", t, f"rollouts are made at the steps 0 to {horizon - 1}")
        by_step.setdefault(t, []).append((i, row))
    injected = []
    for t in range(steps):
        for i, (_, rollout, channel, delay, residual, ratio) in by_step.get(t, ()):
            with located(f"signals[{i}]"):
                if delay is None:
                    queue.drop(rollout, channel, number=queue.enqueue(t, rollout, channel))
                else:
                    queue.enqueue(t, rollout, channel, delay=delay, residual=residual, ratio=ratio)
        injected.append(queue.inject(t))
    return Simulation(tuple(injected), queue.counts())
