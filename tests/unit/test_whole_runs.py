"""Whole runs finish, prove all their comparisons, and agree to 30 certified digits with the update written out in mpmath.

The second route below shares no code with the package: it samples from SHA-256 by itself, works at 200 digits, and writes the
gradient as a sum of score functions.
"""

from __future__ import annotations

import hashlib
import random
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from mpmath import exp, log, mp, mpf, sqrt, workdps

import exactgrpo
from exactgrpo.numbers.arithmetic import Column
from exactgrpo.policies.rational import Rational
from exactgrpo.policies.softmax import Softmax
from exactgrpo.spec import load_problem
from exactgrpo.update.draws import Seed
from exactgrpo.update.problem import Problem, Prompt
from exactgrpo.update.reference import ReferenceMasses
from exactgrpo.update.run import Run, run

LIMIT = 60
"""Seconds that a run with 30 certified digits may take.

Seen on two shared cores, run and second route: rational 8 x 16, groups of 8, 8 parameters, 4 steps: 0.1 and 0.2; softmax
16 x 32, groups of 16, 8 parameters, 8 steps: 0.15 and 1.6; softmax 64 x 64, groups of 16, 16 parameters, 4 steps: 1.2 and 7;
tokens, 2 x 341, 6 steps: 0.15 and 0.7; 80 steps of two prompts: at most 0.15 and 0.15.
"""

EXAMPLES = Path(exactgrpo.__file__).parent / "examples"
DIGITS = 30
PROOFS = {"rational", "enclosure", "identity", "separation bound"}

Vector = list[Any]
Masses = Callable[[Vector], list[tuple[Vector, list[Vector]]]]
"""From theta, for each prompt: the masses, and the rows of grad log mass."""


# ---- the second route


@dataclass
class Update:
    """The update in floating point of many digits. For each step, `sides` notes which samples are clipped, `values` the objective."""

    masses: Masses
    rewards: list[list[Fraction]]
    reference: list[Vector]
    theta: Vector
    group_size: int
    epsilon: Fraction
    beta: Fraction
    step_size: Fraction
    seed: int
    sides: list[list[bool]] = field(default_factory=list)
    values: Vector = field(default_factory=list)

    def run(self, outer: int, inner: int) -> Vector:
        for t in range(outer):
            old = [p for p, _ in self.masses(self.theta)]
            draws = [[self.draw(p, t, q, i) for i in range(self.group_size)] for q, p in enumerate(old)]
            advantages = [self.advantages([r[y] for y in ys]) for r, ys in zip(self.rewards, draws, strict=True)]
            for _ in range(inner):
                slope = self.gradient(old, draws, advantages)
                self.theta = [x + number(self.step_size) * g for x, g in zip(self.theta, slope, strict=True)]
        return self.theta

    def draw(self, masses: Vector, t: int, prompt: int, sample: int) -> int:
        bits = hashlib.sha256(f"{self.seed},{t},{prompt},{sample},0".encode()).digest()
        u, cumulative = mpf(int.from_bytes(bits, "big")) / 2**256, mpf(0)
        for y, p in enumerate(masses[:-1]):
            cumulative += p
            if u < cumulative:
                return y
        return len(masses) - 1

    def advantages(self, rewards: list[Fraction]) -> Vector:
        mean = sum(rewards) / Fraction(len(rewards))
        s = sqrt(number(sum((r - mean) ** 2 for r in rewards) / len(rewards)))
        return [number(r - mean) / s if s else mpf(0) for r in rewards]

    def gradient(self, old: list[Vector], draws: list[list[int]], advantages: list[Vector]) -> Vector:
        now, total, step, value = self.masses(self.theta), [mpf(0)] * len(self.theta), [], mpf(0)
        high, low = number(1 + self.epsilon), number(1 - self.epsilon)
        for (p, score), before, ys, group, ref in zip(now, old, draws, advantages, self.reference, strict=True):
            weight = [-number(self.beta) * x * log(x / r) if self.beta else mpf(0) for x, r in zip(p, ref, strict=True)]
            value += sum(weight) / len(now)
            for y, a in zip(ys, group, strict=True):
                rho = p[y] / before[y]
                is_clipped = (a > 0 and rho > high) or (a < 0 and rho < low)
                step.append(bool(is_clipped))
                value += min(rho * a, max(low, min(rho, high)) * a) / len(ys) / len(now)
                if not is_clipped:
                    weight[y] += a * rho / len(ys)
            for w, row in zip(weight, score, strict=True):
                if w:
                    total = [x + w * s / len(now) for x, s in zip(total, row, strict=True)]
        self.sides.append(step)
        self.values.append(value)
        return total


