"""Files of the tabular benchmark and the command that runs them."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from fractions import Fraction as F
from math import exp
from pathlib import Path
from typing import Any

import pytest
from tabular_mdps import FILE

from exactgrpo import InputError
from exactgrpo.cli import EXAMPLES, ExitCode
from exactgrpo.tabular.file import benchmark_of, load_benchmark, with_changes


def data(**changes: Any) -> dict[str, Any]:
    return {key: x for key, x in {**copy.deepcopy(FILE), **changes}.items() if x is not None}


def run(*arguments: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "exactgrpo.cli", "benchmark", *map(str, arguments)], capture_output=True, text=True, check=False
    )


# ---- files


def test_what_a_file_means() -> None:
    found = benchmark_of(data())
    assert (found.delays, found.time_constant) == ((5, 20, 50), 1000)
    assert found.mdp.rewards["slow"] == ((0, F(1, 2)), (2, 1))
    assert found.mdp.start == (F(1, 2), F(1, 2))
    other = benchmark_of(data(start=[1, 0], delays=[0, 7], age_time_constant="1/2", states=None, actions=None, note="x", theta=[]))
    assert (other.mdp.start, other.delays, other.time_constant) == ((1, 0), (0, 7), F(1, 2))


def test_the_bundled_instance_is_that_of_its_file() -> None:
    assert load_benchmark("3x2") == load_benchmark(EXAMPLES / "tabular_3x2.json")
    assert load_benchmark("3x2").mdp.horizon == 50


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"discount": 1}, "discount: '1': 0 <= discount < 1"),
        ({"discount": None}, "file: 'discount': this key is missing"),
        ({"horizon": "50"}, "horizon: '50': an integer of at least 1"),
        ({"states": 3}, "states: '3': there are 2 of them in 'policy'"),
        ({"actions": True}, "actions: True: an integer of at least 1"),
        ({"gamma": 1}, "gamma: 'gamma': unknown key"),
        ({"reward_slo": 1}, "reward_slo: 'reward_slo': unknown key; did you mean 'reward_slow'?"),
        ({"reward_slow": [[0, 0]]}, "reward_slow: '1 entries': one entry for each of the 2 states"),
        ({"reward_fast": [[0, "x"], [0, 0]]}, r"reward_fast\[0\]\[1\]: 'x': "),
        ({"transition": [[["1/2", "1/3"], [0, 1]], [["1/4", "3/4"], [1, 0]]]}, r"transition\[0\]\[0\]: 'sum 5/6': masses sum to one"),
        ({"transition": "P"}, "transition: 'P': a list is needed"),
        ({"delays": []}, "delays: 'an empty list': there is at least one delay"),
        ({"delays": 5}, "delays: 5: a list is needed"),
        ({"delays": [5, 5]}, r"delays\[1\]: 5: delays are different"),
        ({"delays": ["5"]}, r"delays\[0\]: '5': an integer of at least 0"),
        ({"delays": [10**6]}, r"delays\[0\]: 1000000: at most 10000 steps"),
        ({"delays": list(range(65))}, "delays: '65 delays': at most 64 delays"),
        ({"age_time_constant": 0}, "age_time_constant: '0': a time constant is positive"),
        ({"age_time_constant": "sqrt(2)"}, "age_time_constant: 'sqrt\\(2\\)': a rational number is needed"),
    ],
)
def test_a_fault_is_one_line_with_its_place(changes: dict[str, Any], message: str) -> None:
    broken = data(**changes)
    with pytest.raises(InputError, match=f"^{message}") as caught:
        benchmark_of(broken)
    assert "\n" not in str(caught.value)


def test_delays_and_horizon_may_be_changed() -> None:
    found = with_changes(load_benchmark("3x2"), delays="7, 0", horizon=4)
    assert (found.delays, found.mdp.horizon) == ((7, 0), 4)
    for bad in ("", "5,,6", "5;6", "-1", "1.5", "٣", "9" * 50):
        with pytest.raises(InputError, match=r"delays: .*integers with commas between them"):
            with_changes(load_benchmark("3x2"), delays=bad)


# ---- the command


def test_json_of_the_published_instance_with_thirty_digits() -> None:
    done = run("3x2", "--json", "--digits", 30)
    assert (done.returncode, done.stderr) == (ExitCode.DONE, "")
    found = json.loads(done.stdout)
    assert list(found["reductions"]) == ["naive", "rac", "wait_for_slow", "retrace_a", "vtrace"] == list(found["bias"])
    assert all(list(x) == ["by_delay", "mean_of_ratios", "ratio_of_means", "cost"] for x in found["reductions"].values())
    rac = found["reductions"]["rac"]
    assert [x["decimal"][:4] for x in rac["by_delay"]] == ["69.2", "83.6", "27.5"]
    assert rac["mean_of_ratios"]["decimal"] == "60.1628768980120166666147560052"
    assert F(rac["mean_of_ratios"]["lower"]) < F(rac["mean_of_ratios"]["upper"])
    assert found["reductions"]["wait_for_slow"]["cost"]["stop_and_wait"]["exact"] == "26"
    assert found["reductions"]["naive"]["ratio_of_means"]["exact"] == "1"
    assert found["limits"]["retrace_a"][0]["exact"] == "100000/40951"
    assert found["limits"]["wait_for_slow"] == [None] * 3
    assert {"horizon": 50, "delay": 50, "smaller_bias": "wait_for_slow"} in found["rac_against_waiting"]
    assert len(found["both_channels_late"]["delays"]) == 6


def test_where_the_gradients_sum_to_the_target_a_reduction_is_one_over_the_slack(tmp_path: Path) -> None:
    one_state = {
        "discount": 0,
        "horizon": 3,
        "transition": [[[1], [1]]],
        "policy": [["1/3", "2/3"]],
        "reward_fast": [[0, 1]],
        "reward_slow": [[2, "1/2"]],
    }
    path = tmp_path / "one.json"
    path.write_text(json.dumps(one_state), encoding="utf-8")
    found = json.loads(run(path, "--json", "--delays", "5,20").stdout)
    assert found["is_one_over_slack"] is True
    for name in ("rac", "retrace_a"):
        assert found["limits"][name] == found["reductions"][name]["by_delay"]
    assert [x["float64"] for x in found["reductions"]["rac"]["by_delay"]] == pytest.approx([1 / (1 - exp(-d / 1000)) for d in (5, 20)])
    assert "one over the slack 1 - w, at this horizon too" in run(path, "--delays", "5").stdout.replace("\n", " ")
    assert json.loads(run("3x2", "--json").stdout)["is_one_over_slack"] is False
    assert "the rule does not apply" in run("3x2").stdout.replace("\n", " ")


def test_the_tables_say_the_same() -> None:
    done = run("3x2", "--digits", 12)
    assert (done.returncode, done.stderr) == (ExitCode.DONE, "")
    assert any(line.split()[:5] == ["mean", "of", "ratios", "1", "60.1628768980..."] for line in done.stdout.splitlines())
    assert "no bias" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 120


def test_a_number_in_the_file_moves_the_result(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    mine = json.loads((EXAMPLES / "tabular_3x2.json").read_text(encoding="utf-8"))
    mine["reward_slow"][0][0] = "1/2"
    path.write_text(json.dumps(mine), encoding="utf-8")
    found = [json.loads(run(file, "--json").stdout)["reductions"]["rac"]["mean_of_ratios"]["decimal"] for file in ("3x2", path)]
    assert found[0] == "60.162876898"
    assert found[1] != found[0]


def test_options_of_the_command() -> None:
    found = json.loads(run("3x2", "--json", "--delays", "5", "--horizon", 10).stdout)
    assert (found["delays"], found["horizon"]) == ([5], 10)
    assert {d["horizon"] for d in found["rac_against_waiting"]} == {10, 50, 200}


def test_a_file_of_several_recurrent_classes_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    path = tmp_path / "split.json"
    path.write_text(json.dumps(data(transition=[[[1, 0], [1, 0]], [[0, 1], [0, 1]]])), encoding="utf-8")
    done = run(path)
    assert (done.returncode, done.stdout) == (ExitCode.BAD_INPUT, "")
    assert done.stderr == (
        "exactgrpo: transition: '2 recurrent classes: states 0, 1, ...': the stationary law is unique for one class only\n"
    )


@pytest.mark.parametrize(
    "arguments", [["4x4"], ["missing.json"], ["3x2", "--delays", "x"], ["3x2", "--horizon", 0], ["3x2", "--horizon", 99999]]
)
def test_bad_arguments_are_one_line_and_exit_code_2(arguments: list[Any]) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (ExitCode.BAD_INPUT, "")
    assert done.stderr.count("\n") == 1
