"""Finite Markov decision processes in exact rationals, under one fixed policy of full support."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from exactgrpo.errors import InputError, LimitError
from exactgrpo.numbers.inputs import listed, whole
from exactgrpo.tabular.inputs import MAX_BITS, check_common_denominator, rational, short_text

MAX_STATES = 128
MAX_PAIRS = 2048
"""Pairs of a state and an action."""
MAX_CHANNELS = 16
MAX_HORIZON = 10_000
MAX_SOLUTION = 1 << 15
"""States times the bits of the common denominator of all masses: about the length of a stationary mass."""

Law = tuple[Fraction, ...]
Table = tuple[Law, ...]
"""Numbers by state and action, or by step and state."""


@dataclass(frozen=True, slots=True)
class Mdp:
    """A finite MDP with its policy: make one with `Mdp.of`, which checks it.

    `transition`[s][a][s'] and `policy`[s][a] are masses, `rewards` holds a table [s][a] for each reward channel by name, `start` is the law
    of the first state, `horizon` the number of steps of a trajectory. Numbers are `Fraction`s.
    """

    transition: tuple[Table, ...]
    policy: Table
    rewards: Mapping[str, Table]
    discount: Fraction
    horizon: int
    start: Law

    @classmethod
    def of(
        cls,
        transition: Sequence[Sequence[Sequence[Any]]],
        policy: Sequence[Sequence[Any]],
        rewards: Mapping[str, Sequence[Sequence[Any]]],
        *,
        discount: Any,
        horizon: int,
        start: Sequence[Any] | None = None,
    ) -> Mdp:
        """The MDP of exact rationals in nested lists; the start is uniform if None.

        Transition rows and the start are probability mass functions, policy rows positive ones (a softmax has full support), the
        discount is in [0, 1). InputError with the place for what breaks a rule or has the wrong shape, InexactInputError for a float,
        LimitError beyond 128 states, 2048 pairs of state and action, 16 channels, 10,000 steps, a common denominator of over 16,384 bits,
        or 32,768 for states times the bits of that of all masses.

        >>> Mdp.of([[[1, 0]], [["1/2", "1/2"]]], [[1], [1]], {"fast": [[0], ["0.1"]]}, discount="9/10", horizon=2).start
        (Fraction(1, 2), Fraction(1, 2))
        >>> Mdp.of([[["9/10"]]], [[1]], {"fast": [[0]]}, discount="9/10", horizon=2)
        Traceback (most recent call last):
        exactgrpo.errors.InputError: transition[0][0]: 'sum 9/10': masses sum to one
        """
        states, actions = _sizes(transition)
        laws = tuple(
            tuple(_pmf(row, f"transition[{s}][{a}]", states) for a, row in enumerate(_rows(rows, f"transition[{s}]", actions, "actions")))
            for s, rows in enumerate(listed(transition, "transition"))
        )
        by_state = _rows(policy, "policy", states, "states")
        masses = tuple(_pmf(row, f"policy[{s}]", actions, positive=True) for s, row in enumerate(by_state))
        first = (Fraction(1, states),) * states if start is None else _pmf(start, "start", states)
        every_mass = [x for rows in (*laws, masses, (first,)) for row in rows for x in row]
        check_common_denominator("transition", every_mass, min(MAX_SOLUTION // states, MAX_BITS))
        return cls(laws, masses, _channels(rewards, states, actions), _discount(discount), checked_horizon(horizon), first)

    @property
    def states(self) -> int:
        """The number of states."""
        return len(self.policy)

    @property
    def actions(self) -> int:
        """The number of actions in each state."""
        return len(self.policy[0])

    def with_horizon(self, horizon: int) -> Mdp:
        """The same with another horizon."""
        return replace(self, horizon=checked_horizon(horizon))

    def reward(self, *channels: str) -> Table:
        """The sum of these reward channels, or of all if none is named.

        >>> mdp = Mdp.of([[[1]]], [[1]], {"fast": [[1]], "slow": [["1/2"]]}, discount=0, horizon=1)
        >>> mdp.reward(), mdp.reward("slow")
        (((Fraction(3, 2),),), ((Fraction(1, 2),),))
        """
        for name in channels:
            if name not in self.rewards:
                raise InputError("channel", name, f"the channels here are {', '.join(self.rewards)}")
        tables = [self.rewards[name] for name in channels or self.rewards]
        return tuple(tuple(sum(entry, Fraction(0)) for entry in zip(*rows, strict=True)) for rows in zip(*tables, strict=True))


def checked_horizon(horizon: int) -> int:
    """The number of steps, if it is an integer from 1 to 10,000."""
    steps = whole(horizon, "horizon", least=1)
    if steps > MAX_HORIZON:
        raise LimitError("horizon", steps, f"at most {MAX_HORIZON} steps")
    return steps


def _sizes(transition: Any) -> tuple[int, int]:
    rows = listed(transition, "transition")
    states = len(rows)
    if not states:
        raise InputError("transition", "an empty list", "there is at least one state")
    if states > MAX_STATES:
        raise LimitError("transition", f"{states} states", f"at most {MAX_STATES} states")
    actions = len(listed(rows[0], "transition[0]"))
    if not actions:
        raise InputError("transition[0]", "an empty list", "there is at least one action")
    if states * actions > MAX_PAIRS:
        raise LimitError("transition", f"{states} states with {actions} actions", f"at most {MAX_PAIRS} pairs of a state and an action")
    return states, actions


def _rows(values: Any, place: str, count: int, what: str) -> Sequence[Any]:
    rows = listed(values, place)
    if len(rows) != count:
        raise InputError(place, f"{len(rows)} entries", f"one entry for each of the {count} {what}")
    return rows


def _pmf(values: Any, place: str, count: int, *, positive: bool = False) -> Law:
    masses = _numbers(values, place, count, "actions" if positive else "states")
    for i, x in enumerate(masses):
        if x < 0 or (positive and x == 0):
            rule = "a softmax policy has positive masses" if positive else "a mass is not negative"
            raise InputError(f"{place}[{i}]", short_text(x), rule)
    total = sum(masses, Fraction(0))
    if total != 1:
        raise InputError(place, f"sum {short_text(total)}", "masses sum to one")
    return masses


def _numbers(values: Any, place: str, count: int, what: str) -> Law:
    return tuple(rational(x, f"{place}[{i}]") for i, x in enumerate(_rows(values, place, count, what)))


def _channels(rewards: Any, states: int, actions: int) -> dict[str, Table]:
    if not isinstance(rewards, Mapping) or not rewards:
        raise InputError("rewards", rewards, "a table of at least one reward channel")
    if len(rewards) > MAX_CHANNELS:
        raise LimitError("rewards", f"{len(rewards)} channels", f"at most {MAX_CHANNELS} channels")
    tables: dict[str, Table] = {}
    for name, table in rewards.items():
        if not isinstance(name, str) or not name.isidentifier() or len(name) > 100:
            raise InputError("rewards", name, "the name of a channel is a word of at most 100 letters, digits and underscores")
        place = f"rewards.{name}"
        tables[name] = tuple(
            _numbers(row, f"{place}[{s}]", actions, "actions") for s, row in enumerate(_rows(table, place, states, "states"))
        )
    check_common_denominator("rewards", [x for table in tables.values() for row in table for x in row], MAX_BITS)
    return tables


def _discount(discount: Any) -> Fraction:
    gamma = rational(discount, "discount")
    if not 0 <= gamma < 1:
        raise InputError("discount", short_text(gamma), "0 <= discount < 1")
    return gamma
