"""The bundled claims by id, and claims of one's own by decorator."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any

from exactgrpo.claims.claim import Claim
from exactgrpo.errors import ClaimError

CATALOGUE = ("update", "field", "delay")


@cache
def bundled(*catalogues: str) -> Mapping[str, Claim]:
    """The bundled claims by id, in the order of the catalogues: ``update`` (its audit), ``field``, ``delay``; all by default."""
    claims: dict[str, Claim] = {}
    for name in catalogues or CATALOGUE:
        for claim in import_module(f"exactgrpo.claims.catalogue.{name}").CLAIMS:
            if claim.id in claims:
                raise ClaimError("catalogue", claim.id, "ids are distinct")
            claims[claim.id] = claim
    return MappingProxyType(claims)


def find_claim(id: str) -> Claim:
    """The bundled claim of this id; ClaimError that offers the nearest ids.

    >>> find_claim("advantages-sum-to-zero").expected
    True
    """
    claims = bundled()
    if id not in claims:
        near = difflib.get_close_matches(id[:100], claims, n=3, cutoff=0.4)
        rule = f"did you mean {', '.join(near)}?" if near else "no bundled claim has this id; `exactgrpo claims` lists them"
        raise ClaimError("claim", id, rule)
    return claims[id]


def is_bundled(claim: Claim) -> bool:
    """Whether this claim is one of ours, not only of the same id."""
    return bundled().get(claim.id) is claim


def claim(*, id: str, variables: Mapping[str, Any], **fields: Any) -> Callable[[Callable[..., bool]], Claim]:
    """Make a claim of a predicate: its docstring is the statement, its arguments are variables.

    >>> from exactgrpo.strategies import reward_groups
    >>> from exactgrpo import advantages
    >>> @claim(id="centred", variables={"rewards": reward_groups()})
    ... def centred(rewards):
    ...     "Advantages sum to zero."
    ...     return sum(advantages(rewards)) == 0
    >>> centred.statement
    'Advantages sum to zero.'
    """

    def decorate(conclusion: Callable[..., bool]) -> Claim:
        statement = fields.pop("statement", None) or " ".join((conclusion.__doc__ or conclusion.__name__).split())
        return Claim(id=id, statement=statement, variables=variables, conclusion=conclusion, **fields)

    return decorate
