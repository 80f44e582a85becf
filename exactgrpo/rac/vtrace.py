"""Late residuals against V-trace: what Retroactive Advantage Correction uses on one trajectory, and what V-trace would have used.

Its identity kernel, where every residual is injected at its own step with weight one, is said to recover the on-policy guarantee of
V-trace. That needs unit weights (on policy, ceilings of at least one) and no residual at a later step of the trajectory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from exactgrpo.errors import InputError, LimitError
from exactgrpo.field.inputs import ONE, ZERO, positives, reals, sum_of
from exactgrpo.field.returns import gae, td_errors
from exactgrpo.field.vtrace import truncated, vtrace_advantages
from exactgrpo.numbers.inputs import listed, whole
from exactgrpo.numbers.real import Real

MAX_STEPS = 256

Row = tuple[Real, ...]


@dataclass(frozen=True, slots=True)
class VtraceGap:
    """Corrected advantages against those of V-trace on the same trajectory, one number for each step.

    `gap` is `corrected` - `vtrace`. In closed form it is `from_fast` + `from_residuals`: what is left of the fast errors because they are
    not weighted, and what the kernel injects of the residuals against what V-trace uses of them. `has_unit_weights` says whether every
    clipped ratio and every trace is one, as on policy, `is_identity` whether the kernel is the identity, `is_equal` whether the gap is 0.
    """

    corrected: Row
    vtrace: Row
    gap: Row
    from_fast: Row
    from_residuals: Row
    has_unit_weights: bool
    is_identity: bool
    is_equal: bool


@dataclass(frozen=True, slots=True)
class KernelChange:
    """By how much a kernel moves each advantage away from the identity kernel, a bound on its absolute value, and whether it holds."""

    changes: Row
    bounds: Row
    holds: bool


def identity_kernel(steps: int) -> tuple[Row, ...]:
    """The kernel that injects each residual at its own step with weight one.

    >>> identity_kernel(2)
    ((Real('1'), Real('0')), (Real('0'), Real('1')))
    """
    return discounted_kernel(steps, 0)


def discounted_kernel(steps: int, gamma: Any) -> tuple[Row, ...]:
    """The kernel that injects gamma^j X at the step j before that of the residual X: Lambda[t, s] = gamma^(t-s) for s <= t.

    It looks back, so it needs the whole trajectory to be kept until its residuals arrive. Theorem: residual_in_return (VTrace.v).

    >>> discounted_kernel(2, "1/2")
    ((Real('1'), Real('0')), (Real('1/2'), Real('1')))
    """
    count, powers = _checked_steps(whole(steps, "steps", least=1)), [ONE]
    discount = _discount(gamma)
    for _ in range(count - 1):
        powers.append(powers[-1] * discount)
    return tuple(tuple(powers[t - s] if s <= t else ZERO for s in range(count)) for t in range(count))


def corrected_advantages(
    rewards: Sequence[Any],
    values: Sequence[Any],
    residuals: Sequence[Any],
    ratios: Sequence[Any],
    *,
    gamma: Any,
    bootstrap: Any,
    kernel: Sequence[Sequence[Any]] | None = None,
    ceiling: Any = 1,
) -> Row:
    """A_s = G_s - V_s + sum_t Lambda[t, s] rho_t X_t: returns of the fast `rewards` minus values, plus what the kernel injects.

    G_s is the discounted return that bootstraps at the end, X_t = slow - fast reward of step t the `residuals`, `ratios` hold pi/mu at
    arrival, rho_t = min(ceiling, pi/mu); a ceiling of None does not clip. `kernel`[t][s] is the weight with which the residual of step t
    is injected at step s: gain times age weight where it lands, the identity if None. Source: Retroactive Advantage Correction,
    arXiv:2606.27580; one trajectory of several steps is ours. At most 256 steps (LimitError). UndecidedError only if irrational ratios
    leave a comparison with the ceiling undecided.

    >>> corrected_advantages([1], [1], [2], ["3/2"], gamma=1, bootstrap=0, ceiling=None)
    (Real('3'),)
    """
    x, rho = _residuals(residuals, ratios, ceiling)
    fast = gae(_sized(rewards, len(x)), values, gamma=_discount(gamma), lambda_=1, bootstrap=bootstrap)
    injected = _injected(_kernel(kernel, len(x)), rho, x)
    return tuple(a + j for a, j in zip(fast, injected, strict=True))


def decide_vtrace(
    rewards: Sequence[Any],
    values: Sequence[Any],
    residuals: Sequence[Any],
    ratios: Sequence[Any],
    *,
    gamma: Any,
    bootstrap: Any,
    kernel: Sequence[Sequence[Any]] | None = None,
    ceiling: Any = 1,
    c_bar: Any = 1,
) -> VtraceGap:
    """Whether the corrected advantages are those of V-trace on the slow rewards `rewards` + X, with both numbers and the gap.

    V-trace truncates its errors and its policy gradient at `ceiling` and its traces at `c_bar`. With the fast errors
    d_t = r_t + gamma V_{t+1} - V_t and W_{s,s} = rho_s, W_{s,t} = rho_s c_{s+1}...c_{t-1} rho_t, the gap at step s is
    sum_{t>=s} gamma^(t-s) (1 - W_{s,t}) d_t + sum_t (Lambda[t, s] rho_t - 1{t>=s} gamma^(t-s) W_{s,t}) X_t (ours). For one step and the
    identity kernel it is (1 - rho) (r - V): equal exactly on policy, or where r = V. On policy over several steps it is
    - sum_{j>=1} gamma^j X_{s+j} under the identity kernel and 0 under `discounted_kernel`. Theorems: one_step_gap, one_step_equal_iff,
    one_step_is_vtrace, clipped_ratio_on_policy, several_steps_gap (VTrace.v). Other arguments and errors as for `corrected_advantages`.

    >>> on, off = (decide_vtrace([1], [3], [2], [rho], gamma=1, bootstrap=0) for rho in (1, "1/2"))
    >>> on.is_equal, off.corrected, off.vtrace, off.gap, off.from_fast
    (True, (Real('-1'),), (Real('0'),), (Real('-1'),), (Real('-1'),))
    >>> decide_vtrace([0, 0], [0, 0], [0, 1], [1, 1], gamma="1/2", bootstrap=0).gap
    (Real('-1/2'), Real('0'))
    """
    x, rho = _residuals(residuals, ratios, ceiling)
    r, rows, decay = _sized(rewards, len(x)), _kernel(kernel, len(x)), _discount(gamma)
    corrected = corrected_advantages(r, values, x, ratios, gamma=decay, bootstrap=bootstrap, kernel=rows, ceiling=ceiling)
    slow = [a + b for a, b in zip(r, x, strict=True)]
    bars = {"rho_bar": ceiling, "pg_rho_bar": ceiling, "c_bar": c_bar}
    vtrace = vtrace_advantages(slow, values, ratios, gamma=decay, bootstrap=bootstrap, **bars)
    errors = td_errors(r, values, gamma=decay, bootstrap=bootstrap)
    traces = truncated(positives(ratios, "ratios"), c_bar, "c_bar")
    weights = _weights(rho, traces, decay)
    powers = discounted_kernel(len(x), decay)
    steps = range(len(x))
    from_fast = tuple(sum_of([(powers[t][s] - weights[t][s]) * errors[t] for t in steps[s:]]) for s in steps)
    from_residuals = tuple(sum_of([(rows[t][s] * rho[t] - weights[t][s]) * x[t] for t in steps]) for s in steps)
    gap = tuple(a - v for a, v in zip(corrected, vtrace, strict=True))
    has_unit_weights = all(w == 1 for w in (*rho, *traces))
    is_identity = all(rows[t][s] == (1 if s == t else 0) for t in steps for s in steps)
    return VtraceGap(corrected, vtrace, gap, from_fast, from_residuals, has_unit_weights, is_identity, all(g == 0 for g in gap))


def decide_kernel_change(
    residuals: Sequence[Any], ratios: Sequence[Any], kernel: Sequence[Sequence[Any]], *, ceiling: Any = 1
) -> KernelChange:
    """A_s(Lambda) - A_s(I) = sum_t (Lambda - I)[t, s] rho_t X_t, and its bound sum_t |Lambda - I|[t, s] |rho_t X_t|, for each step s.

    Advantages are affine in the entries of the kernel, so they tend to those of the identity kernel as it does, on policy or off. What
    they tend to is V-trace only where `decide_vtrace` says so. The bound is the triangle inequality, so a decision that fails would be an
    error of ours. Arguments and errors as for `corrected_advantages`.

    >>> decide_kernel_change([2, -1], [1, 1], [["3/4", "1/4"], [0, "1/2"]])
    KernelChange(changes=(Real('-1/2'), Real('1')), bounds=(Real('1/2'), Real('1')), holds=True)
    """
    x, rho = _residuals(residuals, ratios, ceiling)
    rows, identity = _kernel(kernel, len(x)), identity_kernel(len(x))
    moved = [[a - b for a, b in zip(row, unit, strict=True)] for row, unit in zip(rows, identity, strict=True)]
    changes = _injected(moved, rho, x)
    bounds = _injected([[abs(entry) for entry in row] for row in moved], rho, [abs(y) for y in x])
    return KernelChange(changes, bounds, all(abs(c) <= b for c, b in zip(changes, bounds, strict=True)))


def _weights(rho: Sequence[Real], traces: Sequence[Real], decay: Real) -> list[list[Real]]:
    """gamma^(t-s) W_{s,t} at [t][s], the weight of the error of step t in the advantage of step s."""
    table = [[ZERO] * len(rho) for _ in rho]
    for s in range(len(rho)):
        table[s][s] = carried = rho[s]
        for t in range(s + 1, len(rho)):
            carried = carried * decay
            table[t][s] = carried * rho[t]
            carried = carried * traces[t]
    return table


def _injected(kernel: Sequence[Sequence[Real]], rho: Sequence[Real], x: Sequence[Real]) -> Row:
    weighted = [w * y for w, y in zip(rho, x, strict=True)]
    return tuple(sum_of([row[s] * y for row, y in zip(kernel, weighted, strict=True)]) for s in range(len(x)))


def _residuals(residuals: Any, ratios: Any, ceiling: Any) -> tuple[list[Real], list[Real]]:
    """The residuals and the clipped ratios, once their number is within the limit."""
    count = _checked_steps(len(listed(residuals, "residuals")))
    x = reals(residuals, "residuals")
    return x, truncated(positives(ratios, "ratios", length=count, rule="a ratio of positive masses is positive"), ceiling, "ceiling")


def _sized(rewards: Any, count: int) -> list[Real]:
    return reals(rewards, "rewards", length=count, rule=f"one reward for each of the {count} residuals")


def _kernel(kernel: Any, count: int) -> Sequence[Row]:
    if kernel is None:
        return identity_kernel(count)
    rule = f"one row of {count} numbers for each of the {count} steps"
    rows = listed(kernel, "kernel", rule)
    if len(rows) != count:
        raise InputError("kernel", f"{len(rows)} rows", rule)
    weights = [tuple(reals(row, f"kernel[{t}]", length=count, rule=rule)) for t, row in enumerate(rows)]
    for t, row in enumerate(weights):
        for s, weight in enumerate(row):
            if weight < 0:
                raise InputError(f"kernel[{t}][{s}]", repr(weight), "a weight is not negative")
    return weights


def _discount(gamma: Any) -> Real:
    discount = Real.of(gamma, "gamma")
    if discount < 0:
        raise InputError("gamma", repr(discount), "gamma >= 0")
    return discount


def _checked_steps(count: int) -> int:
    if count > MAX_STEPS:
        raise LimitError("steps", count, f"at most {MAX_STEPS} steps")
    return count
