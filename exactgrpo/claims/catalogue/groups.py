"""Claims about the advantages of one group."""

from __future__ import annotations

from exactgrpo.claims.catalogue.variables import number, rewards
from exactgrpo.claims.claim import Claim
from exactgrpo.update.groups import advantages, population_std

SOURCE = "the finite-budget group-relative policy update, outer iteration"

CLAIMS = (
    Claim(
        "advantages-sum-to-zero",
        "The advantages of a group sum to zero.",
        {"rewards": rewards()},
        left=lambda rewards: sum(advantages(rewards)),
        right=0,
        source=SOURCE,
        latex=r"\sum_i A_i = 0",
        theorem="advantages_sum0 (Advantages.v)",
    ),
    Claim(
        "advantages-squares-sum-to-group-size",
        "The squared advantages of a group sum to its size, unless all rewards are equal.",
        {"rewards": rewards()},
        left=lambda rewards: sum(a * a for a in advantages(rewards)),
        right=lambda rewards: len(rewards),
        hypotheses={"not all rewards are equal": lambda rewards: any(r != rewards[0] for r in rewards)},
        source=SOURCE,
        latex=r"\sum_i A_i^2 = G",
        theorem="advantages_sumsq (Advantages.v)",
    ),
    Claim(
        "std-zero-iff-rewards-equal",
        "The standard deviation of a group is zero exactly when all its rewards are equal.",
        {"rewards": rewards()},
        conclusion=lambda rewards: (population_std(rewards) == 0) == all(r == rewards[0] for r in rewards),
        source=SOURCE,
        latex=r"s = 0 \iff R_1 = \dots = R_G",
        theorem="std_zero_iff (Advantages.v)",
    ),
    Claim(
        "advantages-bounded",
        "No advantage exceeds sqrt(G - 1) in absolute value.",
        {"rewards": rewards()},
        left=lambda rewards: [a * a for a in advantages(rewards)],
        right=lambda rewards: [len(rewards) - 1] * len(rewards),
        relation="<=",
        latex=r"|A_i| \le \sqrt{G - 1}",
        theorem="adv_sq_le (Advantages.v)",
    ),
    Claim(
        "advantages-affine-invariant",
        "Advantages do not change when all rewards are scaled by a positive number and shifted.",
        {"rewards": rewards(), "scale": number(), "shift": number()},
        left=lambda rewards, scale, shift: advantages([scale * r + shift for r in rewards]),
        right=lambda rewards: advantages(rewards),
        hypotheses={"scale > 0": lambda scale: scale > 0},
        latex=r"A(c R + d) = A(R),\ c > 0",
        theorem="advantages_affine (Advantages.v)",
    ),
    Claim(
        "mean-absolute-advantage-at-most-one",
        "The mean absolute advantage of a group is at most one.",
        {"rewards": rewards()},
        left=lambda rewards: sum(abs(a) for a in advantages(rewards)) / len(rewards),
        right=1,
        relation="<=",
        latex=r"\frac1G \sum_i |A_i| \le 1",
        theorem="mean_abs_adv_le_1 (Ceiling.v)",
    ),
)
