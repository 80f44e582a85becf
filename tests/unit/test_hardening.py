"""Faults that were found by attack, each with the test that it left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from fractions import Fraction as F
from pathlib import Path
from typing import Any

import flint
import numpy as np
import pytest
from flint import arb

import exactgrpo as eg
from exactgrpo import Problem, Prompt, Seed, run
from exactgrpo.cli import EXAMPLES, ExitCode
from exactgrpo.numbers import filter as module
from exactgrpo.numbers.precision import precision
from exactgrpo.spec import loads, problem

KINK = EXAMPLES / "kink.toml"


def exactgrpo(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "exactgrpo.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, **options)


# ---- threads


def test_the_constants_of_the_filter_are_right_to_the_last_bit() -> None:
    with precision(300):
        low = arb(2).log() / 64 - arb(float(module._LN2_64_HIGH))
        assert abs(low - arb(module._LN2_64_LOW)) < abs(low) * arb(2) ** -53
        for j, power in enumerate(module._POWERS.tolist()):
            assert abs(arb(2) ** (arb(j) / 64) - arb(power)) <= arb(2) ** -53


def test_threads_get_the_answers_of_one_thread_and_leave_the_precision_alone() -> None:
    before = flint.ctx.prec

    def digits() -> str:
        return run(eg.load_problem(EXAMPLES / "tokens.toml"), digits=60).theta[0].digits(60)

    expected, seen = digits(), []
    threads = [threading.Thread(target=lambda: seen.append(digits())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [expected] * 4
    assert flint.ctx.prec == before


# ---- mathematics at the edge


@pytest.mark.parametrize("weight", ["5 + t^0", "5 + t^0*sqrt(2)", "5 + (t^2)^0", "2 + (t - 1)^0 + (t + 1)^0"])
def test_a_power_of_zero_is_one_at_zero_too(weight: str) -> None:
    text = (
        'kind = "update"\nprompts = [{name = "q", responses = ["a", "b"], rewards = [1, 0]}]\n'
        f'policy = {{family = "expression", parameters = ["t"], theta0 = [0], weights.q = ["{weight}", "t + 1"]}}\n'
        "update = {group_size = 2, outer_iterations = 1, inner_steps = 2, epsilon = 0.25, beta = 0, step_size = 1, "
        'draws = [[["a", "b"]]]}\n'
    )
    result = run(problem(loads(text, "toml")))
    gradient = result.steps[0].gradient
    assert result.status == "complete"
    assert gradient is not None
    assert gradient[0] == F(-1, 2)  # (1/2) d/dt (log pi_a - log pi_b) at 0, where w_a is constant and w_b is 1 + t


def test_equal_rewards_written_differently_are_proved_by_an_identity() -> None:
    prompt = Prompt.of("q", ["a", "b"], ["sqrt(2)*sqrt(3)", "sqrt(6)"])
    problem_ = Problem.of(
        prompts=[prompt], family=eg.Softmax.of([[[1], [0]]], size=1), theta0=[0], group_size=2, outer_iterations=1, inner_steps=1,
        epsilon="1/5", beta=0, step_size=1, draws=eg.Tape.of([[["a", "b"]]], [prompt]),
    )  # fmt: skip
    for term in run(problem_).steps[0].terms:
        assert term.proof is not None
        assert (term.side, term.proof.kind) == ("zero advantage", "identity")


def test_the_terms_of_a_step_that_stayed_open_are_shown() -> None:
    """The bound of the first response is missed by less than the budget tells; the second one's ratio is decided."""
    prompt = Prompt.of("q", ["a", "b"], [1, 0])
    problem_ = Problem.of(
        prompts=[prompt], family=eg.Rational.of([["t", "1 - t"]], parameters=["t"]), theta0=["1/2"], group_size=2, outer_iterations=1,
        inner_steps=3, epsilon=("1/2", "1/4 + 2^-9000*exp(exp(1))"), beta=0, step_size="1/16", draws=eg.Tape.of([[["a", "b"]]], [prompt]),
    )  # fmt: skip
    result = run(problem_, max_bits=4096)
    assert result.status == "undecided"
    assert {term.side for term in result.steps[-1].terms} == {"undecided"}


# ---- names with two meanings


def test_a_prompt_that_reads_as_another_prompts_context_is_refused() -> None:
    protocol = eg.GenerationProtocol.of(["x"], end=".", max_length=2)
    tables = {"*": {"x": "a", ".": 0}}
    with pytest.raises(eg.PolicyError, match="the context of prompt 'q' after the token 'x'"):
        eg.Tokens.of(protocol, ["q", "q x"], tables, parameters=["a"], conditional="softmax")
    with pytest.raises(eg.PolicyError, match="no prompt has this name"):
        eg.Tokens.of(protocol, ["*"], tables, parameters=["a"], conditional="softmax")
    assert eg.Tokens.of(protocol, ["q", "q y"], tables, parameters=["a"], conditional="softmax").rows.count == 2


def test_a_table_of_rewards_needs_responses_not_named_star() -> None:
    text = (
        'kind = "update"\nprompts = [{name = "q", responses = ["*", "b"], rewards = {"*" = 1}}]\n'
        'policy = {family = "softmax", theta0 = [0], features.q = [[1], [0]]}\n'
        "update = {group_size = 2, outer_iterations = 1, inner_steps = 1, epsilon = 0.25, beta = 0, step_size = 1, draws = {seed = 1}}\n"
    )
    with pytest.raises(eg.RewardError, match="stands for all other responses"):
        problem(loads(text, "toml"))


