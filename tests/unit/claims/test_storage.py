"""Searches leave nothing behind, and Hypothesis stores where it did before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import configuration, strategies as st

from exactgrpo.claims.claim import Claim
from exactgrpo.claims.storage import nothing_stored
from exactgrpo.claims.verdict import verify


def test_a_search_in_a_python_session_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "session.py").write_text(
        "from hypothesis import strategies as st\nimport exactgrpo as eg\n"
        "claim = eg.Claim('c', 'text is text', {'x': st.text()}, conclusion=lambda x: len(x) >= 0)\n"
        "assert eg.verify(claim, instances=50).kind == 'holds'\n"
    )
    variables = {name: value for name, value in os.environ.items() if name != "HYPOTHESIS_STORAGE_DIRECTORY"}
    subprocess.run([sys.executable, "-B", "session.py"], cwd=tmp_path, env=variables, check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["session.py"]


def test_the_home_that_the_user_has_set_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configuration, "__hypothesis_home_directory", tmp_path)
    verify(Claim("c", "a claim", {"x": st.integers()}, left=lambda x: x, right=lambda x: x), instances=5)
    with nothing_stored():
        with nothing_stored():
            pass
        assert tmp_path not in configuration.storage_directory("tmp").path.parents
    assert configuration.storage_directory("tmp").path == tmp_path / "tmp"
    assert list(tmp_path.iterdir()) == []