def number(x: Fraction | int) -> Any:
    x = Fraction(x)
    return mpf(x.numerator) / x.denominator


def fraction(x: Any) -> Fraction:
    with workdps(200):
        return Fraction(int(mp.floor(x * mpf(10) ** 150)), 10**150)


def softmax_masses(features: Sequence[Sequence[Sequence[Fraction]]]) -> Masses:
    phi = [[[number(x) for x in row] for row in matrix] for matrix in features]

    def masses(theta: Vector) -> list[tuple[Vector, list[Vector]]]:
        out = []
        for matrix in phi:
            weights = [exp(sum(x * y for x, y in zip(row, theta, strict=True))) for row in matrix]
            p = [w / sum(weights) for w in weights]
            mean = [sum(m * x for m, x in zip(p, column, strict=True)) for column in zip(*matrix, strict=True)]
            out.append((p, [[x - m for x, m in zip(row, mean, strict=True)] for row in matrix]))
        return out

    return masses


def quadratic_masses(weights: Sequence[Sequence[tuple[int, list[int]]]]) -> Masses:
    """Weights c_0 + sum_i c_i theta_i^2."""

    def masses(theta: Vector) -> list[tuple[Vector, list[Vector]]]:
        out = []
        for one in weights:
            w = [c0 + sum(c * x * x for c, x in zip(cs, theta, strict=True)) for c0, cs in one]
            slope = [[2 * c * x for c, x in zip(cs, theta, strict=True)] for _, cs in one]
            total = sum(w)
            mean = [sum(column) / total for column in zip(*slope, strict=True)]
            score = [[s / x - m for s, m in zip(row, mean, strict=True)] for x, row in zip(w, slope, strict=True)]
            out.append(([x / total for x in w], score))
        return out

    return masses


def token_masses(file: dict[str, Any]) -> Masses:
    """Products of softmax conditionals, straight from the file: every path of tokens, its mass and its score."""
    protocol, logits, names = file["protocol"], file["policy"]["logits"], file["policy"]["parameters"]
    tokens = [*protocol["vocabulary"], protocol["end"]]

    def conditional(context: str, theta: Vector) -> tuple[Vector, list[Vector]]:
        words = context.split(" ")
        keys = [" ".join(words[:n]) for n in range(len(words), 0, -1)]
        entries = [logits[next((key for key in keys if key in logits), "*")][token] for token in tokens]
        summands = [str(entry).split(" + ") for entry in entries]
        phi = [[mpf(one.count(name)) for name in names] for one in summands]
        constant = [sum(int(x) for x in one if x.isdigit()) for one in summands]
        weights = [exp(c + sum(x * y for x, y in zip(row, theta, strict=True))) for c, row in zip(constant, phi, strict=True)]
        p = [w / sum(weights) for w in weights]
        mean = [sum(m * x for m, x in zip(p, column, strict=True)) for column in zip(*phi, strict=True)]
        return p, [[x - m for x, m in zip(row, mean, strict=True)] for row in phi]

    def grow(context: str, length: int, mass: Any, score: Vector, theta: Vector) -> Iterator[tuple[Any, Vector]]:
        p, scores = conditional(context, theta)
        for token, one, row in zip(tokens, p, scores, strict=True):
            total = [x + y for x, y in zip(score, row, strict=True)]
            if token == protocol["end"] or length + 1 == protocol["max_length"]:
                yield mass * one, total
            else:
                yield from grow(f"{context} {token}", length + 1, mass * one, total, theta)

    def masses(theta: Vector) -> list[tuple[Vector, list[Vector]]]:
        trees = [list(grow(prompt["name"], 0, mpf(1), [mpf(0)] * len(theta), theta)) for prompt in file["prompts"]]
        return [([m for m, _ in tree], [s for _, s in tree]) for tree in trees]

    return masses


# ---- problems


