"""One term of the clipped objective as a function of its ratio: value, side and one-sided derivatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from exactgrpo.errors import InputError
from exactgrpo.numbers.real import Real
from exactgrpo.numbers.symbols import node
from exactgrpo.update.domain import thresholds
from exactgrpo.update.trace import Side


@dataclass(frozen=True, slots=True)
class ClipTerm:
    """f(rho) = min(rho A, clip(rho, 1 - eps_low, 1 + eps_high) A) at one rho: `left` and `right` are its one-sided derivatives."""

    value: Real
    side: Side
    left: Real
    right: Real

    @property
    def derivative(self) -> Real | None:
        """f'(rho), or None at a kink, where the one-sided derivatives differ."""
        return None if self.side == "kink" else self.left


def clip_term(rho: Any, advantage: Any, *, epsilon: Any) -> ClipTerm:
    """The clipped term min(rho A, clip(rho, 1 - eps_low, 1 + eps_high) A) with its derivative in rho, exactly, at ties too.

    It equals A min(rho, 1 + eps_high) for A > 0, A max(rho, 1 - eps_low) for A < 0, and 0 for A = 0 (cterm2_abs), so
    the only kinks are rho = 1 + eps_high with A > 0 and rho = 1 - eps_low with A < 0. `epsilon` is one exact number in (0, 1), or
    a pair (eps_low, eps_high) with eps_low in (0, 1) and eps_high > 0; rho > 0. All are exact numbers (int, Fraction, Decimal,
    text, Real). UndecidedError if the place of an irrational rho against a bound cannot be decided.
    Theorems: cterm2_pos, cterm2_neg, cterm2_zero (Clip.v).

    >>> kink = clip_term("5/4", 1, epsilon="1/4")
    >>> kink.side, kink.left, kink.right, kink.derivative
    ('kink', Real('1'), Real('0'), None)
    >>> tie = clip_term("3/4", 1, epsilon="1/4")
    >>> tie.side, tie.derivative
    ('smooth tie', Real('1'))
    """
    ratio, a = Real.of(rho, "rho"), Real.of(advantage, "advantage")
    low, high = (Real(node(x)) for x in thresholds(epsilon, "epsilon"))
    if ratio <= 0:
        raise InputError("rho", repr(ratio), "a ratio of positive masses is positive")
    zero = Real.of(0)
    sign = a.sign().value
    if sign == 0:
        return ClipTerm(zero, "zero advantage", zero, zero)
    own, other = (1 + high, 1 - low) if sign > 0 else (1 - low, 1 + high)
    place = (ratio - own).sign().value * sign
    if place > 0:
        return ClipTerm(a * own, "clipped", zero, zero)
    if place == 0:
        return ClipTerm(a * own, "kink", a if sign > 0 else zero, zero if sign > 0 else a)
    return ClipTerm(a * ratio, "smooth tie" if ratio == other else "unclipped", a, a)
