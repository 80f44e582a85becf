"""Bytes to plain data: TOML or JSON with exact decimals, refused by size and shape before a parser sees them."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

from exactgrpo.errors import InputError, LimitError, ParseError

Format = Literal["toml", "json"]

MAX_BYTES = 4 * 2**20
MAX_NESTING = 32
MAX_KEY_PARTS = 8
MAX_NUMBER_DIGITS = 4000
"""Digits of a number that is not quoted; Python itself stops soon after. Text may have more."""
MAX_TOML_ITEMS = 250_000
"""Values, keys and brackets of a TOML file: Python's TOML parser is slow. JSON has no such limit."""

_TOML_TEXT = re.compile(
    r'"""(?:[^\\"]|\\.|"(?!""))*+(?:"""|\Z)|'
    r"'''(?:[^']|'(?!''))*+(?:'''|\Z)|"
    r'"(?:[^"\\\n]|\\.)*+"?|'
    r"'[^'\n]*+'?|#[^\n]*+",
    re.DOTALL,
)
_JSON_TEXT = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_LONG_NUMBER = re.compile(rf"[0-9a-fA-F_]{{{MAX_NUMBER_DIGITS + 1}}}")
_LONG_KEY = re.compile(rf"(?:\.[^.=\n,\[\]{{}}]*+){{{MAX_KEY_PARTS}}}")
_BRACKETS = re.compile(r"[^\[\]{}]+")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_STEP = {"[": 1, "{": 1, "]": -1, "}": -1}
_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


@contextmanager
def located(source: str) -> Iterator[None]:
    """Put the name of the file before the place of every InputError raised inside.

    >>> with located("a.toml"):
    ...     raise InputError("update.beta", "-1", "beta >= 0")
    Traceback (most recent call last):
    exactgrpo.errors.InputError: a.toml: update.beta: '-1': beta >= 0
    """
    try:
        yield
    except InputError as error:
        if error.place == source or error.place.startswith(f"{source}: "):
            raise
        raise type(error)(f"{source}: {error.place}", error.value, error.rule) from None


def read_text(path: str | os.PathLike[str]) -> tuple[str, Format]:
    """Return the text of the file and its format by suffix; at most `MAX_BYTES` are read."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".toml", ".json"):
        raise InputError("file name", str(path), "input files end in .toml or .json")
    return read_utf8(path), "toml" if suffix == ".toml" else "json"


def read_utf8(path: str | os.PathLike[str], *, most: int = MAX_BYTES) -> str:
    """Return the text of a regular file of at most `most` bytes."""
    name = Path(path)
    if _is_special(name):
        raise InputError("file name", str(path), "a regular file is needed")
    try:
        with name.open("rb") as file:
            data = file.read(most + 1)
    except (OSError, ValueError) as error:
        raise InputError("file name", str(path), f"the file cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > most:
        raise LimitError("file size", f"more than {most} bytes", f"input files have at most {most >> 20} MB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ParseError(f"byte {error.start + 1}", repr(data[error.start : error.start + 4]), "input files are UTF-8 text") from None


def _is_special(path: Path) -> bool:
    """A pipe or a device: reading it might never end."""
    try:
        return path.exists() and not path.is_file() and not path.is_dir()
    except (OSError, ValueError):
        return False


def parse_data(text: str, format: Format) -> dict[str, Any]:
    """Return the data of a TOML or JSON text: dicts, lists, str, bool, int and, for every other number, Decimal.

    >>> parse_data('{"beta": 0.10}', "json")
    {'beta': Decimal('0.10')}
    """
    if format not in ("toml", "json"):
        raise InputError("format", format, "input is toml or json")
    if len(text) > MAX_BYTES:
        raise LimitError("file size", f"more than {MAX_BYTES} characters", "input files have at most 4 MB")
    if not text.strip():
        raise ParseError("file", "", "the file is empty")
    if _SURROGATE.search(text):
        raise ParseError("file", "half a character", "input is Unicode text, without lone surrogates")
    if "\0" in text:
        raise ParseError(_line_at(text, text.index("\0")), "\\0", "input files are text, without NUL characters")
    _check_shape(text, format)
    data = _from_toml(text) if format == "toml" else _from_json(text)
    if format == "json" and _SURROGATE_ESCAPE.search(text):
        _refuse_surrogates(data)
    if not isinstance(data, dict):
        raise ParseError("file", _kind(data), "the file holds one object")
    return data


def _check_shape(text: str, format: Format) -> None:
    bare = (_TOML_TEXT if format == "toml" else _JSON_TEXT).sub("", text)
    if max(accumulate(map(_STEP.__getitem__, _BRACKETS.sub("", bare))), default=0) > MAX_NESTING:
        raise LimitError("file", "deep nesting", f"brackets nest at most {MAX_NESTING} deep")
    number = _LONG_NUMBER.search(bare)
    if number is not None:
        place = _line_at(text, text.find(number.group()))
        raise LimitError(place, number.group(), f"numbers that are not quoted have at most {MAX_NUMBER_DIGITS} digits")
    if format == "toml":
        if _LONG_KEY.search(bare) is not None:
            raise LimitError("file", "a long dotted key", f"keys have at most {MAX_KEY_PARTS} parts")
        items = bare.count("=") + bare.count(",") + bare.count("[")
        if items > MAX_TOML_ITEMS:
            raise LimitError("file", f"{items} values", f"TOML files have at most {MAX_TOML_ITEMS} values; write JSON for more")


def _from_toml(text: str) -> Any:
    try:
        return tomllib.loads(text, parse_float=_decimal)
    except tomllib.TOMLDecodeError as error:
        rule = str(error)
        at = _AT.search(rule)
        if at is None or at[1] is None:
            raise ParseError("end of file", text[-40:].strip(), f"TOML: {_without(rule, at)}") from None
        raise ParseError(f"line {at[1]}, column {at[2]}", _line(text, int(at[1])), f"TOML: {_without(rule, at)}") from None
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise ParseError("file", text[:60], f"not TOML: {str(error) or 'nested too deeply'}"[:200]) from None


def _from_json(text: str) -> Any:
    try:
        return json.loads(text, parse_float=_decimal, parse_constant=_refuse_constant, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise ParseError(f"line {error.lineno}, column {error.colno}", _line(text, error.lineno), f"JSON: {error.msg}") from None
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise ParseError("file", text[:60], f"not JSON: {str(error) or 'nested too deeply'}"[:200]) from None


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise LimitError("number", text, "the exponent of this decimal is too large") from None


def _refuse_constant(text: str) -> Any:
    raise ParseError("number", text, "NaN and infinities are not numbers")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ParseError("file", key, "this key stands twice in one object")
            seen.add(key)
    return table


def _refuse_surrogates(data: Any) -> None:
    stack = [data]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            stack.extend(item)
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, str) and _SURROGATE.search(item):
            raise ParseError("file", ascii(item), "text is Unicode, without lone surrogates")


def _without(rule: str, at: re.Match[str] | None) -> str:
    return rule[: at.start()] if at is not None else rule


def _line_at(text: str, position: int) -> str:
    return f"line {text.count(chr(10), 0, max(position, 0)) + 1}"


def _line(text: str, number: int) -> str:
    start = 0
    for _ in range(number - 1):
        start = text.find("\n", start) + 1
    end = text.find("\n", start)
    return text[start : len(text) if end < 0 else end].strip()


def _kind(data: object) -> str:
    return f"{type(data).__name__}"
