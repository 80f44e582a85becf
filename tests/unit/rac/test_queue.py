"""The queue of late rewards against a plain list of all signals; floats against exact numbers; misuse; saved states."""

from __future__ import annotations

import json
import math
from fractions import Fraction as F
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from exactgrpo import DelayQueue, InexactInputError, InputError, LimitError, Real
from exactgrpo.rac import queue as queue_module, queue_channels
from exactgrpo.rac.correction import Signal
from exactgrpo.rac.queue import QueueCounts
from exactgrpo.rac.simulation import simulate
from exactgrpo.strategies import positive_rationals, rationals

dyadics = st.builds(lambda n, k: F(n, 2**k), st.integers(-9, 9), st.integers(0, 3))
masses = st.builds(lambda n, k: F(n, 2**k), st.integers(0, 9), st.integers(0, 3))
positives = st.builds(lambda n, k: F(n, 2**k), st.integers(1, 9), st.integers(0, 3))


def exactly(x: Any) -> F:
    return F(x) if isinstance(x, float) else x.as_fraction()


def clip(rho: F, floor: F | None, ceiling: F | None) -> F:
    rho = rho if floor is None else max(floor, rho)
    return rho if ceiling is None else min(ceiling, rho)


# ---- the mechanism by hand


def test_an_injection_says_what_it_is_made_of() -> None:
    # 2 * w(1) * min(1, 3/2) * 3 = 2 * 1/2 * 1 * 3
    queue = DelayQueue({"judge": {"gain": 2, "weights": {1: F(1, 2)}}}, ceiling=1)
    assert queue.enqueue(0, "a", "judge") == 0
    queue.inject(0)
    queue.arrive(1, "a", "judge", residual=3, ratio=F(3, 2))
    assert len(queue.inject(1)) == 0
    (x,) = queue.inject(2)
    assert (x.rollout, x.channel, x.number, x.step, x.arrival, x.age) == ("a", "judge", 0, 0, 1, 1)
    assert (x.weight, x.ratio, x.residual, x.amount) == (F(1, 2), 1, 3, 3)


@pytest.mark.parametrize("offset", [0, 1])
def test_a_signal_is_injected_at_step_plus_delay_plus_offset(offset: int) -> None:
    queue = DelayQueue({"judge": {}}, offset=offset)
    for step in range(8):
        if step == 2:
            queue.enqueue(2, "a", "judge")
        if step == 5:
            queue.arrive(5, "a", "judge", residual=1, ratio=1)
        assert len(queue.inject(step)) == (step == 5 + offset)


def test_with_offset_one_the_step_that_has_just_ended_is_still_there() -> None:
    queue = DelayQueue({"judge": {}})
    queue.inject(0)
    queue.enqueue(0, "a", "judge")
    queue.arrive(0, "a", "judge", residual=1, ratio=1)
    assert [x.age for x in queue.inject(1)] == [0]


def test_signals_of_one_rollout_in_one_channel_stand_beside_each_other() -> None:
    # a table by rollout would deliver 5 of these 8
    queue = DelayQueue({"verifier": {}, "judge": {}}, offset=0)
    numbers = [queue.enqueue(0, "a", channel) for channel in ("judge", "judge", "verifier")]
    assert numbers == [0, 1, 2]
    with pytest.raises(InputError, match=r"rollout 'a' in channel 'judge': .*\[0, 1\].*: several wait: the sequence number is needed"):
        queue.arrive(0, "a", "judge", residual=1, ratio=1)
    queue.arrive(0, "a", "judge", residual=5, ratio=1, number=1)
    queue.arrive(0, "a", "judge", residual=2, ratio=1)
    queue.arrive(0, "a", "verifier", residual=1, ratio=1)
    due = queue.inject(0)
    assert [(x.channel, x.number, x.residual) for x in due] == [("judge", 0, 2), ("judge", 1, 5), ("verifier", 2, 1)]
    assert due.deltas(["a"]) == [8]


def test_a_rollout_that_moved_the_policy_by_itself_has_the_ratio_of_then() -> None:
    # the mass of whichever answer was drawn went from 1/2 to 3/4: the ratio is 3/2 both times, the mean is no longer one
    for ceiling, expected in ((None, F(3, 2)), (F(5, 4), F(5, 4))):
        queue = DelayQueue({"judge": {}}, offset=0, ceiling=ceiling)
        for answer in ("a", "b"):
            queue.enqueue(0, answer, "judge")
        queue.inject(0)
        for answer in ("a", "b"):
            queue.arrive(1, answer, "judge", residual=1, log_probabilities=("log(3/4)", "log(1/2)"))
        assert queue.inject(1).total() / 2 == expected


