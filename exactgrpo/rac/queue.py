"""The queue of late rewards: enqueue, arrive, age, inject. The same code runs exactly and on floats."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from exactgrpo.errors import InputError, LimitError
from exactgrpo.numbers.inputs import whole
from exactgrpo.numbers.real import Real
from exactgrpo.rac.correction import Injection, Injections, Signal
from exactgrpo.rac.queue_channels import AgeWeight, Rollout, read_channels, rollout_name, step_number
from exactgrpo.rac.queue_numbers import Number, numbers_of, read_ratio
from exactgrpo.spec.reading import located

MAX_SIGNALS = 10_000_000
"""Signals that are in the queue at one time."""


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """What became of the signals, exactly: `enqueued` = `waiting` + `due` + `injected` + `dropped` + `late`.

    `waiting` have not arrived, `due` have arrived and will be injected, `dropped` never arrive, `late` arrive after the last step.
    """

    enqueued: int
    waiting: int
    due: int
    injected: int
    dropped: int
    late: int


class DelayQueue:
    """The event queue of Retroactive Advantage Correction: late rewards of earlier rollouts, injected into advantages when they are there.

    A signal of step t that arrives with delay d is injected at step t + d + `offset`, with the amount

        gain * w(t, d) * min(ceiling, max(floor, rho)) * X,

    if that step is below `horizon` + `drain` (without a horizon, always). X is the residual, slow reward minus fast baseline, and rho the
    importance ratio of its rollout at arrival: the policy of then, which the rollout itself may have moved, over the one that drew it.
    `channels` maps each name to a table with `gain` (1) and `weights` (none: weight one), a function w(step, delay) or a list or table by
    delay. A signal is named by its rollout, its channel and its sequence number: several signals of a rollout stand beside each other, and
    nothing is overwritten. What is dropped, left over or too late is counted and kept apart. Steps are injected one after the other, from 0
    on; a signal is handled in constant time. A call that fails leaves the queue as it was. Use it from one thread.

    `numbers` is Real (exact; a float raises InexactInputError) or float (finite floats only). Source: Retroactive Advantage Correction,
    arXiv:2606.27580, with offset 1 and a ceiling; sequence numbers, dropped signals, floor, horizon and drain are ours.

    >>> queue = DelayQueue({"judge": {"weights": ["1", "1/2"]}}, horizon=4, ceiling=1)
    >>> number = queue.enqueue(0, "a", "judge")  # the rollout is made; its slow reward is under way
    >>> len(queue.inject(0))
    0
    >>> queue.arrive(1, "a", "judge", residual=3, ratio="3/4")  # it turns up during step 1
    >>> queue.inject(1).total(), queue.inject(2).deltas(["a"])
    (Real('0'), [Real('9/8')])
    """

    def __init__(
        self,
        channels: Mapping[str, Mapping[str, Any]],
        *,
        horizon: int | None = None,
        offset: int = 1,
        drain: int = 0,
        ceiling: Any = None,
        floor: Any = None,
        numbers: Any = Real,
    ) -> None:
        self._numbers = numbers_of(numbers)
        self._channels = read_channels(channels, self._numbers)
        self._horizon = None if horizon is None else step_number(horizon, "horizon", least=1)
        self._drain = step_number(drain, "drain")
        if horizon is None and drain:
            raise InputError("drain", drain, "a queue without a horizon needs no drain")
        self._offset = whole(offset, "offset", least=0)
        if self._offset > 1:
            raise InputError("offset", offset, "0 or 1")
        self._clip = self._numbers.clip_range(floor, ceiling)
        self._now = self._issued = self._size = 0
        self._live: dict[tuple[Rollout, str], dict[int, Signal]] = {}
        self._due: dict[int, list[Injection]] = {}
        self._counts = {name: dict.fromkeys(("waiting", "due", "injected", "dropped", "late"), 0) for name in self._channels}

    @property
    def step(self) -> int:
        """The step that is injected next."""
        return self._now

    def enqueue(
        self,
        step: int,
        rollout: Rollout,
        channel: str,
        *,
        delay: int | None = None,
        residual: Any = None,
        ratio: Any = None,
        log_probabilities: Any = None,
    ) -> int:
        """Put in a signal of a rollout of this step and return its sequence number, which no other signal has.

        Without a delay it waits until `arrive` or `drop`. With one, as in a simulation, residual and ratio at arrival are given now. The
        step is the queue's step; with offset 1 also the one before it. InputError otherwise, and after the horizon.
        """
        t, key = self._present(step), (rollout_name(rollout), self._known(channel))
        if self._horizon is not None and t >= self._horizon:
            raise InputError("step", t, f"rollouts are made at the steps 0 to {self._horizon - 1}")
        if self._size >= MAX_SIGNALS:
            raise LimitError("queue", f"{self._size} signals", f"at most {MAX_SIGNALS} at one time")
        signal = Signal(*key, self._issued, t)
        if delay is not None:
            signal = self._arrived(signal, t + step_number(delay, "delay"), residual, read_ratio(self._numbers, ratio, log_probabilities))
        elif not (residual is ratio is log_probabilities is None):
            raise InputError("delay", delay, "residual and ratio are given at arrival, or now with a delay")
        self._issued += 1
        self._put(signal)
        return signal.number

    def arrive(
        self,
        step: int,
        rollout: Rollout,
        channel: str,
        *,
        residual: Any = None,
        ratio: Any = None,
        log_probabilities: Any = None,
        number: int | None = None,
    ) -> None:
        """The slow reward of a waiting signal turns up during this step, the queue's step (with offset 1 also the one before it).

        `residual` is slow reward minus fast baseline. The importance ratio now is given as `ratio`, or as `log_probabilities`, the pair
        (log pi(y) now, log pi(y) at the rollout). `number` is needed only if several signals of this rollout wait in this channel.
        """
        t, signal = self._present(step), self._waiting(rollout, channel, number)
        if t < signal.step:
            raise InputError("step", t, f"the signal is of step {signal.step}: it arrives then or later")
        arrived = self._arrived(signal, t, residual, read_ratio(self._numbers, ratio, log_probabilities))
        self._take(signal, "waiting")
        self._put(arrived)

    def drop(self, rollout: Rollout, channel: str, *, number: int | None = None) -> None:
        """A waiting signal will never arrive: it is taken out and counted as dropped."""
        signal = self._waiting(rollout, channel, number)
        self._take(signal, "waiting")
        self._counts[signal.channel]["dropped"] += 1

    def inject(self, step: int) -> Injections:
        """End this step: the injections that are due at it. Steps follow each other from 0 on; none is repeated or skipped."""
        if step_number(step, "step") != self._now:
            raise InputError("step", step, f"the step to inject now is {self._now}: none is repeated or skipped")
        if self.end is not None and self._now >= self.end:
            raise InputError("step", step, f"the last step is {self.end - 1}")
        due = sorted(self._due.pop(self._now, ()), key=lambda x: x.number)
        for x in due:
            self._take(x, "due")
            self._counts[x.channel]["injected"] += 1
        self._now += 1
        return Injections(self._now - 1, tuple(due), self._numbers)

    @property
    def end(self) -> int | None:
        """The first step that is not injected any more, horizon + drain; None without a horizon."""
        return None if self._horizon is None else self._horizon + self._drain

    def counts(self, channel: str | None = None) -> QueueCounts:
        """How many signals there were, of one channel or of all, and what became of them.

        >>> queue = DelayQueue({"judge": {}}, horizon=1)
        >>> for rollout in ("a", "b"):
        ...     number = queue.enqueue(0, rollout, "judge")
        >>> queue.drop("b", "judge")
        >>> queue.counts()
        QueueCounts(enqueued=2, waiting=1, due=0, injected=0, dropped=1, late=0)
        """
        rows = list(self._counts.values()) if channel is None else [self._counts[self._known(channel)]]
        sums = {status: sum(row[status] for row in rows) for status in rows[0]}
        return QueueCounts(sum(sums.values()), **sums)

    def leftovers(self) -> tuple[Signal, ...]:
        """The signals that have not been injected and are not due: those that wait, and those that arrived too late."""
        return tuple(x for x in self._signals() if not isinstance(x, Injection))

    def state(self) -> dict[str, Any]:
        """Everything as JSON data, exact numbers as text; a function of age weights is named only. See `restore`."""
        from exactgrpo.rac.queue_state import state_of

        return state_of(self)

    @classmethod
    def restore(cls, state: Mapping[str, Any], *, weights: Mapping[str, AgeWeight] | None = None) -> DelayQueue:
        """The queue of a `state`, all of it checked; `weights` gives the functions of age weights again, by channel.

        Amounts are computed again, so the functions are to be those of before.

        >>> queue = DelayQueue({"judge": {"gain": "1/3"}}, horizon=4)
        >>> number = queue.enqueue(0, "a", "judge", delay=1, residual="sqrt(2)", ratio=1)
        >>> again = DelayQueue.restore(queue.state())
        >>> [again.inject(step).total() for step in range(3)]
        [Real('0'), Real('0'), Real('sqrt(2)/3')]
        """
        from exactgrpo.rac.queue_state import restored

        return restored(cls, state, weights or {})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a JSON file: a temporary file first, then a rename, so that the file is as it was or whole."""
        from exactgrpo.spec.json_file import write_json

        write_json(path, self.state())

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, weights: Mapping[str, AgeWeight] | None = None) -> DelayQueue:
        """The queue that `save` wrote; InputError, with the name of the file, for anything else."""
        from exactgrpo.rac.queue_state import read_state

        with located(str(path)):
            return cls.restore(read_state(path), weights=weights)

    # ---- signals

    def _arrived(self, signal: Signal, arrival: int, residual: Any, rho: Number) -> Signal:
        if residual is None:
            raise InputError("residual", residual, "a signal that arrives has a residual")
        x = self._numbers.read(residual, "residual")
        ratio = self._numbers.clip(rho, *self._clip)
        known = (signal.rollout, signal.channel, signal.number, signal.step, arrival, ratio, x)
        if self.end is not None and arrival + self._offset >= self.end:
            return Signal(*known)
        channel = self._channels[signal.channel]
        weight = channel.weight(signal.step, arrival - signal.step, self._numbers, f"channel {signal.channel!r}: weights")
        amount = self._numbers.product((channel.gain, weight, ratio, x), "amount")
        return Injection(*known, weight, amount)

    def _put(self, signal: Signal) -> None:
        self._live.setdefault((signal.rollout, signal.channel), {})[signal.number] = signal
        self._size += 1
        status = "waiting" if signal.arrival is None else "late"
        if isinstance(signal, Injection) and signal.arrival is not None:
            self._due.setdefault(signal.arrival + self._offset, []).append(signal)
            status = "due"
        self._counts[signal.channel][status] += 1

    def _take(self, signal: Signal, status: str) -> None:
        key = (signal.rollout, signal.channel)
        del self._live[key][signal.number]
        if not self._live[key]:
            del self._live[key]
        self._size -= 1
        self._counts[signal.channel][status] -= 1

    def _signals(self) -> list[Signal]:
        return sorted((x for signals in self._live.values() for x in signals.values()), key=lambda x: x.number)

    def _waiting(self, rollout: Any, channel: Any, number: Any) -> Signal:
        key = (rollout_name(rollout), self._known(channel))
        place, live = f"rollout {key[0]!r} in channel {key[1]!r}", self._live.get(key, {})
        if number is not None:
            wanted = whole(number, "number", least=0)
            live = {wanted: live[wanted]} if wanted in live else {}
        waiting = [x for x in live.values() if x.arrival is None]
        if len(waiting) > 1:
            raise InputError(place, f"signals {[x.number for x in waiting]}", "several wait: the sequence number is needed")
        if waiting:
            return waiting[0]
        gone = [x.arrival for x in live.values()]
        value = "no signal waits" if number is None else f"signal {number} does not wait"
        seen = f"it has arrived at step {gone[-1]}" if gone else "it was never enqueued, or has arrived before or been dropped"
        raise InputError(place, value, seen)

    # ---- checks

    def _known(self, channel: Any) -> str:
        if not isinstance(channel, str) or channel not in self._channels:
            raise InputError("channel", channel, f"one of {', '.join(map(repr, self._channels))}")
        return channel

    def _present(self, step: Any) -> int:
        t = step_number(step, "step")
        if not self._now - self._offset <= t <= self._now:
            before = f", or {self._now - 1}" if self._offset and self._now else ""
            raise InputError("step", t, f"the queue is at step {self._now}: what happens now is of step {self._now}{before}")
        return t
