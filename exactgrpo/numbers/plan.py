"""What has to be known before a tower is built, and how a query that lacks it starts again."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field

from exactgrpo.numbers.coprime import CoprimeBase


class Restart(Exception):
    """The plan was too small and has been extended."""


class NoNormalForm(Exception):
    """A budget is exhausted, or the expression is outside the domain; nothing is known."""


@dataclass(slots=True)
class Plan:
    """What has to be known before a tower is built; it only grows, so that restarts come to an end."""

    base: CoprimeBase = field(default_factory=CoprimeBase)
    orders: dict[int, int] = field(default_factory=dict)
    requests: set[tuple[int, int]] = field(default_factory=set)
    radical_orders: dict[int, int] = field(default_factory=dict)
    exponent_denominators: dict[int, int] = field(default_factory=dict)
    identifiers: dict[Hashable, int] = field(default_factory=dict)
    slots: int = 16
    relation_bits: int = 192
    work: int = 2_000_000

    def identify(self, key: Hashable) -> int:
        """A small number for a key, the same at every restart."""
        return self.identifiers.setdefault(key, len(self.identifiers))

    def request(self, n: int, k: int) -> bool:
        """Ask for k-th roots of n (k = 1: only the split); True if the plan changed."""
        if (n, k) in self.requests:
            return False
        self.requests.add((n, k))
        before = dict(self.orders)
        changed = self.base.insert(n)
        self.orders = {}
        for m, index in self.requests:
            for b, e in self.base.split(m) or ():
                self.orders[b] = math.lcm(self.orders.get(b, 1), index // math.gcd(e, index))
        return changed or self.orders != before
