"""Searches that leave no files behind."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import configuration

_lock = threading.Lock()
_searches = 0
_home: Any = None


@contextmanager
def nothing_stored() -> Iterator[None]:
    """Keep Hypothesis from writing its caches (constants of modules, Unicode tables) to a folder ``.hypothesis``.

    Its home becomes a place where no file can be, until the last of the searches that overlap has ended; then it is what it was.

    >>> before = configuration.storage_directory("tmp").path
    >>> with nothing_stored():
    ...     configuration.storage_directory("tmp").path == before
    False
    >>> configuration.storage_directory("tmp").path == before
    True
    """
    global _searches, _home
    with _lock:
        if _searches == 0:
            _home = vars(configuration).get("__hypothesis_home_directory")
            configuration.set_hypothesis_home_dir(os.devnull)
        _searches += 1
    try:
        yield
    finally:
        with _lock:
            _searches -= 1
            if _searches == 0:
                configuration.set_hypothesis_home_dir(_home)
