"""Claims, true and false, about other advantages of a group and the gradient that they follow on average."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from exactgrpo.claims.catalogue.variables import entries, laws, numbers, positive_number, rewards, slopes, whole, whole_numbers
from exactgrpo.claims.claim import Claim
from exactgrpo.field.advantages import dr_grpo, epsilon_normalised, rloo, sample_normalised
from exactgrpo.field.expected_gradient import binary_factor, expected_group_gradient, reward_gradient
from exactgrpo.field.inputs import sum_of
from exactgrpo.numbers.real import Real
from exactgrpo.update.groups import advantages

RATE = "field report: tinker-cookbook#135"


def _expected(estimator: Callable[..., Any]) -> Callable[..., Real]:
    def gradient(policy: Any, features: Any, rewards: Any, group_size: int) -> Real:
        return expected_group_gradient(policy, slopes(policy, features), rewards, group_size=int(group_size), advantages=estimator)

    return gradient


def _true(policy: Any, features: Any, rewards: Any) -> Real:
    return reward_gradient(slopes(policy, features), rewards)


def _success(policy: Any, rewards: Any) -> Real:
    return sum_of([Real.of(p * r) for p, r in zip(policy, rewards, strict=True)])


def _binary_rate(policy: Any, features: Any, rewards: Any, group_size: int) -> Real:
    """c_G(p) times the gradient of p; both are zero where all rewards are equal."""
    success = _success(policy, rewards)
    gradient = _true(policy, features, rewards)
    return gradient if success == 0 or success == 1 else binary_factor(success, int(group_size)) * gradient


def _agreement(policy: Any, features: Any, rewards: Any) -> Real:
    return _expected(advantages)(policy, features, rewards, 2) * _true(policy, features, rewards)


def _variables(size: int, *sizes: int) -> dict[str, Any]:
    return {**laws(size, "policy"), "features": numbers(size), "rewards": numbers(size), "group_size": list(sizes)}


def _binary(size: int, *sizes: int) -> dict[str, Any]:
    return {**_variables(size, *sizes), "rewards": entries(whole(0, 1), size)}


CLAIMS = (
    Claim(
        "sample-std-rescales-advantages",
        "With divisor G - 1 instead of G all advantages shrink by sqrt((G - 1)/G).",
        {"rewards": rewards()},
        left=lambda rewards: sample_normalised(rewards),
        right=lambda rewards: [(Real.of(len(rewards) - 1) / len(rewards)).sqrt() * a for a in advantages(rewards)],
        source="field report: TorchFort#38",
        latex=r"A^{\text{sample}} = \sqrt{(G - 1)/G}\, A",
    ),
    Claim(
        "sample-std-changes-nothing",
        "Advantages are the same with divisor G - 1 as with divisor G.",
        {"rewards": rewards()},
        left=lambda rewards: sample_normalised(rewards),
        right=lambda rewards: advantages(rewards),
        source="field report: TorchFort#38, Relax#174",
        expected=False,
    ),
    Claim(
        "epsilon-keeps-scale-invariance",
        "Advantages with an epsilon in the denominator do not change when all rewards are scaled.",
        {"rewards": rewards(), "scale": positive_number(), "epsilon": positive_number()},
        left=lambda rewards, scale, epsilon: epsilon_normalised([scale * r for r in rewards], epsilon=epsilon),
        right=lambda rewards, epsilon: epsilon_normalised(rewards, epsilon=epsilon),
        source="field report: Liger-Kernel#553",
        latex=r"A(c R) = A(R)",
        expected=False,
    ),
    Claim(
        "rloo-is-centring-rescaled",
        "Leave-one-out advantages are G/(G - 1) times the centred rewards.",
        {"rewards": rewards()},
        left=lambda rewards: rloo(rewards),
        right=lambda rewards: [a * len(rewards) / (len(rewards) - 1) for a in dr_grpo(rewards)],
        source="Ahmadian et al., Back to basics (2024)",
        latex=r"A^{\text{loo}} = \frac{G}{G - 1} (R - \bar R)",
    ),
    Claim(
        "rloo-unbiased",
        "Leave-one-out advantages follow the gradient of the expected reward on average.",
        _variables(3, 2, 3),
        left=_expected(rloo),
        right=_true,
        source="Ahmadian et al., Back to basics (2024)",
    ),
    Claim(
        "centring-shrinks-the-gradient",
        "Centred rewards follow (G - 1)/G times the gradient of the expected reward on average.",
        _variables(3, 2, 3),
        left=_expected(dr_grpo),
        right=lambda policy, features, rewards, group_size: _true(policy, features, rewards) * (group_size - 1) / group_size,
        source=RATE,
        latex=r"E \hat g = \frac{G - 1}{G} \nabla E_\theta R",
        theorem="centred_gradient (Law.v)",
    ),
    Claim(
        "centring-unbiased",
        "Centred rewards follow the gradient of the expected reward on average.",
        _variables(2, 2, 3),
        left=_expected(dr_grpo),
        right=_true,
        source=RATE,
        expected=False,
    ),
    Claim(
        "standardising-keeps-the-direction",
        "The expected first step with standardised advantages never points against the gradient.",
        {**laws(3, "policy"), "features": whole_numbers(3), "rewards": whole_numbers(3)},
        left=_agreement,
        right=0,
        relation=">=",
        source="ours; machine-checked instance: standardising_reverses (Reversal.v)",
        latex=r"\langle E \nabla F, \nabla E_\theta R \rangle \ge 0",
        expected=False,
    ),
    Claim(
        "binary-rewards-rate",
        "With binary rewards the expected first step is c_G(p) times the gradient of the success probability.",
        _binary(3, 2, 3, 4),
        left=_expected(advantages),
        right=_binary_rate,
        source="ours; the closed form of c_G is cG_closed (BinaryFactor.v)",
        latex=r"E \nabla F = c_G(p) \nabla p,\ c_G(p) = \frac{E \sqrt{k (G - k)}}{G p (1 - p)}",
        theorem="binary_expected_gradient (FirstStep.v)",
    ),
    Claim(
        "binary-pairs-unbiased",
        "With binary rewards and groups of two the standardised update is unbiased.",
        _binary(3, 2),
        left=_expected(advantages),
        right=_true,
        source=RATE,
        latex=r"c_2(p) = 1",
    ),
    Claim(
        "binary-groups-unbiased",
        "With binary rewards the standardised update is unbiased, whatever the group size.",
        _binary(2, 2, 3, 4),
        left=_expected(advantages),
        right=_true,
        source=RATE,
        latex=r"c_G(p) = 1",
        expected=False,
    ),
)