def test_counts_and_leftovers_at_the_horizon() -> None:
    queue = DelayQueue({"judge": {}, "verifier": {}}, horizon=2, offset=1)
    queue.enqueue(0, "in time", "judge", delay=0, residual=1, ratio=1)
    queue.enqueue(0, "late", "judge", delay=1, residual=7, ratio=1)
    queue.enqueue(0, "lost", "judge")
    queue.enqueue(0, "open", "verifier")
    queue.drop("lost", "judge")
    assert queue.counts() == QueueCounts(enqueued=4, waiting=1, due=1, injected=0, dropped=1, late=1)
    assert [queue.inject(step).total() for step in range(2)] == [0, 1]
    assert queue.counts("judge") == QueueCounts(enqueued=3, waiting=0, due=0, injected=1, dropped=1, late=1)
    assert queue.counts("verifier") == QueueCounts(enqueued=1, waiting=1, due=0, injected=0, dropped=0, late=0)
    assert [(x.rollout, x.age, x.residual is None) for x in queue.leftovers()] == [("late", 1, False), ("open", None, True)]
    assert [type(x) for x in queue.leftovers()] == [Signal, Signal]
    queue.arrive(2, "open", "verifier", residual=1, ratio=1)
    assert queue.counts("verifier").late == 1


def test_a_drain_injects_what_is_under_way_and_takes_no_new_rollouts() -> None:
    queue = DelayQueue({"judge": {}}, horizon=1, drain=2, offset=1)
    queue.enqueue(0, "a", "judge")
    queue.inject(0)
    queue.arrive(1, "a", "judge", residual=5, ratio=1)
    with pytest.raises(InputError, match="step: 1: rollouts are made at the steps 0 to 0"):
        queue.enqueue(1, "b", "judge")
    assert [queue.inject(step).total() for step in (1, 2)] == [0, 5]
    assert (queue.step, queue.end, queue.counts().injected) == (3, 3, 1)


def test_an_age_weight_is_not_asked_for_what_does_not_land() -> None:
    # inverse-arrival weights 1/P(lands) do not exist there
    weights = {0: 1, 1: 2}
    rows = [(0, "a", "judge", d, 1, 1) for d in range(6)]
    assert simulate(2, 0, rows, channels={"judge": {"weights": weights}}).totals == (1, 2)


def test_a_function_and_tables_of_weights_agree() -> None:
    asked = []

    def weight(step: int, delay: int) -> F:
        asked.append((step, delay))
        return F(1, 2**delay)

    rows = [(1, i, "judge", i, 1, 1) for i in range(3)]
    for weights in (weight, [1, F(1, 2), F(1, 4)], {2: "1/4", 1: "1/2", 0: 1}, ("1", "0.5", "0.25")):
        assert simulate(5, 1, rows, channels={"judge": {"weights": weights}}).totals == (0, 0, 1, F(1, 2), F(1, 4))
    assert simulate(5, 1, rows, channels={"judge": {"weights": np.array([4, 2, 1])}}).totals == (0, 0, 4, 2, 1)
    assert sorted(asked) == [(1, 0), (1, 1), (1, 2)]


def test_irrational_numbers_meet_the_ceiling_exactly() -> None:
    queue = DelayQueue({"judge": {"gain": "sqrt(2)"}}, offset=0, ceiling="sqrt(2) + sqrt(3)")
    queue.enqueue(0, "a", "judge", delay=0, residual="1/sqrt(2)", ratio="sqrt(5 + 2*sqrt(6))")
    (x,) = queue.inject(0)
    assert x.amount == Real.of(2).sqrt() + Real.of(3).sqrt()


# ---- known instances


def test_known_kernels() -> None:
    # lag 1 without offset, X = (1, 3, -2, 0): cumulative bias 0, per step (-1, -2, 5, -2)
    x = [1, 3, -2, 0]
    totals = simulate(4, 0, [(t, t, "judge", 1, r, 1) for t, r in enumerate(x)], channels={"judge": {}}).totals
    assert [a - b for a, b in zip(totals, x, strict=True)] == [-1, -2, 5, -2]
    # the law (1/2, 1/3, 1/6) over N = 4: 7/3 residuals land with offset 1, 10/3 with offset 0
    law = {0: F(1, 2), 1: F(1, 3), 2: F(1, 6)}
    for offset, landed in ((1, F(7, 3)), (0, F(10, 3))):
        outcomes = [(p, simulate(4, offset, [(t, t, "j", d, 1, 1)], channels={"j": {}})) for t in range(4) for d, p in law.items()]
        assert sum(p * exactly(sum(run.totals, Real(0))) for p, run in outcomes) == landed
    # weights (1/2)^lag on the first row: 17/24
    halves = {"j": {"weights": lambda step, delay: F(1, 2**delay)}}
    first = [(p, simulate(4, 0, [(0, 0, "j", d, 1, 1)], channels=halves)) for d, p in law.items()]
    assert sum(p * exactly(sum(run.totals, Real(0))) for p, run in first) == F(17, 24)


