"""Files, of JSON or other text, that are whole or not there."""

from __future__ import annotations

import json
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

from exactgrpo.errors import InputError

SUFFIX = ".json"
_KINDS = {stat.S_IFDIR: "a folder", stat.S_IFLNK: "a symbolic link", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}


def check_target(path: str | os.PathLike[str]) -> Path:
    """The path, if a JSON file can be written there; InputError before any work is done for it.

    A target ends in .json and is new or a regular file, in a folder that exists and can be written to. A link is refused: it would be
    replaced, not followed.
    """
    if Path(path).suffix.lower() != SUFFIX:
        raise InputError("file name", str(path), f"the name of a file that ends in {SUFFIX}")
    return _free(path)


def _free(path: str | os.PathLike[str]) -> Path:
    target = Path(path)
    mode = stat.S_IFREG
    try:
        with suppress(FileNotFoundError):
            mode = target.lstat().st_mode
        is_free = os.access(target.parent, os.W_OK | os.X_OK)
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from None
    if not stat.S_ISREG(mode):
        raise _unwritable(path, f"there is {_KINDS.get(stat.S_IFMT(mode), 'a device')} of this name")
    if not is_free:
        raise _unwritable(path, "its folder does not exist or cannot be written to")
    return target


def write_json(path: str | os.PathLike[str], data: Any) -> None:
    """Write JSON to a file: a temporary file beside it first, then a rename. InputError if that cannot be done.

    Whatever happens, the file is either as it was or whole, and no temporary file stays.
    """
    check_target(path)
    write_text(path, json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text to a file as `write_json` writes JSON, whatever its name ends in."""
    target = _free(path)
    draft = target.with_name(f".{secrets.token_hex(8)}.tmp")  # named before it is there, so that an interrupt finds it
    try:
        with draft.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
        if target.exists():
            draft.chmod(stat.S_IMODE(target.stat().st_mode))
        draft.replace(target)
    except OSError as error:
        raise _unwritable(path, error) from None
    finally:
        with suppress(OSError):
            draft.unlink()


def _unwritable(path: str | os.PathLike[str], why: object) -> InputError:
    return InputError("file name", str(path), f"the file cannot be written: {getattr(why, 'strerror', why)}")
