"""What late residuals do to advantages: the corrections of one step, and the exact ones of a group that is normalised."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from exactgrpo.errors import InputError
from exactgrpo.numbers.inputs import listed
from exactgrpo.numbers.real import Real
from exactgrpo.rac.queue_channels import Rollout, rollout_name
from exactgrpo.rac.queue_numbers import Number, Numbers, numbers_of
from exactgrpo.update.groups import advantages

Convention = Callable[[list[Number]], Sequence[Number]]
"""From the rewards of a group to its advantages."""


@dataclass(frozen=True, slots=True)
class Signal:
    """A late reward in the queue. Rollout, channel and `number`, its sequence number, name it; no two signals share all three.

    `step` is the step of its rollout, `arrival` the step at which it arrives, `ratio` the clipped importance ratio then and `residual` the
    slow reward minus the fast baseline: the last three are None while it has not arrived.
    """

    rollout: Rollout
    channel: str
    number: int
    step: int
    arrival: int | None = None
    ratio: Number = None
    residual: Number = None

    @property
    def age(self) -> int | None:
        """The delay d = arrival - step, None while it has not arrived."""
        return None if self.arrival is None else self.arrival - self.step


@dataclass(frozen=True, slots=True)
class Injection(Signal):
    """A signal that has arrived in time: `amount` = gain * weight * ratio * residual, with the age weight w(step, age)."""

    weight: Number = None
    amount: Number = None


@dataclass(frozen=True, slots=True)
class Injections:
    """All injections of one step, in the order of their sequence numbers."""

    step: int
    items: tuple[Injection, ...]
    _numbers: Numbers

    def __iter__(self) -> Iterator[Injection]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def rollouts(self) -> list[Rollout]:
        """Whose corrections these are, each rollout once."""
        return list(dict.fromkeys(x.rollout for x in self.items))

    def total(self) -> Number:
        """The sum of all amounts; of floats it is rounded once."""
        return self._numbers.total(x.amount for x in self.items)

    def deltas(self, rollouts: Sequence[Rollout]) -> list[Number]:
        """delta_i for each rollout i of the batch, zero where nothing is due: the corrected advantages are A_i + delta_i.

        delta_i = sum of gain * w(t, d) * clip(rho) * X over the signals of rollout i that are due at this step. A residual moves the
        gradient that it was missing only if it is added to its own rollout: InputError if the batch lacks one whose correction is due, or
        has a rollout twice. Source: Retroactive Advantage Correction, arXiv:2606.27580.

        >>> from exactgrpo import DelayQueue
        >>> queue = DelayQueue({"judge": {"gain": 2}}, offset=0)
        >>> for rollout, residual in (("a", 1), ("a", "1/2"), ("b", -1)):
        ...     number = queue.enqueue(0, rollout, "judge", delay=0, residual=residual, ratio=1)
        >>> queue.inject(0).deltas(["new", "b", "a"])
        [Real('0'), Real('-2'), Real('3')]
        """
        rows: dict[Rollout, list[Number]] = {}
        batch = listed(rollouts, "rollouts")
        for i, rollout in enumerate(rollout_name(x, f"rollouts[{j}]") for j, x in enumerate(batch)):
            if rollout in rows:
                raise InputError(f"rollouts[{i}]", rollout, "a rollout stands once in a batch: its correction would count twice")
            rows[rollout] = []
        for x in self.items:
            if x.rollout not in rows:
                raise InputError("rollouts", f"no rollout {x.rollout!r}", f"its correction is due at step {self.step}")
            rows[x.rollout].append(x.amount)
        return [self._numbers.total(amounts) for amounts in rows.values()]


@dataclass(frozen=True, slots=True)
class GroupCorrection:
    """One group, its late residuals X, and what becomes of its advantages.

    `fast` is A(R) of the rewards R so far, `added` is A_i(R) + X_i over what has arrived (residuals put into the advantages), `injected`
    is A(R + X) over what has arrived (residuals put into the rewards), `complete` is A(R + X) once everything has.
    """

    fast: tuple[Number, ...]
    added: tuple[Number, ...]
    injected: tuple[Number, ...]
    complete: tuple[Number, ...]


def exact_injection(
    rewards: Sequence[Any], residuals: Sequence[Any], *, convention: Convention = advantages, numbers: Any = Real
) -> tuple[Number, ...]:
    """delta_i = A_i(R + X) - A_i(R), so that A_i(R) + delta_i are the advantages of the rewards with their residuals.

    A residual is in units of the reward and an advantage has no unit, so adding X_i itself to A_i is another correction. `rewards` holds
    R_i, the fast rewards and what was injected before, `residuals` X_i, None for one that has not arrived, and `convention` is the
    normalisation: `advantages`, one of `exactgrpo.field.advantages`, or one of yours. Injections one after the other sum to the same
    delta, but all samples of a group change with each. A residual that all share changes nothing. Ours. With `numbers=float` all of this
    runs on floats and needs a convention on floats. UndecidedError if the equality of irrational rewards cannot be decided.

    >>> exact_injection([1, 0], [-1, 1])
    (Real('-2'), Real('2'))
    >>> exact_injection([1, 0, 0], [5, 5, 5])
    (Real('0'), Real('0'), Real('0'))
    >>> exact_injection([0, 0], [1, None])
    (Real('1'), Real('-1'))
    """
    seen = group_correction(rewards, residuals, convention=convention, numbers=numbers)
    return tuple(after - before for before, after in zip(seen.fast, seen.injected, strict=True))


def group_correction(
    rewards: Sequence[Any],
    residuals: Sequence[Any],
    *,
    arrived: Sequence[bool] | None = None,
    convention: Convention = advantages,
    numbers: Any = Real,
) -> GroupCorrection:
    """A group's advantages before its residuals, with them added, with them injected exactly, and in the end.

    `arrived` says which residuals are there; without it those that are not None, and then the others count as zero in the end too. Other
    arguments as for `exact_injection`. Ours.

    >>> one = group_correction([1, 0], [-1, 1])  # the fast reward is (1, 0), the slow one (0, 1)
    >>> one.added, one.injected
    ((Real('0'), Real('0')), (Real('-1'), Real('1')))
    >>> half = group_correction([0, 0], [1, 1], arrived=[True, False])
    >>> half.injected, half.complete
    ((Real('1'), Real('-1')), (Real('0'), Real('0')))
    """
    arithmetic = numbers_of(numbers)
    fast = [arithmetic.read(x, f"rewards[{i}]") for i, x in enumerate(listed(rewards, "rewards"))]
    late = [arithmetic.zero if x is None else arithmetic.read(x, f"residuals[{i}]") for i, x in enumerate(listed(residuals, "residuals"))]
    there = [True] * len(fast) if arrived is None else listed(arrived, "arrived")
    for place, row in (("residuals", late), ("arrived", there)):
        if len(row) != len(fast):
            raise InputError(place, f"{len(row)} entries", f"one for each of the {len(fast)} rewards")
    if not all(isinstance(x, bool) for x in there):
        raise InputError("arrived", there, "true or false for each reward")
    now = [x if is_there else arithmetic.zero for x, is_there in zip(late, there, strict=True)]
    before = _advantages(fast, convention)
    return GroupCorrection(
        before,
        tuple(a + x for a, x in zip(before, now, strict=True)),
        _advantages([r + x for r, x in zip(fast, now, strict=True)], convention),
        _advantages([r + x for r, x in zip(fast, late, strict=True)], convention),
    )


def _advantages(rewards: list[Number], convention: Convention) -> tuple[Number, ...]:
    normalised = tuple(convention(rewards))
    if len(normalised) != len(rewards):
        raise InputError("convention", f"{len(normalised)} advantages", f"one for each of the {len(rewards)} rewards")
    return normalised
