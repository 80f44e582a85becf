"""verify, falsify and claims on the command line: what they print, write and return."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from rich.console import Console

from exactgrpo.claims.claim import Claim
from exactgrpo.claims.registry import find_claim
from exactgrpo.claims.saved import replay, write_counterexample
from exactgrpo.claims.verdict import falsify
from exactgrpo.cli import EXAMPLES, ExitCode
from exactgrpo.errors import ClaimError
from exactgrpo.report.claims import claim_table, search_parts


def exactgrpo(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "exactgrpo.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **options)


def test_the_audit_is_as_expected() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = exactgrpo("verify", "--json")
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 30  # twice a budget of 15 s
    data = json.loads(done.stdout)
    assert (done.returncode, data["is_as_expected"]) == (ExitCode.DONE, True)
    kinds = {(row["claim"]["expected"], row["verdict"]) for row in data["claims"]}
    assert kinds == {(True, "proved"), (True, "holds"), (False, "refuted")}
    assert all(row["counterexample"] for row in data["claims"] if row["verdict"] == "refuted")


def test_an_update_file_is_an_instance_of_the_claims_about_updates() -> None:
    done = exactgrpo("verify", EXAMPLES / "kink.toml", "--json")
    (row,) = json.loads(done.stdout)["updates"]
    assert done.returncode == ExitCode.DONE
    assert {claim["verdict"] for claim in row["claims"]} == {"holds"}
    assert "run-counts-follow-status" in {claim["claim"]["id"] for claim in row["claims"]}


def test_a_counterexample_is_found_kept_and_replayed(tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    done = exactgrpo("falsify", "k3-gradient-is-kl-gradient", "--out", path, "--json")
    found = json.loads(done.stdout)["counterexample"]
    assert done.returncode == ExitCode.REFUTED
    assert found == {
        "instance": {"policy": "(1/2, 1/2)", "reference": "(1/3, 2/3)", "features": "[0, 1]"},
        "left": "-1/6",
        "right": "-1/4*log(2)",
    }
    again = exactgrpo("verify", path)
    assert again.returncode == ExitCode.DONE
    assert "reproduced" in again.stdout
    assert [p.name for p in tmp_path.iterdir()] == ["found.json"]


def test_a_changed_counterexample_that_is_none_is_not_reproduced(tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    exactgrpo("falsify", "k3-gradient-is-kl-gradient", "--out", path)
    data = json.loads(path.read_text())
    data["instance"]["reference"] = {"tuple": ["1/2", "1/2"]}  # equal to the policy: both gradients are 0
    path.write_text(json.dumps(data))
    done = exactgrpo("verify", path)
    assert done.returncode == ExitCode.REFUTED
    assert "not reproduced" in done.stdout


@pytest.mark.parametrize(
    "arguments", [["verify", "--instances", "1"], ["falsify", "advantages-sum-to-zero", "--seconds", "1"], ["falsify", "rloo-unbiased"]]
)
def test_nothing_is_left_in_the_folder(arguments: list[str], tmp_path: Path) -> None:
    home = {name: value for name, value in os.environ.items() if name != "HYPOTHESIS_STORAGE_DIRECTORY"}
    exactgrpo(*arguments, cwd=tmp_path, env=home)
    assert list(tmp_path.iterdir()) == []


def test_the_same_seed_prints_the_same() -> None:
    first, second = (exactgrpo("falsify", "sum-mode-divides-by-length", "--seed", "5").stdout for _ in range(2))
    assert first == second


def test_a_true_claim_is_not_refuted_and_that_is_3() -> None:
    done = exactgrpo("falsify", "advantages-sum-to-zero", "--seconds", "1")
    assert done.returncode == ExitCode.UNDECIDED
    assert "that proves nothing" in done.stdout


def test_needed_hypotheses_are_named() -> None:
    done = exactgrpo("falsify", "advantages-squares-sum-to-group-size", "--necessary", "--json")
    (result,) = json.loads(done.stdout).values()
    assert done.returncode == ExitCode.DONE
    assert result["counterexample"]["instance"] == {"rewards": "[0, 0]"}
    dropped = exactgrpo("falsify", "advantages-squares-sum-to-group-size", "--drop", "not all rewards are equal")
    assert dropped.returncode == ExitCode.REFUTED


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["falsify", "k3-gradient-is-kl-gradien"], "did you mean k3-gradient-is-kl-gradient"),
        (["falsify", "zzzz"], "no bundled claim has this id"),
        (["falsify", "advantages-sum-to-zero", "--drop", "nothing"], "a hypothesis of the claim"),
        *((["falsify", "advantages-sum-to-zero", "--seconds", x], "a finite number above 0") for x in ("0", "-1", "nan", "inf", "1e999")),
        (["falsify", "sum-mode-divides-by-length", "--necessary", "--seconds", "nan"], "a finite number above 0"),
        (["falsify", "sum-mode-divides-by-length", "--necessary", "--out", "x.json"], "--necessary goes without"),
        (["verify", "missing.toml"], "No such file"),
    ],
)
def test_bad_usage_is_one_line_and_2(arguments: list[str], message: str, tmp_path: Path) -> None:
    done = exactgrpo(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (ExitCode.BAD_INPUT, "")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def targets(tmp_path: Path) -> Path:
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "link.json").symlink_to(tmp_path / "aim.json")
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "null.json").symlink_to("/dev/null")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("folder.json", "there is a folder of this name"),
        ("link.json", "there is a symbolic link of this name"),
        ("null.json", "there is a symbolic link of this name"),
        ("pipe.json", "there is a pipe of this name"),
        ("no/such/x.json", "its folder does not exist"),
        (f"{'x' * 251}.json", "too long"),
        ("pipe.json/x.json", "Not a directory"),
        *((name, "ends in .json") for name in ("/dev/null", "-", "", ".", "found", "found.toml", ".json")),
    ],
)
def test_a_target_that_cannot_be_written_is_refused_before_the_search(name: str, message: str, targets: Path) -> None:
    before = sorted(targets.rglob("*"))
    start = time.monotonic()
    done = exactgrpo("falsify", "advantages-sum-to-zero", "--seconds", "100", "--out", name, cwd=targets)
    assert time.monotonic() - start < 50
    assert (done.returncode, done.stdout) == (ExitCode.BAD_INPUT, "")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr
    assert sorted(targets.rglob("*")) == before


def test_a_name_as_long_as_the_system_takes_is_written(tmp_path: Path) -> None:
    name = f"{'x' * 250}.json"
    assert exactgrpo("falsify", "sum-mode-divides-by-length", "--out", name, cwd=tmp_path).returncode == ExitCode.REFUTED
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_counterexample_is_printed_also_where_it_cannot_be_written(tmp_path: Path) -> None:
    script = (
        "import os\nfrom exactgrpo.claims.search import Search\nfrom exactgrpo.cli import main\n"
        "visit = Search.visit\n"
        "def blocked(self, *given):\n"
        "    os.makedirs('x.json', exist_ok=True)\n"
        "    return visit(self, *given)\n"
        "Search.visit = blocked\nmain()\n"
    )
    command = [sys.executable, "-c", script, "falsify", "sum-mode-divides-by-length", "--out", "x.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.BAD_INPUT
    assert "losses = " in done.stdout
    assert done.stderr.count("\n") == 1
    assert "there is a folder of this name" in done.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"claim": "zzzz"}, "no bundled claim has this id; only counterexamples to claims that `exactgrpo claims` lists"),
        ({"claim": "k3-gradient-is-kl-gradien"}, "no bundled claim has this id; only counterexamples to claims that"),
        ({"claim": 5}, "the id of a bundled claim"),
        ({"format": "other/9"}, "this version reads"),
        ({"dropped": ["x"]}, "a list of hypotheses"),
        ({"instance": {}}, "a value for each variable"),
        ({"instance": {"policy": ["1/2"], "reference": 0.5, "features": {"code": "os"}}}, "a number as exact text"),
        ({"instance": {"policy": "9^9^9^9", "reference": "1", "features": "1"}}, "instance.policy"),
        ({"more": 1}, "unknown key"),
    ],
)
def test_bad_counterexample_files_are_one_line_and_2(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    data = {"format": "exactgrpo.counterexample/1", "kind": "counterexample", "claim": "k3-gradient-is-kl-gradient", "instance": {}}
    path = tmp_path / "bad.json"
    path.write_text(json.dumps({**data, **change}))
    done = exactgrpo("verify", path)
    assert (done.returncode, done.stdout) == (ExitCode.BAD_INPUT, "")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr


ANNOUNCED = "print('searching', file=sys.stderr, flush=True)"
INTERRUPT = "signal.raise_signal(signal.SIGINT)"


def searching(more: str) -> list[str]:
    """The command, which does something more after each instance that its searches visit."""
    script = f"""
