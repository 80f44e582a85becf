"""What can be said of a claim, and how it is found out: a proof for all instances, instances that hold, or a counterexample."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from exactgrpo.claims.claim import Claim
from exactgrpo.claims.registry import is_bundled
from exactgrpo.claims.search import SECONDS, Counterexample, Search, search
from exactgrpo.errors import UndecidedError

Kind = Literal["proved", "holds", "refuted", "vacuous", "undecided"]
INSTANCES = 200
FALSIFY_INSTANCES = 20_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a claim.

    ``proved``: for all instances, `by` says how (a machine-checked theorem, a normal form, all cases). ``holds``: on the `instances`
    that were tried, and no more is said. ``refuted``: `counterexample` is the best found, shrunk. ``vacuous``: no instance satisfied the
    hypotheses. ``undecided``: some instance could not be decided, and none refutes the claim.
    """

    claim: Claim
    kind: Kind
    by: str
    instances: int
    counterexample: Counterexample | None = None
    undecided: UndecidedError | None = None
    ended: str = "finished"

    @property
    def is_expected(self) -> bool:
        """Whether the verdict is the one that the claim expects: refuted if it is false, proved or holding if it is true."""
        return self.kind in ("proved", "holds") if self.claim.expected else self.kind == "refuted"


def verify(claim: Claim, *, instances: int = INSTANCES, seed: int = 0, seconds: float = SECONDS) -> Verdict:
    """Say of a claim what can be said: proved for all, holds on instances, refuted, vacuous, or undecided.

    "For all" is said only where a procedure ended: a bundled claim names a machine-checked theorem, both sides are rational functions
    (SymPy) with one normal form, and so equal wherever both are defined, or all cases were checked. Even then instances are tried, so
    that a wrong statement of a claim shows. The theorem that a claim of one's own names is cited, not relied on.

    >>> from sympy import symbols
    >>> p, q = symbols("p q")
    >>> from exactgrpo.strategies import rationals
    >>> numbers = {"p": rationals(), "q": rationals()}
    >>> verify(Claim("square", "(p + q)^2 expands", numbers, left=(p + q) ** 2, right=p**2 + 2 * p * q + q**2)).kind
    'proved'
    >>> print(verify(Claim("wrong", "(p + q)^2 = p^2 + q^2", numbers, left=(p + q) ** 2, right=p**2 + q**2)).counterexample)
    p = 1, q = 1: left 4, right 2
    """
    seen = search(claim, instances=instances, seed=seed, seconds=seconds)
    return _verdict(claim, seen)


def verdict_on(claim: Claim, instance: Mapping[str, Any]) -> Verdict:
    """The verdict on a claim at one given instance: holds, refuted, vacuous (a hypothesis fails) or undecided."""
    seen = Search()
    seen.visit(claim, instance, ())
    kind: Kind = "holds"
    if seen.counterexample is not None:
        kind = "refuted"
    elif seen.undecided is not None:
        kind = "undecided"
    elif not seen.satisfied:
        kind = "vacuous"
    by = {"holds": "this instance", "refuted": "this instance", "vacuous": "a hypothesis does not hold here"}.get(kind, str(seen.undecided))
    return Verdict(claim, kind, by, seen.satisfied, seen.counterexample, seen.undecided)


def _verdict(claim: Claim, seen: Search) -> Verdict:
    def say(kind: Kind, by: str) -> Verdict:
        return Verdict(claim, kind, by, seen.satisfied, seen.counterexample, seen.undecided, seen.ended)

    if seen.counterexample is not None:
        return say("refuted", "a counterexample")
    if seen.satisfied == 0 and seen.undecided is None:
        return say("vacuous" if seen.ended == "finished" else "undecided", f"no instance of {seen.tried} satisfied the hypotheses")
    if seen.undecided is not None:
        return say("undecided", str(seen.undecided))
    if seen.is_complete:
        return say("proved", f"all {seen.tried} cases")
    if _is_proved_by_normal_form(claim):
        return say("proved", "one normal form of both sides, wherever both are defined")
    if claim.theorem is not None and is_bundled(claim):
        return say("proved", f"theorem {claim.theorem}")
    cited = f"; its author cites {claim.theorem}" if claim.theorem is not None else ""
    return say("holds", f"{seen.satisfied} instances{cited}")


def _is_proved_by_normal_form(claim: Claim) -> bool:
    from exactgrpo.numbers.from_sympy import is_sympy

    if claim.conclusion is not None or claim.relation != "==" or not (is_sympy(claim.left) or is_sympy(claim.right)):
        return False
    if any(callable(side) and not is_sympy(side) for side in (claim.left, claim.right)):
        return False
    from exactgrpo.claims.symbolic import is_identity

    return is_identity(claim.left, claim.right)


def falsify(
    claim: Claim,
    *,
    drop: Sequence[str] = (),
    seconds: float = SECONDS,
    seed: int = 0,
    instances: int = FALSIFY_INSTANCES,
    found: Callable[[Counterexample], None] | None = None,
) -> Search:
    """Search for a counterexample and shrink it; `drop` leaves hypotheses out.

    The result's `counterexample` is None if none was found in the time, which proves nothing. Its `violated` names the dropped
    hypotheses that it does not satisfy: if there are none, the claim itself is refuted. Another seed may find another one. `found` is
    called at each better counterexample. The same seed gives the same result, unless time runs out.

    >>> from exactgrpo.strategies import rationals
    >>> claim = Claim("positive", "x^2 > 0", {"x": rationals()}, left=lambda x: x * x, right=0, relation=">",
    ...               hypotheses={"x is not zero": lambda x: x != 0})
    >>> falsify(claim, instances=200).counterexample is None
    True
    >>> print(falsify(claim, drop=["x is not zero"]).counterexample)
    x = 0: left 0, right 0
    """
    return search(claim, instances=instances, seed=seed, seconds=seconds, without=drop, found=found)


def necessary(claim: Claim, *, seconds: float = SECONDS, seed: int = 0) -> dict[str, Search]:
    """Drop each hypothesis in turn, until an interrupt.

    A hypothesis is needed if `need` of its search says so: an instance that violates this hypothesis and no other has a false
    conclusion, or a side that is undefined. None found proves nothing.

    >>> from exactgrpo.strategies import rationals
    >>> claim = Claim("positive", "x^2 > 0", {"x": rationals()}, left=lambda x: x * x, right=0, relation=">",
    ...               hypotheses={"x is not zero": lambda x: x != 0})
    >>> {name: need(result) for name, result in necessary(claim).items()}
    {'x is not zero': 'needed'}
    """
    results: dict[str, Search] = {}
    for name in claim.hypotheses:
        results[name] = falsify(claim, drop=[name], seconds=seconds, seed=seed)
        if results[name].ended == "interrupted":
            break
    return results


def need(result: Search) -> Literal["needed", "not shown", "the claim itself is refuted"]:
    """What the search without one hypothesis says of it; "not shown" says nothing.

    >>> need(falsify(Claim("positive", "x^2 > 0", {"x": [0, 1]}, left=lambda x: x * x, right=0, relation=">",
    ...                    hypotheses={"x is not zero": lambda x: x != 0}), drop=["x is not zero"]))
    'needed'
    """
    found = result.counterexample
    if found is not None and not found.violated:
        return "the claim itself is refuted"
    return "needed" if found is not None or result.undefined is not None else "not shown"
