"""Keys of tables in files: unknown ones with the nearest known one, missing ones, and null."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import Any

from exactgrpo.errors import InputError


def check_keys(table: Mapping[str, Any], needed: Collection[str], known: Collection[str], place: str = "") -> None:
    """Raise InputError unless the table has every needed key and none but the known ones, each with a value.

    >>> check_keys({"horizn": 3}, ["horizon"], ["horizon"])
    Traceback (most recent call last):
    exactgrpo.errors.InputError: horizn: 'horizn': unknown key; did you mean 'horizon'?
    """
    for key, entry in table.items():
        where = f"{place}.{key}".removeprefix(".")
        if key not in known:
            raise unknown_key(where, str(key), known)
        if entry is None:
            raise InputError(where, "null", "a value, or no such key")
    for key in needed:
        if key not in table:
            raise InputError(place or "file", key, "this key is missing")


def unknown_key(place: str, key: str, known: Collection[str]) -> InputError:
    """The error for a key that is none of the known ones."""
    near = difflib.get_close_matches(key[:100], known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"the keys here are {', '.join(known)}"
    return InputError(place, key, f"unknown key; {hint}")
