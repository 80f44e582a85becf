"""The expected first-step gradient of a group estimator, over all draws of a group, against the gradient of the expected reward."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from exactgrpo.errors import InputError, LimitError
from exactgrpo.field.inputs import positive, positive_pmf, reals, sum_of, tangent
from exactgrpo.numbers.inputs import whole
from exactgrpo.numbers.real import Real

MAX_GROUPS = 100_000


def reward_gradient(derivatives: Sequence[Any], rewards: Sequence[Any]) -> Real:
    """d/dt E_pi R = sum_y pi'(y) R(y), the gradient that a policy gradient estimates. Theorem: score_reward_is_gradient (FirstStep.v).

    >>> reward_gradient(["2/9", "-2/9"], [1, 0])
    Real('2/9')
    """
    numbers = reals(rewards, "rewards")
    return sum_of([d * r for d, r in zip(tangent(derivatives, "derivatives", length=len(numbers)), numbers, strict=True)])


def expected_group_gradient(
    policy: Sequence[Any],
    derivatives: Sequence[Any],
    rewards: Sequence[Any],
    *,
    group_size: int,
    advantages: Callable[[list[Real]], Iterable[Real]],
) -> Real:
    """E (1/G) sum_i A_i d log pi(y_i)/dt over independent y_1..y_G ~ pi, with A = `advantages` of the drawn rewards.

    At the first inner step every ratio is one, so this is the expected gradient of the clipped objective with beta = 0. Groups are
    enumerated as multisets with multinomial weights; LimitError beyond 100,000 of them. Theorems: first_step_gradient (FirstStep.v),
    group_expectation_by_multisets (Multinomial.v).

    >>> from exactgrpo import advantages
    >>> from exactgrpo.field.advantages import dr_grpo
    >>> policy, slopes = ["2/3", "1/3"], ["2/9", "-2/9"]
    >>> [expected_group_gradient(policy, slopes, [1, 0], group_size=2, advantages=a) for a in (dr_grpo, advantages)]
    [Real('1/9'), Real('2/9')]
    """
    pi = positive_pmf(policy, "policy")
    slopes = tangent(derivatives, "derivatives", length=len(pi))
    numbers = reals(rewards, "rewards", length=len(pi))
    size = whole(group_size, "group_size", least=1)
    if math.comb(len(pi) + size - 1, size) > MAX_GROUPS:
        raise LimitError("group_size", size, f"at most {MAX_GROUPS} groups up to order")
    scores = [d / p for d, p in zip(slopes, pi, strict=True)]
    total = Real.of(0)
    for group in itertools.combinations_with_replacement(range(len(pi)), size):
        weight = Real.of(math.factorial(size))
        for y in set(group):
            weight = weight * pi[y] ** group.count(y) / math.factorial(group.count(y))
        given = list(advantages([numbers[y] for y in group]))
        total = total + weight * sum_of([a * scores[y] for a, y in zip(given, group, strict=True)]) / size
    return total


def binary_factor(success: Any, group_size: int) -> Real:
    """c_G(p) = E sqrt(k (G - k))/(G p (1 - p)) with k ~ Binomial(G, p), p the probability of reward 1, 0 < p < 1.

    With rewards 0 and 1, one prompt and population-standardised advantages, the expected first-step gradient is c_G(p) times the
    gradient of p. Theorems: binary_expected_gradient (FirstStep.v), cG_closed (BinaryFactor.v).

    >>> binary_factor("1/3", 2), binary_factor("1/3", 3)
    (Real('1'), Real('sqrt(2)'))
    """
    p = positive(success, "success", "0 < p < 1")
    if p >= 1:
        raise InputError("success", repr(p), "0 < p < 1")
    size = whole(group_size, "group_size", least=1)
    terms = [math.comb(size, k) * p**k * (1 - p) ** (size - k) * Real.of(k * (size - k)).sqrt() for k in range(size + 1)]
    return sum_of(terms) / (size * p * (1 - p))
