"""Training logs, CSV or JSONL: their rows, and their numbers as the doubles that they print."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from exactgrpo.errors import InputError, ParseError
from exactgrpo.spec.reading import MAX_NUMBER_DIGITS, parse_data, read_utf8

MAX_BYTES = 64 * 2**20
DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,6})?", re.ASCII)


def log_rows(path: str | os.PathLike[str], needed: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a .csv or .jsonl file of at most 64 MB in UTF-8, each with its line, and with columns that some row has.

    Entries of a CSV file are texts; a JSONL file holds one object a line, and leaves out what is missing; blank lines are skipped.
    InputError and ParseError name the line.
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".csv":
        return csv_rows(read_utf8(path, most=MAX_BYTES), needed)
    if suffix == ".jsonl":
        return _json_rows(read_utf8(path, most=MAX_BYTES), needed)
    raise InputError("file name", str(path), "logs end in .csv or .jsonl")


def csv_rows(text: str, needed: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a CSV text with a line of column names, each with the line that it ends on."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        names = next(reader, [])
        for name in needed:
            if names.count(name) != 1:
                rule = "the column stands twice" if name in names else f"no such column; there are {', '.join(names) or 'none'}"
                raise InputError("column", name, rule)
        for row in reader:
            if len(row) != len(names) and row:
                raise ParseError(f"line {reader.line_num}", f"{len(row)} entries", f"one for each of the {len(names)} columns")
            if row:
                yield reader.line_num, dict(zip(names, row, strict=True))
    except csv.Error as error:
        raise ParseError(f"line {reader.line_num}", "", f"CSV: {error}") from None


def _json_rows(text: str, needed: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    seen: dict[str, None] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = parse_data(line, "json")
        except InputError as error:  # which knows of one line only
            place = re.sub(r"^(line 1|file)\b", f"line {number}", error.place)
            raise type(error)(place if place.startswith("line ") else f"line {number}: {place}", error.value, error.rule) from None
        seen.update(dict.fromkeys(row))
        yield number, row
    for name in needed:
        if name not in seen:
            raise InputError("column", name, f"no such column; there are {', '.join(seen) or 'none'}")


def log_double(value: Any, place: str) -> Fraction | None:
    """The double that an entry of a log prints, as the dyadic rational that it is; None for one that is missing: null, or empty.

    >>> log_double(Decimal("0.85"), "reward") == Fraction(0.85), log_double(" 2 ", "reward"), log_double("", "reward")
    (True, Fraction(2, 1), None)
    >>> log_double("nan", "reward")
    Traceback (most recent call last):
    exactgrpo.errors.ParseError: reward: 'nan': a finite decimal number, or nothing if it is missing
    """
    text = value.strip() if isinstance(value, str) else value
    if text is None or text == "":
        return None
    if isinstance(text, str):
        if len(text) > MAX_NUMBER_DIGITS or not DECIMAL.fullmatch(text):
            raise ParseError(place, value, "a finite decimal number, or nothing if it is missing")
        text = Decimal(text)
    if isinstance(text, bool) or not isinstance(text, (int, Decimal)):
        raise InputError(place, str(value)[:100], "a number is needed, or nothing if it is missing")
    try:
        number = float(text)
    except OverflowError:
        number = float("inf")
    if number in (float("inf"), float("-inf")):
        raise InputError(place, str(value)[:100] if not isinstance(value, int) else value, "beyond the largest double")
    return Fraction(number)
