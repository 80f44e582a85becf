"""What one step of a run shows: terms with their side and proof, objective, gradient, or the evidence that there is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

from exactgrpo.errors import InputError, UndecidedError
from exactgrpo.numbers.arithmetic import OPEN, Key
from exactgrpo.numbers.decision import Proof
from exactgrpo.numbers.ladder import Execution
from exactgrpo.numbers.rational import exact
from exactgrpo.numbers.real import Real
from exactgrpo.numbers.symbols import node
from exactgrpo.update.groups import Groups, Statistics
from exactgrpo.update.problem import Problem

Side = Literal["unclipped", "clipped", "smooth tie", "kink", "zero advantage", "undecided"]

FIRST_STEP = Proof("identity", None, "rho = 1 at the frozen parameter")


@dataclass(frozen=True, slots=True)
class Term:
    """One sample at one step: its advantage, its ratio, which side of its bounds it is on, and the proof of that.

    ``undecided`` means: certainly not clipped and not at a kink (so the derivative is A grad rho), but it is open whether
    the ratio is exactly on the bound where the objective is smooth.
    """

    prompt: str
    sample: int
    response: str
    advantage: Real
    ratio: Real | None
    side: Side
    proof: Proof | None


@dataclass(frozen=True, slots=True)
class Decision:
    """One comparison: what was asked, its sign, and its proof (None while it is open)."""

    question: str
    sign: int | None
    proof: Proof | None


@dataclass(frozen=True, eq=False)
class Evidence:
    """Why F_t has no gradient at a point: terms at true kinks whose ratio gradient is not zero.

    `rest` is the gradient of everything but these terms, `generators` holds A_i grad rho_i/(G M) of each (with its number of
    samples counted in). The Clarke set is rest + sum_i [0, 1] generator_i (equality since the masses are continuously
    differentiable), and F'(v) = rest.v + sum_i min(generator_i.v, 0).
    Theorems: one_sided_kink, kinks_bend_one_way (OneSided.v), objective_clarke_set (ClarkeObjective.v), clarke_set (Clarke.v).
    """

    execution: Execution[Any]
    level: tuple[int, int]
    kinks: tuple[int, ...]
    groups: Groups
    problem: Problem

    @property
    def terms(self) -> tuple[tuple[str, str], ...]:
        """(prompt, response) of each kink."""
        return tuple(_name(self.problem, int(self.groups.drawn[i])) for i in self.kinks)

    @cached_property
    def rest(self) -> tuple[Real, ...]:
        return self._vector("rest")

    @cached_property
    def generators(self) -> tuple[tuple[Real, ...], ...]:
        return tuple(self._vector(f"kink{i}") for i in self.kinks)

    def one_sided(self) -> tuple[tuple[Real, Real], ...]:
        """(left, right) derivative of F_t along each parameter."""
        pairs = []
        for j in range(self.problem.family.size):
            left = right = self.rest[j]
            for i, generator in zip(self.kinks, self.generators, strict=True):
                sign = int(self.groups.side[i]) * self.execution.sign((*self.level, "slope", i), j)
                if sign > 0:
                    left = left + generator[j]
                elif sign < 0:
                    right = right + generator[j]
            pairs.append((left, right))
        return tuple(pairs)

    def directional(self, direction: Sequence[Any]) -> Real:
        """F'(v) = lim (F(theta + h v) - F(theta))/h for h -> 0+; v is exact. UndecidedError if a sign cannot be decided."""
        if len(direction) != self.problem.family.size:
            raise InputError("direction", f"{len(direction)} numbers", f"one number for each of the {self.problem.family.size} parameters")
        v = [Real.of(node(exact(x, f"direction[{j}]"))) for j, x in enumerate(direction)]
        total = _dot(self.rest, v)
        for generator in self.generators:
            slope = _dot(generator, v)
            if slope.sign().value < 0:
                total = total + slope
        return total

    def _vector(self, name: str) -> tuple[Real, ...]:
        return tuple(Real.of(self.execution.value(name, self.level, j)) for j in range(self.problem.family.size))


