"""What the README shows is what happens: Python sessions are doctests, console sessions are run and compared."""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SESSIONS = re.findall(r"```console\n\$ exactgrpo (.*)\n((?:.*\n)*?)```", README)


def output(arguments: str) -> str:
    command = [sys.executable, "-m", "exactgrpo.cli", *shlex.split(arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    progress = re.compile(r".*, \d+ s")  # lines about slow work, on a slow machine
    assert [line for line in done.stderr.splitlines() if not progress.fullmatch(line)] == []
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def test_python_sessions_print_what_the_readme_says() -> None:
    results = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert results.attempted > 10
    assert results.failed == 0


def test_the_readme_shows_the_kink_and_the_real_groups() -> None:
    shown = [arguments for arguments, _ in SESSIONS]
    assert shown[:2] == ["run exactgrpo/examples/kink.toml", "run exactgrpo/examples/logged_groups.toml"]


@pytest.mark.parametrize(("arguments", "shown"), SESSIONS, ids=[arguments for arguments, _ in SESSIONS])
def test_console_sessions_print_what_the_readme_says(arguments: str, shown: str) -> None:
    assert output(arguments) == shown


def test_the_smallest_file_of_the_readme_runs(tmp_path: Path) -> None:
    smallest, delayed = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    (tmp_path / "smallest.toml").write_text(smallest, encoding="utf-8")
    assert output(f"run {tmp_path / 'smallest.toml'}").startswith("status  complete")
    (tmp_path / "delayed.toml").write_text(delayed, encoding="utf-8")
    assert "bias-is-minus-slack" in output(f"verify {tmp_path / 'delayed.toml'}")


def test_the_two_commands_of_the_readme_exist() -> None:
    for path in ("tests/environment", "tests/run"):
        assert f"\n{path}" in README
        assert (ROOT / path).stat().st_mode & 0o100


if __name__ == "__main__":  # writes the sessions anew
    text = README
    for arguments, shown in SESSIONS:
        text = text.replace(f"$ exactgrpo {arguments}\n{shown}", f"$ exactgrpo {arguments}\n{output(arguments)}")
    (ROOT / "README.md").write_text(text, encoding="utf-8")
