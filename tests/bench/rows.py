"""The rows: each measures one claim in one run, and first checks that both sides compute the same."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from flint import arb

from exactgrpo.numbers.balls import Balls
from exactgrpo.numbers.filter import Filter
from exactgrpo.numbers.precision import precision
from exactgrpo.update.run import run

from .by_hand import BallUpdate, NumpyUpdate
from .cases import kink_problem, rational_case, softmax_case
from .ours import SecondStep
from .timing import interleaved, seconds, within

BITS = 128
SYMPY_SECONDS = 60.0


@dataclass(frozen=True)
class Row:
    """One claim: `measured` is at most `limit`, or `at_least` so much; a budget in absolute time fails beyond `slack` times it."""

    name: str
    claim: str
    measured: float
    limit: float
    unit: str = "x"
    at_least: bool = False
    slack: float = 1.0
    detail: str = ""

    @property
    def holds(self) -> bool:
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit * self.slack

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "holds": self.holds}


class Disagreement(Exception):
    """Two sides of a comparison do not compute the same, so their times say nothing."""


def agree(condition: object, what: str) -> None:
    if not condition:
        raise Disagreement(what)


def step(*, size: tuple[int, int, int, int] = (64, 64, 16, 16), rounds: int = 12) -> list[Row]:
    """One certified softmax step with beta > 0 against python-flint and numpy written by hand, and decisions alone."""
    case = softmax_case(*size, inner=2)
    balls = SecondStep(case.problem, lambda: Balls(BITS), bits=BITS)
    decisions = SecondStep(case.problem, Filter)
    by_numpy = NumpyUpdate(case)
    old_numpy = by_numpy.log_policy(by_numpy.theta0)
    theta_numpy = by_numpy.step(by_numpy.theta0, old_numpy)[0]
    with precision(BITS):
        by_flint = BallUpdate(case)
        old_flint = by_flint.old(by_flint.theta0)
        theta_flint = by_flint.step(by_flint.theta0, old_flint)[0]
        balls(), decisions()
        final_flint, unclipped_flint = by_flint.step(theta_flint, old_flint)
        final_numpy, active = by_numpy.step(theta_numpy, old_numpy)
        agree(all(x.overlaps(y) for x, y in zip(balls.theta.entries, final_flint.entries(), strict=True)), "balls and python-flint by hand")
        agree(np.allclose([float(x) for x in balls.theta.entries], final_numpy, rtol=0, atol=1e-12), "balls and numpy")
        enclosed = zip(balls.theta.entries, decisions.theta.m.tolist(), decisions.theta.r.tolist(), strict=True)
        agree(all(x.overlaps(arb(m, r)) for x, m, r in enclosed), "balls and the filter")
        unclipped_numpy = [(int(q), int(y)) for q, y in zip(*np.nonzero(active), strict=True)]
        agree(balls.unclipped == decisions.unclipped == sorted(unclipped_flint) == unclipped_numpy, "decisions")
        mine, flint, filtered, double = interleaved(
            [
                balls,
                lambda: seconds(lambda: by_flint.step(theta_flint, old_flint)),
                decisions,
                lambda: seconds(lambda: by_numpy.step(theta_numpy, old_numpy)),
            ],
            rounds=rounds,
            repeats=[2, 2, 7, 15],
        )
    detail = f"{1e3 * mine:.2f} ms, by hand {1e3 * flint:.2f} ms, numpy {1e3 * double:.3f} ms, filter {1e3 * filtered:.3f} ms"
    return [
        Row("step-flint", "certified softmax step / python-flint by hand", mine / flint, 1.0, detail=detail),
        Row("step-numpy", "certified softmax step / numpy float64", mine / double, 100.0, detail=detail),
        Row("decisions-numpy", "decisions alone (filter) / numpy float64", filtered / double, 6.0, detail=detail),
    ]


def sympy_second_step(size: tuple[int, int, int, int]) -> tuple[float, list[str], list[tuple[int, int]]]:
    """(seconds, theta to 30 digits, unclipped terms) of the second step in SymPy."""
    from .by_sympy import SympyUpdate

    update = SympyUpdate(rational_case(*size))
    if not update.theta1:
        raise ValueError("no parameter")
    start = time.perf_counter()
    theta, unclipped = update.second_step()
    taken = time.perf_counter() - start
    return taken, [str(x.evalf(30)) for x in theta], sorted(unclipped)


def symbolic(*, size: tuple[int, int, int, int] = (2, 8, 8, 4), limit: float = SYMPY_SECONDS, rounds: int = 10) -> list[Row]:
    """Second step of the rational family: decided and enclosed by exactgrpo (filter, then balls), against SymPy."""
    problem = rational_case(*size).problem
    decisions, balls = SecondStep(problem, Filter), SecondStep(problem, lambda: Balls(BITS), bits=BITS)
    times = interleaved([decisions, balls], rounds=rounds, repeats=[5, 5])
    answer = within(limit, sympy_second_step, size)
    claim = "second rational step in SymPy / exactgrpo"
    detail = f"filter {1e3 * times[0]:.2f} ms + balls {1e3 * times[1]:.2f} ms, SymPy "
    if answer is None:
        return [Row("sympy", claim, limit / sum(times), 1000.0, at_least=True, detail=f"{detail}stopped after {limit:g} s: more than this")]
    taken, theta, unclipped = answer
    with precision(BITS):
        pairs = zip(balls.theta.entries, theta, strict=True)
        agree(all(abs(x - arb(y)) < arb(10) ** -25 for x, y in pairs), "balls and SymPy")
    agree(decisions.unclipped == balls.unclipped == unclipped, "decisions of SymPy")
    return [Row("sympy", claim, taken / sum(times), 1000.0, at_least=True, detail=f"{detail}{taken:.2f} s")]


MISS = Fraction(1, 10**300)
KINKS: list[tuple[str, dict[str, Any], bool]] = [
    ("exact kink at 5/8", {}, True),
    ("missed by 1e-300", {"epsilon": Fraction(1, 4) - MISS}, False),
    ("exact kink by sqrt(2)", {"step_size": "3*sqrt(2)/64", "group": ("a", "a", "b")}, True),
    ("sqrt(2), missed by 1e-300", {"step_size": "3*sqrt(2)/64", "group": ("a", "a", "b"), "epsilon": Fraction(1, 4) + MISS}, False),
]


def kink(*, rounds: int = 5) -> list[Row]:
    """run() on an exact kink, which it proves, and on one missed by 1e-300, which it tells from it; a fresh problem each time."""
    rows = []
    for text, options, is_kink in KINKS:
        best = float("inf")
        for _ in range(rounds):
            problem = kink_problem(**options)
            start = time.perf_counter()
            status = run(problem).status
            best = min(best, time.perf_counter() - start)
            agree((status == "undefined-gradient") == is_kink, text)
        rows.append(Row("kink", text, 1e3 * best, 20.0, unit="ms", slack=3.0))
    return rows


def start(*, rounds: int = 5) -> list[Row]:
    """A new process that imports the package, and one that prints the help text of the command."""
    rows = []
    script = Path(sys.executable).with_name("exactgrpo")
    for text, command in (
        ("import exactgrpo", [sys.executable, "-c", "import exactgrpo"]),
        ("exactgrpo --help", [str(script), "--help"] if script.exists() else [sys.executable, "-m", "exactgrpo.cli", "--help"]),
    ):
        best = min(seconds(lambda command=command: subprocess.run(command, check=True, capture_output=True)) for _ in range(rounds))  # type: ignore[misc]
        rows.append(Row("start", text, best, 0.3, unit="s"))
    return rows


ROWS: dict[str, Callable[[], list[Row]]] = {"step": step, "sympy": symbolic, "kink": kink, "start": start}
