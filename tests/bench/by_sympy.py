"""What an ordinary user writes in SymPy for the rational family: exact masses, gradients by differentiation, signs by SymPy."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import sympy as sp

from .cases import RationalCase, Term


class SympyUpdate:
    """The update as symbolic expressions in theta; beta is 0."""

    def __init__(self, case: RationalCase) -> None:
        self.case = case
        self.symbols = sp.symbols(f"t:{len(case.theta0)}", positive=True)
        self.terms = case.terms()
        self.mass = []
        for coefficients, powers in zip(case.coefficients, case.powers, strict=True):
            weights = [
                _number(c) * sp.prod(t**p for t, p in zip(self.symbols, power, strict=True))
                for c, power in zip(coefficients, powers, strict=True)
            ]
            self.mass.append([w / sp.Add(*weights) for w in weights])
        self.old = self._masses([_number(x) for x in case.theta0])

    def _masses(self, theta: list[Any]) -> dict[Term, Any]:
        at = dict(zip(self.symbols, theta, strict=True))
        return {term: self.mass[term.prompt][term.response].subs(at) for term in self.terms}

    def _move(self, theta: list[Any], active: list[Term]) -> list[Any]:
        case, at = self.case, dict(zip(self.symbols, theta, strict=True))
        advantage = {term: _number(term.deviation) / sp.sqrt(_number(term.variance)) for term in active}
        ratio = {term: self.mass[term.prompt][term.response] / self.old[term] for term in active}
        objective = sp.Add(*(term.count * advantage[term] * ratio[term] for term in active)) / (case.group_size * case.prompts)
        return [x + _number(case.step_size) * sp.diff(objective, t).subs(at) for x, t in zip(theta, self.symbols, strict=True)]

    @cached_property
    def theta1(self) -> list[Any]:
        """After the first step, where every ratio is 1; simplified, since the second step computes with it."""
        return [sp.radsimp(sp.expand(x)) for x in self._move([_number(x) for x in self.case.theta0], self.terms)]

    def second_step(self) -> tuple[list[Any], list[tuple[int, int]]]:
        """(theta after the second step, (prompt, response) of the unclipped terms)."""
        active = []
        now = self._masses(self.theta1)
        for term in self.terms:
            side = 1 if term.deviation > 0 else -1
            distance = (now[term] / self.old[term] - _number(1 + side * self.case.epsilon)) * side
            if distance.equals(0):
                raise ArithmeticError("a kink")
            if distance < 0:
                active.append(term)
        return self._move(self.theta1, active), [(term.prompt, term.response) for term in active]


def _number(x: Any) -> Any:
    return sp.Rational(x.numerator, x.denominator)
