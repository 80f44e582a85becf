"""The pytest plugin: fixtures `exact` (the package) and `assert_exact`, which says how far off a float is, and by which convention."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any

import pytest

from exactgrpo.errors import InputError, RewardError, UndecidedError

if TYPE_CHECKING:
    from exactgrpo.numbers.real import Real
    from exactgrpo.numbers.rounding import BinaryFormat

SLACK_ULPS = {"float64": 64, "float32": 16, "float16": 4, "bfloat16": 2}
"""The formats, and within how many units in the last place of what a convention gives it explains a value."""


@pytest.fixture
def exact() -> Any:
    """The package `exactgrpo`, imported when a test first asks for it."""
    import exactgrpo

    return exactgrpo


@pytest.fixture(name="assert_exact")
def _assert_exact() -> Callable[..., None]:
    """The function `assert_exact` of this module."""
    return assert_exact


def assert_exact(
    actual: Any,
    expected: Any,
    *,
    dtype: Any = "float64",
    ulps: int = 0,
    conventions: Mapping[str, Any] | Sequence[str] | None = None,
    rewards: Sequence[Any] | None = None,
) -> None:
    """Fail unless `actual` is `expected`, entry by entry.

    Both are numbers or lists of them, nested alike; `actual` may be an array or a tensor (anything with `tolist`). Expected numbers are
    exact (int, Fraction, Decimal, text, Real). A float of `actual` is taken as the binary number that it is: with `ulps` = 0 it must
    be the expected number correctly rounded to `dtype`, else it may be that many units in the last place of the expected number away.
    An exact number must be equal. `dtype` is the name of a format (float64, float32, float16, bfloat16) or an array library's dtype.

    The failure shows exact values, the gap in ulps, and which of the `conventions` would explain it: a table of values by name, shaped
    as `expected` (see `tie_conventions`), or, where `rewards` are those of the group, names of `advantage_conventions` (all by default).
    A convention explains what was found if that lies within a few ulps of what it gives, and at most half as far from it as from the
    expected numbers.

    >>> from exactgrpo import advantages
    >>> assert_exact([2.0**0.5 / 2, -0.7071067811865475], ["sqrt(2)/2", "-sqrt(2)/2"], ulps=1)
    >>> rewards = [1, 0]
    >>> try:
    ...     assert_exact([0.7071067811865475, -0.7071067811865475], advantages(rewards), rewards=rewards)
    ... except AssertionError as failure:
    ...     print(failure)
    2 of 2 numbers differ
      [0]: expected 1, got 0.7071067811865475, 1.32e15 ulps of float64 away
      [1]: expected -1, got -0.7071067811865475, 1.32e15 ulps of float64 away
      explained by: sample standard deviation
    """
    __tracebackhide__ = True
    name, target = _format(dtype)
    tried = _tried(conventions, rewards)
    found, wanted = list(_entries(actual, "")), list(_entries(expected, ""))
    if _places(found) != _places(wanted):
        raise AssertionError(f"shapes differ: expected {_shape(wanted)}, got {_shape(found)}")
    found, wanted = _numbers(found), _numbers(wanted)
    wrong = [
        f"  {place or 'value'}: {text}"
        for (place, x), (_, y) in zip(found, wanted, strict=True)
        if (text := _difference(x, _real(y, place), name, target, ulps)) is not None
    ]
    if not wrong:
        return
    lines = [f"{len(wrong)} of {len(found)} number{'s differ' if len(found) > 1 else ' differs'}", *wrong[:20]]
    if len(wrong) > 20:
        lines.append(f"  ... and {len(wrong) - 20} more")
    with suppress(UndecidedError):
        if names := _explaining(found, wanted, tried, target, SLACK_ULPS[name]):
            lines.append(f"  explained by: {', '.join(names)}")
    raise AssertionError("\n".join(lines))


def advantage_conventions(rewards: Sequence[Any]) -> dict[str, tuple[Real, ...]]:
    """What known conventions give in place of the advantages of a group, by name."""
    return {name: rule(rewards) for name, rule in _advantage_rules().items()}


def _advantage_rules() -> dict[str, Callable[[Sequence[Any]], tuple[Real, ...]]]:
    from exactgrpo.field import advantages as field

    out: dict[str, Callable[[Sequence[Any]], tuple[Real, ...]]] = {
        "no standard deviation (Dr. GRPO)": field.dr_grpo,
        "leave-one-out baseline (RLOO)": field.rloo,
        "sample standard deviation": field.sample_normalised,
    }
    for divisor in ("population", "sample"):
        for epsilon in ("1e-4", "1e-6", "1e-8"):
            out[f"{divisor} standard deviation + {epsilon}"] = partial(field.epsilon_normalised, epsilon=epsilon, divisor=divisor)
    return out


def tie_conventions(advantage: Any) -> dict[str, Real]:
    """What automatic differentiation is known to return for the derivative in the ratio of a term on a bound, by name."""
    a = _real(advantage, "advantage")
    return {
        "the unclipped branch (A)": a,
        "the clipped branch (0)": a * 0,
        "ties split in halves (A/2)": a / 2,
        "ties split twice (3A/4)": a * 3 / 4,
        "ties split twice (A/4)": a / 4,
    }


def _format(dtype: Any) -> tuple[str, BinaryFormat]:
    """The name of a dtype and its format; NumPy's have names, its scalar types are classes, PyTorch's are texts after "torch."."""
    from exactgrpo.numbers import rounding

    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    name = str(name).removeprefix("torch.")
    if name not in SLACK_ULPS:
        raise InputError("dtype", dtype, f"one of {', '.join(SLACK_ULPS)}, as text or as the dtype of an array library")
    return name, getattr(rounding, name.upper())


def _tried(conventions: Mapping[str, Any] | Sequence[str] | None, rewards: Sequence[Any] | None) -> dict[str, Callable[[], Any]]:
    """The conventions by name, none computed yet."""
    from exactgrpo.numbers.inputs import listed

    if rewards is None and conventions is None:
        return {}
    if rewards is None and isinstance(conventions, Mapping):
        return {name: partial(conventions.__getitem__, name) for name in conventions}
    if rewards is None:
        raise InputError("conventions", conventions, "a table of values by name, or a list of names where `rewards` are given")
    rules = _advantage_rules()
    names = rules if conventions is None else listed(conventions, "conventions", "a list of names where `rewards` are given")
    for name in names:
        if name not in list(rules):  # it may be anything
            raise InputError("conventions", name, f"one of {'; '.join(rules)}")
    return {name: partial(rules[name], rewards) for name in names}


def _entries(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        if not value:
            yield f"{place}[]", _EMPTY
        for i, x in enumerate(value):
            yield from _entries(x, f"{place}[{i}]")
    else:
        yield place, value


_EMPTY = object()
"""Stands for an empty list, which has a place in the shape and no number."""


def _places(entries: Sequence[tuple[str, Any]]) -> list[str]:
    return [place for place, _ in entries]


def _numbers(entries: Sequence[tuple[str, Any]]) -> list[tuple[str, Any]]:
    return [(place, x) for place, x in entries if x is not _EMPTY]


def _shape(entries: Sequence[tuple[str, Any]]) -> str:
    if _places(entries) == [""]:
        return "one number"
    return f"{len(_numbers(entries))} numbers" + (f", the last at {entries[-1][0]}" if entries else "")


def _real(x: Any, place: str) -> Real:
    from exactgrpo.numbers.real import Real

    return Real.of(x, place or "expected")


def _difference(actual: Any, expected: Real, name: str, target: BinaryFormat, ulps: int) -> str | None:
    """How an entry differs; None if it does not."""
    from exactgrpo.numbers.rounding import to_binary

    shown = expected.exact() or f"{expected.digits(20)}..."
    if not isinstance(actual, float):
        return None if _real(actual, "actual") == expected else f"expected {shown}, got {actual!r}"
    if actual == to_binary(expected.expression, target):
        return None
    if not isfinite(actual):
        return f"expected {shown}, got {actual!r}"
    gap = abs(expected - Fraction(actual)) / _ulp(expected, target)
    if ulps and gap <= ulps:
        return None
    return f"expected {shown}, got {actual!r}, {gap.digits(3)} ulps of {name} away"


def _ulp(x: Real, target: BinaryFormat) -> Fraction:
    """The unit in the last place of x: 2^(e - p + 1) where 2^e <= |x| < 2^(e + 1), decided exactly; the smallest one at 0."""
    size = abs(x)
    if size == 0:
        return Fraction(2) ** target.smallest
    lower, _ = size.enclose(5)
    power = lower.numerator.bit_length() - lower.denominator.bit_length() + 1
    while size < Fraction(2) ** power:
        power -= 1
    return Fraction(2) ** max(target.smallest, power - target.precision + 1)


def _explaining(
    found: Sequence[tuple[str, Any]],
    wanted: Sequence[tuple[str, Any]],
    tried: Mapping[str, Callable[[], Any]],
    target: BinaryFormat,
    slack: int,
) -> list[str]:
    """The names of the nearest conventions that explain what was found; two are as near within a factor of two.

    Distances are in ulps of the largest value: rounding may leave a small number where a zero belongs.
    """
    wrong = _gap(found, wanted)
    distances = {}
    for name, rule in tried.items():
        with suppress(RewardError):
            values = _numbers(list(_entries(rule(), "")))
            gap = _gap(found, values)
            if wrong is not None and gap is not None and gap * 2 <= wrong:
                distances[name] = gap / max(_ulp(_real(y, place), target) for place, y in values)
    nearest = min(distances.values(), default=slack)
    return [name for name, distance in distances.items() if distance <= 2 * nearest and distance <= slack]


def _gap(found: Sequence[tuple[str, Any]], values: Sequence[tuple[str, Any]]) -> Real | None:
    """The largest difference; None where there is none, or an infinite one."""
    if not found or _places(found) != _places(values) or not all(isfinite(x) for _, x in found if isinstance(x, float)):
        return None
    return max(
        abs(_real(y, place) - (Fraction(x) if isinstance(x, float) else _real(x, "actual")))
        for (_, x), (place, y) in zip(found, values, strict=True)
    )
