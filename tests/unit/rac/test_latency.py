"""Latency files: frequencies by hand and by a second reader, and refusals in one line."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction as F
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import exactgrpo.rac.latency
from exactgrpo import InputError, LimitError, ParseError
from exactgrpo.rac.delay_law import DelayLaw
from exactgrpo.rac.latency import latency_law

ROWS = """provider,size,error_code,end_to_end_s
a,7b,,0.9999999999999999999999
a,7b,,1.0
b,7b,429,0
b,13b,-100,2.5
b,13b,,1e1
b,13b,,
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "latency.csv"
    path.write_text(ROWS, encoding="utf-8")
    return path


def test_frequencies_and_failures(file: Path) -> None:
    seen = latency_law(file, column="end_to_end_s", unit=1, failed="error_code")
    assert seen == DelayLaw.of({0: "1/6", 1: "1/6", 10: "1/6", "never": "1/2"})


def test_without_a_column_of_failures_only_empty_latencies_are_lost(file: Path) -> None:
    seen = latency_law(file, column="end_to_end_s", unit="1/2")
    assert seen == DelayLaw.of({0: "1/6", 1: "1/6", 2: "1/6", 5: "1/6", 20: "1/6", "never": "1/6"})


def test_rows_are_chosen_by_the_texts_of_columns(file: Path) -> None:
    assert latency_law(file, column="end_to_end_s", unit=1, where={"provider": "b", "size": "13b"}) == DelayLaw.of(
        {2: "1/3", 10: "1/3", "never": "1/3"}
    )
    assert latency_law(file, column="end_to_end_s", unit=1, failed="error_code", where={"size": "13b"}).never == F(2, 3)


@pytest.mark.parametrize(
    ("text", "is_lost"), [("", False), ("0", False), ("False", False), ("no", False), ("true", True), ("-100", True), ("x", True)]
)
def test_what_counts_as_failed(tmp_path: Path, text: str, is_lost: bool) -> None:
    path = tmp_path / "judge.csv"
    path.write_text(f"s,bad\n3,{text}\n", encoding="utf-8")
    assert latency_law(path, column="s", unit=2, failed="bad") == DelayLaw.of({"never": 1} if is_lost else {1: 1})


@settings(max_examples=100, deadline=None)
@given(
    latencies=st.lists(st.none() | st.tuples(st.integers(0, 140_000), st.integers(0, 4)), min_size=1, max_size=20),
    unit=st.fractions(F(1, 7), 50, max_denominator=7),
)
def test_the_law_is_the_law_of_the_rows(tmp_path_factory: pytest.TempPathFactory, latencies: list[Any], unit: F) -> None:
    path = tmp_path_factory.mktemp("rows") / "latency.csv"
    texts = ["" if x is None else f"{x[0]}e-{x[1]}" for x in latencies]
    path.write_text("i,s\r\n" + "".join(f'{i},"{text}"\r\n' for i, text in enumerate(texts)), encoding="utf-8")
    exact = ["never" if x is None else int(F(x[0], 10 ** x[1]) / unit) for x in latencies]
    expected = {key: F(n, len(latencies)) for key, n in Counter(exact).items()}
    assert latency_law(path, column="s", unit=unit) == DelayLaw.of(expected)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("t\n1\n", "column: 's': no such column; there are t"),
        ("", "column: 's': no such column; there are none"),
        ("s,s\n1,2\n", "column: 's': the column stands twice"),
        ("s\n", "rows: 'none': at least one row of latencies"),
        ("s,t\n1,2\n3\n", "line 3: '1 entries': one for each of the 2 columns"),
        ("s\n1\nabc\n", "line 3, column s: 'abc': a latency is a decimal number, or empty"),
        ("s\nnan\n", "line 2, column s: 'nan': a latency is a decimal number, or empty"),
        ("s\n1_0\n", "line 2, column s: '1_0': a latency is a decimal number, or empty"),
        ("s\n١\n", "line 2, column s: '١': a latency is a decimal number, or empty"),
        ("s\n-1\n", "line 2, column s: '-1': a latency is not negative"),
        ("s\n1e7\n", "line 2, column s: '1e7': a delay of at most 1000000 steps of 1"),
        ("s\n1e99999\n", "line 2, column s: '1E+99999': decimal exponents are at most 10000 in absolute value"),
        ('s\n"1\n', "line 2: '': CSV: unexpected end of data"),
        ("s\n" + "1" * 200_000, "line 2: '': CSV: field larger than field limit (131072)"),
        ("s\n" + "\n".join(map(str, range(10_002))), "s: '10002 delays': at most 10001"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, line: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as refused:
        latency_law(path, column="s", unit=1)
    assert str(refused.value) == f"{path}: {line}"


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        latency_law(tmp_path / "missing.csv", column="s", unit=1)
    (tmp_path / "latin.csv").write_bytes(b"s\n\xe9\n")
    with pytest.raises(ParseError, match="UTF-8"):
        latency_law(tmp_path / "latin.csv", column="s", unit=1)
    monkeypatch.setattr(exactgrpo.rac.latency, "MAX_BYTES", 2**20)
    (tmp_path / "large.csv").write_text("s\n" + "1\n" * 2**19, encoding="utf-8")
    with pytest.raises(LimitError, match="at most 1 MB"):
        latency_law(tmp_path / "large.csv", column="s", unit=1)


@pytest.mark.parametrize("unit", [0, -1, "sqrt(2)", 0.5, None])
def test_the_unit_is_a_positive_rational(file: Path, unit: Any) -> None:
    with pytest.raises(InputError, match=r"^unit: "):
        latency_law(file, column="end_to_end_s", unit=unit)
