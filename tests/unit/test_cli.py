"""The command: what it prints, where, and how it ends."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import mpmath
import pytest

from exactgrpo import cli
from exactgrpo.cli import EXAMPLES, ExitCode

KINK = """
kind = "update"
[[prompts]]
name = "q1"
responses = ["a", "b"]
rewards = [1, 0]
reference = ["1/2", "1/2"]
[policy]
family = "rational"
parameters = ["t"]
theta0 = ["1/2"]
domain = ["t > 0", "t < 1"]
weights.q1 = ["t", "1 - t"]
[update]
group_size = 2
outer_iterations = 1
inner_steps = 3
epsilon = "1/4"
beta = 0
step_size = "1/16"
draws = [[["a", "b"]]]
"""


def exactgrpo(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "exactgrpo.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, **options)


@pytest.fixture
def kink(tmp_path: Path) -> Path:
    path = tmp_path / "kink.toml"
    path.write_text(KINK, encoding="utf-8")
    return path


# ---- run


def test_the_kink_as_json_has_everything_that_the_run_knows(kink: Path) -> None:
    done = exactgrpo("run", kink, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    data = json.loads(done.stdout)
    assert data["status"] == "undefined-gradient"
    assert data["theta"] == [{"exact": "5/8", "decimal": "0.62500000000", "float64": 0.625}]
    assert data["counts"] == {
        "draws": 2, "reward_evaluations": 2, "mass_evaluations": 4, "gradient_attempts": 2, "domain_calls": 1, "square_roots": 1,
        "logarithms": 0,
    }  # fmt: skip
    first, second = data["steps"]
    assert [g["exact"] for g in first["gradient"]] == ["2"]
    assert first["proposal"] == data["theta"]
    assert first["in_domain"] is True
    assert second["gradient"] is None
    sides = [(t["response"], t["advantage"]["exact"], t["ratio"]["exact"], t["side"]) for t in second["terms"]]
    assert sides == [("a", "1", "5/4", "kink"), ("b", "-1", "3/4", "kink")]
    one_sided = second["evidence"]["one_sided"][0]
    assert (one_sided["parameter"], one_sided["left"]["exact"], one_sided["right"]["exact"]) == ("t", "2", "0")
    assert all(d["sign"] is not None and d["proof"]["kind"] for step in data["steps"] for d in step["decisions"])


def test_the_kink_as_tables_shows_status_sides_and_one_sided_derivatives(kink: Path) -> None:
    done = exactgrpo("run", kink)
    assert (done.returncode, done.stderr) == (0, "")
    rows = [line.split() for line in done.stdout.splitlines()]
    assert rows[0][:2] == ["status", "undefined-gradient"]
    assert ["theta", "t", "=", "5/8"] in rows
    assert ["1,2", "2", "kink", "1/4", "undefined"] in rows
    assert ["t", "2", "0"] in rows


def test_digits_are_those_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "irrational.toml"
    path.write_text(KINK.replace('step_size = "1/16"', 'step_size = "sqrt(2)/64"'), encoding="utf-8")
    data = json.loads(exactgrpo("run", path, "--json", "--digits", "40").stdout)
    # t = 1/2 + 2 sqrt(2)/64 after one step, and again: 1/2 + sqrt(2)/16 after two; the third would pass the bound
    with mpmath.workdps(60):
        assert data["steps"][0]["proposal"][0]["decimal"] == mpmath.nstr(mpmath.mpf(1) / 2 + mpmath.sqrt(2) / 32, 40)
    assert exactgrpo("run", path, "--digits", "0").returncode == ExitCode.BAD_INPUT


def test_an_undecided_run_says_what_is_open_and_ends_with_3(tmp_path: Path) -> None:
    # the bound is missed by exp(exp(1)) 2^-9000, in a class without a decision procedure: 4096 bits do not tell
    path = tmp_path / "open.toml"
    path.write_text(KINK.replace('epsilon = "1/4"', 'epsilon = "1/4 + 2^-9000*exp(exp(1))"'), encoding="utf-8")
    done = exactgrpo("run", path, "--json", "--max-bits", "4096")
    data = json.loads(done.stdout)
    assert (done.returncode, data["status"]) == (ExitCode.UNDECIDED, "undecided")
    assert "ratio of 'a' to prompt 'q1'" in data["undecided"]["question"]
    assert data["theta"][0]["exact"] == "5/8"
    assert "undecided" in exactgrpo("run", path, "--max-bits", "4096").stdout
    decided = json.loads(exactgrpo("run", path, "--json").stdout)
    assert decided["status"] == "complete"


def test_a_number_that_overflows_a_double_is_a_text(tmp_path: Path) -> None:
    path = tmp_path / "huge.toml"
    path.write_text(KINK.replace("theta0 = [\"1/2\"]", "theta0 = [\"2^2000\"]").replace('"t < 1"', '"t > 1"').replace('"1 - t"', '"t^2"'))
    data = json.loads(exactgrpo("run", path, "--json").stdout)
    assert data["theta"][0]["float64"] == "inf"


def test_runs_that_take_longer_report_on_stderr(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(cli, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(cli, "LINE_SECONDS", 0.0)
    with cli._ticker() as tick:
        tick("outer iteration 1 of 2")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("outer iteration 1 of 2, 0 s")


def test_quick_runs_are_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with cli._ticker() as tick:
        tick("outer iteration 1 of 2")
    assert capsys.readouterr().err == ""


def test_an_interrupt_is_one_line_and_130(tmp_path: Path) -> None:
    text = (EXAMPLES / "large_softmax.toml").read_text(encoding="utf-8").replace("outer_iterations = 1", "outer_iterations = 2000")
    path = tmp_path / "long.toml"
    path.write_text(text, encoding="utf-8")
    running = subprocess.Popen([sys.executable, "-m", "exactgrpo.cli", "run", path, "--json"], stdout=-1, stderr=-1, text=True)
    assert running.stderr is not None
    first = running.stderr.readline()  # progress: the run has started
    running.send_signal(signal.SIGINT)
    out, error = running.communicate(timeout=60)
    assert "outer iteration" in first
    assert (running.returncode, out) == (ExitCode.INTERRUPTED, "")
    assert error.splitlines()[-1] == "exactgrpo: interrupted"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_output_that_cannot_be_written_is_one_line_and_70(kink: Path, form: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "exactgrpo.cli", "run", str(kink), *form]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == ExitCode.OWN_FAULT
    assert done.stderr.count("\n") == 1
    assert "cannot be written" in done.stderr


def test_a_fault_of_ours_is_one_line_and_70(kink: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise KeyError("a\nb")

    monkeypatch.setattr("exactgrpo.spec.load_problem", broken)
    monkeypatch.setattr(sys, "argv", ["exactgrpo", "run", str(kink)])
    assert cli._main() == ExitCode.OWN_FAULT
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "internal error" in captured.err


# ---- schema, examples, help


def test_the_schema_is_a_json_schema_of_update_files() -> None:
    schema = json.loads(exactgrpo("schema").stdout)
    assert schema["$schema"].endswith("2020-12/schema")
    assert "UpdateFile" in schema["$defs"]


def test_examples_are_listed_with_what_they_show() -> None:
    lines = exactgrpo("examples").stdout.splitlines()
    assert [Path(line).name for line in lines[::2]] == sorted(path.name for path in EXAMPLES.glob("*.toml"))
    assert all(line.strip() for line in lines[1::2])


@pytest.mark.parametrize("arguments", [[], ["--help"], ["run", "--help"]])
def test_help_is_on_stdout(arguments: list[str]) -> None:
    done = exactgrpo(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: exactgrpo")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rum"], "No such command 'rum'"),
        (["run"], "Missing argument 'FILE'"),
        (["run", "x.toml", "--digit"], "No such option"),
        (["run", "x.toml", "--digits", "many"], "'many' is not"),
        (["run", "x.toml", "--digits", "-1"], "not in the range"),
        (["run", "x.toml", "y.toml"], "unexpected extra argument"),
    ],
)
def test_wrong_usage_is_one_line_and_2(arguments: list[str], message: str) -> None:
    done = exactgrpo(*arguments)
    assert (done.returncode, done.stdout) == (ExitCode.BAD_INPUT, "")
    assert done.stderr.count("\n") == 1
    assert message.lower() in done.stderr.lower()


# ---- bad input, end to end


def changed(old: str, new: str) -> bytes:
    assert old in KINK, old
    return KINK.replace(old, new).encode()


BAD = {
    "masses that do not sum to one": (changed('reference = ["1/2", "1/2"]', 'reference = ["1/2", "1/3"]'), "prompts[0].reference"),
    "a zero mass": (changed('reference = ["1/2", "1/2"]', "reference = [1, 0]"), "prompts[0].reference[1]"),
    "a negative mass": (changed('reference = ["1/2", "1/2"]', 'reference = ["3/2", "-1/2"]'), "prompts[0].reference[1]"),
    "a reference off the support": (changed('reference = ["1/2", "1/2"]', 'reference = ["1/2", "1/4", "1/4"]'), "prompts[0].reference"),
    "duplicate prompts": (
        KINK.replace("[policy]", '[[prompts]]\nname = "q1"\nresponses = ["a"]\nrewards = [0]\n[policy]').encode(),
        "prompts[1].name",
    ),
    "no prompts": (changed("[[prompts]]\nname", "prompts = []\n[x]\nname"), "unknown key"),
    "an empty list of responses": (changed('responses = ["a", "b"]', "responses = []"), "prompts[0].responses"),
    "an empty list of rewards": (changed("rewards = [1, 0]", "rewards = []"), "prompts[0].rewards"),
    "a group of one": (changed("group_size = 2", "group_size = 1"), "update.group_size"),
    "T = 0": (changed("outer_iterations = 1", "outer_iterations = 0"), "update.outer_iterations"),
    "K = 0": (changed("inner_steps = 3", "inner_steps = 0"), "update.inner_steps"),
    "epsilon = 0": (changed('epsilon = "1/4"', "epsilon = 0"), "update.epsilon"),
    "epsilon = 1": (changed('epsilon = "1/4"', "epsilon = 1"), "update.epsilon"),
    "a negative beta": (changed("beta = 0", 'beta = "-1/10"'), "update.beta"),
    "a step of zero": (changed('step_size = "1/16"', "step_size = 0"), "update.step_size"),
    "theta0 outside U": (changed('theta0 = ["1/2"]', "theta0 = [1]"), "policy.theta0"),
    "an unknown key": (changed("inner_steps", "innersteps"), "update.innersteps"),
    "nan": (changed("rewards = [1, 0]", "rewards = [nan, 0]"), "prompts[0].rewards[0]"),
    "inf": (changed("rewards = [1, 0]", "rewards = [1, inf]"), "prompts[0].rewards[1]"),
    "a wrong shape": (changed("rewards = [1, 0]", "rewards = [[1, 0]]"), "prompts[0].rewards[0]"),
    "a draw outside the support": (changed('[[["a", "b"]]]', '[[["a", "c"]]]'), "update.draws[0][0][1]"),
    "too few draws": (changed('[[["a", "b"]]]', '[[["a"]]]'), "update.draws[0][0]"),
    "1e999999999": (changed("rewards = [1, 0]", "rewards = [1e999999999, 0]"), "prompts[0].rewards[0]"),
    "a tower of powers": (changed('theta0 = ["1/2"]', 'theta0 = ["9^9^9^9"]'), "policy.theta0[0]"),
    "millions of digits": (changed('theta0 = ["1/2"]', f'theta0 = ["0.{"1" * 3_000_000}"]'), "policy.theta0[0]"),
    "millions of digits in a literal": (changed("beta = 0", f"beta = 0.{'1' * 3_000_000}"), "line 19"),
    "ten thousand brackets in a text": (changed('"1 - t"', f'"{"(" * 10_000}t{")" * 10_000}"'), "policy.weights.q1[1]"),
    "ten thousand brackets in the file": (changed("rewards = [1, 0]", f"rewards = {'[' * 10_000}{']' * 10_000}"), "bad.toml"),
    "division by zero": (changed('theta0 = ["1/2"]', 'theta0 = ["1/(1-1)"]'), "policy.theta0[0]"),
    "the logarithm of a negative number": (changed('theta0 = ["1/2"]', 'theta0 = ["log(-1)"]'), "policy.theta0[0]"),
    "Python code": (changed('theta0 = ["1/2"]', "theta0 = [\"__import__('os').system('touch hacked')\"]"), "policy.theta0[0]"),
    "a boolean": (changed("rewards = [1, 0]", "rewards = [true, false]"), "prompts[0].rewards[0]"),
    "an empty file": (b"", "bad.toml"),
    "a binary file": (bytes(range(256)) * 40, "bad.toml"),
    "no TOML": (b"kind = ", "bad.toml"),
    "a terminal escape in a name": (changed('weights.q1 = ["t", "1 - t"]', 'weights."\\u001b[31m" = ["t", "1 - t"]'), "policy.weights"),
}


MEASURED = """
import re, sys
from exactgrpo import cli
code = cli._main()
print("peak", re.search(r"VmHWM:\\s*(\\d+ kB)", open("/proc/self/status").read())[1], file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to see the memory of a process")
@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_with_place_and_2(name: str, tmp_path: Path) -> None:
    content, place = BAD[name]
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    start = time.monotonic()
    command = [sys.executable, "-c", MEASURED, "run", str(path), "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    measured = re.fullmatch(r"((?s:.*))peak (\d+) kB\n", done.stderr)
    assert measured is not None, done.stderr
    error, peak = measured.groups()
    assert (done.returncode, done.stdout) == (ExitCode.BAD_INPUT, ""), error
    assert time.monotonic() - start < 6  # a budget of 2 s, at three times its value
    assert int(peak) < 500_000
    assert error.count("\n") == 1
    assert error.startswith(f"exactgrpo: {path}: ")
    assert place in error
    assert len(error) < 600
    assert "\x1b" not in error
    assert [p.name for p in tmp_path.iterdir()] == ["bad.toml"]


@pytest.mark.parametrize(("name", "rule"), [("missing.toml", "No such file"), (".", "end in .toml"), ("data.csv", "end in .toml")])
def test_files_that_cannot_be_read_are_named(tmp_path: Path, name: str, rule: str) -> None:
    done = exactgrpo("run", tmp_path / name)
    assert (done.returncode, done.stdout) == (ExitCode.BAD_INPUT, "")
    assert rule in done.stderr
    assert done.stderr.count("\n") == 1
