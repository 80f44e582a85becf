"""Execute a program exactly: cheap arithmetics first, algebra only for a comparison that stays open.

The rungs are rationals, the float64 filter, balls at a precision planned from the run and at twice that, and then a proof or a
refinement of the single comparisons that are still open. Decided comparisons are remembered by key, so a later rung (or a
re-run at any precision) agrees with an earlier one and repeats no comparison.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
from flint import arb

from exactgrpo.errors import UndecidedError
from exactgrpo.numbers import expression as ex
from exactgrpo.numbers.arithmetic import OPEN, Arithmetic, DecisionTable, Key, NotRepresentable, Open
from exactgrpo.numbers.balls import Balls
from exactgrpo.numbers.decision import Proof, decide_sign
from exactgrpo.numbers.expression import Expression
from exactgrpo.numbers.filter import Filter, is_ieee
from exactgrpo.numbers.precision import precision
from exactgrpo.numbers.rationals import Rationals
from exactgrpo.numbers.symbols import Symbols, difference, node

Outcome = TypeVar("Outcome")
Program = Callable[[Arithmetic], Outcome]

KEPT_RECORDS = 3
FIRST_VALUE_BITS = 4 * 53
"""Values are first enclosed as sharply as a correctly rounded double asks for, which saves a second run."""
MAX_BITS = 1 << 15


def planned_bits(digits: int, steps: int) -> int:
    """Working precision for `digits` certified digits after a number of chained steps.

    Radii grow by 2 to 5.3 bits a step in the families measured; 6 are planned for, and 16 in reserve, rounded up to 64.
    """
    return _rounded_up(int(3.33 * digits) + 16 + 6 * steps)


def _rounded_up(bits: int) -> int:
    return -(-bits // 64) * 64


class Execution(Generic[Outcome]):
    """One program, decided. `outcome` is what it returned; None if a comparison stayed undecided, which `undecided` then holds.

    Values that the program marked or observed are read with `value`; they are expressions whose leaves know their enclosure
    (the program re-run at any precision) and their definition (the program run symbolically).
    """

    def __init__(
        self,
        program: Program[Outcome],
        *,
        digits: int = 15,
        steps: int = 0,
        describe: Callable[[Key, int], str] = lambda key, place: f"sign of {key} at {place}",
        max_bits: int = MAX_BITS,
    ) -> None:
        self.program, self.describe, self.max_bits = program, describe, max_bits
        self.growth = 6 * steps + 16
        self.bits = planned_bits(digits, steps)
        self.table = DecisionTable()
        self.outcome: Outcome | None = None
        self.undecided: UndecidedError | None = None
        self._exact: dict[tuple[str, Key], list[Any]] = {}
        self._records: dict[int, dict[tuple[str, Key], list[arb]]] = {}
        self._everything = False
        self._symbols: Symbols | None = None
        try:
            self.outcome = self._decide()
        except UndecidedError as error:
            self.undecided = error

    def _decide(self) -> Outcome:
        rationals = Rationals(self.table)
        try:
            return self._execute(rationals)
        except NotRepresentable:
            pass
        finally:
            self._exact = rationals.observed
        if is_ieee():
            try:
                return self._execute(Filter(self.table))
            except (Open, NotRepresentable):
                pass
        raised = False
        while True:
            bits = 2 * self.bits if raised else self.bits
            balls = Balls(bits, self.table)
            try:
                with precision(bits):
                    outcome = self._execute(balls)
            except Open as question:
                if raised:
                    self._settle(question)
                raised = not raised
            else:
                self._remember(bits, balls)
                return outcome

    def _execute(self, arithmetic: Arithmetic) -> Outcome:
        """The program in one arithmetic; NaN and infinity are answers of the filter, and libraries under the balls may raise flags."""
        with np.errstate(all="ignore"):
            return self.program(arithmetic)

    def _settle(self, question: Open) -> None:
        """Decide the open places of one comparison: prove an identity, or refine until separated."""
        for place in question.places.tolist():
            sign, proof = self._prove(question.key, place)
            self.table.settle(question.key, place, sign, proof)

    def _prove(self, key: Key, place: int) -> tuple[int, Proof]:
        sides = self._run_symbols().sides[key]
        answer = decide_sign(difference(*sides, place), max_bits=self.max_bits, question=self.describe(key, place))
        return answer.value, answer.proof

    def sign(self, key: Key, place: int) -> int:
        """A decided sign; a soft comparison that is still open is decided now, and may raise UndecidedError."""
        sign = int(self.table.signs[key][place])
        if sign == OPEN:
            sign, proof = self._prove(key, place)
            self.table.settle(key, place, sign, proof)
        return sign

    # ---- values

    def value(self, name: str, level: Key, i: int) -> Expression:
        """Entry i of what the program marked or observed under a name at a level."""
        exact = self._exact.get((name, level))
        if exact is not None:
            return node(exact[i])
        return ex.leaf(self, (name, level, i))

    def length(self, name: str, level: Key) -> int:
        """Number of entries of a recorded vector."""
        exact = self._exact.get((name, level))
        return len(exact) if exact is not None else len(self._run_symbols().definitions[name, level])

    def enclose(self, key: tuple[str, Key, int], bits: int) -> arb:
        """A certified enclosure of one leaf with about `bits` bits: from an earlier run if it is sharp enough, else from a new one."""
        name, level, i = key
        planned = max(self.bits, _rounded_up(max(bits, FIRST_VALUE_BITS) + self.growth))
        for made in sorted(self._records, reverse=True):
            record = self._records[made]
            if (name, level) in record and (made >= planned or record[name, level][i].rel_accuracy_bits() >= bits):
                return record[name, level][i]
        # whoever asks for more than parameters soon asks for the rest of it, so one run records everything
        self._everything = self._everything or name != "theta"
        balls = Balls(planned, self.table, record=None if self._everything else ())
        with precision(planned), contextlib.suppress(Open):  # everything before an open comparison is recorded
            self._execute(balls)
        return self._remember(planned, balls)[name, level][i]

    def expand(self, key: tuple[str, Key, int]) -> Expression:
        """The definition of one leaf over the leaves before it."""
        name, level, i = key
        return self._run_symbols((name, level)).definitions[name, level].at(i)

    def level(self, key: tuple[str, Key, int]) -> Key:
        """Marked parameters by step; observed values are newer than the parameter that they are computed at."""
        name, level, _ = key
        return (*level, 0) if name == "theta" else (*level, -1)

    def _run_symbols(self, needed: tuple[str, Key] | None = None) -> Symbols:
        symbols = self._symbols
        stale = symbols is None or (needed not in symbols.definitions if needed else True)
        if symbols is None or stale:
            symbols = self._symbols = Symbols(self.table, self.value)
            with contextlib.suppress(Open):  # its sides are kept
                self.program(symbols)
        return symbols

    def _remember(self, bits: int, balls: Balls) -> dict[tuple[str, Key], list[arb]]:
        record = self._records[bits] = balls.observed
        while len(self._records) > KEPT_RECORDS:
            del self._records[next(iter(self._records))]
        return record
