"""How far late rewards move a policy in one step: the total variation of an exponential reweighting, and its bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from exactgrpo.errors import InputError
from exactgrpo.field.inputs import ONE, ZERO, greatest_of, least_of, positive, positive_pmf, reals, sum_of
from exactgrpo.numbers.inputs import listed, whole
from exactgrpo.numbers.real import Real
from exactgrpo.rac.divergence import total_variation


@dataclass(frozen=True, slots=True)
class PolicyShift:
    """A policy before and after a reweighting by exp(h): masses, osc(h) = max h - min h, their `total_variation`, the `bound`
    tanh(osc(h)/4), and whether the former is at most the latter.
    """

    before: tuple[Real, ...]
    after: tuple[Real, ...]
    oscillation: Real
    total_variation: Real
    bound: Real
    holds: bool


@dataclass(frozen=True, slots=True)
class CorrectedStep:
    """One softmax step with and without the corrections of late rewards, from the same frozen policy.

    `shift` goes from the fast-only policy to the corrected one, `score_changes` is its h, one number for each response. `coarse_bound` is
    tanh(u/4) with u >= osc(h) made of the sizes of the corrections alone: it holds whatever their signs.
    """

    shift: PolicyShift
    score_changes: tuple[Real, ...]
    coarse_bound: Real


def shifted(policy: Sequence[Any], changes: Sequence[Any]) -> tuple[Real, ...]:
    """pi(y) exp(h(y)) / sum_z pi(z) exp(h(z)) for a positive policy and `changes` h, one exact number for each response.

    Theorem: softmax_step_is_shift (Shift.v): a softmax step that changes the scores by h does this. UndecidedError only if irrational
    numbers leave the order of the changes or the sum of the masses undecided.

    >>> shifted(["1/3", "2/3"], ["log(4)", 0])
    (Real('2/3'), Real('1/3'))
    """
    pi = positive_pmf(policy, "policy")
    h = _changes(changes, len(pi))
    top = _extremes(h)[1]  # equal changes then leave the policy as it is, whatever they are
    weights = [p * (x - top).exp() for p, x in zip(pi, h, strict=True)]
    total = sum_of(weights)
    return tuple(w / total for w in weights)


def oscillation(changes: Sequence[Any]) -> Real:
    """osc(h) = max h - min h.

    >>> oscillation([1, "-1/2", 0])
    Real('3/2')
    """
    low, high = _extremes(_changes(changes, None))
    return high - low


def shift_bound(changes: Sequence[Any]) -> Real:
    """tanh(osc(h)/4), the largest total variation between a policy and its reweighting by exp(h), whatever the policy.

    Theorem: TV_shift_tanh (Shift.v). Ours.

    >>> shift_bound(["log(4)", 0])
    Real('1/3')
    """
    return _tanh_of_a_quarter(oscillation(changes))


def decide_shift(policy: Sequence[Any], changes: Sequence[Any]) -> PolicyShift:
    """Whether TV(pi', pi) <= tanh(osc(h)/4) for pi' proportional to pi exp(h), with both numbers.

    Equality is met by two responses: see `extremal_shift`. Theorems: TV_shift_tanh, TV_shift_sharp (Shift.v), so a decision that fails
    would be an error of ours. Arguments and errors as for `shifted`.

    >>> seen = decide_shift(["1/3", "2/3"], ["log(4)", 0])
    >>> seen.total_variation, seen.bound, seen.holds
    (Real('1/3'), Real('1/3'), True)
    """
    before, after = tuple(positive_pmf(policy, "policy")), shifted(policy, changes)
    variation, width = total_variation(after, before), oscillation(changes)
    bound = _tanh_of_a_quarter(width)
    return PolicyShift(before, after, width, variation, bound, variation <= bound)


def extremal_shift(width: Any) -> tuple[tuple[Real, ...], tuple[Real, ...]]:
    """The policy (1, u)/(1 + u) with u = exp(width/2), and h = (width, 0): the pair whose total variation is tanh(width/4); width >= 0.

    Theorem: TV_shift_sharp (Shift.v).

    >>> policy, changes = extremal_shift("2*log(3)")
    >>> policy, decide_shift(policy, changes).total_variation
    ((Real('1/4'), Real('3/4')), Real('1/2'))
    """
    d = Real.of(width, "width")
    if d < 0:
        raise InputError("width", repr(d), "width >= 0")
    u = (d / 2).exp()
    return (1 / (1 + u), u / (1 + u)), (d, ZERO)


def score_changes(
    policy: Sequence[Any], features: Sequence[Sequence[Any]], drawn: Sequence[int], corrections: Sequence[Any], *, step_size: Any
) -> tuple[Real, ...]:
    """h_y = phi_y . Delta theta with Delta theta = (step_size/n) sum_i delta_i score_i, score_i = phi_{y_i} - E_pi phi.

    `policy` holds the frozen masses of a flat softmax policy, `features`[y] the row phi_y, `drawn` the positions y_i of the n samples,
    `corrections` the delta_i that late rewards add to their advantages. This is the first inner step, where every ratio is one. Since
    delta_i enters linearly, h does not depend on the advantages that were there before. Ours.

    >>> score_changes(["1/2", "1/2"], [[1], [0]], [0, 1], [1, -1], step_size=2)
    (Real('1'), Real('0'))
    """
    pi, phi, samples = _step(policy, features, drawn)
    delta = reals(corrections, "corrections", length=len(samples))
    return _score_changes(pi, phi, samples, delta, positive(step_size, "step_size", "step_size > 0"))


def decide_corrected_step(
    policy: Sequence[Any],
    features: Sequence[Sequence[Any]],
    drawn: Sequence[int],
    advantages: Sequence[Any],
    corrections: Sequence[Any],
    *,
    step_size: Any,
) -> CorrectedStep:
    """The per-step bound: TV(corrected, fast-only) <= tanh(osc(h)/4) for one softmax step with advantages A_i + delta_i against A_i alone.

    Both steps start from the frozen `policy` and use the same draws; then the corrected policy is the fast-only one reweighted by exp(h),
    h = `score_changes`. The coarse bound uses osc(h) <= (step_size/n) sum_i |delta_i| osc_y(phi_y . score_i). Compare the two policies
    with `decide_bounds` for the bounds from their KL. Theorem: softmax_step_TV (Shift.v). Arguments as for `score_changes`.

    >>> step = decide_corrected_step(["1/2", "1/2"], [["log(2)"], [0]], [0, 1], [0, 0], ["1/log(2)", "-1/log(2)"], step_size=4)
    >>> step.score_changes, step.shift.after, step.shift.total_variation, step.shift.holds
    ((Real('2*log(2)'), Real('0')), (Real('4/5'), Real('1/5')), Real('3/10'), True)
    """
    pi, phi, samples = _step(policy, features, drawn)
    fast = reals(advantages, "advantages", length=len(samples))
    delta = reals(corrections, "corrections", length=len(samples))
    rate = positive(step_size, "step_size", "step_size > 0")
    changes = _score_changes(pi, phi, samples, delta, rate)
    fast_only = shifted(pi, _score_changes(pi, phi, samples, fast, rate))
    reach = sum_of([abs(d) * oscillation(_score_changes(pi, phi, [y], [ONE], rate)) for d, y in zip(delta, samples, strict=True)])
    return CorrectedStep(decide_shift(fast_only, changes), changes, _tanh_of_a_quarter(reach / len(samples)))


def _score_changes(
    pi: Sequence[Real], phi: Sequence[Sequence[Real]], samples: Sequence[int], delta: Sequence[Real], rate: Real
) -> tuple[Real, ...]:
    width = range(len(phi[0]))
    mean = [sum_of([p * row[k] for p, row in zip(pi, phi, strict=True)]) for k in width]
    move = [rate * sum_of([d * (phi[y][k] - mean[k]) for d, y in zip(delta, samples, strict=True)]) / len(samples) for k in width]
    return tuple(sum_of([x * m for x, m in zip(row, move, strict=True)]) for row in phi)


def _step(policy: Any, features: Any, drawn: Any) -> tuple[list[Real], list[list[Real]], list[int]]:
    pi = positive_pmf(policy, "policy")
    rows = listed(features, "features")
    if len(rows) != len(pi):
        raise InputError("features", f"{len(rows)} rows", f"one row for each of the {len(pi)} responses")
    first = reals(rows[0], "features[0]")
    phi = [first, *(reals(row, f"features[{y}]", length=len(first)) for y, row in enumerate(rows[1:], start=1))]
    samples = listed(drawn, "drawn")
    if not samples:
        raise InputError("drawn", samples, "at least one sample")
    return pi, phi, [_position(y, f"drawn[{i}]", len(pi)) for i, y in enumerate(samples)]


def _position(value: Any, place: str, count: int) -> int:
    position = whole(value, place, least=0)
    if position >= count:
        raise InputError(place, position, f"the position of a response, 0 to {count - 1}")
    return position


def _changes(changes: Any, length: int | None) -> list[Real]:
    return reals(changes, "changes", length=length)


def _extremes(numbers: Sequence[Real]) -> tuple[Real, Real]:
    low = high = numbers[0]
    for x in numbers[1:]:
        low, high = least_of(low, x), greatest_of(high, x)
    return low, high


def _tanh_of_a_quarter(width: Real) -> Real:
    """tanh(width/4) = (u - 1)/(u + 1) with u = exp(width/2)."""
    u = (width / 2).exp()
    return (u - 1) / (u + 1)
