"""The oracle at any parameter: F_t, its sides and its gradient at theta, with data frozen at another parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exactgrpo.errors import ThetaError
from exactgrpo.numbers.arithmetic import Arithmetic, Column
from exactgrpo.numbers.ladder import MAX_BITS, Execution
from exactgrpo.numbers.rational import exact
from exactgrpo.numbers.real import Real
from exactgrpo.numbers.symbols import node
from exactgrpo.update.domain import check_parameter
from exactgrpo.update.problem import Problem
from exactgrpo.update.run import FamilyOracle
from exactgrpo.update.trace import Evidence, Step

AT = (1, 2)
"""The level of the question: a second inner step of outer iteration 1, whose first was taken at theta_old."""


def evaluate_at(problem: Problem, theta: Sequence[Any], *, digits: int = 15, max_bits: int = MAX_BITS) -> Step:
    """Ask the gradient oracle at `theta`: the data are drawn and frozen at the problem's theta0, as in its outer iteration 1.

    The result is a `Step`: `objective`, `terms` with their sides, and `gradient`, or `evidence` that there is none. `theta` has one
    exact number for each parameter and lies in U (ThetaError otherwise). UndecidedError if a comparison cannot be decided.
    Theorems: F_diff_iff, F_gradient (Objective.v).

    >>> from exactgrpo import Problem, Prompt, Rational, Tape
    >>> prompt = Prompt.of("q", ["a", "b"], [1, 0])
    >>> problem = Problem.of(
    ...     prompts=[prompt], family=Rational.of([["t", "1 - t"]], parameters=["t"]), theta0=["1/2"], group_size=2, outer_iterations=1,
    ...     inner_steps=1, epsilon="1/4", beta=0, step_size=1, draws=Tape.of([[["a", "b"]]], [prompt]),
    ... )
    >>> evaluate_at(problem, ["3/8"]).gradient, evaluate_at(problem, ["5/8"]).evidence.one_sided()
    ((Real('2'),), ((Real('2'), Real('0')),))
    """
    if isinstance(theta, (str, bytes)):
        raise ThetaError("theta", theta, "a list of exact numbers")
    point = Column(exact(x, f"theta[{i}]") for i, x in enumerate(theta))
    check_parameter(problem.family, point, "theta")
    asked: list[FamilyOracle] = []

    def program(arithmetic: Arithmetic) -> Any:
        oracle = FamilyOracle(arithmetic, problem)
        asked[:] = [oracle]
        frozen = oracle.freeze(AT[0], arithmetic.exact(problem.theta0))
        return oracle.gradient(AT, arithmetic.mark(AT, arithmetic.exact(point)), frozen) is not None

    execution: Execution[bool] = Execution(program, digits=digits, steps=1, max_bits=max_bits)
    if execution.undecided is not None:
        raise execution.undecided
    oracle = asked[0]
    kinks = oracle.kinks.get(AT)
    return Step(
        problem=problem,
        execution=execution,
        groups=oracle.groups[0],
        level=AT,
        theta=tuple(Real(node(x)) for x in point),
        is_answered=True,
        evidence=None if kinks is None else Evidence(execution, AT, kinks, oracle.groups[0], problem),
        proposal=None,
        in_domain=None,
        stages=(),
    )