def test_the_identity_kernel_adds_the_weighted_residual_to_the_fast_error() -> None:
    # one step, offset 0, delay 0: (r_fast - V) + rho (r_slow - r_fast), which is rho (r_slow - V) + (1 - rho)(r_fast - V)
    fast, slow, value, rho = F(1, 2), F(2), F(1, 3), F(3, 4)
    (total,) = simulate(1, 0, [(0, "a", "judge", 0, slow - fast, rho)], channels={"judge": {}}, ceiling=1).totals
    assert (fast - value) + total - rho * (slow - value) == (1 - rho) * (fast - value)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_simulated_totals_are_the_sum_over_all_signals(data: st.DataObject) -> None:
    horizon, offset, drain = data.draw(st.integers(1, 5)), data.draw(st.integers(0, 1)), data.draw(st.integers(0, 2))
    low, high = sorted(data.draw(st.tuples(positive_rationals(), positive_rationals())))
    floor, ceiling = data.draw(st.sampled_from([(None, None), (low, None), (None, high), (low, high)]))
    gains = {name: data.draw(rationals(min=0)) for name in ("a", "b")}
    weights = data.draw(st.lists(rationals(min=0), min_size=5, max_size=5))
    delays = st.none() | st.integers(0, 4)
    row = st.tuples(st.integers(0, horizon - 1), st.integers(0, 3), st.sampled_from("ab"), delays, rationals(), positive_rationals())
    rows = data.draw(st.lists(row, max_size=12))
    channels = {name: {"gain": gain, "weights": weights} for name, gain in gains.items()}
    run = simulate(horizon, offset, rows, channels=channels, drain=drain, floor=floor, ceiling=ceiling)
    expected = [F(0)] * (horizon + drain)
    for t, _, name, d, x, rho in rows:
        if d is not None and t + d + offset < len(expected):
            expected[t + d + offset] += gains[name] * weights[d] * clip(rho, floor, ceiling) * x
    assert [exactly(x) for x in run.totals] == expected
    lost = sum(d is None for _, _, _, d, _, _ in rows)
    landed = sum(d is not None and t + d + offset < len(expected) for t, _, _, d, _, _ in rows)
    assert run.counts == QueueCounts(len(rows), 0, 0, landed, lost, len(rows) - landed - lost)


# ---- against a list of all signals, exactly and on floats at once


def _float(x: F | None) -> float | None:
    return None if x is None else float(x)


