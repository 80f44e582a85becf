"""Instances of a claim: all of them where that is possible, else generated and shrunk by Hypothesis, the same for the same seed."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from exactgrpo.claims.claim import Claim, Sides, shown
from exactgrpo.errors import ClaimError, InexactInputError, UndecidedError

MAX_CASES = 100_000
SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Counterexample:
    """An instance that satisfies the hypotheses and not the conclusion, with both sides."""

    instance: Mapping[str, Any]
    sides: Sides

    def __str__(self) -> str:
        text = shown(self.instance)
        return text if self.sides.left is None else f"{text}: left {shown(self.sides.left)}, right {shown(self.sides.right)}"


@dataclass(slots=True)
class Search:
    """What a search has seen: instances tried, those that satisfy the hypotheses, the smallest counterexample, what stayed open."""

    tried: int = 0
    satisfied: int = 0
    counterexample: Counterexample | None = None
    undecided: UndecidedError | None = None
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
            self.satisfied += 1
            sides = claim.at(instance)
        except UndecidedError as error:
            self.undecided = self.undecided or error
            return None
        if not sides.holds:
            self.counterexample = Counterexample(dict(instance), sides)
            if self.found is not None:
                self.found(self.counterexample)
        return sides.holds


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

    A counterexample is shrunk to a smallest one as far as the time allows. `without` drops hypotheses. An interrupt ends the search
    and keeps the best counterexample so far. Nothing is stored.
    """
    for name in without:
        if name not in claim.hypotheses:
            rule = f"a hypothesis of the claim: {', '.join(claim.hypotheses) or 'it has none'}"
            raise ClaimError(f"claim {claim.id!r}: dropped hypothesis", name, rule)
    seen = Search(found=found)
    deadline = time.monotonic() + seconds
    try:
        if all(isinstance(v, Sequence) for v in claim.variables.values()) and _count(claim) <= MAX_CASES:
            _exhaust(claim, seen, deadline, without)
        else:
            _generate(claim, seen, instances, seed, deadline, without)
    except KeyboardInterrupt:
        seen.ended = "interrupted"
    except _OutOfTime:
        seen.ended = "out of time"
    return seen


def _count(claim: Claim) -> int:
    total = 1
    for values in claim.variables.values():
        total *= len(values)
    return total


def _cases(claim: Claim) -> Iterator[dict[str, Any]]:
    names = list(claim.variables)
    for values in itertools.product(*claim.variables.values()):
        yield dict(zip(names, values, strict=True))


def _exhaust(claim: Claim, seen: Search, deadline: float, without: Sequence[str]) -> None:
    for instance in _cases(claim):
        if time.monotonic() > deadline:
            raise _OutOfTime
        if seen.visit(claim, instance, without) is False:
            return
    seen.is_complete = True


def _generate(claim: Claim, seen: Search, instances: int, seed: int, deadline: float, without: Sequence[str]) -> None:
    import hypothesis
    from hypothesis import strategies as st
    from hypothesis.errors import HypothesisException

    variables = {name: st.sampled_from(v) if isinstance(v, Sequence) else v for name, v in claim.variables.items()}

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
    @hypothesis.given(st.fixed_dictionaries(variables))
    def trial(instance: dict[str, Any]) -> None:
        if time.monotonic() > deadline:
            raise _OutOfTime
        holds = seen.visit(claim, instance, without)
        hypothesis.assume(holds is not None)
        if holds is False:
            raise _Refuted

    with suppress(_Refuted, hypothesis.errors.Unsatisfiable):
        try:
            trial()
        except HypothesisException as error:
            if not isinstance(error, hypothesis.errors.Unsatisfiable):
                rule = f"strategies that Hypothesis accepts: {error}"
                raise ClaimError(f"claim {claim.id!r}: variables", type(error).__name__, rule) from None


def _check_exact(value: Any, place: str) -> None:
    if isinstance(value, float):
        raise InexactInputError(place, value, "strategies yield exact numbers, such as those of exactgrpo.strategies")
    if isinstance(value, Mapping):
        for name, x in value.items():
            _check_exact(x, f"{place}: {name}")
    elif isinstance(value, (list, tuple)):
        for x in value:
            _check_exact(x, place)