@dataclass
class Sizes:
    """M prompts, n responses, groups of G, d parameters, T outer iterations of K steps."""

    prompts: int
    responses: int
    group_size: int
    parameters: int
    outer: int
    inner: int
    beta: Fraction
    step_size: Fraction


def rewards_and_reference(r: random.Random, sizes: Sizes) -> tuple[list[list[Fraction]], list[list[Fraction]]]:
    rewards = [[Fraction(r.randint(0, 4), 4) for _ in range(sizes.responses)] for _ in range(sizes.prompts)]
    masses = [[r.randint(1, 9) for _ in range(sizes.responses)] for _ in range(sizes.prompts)]
    return rewards, [[Fraction(m, sum(row)) for m in row] for row in masses]


def both(
    sizes: Sizes, family: Any, masses: Masses, theta0: list[Fraction], rewards: list[list[Fraction]], reference: list[list[Fraction]]
) -> tuple[Problem, Callable[[], Update]]:
    names = tuple(f"y{j}" for j in range(sizes.responses))
    problem = Problem.of(
        prompts=[Prompt(f"q{q}", names, tuple(row)) for q, row in enumerate(rewards)],
        family=family,
        theta0=theta0,
        group_size=sizes.group_size,
        outer_iterations=sizes.outer,
        inner_steps=sizes.inner,
        epsilon="1/5",
        beta=sizes.beta,
        step_size=sizes.step_size,
        draws=Seed(5),
        reference=ReferenceMasses(Column(x for row in reference for x in row)),
    )
    return problem, lambda: second_route(problem, masses, [[number(x) for x in row] for row in reference], Seed(5).seed)


def second_route(problem: Problem, masses: Masses, reference: list[Vector], seed: int) -> Update:
    rewards = [[Fraction(r) for r in prompt.rewards] for prompt in problem.prompts]  # type: ignore[arg-type]
    theta0 = [number(x) for x in problem.theta0]  # type: ignore[arg-type]
    constants = [Fraction(x) for x in (problem.epsilon_low, problem.beta, problem.step_sizes[0])]  # type: ignore[arg-type]
    return Update(masses, rewards, reference, theta0, problem.group_size, *constants, seed)


def softmax(sizes: Sizes) -> tuple[Problem, Callable[[], Update]]:
    r = random.Random(1)
    rewards, reference = rewards_and_reference(r, sizes)
    features = [
        [[Fraction(r.randint(-2, 2), 2) for _ in range(sizes.parameters)] for _ in range(sizes.responses)] for _ in range(sizes.prompts)
    ]
    theta0 = [Fraction(r.randint(-3, 3), 6) for _ in range(sizes.parameters)]
    with workdps(200):
        masses = softmax_masses(features)
    return both(sizes, Softmax.of(features, size=sizes.parameters), masses, theta0, rewards, reference)


def rational(sizes: Sizes) -> tuple[Problem, Callable[[], Update]]:
    r = random.Random(2)
    rewards, reference = rewards_and_reference(r, sizes)
    d = sizes.parameters
    weights = [[(r.randint(1, 5), [r.randint(0, 3) for _ in range(d)]) for _ in range(sizes.responses)] for _ in range(sizes.prompts)]
    square = [tuple(2 * (i == j) for j in range(d)) for i in range(d)]
    polynomials = [
        [{(0,) * d: Fraction(c0)} | {square[i]: Fraction(c) for i, c in enumerate(cs) if c} for c0, cs in row] for row in weights
    ]
    theta0 = [Fraction(r.randint(2, 6), 4) for _ in range(d)]
    return both(sizes, Rational.of(polynomials, size=d), quadratic_masses(weights), theta0, rewards, reference)


# ---- what must hold of a run