@dataclass(frozen=True, eq=False)
class Step:
    """One gradient attempt, at `theta` = theta^(k-1) of outer iteration t; `level` is (t, k).

    `proposal` is theta^(k) and `in_domain` whether it lies in U; both are None where the procedure stopped before.
    """

    problem: Problem
    execution: Execution[Any]
    groups: Groups
    level: tuple[int, int]
    theta: tuple[Real, ...]
    is_answered: bool
    evidence: Evidence | None
    proposal: tuple[Real, ...] | None
    in_domain: bool | None
    stages: tuple[int, ...]

    @cached_property
    def objective(self) -> Real | None:
        """F_t(theta); None if a comparison that it needs is undecided."""
        return Real.of(self.execution.value("objective", self.level, 0)) if self.is_answered else None

    @cached_property
    def gradient(self) -> tuple[Real, ...] | None:
        """grad F_t(theta), or None: see `evidence`."""
        if self.evidence is not None or not self.is_answered:
            return None
        return tuple(Real.of(self.execution.value("gradient", self.level, i)) for i in range(self.problem.family.size))

    @cached_property
    def statistics(self) -> tuple[Statistics, ...]:
        """Mean, variance and deviations of each prompt's group."""
        start, rewards = self.problem.family.rows.start, self.problem.rewards
        return tuple(Statistics.of([rewards[first + y] for y in draws]) for first, draws in zip(start, self.groups.draws, strict=False))

    @cached_property
    def advantages(self) -> tuple[tuple[Real, ...], ...]:
        """A of each prompt and sample."""
        out = []
        for group in self.statistics:
            if any(group.signs):
                std = node(group.variance).sqrt()
                made = {d: Real(node(d) / std) for d in set(group.deviations)}
                out.append(tuple(made[d] for d in group.deviations))
            else:
                out.append((Real(node(0)),) * len(group.deviations))
        return tuple(out)

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """Every sample of every prompt, in order."""
        return tuple(self._terms())

    def _terms(self) -> Iterator[Term]:
        sides = [self._side(i) for i in range(len(self.groups.drawn))]
        for q, (prompt, draws) in enumerate(zip(self.problem.prompts, self.groups.draws, strict=True)):
            for i, y in enumerate(draws):
                term = self.groups.term_of[q][i]
                side, proof = sides[term] if term >= 0 else ("zero advantage", self.statistics[q].proofs[i])
                ratio = self._ratio(term) if term >= 0 and self.is_answered else None
                yield Term(prompt.name, i, prompt.responses[y], self.advantages[q][i], ratio, side, proof)

    def _ratio(self, term: int) -> Real:
        return Real(node(1)) if self.level[1] == 1 else Real(self.execution.value("rho", self.level, term))

    def _side(self, term: int) -> tuple[Side, Proof | None]:
        if self.level[1] == 1:
            return "unclipped", FIRST_STEP
        table, key = self.execution.table, (*self.level, "ratio")
        if key not in table.signs or table.signs[key][term] == OPEN:
            return "undecided", None
        sign = int(table.signs[key][term]) * int(self.groups.side[term])
        if sign:
            side: Side = "clipped" if sign > 0 else "unclipped"
        else:
            side = "kink"
        if sign >= 0:
            return side, table.proof(key, term)
        inside = (table.signs[key] * self.groups.side < 0).nonzero()[0]
        place, tie_key = int(inside.searchsorted(term)), (*self.level, "tie")
        if tie_key not in table.signs:  # another ratio of this step stayed open, so nothing more was asked
            return "undecided", table.proof(key, term)
        try:
            on_other_bound = self.execution.sign(tie_key, place) == 0
        except UndecidedError:
            return "undecided", table.proof(key, term)
        return ("smooth tie" if on_other_bound else side), table.proof(tie_key, place)

    def decisions(self) -> Iterator[Decision]:
        """The comparisons of the step in order: ratios, slopes at kinks, domain."""
        t, k = self.level
        keys: list[Key] = [(t, k, "ratio"), *((t, k, "slope", i) for i in range(len(self.groups.drawn)))]
        keys += [(t, k, "domain", stage) for stage in range(len(self.stages))]
        table = self.execution.table
        for key in keys:
            if key not in table.signs:
                continue
            for place, sign in enumerate(table.signs[key].tolist()):
                yield Decision(_question(self.problem, self.groups, key, place), None if sign == OPEN else sign, table.proof(key, place))

    def draw_comparisons(self) -> dict[str, int]:
        """How many comparisons each kind of proof has decided for the exact sampler, in the first inner step of an iteration."""
        t, k = self.level
        return self.execution.table.tally(lambda key: k == 1 and key[0] == t and key[1] == "draw")


def _question(problem: Problem, groups: Groups, key: Key, place: int) -> str:
    if key[2] == "domain":
        return f"condition {place + 1} of U, stage {key[3] + 1}, against 0"
    if key[2] == "slope":
        prompt, response = _name(problem, int(groups.drawn[key[3]]))
        return f"d rho({response!r} | {prompt!r}) / d {problem.parameters[place]} against 0"
    prompt, response = _name(problem, int(groups.drawn[place]))
    return f"rho({response!r} | {prompt!r}) against {'1 + epsilon' if groups.side[place] > 0 else '1 - epsilon'}"


def _name(problem: Problem, position: int) -> tuple[str, str]:
    q = int(problem.family.rows.owner[position])
    prompt = problem.prompts[q]
    return prompt.name, prompt.responses[position - problem.family.rows.start[q]]


def _dot(x: Sequence[Real], y: Sequence[Real]) -> Real:
    total = Real.of(node(Fraction(0)))
    for a, b in zip(x, y, strict=True):
        total = total + a * b
    return total
