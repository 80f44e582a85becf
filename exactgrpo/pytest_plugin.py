"""The pytest plugin: fixtures `exact` (the package) and `assert_exact`, which says how far off a float is, and by which convention."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from exactgrpo.numbers.real import Real

Dtype = Literal["float64", "float32", "bfloat16"]
PRECISION: dict[str, int] = {"float64": 53, "float32": 24, "bfloat16": 8}
SMALLEST: dict[str, int] = {"float64": -1074, "float32": -149, "bfloat16": -133}
SLACK_ULPS = 64
"""A convention explains a value that is this close to what it gives."""


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
    actual: Any, expected: Any, *, dtype: Dtype = "float64", ulps: int = 0, conventions: Mapping[str, Any] | None = None
) -> None:
    """Fail unless `actual` is `expected`, entry by entry.

    Both are numbers or lists of them, nested alike; `actual` may be an array or a tensor (anything with `tolist`). Expected numbers are
    exact (int, Fraction, Decimal, text, Real). A float of `actual` is taken as the binary number that it is: with `ulps` = 0 it must
    be the expected number correctly rounded to `dtype`, else it may be that many units in the last place of the expected number away.
    An exact number must be equal. The failure shows exact values, the gap in ulps, and which of the `conventions` (name -> values,
    shaped as `expected`; see `advantage_conventions` and `tie_conventions`) gives what was found.

    >>> from exactgrpo import advantages
    >>> assert_exact([2.0**0.5 / 2, -0.7071067811865475], ["sqrt(2)/2", "-sqrt(2)/2"], ulps=1)
    >>> rewards = [1, 0]
    >>> try:
    ...     assert_exact([0.7071067811865475, -0.7071067811865475], advantages(rewards), conventions=advantage_conventions(rewards))
    ... except AssertionError as failure:
    ...     print(failure)
    2 of 2 numbers differ
      [0]: expected 1, got 0.7071067811865475, 1.32e15 ulps of float64 away
      [1]: expected -1, got -0.7071067811865475, 1.32e15 ulps of float64 away
      explained by: sample standard deviation
    """
    __tracebackhide__ = True
    found, wanted = list(_entries(actual, "")), list(_entries(expected, ""))
    if _places(found) != _places(wanted):
        raise AssertionError(f"shapes differ: expected {_shape(wanted)}, got {_shape(found)}")
    found, wanted = _numbers(found), _numbers(wanted)
    wrong = [
        f"  {place or 'value'}: {text}"
        for (place, x), (_, y) in zip(found, wanted, strict=True)
        if (text := _difference(x, _real(y, place), dtype, ulps)) is not None
    ]
    if not wrong:
        return
    lines = [f"{len(wrong)} of {len(found)} number{'s differ' if len(found) > 1 else ' differs'}", *wrong[:20]]
    if len(wrong) > 20:
        lines.append(f"  ... and {len(wrong) - 20} more")
    names = _explaining(found, conventions or {}, dtype)
    if names:
        lines.append(f"  explained by: {', '.join(names)}")
    raise AssertionError("\n".join(lines))


def advantage_conventions(rewards: Sequence[Any]) -> dict[str, tuple[Real, ...]]:
    """What known conventions give in place of the advantages of a group, by name."""
    from exactgrpo.field import advantages as field

    out: dict[str, tuple[Real, ...]] = {
        "no standard deviation (Dr. GRPO)": field.dr_grpo(rewards),
        "leave-one-out baseline (RLOO)": field.rloo(rewards),
        "sample standard deviation": field.sample_normalised(rewards),
    }
    for divisor in ("population", "sample"):
        for epsilon in ("1e-4", "1e-6", "1e-8"):
            out[f"{divisor} standard deviation + {epsilon}"] = field.epsilon_normalised(rewards, epsilon=epsilon, divisor=divisor)
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


def _difference(actual: Any, expected: Real, dtype: Dtype, ulps: int) -> str | None:
    """How an entry differs; None if it does not."""
    shown = expected.exact() or f"{expected.digits(20)}..."
    if not isinstance(actual, float):
        return None if _real(actual, "actual") == expected else f"expected {shown}, got {actual!r}"
    rounded = {"float64": expected.to_float64, "float32": expected.to_float32, "bfloat16": expected.to_bfloat16}[dtype]()
    if actual == rounded:
        return None
    if not isfinite(actual):
        return f"expected {shown}, got {actual!r}"
    gap = abs(expected - Fraction(actual)) / _ulp(expected, dtype)
    if ulps and gap <= ulps:
        return None
    return f"expected {shown}, got {actual!r}, {gap.digits(3)} ulps of {dtype} away"


def _ulp(x: Real, dtype: Dtype) -> Fraction:
    """The unit in the last place of x: 2^(e - p + 1) where 2^e <= |x| < 2^(e + 1), decided exactly; the smallest one at 0."""
    size = abs(x)
    if size == 0:
        return Fraction(2) ** SMALLEST[dtype]
    lower, _ = size.enclose(5)
    power = lower.numerator.bit_length() - lower.denominator.bit_length() + 1
    while size < Fraction(2) ** power:
        power -= 1
    return Fraction(2) ** max(SMALLEST[dtype], power - PRECISION[dtype] + 1)


def _explaining(found: Sequence[tuple[str, Any]], conventions: Mapping[str, Any], dtype: Dtype) -> list[str]:
    """The names of the nearest conventions, if they give what was found up to rounding errors; two are as near within a factor of two."""
    distances = {name: gap for name, values in conventions.items() if (gap := _distance(found, values, dtype)) is not None}
    nearest = min(distances.values(), default=SLACK_ULPS)
    return [name for name, gap in distances.items() if gap <= 2 * nearest and gap <= SLACK_ULPS]


def _distance(found: Sequence[tuple[str, Any]], values: Any, dtype: Dtype) -> Real | None:
    """The largest difference, in ulps of the largest value: rounding may leave a small number where a zero belongs."""
    other = _numbers(list(_entries(values, "")))
    if not found or _places(found) != _places(other):
        return None
    pairs = [(x, _real(y, place)) for (place, x), (_, y) in zip(found, other, strict=True)]
    if not all(isfinite(x) for x, _ in pairs if isinstance(x, float)):
        return None
    unit = max(_ulp(y, dtype) for _, y in pairs)
    return max(abs(y - (Fraction(x) if isinstance(x, float) else _real(x, "actual"))) / unit for x, y in pairs)
