"""Claims, true and false, about clipped ratios of late residuals: their mean, and the gradient that an injected residual has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from exactgrpo.claims.catalogue.variables import entries, epsilon, laws, number, numbers, positive_number, slopes
from exactgrpo.claims.claim import Claim
from exactgrpo.field.expected_gradient import reward_gradient
from exactgrpo.field.inputs import sum_of
from exactgrpo.numbers.real import Real
from exactgrpo.rac.clip import (
    clipped_ratio_mean,
    clipped_residual_mean,
    decide_clip,
    injected_elsewhere_gradient,
    injected_gradient,
    moved_policy_ratio_mean,
    unweighted_elsewhere_gradient,
)
from exactgrpo.rac.divergence import total_variation
from exactgrpo.strategies import positive_simplex_points

RAC = "Retroactive Advantage Correction, arXiv:2606.27580"


def _never_acts(behaviour: Any, target: Any, ceiling: Any) -> bool:
    return all(p <= ceiling * m for m, p in zip(behaviour, target, strict=True))


def _mean(law: Any, values: Any) -> Real:
    return sum_of([Real.of(m * x) for m, x in zip(law, values, strict=True)])


def _two_sided_mean(behaviour: Any, target: Any, epsilon: Any) -> Real:
    return clipped_ratio_mean(behaviour, target, ceiling=1 + epsilon, floor=1 - epsilon)


def _weighted(behaviour: Any, target: Any, residuals: Any, ceiling: Any) -> Real:
    return clipped_residual_mean(behaviour, target, residuals, ceiling=ceiling)


def _is_uncorrelated(behaviour: Any, target: Any, residuals: Any, ceiling: Any) -> bool:
    mean = clipped_ratio_mean(behaviour, target, ceiling=ceiling)
    return bool(_weighted(behaviour, target, residuals, ceiling) == mean * _mean(behaviour, residuals))


def _elsewhere(behaviour: Any, target: Any, features: Any, residual: Any, ceiling: Any) -> Real:
    return injected_elsewhere_gradient(behaviour, target, slopes(target, features), residual=residual, ceiling=ceiling)


def _unweighted(probabilities: Any, residuals: Any, behaviours: Any, target: Any, features: Any) -> Real:
    return unweighted_elsewhere_gradient(probabilities, residuals, behaviours, target, slopes(target, features))


def _mixture(probabilities: Any, behaviours: Any) -> list[Any]:
    return [sum(p * law[y] for p, law in zip(probabilities, behaviours, strict=True)) for y in range(len(behaviours[0]))]


def _pair(size: int) -> dict[str, Any]:
    return laws(size, "behaviour", "target")


LAW = replace(laws(2, "law")["law"], strategy=positive_simplex_points(size=2, weight=2))  # so few that two often agree
HISTORIES = {**laws(2, "probabilities"), "residuals": numbers(2), "behaviours": entries(LAW, 2), "features": numbers(2)}
NEVER_ACTS = {"the clip never acts": _never_acts}

CLAIMS = (
    Claim(
        "clipped-ratio-unbiased-iff-the-clip-never-acts",
        "A ratio clipped from above has mean one exactly when the clip never acts.",
        {**_pair(3), "ceiling": positive_number()},
        conclusion=lambda behaviour, target, ceiling: (
            decide_clip(behaviour, target, ceiling=ceiling).is_unbiased == _never_acts(behaviour, target, ceiling)
        ),
        source=RAC,
        latex=r"E_\mu \min(c, \pi/\mu) = 1 \iff \pi \le c \mu",
        theorem="truncated_ratio_mean_one_iff (Premise.v)",
    ),
    Claim(
        "clip-at-one-loses-the-total-variation",
        "A ratio clipped at one has mean one minus the total variation of the policies.",
        _pair(3),
        left=lambda behaviour, target: clipped_ratio_mean(behaviour, target, ceiling=1),
        right=lambda behaviour, target: 1 - total_variation(target, behaviour),
        source=RAC,
        latex=r"E_\mu \min(1, \pi/\mu) = 1 - \mathrm{TV}(\pi, \mu)",
        theorem="truncated_at_one (Premise.v)",
    ),
    Claim(
        "two-sided-clip-loses-above-and-adds-below",
        "A ratio clipped to both sides has mean one, minus the mass cut above, plus the mass added below.",
        {**_pair(3), "epsilon": epsilon()},
        left=_two_sided_mean,
        right=lambda behaviour, target, epsilon: (
            1
            - sum(max(p - (1 + epsilon) * m, 0) for m, p in zip(behaviour, target, strict=True))
            + sum(max((1 - epsilon) * m - p, 0) for m, p in zip(behaviour, target, strict=True))
        ),
        source="Schulman et al., Proximal policy optimization algorithms (2017), equation 7",
        latex=r"E_\mu \mathrm{clip}(\rho) = 1 - \sum_y (\pi - (1 + \epsilon) \mu)_+ + \sum_y ((1 - \epsilon) \mu - \pi)_+",
        theorem="clip_mean (Premise.v)",
    ),
    Claim(
        "two-sided-clip-with-mean-one-never-acts",
        "Where a ratio clipped to both sides has mean one, the clip never acts.",
        {**_pair(2), "epsilon": epsilon()},
        conclusion=lambda behaviour, target, epsilon: not decide_clip(behaviour, target, ceiling=1 + epsilon, floor=1 - epsilon).acts,
        hypotheses={"the mean is one": lambda behaviour, target, epsilon: bool(_two_sided_mean(behaviour, target, epsilon) == 1)},
        source=RAC,
        expected=False,
    ),
    Claim(
        "ratio-has-mean-one-when-the-rollout-moved-the-policy",
        "The ratio has mean one also where the rollout itself moved the policy before its reward arrived.",
        {**laws(2, "behaviour"), "moved": entries(LAW, 2)},
        left=lambda behaviour, moved: moved_policy_ratio_mean(behaviour, moved),
        right=1,
        source=RAC,
        latex=r"\sum_y \mu(y) \frac{\pi_y(y)}{\mu(y)} = 1",
        expected=False,
    ),
    Claim(
        "weighted-residual-keeps-its-mean",
        "Weighted by the clipped ratio, a residual has its mean under the old policy.",
        {**_pair(2), "residuals": numbers(2), "ceiling": positive_number()},
        left=_weighted,
        right=lambda behaviour, residuals: _mean(behaviour, residuals),
        hypotheses={
            "the clipped ratio has mean one": lambda behaviour, target, ceiling: (
                decide_clip(behaviour, target, ceiling=ceiling).is_unbiased
            ),
            "ratio and residual are uncorrelated": _is_uncorrelated,
        },
        source=RAC,
        latex=r"E_\mu[\rho X] = E_\mu X",
        theorem="ratio_unbiased_of_cond_indep (Premise.v)",
    ),
    Claim(
        "injection-on-its-own-rollout-is-the-missing-gradient",
        "A residual injected into the advantage of its own rollout has the gradient of its mean.",
        {**_pair(2), "features": numbers(2), "residuals": numbers(2), "ceiling": positive_number()},
        left=lambda behaviour, target, features, residuals, ceiling: injected_gradient(
            behaviour, target, slopes(target, features), residuals, ceiling=ceiling
        ),
        right=lambda target, features, residuals: reward_gradient(slopes(target, features), residuals),
        hypotheses=NEVER_ACTS,
        source=RAC,
        latex=r"E_\mu[\rho X \nabla \log \pi] = \nabla E_\pi X",
        theorem="change_of_measure (KL.v)",
    ),
    Claim(
        "injection-on-another-rollout-has-no-gradient",
        "A residual injected into the advantage of another rollout, weighted by its ratio, has expected gradient zero.",
        {**_pair(2), "features": numbers(2), "residual": number(), "ceiling": positive_number()},
        left=_elsewhere,
        right=0,
        hypotheses=NEVER_ACTS,
        source=RAC,
        latex=r"X_i\, E_\mu[\rho_j \nabla \log \pi(a_j)] = 0",
        theorem="other_rollout_zero (Premise.v)",
    ),
    Claim(
        "unweighted-injection-on-another-rollout-has-no-gradient",
        "Without a ratio too, such an injection has expected gradient zero.",
        {**HISTORIES, "target": LAW},
        left=_unweighted,
        right=0,
        hypotheses={
            "the other rollout draws from the current policy, given the residual": lambda behaviours, target: all(
                list(law) == list(target) for law in behaviours
            )
        },
        source=RAC,
        latex=r"E[X_i \nabla \log \pi(a_j)] = 0",
        theorem="other_rollout_zero (Premise.v)",
    ),
    Claim(
        "clipped-injection-on-another-rollout-has-no-gradient",
        "An injection on another rollout has expected gradient zero also where its ratio is clipped at one.",
        {**_pair(2), "features": numbers(2)},
        left=lambda behaviour, target, features: _elsewhere(behaviour, target, features, 1, 1),
        right=0,
        source=RAC,
        latex=r"E_\mu[\min(1, \rho) \nabla \log \pi] = 0",
        expected=False,
    ),
    Claim(
        "current-policy-on-average-is-enough",
        "An unweighted injection on another rollout has expected gradient zero if that draws from the current policy on average.",
        HISTORIES,
        left=lambda probabilities, residuals, behaviours, features: _unweighted(
            probabilities, residuals, behaviours, _mixture(probabilities, behaviours), features
        ),
        right=0,
        source=RAC,
        expected=False,
    ),
)
