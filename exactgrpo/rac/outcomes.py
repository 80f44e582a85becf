"""The joint law of what one rollout brings: residuals, delays and clipped ratios at arrival, for each channel and step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from exactgrpo.errors import InputError, LimitError
from exactgrpo.field.inputs import ONE, ZERO
from exactgrpo.numbers.inputs import listed, whole
from exactgrpo.rac.delay_law import DelayLaw
from exactgrpo.rac.kernel import Channel, Kernel
from exactgrpo.rac.values import Value, is_zero, nonnegative, settled, total, value
from exactgrpo.spec.reading import located

MAX_ATOMS = 100_000


@dataclass(frozen=True, slots=True)
class Signal:
    """What a channel brings in one outcome: the residual X = slow - fast, the law of its delay, and rho at arrival for each delay.

    `ratio` is one number, or one for each delay in the law's order. The law is given the outcome: where it differs between outcomes the
    delay tells about the residual.
    """

    channel: str
    residual: Value
    delay: DelayLaw
    ratios: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One outcome of a rollout: its probability, a signal for each channel, and the context that conditions may refer to."""

    probability: Value
    signals: tuple[Signal, ...]
    context: str = ""

    @classmethod
    def of(
        cls,
        probability: Any,
        channels: Sequence[Channel],
        *,
        residual: Mapping[str, Any],
        ratio: Mapping[str, Any] | None = None,
        delay: Mapping[str, Any] | None = None,
        context: str = "",
        place: str = "outcome",
    ) -> Outcome:
        """An outcome from tables by channel name. Without a ratio it is 1, without a delay the law is the channel's.

        InputError for an unknown channel, a channel without a residual, a negative probability or ratio, a ratio table of another length.

        >>> channel = Channel.of("judge", {0: "1/2", 1: "1/2"})
        >>> Outcome.of("1/2", [channel], residual={"judge": 1}, ratio={"judge": ["3/2", "1/2"]}).signals[0].ratios
        (Real('3/2'), Real('1/2'))
        """
        names = [channel.name for channel in channels]
        tables = {"residual": residual, "ratio": ratio or {}, "delay": delay or {}}
        for kind, table in tables.items():
            if not isinstance(table, Mapping):
                raise InputError(f"{place}: {kind}", table, "a table by channel")
            for name in table:
                if name not in names:
                    raise InputError(f"{place}: {kind}", name, f"a channel: {', '.join(names)}"[:200])
        if not isinstance(context, str):
            raise InputError(f"{place}: context", context, "a text")
        signals = []
        for channel in channels:
            if channel.name not in residual:
                raise InputError(f"{place}: residual", channel.name, "a residual for each channel")
            law = tables["delay"].get(channel.name, channel.delay)
            law = law if isinstance(law, DelayLaw) else _law(law, f"{place}: delay.{channel.name}")
            ratios = _ratios(tables["ratio"].get(channel.name, 1), law, f"{place}: ratio.{channel.name}")
            signals.append(Signal(channel.name, value(residual[channel.name], f"{place}: residual.{channel.name}"), law, ratios))
        return cls(nonnegative(probability, f"{place}: probability", "a probability is not negative"), tuple(signals), context)


def _law(given: Any, place: str) -> DelayLaw:
    if isinstance(given, Mapping):
        return DelayLaw.of(given, place)
    with located(place):
        return DelayLaw.deterministic(given)


def _ratios(given: Any, law: DelayLaw, place: str) -> tuple[Value, ...]:
    rule = "a ratio is not negative"
    if isinstance(given, (list, tuple)):
        if len(given) != len(law.masses):
            raise InputError(place, f"{len(given)} ratios", f"one number, or one for each of the {len(law.masses)} delays that have a mass")
        return tuple(nonnegative(x, f"{place}[{i}]", rule) for i, x in enumerate(given))
    return (nonnegative(given, place, rule),) * len(law.masses)


def mixed_law(outcomes: Sequence[Outcome], channel: int) -> DelayLaw:
    """The law of a delay that the outcomes give it, each with its probability.

    >>> channel = Channel.of("judge", {0: "1/2", 1: "1/2"})
    >>> late = [Outcome.of("1/2", [channel], residual={"judge": d}, delay={"judge": d}) for d in (0, 1)]
    >>> mixed_law(late, 0) == channel.delay
    True
    """
    signals = [(outcome.probability, outcome.signals[channel].delay) for outcome in outcomes]
    never = total(settled(p * law.never) for p, law in signals)
    masses: dict[int, list[Value]] = {}
    for p, law in signals:
        for delay, mass in law.masses:
            masses.setdefault(delay, []).append(settled(p * mass))
    sums = [(delay, total(parts)) for delay, parts in sorted(masses.items())]
    return DelayLaw(tuple((delay, mass) for delay, mass in sums if not is_zero(mass)), never)