import signal, sys
from exactgrpo.claims.search import Search
from exactgrpo.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests run in the background of a shell
visit = Search.visit
def visit_and_more(self, *given):
    holds = visit(self, *given)
    {more}
    return holds
Search.visit = visit_and_more
main()
"""
    return [sys.executable, "-c", script]


def ended(command: list[str], *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=120)


def test_an_interrupt_prints_what_was_found_and_leaves_nothing(tmp_path: Path) -> None:
    arguments = ["falsify", "advantages-sum-to-zero", "--seconds", "60", "--out", str(tmp_path / "x.json")]
    running = subprocess.Popen([*searching(ANNOUNCED), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    assert running.stderr.readline() == "searching\n"
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate(timeout=60)
    assert running.returncode == ExitCode.INTERRUPTED
    assert "(interrupted)" in out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_an_interrupt_keeps_the_counterexample_found_so_far(form: list[str], tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    done = ended(searching(f"holds is False and {INTERRUPT}"), "falsify", "k3-gradient-is-kl-gradient", "--out", path, *form)
    assert (done.returncode, done.stderr) == (ExitCode.INTERRUPTED, "")
    assert json.loads(done.stdout)["ended"] == "interrupted" if form else "(interrupted)" in done.stdout
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]
    assert "reproduced" in exactgrpo("verify", path).stdout


def test_an_interrupt_is_said_for_each_hypothesis() -> None:
    arguments = ["falsify", "advantages-squares-sum-to-group-size", "--necessary"]
    assert "(interrupted)" in ended(searching(f"holds is False and {INTERRUPT}"), *arguments).stdout
    (result,) = json.loads(ended(searching(INTERRUPT), *arguments, "--json").stdout).values()
    assert result["ended"] == "interrupted"


def test_an_interrupted_audit_says_so() -> None:
    once = f"given[0].id == 'ratio-mean-one' and {INTERRUPT}"
    data = json.loads(ended(searching(once), "verify", "--json").stdout)
    assert data["ended"] == data["claims"][-1]["ended"] == "interrupted"
    text = ended(searching(once), "verify")
    assert text.returncode == ExitCode.INTERRUPTED
    assert text.stdout.splitlines()[-1] == "interrupted: what is not listed was not verified"
    assert json.loads(exactgrpo("verify", EXAMPLES / "kink.toml", "--json").stdout)["ended"] == "finished"


def test_an_interrupt_before_the_search_is_one_line() -> None:
    script = f"""