class QueueMachine(RuleBasedStateMachine):
    """Two queues, exact and on floats, and a list in which every signal stays for ever and is searched from the start each time."""

    @initialize(
        horizon=st.none() | st.integers(1, 6),
        drain=st.integers(0, 2),
        offset=st.integers(0, 1),
        bounds=st.tuples(positives, positives),
        sides=st.sampled_from([(0, 0), (1, 0), (0, 1), (1, 1)]),
        gain=masses,
        ages=st.lists(masses, min_size=1, max_size=4),
        as_table=st.booleans(),
    )
    def start(self, horizon: int | None, drain: int, offset: int, bounds: Any, sides: Any, gain: F, ages: list[F], as_table: bool) -> None:
        drain = 0 if horizon is None else drain
        floor, ceiling = (x if side else None for x, side in zip(sorted(bounds), sides, strict=True))
        self.horizon, self.offset, self.end = horizon, offset, math.inf if horizon is None else horizon + drain
        self.floor, self.ceiling, self.gains, self.ages = floor, ceiling, {"a": gain, "b": F(1)}, ages
        self.functions: dict[str, Any] = {}
        self.queues = []
        for number, kind in ((lambda x: x, Real), (_float, float)):
            table = [number(ages[d % len(ages)]) for d in range(40)]
            weights: Any = table if as_table else (lambda step, delay, table=table: table[delay])
            channels: Any = {"a": {"gain": number(gain), "weights": weights}, "b": {}}
            options: Any = {"horizon": horizon, "drain": drain, "offset": offset, "floor": number(floor), "ceiling": number(ceiling)}
            self.queues.append(DelayQueue(channels, numbers=kind, **options))
            self.functions[kind.__name__] = {} if as_table else {"a": weights}
        self.now = 0
        self.signals: list[dict[str, Any]] = []

    def both(self, name: str, *args: Any, **options: Any) -> list[Any]:
        exact = getattr(self.queues[0], name)(*args, **options)
        floats = {k: float(x) if isinstance(x, F) else x for k, x in options.items()}
        return [exact, getattr(self.queues[1], name)(*args, **floats)]

    def amount(self, s: dict[str, Any]) -> F:
        age = self.ages[(s["arrival"] - s["step"]) % len(self.ages)] if s["channel"] == "a" else F(1)
        return self.gains[s["channel"]] * age * clip(s["ratio"], self.floor, self.ceiling) * s["residual"]

    def status(self, s: dict[str, Any]) -> str:
        if s["dropped"] or s["arrival"] is None:
            return "dropped" if s["dropped"] else "waiting"
        due = s["arrival"] + self.offset
        return "late" if due >= self.end else "injected" if due < self.now else "due"

    def present(self, data: st.DataObject) -> int:
        return data.draw(st.sampled_from([self.now, max(0, self.now - self.offset)]))

    @rule(data=st.data(), rollout=st.sampled_from([0, 1, "x"]), channel=st.sampled_from("ab"))
    def enqueue(self, data: st.DataObject, rollout: Any, channel: str) -> None:
        step = self.present(data)
        if self.horizon is not None and step >= self.horizon:
            with pytest.raises(InputError, match="rollouts are made"):
                self.queues[0].enqueue(step, rollout, channel)
            return
        signal = {"step": step, "rollout": rollout, "channel": channel, "arrival": None, "dropped": False}
        options: dict[str, Any] = {}
        if data.draw(st.booleans()):
            options = {"delay": data.draw(st.integers(0, 4)), "residual": data.draw(dyadics), "ratio": data.draw(positives)}
            signal |= {"arrival": step + options["delay"], "residual": options["residual"], "ratio": options["ratio"]}
        assert self.both("enqueue", step, rollout, channel, **options) == [len(self.signals)] * 2
        self.signals.append(signal)

    @precondition(lambda self: any(self.status(s) == "waiting" for s in self.signals))
    @rule(data=st.data(), residual=dyadics, ratio=positives, is_lost=st.booleans())
    def settle(self, data: st.DataObject, residual: F, ratio: F, is_lost: bool) -> None:
        numbers = [n for n, s in enumerate(self.signals) if self.status(s) == "waiting"]
        number = data.draw(st.sampled_from(numbers))
        signal = self.signals[number]
        alike = [n for n in numbers if all(self.signals[n][key] == signal[key] for key in ("rollout", "channel"))]
        named: dict[str, Any] = {} if alike == [number] and data.draw(st.booleans()) else {"number": number}
        if is_lost:
            self.both("drop", signal["rollout"], signal["channel"], **named)
            signal["dropped"] = True
            return
        step = max(self.present(data), signal["step"])
        self.both("arrive", step, signal["rollout"], signal["channel"], residual=residual, ratio=ratio, **named)
        signal |= {"arrival": step, "residual": residual, "ratio": ratio}

    @precondition(lambda self: any(self.status(s) != "waiting" for s in self.signals))
    @rule(data=st.data())
    def arrive_again(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from([n for n, s in enumerate(self.signals) if self.status(s) != "waiting"]))
        signal, before = self.signals[number], self.queues[0].state()
        with pytest.raises(InputError, match=f"signal {number} does not wait"):
            self.queues[0].arrive(self.now, signal["rollout"], signal["channel"], residual=1, ratio=1, number=number)
        assert self.queues[0].state() == before

    @rule()
    def inject(self) -> None:
        if self.now >= self.end:
            with pytest.raises(InputError, match="the last step is"):
                self.queues[0].inject(self.now)
            return
        due = [(n, s) for n, s in enumerate(self.signals) if self.status(s) == "due" and s["arrival"] + self.offset == self.now]
        names = list(dict.fromkeys(s["rollout"] for _, s in due))
        for injected in self.both("inject", self.now):
            assert [(x.number, x.rollout, x.channel, x.step, x.age, exactly(x.amount)) for x in injected] == [
                (n, s["rollout"], s["channel"], s["step"], s["arrival"] - s["step"], self.amount(s)) for n, s in due
            ]
            assert injected.rollouts == names
            deltas = [exactly(x) for x in injected.deltas(["none", *names])]
            assert deltas == [0] + [sum(self.amount(s) for _, s in due if s["rollout"] == name) for name in names]
            assert exactly(injected.total()) == sum(self.amount(s) for _, s in due)
        self.now += 1

    @rule()
    def resume(self) -> None:
        self.queues = [
            DelayQueue.restore(json.loads(json.dumps(queue.state())), weights=self.functions[name])
            for queue, name in zip(self.queues, ("Real", "float"), strict=True)
        ]

    @invariant()
    def counts_are_exact(self) -> None:
        if not hasattr(self, "signals"):
            return
        statuses = [self.status(s) for s in self.signals]
        expected = {name: statuses.count(name) for name in ("waiting", "due", "injected", "dropped", "late")}
        left = [n for n, status in enumerate(statuses) if status in ("waiting", "late")]
        for queue in self.queues:
            assert queue.step == self.now
            assert queue.counts() == QueueCounts(len(self.signals), **expected)
            assert [x.number for x in queue.leftovers()] == left


QueueMachine.TestCase.settings = settings(max_examples=120, stateful_step_count=30, deadline=None)
TestAgainstAList = QueueMachine.TestCase


# ---- floats


def test_a_ratio_from_logarithms_is_clipped_before_it_overflows() -> None:
    queue = DelayQueue({"judge": {}}, offset=0, ceiling=2.0, numbers=float)
    for pair in ((-1.0, -1000.0), (-1000.0, -1.0), (np.float32(-2), -2.0)):
        queue.enqueue(0, "a", "judge", delay=0, residual=1.0, log_probabilities=pair)
    again = DelayQueue.restore(queue.state())
    assert [x.ratio for x in queue.inject(0)] == [x.ratio for x in again.inject(0)] == [2.0, 0.0, 1.0]
    unclipped = DelayQueue({"judge": {}}, numbers=float)
    with pytest.raises(InputError, match="ratio: inf: a finite float"):
        unclipped.enqueue(0, "a", "judge", delay=0, residual=1.0, log_probabilities=(-1.0, -1000.0))


