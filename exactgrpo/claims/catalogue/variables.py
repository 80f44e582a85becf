"""What the bundled claims range over, made of the public strategies; every value is a plain number, list or tuple."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from exactgrpo.numbers.real import Real
from exactgrpo.strategies import epsilons, positive_simplex_points, rationals, ratios

Strategy = st.SearchStrategy[Any]


def number() -> Strategy:
    """A small rational of any sign."""
    return rationals(min=-4, max=4, denominator=4)


def positive_number() -> Strategy:
    """A small positive rational."""
    return rationals(min=Fraction(1, 4), max=4, denominator=4)


def discount() -> Strategy:
    """A discount or a mixing factor in [0, 1]."""
    return rationals(min=0, max=1, denominator=4)


def numbers(size: int) -> Strategy:
    """A list of small rationals."""
    return st.lists(number(), min_size=size, max_size=size)


def whole_numbers(size: int) -> Strategy:
    """A list of small whole numbers, for claims whose counterexamples need no fractions."""
    return st.lists(rationals(min=-4, max=4, denominator=1), min_size=size, max_size=size)


def some_ratios(size: int) -> Strategy:
    """A list of ratios."""
    return st.lists(ratios(), min_size=size, max_size=size)


def laws(size: int, *names: str) -> dict[str, Strategy]:
    """Positive probability mass functions of one size, by name."""
    return {name: positive_simplex_points(size=size) for name in names}


def slopes(policy: Sequence[Fraction], features: Sequence[Fraction]) -> list[Fraction]:
    """d pi/dt of the softmax family pi exp(t features)/sum at t = 0: every direction in which masses can move.

    >>> slopes([Fraction(1, 2), Fraction(1, 2)], [Fraction(1), Fraction(0)])
    [Fraction(1, 4), Fraction(-1, 4)]
    """
    mean = sum((p * h for p, h in zip(policy, features, strict=True)), Fraction(0))
    return [p * (h - mean) for p, h in zip(policy, features, strict=True)]


def bend_terms(size: int, *, reach: int = 2) -> Strategy:
    """Terms as (advantage, place, slope): the ratio is 1 + place epsilon and moves with this slope along one parameter."""
    whole, place = rationals(min=-reach, max=reach, denominator=1), rationals(min=-reach, max=reach + 2, denominator=1)
    return st.lists(st.tuples(whole, place, whole), min_size=size, max_size=size)


def bend_epsilon() -> Strategy:
    """An epsilon below 1/2, so that the ratios of `bend_terms` are positive."""
    return epsilons().map(lambda epsilon: epsilon / 2)


def bends(pairs: Sequence[tuple[Any, Fraction]]) -> tuple[Real, Real]:
    """F'(1) and F'(-1) of a sum of terms with their one-sided derivatives, each along a ratio of the given slope."""
    forward = backward = Real.of(0)
    for term, slope in pairs:
        forward = forward + (term.right if slope > 0 else term.left) * slope
        backward = backward - (term.left if slope > 0 else term.right) * slope
    return forward, backward
