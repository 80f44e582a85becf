"""The clipped objective F_t as a function of the masses: ratios, clip sides, KL, value and cotangent.

F_t(theta) = (1/M) sum_q [ (1/G) sum_i min(rho A, clip(rho, 1 - eps_low, 1 + eps_high) A) - beta KL(pi_theta || pi_ref) ].
A term equals A min(rho, 1 + eps_high) for A > 0, A max(rho, 1 - eps_low) for A < 0 and 0 for A = 0, so each term has
one bound of its own where it can have a kink; at the other bound it is smooth.

Theorems: cterm2_pos, cterm2_neg, cterm2_zero (Clip.v), objective_ceiling (Ceiling.v), change_of_measure, KL_nonneg (KL.v),
clipped2_gradient, smooth_tie (Objective.v).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from exactgrpo.numbers.arithmetic import Arithmetic, Column, Key, Rows, Signs
from exactgrpo.policies.family import Policy
from exactgrpo.update.groups import Groups
from exactgrpo.update.problem import Problem

NOTHING = Column([0])


@dataclass(frozen=True, slots=True)
class Frozen:
    """The data of one outer iteration in one arithmetic: what stays fixed through its inner steps."""

    groups: Groups
    inverse_old: Any
    weight: Any
    bound: Any
    other: Any
    log_reference: Any


def freeze(arithmetic: Arithmetic, problem: Problem, t: int, policy: Policy) -> Frozen:
    """Draw at theta_{t-1}, compute rewards and advantages, and keep the old masses of the drawn responses."""
    rows = problem.family.rows
    draws = problem.draws.take(arithmetic, t, policy.mass, rows, problem.group_size)
    groups: Groups = problem.cached(
        ("groups", t, draws), lambda: Groups.of(draws, problem.rewards, rows.start, problem.epsilon_low, problem.epsilon_high)
    )
    return Frozen(
        groups,
        1 / policy.mass[groups.drawn],
        groups.weights(arithmetic),
        arithmetic.exact(groups.bound),
        arithmetic.exact(groups.other),
        problem.reference.log_mass(arithmetic, problem.family) if problem.reference is not None and problem.beta != 0 else None,
    )


def ratios(policy: Policy, frozen: Frozen) -> Any:
    """rho = pi_theta(y|q) / pi_old(y|q) of each term."""
    return policy.mass[frozen.groups.drawn] * frozen.inverse_old


def clip_signs(arithmetic: Arithmetic, key: Key, rho: Any, frozen: Frozen) -> Signs:
    """Where each term stands to its own bound: -1 inside (its derivative is A grad rho), 0 on it, 1 outside (derivative 0)."""
    groups = frozen.groups
    signs: Signs = arithmetic.signs((*key, "ratio"), rho, frozen.bound) * groups.side
    inside = np.flatnonzero(signs < 0)
    # a smooth tie changes no derivative: its sign is asked softly, only to name it in the trace
    arithmetic.signs((*key, "tie"), rho[inside], frozen.other[inside], soft=True)
    return signs


def cotangent(
    arithmetic: Arithmetic, problem: Problem, policy: Policy, frozen: Frozen, active: npt.NDArray[np.intp]
) -> Any:
    """dF/d(mass), up to a constant for each prompt: the active terms A/(G M old), minus (beta/M)(log pi - log ref)."""
    groups, rows = frozen.groups, problem.family.rows
    out = arithmetic.place((frozen.weight * frozen.inverse_old)[active], groups.drawn[active], rows.size)
    if frozen.log_reference is not None:
        log_weight = policy.log_weight or policy.log_mass  # the cotangent is free up to a constant for each prompt
        out = out - (log_weight() - frozen.log_reference) * arithmetic.number(problem.beta / rows.count)
    return out


def value(
    arithmetic: Arithmetic, problem: Problem, policy: Policy, frozen: Frozen, rho: Any | None, active: npt.NDArray[np.intp]
) -> Any:
    """F_t, a vector of one entry. `rho` is None where every ratio is 1: the clipped sum is then (1/(G M)) sum A = 0."""
    size = len(frozen.groups.drawn)
    if rho is None:
        total = arithmetic.exact(NOTHING)
    else:
        everything = rho_or_bound(arithmetic, frozen, rho, active, size)
        total = arithmetic.sums(frozen.weight * everything, _one_row(problem, "terms", size))
    if frozen.log_reference is not None:
        gap = policy.mass * (policy.log_mass() - frozen.log_reference)
        penalty = arithmetic.sums(gap, _one_row(problem, "support", problem.family.rows.size))
        total = total - penalty * arithmetic.number(problem.beta / problem.family.rows.count)
    return total


def rho_or_bound(arithmetic: Arithmetic, frozen: Frozen, rho: Any, active: npt.NDArray[np.intp], size: int) -> Any:
    """The clipped ratio of each term: rho where it is active, its bound elsewhere."""
    clipped = np.setdiff1d(np.arange(size), active)
    return arithmetic.place(rho[active], active, size) + arithmetic.place(frozen.bound[clipped], clipped, size)


def _one_row(problem: Problem, name: str, size: int) -> Rows:
    rows: Rows = problem.cached(("row", name, size), lambda: Rows([size]))
    return rows
