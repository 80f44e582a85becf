"""What the bundled claims range over: instances from the public strategies, and the whole domain that each claim speaks of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from exactgrpo.claims.variable import Variable
from exactgrpo.numbers.real import Real
from exactgrpo.strategies import epsilons, positive_simplex_points, rationals, ratios, reward_groups, simplex_points

Strategy = st.SearchStrategy[Any]


def _number(strategy: Strategy, domain: str = "a number", contains: Callable[[Any], bool] = lambda x: True) -> Variable:
    return Variable(strategy, lambda x: isinstance(x, (int, Fraction, Real)) and not isinstance(x, bool) and contains(x), domain)


def number() -> Variable:
    """A number; small rationals of any sign are tried."""
    return _number(rationals(min=-4, max=4, denominator=4))


def positive_number(*, min: Any = Fraction(1, 4), max: Any = 4, denominator: int = 4) -> Variable:
    """A number above 0; rationals in this range are tried."""
    return _number(rationals(min=min, max=max, denominator=denominator), "a number above 0", lambda x: x > 0)


def nonnegative_number() -> Variable:
    """A number of at least 0; small rationals are tried."""
    return _number(rationals(min=0, max=4, denominator=4), "a number of at least 0", lambda x: x >= 0)


def one_of(*values: Any, domain: Variable) -> Variable:
    """A number of this domain, few of which are tried: cheap to draw, and often equal; they shrink to the first."""
    return Variable(st.sampled_from([Fraction(x) for x in values]), domain.contains, domain.domain)


def ratio() -> Variable:
    """A ratio of positive masses."""
    return _number(ratios(), "a ratio above 0", lambda x: x > 0)


def epsilon(*, below: Fraction = Fraction(1)) -> Variable:
    """A clipping threshold; those that are tried lie below `below`."""
    return _number(epsilons().map(lambda x: x * below), "a threshold above 0 and below 1", lambda x: 0 < x < 1)


def ceiling() -> Variable:
    """The ceiling of a dual clip."""
    strategy = rationals(min=0, max=4, denominator=4).map(lambda x: x + Fraction(5, 4))
    return _number(strategy, "a ceiling above 1", lambda x: x > 1)


def discount() -> Variable:
    """A discount or a mixing factor."""
    return _number(rationals(min=0, max=1, denominator=4), "a number from 0 to 1", lambda x: 0 <= x <= 1)


def mass() -> Variable:
    """The probability of one response that can be drawn."""
    return _number(rationals(min="1/8", max=1, denominator=8), "a probability above 0", lambda x: 0 < x <= 1)


def whole(low: int, high: int) -> Variable:
    """A whole number from `low` to `high`."""
    among = range(low, high + 1)
    return _number(st.integers(low, high), f"a whole number from {low} to {high}", lambda x: any(x == n for n in among))


def entries(entry: Variable, size: int) -> Variable:
    """A list of one size, each entry in the domain of `entry`."""
    strategy = st.lists(entry.strategy, min_size=size, max_size=size)
    return Variable(strategy, lambda x: _has_entries(x, entry) and len(x) == size, f"a list of {size}, each {entry.domain}")


def _has_entries(x: Any, entry: Variable) -> bool:
    return isinstance(x, (list, tuple)) and all(map(entry.contains, x))


def numbers(size: int) -> Variable:
    """A list of numbers; small rationals are tried."""
    return entries(number(), size)


def whole_numbers(size: int) -> Variable:
    """A list of numbers; small whole numbers are tried, for claims whose counterexamples need no fractions."""
    return entries(_number(rationals(min=-4, max=4, denominator=1)), size)


def rewards() -> Variable:
    """The rewards of a group."""
    return Variable(reward_groups(), lambda x: _has_entries(x, number()) and len(x) >= 2, "a list of at least 2 numbers")


def losses() -> Variable:
    """The losses of the tokens of some responses."""
    strategy = st.lists(st.lists(number().strategy, min_size=1, max_size=3), min_size=1, max_size=3)
    row = Variable(strategy, lambda x: _has_entries(x, number()) and len(x) >= 1, "a row")
    return Variable(strategy, lambda x: _has_entries(x, row) and len(x) >= 1, "rows of at least 1 number, at least 1 row")


def law(size: int) -> Variable:
    """A probability mass function that may have zeros."""
    return Variable(simplex_points(size=size), lambda x: _is_law(x, size), f"{size} masses of at least 0 that sum to 1")


def laws(size: int, *names: str) -> dict[str, Any]:
    """Positive probability mass functions of one size, by name."""
    is_positive = lambda x: _is_law(x, size) and all(mass > 0 for mass in x)  # noqa: E731
    return {name: Variable(positive_simplex_points(size=size), is_positive, f"{size} masses above 0 that sum to 1") for name in names}


def _is_law(x: Any, size: int) -> bool:
    return _has_entries(x, number()) and len(x) == size and all(mass >= 0 for mass in x) and bool(sum(x, Real.of(0)) == 1)


def slopes(policy: Sequence[Fraction], features: Sequence[Fraction]) -> list[Fraction]:
    """d pi/dt of the softmax family pi exp(t features)/sum at t = 0: every direction in which masses can move.

    >>> slopes([Fraction(1, 2), Fraction(1, 2)], [Fraction(1), Fraction(0)])
    [Fraction(1, 4), Fraction(-1, 4)]
    """
    mean = sum((p * h for p, h in zip(policy, features, strict=True)), Fraction(0))
    return [p * (h - mean) for p, h in zip(policy, features, strict=True)]


def bend_terms(size: int, *, reach: int = 2) -> Variable:
    """Terms as (advantage, place, slope): the ratio is 1 + place epsilon and moves with this slope along one parameter.

    Places of at least -2 keep the ratios positive where epsilon is below 1/2.
    """
    integer, place = rationals(min=-reach, max=reach, denominator=1), rationals(min=-reach, max=reach + 2, denominator=1)
    strategy = st.tuples(integer, place, integer)
    term = Variable(strategy, lambda x: _has_entries(x, number()) and len(x) == 3, "an advantage, a place and a slope")
    return entries(term, size)


def bends(pairs: Sequence[tuple[Any, Fraction]]) -> tuple[Real, Real]:
    """F'(1) and F'(-1) of a sum of terms with their one-sided derivatives, each along a ratio of the given slope."""
    forward = backward = Real.of(0)
    for term, slope in pairs:
        forward = forward + (term.right if slope > 0 else term.left) * slope
        backward = backward - (term.left if slope > 0 else term.right) * slope
    return forward, backward
