"""The bundled example files: each loads and runs, and ends with the exact answer that its header states."""

from __future__ import annotations

import importlib.resources
import runpy
from collections import Counter
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest

from exactgrpo.numbers.real import Real
from exactgrpo.spec import load_problem
from exactgrpo.update.problem import Problem
from exactgrpo.update.run import Run, run
from exactgrpo.update.trace import Evidence, Step

EXAMPLES = Path(str(importlib.resources.files("exactgrpo"))) / "examples"
SOURCE = Path(__file__).parents[1] / "examples_source.py"

STATUS = {
    "huge_ratio": "complete",
    "kink": "undefined-gradient",
    "kl": "complete",
    "large_softmax": "complete",
    "logged_groups": "complete",
    "outlier": "complete",
    "smooth_ties": "complete",
    "tiny_rewards": "complete",
    "tokens": "complete",
    "two_cycle": "complete",
    "zero_variance": "complete",
}
PROOFS = {"rational", "enclosure", "identity", "separation bound"}


@cache
def run_of(name: str) -> Run:
    return run(load_problem(EXAMPLES / f"{name}.toml"))


def theta(result: Run) -> list[str | None]:
    return [x.exact() for x in result.theta]


def gradient(step: Step) -> list[str | None]:
    assert step.gradient is not None
    return [x.exact() for x in step.gradient]


def objective(step: Step) -> Real:
    assert step.objective is not None
    return step.objective


def table(step: Step) -> list[tuple[str, str, str | None, str | None, str]]:
    """(prompt, response, advantage, ratio, side) of each sample; the ratio of a sample without advantage is not evaluated."""
    return [(x.prompt, x.response, x.advantage.exact(), None if x.ratio is None else x.ratio.exact(), x.side) for x in step.terms]


def complete_counts(problem: Problem) -> dict[str, int]:
    """What a run that completes has counted: T outer iterations of K steps over M prompts with groups of G."""
    t, k, m = problem.outer_iterations, problem.inner_steps, len(problem.prompts)
    responses = sum(len(prompt.responses) for prompt in problem.prompts)
    return {
        "draws": t * m * problem.group_size,
        "reward_evaluations": t * m * problem.group_size,
        "mass_evaluations": t * k * responses,
        "gradient_attempts": t * k,
        "domain_calls": t * k,
        "square_roots": t * m,
        "logarithms": t * k * responses if problem.beta != 0 else 0,
    }


def counts(result: Run) -> dict[str, int]:
    return {name: getattr(result.counts, name) for name in complete_counts(result.problem)}


# ---- all files


def test_every_example_is_listed_here() -> None:
    models = ["clipped_delay", "geometric_ageing", "tabular_3x2"]  # of delayed rewards: see the test_file.py of each
    assert sorted([*STATUS, *models]) == sorted(path.stem for path in EXAMPLES.iterdir() if path.suffix in (".toml", ".json"))


@pytest.mark.parametrize("name", STATUS)
def test_an_example_begins_with_what_it_shows(name: str) -> None:
    first, second, *_ = (EXAMPLES / f"{name}.toml").read_text(encoding="utf-8").splitlines()
    assert first.startswith("# ")
    assert first.endswith(".")
    assert second == "#"


@pytest.mark.parametrize("name", STATUS)
def test_an_example_runs_to_its_status_with_every_comparison_proved(name: str) -> None:
    result = run_of(name)
    assert (result.status, result.undecided) == (STATUS[name], None)
    for step in result.steps:
        assert all(d.sign is not None and d.proof is not None and d.proof.kind in PROOFS for d in step.decisions())
        assert all(x.side != "undecided" and x.proof is not None and x.proof.kind in PROOFS for x in step.terms)
    if result.status == "complete":
        assert counts(result) == complete_counts(result.problem)


# ---- the instances, one file each; the working stands in the header of the file


def test_kink_ends_at_five_eighths_without_a_gradient() -> None:
    result = run_of("kink")
    first, second = result.steps
    assert theta(result) == ["5/8"]
    assert [x.exact() for x in second.theta] == ["5/8"]
    assert gradient(first) == ["2"]
    assert table(second) == [("question", "right", "1", "5/4", "kink"), ("question", "wrong", "-1", "3/4", "kink")]
    assert objective(second).as_fraction() == Fraction(1, 4)
    assert (second.gradient, second.proposal, second.in_domain) == (None, None, None)
    # the procedure stops at its second gradient attempt, before a second domain call
    assert counts(result) == {
        "draws": 2,
        "reward_evaluations": 2,
        "mass_evaluations": 4,
        "gradient_attempts": 2,
        "domain_calls": 1,
        "square_roots": 1,
        "logarithms": 0,
    }


