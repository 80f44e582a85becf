"""A variable of a claim: instances to try, and what may stand for it in an instance that comes from elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from exactgrpo.errors import InputError


@dataclass(frozen=True, eq=False, slots=True)
class Variable:
    """A Hypothesis strategy of small values, and the whole domain that the claim speaks of.

    `contains` tells whether a value is in the domain, which `domain` names. A plain strategy will do for a claim of one's own; the
    domain lets a saved counterexample be checked before it counts.

    >>> from exactgrpo.strategies import rationals
    >>> Variable(rationals(min=0), lambda x: x >= 0, "a number of at least 0").check(-1, "x")
    Traceback (most recent call last):
    exactgrpo.errors.InputError: x: '-1': a number of at least 0
    """

    strategy: st.SearchStrategy[Any]
    contains: Callable[[Any], bool]
    domain: str

    def check(self, value: Any, place: str) -> None:
        """InputError unless the value is in the domain."""
        if not self.contains(value):
            from exactgrpo.claims.claim import shown

            raise InputError(place, shown(value), self.domain)
