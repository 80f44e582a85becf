"""JSON files that are whole or not there."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from exactgrpo.errors import InputError


def write_json(path: str | os.PathLike[str], data: Any) -> None:
    """Write JSON to a file: a temporary file beside it first, then a rename. InputError if that cannot be done.

    Whatever happens, the file is either as it was or whole, and no temporary file stays.
    """
    target = Path(path)
    name = None
    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            name = file.name
            json.dump(data, file, indent=2, ensure_ascii=False, allow_nan=False)
            file.write("\n")
        Path(name).chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        Path(name).replace(target)
    except OSError as error:
        raise InputError("file name", str(path), f"the file cannot be written: {error.strerror}") from None
    finally:
        if name is not None:
            Path(name).unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)  # there is no way to read it alone
    os.umask(mask)
    return mask
