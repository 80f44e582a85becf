"""One inner step of exactgrpo, set up outside the time that is measured."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from exactgrpo.numbers.arithmetic import Arithmetic
from exactgrpo.numbers.precision import precision
from exactgrpo.update.problem import Problem
from exactgrpo.update.run import FamilyOracle


class SecondStep:
    """Times the second inner step of a problem, the first that compares ratios, in a fresh arithmetic with no decision made."""

    def __init__(self, problem: Problem, make: Callable[[], Arithmetic], *, bits: int = 128) -> None:
        self.problem, self.make, self.bits = problem, make, bits
        self.theta: Any = None
        self.unclipped: list[tuple[int, int]] = []

    def __call__(self) -> float:
        arithmetic, problem = self.make(), self.problem
        oracle = FamilyOracle(arithmetic, problem)
        with np.errstate(all="ignore"), precision(self.bits):
            theta = arithmetic.exact(problem.theta0)
            frozen = oracle.freeze(1, theta)
            theta = oracle.propose((1, 1), theta, oracle.gradient((1, 1), theta, frozen))
            start = time.perf_counter()
            gradient = oracle.gradient((1, 2), theta, frozen)
            theta = oracle.propose((1, 2), theta, gradient)
            inside = oracle.contains((1, 2), theta)
            taken = time.perf_counter() - start
        if gradient is None or not inside:
            raise ValueError("the problem to be measured ends before its second step does")
        self.theta = theta
        self.unclipped = self._unclipped(oracle)
        return taken

    def _unclipped(self, oracle: FamilyOracle) -> list[tuple[int, int]]:
        groups, rows = oracle.groups[0], self.problem.family.rows
        signs = oracle.arithmetic.table.signs[1, 2, "ratio"] * groups.side  # type: ignore[attr-defined]
        at = groups.drawn[signs < 0]
        return sorted((int(rows.owner[i]), int(i) - rows.start[int(rows.owner[i])]) for i in at)
