"""Claims, true and false, about surrogate terms and how token losses are averaged."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from exactgrpo.claims.catalogue.variables import bend_terms, bends, ceiling, epsilon, losses, number, ratio, whole
from exactgrpo.claims.claim import Claim
from exactgrpo.field.aggregation import mean_of_sequence_means, mean_of_sums, token_mean
from exactgrpo.field.surrogate import cispo_weight, dual_clip_term
from exactgrpo.numbers.real import Real
from exactgrpo.update.clip import clip_term

VARIABLES = {"rho": ratio(), "advantage": number(), "epsilon": epsilon()}
CEILING = {**VARIABLES, "ceiling": ceiling()}


def _value(rho: Any, advantage: Any, epsilon: Any) -> Real:
    return clip_term(rho, advantage, epsilon=epsilon).value


def _clip(rho: Any, epsilon: Any) -> Any:
    return min(1 + epsilon, max(1 - epsilon, rho))


def _is_smooth_iff_kinks_rest(terms: Sequence[Any], ceiling_place: Any, epsilon: Any) -> bool:
    ceiling = 1 + ceiling_place * epsilon
    bent = [(dual_clip_term(1 + place * epsilon, a, epsilon=epsilon, ceiling=ceiling), slope) for a, place, slope in terms]
    forward, backward = bends(bent)
    return (forward + backward == 0) == all(term.side != "kink" or slope == 0 for term, slope in bent)


def _log_derivatives(rho: Any, advantage: Any, epsilon: Any) -> list[Real]:
    """The one-sided derivatives of the clipped term in log pi; they differ at a kink."""
    term = clip_term(rho, advantage, epsilon=epsilon)
    return [term.left * rho, term.right * rho]


CLAIMS = (
    Claim(
        "min-before-advantage",
        "The smaller of ratio and clipped ratio can be taken before multiplying by the advantage.",
        VARIABLES,
        left=lambda rho, advantage, epsilon: advantage * min(rho, _clip(rho, epsilon)),
        right=_value,
        source="field report: takuseno/ppo#3, TensorLayer#1072",
        latex=r"A \min(\rho, \mathrm{clip}(\rho)) = f(\rho)",
        expected=False,
    ),
    Claim(
        "sign-times-min",
        "The term is sign(A) min(|A| rho, |A| clip(rho)).",
        VARIABLES,
        left=lambda rho, advantage, epsilon: (
            ((advantage > 0) - (advantage < 0)) * min(abs(advantage) * rho, abs(advantage) * _clip(rho, epsilon))
        ),
        right=_value,
        source="field report: ray#37334, spinningup#255",
        latex=r"\mathrm{sign}(A) \min(|A| \rho, |A| \mathrm{clip}(\rho)) = f(\rho)",
        expected=False,
    ),
    Claim(
        "dual-clip-for-every-sign",
        "The dual clip may be applied for positive advantages too.",
        CEILING,
        left=lambda rho, advantage, epsilon, ceiling: max(_value(rho, advantage, epsilon), Real.of(ceiling * advantage)),
        right=lambda rho, advantage, epsilon, ceiling: dual_clip_term(rho, advantage, epsilon=epsilon, ceiling=ceiling).value,
        source="field report: tianshou#433",
        latex=r"\max(f(\rho), c A) = f_{\text{dual}}(\rho)",
        expected=False,
    ),
    Claim(
        "dual-clip-for-negative-advantages",
        "For A <= 0 the dual-clipped term is the larger of the clipped term and c A.",
        CEILING,
        left=lambda rho, advantage, epsilon, ceiling: max(_value(rho, advantage, epsilon), Real.of(ceiling * advantage)),
        right=lambda rho, advantage, epsilon, ceiling: dual_clip_term(rho, advantage, epsilon=epsilon, ceiling=ceiling).value,
        hypotheses={"A <= 0": lambda advantage: advantage <= 0},
        source="Ye et al., Mastering complex control in MOBA games (2020)",
        latex=r"\max(f(\rho), c A) = f_{\text{dual}}(\rho)",
    ),
    Claim(
        "dual-clip-changes-nothing",
        "The dual clip leaves the clipped term as it is.",
        CEILING,
        left=lambda rho, advantage, epsilon, ceiling: dual_clip_term(rho, advantage, epsilon=epsilon, ceiling=ceiling).value,
        right=lambda rho, advantage, epsilon, ceiling: _value(rho, advantage, epsilon),
        source="field report: verl#784, RLinf#316",
        expected=False,
    ),
    Claim(
        "dual-clip-kinks-never-cancel",
        "With a dual clip, too, a sum of terms is differentiable exactly when no term at a kink moves.",
        {"terms": bend_terms(2, reach=1), "ceiling_place": whole(1, 3), "epsilon": epsilon(below=Fraction(1, 2))},
        conclusion=_is_smooth_iff_kinks_rest,
        source="field report: verl#784, trl#3434",
        expected=False,
    ),
    Claim(
        "cispo-follows-the-clipped-term",
        "The CISPO term has the derivative of the clipped term in the log-probability.",
        VARIABLES,
        left=lambda rho, advantage, epsilon: [cispo_weight(rho, epsilon_high=epsilon, epsilon_low=epsilon) * advantage] * 2,
        right=_log_derivatives,
        source="MiniMax, MiniMax-M1 (2025), section 3.1",
        expected=False,
    ),
    Claim(
        "self-ratio-has-the-gradient-of-the-surrogate",
        "A ratio of the policy to its own detached copy has the gradient of the clipped term.",
        VARIABLES,
        left=lambda advantage: [advantage] * 2,
        right=_log_derivatives,
        source="field report: torchforge#571, minimind#775",
        latex=r"A \nabla \log \pi = \nabla f(\rho)",
        expected=False,
    ),
    Claim(
        "self-ratio-at-the-first-inner-step",
        "A ratio of the policy to its own detached copy has the right gradient where the ratio is one.",
        VARIABLES,
        left=lambda advantage: [advantage] * 2,
        right=_log_derivatives,
        hypotheses={"rho = 1": lambda rho: rho == 1},
        source="field report: torchforge#571, minimind#775",
    ),
    Claim(
        "ratio-once-in-the-advantage",
        "A ratio may act in the advantage and again in the surrogate.",
        {"rho": ratio(), "advantage": number()},
        left=lambda rho, advantage: rho * (rho * advantage),
        right=lambda rho, advantage: rho * advantage,
        source="field report: PufferLib#306",
        expected=False,
    ),
    Claim(
        "token-mean-is-mean-of-means",
        "The mean over all tokens is the mean over responses of their token means.",
        {"losses": losses()},
        left=lambda losses: token_mean(losses),
        right=lambda losses: mean_of_sequence_means(losses),
        source="field report: verl#593, understand-r1-zero#10",
        expected=False,
    ),
    Claim(
        "token-mean-is-mean-of-means-at-equal-lengths",
        "For responses of equal length the mean over all tokens is the mean of their means.",
        {"losses": losses()},
        left=lambda losses: token_mean(losses),
        right=lambda losses: mean_of_sequence_means(losses),
        hypotheses={"equal lengths": lambda losses: len({len(row) for row in losses}) == 1},
        source="field report: verl#593",
    ),
    Claim(
        "sum-mode-divides-by-length",
        "The mean of the sums over tokens is the mean of the token means.",
        {"losses": losses()},
        left=lambda losses: mean_of_sums(losses),
        right=lambda losses: mean_of_sequence_means(losses),
        source="field report: verl#1233",
        expected=False,
    ),
)
