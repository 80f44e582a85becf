"""Claims, true and false, about late residuals of a group: in its rewards, in its advantages, or injected exactly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from exactgrpo.claims.catalogue.delayed_clip import RAC
from exactgrpo.claims.catalogue.variables import entries, number, numbers, rewards, whole
from exactgrpo.claims.claim import Claim
from exactgrpo.claims.variable import Variable
from exactgrpo.field.inputs import sum_of
from exactgrpo.numbers.real import Real
from exactgrpo.rac.correction import exact_injection, group_correction
from exactgrpo.update.groups import advantages


def _shared(rewards: Sequence[Any], residual: Any) -> Any:
    return group_correction(rewards, [residual] * len(rewards))


def _estimate(advantages: Sequence[Real], scores: Sequence[Any]) -> Real:
    return sum_of([a * s for a, s in zip(advantages, scores, strict=True)]) / len(scores)


def _injected_one_by_one(rewards: Sequence[Any], residuals: Sequence[Any], arrivals: Sequence[Any]) -> list[Real]:
    seen, total = list(rewards), list(advantages(rewards))
    for i in map(int, arrivals):
        now = [residuals[i] if j == i else None for j in range(len(seen))]
        total = [a + d for a, d in zip(total, exact_injection(seen, now), strict=True)]
        seen[i] += residuals[i]
    return total


def _complete(rewards: Sequence[Any], residuals: Sequence[Any]) -> tuple[Real, ...]:
    return advantages([r + x for r, x in zip(rewards, residuals, strict=True)])


def _arrivals(size: int) -> Variable:
    """Positions in the order in which their residuals arrive, each at most once."""
    position = whole(0, size - 1)
    strategy = st.lists(position.strategy, min_size=1, max_size=size, unique=True)

    def contains(x: Any) -> bool:
        is_row = isinstance(x, (list, tuple)) and 0 < len(x) <= size and all(map(position.contains, x))
        return is_row and not any(x[i] == x[j] for i in range(len(x)) for j in range(i))

    return Variable(strategy, contains, f"distinct positions from 0 to {size - 1}, at least one")


FLAG = Variable(st.booleans(), lambda x: isinstance(x, bool), "true or false")
PAIR = {"rewards": numbers(2), "residuals": numbers(2)}
SHARED = {"rewards": rewards(), "residual": number()}

CLAIMS = (
    Claim(
        "shared-residual-in-the-rewards-is-erased",
        "A residual that the whole group shares, put into its rewards, changes no advantage.",
        SHARED,
        left=lambda rewards, residual: _shared(rewards, residual).injected,
        right=lambda rewards: advantages(rewards),
        latex=r"A(R + x) = A(R)",
        theorem="residual_in_rewards (Premise.v)",
    ),
    Claim(
        "shared-residual-in-the-advantages-adds-the-mean-score",
        "A residual that the whole group shares, put into its advantages, adds its product with the mean score to the gradient.",
        {"rewards": numbers(3), "residual": number(), "scores": numbers(3)},
        left=lambda rewards, residual, scores: _estimate(_shared(rewards, residual).added, scores),
        right=lambda rewards, residual, scores: _estimate(advantages(rewards), scores) + residual * sum(scores) / len(scores),
        source=RAC,
        latex=r"\frac1G \sum_i (A_i + x) s_i = \frac1G \sum_i A_i s_i + x \bar s",
        theorem="residual_in_advantages (Premise.v)",
    ),
    Claim(
        "shared-residual-in-rewards-or-advantages",
        "A shared residual does the same in the rewards as in the advantages.",
        SHARED,
        left=lambda rewards, residual: _shared(rewards, residual).injected,
        right=lambda rewards, residual: _shared(rewards, residual).added,
        source=RAC,
        expected=False,
    ),
    Claim(
        "residual-added-to-the-advantage-is-that-of-the-slow-reward",
        "The advantage of the fast reward plus the residual is the advantage of the slow reward.",
        PAIR,
        left=lambda rewards, residuals: group_correction(rewards, residuals).added,
        right=_complete,
        source=RAC,
        latex=r"A(R) + X = A(R + X)",
        expected=False,
    ),
    Claim(
        "exact-injections-sum-to-the-slow-advantages",
        "Injected exactly as they arrive, in any order, the residuals of a group make its advantages those of its slow rewards.",
        {"rewards": numbers(3), "residuals": numbers(3), "arrivals": _arrivals(3)},
        left=_injected_one_by_one,
        right=_complete,
        hypotheses={"every residual arrives": lambda rewards, arrivals: len(arrivals) == len(rewards)},
        latex=r"A(R) + \sum_n \delta^{(n)} = A(R + X)",
    ),
    Claim(
        "half-arrived-group-has-the-slow-advantages",
        "A group of which only some residuals have arrived has the advantages that it will have in the end.",
        {**PAIR, "arrived": entries(FLAG, 2)},
        left=lambda rewards, residuals, arrived: group_correction(rewards, residuals, arrived=arrived).injected,
        right=_complete,
        hypotheses={"a residual has arrived": lambda arrived: any(arrived)},
        source=RAC,
        expected=False,
    ),
)
