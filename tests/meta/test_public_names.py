"""The public names: the stub is the one list of them, each is documented, each function has an example that runs."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import exactgrpo as eg

STUB = Path(eg.__file__).with_suffix(".pyi")


def test_every_public_name_can_be_imported() -> None:
    named = {alias.asname for node in ast.walk(ast.parse(STUB.read_text())) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert set(eg.__all__) == named
    assert all(getattr(eg, name) is not None for name in eg.__all__)


@pytest.mark.parametrize("name", eg.__all__)
def test_every_public_name_is_documented(name: str) -> None:
    thing = getattr(eg, name)
    documentation = inspect.getdoc(thing)
    assert documentation
    assert not documentation.startswith(f"{name}(")  # the text that dataclasses write themselves
    if inspect.isfunction(thing):
        assert ">>> " in documentation


@pytest.mark.parametrize("name", eg.__all__)
def test_every_public_method_is_documented(name: str) -> None:
    thing = getattr(eg, name)
    if inspect.isclass(thing) and thing.__module__ != "exactgrpo.numbers.arithmetic":
        methods = [n for n, m in vars(thing).items() if n[0] != "_" and (inspect.isfunction(m) or isinstance(m, (classmethod, property)))]
        assert [n for n in methods if not inspect.getdoc(getattr(thing, n))] == []


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import sys, exactgrpo; print([m for m in ('numpy', 'flint', 'sympy', 'hypothesis', 'rich', 'msgspec') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['exactgrpo', '--help']\n"
        "from exactgrpo import cli; assert cli._main() == 0\n"
        "print([m for m in ('numpy', 'flint', 'sympy', 'hypothesis', 'rich', 'msgspec') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()[-1] == "[]"
