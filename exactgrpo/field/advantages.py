"""The field's other advantages of one group: leave-one-out, without a standard deviation, with divisor G - 1, with an epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exactgrpo.errors import InputError, RewardError
from exactgrpo.field.inputs import ZERO, reals, sum_of
from exactgrpo.numbers.real import Real
from exactgrpo.update.groups import population_std


def dr_grpo(rewards: Sequence[Any]) -> tuple[Real, ...]:
    """A_i = R_i - mean(R): centred, not divided by a standard deviation.

    Source: Liu et al., Understanding R1-Zero-like training (2025), section 3 (Dr. GRPO).

    >>> dr_grpo([1, 0, 0])
    (Real('2/3'), Real('-1/3'), Real('-1/3'))
    """
    group = _group(rewards, 1)
    mean = sum_of(group) / len(group)
    return tuple(r - mean for r in group)


def rloo(rewards: Sequence[Any]) -> tuple[Real, ...]:
    """A_i = R_i - (1/(G - 1)) sum_{j != i} R_j: each sample against the mean of the others; G >= 2.

    It equals G/(G - 1) times the centred reward. Source: Ahmadian et al., Back to basics: revisiting REINFORCE-style optimization (2024).

    >>> rloo([1, 0, 0])
    (Real('1'), Real('-1/2'), Real('-1/2'))
    """
    group = _group(rewards, 2)
    total = sum_of(group)
    return tuple(r - (total - r) / (len(group) - 1) for r in group)


def sample_std(rewards: Sequence[Any]) -> Real:
    """sqrt((1/(G - 1)) sum_i (R_i - mean)^2), the divisor of most implementations; G >= 2.

    >>> sample_std([1, 0])
    Real('sqrt(2)/2')
    """
    group = _group(rewards, 2)
    return (sum_of([a * a for a in dr_grpo(group)]) / (len(group) - 1)).sqrt()


def sample_normalised(rewards: Sequence[Any]) -> tuple[Real, ...]:
    """A_i = (R_i - mean)/sample_std, all zero where all rewards are equal: sqrt((G - 1)/G) times the population advantages.

    UndecidedError if the equality of irrational rewards cannot be decided. Source: the default of TRL and verl.

    >>> sample_normalised([1, 0])
    (Real('sqrt(2)/2'), Real('-sqrt(2)/2'))
    """
    std = sample_std(rewards)
    return tuple(ZERO if std == 0 else a / std for a in dr_grpo(rewards))


def epsilon_normalised(rewards: Sequence[Any], *, epsilon: Any, divisor: str = "sample") -> tuple[Real, ...]:
    """A_i = (R_i - mean)/(std + epsilon), epsilon > 0; `divisor` is "sample" (G - 1) or "population" (G).

    The epsilon avoids a division by zero and breaks A(c R) = A(R). Source: the code of TRL (1e-4) and verl (1e-6).

    >>> epsilon_normalised(["1/10000", 0], epsilon="1/10000", divisor="population")[0]
    Real('1/3')
    """
    small = Real.of(epsilon, "epsilon")
    if small <= 0:
        raise InputError("epsilon", repr(small), "epsilon > 0")
    if divisor not in ("sample", "population"):
        raise InputError("divisor", divisor, "sample or population")
    centred = dr_grpo(rewards)
    std = sample_std(rewards) if divisor == "sample" else population_std(rewards)
    return tuple(a / (std + small) for a in centred)


def leave_one_out_std(rewards: Sequence[Any]) -> tuple[Real, ...]:
    """For each sample the standard deviation of the G - 1 others (divisor G - 2); G >= 3. Zero iff the others are all equal.

    Source: the leave-one-out normalisation of NeMo-RL. UndecidedError as for `sample_normalised`.

    >>> leave_one_out_std([0, "7/20", "7/20", "7/20"])[0]
    Real('0')
    """
    group = _group(rewards, 3)
    return tuple(sample_std(group[:i] + group[i + 1 :]) for i in range(len(group)))


def leave_one_out_normalised(rewards: Sequence[Any]) -> tuple[Real, ...]:
    """A_i = (R_i - mean of the others)/(std of the others), and zero where that std is zero; G >= 3.

    >>> leave_one_out_normalised([0, 1, 3])
    (Real('-sqrt(2)'), Real('-sqrt(2)/6'), Real('5*sqrt(2)/2'))
    """
    group = _group(rewards, 3)
    return tuple(ZERO if s == 0 else a / s for a, s in zip(rloo(group), leave_one_out_std(group), strict=True))


def _group(rewards: Any, least: int) -> list[Real]:
    try:
        return reals(rewards, "rewards", least=least)
    except InputError as error:
        if type(error) is not InputError:
            raise
        raise RewardError(error.place, error.value, error.rule) from None
