"""The two kinds of numbers that a queue of late rewards runs on: exact reals, or finite Python floats."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeAlias

from exactgrpo.errors import InputError
from exactgrpo.field.inputs import ONE, ZERO, sum_of
from exactgrpo.numbers.rational import dyadic
from exactgrpo.numbers.real import Real
from exactgrpo.numbers.written import number_text
from exactgrpo.rac.clip import clip_range, clipped_ratio

Number: TypeAlias = Any
"""A Real or a float, never both in one queue."""



class Numbers(Protocol):
    """What the queue does with numbers; everything else is the same code."""

    name: str
    zero: Number
    one: Number

    def read(self, x: Any, place: str) -> Number: ...
    def exponential(self, difference: Number) -> Number: ...
    def clip_range(self, floor: Any, ceiling: Any) -> tuple[Number | None, Number | None]: ...
    def clip(self, rho: Number, floor: Number | None, ceiling: Number | None) -> Number: ...
    def product(self, factors: Sequence[Number], place: str) -> Number: ...
    def total(self, terms: Iterable[Number]) -> Number: ...
    def written(self, x: Number, place: str) -> str | float: ...


class _Exact:
    name, zero, one = "exact", ZERO, ONE

    def read(self, x: Any, place: str) -> Real:
        return Real.of(x, place)

    def exponential(self, difference: Real) -> Real:
        return difference.exp()

    def clip_range(self, floor: Any, ceiling: Any) -> tuple[Real | None, Real | None]:
        return clip_range(ceiling, floor)

    def clip(self, rho: Real, floor: Real | None, ceiling: Real | None) -> Real:
        return clipped_ratio(rho, floor=floor, ceiling=ceiling)

    def product(self, factors: Sequence[Real], place: str) -> Real:
        return math.prod(factors, start=ONE)

    def total(self, terms: Iterable[Real]) -> Real:
        return sum_of(list(terms))

    def written(self, x: Real, place: str) -> str:
        return number_text(x.expression, place)


class _Floats:
    name, zero, one = "float", 0.0, 1.0

    def read(self, x: Any, place: str) -> float:
        if isinstance(x, numbers.Real) and not isinstance(x, bool):
            with suppress(OverflowError, TypeError, ValueError):
                return _finite(float(x), place)
        raise InputError(place, x, "a finite float: the numbers of this queue are floats")

    def exponential(self, difference: float) -> float:
        try:
            return math.exp(difference)
        except OverflowError:
            return math.inf  # a ceiling makes it finite

    def clip_range(self, floor: Any, ceiling: Any) -> tuple[float | None, float | None]:
        low = None if floor is None else self.read(floor, "floor")
        high = None if ceiling is None else self.read(ceiling, "ceiling")
        clip_range(*(None if x is None else dyadic(x) for x in (high, low)))
        return low, high

    def clip(self, rho: float, floor: float | None, ceiling: float | None) -> float:
        raised = rho if floor is None else max(floor, rho)
        return _finite(raised if ceiling is None else min(ceiling, raised), "ratio")

    def product(self, factors: Sequence[float], place: str) -> float:
        return _finite(math.prod(factors), place)

    def total(self, terms: Iterable[float]) -> float:
        try:
            return math.fsum(terms)  # rounded once
        except OverflowError:
            raise InputError("total", "an overflow", "a finite float") from None

    def written(self, x: float, place: str) -> float:
        return x


def _finite(x: float, place: str) -> float:
    if not math.isfinite(x):
        raise InputError(place, x, "a finite float")
    return x


_KINDS: tuple[tuple[Any, Numbers], ...] = ((Real, _Exact()), (float, _Floats()))


def numbers_of(kind: Any) -> Numbers:
    """The arithmetic of `Real` or of `float`.

    >>> numbers_of(float).read(1, "gain"), numbers_of(Real).read("1/3", "gain")
    (1.0, Real('1/3'))
    """
    for known, arithmetic in _KINDS:
        if kind is known:
            return arithmetic
    raise InputError("numbers", kind, "Real for exact numbers, or float")


def kind_named(name: Any) -> Any:
    """The kind of numbers with this name, "exact" or "float"."""
    for kind, arithmetic in _KINDS:
        if name == arithmetic.name:
            return kind
    raise InputError("numbers", name, "exact or float")


def read_ratio(arithmetic: Numbers, ratio: Any, log_probabilities: Any) -> Number:
    """The ratio pi(y)/mu(y) before the clip: given as a number, or as the logarithms of both, (log pi(y), log mu(y)).

    A ratio of floats from logarithms may overflow to infinity, or underflow to zero, before it is clipped.

    >>> read_ratio(numbers_of(Real), None, ("log(3)", "log(2)"))
    Real('3/2')
    """
    if (ratio is None) == (log_probabilities is None):
        rule = "the ratio at arrival is given, as ratio or as log_probabilities (at arrival, at the rollout), not both"
        raise InputError("ratio", ratio, rule)
    if ratio is not None:
        rho = arithmetic.read(ratio, "ratio")
        if rho < 0:
            raise InputError("ratio", ratio, "a ratio is not negative")
        return rho
    if not isinstance(log_probabilities, (tuple, list)) or len(log_probabilities) != 2:
        raise InputError("log_probabilities", log_probabilities, "a pair: at arrival, at the rollout")
    now, before = (arithmetic.read(x, f"log_probabilities[{i}]") for i, x in enumerate(log_probabilities))
    return arithmetic.exponential(now - before)
