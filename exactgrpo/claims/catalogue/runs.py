"""Claims about whole runs of a problem; a file of kind "update" is an instance of each."""

from __future__ import annotations

from fractions import Fraction

from exactgrpo.claims.claim import Claim
from exactgrpo.claims.variable import Variable
from exactgrpo.errors import ThetaError
from exactgrpo.numbers.arithmetic import Column
from exactgrpo.numbers.rational import exact
from exactgrpo.numbers.real import Real
from exactgrpo.strategies import problems
from exactgrpo.update.domain import check_parameter
from exactgrpo.update.problem import Problem
from exactgrpo.update.run import Run, run
from exactgrpo.update.trace import Step

VARIABLES = {"problem": Variable(problems(), lambda x: isinstance(x, Problem), "a problem")}
SOURCE = "the finite-budget group-relative policy update"


def _decided(problem: Problem) -> Run:
    finished: Run = problem.cached("catalogue.run", lambda: run(problem))
    if finished.undecided is not None:
        raise finished.undecided
    return finished


def _is_valid(problem: Problem) -> bool:
    theta = Column(exact(x, f"theta[{i}]") for i, x in enumerate(_decided(problem).theta))
    try:
        check_parameter(problem.family, theta, "theta")
    except ThetaError:
        return False
    return True


def _within_budget(problem: Problem) -> bool:
    counts, T, K = _decided(problem).counts, problem.outer_iterations, problem.inner_steps
    samples = len(problem.prompts) * problem.group_size
    return counts.draws <= T * samples and counts.domain_calls <= counts.gradient_attempts <= T * K


def _counts_follow_status(problem: Problem) -> bool:
    finished, K = _decided(problem), problem.inner_steps
    counts, samples = finished.counts, len(problem.prompts) * problem.group_size
    if finished.status == "complete":
        outer = problem.outer_iterations
        return (counts.draws, counts.gradient_attempts, counts.domain_calls) == (outer * samples, outer * K, outer * K)
    before = (counts.draws // samples - 1) * K
    is_inside = counts.draws % samples == 0 and before < counts.gradient_attempts <= before + K
    return is_inside and counts.gradient_attempts - counts.domain_calls == (finished.status == "undefined-gradient")


def _mean_absolute_advantage(step: Step) -> Real:
    groups = [sum((abs(a) for a in group), Real.of(0)) / len(group) for group in step.advantages]
    return sum(groups, Real.of(0)) / len(groups)


def _objective(step: Step) -> Real:
    if step.objective is None:
        raise ArithmeticError("an answered step has an objective")
    return step.objective


CLAIMS = (
    Claim(
        "run-returns-a-valid-parameter",
        "Whatever the status, the returned parameter lies in the open domain U.",
        VARIABLES,
        conclusion=_is_valid,
        source=SOURCE + ", closing link",
        latex=r"\theta \in U",
        theorem="run_valid (Procedure.v)",
    ),
    Claim(
        "run-within-budget",
        "A run makes at most T M G draws and T K gradient attempts, and no more domain calls than gradient attempts.",
        VARIABLES,
        conclusion=_within_budget,
        source=SOURCE + ", closing link",
        latex=r"\text{draws} \le T M G,\ \text{attempts} \le T K",
        theorem="run_budget (Procedure.v)",
    ),
    Claim(
        "run-counts-follow-status",
        "Draws, gradient attempts and domain calls are exactly those that the status stands for.",
        VARIABLES,
        conclusion=_counts_follow_status,
        source=SOURCE + ", inner steps",
        theorem="run_counts (Procedure.v)",
    ),
    Claim(
        "first-inner-step-has-a-gradient",
        "The first inner step of an outer iteration is never at a kink, since every ratio is one.",
        VARIABLES,
        conclusion=lambda problem: all(step.evidence is None for step in _decided(problem).steps if step.level[1] == 1),
        theorem="first_step_ok (Grpo.v)",
    ),
    Claim(
        "objective-is-finite",
        "At every parameter that a run asks about, the objective is a finite number.",
        VARIABLES,
        conclusion=lambda problem: all(step.objective is not None for step in _decided(problem).steps),
        source=SOURCE + ", closing link",
    ),
    Claim(
        "objective-ceiling",
        "The objective is at most epsilon times the mean absolute advantage, at every step.",
        VARIABLES,
        left=lambda problem: [_objective(step) for step in _decided(problem).steps],
        right=lambda problem: [Real.of(problem.epsilon_high) * _mean_absolute_advantage(step) for step in _decided(problem).steps],
        relation="<=",
        hypotheses={"one epsilon": lambda problem: bool(Real.of(problem.epsilon_low) == Real.of(problem.epsilon_high))},
        latex=r"F_t(\theta) \le \epsilon\, \frac{1}{M G} \sum |A_i|",
        theorem="objective_ceiling (Ceiling.v)",
    ),
    Claim(
        "first-objective-is-minus-the-penalty",
        "At the frozen parameter the clipped part of the objective is zero, so without a penalty the objective is zero.",
        VARIABLES,
        left=lambda problem: [_objective(step) for step in _decided(problem).steps if step.level[1] == 1],
        right=lambda problem: [Fraction(0) for step in _decided(problem).steps if step.level[1] == 1],
        hypotheses={"beta = 0": lambda problem: bool(Real.of(problem.beta) == 0)},
        latex=r"F_t(\theta_{t-1}) = 0",
    ),
)