def test_kink_has_one_sided_derivatives_two_and_zero() -> None:
    evidence = run_of("kink").steps[1].evidence
    assert isinstance(evidence, Evidence)
    assert evidence.terms == (("question", "right"), ("question", "wrong"))
    assert [[x.exact() for x in pair] for pair in evidence.one_sided()] == [["2", "0"]]
    assert [x.exact() for x in evidence.rest] == ["0"]
    assert [[x.exact() for x in generator] for generator in evidence.generators] == [["1"], ["1"]]


def test_smooth_ties_return_to_one_half() -> None:
    result = run_of("smooth_ties")
    first, second = result.steps
    assert (gradient(first), gradient(second), theta(result)) == (["-1"], ["1"], ["1/2"])
    assert table(second) == [
        ("slow", "right", "1", "3/4", "smooth tie"),
        ("slow", "wrong", "-1", "5/4", "smooth tie"),
        ("fast", "right", "-1", "1/2", "clipped"),
        ("fast", "wrong", "1", "3/2", "clipped"),
    ]
    # (1/4)(3/4 - 5/4 - 3/4 + 5/4)
    assert objective(second).as_fraction() == 0


def test_outlier_has_advantages_of_sqrt_seven() -> None:
    result = run_of("outlier")
    step = result.steps[1]
    assert theta(result) == ["1/2 - sqrt(7)/16"]
    assert gradient(step) == ["-sqrt(7)/2"]
    assert table(step) == [("question", "failed", "-sqrt(7)", "1 - sqrt(7)/16", "unclipped")] + [
        ("question", "solved", "sqrt(7)/7", "1 + sqrt(7)/16", "unclipped")
    ] * 7
    # (1/8)(-sqrt(7)(1 - sqrt(7)/16) + sqrt(7)(1 + sqrt(7)/16)) = (1/8)(14/16)
    assert objective(step).as_fraction() == Fraction(7, 64)


def test_tiny_rewards_have_advantages_of_one() -> None:
    result = run_of("tiny_rewards")
    assert theta(result) == ["5/8"]
    assert [gradient(step) for step in result.steps] == [["2"], ["2"]]
    assert table(result.steps[1]) == [("question", "better", "1", "9/8", "unclipped"), ("question", "worse", "-1", "7/8", "unclipped")]


def test_zero_variance_leaves_a_quarter_minus_log_three_over_forty() -> None:
    result = run_of("zero_variance")
    (step,) = result.steps
    assert gradient(step) == theta(result) == ["1/4 - 1/40*log(3)"]
    assert objective(step) == Real.of("-log(4/3)/20")
    assert table(step) == [
        ("easy", "right", "0", None, "zero advantage"),
        ("easy", "wrong", "0", None, "zero advantage"),
        ("hard", "right", "1", "1", "unclipped"),
        ("hard", "wrong", "-1", "1", "unclipped"),
    ]


def test_kl_is_half_of_log_four_thirds() -> None:
    result = run_of("kl")
    (step,) = result.steps
    assert objective(step) == Real.of("-log(4/3)/2")
    assert gradient(step) == theta(result) == ["-1/4*log(3)"]
    assert result.counts.logarithms == 2


def test_huge_ratio_is_exactly_e_to_the_800() -> None:
    result = run_of("huge_ratio")
    first, second = result.steps
    assert (gradient(first), [x.exact() for x in second.theta]) == (["1/4", "0"], ["400", "0"])
    assert table(second) == [
        ("up", "right", "1", "exp(800)", "clipped"),
        ("up", "wrong", "-1", "exp(-800)", "clipped"),
        ("equal", "right", "0", None, "zero advantage"),
        ("equal", "wrong", "0", None, "zero advantage"),
        ("down", "right", "-1", "exp(800)", "unclipped"),
        ("down", "wrong", "1", "exp(-800)", "unclipped"),
        ("driver", "right", "1", "exp(800)", "clipped"),
        ("driver", "wrong", "-1", "exp(-800)", "clipped"),
    ]
    assert gradient(second) == ["-1/4", "-1/8*exp(800)"]
    # (1/8)(5/4 - 3/4 - e^800 + e^-800 + 5/4 - 3/4)
    assert objective(second) == Real.of("1/8 - exp(800)/8 + exp(-800)/8")
    assert theta(result) == ["398", "-exp(800)"]


