"""Surrogate terms of the field besides the clipped one: dual clip, CISPO, and the mean over tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exactgrpo.errors import UpdateError
from exactgrpo.field.inputs import ONE, clipped, positive, positives, sum_of
from exactgrpo.numbers.real import Real
from exactgrpo.update.clip import ClipTerm, clip_term


def dual_clip_term(rho: Any, advantage: Any, *, epsilon: Any, ceiling: Any) -> ClipTerm:
    """max(c A, min(rho A, clip(rho) A)) for A < 0, and the clipped term itself for A >= 0; `ceiling` is c > 1.

    At rho = c and A < 0 it has a *convex* kink (left derivative A, right derivative 0), which can cancel a concave one. Arguments are
    those of `clip_term`. Source: Ye et al., Mastering complex control in MOBA games (2020), dual-clip PPO. Theorem: dual_clip_gradient
    (DualClip.v): kinks can cancel.

    >>> dual_clip_term(4, -1, epsilon="1/4", ceiling=3).value
    Real('-3')
    >>> kink = dual_clip_term(2, -1, epsilon="1/4", ceiling=2)
    >>> kink.side, kink.left, kink.right
    ('kink', Real('-1'), Real('0'))
    """
    c = Real.of(ceiling, "ceiling")
    if c <= 1:
        raise UpdateError("ceiling", repr(c), "ceiling > 1")
    term = clip_term(rho, advantage, epsilon=epsilon)
    ratio, a, zero = Real.of(rho), Real.of(advantage), Real.of(0)
    if a >= 0 or ratio < c:
        return term
    return ClipTerm(a * c, "clipped", zero, zero) if ratio > c else ClipTerm(a * c, "kink", a, zero)


def cispo_weight(rho: Any, *, epsilon_high: Any, epsilon_low: Any = None) -> Real:
    """clip(rho, 1 - eps_low, 1 + eps_high), the detached weight of CISPO; without eps_low it is bounded above only.

    Source: MiniMax, MiniMax-M1 (2025), section 3.1 (CISPO).

    >>> cispo_weight(3, epsilon_high=1), cispo_weight("1/3", epsilon_high=1), cispo_weight("1/3", epsilon_high=1, epsilon_low="1/2")
    (Real('2'), Real('1/3'), Real('1/2'))
    """
    ratio = positive(rho, "rho", "a ratio of positive masses is positive")
    high = positive(epsilon_high, "epsilon_high", "epsilon_high > 0")
    low = ONE if epsilon_low is None else positive(epsilon_low, "epsilon_low", "0 < epsilon_low <= 1")
    if low > 1:
        raise UpdateError("epsilon_low", repr(low), "0 < epsilon_low <= 1")
    return clipped(ratio, 1 - low, 1 + high)


def cispo_term(mass: Any, old: Any, advantage: Any, *, epsilon_high: Any, epsilon_low: Any = None) -> Real:
    """sg(clip(rho)) A log pi(y_t) of one token, rho = pi/pi_old, sg a factor that is not differentiated.

    So its derivative in log pi(y_t) is `cispo_weight` times A, at every rho. Source: MiniMax-M1 (2025), section 3.1 (CISPO).

    >>> cispo_term("1/2", "1/4", 1, epsilon_high="1/2")
    Real('-3/2*log(2)')
    """
    new, before = positive(mass, "mass", "a token mass is positive"), positive(old, "old", "a token mass is positive")
    return cispo_weight(new / before, epsilon_high=epsilon_high, epsilon_low=epsilon_low) * Real.of(advantage, "advantage") * new.log()


def token_level_term(ratios: Sequence[Any], advantage: Any, *, epsilon: Any) -> Real:
    """(1/L) sum_t min(rho_t A, clip(rho_t) A): the tokens of one response clipped one by one and averaged.

    Source: Shao et al., DeepSeekMath (2024), equation 3, without its KL term. It differs from the clipped term of the sequence ratio.

    >>> token_level_term(["3/2", "2/3"], 1, epsilon="1/4")
    Real('23/24')
    """
    tokens = positives(ratios, "ratios", rule="a ratio of positive masses is positive")
    return sum_of([clip_term(rho, advantage, epsilon=epsilon).value for rho in tokens]) / len(tokens)
