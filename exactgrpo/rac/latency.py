"""Delay laws from measured latencies: the empirical law of a column of a CSV file, in optimiser steps."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from exactgrpo.errors import InputError, LimitError, ParseError
from exactgrpo.numbers.rational import exact, from_decimal
from exactgrpo.rac.delay_law import MAX_DELAY, NEVER, DelayLaw
from exactgrpo.spec.log_file import DECIMAL, MAX_BYTES, csv_rows
from exactgrpo.spec.reading import located, read_utf8

_NOT_FAILED = {"", "0", "false", "no"}


def latency_law(
    path: str | os.PathLike[str], *, column: str, unit: Any, failed: str | None = None, where: Mapping[str, str] | None = None
) -> DelayLaw:
    """The law of D = floor(latency/unit) with the frequencies of the rows as probabilities; rows that failed are "never".

    `unit` is the time of one optimiser step, in the unit of `column`. A row failed if its latency is empty, or its entry in the column
    `failed` says so: anything but an empty entry, 0, false or no. `where` keeps the rows that have these texts in these columns. Latencies
    are exact decimals and not negative. The file is CSV in UTF-8 with a line of column names, at most 64 MB.

    InputError names file, line and column; LimitError beyond the delays of `DelayLaw`.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "judge.csv")
    ...     _ = file.write_text("seconds,error\\n0.99,\\n1.0,\\n2.5,\\n0,429\\n")
    ...     latency_law(file, column="seconds", unit=1, failed="error")
    DelayLaw(masses=((0, Real('1/4')), (1, Real('1/4')), (2, Real('1/4'))), never=Real('1/4'))
    """
    step = exact(unit, "unit")
    if not isinstance(step, Fraction) or step <= 0:
        raise InputError("unit", repr(unit), "a positive rational number: the time of one optimiser step")
    if where is not None and not (isinstance(where, Mapping) and all(isinstance(text, str) for text in where.values())):
        raise InputError("where", repr(where)[:100], "a table from columns to texts")
    wanted = dict(where or {})
    with located(str(path)):
        counts: Counter[int | str] = Counter()
        for line, row in csv_rows(read_utf8(path, most=MAX_BYTES), [column, *([failed] if failed is not None else []), *wanted]):
            if any(row[name] != text for name, text in wanted.items()):
                continue
            is_lost = not row[column].strip() or (failed is not None and row[failed].strip().lower() not in _NOT_FAILED)
            counts[NEVER if is_lost else _delay(row[column].strip(), step, f"line {line}, column {column}")] += 1
        if not counts:
            raise InputError("rows", wanted or "none", "at least one row of latencies")
        rows = counts.total()
        return DelayLaw.of({key: Fraction(number, rows) for key, number in counts.items()}, column)


def _delay(text: str, step: Fraction, place: str) -> int:
    if not DECIMAL.fullmatch(text):
        raise ParseError(place, text, "a latency is a decimal number, or empty")
    latency = from_decimal(Decimal(text), place)
    if latency < 0:
        raise InputError(place, text, "a latency is not negative")
    delay = latency // step
    if delay > MAX_DELAY:
        raise LimitError(place, text, f"a delay of at most {MAX_DELAY} steps of {step}")
    return int(delay)
