"""Claims about ratios as a change of measure, and about the divergence."""

from __future__ import annotations

from exactgrpo.claims.catalogue.variables import law, laws, numbers
from exactgrpo.claims.claim import Claim
from exactgrpo.update.divergence import kl_policy_from_reference

VARIABLES = {"policy": law(3), **laws(3, "old")}

CLAIMS = (
    Claim(
        "ratio-mean-one",
        "Under the old policy the mean of the ratio is one.",
        VARIABLES,
        left=lambda policy, old: sum(q * (p / q) for p, q in zip(policy, old, strict=True)),
        right=1,
        source="the finite-budget group-relative policy update, listed dependencies",
        latex=r"E_{\text{old}}[\rho] = 1",
        theorem="ratio_mean_one (KL.v)",
    ),
    Claim(
        "ratio-changes-measure",
        "Weighted by the ratio, the mean under the old policy is the mean under the policy, for every statistic.",
        {**VARIABLES, "statistic": numbers(3)},
        left=lambda policy, old, statistic: sum(q * (p / q) * f for p, q, f in zip(policy, old, statistic, strict=True)),
        right=lambda policy, statistic: sum(p * f for p, f in zip(policy, statistic, strict=True)),
        source="the finite-budget group-relative policy update, listed dependencies",
        latex=r"E_{\text{old}}[\rho f] = E_\theta[f]",
        theorem="change_of_measure (KL.v)",
    ),
    Claim(
        "kl-nonnegative",
        "The divergence of a policy from a positive reference is not negative.",
        {"policy": law(3), **laws(3, "reference")},
        left=lambda policy, reference: kl_policy_from_reference(policy, reference),
        right=0,
        relation=">=",
        source="Gibbs' inequality",
        latex=r"\mathrm{KL}(\pi \| \pi_{\text{ref}}) \ge 0",
        theorem="KL_nonneg (KL.v)",
    ),
    Claim(
        "kl-zero-iff-equal",
        "The divergence is zero exactly when policy and reference are equal.",
        {"policy": law(3), **laws(3, "reference")},
        conclusion=lambda policy, reference: (kl_policy_from_reference(policy, reference) == 0) == (list(policy) == list(reference)),
        source="Gibbs' inequality",
        latex=r"\mathrm{KL}(\pi \| \pi_{\text{ref}}) = 0 \iff \pi = \pi_{\text{ref}}",
        theorem="KL_eq0_iff (KL.v)",
    ),
)
