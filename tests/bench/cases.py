"""The problems that are measured, as plain exact data: baselines read the data, exactgrpo reads the `Problem` made of it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from exactgrpo.numbers.arithmetic import Column
from exactgrpo.numbers.text import parse_polynomial
from exactgrpo.policies.family import PolicyFamily
from exactgrpo.policies.rational import Rational
from exactgrpo.policies.softmax import Softmax
from exactgrpo.policies.terms import Polynomial
from exactgrpo.update.draws import Tape
from exactgrpo.update.problem import Problem, Prompt
from exactgrpo.update.reference import ReferenceMasses

Table = list[list[Fraction]]


@dataclass(frozen=True)
class Term:
    """The draws of one response in one group: how often, and R - mean with the variance of the group."""

    prompt: int
    response: int
    count: int
    deviation: Fraction
    variance: Fraction


@dataclass(frozen=True, kw_only=True)
class Case:
    """Data of an update; draws[t][prompt][sample] is a position in the support."""

    rewards: Table
    theta0: list[Fraction]
    draws: list[list[list[int]]]
    inner_steps: int
    step_size: Fraction
    beta: Fraction
    reference: Table
    epsilon: Fraction = Fraction(1, 5)

    @property
    def prompts(self) -> int:
        return len(self.rewards)

    @property
    def responses(self) -> int:
        return len(self.rewards[0])

    @property
    def group_size(self) -> int:
        return len(self.draws[0][0])

    def terms(self, t: int = 0) -> list[Term]:
        """What a hand-written program works out before its inner steps, from the rewards of the drawn responses."""
        terms = []
        for q, positions in enumerate(self.draws[t]):
            drawn = [self.rewards[q][y] for y in positions]
            mean = sum(drawn, Fraction(0)) / len(drawn)
            variance = sum(((r - mean) ** 2 for r in drawn), Fraction(0)) / len(drawn)
            for y in dict.fromkeys(positions):
                if self.rewards[q][y] != mean:
                    terms.append(Term(q, y, positions.count(y), self.rewards[q][y] - mean, variance))
        return terms

    @property
    def family(self) -> PolicyFamily:
        raise NotImplementedError

    @cached_property
    def problem(self) -> Problem:
        names = [f"y{j}" for j in range(self.responses)]
        prompts = [Prompt(f"q{q}", tuple(names), tuple(r)) for q, r in enumerate(self.rewards)]
        return Problem.of(
            prompts=prompts,
            family=self.family,
            theta0=self.theta0,
            group_size=self.group_size,
            outer_iterations=len(self.draws),
            inner_steps=self.inner_steps,
            epsilon=self.epsilon,
            beta=self.beta,
            step_size=self.step_size,
            draws=Tape.of([[[names[y] for y in group] for group in outer] for outer in self.draws], prompts),
            reference=ReferenceMasses(Column(x for row in self.reference for x in row)),
        )


@dataclass(frozen=True, kw_only=True)
class SoftmaxCase(Case):
    features: list[Table]

    @cached_property
    def family(self) -> Softmax:
        return Softmax.of(self.features, size=len(self.theta0))


@dataclass(frozen=True, kw_only=True)
class RationalCase(Case):
    """Weights coefficient * prod theta_k^power_k, one monomial for each response."""

    coefficients: Table
    powers: list[list[list[int]]]

    @cached_property
    def family(self) -> Rational:
        weights: list[list[Polynomial]] = [
            [{tuple(power): c} for c, power in zip(row, powers, strict=True)]
            for row, powers in zip(self.coefficients, self.powers, strict=True)
        ]
        return Rational.of(weights, size=len(self.theta0))


def _rewards_and_reference(r: random.Random, prompts: int, responses: int) -> tuple[Table, Table]:
    rewards, reference = [], []
    for _ in range(prompts):
        rewards.append([Fraction(r.randint(0, 1)) for _ in range(responses)])
        masses = [r.randint(1, 9) for _ in range(responses)]
        reference.append([Fraction(m, sum(masses)) for m in masses])
    return rewards, reference


def _draws(r: random.Random, outer: int, rewards: Table, group_size: int) -> list[list[list[int]]]:
    return [[[r.randrange(len(row)) for _ in range(group_size)] for row in rewards] for _ in range(outer)]


def softmax_case(
    prompts: int, responses: int, group_size: int, parameters: int, *, outer: int = 1, inner: int = 4, seed: int = 1
) -> SoftmaxCase:
    """Softmax with features in halves, binary rewards and beta = 1/10."""
    r = random.Random(seed)
    rewards, reference = _rewards_and_reference(r, prompts, responses)
    return SoftmaxCase(
        rewards=rewards,
        reference=reference,
        features=[[[Fraction(r.randint(-2, 2), 2) for _ in range(parameters)] for _ in range(responses)] for _ in range(prompts)],
        theta0=[Fraction(r.randint(-3, 3), 6) for _ in range(parameters)],
        draws=_draws(r, outer, rewards, group_size),
        inner_steps=inner,
        step_size=Fraction(1, 3),
        beta=Fraction(1, 10),
    )


def rational_case(prompts: int, responses: int, group_size: int, parameters: int, *, inner: int = 2, seed: int = 9) -> RationalCase:
    """Monomial weights with binary rewards and beta = 0; at 2, 8, 8, 4 the first step brings in sqrt(7) and sqrt(15), the second clips."""
    r = random.Random(seed)
    rewards, reference = _rewards_and_reference(r, prompts, responses)
    return RationalCase(
        rewards=rewards,
        reference=reference,
        coefficients=[[Fraction(r.randint(1, 5)) for _ in range(responses)] for _ in range(prompts)],
        powers=[[[r.choice([0, 0, 1, 2]) for _ in range(parameters)] for _ in range(responses)] for _ in range(prompts)],
        theta0=[Fraction(r.randint(2, 6), 4) for _ in range(parameters)],
        draws=_draws(r, 1, rewards, group_size),
        inner_steps=inner,
        step_size=Fraction(1, 8),
        beta=Fraction(0),
    )


def kink_problem(*, epsilon: Fraction = Fraction(1, 4), step_size: str = "1/16", group: Sequence[str] = ("a", "b")) -> Problem:
    """pi = (t, 1 - t), theta0 = 1/2, R = (1, 0), eta = 1/16: the first step goes to 5/8, where rho = (5/4, 3/4) = 1 +- 1/4.

    With the group (a, a, b) the advantages are sqrt(2)/2 and -sqrt(2), so that eta = 3 sqrt(2)/64 leads to 5/8 and other rational
    multiples of sqrt(2) to irrational parameters.
    """
    prompts = [Prompt("q", ("a", "b"), (Fraction(1), Fraction(0)))]
    return Problem.of(
        prompts=prompts,
        family=Rational.of([[parse_polynomial(w, ["t"]) for w in ("t", "1-t")]], size=1),
        theta0=["1/2"],
        group_size=len(group),
        outer_iterations=1,
        inner_steps=3,
        epsilon=epsilon,
        beta=0,
        step_size=step_size,
        draws=Tape.of([[list(group)]], prompts),
    )
