"""Instances of a claim: all of them where that is possible, else generated and shrunk by Hypothesis, the same for the same seed."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import hypothesis
from hypothesis import strategies as st
from hypothesis.errors import Flaky, HypothesisException, Unsatisfiable, UnsatisfiedAssumption

from exactgrpo.claims.claim import Claim, Sides, shown
from exactgrpo.claims.interrupt import lasting_interrupt
from exactgrpo.claims.storage import nothing_stored
from exactgrpo.claims.variable import Variable
from exactgrpo.errors import ClaimError, DomainError, InexactInputError, InputError, UndecidedError
from exactgrpo.numbers.inputs import listed, whole

MAX_CASES = 100_000
SECONDS = 10.0
STATELESS = "a function of its variables alone: it gave two answers at one instance"


@dataclass(frozen=True, slots=True)
class Counterexample:
    """An instance that satisfies the hypotheses and not the conclusion, with both sides.

    `violated` names the hypotheses, of those dropped, that it does not satisfy. If it satisfies them all, it refutes the claim itself.
    """

    instance: Mapping[str, Any]
    sides: Sides
    violated: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = shown(self.instance)
        return text if self.sides.left is None else f"{text}: left {shown(self.sides.left)}, right {shown(self.sides.right)}"


@dataclass(slots=True)
class Search:
    """What a search has seen: instances tried, those that satisfy the hypotheses and have a conclusion, the best counterexample,
    and what stayed open: an undecided comparison, or a side that is undefined where a dropped hypothesis fails.
    """

    tried: int = 0
    satisfied: int = 0
    counterexample: Counterexample | None = None
    undecided: UndecidedError | None = None
    undefined: ClaimError | None = None
    is_complete: bool = False
    ended: str = "finished"
    found: Callable[[Counterexample], None] | None = field(default=None, repr=False)

    def visit(self, claim: Claim, instance: Mapping[str, Any], without: Sequence[str]) -> bool | None:
        """Whether the conclusion holds; None where a hypothesis fails or something is undecided."""
        self.tried += 1
        _check_exact(instance, f"claim {claim.id!r}")
        try:
            if not claim.satisfied(instance, without=without):
                return None
            sides = self._conclusion(claim, instance, without)
            if sides is not None and not sides.holds:
                self._refuted(claim, instance, sides, without)
        except UndecidedError as error:
            self.undecided = self.undecided or error
            return None
        except UnsatisfiedAssumption:  # the user's own hypothesis.assume
            return None
        if sides is None:
            return None
        self.satisfied += 1
        return sides.holds

    def _conclusion(self, claim: Claim, instance: Mapping[str, Any], without: Sequence[str]) -> Sides | None:
        """The conclusion, or None where a side is undefined because a dropped hypothesis fails."""
        try:
            return claim.at(instance)
        except ClaimError as error:
            if not isinstance(error.__cause__, (DomainError, ZeroDivisionError)) or not violated(claim, instance, without):
                raise
            self.undefined = self.undefined or error
            return None

    def _refuted(self, claim: Claim, instance: Mapping[str, Any], sides: Sides, without: Sequence[str]) -> None:
        """Keep a counterexample that a second evaluation confirms."""
        check_stateless(claim, instance, sides, without)
        self.counterexample = Counterexample(dict(instance), sides, violated(claim, instance, without))
        if self.found is not None:
            self.found(self.counterexample)


def check_stateless(claim: Claim, instance: Mapping[str, Any], sides: Sides, without: Sequence[str]) -> None:
    """ClaimError if the claim, evaluated again at an instance, gives another answer."""
    again = claim.at(instance) if claim.satisfied(instance, without=without) else None
    if again is None or (again.holds, shown(again.left), shown(again.right)) != (sides.holds, shown(sides.left), shown(sides.right)):
        raise ClaimError(f"claim {claim.id!r}: a side or a hypothesis", shown(instance), STATELESS)


def violated(claim: Claim, instance: Mapping[str, Any], without: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in claim.hypotheses if name in without and not claim.hypothesis_holds(name, instance))


class _OutOfTime(BaseException):
    """Ends a search from inside; not an Exception, so that nothing takes it for a failing instance."""


class _Refuted(Exception):
    """An instance against the claim."""


def search(
    claim: Claim,
    *,
    instances: int,
    seed: int = 0,
    seconds: float = SECONDS,
    without: Sequence[str] = (),
    found: Callable[[Counterexample], None] | None = None,
) -> Search:
    """Look for a counterexample among at most `instances` instances (all cases where the variables are finite sequences).

    A counterexample is shrunk as far as the time allows. `without` drops hypotheses. An interrupt ends the search and keeps the best
    counterexample so far. Nothing is stored.
    """
    if not isinstance(claim, Claim):
        raise InputError("claim", claim, "a Claim; find_claim(id) gives a bundled one")
    without = [claim.hypothesis(name) for name in listed(without, "drop", "a list of hypotheses")]
    seen = Search(found=found)
    instances, deadline = whole(instances, "instances", least=1), time.monotonic() + checked_seconds(seconds)
    try:
        with lasting_interrupt() as check, nothing_stored():

            def pause() -> None:
                check()
                if time.monotonic() > deadline:
                    raise _OutOfTime

            if is_finite(claim):
                _exhaust(claim, seen, pause, without)
            else:
                _generate(claim, seen, pause, without, instances, whole(seed, "seed", least=0))
            check()
    except KeyboardInterrupt:
        seen.ended = "interrupted"
    except _OutOfTime:
        seen.ended = "out of time"
    return seen


def checked_seconds(seconds: Any) -> float:
    """The time limit as a finite number of seconds above 0.

    >>> checked_seconds(float("nan"))
    Traceback (most recent call last):
    exactgrpo.errors.InputError: seconds: nan: a finite number above 0
    """
    with suppress(TypeError, ValueError, OverflowError):
        if not isinstance(seconds, (str, bool)) and 0 < float(seconds) < math.inf:
            return float(seconds)
    raise InputError("seconds", seconds, "a finite number above 0")


def is_finite(claim: Claim) -> bool:
    """Whether a search goes through all cases of the claim, in their order."""
    values = list(claim.variables.values())
    return all(isinstance(v, Sequence) for v in values) and math.prod(map(len, values)) <= MAX_CASES


def _cases(claim: Claim) -> Iterator[dict[str, Any]]:
    names = list(claim.variables)
    for values in itertools.product(*claim.variables.values()):
        yield dict(zip(names, values, strict=True))


def _exhaust(claim: Claim, seen: Search, pause: Callable[[], None], without: Sequence[str]) -> None:
    """All cases, each twice: where one answer for all is about to be called a proof, it must not depend on the call."""
    for instance in _cases(claim):
        pause()
        answers = {seen.visit(claim, instance, without)}
        again = Search()
        answers.add(again.visit(claim, instance, without))
        if len(answers) == 2:
            raise ClaimError(f"claim {claim.id!r}: a side or a hypothesis", shown(instance), STATELESS)
        if False in answers:
            return
    seen.is_complete = True


def _generate(claim: Claim, seen: Search, pause: Callable[[], None], without: Sequence[str], instances: int, seed: int) -> None:
    @hypothesis.seed(seed)
    @hypothesis.settings(
        database=None,
        deadline=None,
        max_examples=instances,
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
        suppress_health_check=list(hypothesis.HealthCheck),
        report_multiple_bugs=False,
        verbosity=hypothesis.Verbosity.quiet,
    )
    @hypothesis.given(st.fixed_dictionaries({name: _strategy(values) for name, values in claim.variables.items()}))
    def trial(instance: dict[str, Any]) -> None:
        pause()
        holds = seen.visit(claim, instance, without)
        hypothesis.assume(holds is not None)
        if holds is False:
            raise _Refuted

    with suppress(_Refuted, Unsatisfiable):
        try:
            trial()
        except Flaky as error:
            raise ClaimError(f"claim {claim.id!r}: a side, a hypothesis or a strategy", type(error).__name__, STATELESS) from None
        except HypothesisException as error:
            if not isinstance(error, Unsatisfiable):
                rule = f"strategies that Hypothesis accepts: {error}"
                raise ClaimError(f"claim {claim.id!r}: variables", type(error).__name__, rule) from None


def _strategy(values: Any) -> st.SearchStrategy[Any]:
    if isinstance(values, Variable):
        return values.strategy
    return st.sampled_from(values) if isinstance(values, Sequence) else values


def _check_exact(value: Any, place: str) -> None:
    if isinstance(value, float):
        raise InexactInputError(place, value, "strategies yield exact numbers, such as those of exactgrpo.strategies")
    if isinstance(value, Mapping):
        for name, x in value.items():
            _check_exact(x, f"{place}: {name}")
    elif isinstance(value, (list, tuple)):
        for x in value:
            _check_exact(x, place)
