"""Run a problem: status, parameters, counts and every step, exactly, with a proof behind every comparison."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from exactgrpo.errors import UndecidedError
from exactgrpo.numbers.arithmetic import Arithmetic, Key
from exactgrpo.numbers.ladder import MAX_BITS, Execution
from exactgrpo.numbers.real import Real
from exactgrpo.numbers.symbols import node
from exactgrpo.policies.family import Policy
from exactgrpo.update.groups import Groups
from exactgrpo.update.loop import Counts, Ending, Status, update_loop
from exactgrpo.update.objective import Frozen, freeze
from exactgrpo.update.oracle import evaluate
from exactgrpo.update.problem import Problem
from exactgrpo.update.trace import Evidence, Step

Progress = Callable[[str, tuple[int, int]], None]


@dataclass(slots=True)
class FamilyOracle:
    """The oracles of a problem in one arithmetic: masses from its family, gradients from the exact oracle.

    Theorems: family_oracle_exact (Family.v), oracle_inst_exact (OracleInst.v).
    """

    arithmetic: Arithmetic
    problem: Problem
    progress: Progress | None = None
    counts: Counts = field(default_factory=Counts)
    groups: list[Groups] = field(default_factory=list)
    kinks: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict)
    reached: list[tuple[int, int]] = field(default_factory=list)
    stages: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    _policy: Policy | None = None

    def freeze(self, t: int, theta: Any) -> Frozen:
        problem = self.problem
        self._policy = problem.family.at(self.arithmetic, theta)
        frozen = freeze(self.arithmetic, problem, t, self._policy)
        self.groups.append(frozen.groups)
        samples = len(problem.prompts) * problem.group_size
        self.counts.draws += samples
        self.counts.reward_evaluations += samples
        self.counts.square_roots += len(problem.prompts)
        self.counts.mass_evaluations += problem.family.rows.size
        return frozen

    def gradient(self, level: tuple[int, int], theta: Any, frozen: Frozen) -> Any | None:
        problem, arithmetic, first = self.problem, self.arithmetic, level[1] == 1
        self.reached.append(level)
        if self.progress is not None:
            self.progress(type(arithmetic).__name__, level)
        policy = self._policy if first else None
        if policy is None:
            policy = problem.family.at(arithmetic, theta)
            self.counts.mass_evaluations += problem.family.rows.size
        if frozen.log_reference is not None:
            self.counts.logarithms += problem.family.rows.size
        answer = evaluate(arithmetic, problem, level, policy, frozen, first=first)
        if answer.gradient is None:
            self.kinks[level] = answer.kinks
        else:
            arithmetic.observe("gradient", level, lambda: answer.gradient)
        return answer.gradient

    def propose(self, level: tuple[int, int], theta: Any, gradient: Any) -> Any:
        step_size = self.arithmetic.number(self.problem.step_size(*level))
        return self.arithmetic.mark(level, theta + gradient * step_size)

    def contains(self, level: tuple[int, int], theta: Any) -> bool:
        sizes = self.stages[level] = []
        for stage, quantity in enumerate(self.problem.family.domain(self.arithmetic, theta)):
            sizes.append(len(quantity))
            if (self.arithmetic.signs((*level, "domain", stage), quantity, quantity * 0) <= 0).any():
                return False
        return True


class UpdateProgram:
    """The whole update as a program over an arithmetic; `oracle` keeps the facts of the latest execution."""

    def __init__(self, problem: Problem, progress: Progress | None = None) -> None:
        self.problem, self.progress = problem, progress
        self.oracle: FamilyOracle | None = None

    def __call__(self, arithmetic: Arithmetic) -> Ending:
        problem = self.problem
        oracle = self.oracle = FamilyOracle(arithmetic, problem, self.progress)
        return update_loop(
            oracle, arithmetic.exact(problem.theta0), outer_iterations=problem.outer_iterations, inner_steps=problem.inner_steps
        )

    def describe(self, key: Key, place: int) -> str:
        """A comparison in words, for an undecided answer."""
        problem = self.problem
        if key[1] == "draw":
            return f"outer iteration {key[0]}: does a cumulative mass lie below a dyadic number of {key[2]} bits?"
        t, k, what = key[:3]
        where = f"outer iteration {t}, inner step {k}"
        if what == "domain":
            return f"{where}: is condition {place + 1} of the domain U positive at the proposal?"
        if what == "slope":
            return f"{where}: is component {place + 1} of the ratio gradient at a kink zero?"
        groups = self.oracle.groups[t - 1] if self.oracle is not None else None
        if groups is None or what == "tie":
            return f"{where}: is a ratio exactly on the bound where the objective is smooth?"
        position = int(groups.drawn[place])
        prompt = int(problem.family.rows.owner[position])
        response = problem.prompts[prompt].responses[position - problem.family.rows.start[prompt]]
        bound = "1 + epsilon" if groups.side[place] > 0 else "1 - epsilon"
        return f"{where}: is the ratio of {response!r} to prompt {problem.prompts[prompt].name!r} below, on or above {bound}?"


class Run:
    """A finished run. Everything in it is exact; numbers are `Real`, to any number of digits.

    `status` is one of the three statuses of the procedure, or ``"undecided"`` when a comparison could not be decided; then
    `undecided` holds the question. `theta` is the last valid parameter in every case.
    """

    def __init__(self, problem: Problem, *, digits: int = 15, progress: Progress | None = None, max_bits: int = MAX_BITS) -> None:
        self.problem = problem
        self._program = UpdateProgram(problem, progress)
        steps = problem.outer_iterations * problem.inner_steps
        self.execution: Execution[Ending] = Execution(
            self._program, digits=digits, steps=steps, describe=self._program.describe, max_bits=max_bits
        )
        self._program.progress = None
        if self._program.oracle is None:
            raise RuntimeError("the program never ran")
        self._facts = self._program.oracle
        ending = self.execution.outcome
        self.status: Status | Literal["undecided"] = "undecided" if ending is None else ending.status
        self.undecided: UndecidedError | None = self.execution.undecided
        self.counts: Counts = self._facts.counts

    @cached_property
    def theta(self) -> tuple[Real, ...]:
        """The last valid parameter."""
        ending = self.execution.outcome
        if ending is not None:
            return self.parameter(ending.valid)
        last = self._facts.reached[-1] if self._facts.reached else None
        return self.parameter(self._before(last) if last is not None else None)

    def proof_counts(self) -> dict[str, int]:
        """How many comparisons each kind of proof has decided: rational, enclosure, identity, separation bound."""
        return self.execution.table.tally()

    def parameter(self, level: tuple[int, int] | None) -> tuple[Real, ...]:
        """The parameter proposed at inner step (t, k); theta0 for None."""
        if level is None:
            return tuple(Real.of(node(x)) for x in self.problem.theta0)
        return tuple(Real.of(self.execution.value("theta", level, i)) for i in range(self.problem.family.size))

    def _before(self, level: tuple[int, int]) -> tuple[int, int] | None:
        t, k = level
        if k > 1:
            return t, k - 1
        return (t - 1, self.problem.inner_steps) if t > 1 else None

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """One for each gradient attempt, in order."""
        return tuple(self._step(level) for level in self._facts.reached)

    def _step(self, level: tuple[int, int]) -> Step:
        facts, execution = self._facts, self.execution
        answered = level in facts.stages or level in facts.kinks
        evidence = None
        if level in facts.kinks:
            evidence = Evidence(execution, level, facts.kinks[level], facts.groups[level[0] - 1], self.problem)
        proposed = level in facts.stages
        in_domain: bool | None = None
        if proposed:
            ending = execution.outcome
            in_domain = not (ending is not None and ending.status == "invalid-update" and ending.last == level)
            if ending is None and level == facts.reached[-1]:
                in_domain = None
        return Step(
            problem=self.problem,
            execution=execution,
            groups=facts.groups[level[0] - 1],
            level=level,
            theta=self.parameter(self._before(level)),
            is_answered=answered,
            evidence=evidence,
            proposal=self.parameter(level) if proposed else None,
            in_domain=in_domain,
            stages=tuple(facts.stages.get(level, ())),
        )


def run(problem: Problem, *, digits: int = 15, progress: Progress | None = None, max_bits: int = MAX_BITS) -> Run:
    """Run the finite-budget group-relative policy update of a problem, exactly.

    theta^(k) = theta^(k-1) + eta_{t,k} grad F_t(theta^(k-1)) for t = 1..T, k = 1..K, with draws from theta_{t-1}. `digits`
    plans the first working precision; any number of digits can be asked for later. `max_bits` bounds the refinement of a
    comparison whose number class has no decision procedure; such a run ends as ``"undecided"`` instead. `progress(arithmetic, level)`
    is called at each gradient attempt. Theorems: run_valid, run_counts (Procedure.v),
    grpo_main (Grpo.v).

    >>> from exactgrpo import Problem, Prompt, Seed, Softmax
    >>> prompt = Prompt.of("q", ["a", "b"], [1, 0])
    >>> problem = Problem.of(
    ...     prompts=[prompt], family=Softmax.of([[[1], [0]]], size=1), theta0=[0], group_size=4, outer_iterations=1, inner_steps=2,
    ...     epsilon="1/5", beta=0, step_size=1, draws=Seed(1),
    ... )
    >>> finished = run(problem)
    >>> finished.status, finished.theta[0].digits(20)
    ('complete', '0.43301270189221932338')
    """
    return Run(problem, digits=digits, progress=progress, max_bits=max_bits)
