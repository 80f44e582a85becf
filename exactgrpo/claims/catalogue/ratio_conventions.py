"""Claims, true and false, about ratios: products, geometric means, truncation, tokens against sequences."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from exactgrpo.claims.catalogue.variables import epsilon, laws, number, numbers, positive_number, ratio
from exactgrpo.claims.claim import Claim
from exactgrpo.field.inputs import sum_of
from exactgrpo.field.ratios import geometric_mean_ratio, truncated_ratio
from exactgrpo.field.surrogate import token_level_term
from exactgrpo.numbers.real import Real
from exactgrpo.update.clip import clip_term
from exactgrpo.update.ratio import sequence_ratio

GSPO = "Zheng et al., Group sequence policy optimization (2025)"
MEASURE = "field report: trl#5814, NeMo-RL#2269"


def _over_pairs(law: Sequence[Any], of: Callable[[int, int], Any]) -> Real:
    """The mean over two independent tokens of one law."""
    indices = range(len(law))
    return sum_of([Real.of(law[i] * law[j]) * of(i, j) for i, j in itertools.product(indices, indices)])


def _weighted(ratio: Callable[..., Real]) -> Callable[..., Real]:
    """E_old[ratio statistic] over responses of two independent tokens; the statistic of (i, j) is first_i second_j."""

    def mean(policy: Any, old: Any, first: Any, second: Any) -> Real:
        return _over_pairs(old, lambda i, j: ratio([policy[i], policy[j]], [old[i], old[j]]) * (first[i] * second[j]))

    return mean


def _target(policy: Any, first: Any, second: Any) -> Real:
    return _over_pairs(policy, lambda i, j: first[i] * second[j])


def _mean_root(policy: Any, old: Any, length: int) -> Real:
    return sum_of([Real.of(q) * Real.of(p / q).root(int(length)) for p, q in zip(policy, old, strict=True)])


def _mean_truncated(policy: Any, old: Any, ceiling: Any) -> Real:
    return sum_of([Real.of(q) * truncated_ratio(p / q, ceiling=ceiling) for p, q in zip(policy, old, strict=True)])


TWO_TOKENS = {**laws(2, "policy", "old"), "first": numbers(2), "second": numbers(2)}
ROOTS = {**laws(3, "policy", "old"), "length": [2, 3]}
TOKENS = {"first": ratio(), "second": ratio(), "advantage": number(), "epsilon": epsilon()}

CLAIMS = (
    Claim(
        "product-ratio-changes-measure",
        "The product of the token ratios changes the measure from the old policy to the policy.",
        TWO_TOKENS,
        left=_weighted(sequence_ratio),
        right=_target,
        source=MEASURE,
        latex=r"E_{\text{old}}[\prod_t \rho_t f] = E_\theta[f]",
        theorem="token_change_of_measure (Tokens.v)",
    ),
    Claim(
        "geometric-ratio-changes-measure",
        "The geometric mean of the token ratios changes the measure, as the product does.",
        TWO_TOKENS,
        left=_weighted(geometric_mean_ratio),
        right=_target,
        source=MEASURE,
        latex=r"E_{\text{old}}[(\prod_t \rho_t)^{1/L} f] = E_\theta[f]",
        expected=False,
    ),
    Claim(
        "geometric-ratio-mean-at-most-one",
        "For responses of one length the geometric-mean ratio has mean at most one under the old policy.",
        ROOTS,
        left=_mean_root,
        right=1,
        relation="<=",
        source=GSPO + "; field report: trl#5814",
        latex=r"E_{\text{old}}[\rho^{1/L}] \le 1",
        theorem="geometric_ratio_mean (GeometricRatio.v)",
    ),
    Claim(
        "geometric-ratio-mean-one-iff-equal",
        "That mean is one exactly when the policies agree.",
        ROOTS,
        conclusion=lambda policy, old, length: (_mean_root(policy, old, length) == 1) == (list(policy) == list(old)),
        source=GSPO,
        latex=r"E_{\text{old}}[\rho^{1/L}] = 1 \iff \rho = 1",
        theorem="geometric_ratio_mean (GeometricRatio.v)",
    ),
    Claim(
        "geometric-ratio-mean-one",
        "For responses of one length the geometric-mean ratio has mean one, as the product has.",
        {**laws(2, "policy", "old"), "length": [2, 3]},
        left=_mean_root,
        right=1,
        source=GSPO,
        latex=r"E_{\text{old}}[\rho^{1/L}] = 1",
        expected=False,
    ),
    Claim(
        "token-clipping-equals-sequence-clipping",
        "Clipping each token's ratio and averaging gives the term of the sequence ratio.",
        TOKENS,
        left=lambda first, second, advantage, epsilon: token_level_term([first, second], advantage, epsilon=epsilon),
        right=lambda first, second, advantage, epsilon: clip_term(first * second, advantage, epsilon=epsilon).value,
        source="field report: reasoning-from-scratch#243",
        expected=False,
    ),
    Claim(
        "truncation-mass",
        "A truncated ratio loses exactly the mass that the policy has above ceiling times the old policy.",
        {**laws(3, "policy", "old"), "ceiling": positive_number()},
        left=_mean_truncated,
        right=lambda policy, old, ceiling: 1 - sum(max(p - ceiling * q, 0) for p, q in zip(policy, old, strict=True)),
        source="Espeholt et al., IMPALA (2018), section 4.1",
        latex=r"E_\mu \min(c, \rho) = 1 - \sum_y (\pi - c \mu)_+",
        theorem="truncated_ratio_mean (Premise.v)",
    ),
    Claim(
        "truncated-ratio-mean-one",
        "A ratio truncated at one still has mean one.",
        laws(2, "policy", "old"),
        left=lambda policy, old: _mean_truncated(policy, old, 1),
        right=1,
        source="field report: miles#1829, tinker-feedback#24",
        latex=r"E_\mu \min(1, \rho) = 1",
        expected=False,
    ),
)