def check(problem: Problem, other: Callable[[], Update]) -> Run:
    start = time.perf_counter()
    result = run(problem, digits=DIGITS)
    bounds = [x.enclose(DIGITS) for x in result.theta]
    assert time.perf_counter() - start < LIMIT
    assert (result.status, result.undecided) == ("complete", None)
    check_counts(result)
    with workdps(200):
        update = other()
        expected = update.run(problem.outer_iterations, problem.inner_steps)
        noise = Fraction(1, 10**100)
        for x, (lower, upper), reference in zip(result.theta, bounds, expected, strict=True):
            value = fraction(reference)
            assert lower - noise <= value <= upper + noise
            assert upper - lower <= Fraction(1, 10**DIGITS) * abs(lower)
            assert abs(Fraction(Decimal(x.digits(DIGITS))) - value) <= Fraction(1, 10 ** (DIGITS - 1)) * abs(value)
    for step, clipped, value in zip(result.steps, update.sides, update.values, strict=True):
        if step.level[1] > 1:
            assert step.objective is not None
            lower, upper = step.objective.enclose(DIGITS)
            assert lower - noise <= fraction(value) <= upper + noise
        assert [term.side == "clipped" for term in step.terms] == clipped
        assert all(d.sign is not None and d.proof is not None and d.proof.kind in PROOFS for d in step.decisions())
        assert all(term.side != "undecided" and term.proof is not None and term.proof.kind in PROOFS for term in step.terms)
    assert {term.side for step in result.steps for term in step.terms} >= {"clipped", "unclipped"}
    assert set(result.proof_counts()) <= PROOFS
    return result


def check_counts(result: Run) -> None:
    problem, counts = result.problem, result.counts
    t, k, m, g = problem.outer_iterations, problem.inner_steps, len(problem.prompts), problem.group_size
    responses = sum(len(prompt.responses) for prompt in problem.prompts)
    assert (counts.draws, counts.reward_evaluations, counts.square_roots) == (t * m * g, t * m * g, t * m)
    assert (counts.gradient_attempts, counts.domain_calls) == (t * k, t * k)
    assert counts.mass_evaluations == t * k * responses
    assert counts.logarithms == (t * k * responses if problem.beta != 0 else 0)
    assert [step.level for step in result.steps] == [(i, j) for i in range(1, t + 1) for j in range(1, k + 1)]
    for before, after in pairwise(result.steps):
        assert all(x is y or x == y for x, y in zip(before.proposal or (), after.theta, strict=True))


@pytest.mark.parametrize("beta", [Fraction(0), Fraction(1, 10)])
def test_rational_runs_of_four_steps_agree_with_mpmath(beta: Fraction) -> None:
    check(*rational(Sizes(8, 16, 8, 8, outer=1, inner=4, beta=beta, step_size=Fraction(12))))


def test_softmax_runs_of_two_iterations_agree_with_mpmath() -> None:
    check(*softmax(Sizes(16, 32, 16, 8, outer=2, inner=4, beta=Fraction(1, 10), step_size=Fraction(2))))


@pytest.mark.parametrize(("outer", "inner"), [(20, 4), (4, 20)])
@pytest.mark.parametrize("beta", [Fraction(0), Fraction(1, 10)])
@pytest.mark.parametrize("family", [rational, softmax])
def test_eighty_steps_keep_thirty_certified_digits(family: Any, beta: Fraction, outer: int, inner: int) -> None:
    result = check(*family(Sizes(2, 4, 4, 2, outer=outer, inner=inner, beta=beta, step_size=Fraction(1))))
    assert len(result.steps) == 80


def test_the_large_softmax_example_agrees_with_mpmath() -> None:
    with (EXAMPLES / "large_softmax.toml").open("rb") as stream:
        file = tomllib.load(stream, parse_float=Fraction)
    features = [[[Fraction(x) for x in row] for row in file["policy"]["features"][prompt["name"]]] for prompt in file["prompts"]]
    with workdps(200):
        masses = softmax_masses(features)
        uniform = [[mpf(1) / 64] * 64] * 64
    problem = load_problem(EXAMPLES / "large_softmax.toml")
    check(problem, lambda: second_route(problem, masses, uniform, file["update"]["draws"]["seed"]))


def test_the_token_example_agrees_with_mpmath() -> None:
    with (EXAMPLES / "tokens.toml").open("rb") as stream:
        file = tomllib.load(stream, parse_float=Fraction)
    problem = load_problem(EXAMPLES / "tokens.toml")
    masses = token_masses(file)
    with workdps(200):
        reference = [p for p, _ in masses([mpf(1) / 2, mpf(0), mpf(0), mpf(0)])]
    check(problem, lambda: second_route(problem, masses, reference, file["update"]["draws"]["seed"]))
