"""The exact objective-gradient oracle: the gradient of F_t where it is totally differentiable, or the evidence that it is not.

With positive differentiable masses, F_t is differentiable at theta if and only if every term at a true kink (rho = 1 + eps_high with
A > 0, or rho = 1 - eps_low with A < 0) has grad rho = 0; kinks all bend the same way and never cancel. The first inner step of an
outer iteration has rho = 1, which is no kink.

Theorems: F_diff_iff, F_gradient, first_step_defined (Objective.v), clipped2_diff_iff (Kink.v), first_step_ok (Grpo.v),
oracle_inst_exact (OracleInst.v), not_differentiable_at_three_fifths (Witness.v).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from exactgrpo.numbers.arithmetic import Arithmetic, Key
from exactgrpo.policies.family import Policy
from exactgrpo.update.objective import Frozen, clip_signs, cotangent, ratios, value
from exactgrpo.update.problem import Problem


@dataclass(frozen=True, slots=True)
class Answer:
    """What the oracle says at one point: the gradient, or None with the terms whose kinks forbid one."""

    gradient: Any | None
    kinks: tuple[int, ...]


def evaluate(arithmetic: Arithmetic, problem: Problem, key: Key, policy: Policy, frozen: Frozen, *, first: bool) -> Answer:
    """Ask the oracle at theta with the masses `policy`; `first` says that theta is the frozen parameter itself."""
    groups = frozen.groups
    everything = np.arange(len(groups.drawn))
    if first:
        rho = None
        active, ties = everything, everything[:0]
    else:
        rho = ratios(policy, frozen)
        arithmetic.observe("rho", key, lambda: rho)
        signs = clip_signs(arithmetic, key, rho, frozen)
        active, ties = np.flatnonzero(signs < 0), np.flatnonzero(signs == 0)
    arithmetic.observe("objective", key, lambda: value(arithmetic, problem, policy, frozen, rho, active))
    bends = tuple(int(i) for i in ties if _bends(arithmetic, key, problem, policy, frozen, int(i)))
    gradient = policy.pullback(cotangent(arithmetic, problem, policy, frozen, active))
    if not bends:
        return Answer(gradient, ())
    # evidence: the gradient of everything but the kinks, and one generator A grad rho/(G M) for each kink
    arithmetic.observe("rest", key, lambda: gradient)
    for i in bends:
        arithmetic.observe(f"kink{i}", key, lambda i=i: _pull_term(arithmetic, problem, policy, frozen, i, frozen.weight))  # type: ignore[misc]
    return Answer(None, bends)


def _bends(arithmetic: Arithmetic, key: Key, problem: Problem, policy: Policy, frozen: Frozen, i: int) -> bool:
    """Whether a term at its true kink has a non-zero ratio gradient."""
    slope = _pull_term(arithmetic, problem, policy, frozen, i, None)
    return bool(arithmetic.signs((*key, "slope", i), slope, slope * 0).any())


def _pull_term(arithmetic: Arithmetic, problem: Problem, policy: Policy, frozen: Frozen, i: int, weight: Any | None) -> Any:
    """grad rho of term i, times its weight if given: the pullback of a unit vector."""
    one: npt.NDArray[np.intp] = np.array([i], np.intp)
    entry = frozen.inverse_old[one] if weight is None else frozen.inverse_old[one] * weight[one]
    return policy.pullback(arithmetic.place(entry, frozen.groups.drawn[one], problem.family.rows.size))