def test_sums_of_floats_are_rounded_once() -> None:
    queue = DelayQueue({"judge": {}}, offset=0, numbers=float)
    for x in (1e16, 1.0, -1e16):
        queue.enqueue(0, "a", "judge", delay=0, residual=x, ratio=1.0)
    due = queue.inject(0)
    assert (due.total(), due.deltas(["a"])) == (1.0, [1.0])


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, np.float64("nan"), 10**400, "1/2", True, None, Real(1)])
def test_only_finite_floats_are_numbers_of_a_float_queue(bad: Any) -> None:
    with pytest.raises(InputError, match=r"channel 'judge': gain: .*: a finite float"):
        DelayQueue({"judge": {"gain": bad}}, numbers=float)
    queue = DelayQueue({"judge": {}}, numbers=float)
    for name in ("residual", "ratio"):
        given = {"residual": 1.0, "ratio": 1.0} | {name: bad}
        with pytest.raises(InputError, match=name) as error:
            queue.enqueue(0, "a", "judge", delay=0, **given)
        assert "\n" not in str(error.value)
    assert queue.counts().enqueued == 0


def test_products_and_sums_that_overflow_are_refused() -> None:
    queue = DelayQueue({"judge": {"gain": 1e200}}, offset=0, numbers=float)
    with pytest.raises(InputError, match="amount: inf: a finite float"):
        queue.enqueue(0, "a", "judge", delay=0, residual=1e200, ratio=1.0)
    for _ in range(2):
        queue.enqueue(0, "a", "judge", delay=0, residual=1.5e108, ratio=1.0)
    with pytest.raises(InputError, match="total"):
        queue.inject(0).total()


def test_a_float_is_refused_by_an_exact_queue() -> None:
    queue = DelayQueue({"judge": {"weights": lambda step, delay: 0.5}}, ceiling=1)
    queue.enqueue(0, "a", "judge")
    calls = (
        lambda: DelayQueue({"judge": {"gain": 0.5}}),
        lambda: DelayQueue({"judge": {"weights": [0.5]}}),
        lambda: DelayQueue({"judge": {}}, ceiling=1.0),
        lambda: queue.arrive(0, "a", "judge", residual=0.5, ratio=1),
        lambda: queue.arrive(0, "a", "judge", residual=1, ratio=np.float64(0.5)),
        lambda: queue.arrive(0, "a", "judge", residual=1, log_probabilities=(-0.5, -1)),
        lambda: queue.arrive(0, "a", "judge", residual=1, ratio=1),  # the weight
    )
    for call in calls:
        with pytest.raises(InexactInputError):
            call()
    assert queue.counts().waiting == 1


# ---- misuse: one line, and the queue is as it was

