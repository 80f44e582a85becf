"""assert_exact: what it accepts, what its failures say, and that pytest offers it."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction as F
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exactgrpo import InexactInputError, InputError, Real, advantages
from exactgrpo.pytest_plugin import SLACK_ULPS, advantage_conventions, assert_exact, tie_conventions

ROOT_HALF = 0.7071067811865476  # the double nearest to sqrt(2)/2
NEXT = float(np.nextafter(ROOT_HALF, 1))


def failure(*arguments: Any, **options: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_exact(*arguments, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("actual", "expected", "options"),
    [
        (0.1, "1/10", {}),
        (float(np.float32(0.1)), "0.1", {"dtype": "float32"}),
        (ROOT_HALF, "sqrt(2)/2", {}),
        (NEXT, "sqrt(2)/2", {"ulps": 2}),
        (F(1, 3), "1/3", {}),
        (Real.of("sqrt(8)"), "2*sqrt(2)", {}),
        ([[1, 0.5], []], [[1, "1/2"], []], {}),
        (np.array([0.5, 0.25]), ["1/2", "1/4"], {}),
        (0.0, 0, {}),
        (5e-324, "2^-1074", {}),
    ],
)
def test_right_numbers_pass(actual: Any, expected: Any, options: dict[str, Any]) -> None:
    assert_exact(actual, expected, **options)


def test_a_neighbour_is_one_ulp_away_at_most() -> None:
    # sqrt(2)/2 lies 0.43... ulps below its nearest double, so 1.43... below the next one
    assert "sqrt(2)/2" in failure(NEXT, "sqrt(2)/2")
    assert "1.4" in failure(NEXT, "sqrt(2)/2")
    assert failure(NEXT, "sqrt(2)/2", ulps=1)


@pytest.mark.parametrize(
    ("actual", "expected", "text"),
    [
        (0.3, "1/3", "expected 1/3, got 0.3"),
        (F(1, 4), "1/3", "expected 1/3, got Fraction(1, 4)"),
        (float("nan"), 1, "got nan"),
        (float("inf"), 1, "got inf"),
        ([1.0], [1, 2], "shapes differ: expected 2 numbers, the last at [1], got 1 numbers"),
        (1.0, [1], "shapes differ"),
        ([1.0, 2.0, 3.5], [1, 2, 3], "1 of 3 numbers differ\n  [2]: expected 3, got 3.5"),
    ],
)
def test_wrong_numbers_fail_with_exact_values(actual: Any, expected: Any, text: str) -> None:
    assert text in failure(actual, expected)


@pytest.mark.parametrize(("actual", "expected"), [([[1.0], []], [[1]]), ([], [[]]), ([[]], 1), ([[1.0], []], [[1], [[]]])])
def test_empty_lists_belong_to_the_shape(actual: Any, expected: Any) -> None:
    assert "shapes differ" in failure(actual, expected)


def test_the_ulp_is_that_of_the_exact_number() -> None:
    """Just below 1 it is 2^-53, at 1 and above 2^-52: a number that 30 digits cannot tell from 1 has the smaller one."""
    assert "1.00 ulps of float64" in failure(float(np.nextafter(1, 0)), Real.of(1) - F(1, 10**40))
    assert "0.500 ulps of float64" in failure(float(np.nextafter(1, 0)), Real.of(1) + F(1, 10**40))
    assert "1.00 ulps of float64" in failure(5e-324, 0)
    assert_exact(5e-324, 0, ulps=1)


def test_an_infinity_is_right_only_where_the_format_overflows() -> None:
    assert_exact(float("inf"), "10^400")
    assert_exact(float("-inf"), "-(10^39)", dtype="float32")
    assert "got inf" in failure(float("inf"), "10^39")
    assert "got -inf" in failure(float("-inf"), "10^400")


@pytest.mark.parametrize(
    ("name", "compute"),
    [
        ("sample standard deviation", lambda r: (r - r.mean()) / r.std(ddof=1)),
        ("population standard deviation + 1e-4", lambda r: (r - r.mean()) / (r.std() + 1e-4)),
        ("sample standard deviation + 1e-6", lambda r: (r - r.mean()) / (r.std(ddof=1) + 1e-6)),
        ("no standard deviation (Dr. GRPO)", lambda r: r - r.mean()),
        ("leave-one-out baseline (RLOO)", lambda r: (r - r.mean()) * len(r) / (len(r) - 1)),
    ],
)
def test_the_convention_that_explains_a_failure_is_named(name: str, compute: Any) -> None:
    rewards = [0, 1, 1, 3, 7]
    text = failure(compute(np.array(rewards, float)), advantages(rewards), conventions=advantage_conventions(rewards), ulps=4)
    assert text.splitlines()[-1] == f"  explained by: {name}"


def test_a_zero_that_rounding_missed_hides_no_convention() -> None:
    """The mean of 0.1, 0.2, 0.3 in doubles is not 0.2, so the middle advantage is about 1e-16 where the convention says 0."""
    rewards, computed = ["1/10", "1/5", "3/10"], np.array([0.1, 0.2, 0.3])
    computed = (computed - computed.mean()) / computed.std(ddof=1)
    assert computed[1] != 0
    text = failure(computed, advantages(rewards), conventions=advantage_conventions(rewards), ulps=4)
    assert text.splitlines()[-1] == "  explained by: sample standard deviation"


def test_only_the_nearest_convention_is_named() -> None:
    """At single precision the sample standard deviations with 1e-6 and 1e-8 lie within 64 ulps too."""
    found = [0.70710678, -0.70710678]
    text = failure(found, advantages([1, 0]), dtype="float32", conventions=advantage_conventions([1, 0]))
    assert text.splitlines()[-1] == "  explained by: sample standard deviation"
    both = failure(
        found,
        advantages([1, 0]),
        conventions={"one": [5, 0], "a": ["sqrt(2)/2", "-sqrt(2)/2"]},
        dtype="float32",
    )
    assert both.splitlines()[-1] == "  explained by: a"


def names(text: str) -> str | None:
    """Which conventions a failure says would explain it."""
    last = text.splitlines()[-1].strip()
    return last.removeprefix("explained by: ") if last.startswith("explained by") else None


@pytest.mark.parametrize(("dtype", "ulp"), [("float64", 2.0**-52), ("float32", 2.0**-23), ("float16", 2.0**-10), ("bfloat16", 2.0**-7)])
def test_the_slack_of_a_convention_is_that_of_the_format(dtype: str, ulp: float) -> None:
    slack = SLACK_ULPS[dtype]
    options: dict[str, Any] = {"dtype": dtype, "conventions": {"half of it": 1}}
    assert names(failure(1 + slack * ulp, 2, **options)) == "half of it"
    assert names(failure(1 + (slack + 1) * ulp, 2, **options)) is None


def test_a_low_precision_explains_nothing_by_being_coarse() -> None:
    """64 ulps of bfloat16 are half of a number: 0.75 is neither the sample standard deviation's 0.707 nor Dr. GRPO's 0.5."""
    assert names(failure([0.75, -0.75], advantages([1, 0]), dtype="bfloat16", rewards=[1, 0])) is None
    nearest = names(failure([0.70703125, -0.70703125], advantages([1, 0]), dtype="bfloat16", rewards=[1, 0]))
    assert nearest == "sample standard deviation + 1e-4"


@pytest.mark.parametrize("value", [1, "1 + 2^-60", "1 - 2^-60", "1 - 2^-54", "1 + 2^-51"])
def test_a_convention_that_is_no_nearer_than_the_expected_number_is_not_offered(value: Any) -> None:
    assert names(failure(1 - 2.0**-52, 1, conventions={"the same": value})) is None
    assert names(failure([1 - 2.0**-52, 0.5], [1, "1/2"], conventions={"the same": [value, "1/2"]})) is None
    assert names(failure(1 - 2.0**-52, 1, conventions={"nearer": "1 - 2^-52"})) == "nearer"


def test_half_precision_is_a_format() -> None:
    for dtype in ("float16", np.float16, np.dtype("float16"), np.half):
        assert_exact(float(np.float16(0.1)), "1/10", dtype=dtype)
        assert_exact(np.float16(65504), 65519, dtype=dtype)
        assert_exact(float("inf"), 65520, dtype=dtype)
        assert_exact(2.0**-24, "2^-24", dtype=dtype)
        assert "1.00 ulps of float16" in failure(1 + 2.0**-10, 1, dtype=dtype)
        assert "1.00 ulps of float16" in failure(2.0**-24, 0, dtype=dtype)


class FromTorch:
    """A dtype as PyTorch shows it."""

    def __repr__(self) -> str:
        return "torch.bfloat16"


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (np.float64, "float64"),
        (np.float32, "float32"),
        (np.dtype("<f4"), "float32"),
        (np.zeros(1, np.float32).dtype, "float32"),
        (np.single, "float32"),
        (FromTorch(), "bfloat16"),
    ],
)
def test_dtypes_of_array_libraries_are_formats(dtype: Any, name: str) -> None:
    assert f"ulps of {name} away" in failure(0.3, "1/3", dtype=dtype)


@pytest.mark.parametrize(
    "dtype", ["float8", "int32", np.int64, np.dtype("complex64"), np.longdouble, 32, None, float, ["float32"], "", "FLOAT32"]
)
def test_another_dtype_is_an_error_even_where_the_numbers_are_right(dtype: Any) -> None:
    with pytest.raises(InputError, match=r"^dtype: .*one of float64, float32, float16, bfloat16") as caught:
        assert_exact(0.5, "1/2", dtype=dtype)
    assert "\n" not in str(caught.value)


def test_conventions_are_chosen_by_name() -> None:
    found, wanted = [0.7071067811865475, -0.7071067811865475], advantages([1, 0])
    assert names(failure(found, wanted, rewards=[1, 0])) == "sample standard deviation"
    chosen = ["no standard deviation (Dr. GRPO)", "sample standard deviation"]
    assert names(failure(found, wanted, rewards=[1, 0], conventions=chosen)) == "sample standard deviation"
    assert names(failure(found, wanted, rewards=[1, 0], conventions=chosen[:1])) is None
    assert names(failure(found, wanted, rewards=[1, 0], conventions=[])) is None
    for name in advantage_conventions([1, 0]):
        assert_exact([1, -1], wanted, rewards=[1, 0], conventions=[name])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"conventions": ["sample"], "rewards": [1, 0]}, "conventions: 'sample': one of no standard deviation"),
        ({"conventions": [["sample"]], "rewards": [1, 0]}, "one of no standard deviation"),
        ({"conventions": "sample standard deviation", "rewards": [1, 0]}, "a list of names where `rewards` are given"),
        ({"conventions": {"a": [1, -1]}, "rewards": [1, 0]}, "a list of names where `rewards` are given"),
        ({"conventions": ["sample standard deviation"]}, "a list of names where `rewards` are given"),
        ({"conventions": 5}, "a list of names where `rewards` are given"),
    ],
)
def test_unknown_conventions_are_an_error_even_where_the_numbers_are_right(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        assert_exact([1, -1], [1, -1], **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_convention_that_a_group_does_not_have_hides_no_failure() -> None:
    """A group of one has no leave-one-out baseline."""
    assert "expected 0, got 0.5" in failure([0.5], [0], rewards=[3])


def test_exact_values_are_explained_too() -> None:
    text = failure([Real.of(1) / 2, "-1/2"], advantages([1, 0]), conventions=advantage_conventions([1, 0]))
    assert text.splitlines()[-1] == "  explained by: no standard deviation (Dr. GRPO)"


def test_what_no_convention_explains_is_left_unexplained() -> None:
    text = failure([0.25, -0.25], advantages([1, 0]), conventions=advantage_conventions([1, 0]))
    assert "explained" not in text


@pytest.mark.parametrize(
    ("found", "name"), [(0.5, "ties split in halves (A/2)"), (0.75, "ties split twice (3A/4)"), (0.0, "the clipped branch (0)")]
)
def test_derivatives_at_ties_are_explained(found: float, name: str) -> None:
    assert name in failure(found, 1, conventions=tie_conventions(1))


def test_an_expected_float_is_refused() -> None:
    with pytest.raises(InexactInputError):
        assert_exact(0.1, 0.1)


def test_pytest_offers_the_fixtures(tmp_path: Path) -> None:
    (tmp_path / "test_user.py").write_text(
        "def test_right(exact, assert_exact):\n    assert_exact(0.5, exact.Real.of('1/2'))\n\n"
        "def test_wrong(assert_exact):\n    assert_exact(0.3, '1/3')\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 failed, 1 passed" in done.stdout
    assert "expected 1/3, got 0.3" in done.stdout


def test_a_test_that_searches_leaves_nothing_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "test_user.py").write_text(
        "from exactgrpo.claims.registry import find_claim\n\n"
        "def test_holds(exact):\n    assert exact.verify(find_claim('rloo-is-centring-rescaled'), instances=100).is_expected\n"
        "def test_wrong(assert_exact):\n    assert_exact(0.3, '1/3')\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    variables = {name: value for name, value in os.environ.items() if name != "HYPOTHESIS_STORAGE_DIRECTORY"}
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert "1 failed, 1 passed" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["test_user.py"]


def test_the_plugin_imports_nothing_heavy() -> None:
    code = "import sys, exactgrpo.pytest_plugin; print([m for m in ('numpy', 'flint', 'sympy', 'hypothesis') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