import signal, exactgrpo.claims.registry as registry
from exactgrpo.cli import main
def find_claim(id):
    {INTERRUPT}
signal.signal(signal.SIGINT, signal.default_int_handler)
registry.find_claim = find_claim
main()
"""
    done = ended([sys.executable, "-c", script], "falsify", "ratio-mean-one")
    assert (done.returncode, done.stdout, done.stderr) == (ExitCode.INTERRUPTED, "", "exactgrpo: interrupted\n")


@pytest.fixture
def unread() -> Iterator[int]:
    """A pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["verify", EXAMPLES / "kink.toml"], ExitCode.DONE), (["claims", "--json"], ExitCode.DONE), (["examples"], ExitCode.DONE)]
    + [(["falsify", "sum-mode-divides-by-length", *form], ExitCode.REFUTED) for form in ([], ["--json"], ["--out", "x.json"])]
    + [(["falsify", "--help"], ExitCode.DONE), (["--help"], ExitCode.DONE)],
)
def test_a_reader_who_is_gone_changes_no_exit_code(arguments: list[str | Path], code: int, unread: int, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "exactgrpo.cli", *map(str, arguments)]
    done = subprocess.run(command, stdout=unread, stderr=subprocess.PIPE, cwd=tmp_path, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, "")
    assert [path.name for path in tmp_path.iterdir()] == (["x.json"] if "x.json" in arguments else [])