def _checked(outcomes: Sequence[Any], kernel: Kernel, place: str) -> tuple[Outcome, ...]:
    """The outcomes of a step, with signals in the order of the kernel's channels."""
    if not outcomes or not all(isinstance(x, Outcome) for x in outcomes):
        raise InputError(place, f"{len(outcomes)} entries", "outcomes, at least one")
    ordered = tuple(_ordered(x, kernel, place) for x in outcomes)
    everything = total(x.probability for x in ordered)
    if not is_zero(everything - ONE):
        raise InputError(place, f"sum {everything!r}", "probabilities sum to one")
    for k, channel in enumerate(kernel.channels):
        _check_mixture(ordered, k, channel, place)
    return ordered


def _ordered(outcome: Outcome, kernel: Kernel, place: str) -> Outcome:
    names = [channel.name for channel in kernel.channels]
    signals = {signal.channel: signal for signal in outcome.signals}
    if sorted(signals) != sorted(names):
        raise InputError(place, f"channels {', '.join(signals)}"[:100], f"the channels of the kernel: {', '.join(names)}"[:200])
    return replace(outcome, signals=tuple(signals[name] for name in names))


def _check_mixture(outcomes: Sequence[Outcome], k: int, channel: Channel, place: str) -> None:
    if all(outcome.signals[k].delay is channel.delay for outcome in outcomes):
        return
    mixed, law = mixed_law(outcomes, k), channel.delay
    found, stated = dict(mixed.masses), dict(law.masses)
    delays = sorted({*found, *stated})
    wrong = [delay for delay in delays if not is_zero(settled(found.get(delay, ZERO) - stated.get(delay, ZERO)))]
    if wrong:
        rule = f"delays of the outcomes mix to the law of channel {channel.name!r}, which has another probability there"
        raise InputError(f"{place}: delay.{channel.name}", f"delay {wrong[0]}", rule)


@dataclass(frozen=True, slots=True)
class Atom:
    """One outcome of one channel with one delay: None is a signal that never arrives, whose ratio does not matter."""

    probability: Value
    residual: Value
    delay: int | None
    ratio: Value
    context: str


@dataclass(frozen=True, eq=False)
class Model:
    """A kernel, and for each step the outcomes of its rollout; rollouts are independent, and so are channels given the outcome.

    Laws that outcomes give a delay mix to the law of the channel, at every step.
    """

    kernel: Kernel
    outcomes: tuple[tuple[Outcome, ...], ...]

    @classmethod
    def of(cls, kernel: Kernel, outcomes: Iterable[Any]) -> Model:
        """A model from one list of outcomes for all steps, or one list for each of the `horizon` steps.

        InputError unless each list's outcomes have the kernel's channels, in any order, its probabilities sum to one and its delays mix to
        the channels' laws, LimitError beyond 100,000 triples of outcome, delay and step.

        >>> channel = Channel.of("judge", {0: "1/2", 1: "1/2"})
        >>> outcomes = [Outcome.of("1/2", [channel], residual={"judge": x}) for x in (1, -1)]
        >>> len(Model.of(Kernel.of([channel], horizon=3), outcomes).atoms(0, 2))
        4
        """
        given = listed(outcomes, "outcomes")
        is_shared = all(isinstance(x, Outcome) for x in given)
        lists = [given] if is_shared else [listed(x, f"outcomes of step {t}") for t, x in enumerate(given)]
        if not is_shared and len(lists) != kernel.horizon:
            raise InputError("outcomes", f"{len(lists)} lists", f"one list of outcomes, or one for each of the {kernel.horizon} steps")
        steps = [_checked(x, kernel, "outcomes" if is_shared else f"outcomes of step {t}") for t, x in enumerate(lists)]
        steps *= kernel.horizon if is_shared else 1
        atoms = sum(len(signal.delay.masses) + 1 for step in steps for x in step for signal in x.signals)
        if atoms > MAX_ATOMS:
            raise LimitError("outcomes", f"{atoms} triples of outcome, delay and step", f"at most {MAX_ATOMS}")
        return cls(kernel, tuple(steps))

    def atoms(self, channel: int, step: int) -> list[Atom]:
        """The joint law of residual, delay, ratio and context of one channel at one step."""
        if not 0 <= whole(step, "step", least=0) < len(self.outcomes):
            raise InputError("step", step, f"from 0 to {len(self.outcomes) - 1}")
        found = []
        for outcome in self.outcomes[step]:
            signal = outcome.signals[channel]
            cells = [(d, mass, rho) for (d, mass), rho in zip(signal.delay.masses, signal.ratios, strict=True)]
            for delay, mass, rho in [*cells, (None, signal.delay.never, ONE)]:
                probability = settled(outcome.probability * mass)
                if not is_zero(probability):
                    found.append(Atom(probability, signal.residual, delay, rho, outcome.context))
        return found

    def weight(self, channel: int, step: int, atom: Atom) -> Value:
        """g(t, D) at an atom: zero where nothing arrives or lands."""
        return ZERO if atom.delay is None else self.kernel.weight(channel, step, atom.delay)

    def cells(self) -> list[tuple[int, int]]:
        """All pairs of a channel and a step."""
        return [(k, t) for k in range(len(self.kernel.channels)) for t in range(self.kernel.horizon)]