ARRIVED = {"residual": 1, "ratio": 1}


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda q: q.enqueue(3, "c", "typo"), "channel: 'typo': one of 'judge', 'verifier'"),
        (lambda q: q.enqueue(3, "c", ["judge"]), "channel: "),
        (lambda q: q.enqueue(1, "c", "judge"), "step: 1: the queue is at step 3: what happens now is of step 3, or 2"),
        (lambda q: q.enqueue(4, "c", "judge"), "step: 4: the queue is at step 3"),
        (lambda q: q.enqueue(-1, "c", "judge"), "step: -1: an integer of at least 0"),
        (lambda q: q.enqueue(3.0, "c", "judge"), "step: 3.0: an integer"),
        (lambda q: q.enqueue(3, None, "judge"), "rollout: None: a rollout is named by"),
        (lambda q: q.enqueue(3, True, "judge"), "rollout: True: a rollout is named by"),
        (lambda q: q.enqueue(3, 2**63, "judge"), "rollout: 9223372036854775808: a rollout is named by"),
        (lambda q: q.enqueue(3, "c" * 1001, "judge"), "rollout: .*: a name has at most 1000 characters"),
        (lambda q: q.enqueue(3, "c", "judge", delay=-1, **ARRIVED), "delay: -1: an integer of at least 0"),
        (lambda q: q.enqueue(3, "c", "judge", delay=10**10, **ARRIVED), "delay: 10000000000: at most"),
        (lambda q: q.enqueue(3, "c", "judge", delay=1, ratio=1), "residual: None: a signal that arrives has a residual"),
        (lambda q: q.enqueue(3, "c", "judge", delay=1, residual=1), "ratio: None: the ratio at arrival is given"),
        (lambda q: q.enqueue(3, "c", "judge", residual=1), "delay: None: residual and ratio are given at arrival"),
        (lambda q: q.enqueue(3, "c", "judge", delay=9, **ARRIVED), "channel 'judge': weights: 'delay 9': the table has no weight"),
        (lambda q: q.enqueue(3, "c", "verifier", delay=7, **ARRIVED), r"channel 'verifier': weights\(3, 7\): -4: not negative"),
        (lambda q: q.arrive(3, "c", "judge", **ARRIVED), "rollout 'c' in channel 'judge': 'no signal waits': it was never enqueued"),
        (lambda q: q.arrive(3, "a", "verifier", **ARRIVED), "rollout 'a' in channel 'verifier': 'no signal waits'"),
        (lambda q: q.arrive(3, "b", "judge", **ARRIVED), "rollout 'b' in channel 'judge': 'no signal waits': it has arrived at step 2"),
        (lambda q: q.arrive(3, "gone", "judge", **ARRIVED), "rollout 'gone' .*: it was never enqueued, or has arrived before or been dr"),
        (lambda q: q.arrive(3, "a", "judge", number=7, **ARRIVED), "'signal 7 does not wait'"),
        (lambda q: q.arrive(3, "a", "judge", number="0", **ARRIVED), "number: '0': an integer"),
        (lambda q: q.arrive(1, "a", "judge", **ARRIVED), "step: 1: the queue is at step 3"),
        (lambda q: q.arrive(2, "new", "judge", **ARRIVED), "step: 2: the signal is of step 3: it arrives then or later"),
        (lambda q: q.arrive(3, "a", "judge", ratio=1), "residual: None: a signal that arrives has a residual"),
        (lambda q: q.arrive(3, "a", "judge", residual=1), "ratio: None: the ratio at arrival is given"),
        (lambda q: q.arrive(3, "a", "judge", log_probabilities=(0, 0), **ARRIVED), "ratio: 1: .*not both"),
        (lambda q: q.arrive(3, "a", "judge", residual=1, ratio=-1), "ratio: -1: a ratio is not negative"),
        (lambda q: q.arrive(3, "a", "judge", residual=1, ratio=-1), "ratio: -1"),
        (lambda q: q.arrive(3, "a", "judge", residual=1, log_probabilities=-1), "log_probabilities: -1: a pair"),
        (lambda q: q.arrive(3, "a", "judge", residual="one", ratio=1), "residual: 'one'"),
        (lambda q: q.drop("b", "judge"), "it has arrived at step 2"),
        (lambda q: q.inject(2), "step: 2: the step to inject now is 3: none is repeated or skipped"),
        (lambda q: q.inject(4), "step: 4: the step to inject now is 3: none is repeated or skipped"),
        (lambda q: q.counts("typo"), "channel: 'typo'"),
    ],
)
def test_misuse_is_one_line_and_changes_nothing(call: Any, text: str) -> None:
    channels: Any = {"judge": {"weights": [1] * 5}, "verifier": {"weights": lambda step, delay: step - delay}}
    queue = DelayQueue(channels, ceiling=1)
    for step in range(3):
        queue.enqueue(step, ("gone", "a", "b")[step], "judge")
        if step == 0:
            queue.arrive(0, "gone", "judge", **ARRIVED)
        queue.inject(step)
    queue.arrive(2, "b", "judge", **ARRIVED)
    queue.enqueue(3, "new", "judge")
    before = queue.state()
    with pytest.raises(InputError, match=text) as error:
        call(queue)
    assert "\n" not in str(error.value)
    assert queue.state() == before


@pytest.mark.parametrize(
    ("channels", "options", "text"),
    [
        ({}, {}, "channels: "),
        (["judge"], {}, "channels: "),
        ({"": {}}, {}, "channels: '': a name of 1 to 1000"),
        ({3: {}}, {}, "channels: 3: a name"),
        ({"judge": 1}, {}, "channel 'judge': 1: a table with gain and weights"),
        ({"judge": {"weight": 1}}, {}, "channel 'judge': .*: a table with gain and weights"),
        ({"judge": {"gain": -1}}, {}, "channel 'judge': gain: -1: not negative"),
        ({"judge": {"weights": [1, "-1/2"]}}, {}, r"channel 'judge': weights\[1\]: '-1/2': not negative"),
        ({"judge": {"weights": {-1: 1}}}, {}, "channel 'judge': weights: delay: -1"),
        ({"judge": {"weights": "abc"}}, {}, "channel 'judge': weights: 'abc': a function"),
        ({"judge": {}}, {"horizon": 0}, "horizon: 0: an integer of at least 1"),
        ({"judge": {}}, {"horizon": 10**10}, "horizon: 10000000000: at most"),
        ({"judge": {}}, {"drain": 1}, "drain: 1: a queue without a horizon needs no drain"),
        ({"judge": {}}, {"horizon": 1, "drain": -1}, "drain: -1"),
        ({"judge": {}}, {"offset": 2}, "offset: 2: 0 or 1"),
        ({"judge": {}}, {"floor": 2, "ceiling": 1}, "floor: .*: a clip is not empty"),
        ({"judge": {}}, {"floor": 2, "ceiling": 1, "numbers": float}, "floor: .*: a clip is not empty"),
        ({"judge": {}}, {"ceiling": 0}, "ceiling: .*: a ceiling is positive"),
        ({"judge": {}}, {"floor": -1, "numbers": float}, "floor: .*: a floor is positive"),
        ({"judge": {}}, {"numbers": int}, "numbers: .*: Real for exact numbers, or float"),
    ],
)
def test_a_queue_that_makes_no_sense_is_refused(channels: Any, options: Any, text: str) -> None:
    with pytest.raises(InputError, match=text) as error:
        DelayQueue(channels, **options)
    assert "\n" not in str(error.value)


