"""The T x K procedure with its three statuses and exact counts, for any oracle.

The loop ends; every returned theta lies in U; there are at most T M G draws and T K gradient attempts. It promises no monotone
improvement, no unbiasedness and no convergence.

Theorems: run_correct, run_valid, run_counts, run_budget (Procedure.v), grpo_main (Grpo.v).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

Status = Literal["complete", "undefined-gradient", "invalid-update"]


@dataclass(slots=True)
class Counts:
    """Exact counts of the oracle calls and operations of the procedure, as it is stated.

    For each outer iteration: M G draws, M G reward evaluations, M square roots, and one evaluation of all masses at the
    frozen parameter, which serves the draws, the old masses and the first inner step. For each gradient attempt: one
    evaluation of all masses at its point (the first inner step re-uses the frozen one), and with beta > 0 one logarithm for
    each response of the support. One domain call for each proposal.
    """

    draws: int = 0
    reward_evaluations: int = 0
    mass_evaluations: int = 0
    gradient_attempts: int = 0
    domain_calls: int = 0
    square_roots: int = 0
    logarithms: int = 0


class UpdateOracle(Protocol):
    """What the procedure calls. Levels (t, k) count from 1; `frozen` is what `freeze` returned for the outer iteration."""

    counts: Counts

    def freeze(self, t: int, theta: Any) -> Any: ...

    def gradient(self, level: tuple[int, int], theta: Any, frozen: Any) -> Any | None: ...

    def propose(self, level: tuple[int, int], theta: Any, gradient: Any) -> Any: ...

    def contains(self, level: tuple[int, int], theta: Any) -> bool: ...


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended: its status, the last valid parameter, and the level at which that parameter was proposed (None: theta0)."""

    status: Status
    theta: Any
    valid: tuple[int, int] | None
    last: tuple[int, int]


def update_loop(oracle: UpdateOracle, theta0: Any, *, outer_iterations: int, inner_steps: int) -> Ending:
    """Run the procedure; theta0 must lie in U."""
    theta, valid = theta0, None
    level = (1, 1)
    for t in range(1, outer_iterations + 1):
        frozen = oracle.freeze(t, theta)
        for k in range(1, inner_steps + 1):
            level = (t, k)
            oracle.counts.gradient_attempts += 1
            gradient = oracle.gradient(level, theta, frozen)
            if gradient is None:
                return Ending("undefined-gradient", theta, valid, level)
            proposal = oracle.propose(level, theta, gradient)
            oracle.counts.domain_calls += 1
            if not oracle.contains(level, proposal):
                return Ending("invalid-update", theta, valid, level)
            theta, valid = proposal, level
    return Ending("complete", theta, valid, level)
