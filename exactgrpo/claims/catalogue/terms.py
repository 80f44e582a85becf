"""Claims about one clipped term, and about how terms bend together."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from exactgrpo.claims.catalogue.variables import bend_terms, bends, discount, epsilon, number, ratio
from exactgrpo.claims.claim import Claim
from exactgrpo.numbers.real import Real
from exactgrpo.update.clip import ClipTerm, clip_term

VARIABLES = {"rho": ratio(), "advantage": number(), "epsilon": epsilon()}
SOURCE = "the finite-budget group-relative policy update, objective"

Bent = Sequence[tuple[Fraction, Fraction, Fraction]]


def _value(rho: Any, advantage: Any, epsilon: Any) -> Real:
    return clip_term(rho, advantage, epsilon=epsilon).value


def _defined(rho: Any, advantage: Any, epsilon: Any) -> Any:
    return min(rho * advantage, min(1 + epsilon, max(1 - epsilon, rho)) * advantage)


def _bent(terms: Bent, epsilon: Fraction) -> list[tuple[ClipTerm, Fraction, Fraction]]:
    """Each term with its slope and its advantage."""
    return [(clip_term(1 + place * epsilon, a, epsilon=epsilon), slope, a) for a, place, slope in terms]


def _sum_of_bends(terms: Bent, epsilon: Fraction) -> Real:
    return sum(bends([(term, slope) for term, slope, _ in _bent(terms, epsilon)]), Real.of(0))


def _is_smooth_iff_kinks_rest(terms: Bent, epsilon: Fraction) -> bool:
    kinks_rest = all(term.side != "kink" or slope == 0 for term, slope, _ in _bent(terms, epsilon))
    return (_sum_of_bends(terms, epsilon) == 0) == kinks_rest


CLAIMS = (
    Claim(
        "term-is-the-smaller-of-two",
        "The clipped term is the smaller of the unclipped and the clipped product.",
        VARIABLES,
        left=_value,
        right=_defined,
        source=SOURCE,
        latex=r"f(\rho) = \min(\rho A, \mathrm{clip}(\rho, 1 - \epsilon, 1 + \epsilon) A)",
        theorem="cterm2_abs (Clip.v)",
    ),
    Claim(
        "term-at-most-unclipped",
        "The clipped term is never above its unclipped value.",
        VARIABLES,
        left=_value,
        right=lambda rho, advantage: rho * advantage,
        relation="<=",
        latex=r"f(\rho) \le \rho A",
        theorem="cterm_le_unclipped (Clip.v)",
    ),
    Claim(
        "term-bounded-above",
        "The clipped term is at most (1 + epsilon)|A|.",
        VARIABLES,
        left=_value,
        right=lambda advantage, epsilon: (1 + epsilon) * abs(advantage),
        relation="<=",
        latex=r"f(\rho) \le (1 + \epsilon) |A|",
        theorem="cterm_upper (Clip.v)",
    ),
    Claim(
        "term-exceeds-advantage-by-epsilon",
        "The clipped term exceeds the advantage by at most the larger bound times |A|.",
        {"rho": ratio(), "advantage": number(), "epsilon_low": epsilon(), "epsilon_high": epsilon()},
        left=lambda rho, advantage, epsilon_low, epsilon_high: clip_term(rho, advantage, epsilon=(epsilon_low, epsilon_high)).value,
        right=lambda advantage, epsilon_low, epsilon_high: advantage + max(epsilon_low, epsilon_high) * abs(advantage),
        relation="<=",
        latex=r"f(\rho) \le A + \max(\epsilon_l, \epsilon_h) |A|",
        theorem="cterm2_ceiling (Clip.v)",
    ),
    Claim(
        "term-at-ratio-one-is-the-advantage",
        "At ratio one the clipped term is the advantage.",
        {"advantage": number(), "epsilon": epsilon()},
        left=lambda advantage, epsilon: _value(1, advantage, epsilon),
        right=lambda advantage: advantage,
        latex=r"f(1) = A",
        theorem="cterm_at_one (Clip.v)",
    ),
    Claim(
        "term-concave",
        "The clipped term is concave in the ratio.",
        {"first": ratio(), "second": ratio(), "share": discount(), "advantage": number(), "epsilon": epsilon()},
        left=lambda first, second, share, advantage, epsilon: (
            share * _value(first, advantage, epsilon) + (1 - share) * _value(second, advantage, epsilon)
        ),
        right=lambda first, second, share, advantage, epsilon: _value(share * first + (1 - share) * second, advantage, epsilon),
        relation="<=",
        latex=r"t f(\rho_1) + (1 - t) f(\rho_2) \le f(t \rho_1 + (1 - t) \rho_2)",
        theorem="cterm_concave (Clip.v)",
    ),
    Claim(
        "smooth-ties-have-the-derivative-of-the-unclipped-term",
        "On the bound that does not act the term is differentiable, with derivative A.",
        {"advantage": number(), "epsilon": epsilon()},
        conclusion=lambda advantage, epsilon: (
            clip_term(1 - epsilon if advantage > 0 else 1 + epsilon, advantage, epsilon=epsilon).derivative == Real.of(advantage)
        ),
        latex=r"f'(1 - \epsilon) = A\ (A > 0),\quad f'(1 + \epsilon) = A\ (A < 0)",
        theorem="smooth_tie (Objective.v)",
    ),
    Claim(
        "kinks-bend-one-way",
        "Opposite directional derivatives of a sum of terms differ by the kinks alone, and these all have one sign.",
        {"terms": bend_terms(3), "epsilon": epsilon(below=Fraction(1, 2))},
        left=_sum_of_bends,
        right=lambda terms, epsilon: -sum(abs(a * slope) for term, slope, a in _bent(terms, epsilon) if term.side == "kink"),
        latex=r"F'(v) + F'(-v) = - \sum_{\text{kinks}} |A_i| |\langle \nabla \rho_i, v \rangle|",
        theorem="kinks_bend_one_way (OneSided.v)",
    ),
    Claim(
        "kinks-never-cancel",
        "A sum of clipped terms is differentiable exactly when no term at a kink moves.",
        {"terms": bend_terms(2), "epsilon": epsilon(below=Fraction(1, 2))},
        conclusion=_is_smooth_iff_kinks_rest,
        latex=r"F \text{ differentiable} \iff \nabla \rho_i = 0 \text{ at every true kink}",
        theorem="clipped2_diff_iff (Kink.v)",
    ),
)
