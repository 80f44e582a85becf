"""Laws of a delay: probabilities of finitely many delays in optimiser steps, and of a signal that never arrives."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Literal

from exactgrpo.errors import InputError, LimitError
from exactgrpo.field.inputs import ONE, ZERO, sum_of
from exactgrpo.numbers.inputs import whole
from exactgrpo.numbers.real import Real
from exactgrpo.rac.values import Value, is_zero, nonnegative, settled, total, value

NEVER = "never"
MAX_CELLS = 10_000
"""Delays of a law, one more for what is left beyond them."""
MAX_DELAY = 10**6
_MAX_GEOMETRIC_BITS = 1 << 30
_MASS = "a probability is not negative"


@dataclass(frozen=True, slots=True)
class DelayLaw:
    """The law of a delay D on {0, 1, ...} and "never": `masses` are pairs (delay, P(D = delay)) of ascending delays with a mass that is not
    zero, `never` is the probability that the signal is dropped. All masses sum to one.

    Masses are Reals, or SymPy expressions that stand for all values that the assumptions on their symbols allow. Make one with `of`,
    `deterministic` or `geometric`, with `discretised`, or from measured latencies with `latency_law`. `error` bounds the total variation
    distance to the law that was meant, where this one stands for another: `discretised` says it, elsewhere it is zero.

    >>> law = DelayLaw.of({0: "1/2", 1: "1/3", "never": "1/6"})
    >>> law.landed(0), law.mean(), law.largest
    (Real('1/2'), Real('2/5'), 1)
    """

    masses: tuple[tuple[int, Value], ...]
    never: Value
    error: Real = field(default_factory=lambda: ZERO, compare=False, repr=False)

    @classmethod
    def of(cls, table: Mapping[Any, Any], place: str = "delay") -> DelayLaw:
        """The law of a table from delays (integers, or text of digits) and "never" to probabilities.

        InputError for a negative mass or masses that do not sum to one, LimitError beyond 10,000 delays or a delay beyond 1,000,000,
        UndecidedError if the sum of irrational or symbolic masses is not decided.

        >>> DelayLaw.of({"0": "1/2", "1": "1/3"})
        Traceback (most recent call last):
        exactgrpo.errors.InputError: delay: "sum Real('5/6')": probabilities, that of never included, sum to one
        """
        if not isinstance(table, Mapping):
            raise InputError(place, table, 'a table from delays, and "never", to probabilities')
        if len(table) > MAX_CELLS + 1:
            raise LimitError(place, f"{len(table)} delays", f"at most {MAX_CELLS + 1}")
        never = nonnegative(table.get(NEVER, ZERO), f"{place}.{NEVER}", _MASS)
        given = by_delay({key: mass for key, mass in table.items() if key != NEVER}, place)
        masses = {delay: nonnegative(mass, f"{place}.{delay}", _MASS) for delay, mass in given.items()}
        everything = total([*masses.values(), never])
        if not is_zero(everything - ONE):
            raise InputError(place, f"sum {everything!r}", "probabilities, that of never included, sum to one")
        return cls(tuple((d, masses[d]) for d in sorted(masses) if not is_zero(masses[d])), never)

    @classmethod
    def deterministic(cls, delay: int) -> DelayLaw:
        """The law of a delay that is always the same.

        >>> DelayLaw.deterministic(3).masses
        ((3, Real('1')),)
        """
        return cls(((_delay(delay, "delay"), ONE),), ZERO)

    @classmethod
    def geometric(cls, p: Any, *, max: int, rest: Literal["never", "last"] = "never") -> DelayLaw:
        """P(D = d) = p (1 - p)^d for d < max, 0 <= p <= 1; what is left, (1 - p)^max, is "never", or with rest="last" the delay max.

        p may be symbolic if its assumptions imply the range: a/(a + b) with positive a and b.

        >>> DelayLaw.geometric("1/2", max=2)
        DelayLaw(masses=((0, Real('1/2')), (1, Real('1/4'))), never=Real('1/4'))
        """
        if rest not in (NEVER, "last"):
            raise InputError("rest", rest, 'one of "never", "last"')
        cells = whole(max, "max", least=1)
        if cells > MAX_CELLS:
            raise LimitError("max", cells, f"at most {MAX_CELLS}")
        chance = nonnegative(p, "p", "0 <= p <= 1")
        failure = nonnegative(settled(ONE - chance), "p", "0 <= p <= 1, so 1 - p >= 0")
        if isinstance(failure, Real) and (known := failure.as_fraction()) is not None:
            bits = (known.numerator.bit_length() + known.denominator.bit_length()) * cells**2 // 2
            if bits > _MAX_GEOMETRIC_BITS:
                raise LimitError("p", repr(chance), f"masses of about {bits} bits together; at most {_MAX_GEOMETRIC_BITS}")
        if is_zero(chance) or is_zero(failure):
            return cls(((0, ONE),), ZERO) if is_zero(failure) else cls((), ONE) if rest == NEVER else cls(((cells, ONE),), ZERO)
        masses: list[tuple[int, Value]] = []
        left: Value = ONE
        for delay in range(cells):
            masses.append((delay, settled(chance * left)))
            left = settled(left * failure)
        return cls(tuple(masses), left) if rest == NEVER else cls((*masses, (cells, left)), ZERO)

    @property
    def largest(self) -> int:
        """The largest delay with a mass; -1 if every signal is dropped.

        >>> DelayLaw.of({2: "1/2", "never": "1/2"}).largest, DelayLaw.of({"never": 1}).largest
        (2, -1)
        """
        return self.masses[-1][0] if self.masses else -1

    def landed(self, within: int) -> Value:
        """P(D <= within), zero for a negative number of steps; a dropped signal is within no number of steps.

        >>> law = DelayLaw.of({0: "1/2", 1: "1/3", "never": "1/6"})
        >>> [law.landed(steps) for steps in (-1, 0, 7)]
        [Real('0'), Real('1/2'), Real('5/6')]
        """
        return total(mass for delay, mass in self.masses if delay <= within)

    def expectation(self, f: Callable[[int], Value]) -> Value:
        """sum_d P(D = d) f(d) over the delays; a dropped signal counts zero.

        >>> DelayLaw.of({0: "1/2", 1: "1/3", 2: "1/6"}).expectation(lambda d: Real.of(2) ** -d)
        Real('17/24')
        """
        return total(settled(mass * f(delay)) for delay, mass in self.masses)

    def mean(self) -> Value:
        """E[D | the signal arrives]; InputError if it never does.

        >>> DelayLaw.of({1: "1/4", 2: "1/4", "never": "1/2"}).mean()
        Real('3/2')
        """
        return self._given_arrival(Real)

    def variance(self) -> Value:
        """Var(D | the signal arrives); InputError if it never does.

        >>> DelayLaw.of({1: "1/4", 2: "1/4", "never": "1/2"}).variance()
        Real('1/4')
        """
        return settled(self._given_arrival(lambda delay: Real(delay * delay)) - self.mean() ** 2)

    def matched(self, mean: Any) -> DelayLaw:
        """The law with E[D | the signal arrives] equal to `mean`, by moving mass between neighbouring delays of the law.

        Each delay passes the same fraction of its mass to the next larger (or next smaller) one, the last keeps its own; when a whole
        round is not enough, the next round starts from its result. Every mean from the smallest to the largest delay is reached, no other:
        InputError. Masses and mean are numbers, not symbols. Ours.

        >>> DelayLaw.of({0: "1/2", 1: "1/4", 2: "1/4"}).matched(1).masses
        ((0, Real('1/3')), (1, Real('1/3')), (2, Real('1/3')))
        """
        target = value(mean, "mean")
        if not isinstance(target, Real) or not all(isinstance(mass, Real) for _, mass in self.masses):
            raise InputError("mean", target, "a mean is matched for masses and a mean without symbols")
        current = self.mean()
        if not self.masses[0][0] <= target <= self.largest:
            raise InputError("mean", repr(target), f"from {self.masses[0][0]} to {self.largest}, the delays of the law")
        cells = self.masses if target >= current else self.masses[::-1]
        travelled = [abs(delay - cells[0][0]) for delay, _ in cells]
        wanted, last = abs(target - cells[0][0]) * self.landed(self.largest), len(cells) - 1

        def moved(rounds: int) -> list[Real]:
            masses = [mass for _, mass in cells]
            return [ZERO] * rounds + masses[: last - rounds] + [sum_of(masses[last - rounds :])]

        def reached(rounds: int) -> Real:
            return sum_of([mass * x for mass, x in zip(moved(rounds), travelled, strict=True)])

        rounds = bisect_right(range(1, last + 1), wanted, key=reached)
        if rounds == last:
            return DelayLaw(((cells[-1][0], self.landed(self.largest)),), self.never)
        share = (wanted - reached(rounds)) / (reached(rounds + 1) - reached(rounds))
        masses = [a + share * (b - a) for a, b in zip(moved(rounds), moved(rounds + 1), strict=True)]
        kept = [(delay, mass) for (delay, _), mass in zip(cells, masses, strict=True) if mass != 0]
        return DelayLaw(tuple(sorted(kept, key=itemgetter(0))), self.never)

    def _given_arrival(self, f: Callable[[int], Value]) -> Value:
        if not self.masses:
            raise InputError("delay", "every signal is dropped", "a delay that can arrive")
        return settled(self.expectation(f) / self.landed(self.largest))


def by_delay(table: Mapping[Any, Any], place: str) -> dict[int, Any]:
    """The table with the delays that its keys name: integers, or text of digits, each once; LimitError beyond 1,000,000.

    >>> by_delay({"12": "1/2", 3: 1}, "weights")
    {12: '1/2', 3: 1}
    """
    named: dict[int, Any] = {}
    for key, entry in table.items():
        delay = _delay(key, place)
        if delay in named:
            raise InputError(place, key, "each delay stands once")
        named[delay] = entry
    return named


def _delay(key: Any, place: str) -> int:
    delay = int(key) if isinstance(key, str) and key.isascii() and key.isdigit() and len(key) < 20 else key
    if isinstance(delay, str):
        raise InputError(place, key, 'a delay is a number of steps, or "never"')
    count = whole(delay, place, least=0)
    if count > MAX_DELAY:
        raise LimitError(place, count, f"a delay of at most {MAX_DELAY} steps")
    return count