# ---- arguments from Python


@pytest.mark.parametrize(
    "call",
    [
        lambda: eg.advantages("12"),
        lambda: eg.advantages(None),  # type: ignore[arg-type]
        lambda: eg.advantages({"a": 1}),  # type: ignore[arg-type]
        lambda: eg.population_std([]),
        lambda: eg.clip_term("5/4", 1, epsilon=("1/5",)),
        lambda: eg.clip_term("5/4", 1, epsilon=None),
        lambda: eg.kl_policy_from_reference(None, None),  # type: ignore[arg-type]
        lambda: eg.kl_policy_from_reference(["1/2", "1/2"], [1]),
        lambda: eg.sequence_ratio(None, ["1/2"]),  # type: ignore[arg-type]
        lambda: eg.sequence_ratio("12", "34"),
    ],
)
def test_wrong_arguments_are_input_errors(call: Any) -> None:
    with pytest.raises(eg.InputError):
        call()


def test_arrays_of_integers_are_lists_of_numbers() -> None:
    assert [a.as_fraction() for a in eg.advantages(np.array([1, 2]))] == [-1, 1]  # type: ignore[arg-type]


# ---- streams and signals


def test_a_reader_that_goes_away_is_no_refutation() -> None:
    for form in ([], ["--json"]):
        command = [sys.executable, "-m", "exactgrpo.cli", "run", str(EXAMPLES / "logged_groups.toml"), *form]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert running.stdout is not None
        running.stdout.read(1)
        running.stdout.close()
        assert running.stderr is not None
        assert (running.wait(timeout=60), running.stderr.read()) == (ExitCode.DONE, b"")


def test_closed_stdout_is_one_line() -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "{sys.executable}" -m exactgrpo.cli run "{KINK}" >&-'], stderr=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode == ExitCode.OWN_FAULT
    assert done.stderr == "exactgrpo: the output cannot be written: stdout is closed\n"


def test_names_outside_the_encoding_of_stdout_are_escaped(tmp_path: Path) -> None:
    path = tmp_path / "name.toml"
    path.write_text(KINK.read_text(encoding="utf-8").replace('"right"', '"richtig \N{CHECK MARK}"'), encoding="utf-8")
    for form in ([], ["--json"]):
        done = exactgrpo("run", path, *form, env={**os.environ, "PYTHONIOENCODING": "ascii"})
        assert (done.returncode, done.stderr) == (0, "")
        assert "richtig \\u2713" in done.stdout


def test_control_characters_of_names_do_not_reach_a_terminal(tmp_path: Path) -> None:
    path = tmp_path / "name.toml"
    path.write_text(KINK.read_text(encoding="utf-8").replace('"right"', '"\\u001b[31mred\\u202e"'), encoding="utf-8")
    output = exactgrpo("run", path).stdout
    assert "\x1b" not in output
    assert "\u202e" not in output


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe.toml"
    os.mkfifo(path)
    done = exactgrpo("run", path)
    assert done.returncode == ExitCode.BAD_INPUT
    assert "a regular file is needed" in done.stderr


@pytest.mark.parametrize("delay", [0, 0.02, 0.1, 0.3])
def test_an_early_interrupt_leaves_no_traceback(delay: float) -> None:
    program = "import signal, sys; from exactgrpo.cli import main; signal.signal(signal.SIGINT, signal.default_int_handler); "
    program += "sys.argv[1:] = ['verify']; print('ready', flush=True); main()"
    running = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n"
    time.sleep(delay + 0.01)  # into main
    running.send_signal(signal.SIGINT)
    _, error = running.communicate(timeout=60)
    assert running.returncode == ExitCode.INTERRUPTED
    assert "Traceback" not in error


# ---- sizes


def test_large_numbers_are_not_multiplied_out_before_they_are_found_too_long() -> None:
    prompt = Prompt.of("q", ["a", "b"], [1, 0])
    problem_ = Problem.of(
        prompts=[prompt], family=eg.Rational.of([["(1 + t)^64", "1 + t"]], parameters=["t"]), theta0=["1/9^30000"], group_size=2,
        outer_iterations=1, inner_steps=2, epsilon="1/4", beta=0, step_size=1, draws=eg.Tape.of([[["a", "b"]]], [prompt]),
    )  # fmt: skip
    assert run(problem_).theta[0].digits(5) == "31.500"


def test_long_towers_of_roots_print_at_once() -> None:
    root = "1/2"
    for _ in range(40):
        root = f"sqrt({root})"
    assert eg.Real.of(root).digits(5) == "1.0000"


def test_the_sampler_takes_large_groups_in_parts() -> None:
    prompt = Prompt.of("q", [f"y{j}" for j in range(300)], [0] * 300)
    size = 3000  # 897,000 comparisons: four parts
    problem_ = Problem.of(
        prompts=[prompt], family=eg.Softmax.of([[[F(j, 300)] for j in range(300)]], size=1), theta0=[0], group_size=size,
        outer_iterations=1, inner_steps=1, epsilon="1/5", beta=0, step_size=1, draws=Seed(1),
    )  # fmt: skip
    step = run(problem_).steps[0]
    assert sum(step.draw_comparisons().values()) >= 2 * 299 * size
    assert {len(group) for group in step.groups.draws} == {size}
