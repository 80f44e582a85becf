"""Three checks on a static batch of fast and slow rewards, exactly, and what each of them can show."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from pathlib import Path
from typing import Any

from exactgrpo.errors import InputError, LimitError
from exactgrpo.numbers.inputs import exact_list, listed, whole
from exactgrpo.spec.log_file import log_double, log_rows
from exactgrpo.spec.reading import located
from exactgrpo.tabular.inputs import check_common_denominator, rational, short_text

MAX_ROWS = 1_000_000
MAX_REWARD = 10**300
MAX_SLACKS = 64
SLACKS = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
STATEMENTS = {
    "identity_kernel": (
        "fast + (slow - fast) = slow for any numbers whatsoever: an error would be one of the arithmetic. "
        "It says nothing of the rewards, the policy or learning."
    ),
    "slack_scaling": (
        "With a share s of each residual missing, the errors are s times those of dropping it, for any numbers whatsoever. "
        "It says nothing of the slack of a kernel, nor of ratios, delays or learning."
    ),
    "forward_injection": (
        "A row takes the residual of another one, w times. At w = 1 and over all shifts its error is 2 v, against v + m^2 when dropped: "
        "it helps exactly if v < m^2, if the scorers differ by an offset m more than by all else. To add m to each fast reward has "
        "error v, and a group-relative advantage does not see an offset. It does not show a better gradient: on a rollout that does not "
        "depend on the residual the expected correction is 0."
    ),
}
"""What the checks can and cannot show."""

_BUNDLED = {"two_judges": Path(__file__).parents[1] / "examples" / "two_judges.jsonl"}

Pair = tuple[Fraction, Fraction]


@dataclass(frozen=True, slots=True)
class Rewards:
    """A batch: `groups` of rows (fast, slow) in order, one group for each prompt, or one for all; and the rows that lack a reward.

    `missing_fast` and `missing_slow` count rows; one that lacks both is in both, and `rows` counts all that were read.
    """

    groups: tuple[tuple[Pair, ...], ...]
    rows: int
    missing_fast: int = 0
    missing_slow: int = 0

    @classmethod
    def of(cls, groups: Sequence[Sequence[Sequence[Any]]]) -> Rewards:
        """Of exact rationals, without missing ones.

        >>> Rewards.of([[(1, 2), ("1/2", 0)]]).groups
        (((Fraction(1, 1), Fraction(2, 1)), (Fraction(1, 2), Fraction(0, 1))),)
        """
        table: list[tuple[Pair, ...]] = []
        for g, group in enumerate(listed(groups, "groups")):
            rows = []
            for i, row in enumerate(listed(group, f"groups[{g}]")):
                place = f"groups[{g}][{i}]"
                pair = exact_list(row, place)
                if len(pair) != 2:
                    raise InputError(place, f"{len(pair)} numbers", "a fast and a slow reward")
                rows.append((rational(pair[0], place), rational(pair[1], place)))
            table.append(tuple(rows))
        return cls.checked(table, sum(map(len, table)))

    @classmethod
    def checked(cls, groups: Sequence[Sequence[Pair]], rows: int, missing_fast: int = 0, missing_slow: int = 0) -> Rewards:
        """Not more than a million rows, at least one that has both rewards, and none of them huge."""
        kept = tuple(tuple(group) for group in groups if group)
        if not kept:
            raise InputError("rows", f"{rows} rows, none with both rewards", "at least one row with a fast and a slow reward")
        if rows > MAX_ROWS:
            raise LimitError("rows", rows, f"at most {MAX_ROWS} rows")
        greatest = max(abs(x) for group in kept for pair in group for x in pair)
        if greatest > MAX_REWARD:
            raise LimitError("rewards", short_text(greatest), "at most 10^300 in absolute value")
        check_common_denominator("rewards", (x for group in kept for pair in group for x in pair))
        return cls(kept, rows, missing_fast, missing_slow)

    @property
    def unit(self) -> int:
        """A common denominator of all rewards."""
        return lcm(*{x.denominator for group in self.groups for pair in group for x in pair})

    def scaled(self) -> Iterator[list[tuple[int, int]]]:
        """The groups in units of 1/`unit`: integers are fast."""
        unit = self.unit
        for group in self.groups:
            yield [(f.numerator * (unit // f.denominator), s.numerator * (unit // s.denominator)) for f, s in group]

    @property
    def complete(self) -> int:
        """The number of rows with both rewards."""
        return sum(map(len, self.groups))


@dataclass(frozen=True, slots=True)
class IdentityKernel:
    """Every residual lands at once with weight 1. `holds`: each corrected reward is the slow one, exactly.

    In doubles the same sum misses in `double_misses` rows, by at most `greatest_double_error`.
    """

    holds: bool
    double_misses: int
    greatest_double_error: Fraction


@dataclass(frozen=True, slots=True)
class SlackScaling:
    """A share `slack` of each residual is missing. `bias` is the sum of (corrected - slow), and `error` the mean of its square.

    `holds`: they are -slack sum X and slack^2 mean X^2, computed row by row.
    """

    slack: Fraction
    bias: Fraction
    error: Fraction
    holds: bool


@dataclass(frozen=True, slots=True)
class ForwardInjection:
    """Row i takes w times the residual of row i - shift of its group, in a circle. Errors are means over `rows` of squares.

    `dropped` = mean X_i^2 without it, `error` = mean (w X_{i-shift} - X_i)^2, and `helps` if that is smaller. `variance` v is the mean
    variance within groups (divisor n), `squared_mean` m^2 the mean square of the group means, so that v + m^2 = `dropped`;
    `covariance` c is the mean of X_i X_{i-shift} less m^2. So error = w^2 (v + m^2) - 2 w (m^2 + c) + v + m^2, and at w = 1 injection
    helps iff v < m^2 + 2 c. `average_error` is the mean error over all shifts of each group, its own row included, over which c
    vanishes: (1 - w)^2 m^2 + (1 + w^2) v; so `helps_on_average` at w = 1 is v < m^2. `best_weight` has the least error at
    this shift (None if all residuals are 0). `left_out` counts rows of groups of at most `shift` rows.
    """

    shift: int
    weight: Fraction
    rows: int
    left_out: int
    dropped: Fraction
    error: Fraction
    helps: bool
    variance: Fraction
    squared_mean: Fraction
    covariance: Fraction
    average_error: Fraction
    helps_on_average: bool
    best_weight: Fraction | None


@dataclass(frozen=True, slots=True)
class Probe:
    """The three checks on a batch. `injection` is None if no group has more rows than the shift."""

    rewards: Rewards
    identity: IdentityKernel
    scaling: tuple[SlackScaling, ...]
    injection: ForwardInjection | None


def read_rewards(path: str | os.PathLike[str], *, fast: str, slow: str, prompt: str | None = None, step: str | None = None) -> Rewards:
    """The rewards of a .csv or .jsonl log, as the doubles that it prints; rows that lack one are counted and left out. "two_judges" is a
    bundled log.

    `fast`, `slow`, `prompt` and `step` name columns. Rows keep the order of the file, or that of the numbers in `step`; rows of a prompt
    are a group. A reward is missing if it is null, empty, or the row has no such entry; NaN is no reward. Errors name file and line.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "log.jsonl")
    ...     _ = file.write_text('{"judge": 0.5, "oracle": 1}\\n{"judge": 0.25, "oracle": null}\\n')
    ...     read_rewards(file, fast="judge", slow="oracle")
    Rewards(groups=(((Fraction(1, 2), Fraction(1, 1)),),), rows=2, missing_fast=0, missing_slow=1)
    """
    with located(str(path)):
        if fast == slow:
            raise InputError("slow", slow, "another column than the fast reward")
        read: list[tuple[Fraction, str, Pair]] = []
        rows = missing_fast = missing_slow = 0
        for line, row in log_rows(_BUNDLED.get(str(path), path), [fast, slow, *(name for name in (prompt, step) if name is not None)]):
            rows += 1
            if rows > MAX_ROWS:
                raise LimitError(f"line {line}", f"row {rows}", f"at most {MAX_ROWS} rows")
            quick, late = (log_double(row.get(name), f"line {line}, {name}") for name in (fast, slow))
            missing_fast += quick is None
            missing_slow += late is None
            if quick is None or late is None:
                continue
            key = "" if prompt is None else _prompt(row.get(prompt), f"line {line}, {prompt}")
            read.append((Fraction(0) if step is None else _step(row.get(step), f"line {line}, {step}"), key, (quick, late)))
        groups: dict[str, list[Pair]] = {}
        for _, key, pair in sorted(read, key=lambda entry: entry[0]):
            groups.setdefault(key, []).append(pair)
        return Rewards.checked(list(groups.values()), rows, missing_fast, missing_slow)


def probe(rewards: Rewards, *, shift: int = 1, weight: Any = 1, slacks: Sequence[Any] = SLACKS) -> Probe:
    """The three checks on a batch, with `STATEMENTS` of what they show; numbers are rationals, and every answer is exact.

    `weight` w >= 0 and `slacks` are rational. Source: Retroactive Advantage Correction, arXiv:2606.27580, the static batch probes; the
    conditions under which the third helps are ours. InputError and LimitError for a shift, weight or slack that is none.

    >>> found = probe(Rewards.of([[(0, 3), (0, 5), (0, 4)]]))
    >>> found.identity.holds, [check.bias for check in found.scaling], found.injection.helps
    (True, [Fraction(-3, 1), Fraction(-6, 1), Fraction(-9, 1)], True)
    >>> found.injection.variance, found.injection.squared_mean, found.injection.average_error
    (Fraction(2, 3), Fraction(16, 1), Fraction(4, 3))
    """
    lag, w = whole(shift, "shift", least=1), rational(weight, "weight")
    if w < 0:
        raise InputError("weight", str(w), "an age weight is not negative")
    shares = [rational(x, f"slacks[{i}]") for i, x in enumerate(listed(slacks, "slacks"))]
    if len(shares) > MAX_SLACKS:
        raise LimitError("slacks", f"{len(shares)} slacks", f"at most {MAX_SLACKS} slacks")
    return Probe(rewards, _identity(rewards), tuple(_scaling(rewards, share) for share in shares), _injection(rewards, lag, w))


def _identity(rewards: Rewards) -> IdentityKernel:
    holds, misses, greatest = True, 0, Fraction(0)
    for group in rewards.groups:
        for fast, slow in group:
            holds = holds and fast + (slow - fast) == slow
            error = abs(Fraction(float(fast) + (float(slow) - float(fast))) - Fraction(float(slow)))
            misses += error != 0
            greatest = max(greatest, error)
    return IdentityKernel(holds, misses, greatest)


def _scaling(rewards: Rewards, slack: Fraction) -> SlackScaling:
    unit = rewards.unit * slack.denominator
    total = squares = residuals = residual_squares = 0
    for group in rewards.scaled():
        for fast, slow in group:
            residual = slow - fast
            error = fast * slack.denominator + (slack.denominator - slack.numerator) * residual - slow * slack.denominator
            total += error
            squares += error**2
            residuals += residual
            residual_squares += residual**2
    holds = total == -slack.numerator * residuals and squares == slack.numerator**2 * residual_squares
    return SlackScaling(slack, Fraction(total, unit), Fraction(squares, rewards.complete * unit**2), holds)


def _injection(rewards: Rewards, shift: int, weight: Fraction) -> ForwardInjection | None:
    groups = [[slow - fast for fast, slow in group] for group in rewards.scaled() if len(group) > shift]
    rows = sum(map(len, groups))
    if not rows:
        return None
    p, q = weight.numerator, weight.denominator
    squares = errors = products = 0
    squared_means = Fraction(0)
    for group in groups:
        squared_means += Fraction(sum(group) ** 2, len(group))
        for i, residual in enumerate(group):
            injected = group[i - shift]
            squares += residual**2
            products += residual * injected
            errors += (p * injected - q * residual) ** 2
    scale = rows * rewards.unit**2
    dropped, error, squared_mean = Fraction(squares, scale), Fraction(errors, scale * q**2), squared_means / scale
    variance = dropped - squared_mean
    average = (1 - weight) ** 2 * squared_mean + (1 + weight**2) * variance
    return ForwardInjection(
        shift=shift,
        weight=weight,
        rows=rows,
        left_out=rewards.complete - rows,
        dropped=dropped,
        error=error,
        helps=error < dropped,
        variance=variance,
        squared_mean=squared_mean,
        covariance=Fraction(products, scale) - squared_mean,
        average_error=average,
        helps_on_average=average < dropped,
        best_weight=Fraction(products, squares) if squares else None,
    )


def _prompt(value: Any, place: str) -> str:
    if value is None or value == "":
        raise InputError(place, "missing", "the prompt of a row")
    if isinstance(value, (str, int)):
        return str(value)
    raise InputError(place, str(value)[:100], "a prompt is a text or an integer")


def _step(value: Any, place: str) -> Fraction:
    number = log_double(value, place)
    if number is None:
        raise InputError(place, "missing", "the step of a row")
    return number
