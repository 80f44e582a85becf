"""Where JSON files may be written, and that nothing else is left there."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from unittest import mock

import pytest

from exactgrpo.errors import InputError
from exactgrpo.spec.json_file import check_target, write_json


def test_new_names_and_regular_files_are_targets(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text("{}")
    for name in ("old.json", "new.json", "NEW.JSON", "a.b.json"):
        assert check_target(tmp_path / name) == tmp_path / name


def test_a_socket_and_impossible_names_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.json")
        for name in ("socket.json", "nul\0.json", "\ud800.json", f"{'x/' * 3000}x.json"):
            with pytest.raises(InputError, match="the file cannot be written") as caught:
                check_target(name)
            assert "\n" not in str(caught.value)


def test_a_folder_that_is_read_only_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    if os.access(tmp_path, os.W_OK):  # the system's administrator may write everywhere
        with mock.patch("os.access", return_value=False), pytest.raises(InputError, match="cannot be written to"):
            check_target(tmp_path / "x.json")
    else:
        with pytest.raises(InputError, match="cannot be written to"):
            check_target(tmp_path / "x.json")
    tmp_path.chmod(0o700)


def test_an_interrupt_at_any_call_leaves_the_old_file_or_the_new(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    opened = Path.open

    def open_and_interrupt(self: Path, *arguments: object, **options: object) -> None:
        opened(self, *arguments, **options).close()  # type: ignore[call-overload]
        raise KeyboardInterrupt

    for name, effect in (("open", open_and_interrupt), ("replace", KeyboardInterrupt()), ("chmod", OSError(28, "No space left"))):
        write_json(path, 1)
        with mock.patch.object(Path, name, autospec=True, side_effect=effect), pytest.raises((KeyboardInterrupt, InputError)):
            write_json(path, 2)
        assert [p.name for p in tmp_path.iterdir()] == ["data.json"]
        assert path.read_text() == "1\n"
