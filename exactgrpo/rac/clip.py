"""Clipped importance ratios: when their mean is one, what they do to a late residual, and which gradient an injected residual has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from exactgrpo.errors import InputError
from exactgrpo.field.inputs import ZERO, greatest_of, positive, positive_pmf, reals, sum_of, tangent
from exactgrpo.field.ratios import truncated_ratio
from exactgrpo.numbers.inputs import listed
from exactgrpo.numbers.real import Real

BEHAVIOUR, TARGET = "behaviour", "target"


@dataclass(frozen=True, slots=True)
class ClippedRatio:
    """What a clip does to the ratio of one pair of policies.

    `mean` is E_mu clip(pi/mu), summed directly; `lost` is sum_y (pi - ceiling mu)_+, `added` is sum_y (floor mu - pi)_+ (0 without a
    floor), so that mean = 1 - lost + added. `acts` says whether the clip changes the ratio of some response, `is_unbiased` whether the mean
    is one.
    """

    mean: Real
    lost: Real
    added: Real
    acts: bool
    is_unbiased: bool


def clipped_ratio(rho: Any, *, ceiling: Any = None, floor: Any = None) -> Real:
    """min(ceiling, rho), or min(ceiling, max(floor, rho)) with a floor; rho > 0, 0 < floor <= ceiling. A bound of None does not act.

    Source: Espeholt et al., IMPALA (2018), section 4.1, for the one-sided clip; Schulman et al., Proximal policy optimization algorithms
    (2017), equation 7, for the two-sided one.

    >>> [clipped_ratio(rho, ceiling="6/5", floor="4/5") for rho in ("1/2", 1, 2)]
    [Real('4/5'), Real('1'), Real('6/5')]
    """
    low, high = clip_range(ceiling, floor)
    ratio = Real.of(rho, "rho")
    if ratio < 0:
        raise InputError("rho", repr(ratio), "a ratio is not negative")
    return _clipped(ratio, low, high)


def clip_range(ceiling: Any, floor: Any) -> tuple[Real | None, Real | None]:
    """The floor and the ceiling of a clip, checked: positive, and not empty.

    >>> clip_range(1, 2)
    Traceback (most recent call last):
    exactgrpo.errors.InputError: floor: "Real('2')": at most the ceiling Real('1'): a clip is not empty
    """
    low = None if floor is None else positive(floor, "floor", "a floor is positive, or None")
    high = None if ceiling is None else positive(ceiling, "ceiling", "a ceiling is positive, or None")
    if low is not None and high is not None and low > high:
        raise InputError("floor", repr(low), f"at most the ceiling {high!r}: a clip is not empty")
    return low, high


def clipped_ratio_mean(behaviour: Sequence[Any], target: Sequence[Any], *, ceiling: Any = None, floor: Any = None) -> Real:
    """E_mu clip(pi/mu) by direct summation, mu = `behaviour` and pi = `target`, positive probability mass functions.

    The target is fixed given the history before the draw; if the draw itself moved it, this is `moved_policy_ratio_mean`. Ours.
    UndecidedError only if irrational masses leave a comparison with the clip undecided.

    >>> clipped_ratio_mean(["1/2", "1/2"], ["3/4", "1/4"], ceiling=1)
    Real('3/4')
    """
    return clipped_residual_mean(behaviour, target, [1] * len(listed(behaviour, BEHAVIOUR)), ceiling=ceiling, floor=floor)


def clipped_residual_mean(
    behaviour: Sequence[Any], target: Sequence[Any], residuals: Sequence[Any], *, ceiling: Any = None, floor: Any = None
) -> Real:
    """E_mu[clip(pi/mu) X]: what a residual X(y), one for each response, contributes on average.

    Without a clip it is E_pi X. The bias identity of Retroactive Advantage Correction asks for E_mu X instead, which is another number
    unless ratio and residual are uncorrelated. Theorem: truncation_biases (Premise.v): with a clip it need be neither.

    >>> half, target, residuals = ["1/2", "1/2"], ["3/4", "1/4"], [1, -1]
    >>> [clipped_residual_mean(half, target, residuals, ceiling=c) for c in (1, None)]
    [Real('1/4'), Real('1/2')]
    """
    mu, pi = _laws(behaviour, target)
    x, (low, high) = reals(residuals, "residuals", length=len(mu)), clip_range(ceiling, floor)
    return sum_of([m * _clipped(p / m, low, high) * r for m, p, r in zip(mu, pi, x, strict=True)])


def decide_clip(behaviour: Sequence[Any], target: Sequence[Any], *, ceiling: Any = None, floor: Any = None) -> ClippedRatio:
    """Whether the clipped ratio has mean one, whether the clip acts at all, and the masses that it takes away and adds.

    With a ceiling alone the mean is one exactly when the clip never acts, and at ceiling 1 it is 1 - TV. With a floor too, what is added
    below may make up for what is lost above. Theorems: truncated_ratio_mean, truncated_ratio_mean_one_iff, truncated_at_one, and for
    the clip to [1 - e, 1 + e] clip_mean, clip_mean_one_iff, clip_mean_one_biting (Premise.v). Arguments as for `clipped_ratio_mean`.

    >>> one_sided = decide_clip(["1/2", "1/2"], ["3/4", "1/4"], ceiling=1)
    >>> one_sided.mean, one_sided.acts, one_sided.is_unbiased
    (Real('3/4'), True, False)
    >>> two_sided = decide_clip(["1/2", "1/2"], ["3/4", "1/4"], ceiling="6/5", floor="4/5")
    >>> two_sided.mean, two_sided.acts, two_sided.is_unbiased, two_sided.lost, two_sided.added
    (Real('1'), True, True, Real('3/20'), Real('3/20'))
    """
    mu, pi = _laws(behaviour, target)
    low, high = clip_range(ceiling, floor)
    mean = clipped_ratio_mean(mu, pi, ceiling=high, floor=low)
    lost, added = ZERO, ZERO
    if high is not None:
        lost = sum_of([greatest_of(ZERO, p - high * m) for m, p in zip(mu, pi, strict=True)])
    if low is not None:
        added = sum_of([greatest_of(ZERO, low * m - p) for m, p in zip(mu, pi, strict=True)])
    return ClippedRatio(mean, lost, added, lost > 0 or added > 0, mean == 1)


def moved_policy_ratio_mean(behaviour: Sequence[Any], moved: Sequence[Sequence[Any]], *, ceiling: Any = None, floor: Any = None) -> Real:
    """sum_y mu(y) clip(pi_y(y)/mu(y)), where `moved`[y] = pi_y is the target policy at arrival if y was drawn.

    A rollout that was trained on before its late reward arrives has moved the policy by itself, and the ratio then need not have mean one,
    clipped or not. Theorem: moved_policy_ratio (Premise.v). Arguments as for `clipped_ratio_mean`.

    >>> moved_policy_ratio_mean(["1/2", "1/2"], [["3/4", "1/4"], ["1/4", "3/4"]])
    Real('3/2')
    """
    mu = positive_pmf(behaviour, BEHAVIOUR)
    laws = listed(moved, "moved", f"one policy for each of the {len(mu)} responses")
    if len(laws) != len(mu):
        raise InputError("moved", f"{len(laws)} policies", f"one policy for each of the {len(mu)} responses")
    low, high = clip_range(ceiling, floor)
    after = [positive_pmf(law, f"moved[{y}]", length=len(mu)) for y, law in enumerate(laws)]
    return sum_of([m * _clipped(after[y][y] / m, low, high) for y, m in enumerate(mu)])


def truncated_policy(behaviour: Sequence[Any], target: Sequence[Any], *, ceiling: Any) -> tuple[Real, ...]:
    """min(ceiling mu, pi), normalised: the policy whose values V-trace with this rho_bar estimates.

    Source: Espeholt et al., IMPALA (2018), equation 3. Arguments as for `clipped_ratio_mean`.

    >>> truncated_policy(["1/4", "3/4"], ["3/4", "1/4"], ceiling=1)
    (Real('1/2'), Real('1/2'))
    """
    mu, pi = _laws(behaviour, target)
    weights = [m * truncated_ratio(p / m, ceiling=ceiling) for m, p in zip(mu, pi, strict=True)]
    return tuple(w / sum_of(weights) for w in weights)


def injected_gradient(
    behaviour: Sequence[Any],
    target: Sequence[Any],
    derivatives: Sequence[Any],
    residuals: Sequence[Any],
    *,
    ceiling: Any = None,
    floor: Any = None,
) -> Real:
    """E_mu[clip(pi/mu) X d log pi/dt]: the expected gradient of a residual X(y) injected into the advantage of its own rollout y.

    `derivatives` holds d pi(y)/dt, which sum to zero. Without a clip it is d/dt E_pi X, the gradient that was missing. Theorems:
    change_of_measure (KL.v), score_reward_is_gradient (FirstStep.v). Other arguments as for `clipped_residual_mean`.

    >>> half, target, slopes = ["1/2", "1/2"], ["3/4", "1/4"], ["3/16", "-3/16"]
    >>> injected_gradient(half, target, slopes, [1, -1]), injected_gradient(half, target, slopes, [1, -1], ceiling=1)
    (Real('3/8'), Real('5/16'))
    """
    mu, pi = _laws(behaviour, target)
    slopes, x = tangent(derivatives, "derivatives", length=len(mu)), reals(residuals, "residuals", length=len(mu))
    return clipped_residual_mean(mu, pi, [d / p * r for d, p, r in zip(slopes, pi, x, strict=True)], ceiling=ceiling, floor=floor)


def injected_elsewhere_gradient(
    behaviour: Sequence[Any],
    target: Sequence[Any],
    derivatives: Sequence[Any],
    *,
    residual: Any = 1,
    ceiling: Any = None,
    floor: Any = None,
) -> Real:
    """X E_mu[clip(pi/mu) d log pi/dt]: the expected gradient of a residual X injected into the advantage of another rollout.

    That rollout draws from `behaviour` given everything before, the residual included. Without a clip that acts it is zero, whatever the
    residual: the injection corrects nothing on average. With one it is not even zero. Theorem: other_rollout_zero (Premise.v).

    >>> half, target, slopes = ["1/2", "1/2"], ["3/4", "1/4"], ["3/16", "-3/16"]
    >>> [injected_elsewhere_gradient(half, target, slopes, ceiling=c) for c in (None, 1)]
    [Real('0'), Real('-1/16')]
    """
    x = Real.of(residual, "residual")
    return injected_gradient(behaviour, target, derivatives, [x] * len(listed(behaviour, BEHAVIOUR)), ceiling=ceiling, floor=floor)


def unweighted_elsewhere_gradient(
    probabilities: Sequence[Any],
    residuals: Sequence[Any],
    behaviours: Sequence[Sequence[Any]],
    target: Sequence[Any],
    derivatives: Sequence[Any],
) -> Real:
    """sum_h P(h) X(h) E_{mu_h}[d log pi/dt]: the same without a ratio, over histories h that may tell the residual.

    `behaviours`[h] is the law of the other rollout given the history h, with probability P(h) > 0 and residual X(h). It is zero if each is
    the `target` (other_rollout_zero, Premise.v); that the behaviours agree with the target only on average over h is not enough.

    >>> half, slopes = ["1/2", "1/2"], ["1/4", "-1/4"]
    >>> unweighted_elsewhere_gradient(half, [1, -1], [half, half], half, slopes)
    Real('0')
    >>> unweighted_elsewhere_gradient(half, [1, -1], [["3/4", "1/4"], ["1/4", "3/4"]], half, slopes)
    Real('1/4')
    """
    chances, pi = positive_pmf(probabilities, "probabilities"), positive_pmf(target, TARGET)
    x, slopes = reals(residuals, "residuals", length=len(chances)), tangent(derivatives, "derivatives", length=len(pi))
    laws = listed(behaviours, "behaviours")
    if len(laws) != len(chances):
        raise InputError("behaviours", f"{len(laws)} policies", f"one policy for each of the {len(chances)} histories")
    total = ZERO
    for h, (chance, residual) in enumerate(zip(chances, x, strict=True)):
        mu = positive_pmf(laws[h], f"behaviours[{h}]", length=len(pi))
        total = total + chance * residual * sum_of([m * d / p for m, d, p in zip(mu, slopes, pi, strict=True)])
    return total


def _clipped(rho: Real, low: Real | None, high: Real | None) -> Real:
    raised = rho if low is None else greatest_of(low, rho)
    return raised if high is None else truncated_ratio(raised, ceiling=high)


def _laws(behaviour: Any, target: Any) -> tuple[list[Real], list[Real]]:
    mu = positive_pmf(behaviour, BEHAVIOUR)
    return mu, positive_pmf(target, TARGET, length=len(mu))