def test_sizes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_module, "MAX_SIGNALS", 2)
    monkeypatch.setattr(queue_channels, "MAX_TABLE", 2)
    monkeypatch.setattr(queue_channels, "MAX_CHANNELS", 2)
    queue = DelayQueue({"judge": {}}, offset=0)
    queue.enqueue(0, 1, "judge", delay=0, **ARRIVED)
    queue.enqueue(0, 1, "judge")
    with pytest.raises(LimitError, match="at most 2 at one time"):
        queue.enqueue(0, 1, "judge")
    queue.inject(0)
    queue.enqueue(1, 1, "judge")  # what is injected makes room
    for channels in ({"judge": {"weights": [1] * 3}}, {name: {} for name in "abc"}):
        with pytest.raises(LimitError, match="at most 2"):
            DelayQueue(channels)


@pytest.mark.parametrize(
    ("rows", "options", "text"),
    [
        ([(0, 0, "j", 0, 1)], {}, r"signals\[0\]: .*5 entries.*: a row"),
        ([7], {}, r"signals\[0\]: 7: a row"),
        ([(0, 0, "j", 0, 1, 1), (4, 0, "j", 0, 1, 1)], {}, r"signals\[1\]: step: 4: rollouts are made at the steps 0 to 3"),
        ([(0, 0, "k", 0, 1, 1)], {}, r"signals\[0\]: channel: 'k'"),
        ([(0, 0, "j", 0, None, 1)], {}, r"signals\[0\]: residual: None"),
        ([], {"horizon": None}, "horizon: None: an integer of at least 1"),
        ([], {"horizon": 10**9}, "horizon: .*at most 1000000"),
    ],
)
def test_simulated_rows_are_checked(rows: Any, options: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        simulate(**({"horizon": 4, "offset": 0, "signals": rows, "channels": {"j": {}}} | options))


# ---- states


def some_queue(kind: Any = Real) -> DelayQueue:
    queue = DelayQueue({"judge": {"gain": 2, "weights": [1, 1, 1]}, "v": {}}, horizon=6, drain=1, ceiling=3, floor=1, numbers=kind)
    queue.enqueue(0, "a", "judge", delay=2, residual=5, ratio=2)
    queue.enqueue(0, 7, "v")
    queue.enqueue(0, "b", "v")
    queue.drop("b", "v")
    queue.enqueue(0, "c", "judge", delay=0, residual=1, ratio=1)
    queue.enqueue(0, "d", "judge", delay=6, residual=9, ratio=1)
    queue.inject(0)
    queue.inject(1)
    return queue


@pytest.mark.parametrize("kind", [Real, float])
def test_a_saved_queue_goes_on_as_if_nothing_had_happened(tmp_path: Path, kind: Any) -> None:
    queue, path = some_queue(kind), tmp_path / "queue.json"
    queue.save(path)
    again = DelayQueue.load(path)
    assert again.state() == queue.state()
    for q in (queue, again):
        q.arrive(2, 7, "v", residual=3, ratio=2)
    assert [list(queue.inject(t)) for t in range(2, 7)] == [list(again.inject(t)) for t in range(2, 7)]
    assert again.counts() == queue.counts() == QueueCounts(5, 0, 0, 3, 1, 1)
    assert again.leftovers() == queue.leftovers()
    assert list(tmp_path.iterdir()) == [path]


def test_a_state_holds_exact_numbers_as_text_and_every_bit_of_a_float() -> None:
    queue = DelayQueue({"judge": {"gain": "1/3"}}, offset=0)
    queue.enqueue(0, "a", "judge", delay=0, residual="sqrt(8)", log_probabilities=("log(3)", 0))
    state = queue.state()
    assert (state["channels"]["judge"]["gain"], state["signals"]) == ("1/3", [[0, 0, "a", "judge", 0, "3", "2*sqrt(2)"]])
    floats = DelayQueue({"judge": {}}, offset=0, numbers=float)
    floats.enqueue(0, "a", "judge", delay=0, residual=0.1 + 0.2, ratio=5e-324)
    again = DelayQueue.restore(json.loads(json.dumps(floats.state())))
    assert again.inject(0).items == floats.inject(0).items


def test_functions_of_weights_are_given_again() -> None:
    def weight(step: int, delay: int) -> int:
        return 1 + delay

    queue = DelayQueue({"judge": {"weights": weight}, "v": {"weights": [1]}})
    queue.enqueue(0, "a", "judge", delay=1, residual=1, ratio=1)
    state = queue.state()
    assert state["channels"]["judge"]["weights"] == "function"
    with pytest.raises(InputError, match="channel 'judge': weights: 'function': a state holds no function: give it again"):
        DelayQueue.restore(state)
    for weights in ({"judge": weight, "v": weight}, {"judge": weight, "typo": weight}):
        with pytest.raises(InputError, match=r"weights: '(v|typo)': a channel of the state whose weights are a function"):
            DelayQueue.restore(state, weights=weights)
    again = DelayQueue.restore(state, weights={"judge": weight})
    assert [again.inject(t).total() for t in range(3)] == [0, 0, 2]


def change(*path: Any, to: Any) -> Any:
    def changed(state: Any) -> Any:
        *outer, last = path
        inner = state
        for key in outer:
            inner = inner[key]
        inner[last] = to
        return state

    return changed


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (lambda s: [], "state: .*: a table"),
        (lambda s: s | {"more": 1}, "state: 'more': unknown key"),
        (lambda s: {k: v for k, v in s.items() if k != "issued"}, "state: 'issued': this key is missing"),
        (change("format", to="exactgrpo.delay-queue/9"), "format: "),
        (change("numbers", to="complex"), "numbers: 'complex': exact or float"),
        (change("numbers", to=["exact"]), "numbers: "),
        (change("channels", to={}), "channels"),
        (change("channels", "judge", "gain", to="-1"), "gain: '-1': not negative"),
        (change("channels", "judge", "gain", to=0.5), "gain: 0.5: a float is not exact"),
        (change("channels", "judge", "weights", "01", to="1"), "weights: '01': a delay is written in digits"),
        (change("channels", "judge", "weights", "x", to="1"), "weights: 'x': a delay is written in digits"),
        (change("channels", "judge", "weights", to=[1, 2]), "weights: .*: a table"),
        (change("channels", "judge", to={"gain": "1"}), "channel 'judge': 'weights': this key is missing"),
        (change("horizon", to=0), "horizon: 0"),
        (change("offset", to=2), "offset: 2"),
        (change("floor", to="4"), "a clip is not empty"),
        (change("step", to=9), "step: 9: at most 7: horizon"),
        (change("step", to=-1), "step: -1"),
        (change("step", to=4), r"signals\[0\]: arrival: 2: a signal that is still there is injected at step 4 or later"),
        (change("counts", "judge", "injected", to=2), "issued: 5: the signals and counts of the state say 6"),
        (change("counts", "judge", "injected", to=-1), "counts of 'judge': injected: -1"),
        (change("counts", "judge", to={"injected": 1}), "counts of 'judge': 'dropped': this key is missing"),
        (change("counts", to={"judge": {"injected": 1, "dropped": 0}}), "counts: 'v': this key is missing"),
        (change("issued", to=6), "issued: 6: the signals and counts"),
        (change("issued", to=4), r"signals\[2\]: number: 4: numbers ascend and are below issued = 4"),
        (change("signals", 1, 0, to=0), r"signals\[1\]: number: 0: numbers ascend"),
        (change("signals", 1, 1, to=3), r"signals\[1\]: step: 3: at most 2"),
        (change("signals", 1, 2, to=None), r"signals\[1\]: rollout: None"),
        (change("signals", 1, 3, to="typo"), "channel: 'typo'"),
        (change("signals", 1, to=[1, 0]), r"signals\[1\]: .*2 entries"),
        (change("signals", 0, 4, to=-1), r"signals\[0\]: arrival: -1"),
        (change("signals", 0, 5, to="-1"), r"signals\[0\]: ratio: '-1': not negative"),
        (change("signals", 0, 6, to=None), "residual: None"),
        (change("signals", 0, 6, to=0.5), "residual: 0.5: a float is not exact"),
        (change("signals", to="rows"), "signals: 'rows'"),
    ],
)
def test_a_spoilt_state_is_refused(tmp_path: Path, spoil: Any, text: str) -> None:
    state = spoil(json.loads(json.dumps(some_queue().state())))
    with pytest.raises(InputError, match=text) as error:
        DelayQueue.restore(state)
    assert "\n" not in str(error.value)
    path = tmp_path / "queue.json"
    path.write_text(json.dumps(state), encoding="utf-8")
    with pytest.raises(InputError, match=r"queue\.json: ") as error:
        DelayQueue.load(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"a": 1, "a": 1}', "1" * 5000, "null", "\udcff"])
def test_a_file_that_is_no_state_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "queue.json"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(InputError, match=r"queue\.json: ") as error:
        DelayQueue.load(path)
    assert "\n" not in str(error.value)
    for other in (tmp_path, tmp_path / "none.json"):
        with pytest.raises(InputError, match="file name"):
            DelayQueue.load(other)


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "queue.json"
    some_queue().save(path)
    old = path.read_bytes()

    def full(*args: Any, **options: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(InputError, match="No space left"):
        some_queue().save(path)
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (old, [path])


# ---- work


@pytest.mark.parametrize("kind", [float, Real])
def test_work_grows_with_the_signals_and_settled_ones_take_no_room(kind: Any) -> None:
    queue = DelayQueue({name: {} for name in "abc"}, ceiling=1, numbers=kind)
    for step in range(3000):
        for name in "abc":
            queue.enqueue(step, step, name)
            if step >= 5:
                queue.arrive(step, step - 5, name, residual=1, ratio=1)
        assert len(queue.inject(step)) == (3 if step > 5 else 0)
    assert len(queue.state()["signals"]) == len(queue._live) == 3 * 6
    assert queue.counts() == QueueCounts(9000, 15, 3, 8982, 0, 0)
