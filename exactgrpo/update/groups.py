"""Group statistics: mean, population standard deviation and advantages, exactly; equal draws of a group are coalesced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from exactgrpo.errors import RewardError
from exactgrpo.numbers.arithmetic import Arithmetic, Column, Exact, index
from exactgrpo.numbers.decision import Proof, Sign, decide_sign
from exactgrpo.numbers.inputs import exact_list
from exactgrpo.numbers.real import Real
from exactgrpo.numbers.symbols import node


@dataclass(frozen=True, slots=True)
class Statistics:
    """Of one group: mean, population variance (divisor G), and R_i - mean with its sign and the proof of that for each sample."""

    mean: Exact
    variance: Exact
    deviations: tuple[Exact, ...]
    signs: tuple[int, ...]
    proofs: tuple[Proof, ...]

    @classmethod
    def of(cls, rewards: Sequence[Exact]) -> Statistics:
        """s = 0 iff all rewards are equal; that is decided exactly, on the rewards themselves."""
        size = len(rewards)
        if all(r == rewards[0] for r in rewards):  # equal fractions, or the same expression
            kind = "rational" if isinstance(rewards[0], Fraction) else "identity"
            return cls(rewards[0], Fraction(0), (Fraction(0),) * size, (0,) * size, (Proof(kind, None, "all rewards are equal"),) * size)
        mean = sum(rewards, Fraction(0)) / size
        by_reward: dict[Any, tuple[Exact, Sign]] = {}
        for r in rewards:
            if r not in by_reward:
                deviation = r - mean
                sign = decide_sign(deviation, question="reward - mean of its group")
                by_reward[r] = (deviation if sign.value else Fraction(0), sign)
        deviations = tuple(by_reward[r][0] for r in rewards)
        signs = [by_reward[r][1] for r in rewards]
        variance = sum((d * d for d in deviations), Fraction(0)) / size
        return cls(mean, variance, deviations, tuple(s.value for s in signs), tuple(s.proof for s in signs))


def _statistics(rewards: Sequence[Any]) -> Statistics:
    group = exact_list(rewards, "rewards", error=RewardError)
    if not group:
        raise RewardError("rewards", [], "a group has at least one reward")
    return Statistics.of(group)


def population_std(rewards: Sequence[Any]) -> Real:
    """s = sqrt((1/G) sum_i (R_i - mean)^2), the divisor G of the finite-budget group-relative policy update.

    Theorem: std_zero_iff (Advantages.v).

    >>> population_std([0, 0, 1, 1])
    Real('1/2')
    """
    return Real.of(node(_statistics(rewards).variance).sqrt())


def advantages(rewards: Sequence[Any]) -> tuple[Real, ...]:
    """A_i = (R_i - mean)/s with the population standard deviation s; all zero where s = 0, and no epsilon anywhere.

    So sum A = 0, sum A^2 = G or 0, and A(c R) = A(R) for c > 0. Rewards are exact numbers (int, Fraction, Decimal, text,
    Real); a float raises InexactInputError. UndecidedError if the equality of irrational rewards cannot be decided.

    >>> advantages(["1/10000", 0])
    (Real('1'), Real('-1'))
    >>> advantages(["7/20"] * 7)[0]
    Real('0')
    """
    group = _statistics(rewards)
    if not any(group.signs):
        return tuple(Real.of(node(0)) for _ in rewards)
    std = node(group.variance).sqrt()
    return tuple(Real.of(node(d) / std) for d in group.deviations)


@dataclass(frozen=True, eq=False)
class Groups:
    """All groups of one outer iteration. Samples with A = 0 are left out; equal responses of a prompt are one *term*.

    For each term: `drawn` its flat position, `share` the number of its samples times R - mean, over G M; `group` and
    `variance` its group's variance; `side` the sign of A; `bound` 1 + eps_high for A > 0 and 1 - eps_low for A < 0, the only
    place where it can have a kink; `other` the other bound, where a smooth tie can be. `term_of[prompt][sample]` is the term
    of a sample, or -1 for zero advantage.
    """

    draws: tuple[tuple[int, ...], ...]
    drawn: npt.NDArray[np.intp]
    share: Column
    group: npt.NDArray[np.intp]
    variance: Column
    side: npt.NDArray[np.int8]
    bound: Column
    other: Column
    term_of: tuple[tuple[int, ...], ...]

    @classmethod
    def of(
        cls, draws: tuple[tuple[int, ...], ...], rewards: Sequence[Exact], start: Sequence[int], epsilon_low: Exact, epsilon_high: Exact
    ) -> Groups:
        """draws[prompt] holds positions in the prompt's support; rewards are flat, prompt q from start[q] on."""
        drawn: list[int] = []
        share: list[Exact] = []
        group: list[int] = []
        side: list[int] = []
        variance: list[Exact] = []
        term_of = []
        prompts = len(draws)
        for first, samples in zip(start, draws, strict=False):
            statistics = Statistics.of([rewards[first + y] for y in samples])
            term: dict[int, int] = {}
            for y, deviation, sign in zip(samples, statistics.deviations, statistics.signs, strict=True):
                if sign and y not in term:
                    term[y] = len(drawn)
                    drawn.append(first + y)
                    share.append(deviation * Fraction(samples.count(y), len(samples) * prompts))
                    group.append(len(variance))
                    side.append(sign)
            term_of.append(tuple(term.get(y, -1) for y in samples))
            if term:
                variance.append(statistics.variance)
        high, low = 1 + epsilon_high, 1 - epsilon_low
        return cls(
            draws,
            index(drawn),
            Column(share),
            index(group),
            Column(variance),
            np.array(side, np.int8),
            Column(high if s > 0 else low for s in side),
            Column(low if s > 0 else high for s in side),
            tuple(term_of),
        )

    def weights(self, arithmetic: Arithmetic) -> Any:
        """(number of samples) A / (G M) of each term."""
        inverse_std = 1 / arithmetic.root(arithmetic.exact(self.variance), 2)
        return arithmetic.exact(self.share) * inverse_std[self.group]
