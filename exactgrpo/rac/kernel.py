"""Effective kernels of delayed channels: which weight reaches which step, what each step lacks of one, and what would make it up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from exactgrpo.errors import InputError, LimitError
from exactgrpo.field.inputs import ONE, ZERO
from exactgrpo.numbers.inputs import listed, whole
from exactgrpo.rac.age import AgeWeight, none
from exactgrpo.rac.delay_law import DelayLaw
from exactgrpo.rac.values import Value, is_zero, nonnegative, settled, total
from exactgrpo.spec.reading import located

MAX_HORIZON = 10_000
MAX_ENTRIES = 1_000_000
"""Steps times channels times delays of one kernel."""

NO_AGEING = none()


@dataclass(frozen=True, slots=True)
class Channel:
    """One source of late residuals: the law of its delay, its age weight w(step, delay) >= 0 and its gain >= 0.

    The weight is one of `exactgrpo.rac.age`, or any function of a step and a delay.
    """

    name: str
    delay: DelayLaw
    weight: Callable[[int, int], Any]
    gain: Value

    @classmethod
    def of(cls, name: str, delay: Any, *, weight: Callable[[int, int], Any] = NO_AGEING, gain: Any = 1) -> Channel:
        """A channel whose delay is a DelayLaw, or a table from delays and "never" to probabilities.

        >>> Channel.of("judge", {1: "1/2", "never": "1/2"}).delay.largest
        1
        """
        if not isinstance(name, str) or not name:
            raise InputError("channel", name, "a name")
        law = delay if isinstance(delay, DelayLaw) else DelayLaw.of(delay, f"channel {name!r}: delay")
        if not callable(weight):
            raise InputError(f"channel {name!r}: weight", weight, "a function of a step and a delay")
        return cls(name, law, weight, nonnegative(gain, f"channel {name!r}: gain", "a gain is not negative"))


@dataclass(frozen=True, eq=False)
class Kernel:
    """The effective kernel of some channels over the steps 0..horizon-1.

    A residual of step t with delay d is injected at step t + d + offset if that is below horizon + drain, with weight
    g(t, d) = gain w(t, d), so Lambda[t, s] = gain sum_d P(D = d) w(t, d) 1{s = t + d + offset}. Retroactive Advantage Correction injects at
    t + d + 1: offset 1. `drain` steps after the last one inject what is still under way and enqueue nothing. Numbers may be symbolic:
    see `exactgrpo.rac.values`. Source: Retroactive Advantage Correction, arXiv:2606.27580; dropped signals and the drain are ours.
    Theorems: Lambda_row_mass, gain_saturates, truncation_sum, last_row_slack (Delay.v), bias_zero_row_stochastic (Kernel.v).

    >>> from exactgrpo import Real
    >>> law = {0: "1/2", 1: "1/3", 2: "1/6"}
    >>> half = lambda step, delay: Real.of(2) ** -delay
    >>> kernel = Kernel.of([Channel.of("judge", law, weight=half)], horizon=8)
    >>> kernel.slack(0, 0), kernel.saturation_gain(0, 0), kernel.slack(0, 7)
    (Real('7/24'), Real('24/17'), Real('1'))
    """

    channels: tuple[Channel, ...]
    horizon: int
    offset: int = 1
    drain: int = 0
    _weights: dict[tuple[int, int, int], Value] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, channels: Iterable[Channel], *, horizon: int, offset: int = 1, drain: int = 0) -> Kernel:
        """A checked kernel: InputError for no channel, two of one name, an offset other than 0 and 1, LimitError beyond the limits."""
        given = tuple(listed(channels, "channels", "a list of channels"))
        if not given or not all(isinstance(channel, Channel) for channel in given):
            raise InputError("channels", repr(given)[:60], "at least one Channel, and nothing else")
        names = [channel.name for channel in given]
        for name in names:
            if names.count(name) > 1:
                raise InputError("channels", name, "names are distinct")
        steps, late = whole(horizon, "horizon", least=1), whole(drain, "drain", least=0)
        if whole(offset, "offset", least=0) > 1:
            raise InputError("offset", offset, "0 or 1")
        if steps > MAX_HORIZON or late > MAX_HORIZON:
            raise LimitError("horizon", f"{steps} steps and {late} after them", f"at most {MAX_HORIZON} each")
        entries = steps * sum(len(channel.delay.masses) for channel in given)
        if entries > MAX_ENTRIES:
            raise LimitError("horizon", f"{entries} weights", f"at most {MAX_ENTRIES}: steps times the delays of all channels")
        return cls(given, steps, offset, late)

    def lands(self, step: int, delay: int) -> bool:
        """Whether a residual of this step with this delay is injected at all."""
        return step + delay + self.offset < self.horizon + self.drain

    def weight(self, channel: int, step: int, delay: int) -> Value:
        """g(t, d) = gain w(t, d) where it lands, else 0; InputError if the age weight is negative."""
        self._check(channel, step)
        if not self.lands(step, delay):
            return ZERO
        key = (channel, step, delay)
        if key not in self._weights:
            self._weights[key] = settled(self.channels[channel].gain * self._age(channel, step, delay))
        return self._weights[key]

    def _age(self, channel: int, step: int, delay: int) -> Value:
        source = self.channels[channel]
        with located(f"channel {source.name!r}, step {step}"):
            if isinstance(source.weight, AgeWeight):
                return source.weight.weight(step, delay, law=source.delay, horizon=self.horizon + self.drain, offset=self.offset)
            return nonnegative(source.weight(step, delay), f"weight({step}, {delay})", "an age weight is not negative")

    def _check(self, channel: int, step: int) -> None:
        """Indices from the end would be taken for others."""
        if not 0 <= channel < len(self.channels):
            raise InputError("channel", channel, f"from 0 to {len(self.channels) - 1}")
        if not 0 <= step < self.horizon:
            raise InputError("step", step, f"from 0 to {self.horizon - 1}")

    def row(self, channel: int, step: int) -> dict[int, Value]:
        """Lambda[step, s] by the step s of injection, for the delays that land; entries may be zero."""
        self._check(channel, step)
        law = self.channels[channel].delay
        return {step + d + self.offset: settled(mass * self.weight(channel, step, d)) for d, mass in law.masses if self.lands(step, d)}

    def row_sum(self, channel: int, step: int) -> Value:
        """sum_s Lambda[step, s] = E[g(D)]."""
        return total(self.row(channel, step).values())

    def slack(self, channel: int, step: int) -> Value:
        """1 - sum_s Lambda[step, s], negative where the row sums to more than one."""
        return settled(ONE - self.row_sum(channel, step))

    def landed(self, channel: int, step: int) -> Value:
        """P(a signal of this step lands)."""
        self._check(channel, step)
        return self.channels[channel].delay.landed(self.horizon + self.drain - 1 - step - self.offset)

    def landed_total(self, channel: int) -> Value:
        """How many of the `horizon` residuals of a channel land on average.

        >>> law = {0: "1/2", 1: "1/3", 2: "1/6"}
        >>> [Kernel.of([Channel.of("a", law)], horizon=4, offset=offset).landed_total(0) for offset in (0, 1)]
        [Real('10/3'), Real('7/3')]
        """
        return total(self.landed(channel, step) for step in range(self.horizon))

    def saturation_gain(self, channel: int, step: int) -> Value | None:
        """The gain 1/E[w(D) 1{lands}] that makes the slack zero; None if nothing of weight lands."""
        self._check(channel, step)
        masses = self.channels[channel].delay.masses
        reached = total(settled(mass * self._age(channel, step, d)) for d, mass in masses if self.lands(step, d))
        return None if is_zero(reached) else settled(ONE / reached)

    def common_slack(self) -> Value | None:
        """The slack that every step of every channel has; None if they differ."""
        cells = [(k, t) for k in range(len(self.channels)) for t in range(self.horizon)]
        first = self.slack(*cells[0])
        return first if all(is_zero(self.slack(k, t) - first) for k, t in cells) else None

    def is_saturated(self) -> bool:
        """Whether every row sums to one: the kernel is row-stochastic."""
        return all(is_zero(self.slack(k, t)) for k in range(len(self.channels)) for t in range(self.horizon))


def routed_row_sum(kernel: Kernel, probabilities: Sequence[Any], step: int) -> Value:
    """sum_k p_k E[g_k(D_k)]: the second reading of the row sum, where a residual goes to one channel k with probability p_k.

    The probabilities are not negative and sum to at most one; what is missing goes to no channel.

    >>> channels = [Channel.of("a", {0: 1}), Channel.of("b", {2: 1}, weight=lambda step, delay: "1/4")]
    >>> routed_row_sum(Kernel.of(channels, horizon=4, offset=0), ["1/2", "1/2"], 0)
    Real('5/8')
    """
    shares = [
        nonnegative(p, f"probabilities[{k}]", "a probability is not negative") for k, p in enumerate(listed(probabilities, "probabilities"))
    ]
    if len(shares) != len(kernel.channels):
        raise InputError("probabilities", f"{len(shares)} numbers", f"one for each of the {len(kernel.channels)} channels")
    nonnegative(settled(ONE - total(shares)), "1 - sum of probabilities", "probabilities sum to at most one")
    return total(settled(p * kernel.row_sum(k, step)) for k, p in enumerate(shares))