def test_two_cycle_alternates_between_log_two_and_its_negative() -> None:
    result = run_of("two_cycle")
    assert [[x.exact() for x in step.theta] for step in result.steps] == [["log(2)"], ["-log(2)"]] * 3
    assert theta(result) == ["log(2)"]
    # -(1/10)(2/9) log 2 = -(1/45) log 2
    assert [gradient(step) for step in result.steps] == [["-1/45*log(2)"], ["1/45*log(2)"]] * 3
    # KL = log 2 - H(2/3) = log 2 + (2/3) log(2/3) + (1/3) log(1/3) = (5/3) log 2 - log 3
    assert all(objective(step) == Real.of("(log(3) - 5*log(2)/3)/10") for step in result.steps)


# ---- the larger files


def test_tokens_have_341_responses_a_prompt() -> None:
    result = run_of("tokens")
    ended, cut_off = set(), set()
    for response in result.problem.prompts[0].responses:
        tokens = response.split(" ")
        (ended if tokens[-1] == "." else cut_off).add(len(tokens))
    assert [len(prompt.responses) for prompt in result.problem.prompts] == [341, 341]
    assert (ended, cut_off) == ({1, 2, 3, 4}, {4})
    # the second iteration has drawn good answers to both prompts, and its last step has left some of them behind
    assert {x.side for x in result.steps[5].terms} == {"clipped", "unclipped"}
    assert result.theta[3] > 0


def test_large_softmax_is_re_derived_byte_for_byte() -> None:
    source = runpy.run_path(str(SOURCE))
    assert source["large_softmax"]().encode("utf-8") == (EXAMPLES / "large_softmax.toml").read_bytes()


def test_large_softmax_has_the_sizes_of_its_header() -> None:
    problem = run_of("large_softmax").problem
    assert (len(problem.prompts), {len(p.responses) for p in problem.prompts}, problem.family.size) == (64, {64}, 16)
    assert (problem.group_size, problem.inner_steps, problem.beta) == (16, 4, Fraction(1, 10))
    assert all(0 <= r <= 1 and r.denominator in (1, 2, 4, 5, 10, 20, 25, 50, 100) for r in problem.rewards)


def test_logged_groups_are_the_504_scores_of_101_prompts() -> None:
    problem = run_of("logged_groups").problem
    assert (len(problem.prompts), len(problem.parameters)) == (101, 5)
    assert Counter(len(p.responses) for p in problem.prompts) == {5: 100, 4: 1}
    (short,) = (p for p in problem.prompts if len(p.responses) == 4)
    assert (short.name, set(problem.parameters) - set(short.responses)) == ("arena_22", {"base"})
    scores = Counter(problem.rewards)
    assert (sum(scores.values()), scores[Fraction("0.85")], scores[Fraction("0.7")]) == (504, 194, 112)
    assert all(0 <= r <= 1 and (20 * r).denominator == 1 for r in scores)
    assert sum(len(set(p.rewards)) == 1 for p in problem.prompts) == 2
    means = {w: [r for p in problem.prompts for y, r in zip(p.responses, p.rewards, strict=True) if y == w] for w in problem.parameters}
    assert min(means, key=lambda w: sum(means[w]) / len(means[w])) == "unhelpful"


def test_logged_groups_lower_the_policy_that_the_judge_likes_least() -> None:
    # features are one-hot, so each gradient sums to zero: the parameters keep the sum 0 within any enclosure
    result = run_of("logged_groups")
    *others, unhelpful = result.theta
    assert all(unhelpful < -1 and x > 0 for x in others)
    bounds = [x.enclose(40) for x in result.theta]
    assert sum(low for low, _ in bounds) <= 0 <= sum(high for _, high in bounds)
    assert sum(high - low for low, high in bounds) < Fraction(1, 10**39)


def test_logged_groups_name_their_source_and_licence() -> None:
    text = (EXAMPLES / "logged_groups.toml").read_text(encoding="utf-8")
    assert all(words in text for words in ("fondutech/causal-judge-evaluation", "6cf6e0ba7d66b38b2b73256bd4cbe8bceba1d039", "MIT"))