@pytest.mark.parametrize("redirection", ["2>&-", ""], ids=["closed", "unread"])
@pytest.mark.parametrize(("arguments", "code"), [("verify --json", ExitCode.DONE), ("verify missing.toml", ExitCode.BAD_INPUT)])
def test_nobody_needs_to_read_the_progress(arguments: str, code: int, redirection: str, unread: int, tmp_path: Path) -> None:
    command = ["sh", "-c", f"{sys.executable} -m exactgrpo.cli {arguments} {redirection}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=unread, cwd=tmp_path, text=True, check=False)
    assert done.returncode == code
    assert bool(done.stdout) == (code == ExitCode.DONE)


def test_plain_locales_get_plain_characters() -> None:
    plain = {**os.environ, "LC_ALL": "C", "LANG": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    for arguments in (["verify", EXAMPLES / "kink.toml"], ["claims"], ["falsify", "sum-mode-divides-by-length"]):
        done = exactgrpo(*arguments, env=plain)
        assert done.stdout.isascii()
        assert "\\u25" not in done.stdout  # no line of a table as an escape
    assert json.loads(exactgrpo("claims", "--json", env=plain).stdout) == json.loads(exactgrpo("claims", "--json").stdout)


def on_a_terminal(*arguments: str | Path, **variables: str) -> str:
    """What the command writes to a terminal."""
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "exactgrpo.cli", *map(str, arguments)]
    running = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm", **variables})
    os.close(theirs)
    parts = []
    with contextlib.suppress(OSError):  # Linux: the other end is closed
        while part := os.read(ours, 1 << 16):
            parts.append(part)
    os.close(ours)
    running.wait(timeout=60)
    return b"".join(parts).decode()


def test_colours_are_for_terminals_that_want_them() -> None:
    colours = re.compile(r"\x1b\[[0-9;]*3[0-9][0-9;]*m")
    arguments = ["verify", EXAMPLES / "kink.toml"]
    assert colours.search(on_a_terminal(*arguments))
    assert not colours.search(on_a_terminal(*arguments, NO_COLOR="1"))
    assert "\x1b" not in on_a_terminal(*arguments, TERM="dumb")
    assert "\x1b" not in on_a_terminal("verify", TERM="dumb")
    assert "\x1b" not in exactgrpo(*arguments).stdout


def saved(path: Path, claim: str, **instance: Any) -> Path:
    data = {"format": "exactgrpo.counterexample/1", "kind": "counterexample", "claim": claim, "instance": instance}
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def test_a_counterexample_that_does_not_satisfy_the_hypotheses_is_counted_as_vacuous(tmp_path: Path) -> None:
    files = [saved(tmp_path / f"{i}.json", "advantages-squares-sum-to-group-size", rewards=["0", "0"]) for i in (1, 2)]
    good = EXAMPLES / "counterexamples" / "binary-groups-unbiased.json"
    done = exactgrpo("verify", *files, good)
    assert done.returncode == ExitCode.UNDECIDED
    assert f"{files[0]}: vacuous: it does not satisfy the hypotheses" in " ".join(done.stdout.split())
    assert done.stdout.splitlines()[-1] == "counterexamples: 1 reproduced, 2 vacuous, 0 not reproduced"
    statuses = [row["status"] for row in json.loads(exactgrpo("verify", *files, good, "--json").stdout)["replays"]]
    assert statuses == ["vacuous", "vacuous", "reproduced"]


def test_a_vacuous_claim_on_an_update_is_counted() -> None:
    """The claim about updates with beta = 0 says nothing of one with a penalty."""
    assert exactgrpo("verify", EXAMPLES / "kl.toml").stdout.splitlines()[-1].endswith("6 as expected, 1 vacuous")
    assert exactgrpo("verify", EXAMPLES / "kink.toml").stdout.splitlines()[-1].endswith("7 as expected, 0 vacuous")


def test_the_sides_of_a_vacuous_counterexample_need_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    claim = Claim("inverse", "x/x = 1", {"x": st.integers()}, left=lambda x: x / x, right=1, hypotheses={"x != 0": lambda x: x != 0})
    monkeypatch.setattr("exactgrpo.claims.saved.bundled", lambda: {claim.id: claim})
    monkeypatch.setattr("exactgrpo.claims.saved.find_claim", lambda id: claim)
    again = replay({"format": "exactgrpo.counterexample/1", "kind": "counterexample", "claim": "inverse", "instance": {"x": "0"}})
    assert (again.status, again.sides, again.is_reproduced) == ("vacuous", None, False)


def test_only_counterexamples_to_bundled_claims_are_written(tmp_path: Path) -> None:
    bundled = find_claim("sum-mode-divides-by-length")
    own = Claim(bundled.id, "a claim of the same id", {"x": [0]}, left=lambda x: x, right=1)
    found = falsify(own).counterexample
    assert found is not None
    with pytest.raises(ClaimError, match="not a bundled claim; only counterexamples to claims that"):
        write_counterexample(tmp_path / "x.json", own, found)
    assert list(tmp_path.iterdir()) == []


def test_long_numbers_are_cut_in_tables_and_whole_in_json(tmp_path: Path) -> None:
    number = "7" * 9999
    path = saved(tmp_path / "long.json", "sum-mode-divides-by-length", losses=[["0", number]])
    text = exactgrpo("verify", path).stdout
    assert "losses = [[0, 77777777777777777777...(9999 digits)]]" in text
    assert max(map(len, text.splitlines())) < 200
    found = json.loads(exactgrpo("verify", path, "--json").stdout)["replays"][0]["counterexample"]
    assert found == {"instance": {"losses": f"[[0, {number}]]"}, "left": number, "right": f"{number}/2"}


def test_a_counterexample_is_called_shrunk_and_not_smallest() -> None:
    assert "refuted by a shrunk counterexample" in exactgrpo("falsify", "sum-mode-divides-by-length").stdout
    for arguments in (["falsify", "sum-mode-divides-by-length"], ["falsify", "--help"], ["verify", "--help"], ["verify"]):
        assert "smallest" not in exactgrpo(*arguments).stdout
    cut = ended(searching(f"holds is False and {INTERRUPT}"), "falsify", "sum-mode-divides-by-length").stdout
    assert "refuted by a counterexample that may shrink further" in cut
    cases = Claim("cases", "a claim with two cases", {"x": [2, 1]}, left=lambda x: x, right=0)
    lines = [str(part) for part in search_parts(cases, falsify(cases), ())]
    assert lines[1:3] == ["refuted by the first counterexample among all cases in their order", "  x = 2"]


def test_tables_are_readable_on_a_narrow_terminal() -> None:
    rows = [find_claim("first-inner-step-has-a-gradient"), find_claim("objective-ceiling")]
    narrow, wide = io.StringIO(), io.StringIO()
    Console(file=narrow, width=40).print(claim_table(rows))
    Console(file=wide, width=120).print(claim_table(rows))
    assert max(map(len, narrow.getvalue().splitlines())) <= 40
    words = set(" ".join(claim.statement for claim in rows).split())
    assert words <= set(narrow.getvalue().split())  # none is broken
    assert {claim.id for claim in rows} <= set(narrow.getvalue().splitlines())
    assert "claim  " in wide.getvalue()


def test_the_width_is_that_of_the_terminal() -> None:
    lines = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", on_a_terminal("verify", EXAMPLES / "kink.toml", COLUMNS="40")).split("\r\n")
    assert max(map(len, lines)) <= 40
    assert {"first-inner-step-has-a-gradient", "  verdict: holds"} <= {line.rstrip() for line in lines}


def test_claims_are_listed() -> None:
    rows = json.loads(exactgrpo("claims", "--json").stdout)["claims"]
    assert len({row["id"] for row in rows}) == len(rows) > 80
    assert "advantages-sum-to-zero" in exactgrpo("claims").stdout
