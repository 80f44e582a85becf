"""Small instances of the update with exact answers worked by hand, built from Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import pytest

from exactgrpo.numbers.arithmetic import Column
from exactgrpo.numbers.real import Real
from exactgrpo.numbers.text import parse_polynomial
from exactgrpo.policies.rational import Rational
from exactgrpo.policies.softmax import Softmax
from exactgrpo.update.clip import clip_term
from exactgrpo.update.divergence import kl_policy_from_reference
from exactgrpo.update.draws import Tape
from exactgrpo.update.groups import Statistics, advantages, population_std
from exactgrpo.update.point import evaluate_at
from exactgrpo.update.problem import Problem, Prompt
from exactgrpo.update.reference import ReferenceMasses
from exactgrpo.update.run import run

HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)
ONE_TO_THREE = ReferenceMasses(Column([QUARTER, 1 - QUARTER]))


def bernoulli(rewards: Sequence[Any], draws: Sequence[str], **changes: Any) -> Problem:
    """One prompt with responses a and b, pi = (t, 1 - t), t0 = 1/2, epsilon = 1/4, beta = 0, all draws supplied."""
    prompts = [Prompt("q", ("a", "b"), tuple(map(Fraction, rewards)))]
    constants: dict[str, Any] = {"inner_steps": 3, "step_size": "1/16", **changes}
    return Problem.of(
        prompts=prompts,
        family=Rational.of([[parse_polynomial(w, ["t"]) for w in ("t", "1 - t")]], size=1),
        theta0=["1/2"],
        group_size=len(draws),
        outer_iterations=1,
        epsilon="1/4",
        beta=0,
        draws=Tape.of([[list(draws)]], prompts),
        **constants,
    )


def one_logit(rewards: Sequence[Sequence[int]], reference: ReferenceMasses, **constants: Any) -> Problem:
    """Prompts with two responses, both drawn, pi = (1, e^-t)/(1 + e^-t) with one shared logit t."""
    prompts = [Prompt(f"q{i}", ("a", "b"), tuple(map(Fraction, r))) for i, r in enumerate(rewards)]
    outer = constants.pop("outer_iterations", 1)
    return Problem.of(
        prompts=prompts,
        family=Softmax.of([[[1], [0]]] * len(prompts), size=1),
        group_size=2,
        outer_iterations=outer,
        inner_steps=1,
        epsilon="1/5",
        draws=Tape.of([[["a", "b"]] * len(prompts)] * outer, prompts),
        reference=reference,
        **constants,
    )


def clipped_objective(t: Fraction) -> Fraction:
    """F of the kink by its definition: the mean of min(rho A, clip(rho, 3/4, 5/4) A) over a (A = 1) and b (A = -1)."""
    terms = [(1, t / HALF), (-1, (1 - t) / HALF)]
    return sum(min(rho * a, max(Fraction(3, 4), min(rho, Fraction(5, 4))) * a) for a, rho in terms) / 2


# ---- the kink: A = (1, -1), grad F(1/2) = (1/2)(1 * 2 - 1 * (-2)) = 2, t = 1/2 + 2/16 = 5/8, rho = (5/4, 3/4) = 1 +- epsilon


def test_two_ratios_on_their_bounds_leave_no_gradient() -> None:
    result = run(bernoulli([1, 0], "ab"))
    first, second = result.steps
    assert (result.status, result.theta[0].exact(), result.counts.gradient_attempts) == ("undefined-gradient", "5/8", 2)
    assert first.gradient is not None
    assert [first.gradient[0].exact(), second.gradient] == ["2", None]
    assert [(term.advantage.exact(), str(term.ratio.exact()), term.side) for term in second.terms if term.ratio is not None] == [
        ("1", "5/4", "kink"),
        ("-1", "3/4", "kink"),
    ]


def test_the_kink_has_the_one_sided_derivatives_two_and_zero() -> None:
    evidence = run(bernoulli([1, 0], "ab")).steps[1].evidence
    assert evidence is not None
    ((left, right),) = evidence.one_sided()
    assert (left.exact(), right.exact()) == ("2", "0")
    # each kink has the generator A grad rho/(G M) = (1/2) 2 = 1, the rest is empty: the Clarke set is [0, 1] + [0, 1]
    assert ([x.exact() for x in evidence.rest], [[x.exact() for x in g] for g in evidence.generators]) == (["0"], [["1"], ["1"]])
    assert (evidence.directional([1]).exact(), evidence.directional([-1]).exact()) == ("0", "-2")
    # F is piecewise linear: difference quotients are the derivatives
    at, h = Fraction(5, 8), Fraction(1, 1000)
    assert (clipped_objective(at) - clipped_objective(at - h)) / h == 2
    assert (clipped_objective(at + h) - clipped_objective(at)) / h == 0


def test_the_objective_at_the_kink_meets_its_ceiling_epsilon() -> None:
    # F = (1/2)(5/4 - 3/4) = 1/4 = epsilon mean|A|
    objective = run(bernoulli([1, 0], "ab")).steps[1].objective
    assert objective is not None
    assert Fraction(1, 4) == clipped_objective(Fraction(5, 8)) == objective.as_fraction()


# ---- smooth ties: t = 3/8 has rho = (3/4, 5/4); each term is on the bound where its derivative is A grad rho from both sides


def test_smooth_ties_keep_their_whole_derivative() -> None:
    step = evaluate_at(bernoulli([1, 0], "ab"), ["3/8"])
    assert [term.side for term in step.terms] == ["smooth tie", "smooth tie"]
    assert step.gradient is not None
    assert step.gradient[0].exact() == "2"
    at, h = Fraction(3, 8), Fraction(1, 1000)
    assert (clipped_objective(at) - clipped_objective(at - h)) / h == 2
    assert (clipped_objective(at + h) - clipped_objective(at)) / h == 2


@pytest.mark.parametrize(("rho", "advantage"), [("3/4", 1), ("5/4", -1)])
def test_a_smooth_tie_has_the_derivative_of_its_advantage(rho: str, advantage: int) -> None:
    term = clip_term(rho, advantage, epsilon="1/4")
    assert (term.side, term.left.exact(), term.right.exact()) == ("smooth tie", str(advantage), str(advantage))


# ---- group statistics


def test_one_failure_among_eight_has_the_largest_possible_advantage() -> None:
    # mean 7 (7/20)/8 = 49/160; variance (1/8)((49/160)^2 + 7 (7/160)^2) = 49 (49 + 7)/(8 160^2) = 7^3/160^2
    rewards = [Fraction(0)] + [Fraction(7, 20)] * 7
    assert Statistics.of(rewards).mean == Fraction(49, 160)
    assert Statistics.of(rewards).variance == Fraction(343, 25600)
    assert population_std(rewards) == Real.of("7*sqrt(7)/160")
    found = advantages(rewards)
    assert [found[0].exact(), *(a.exact() for a in found[1:])] == ["-sqrt(7)"] + ["sqrt(7)/7"] * 7
    assert sum(found[1:], found[0]).as_fraction() == 0
    assert sum((a * a for a in found[1:]), found[0] * found[0]).as_fraction() == 8


def test_advantages_of_tiny_rewards_are_those_of_large_ones() -> None:
    assert [a.exact() for a in advantages([Fraction(1, 10**4), 0])] == ["1", "-1"]
    assert [a.exact() for a in advantages([10**4, 0])] == ["1", "-1"]
    # a step of a run sees the same: two steps of 1/32 with the gradient 2
    result = run(bernoulli([Fraction(1, 10**4), 0], "ab", inner_steps=2, step_size="1/32"))
    assert (result.status, result.theta[0].exact()) == ("complete", "5/8")


def test_an_outlier_moves_the_policy_by_its_exact_advantage() -> None:
    # grad F = (1/8)(-sqrt(7) 2 + 7 (1/sqrt(7)) (-2)) = -sqrt(7)/2 wherever no term is clipped
    result = run(bernoulli([0, Fraction(7, 20)], "abbbbbbb", inner_steps=2))
    assert (result.status, result.theta[0].exact()) == ("complete", "1/2 - sqrt(7)/16")
    assert [[g.exact() for g in step.gradient or ()] for step in result.steps] == [["-sqrt(7)/2"]] * 2


# ---- KL: pi = (1/2, 1/2), reference (1/4, 3/4)


def test_kl_of_the_uniform_policy_from_one_to_three() -> None:
    # (1/2) log((1/2)/(1/4)) + (1/2) log((1/2)/(3/4)) = (1/2) log(2 * 2/3)
    assert kl_policy_from_reference([HALF, HALF], [QUARTER, 1 - QUARTER]) == Real.of("log(4/3)/2")


def test_kl_derivative_in_the_logit_is_a_quarter_of_log_three() -> None:
    # p (1 - p)(log(pi_a/ref_a) - log(pi_b/ref_b)) = (1/4)(log 2 - log(2/3)); equal rewards and beta = 1 leave F = -KL
    step = run(one_logit([[1, 1]], ONE_TO_THREE, theta0=[0], beta=1, step_size=1)).steps[0]
    assert step.objective == Real.of("-log(4/3)/2")
    assert step.gradient is not None
    assert step.gradient[0].exact() == "-1/4*log(3)"


def test_a_zero_variance_group_keeps_its_kl() -> None:
    # (1/2)[0 + (1/2)(1 * 1/2 + 1 * 1/2)] - (1/10)(1/4) log 3
    reference = ReferenceMasses(Column([QUARTER, 1 - QUARTER] * 2))
    result = run(one_logit([[1, 1], [1, 0]], reference, theta0=[0], beta="1/10", step_size=1))
    (step,) = result.steps
    assert step.gradient is not None
    assert (result.status, step.gradient[0].exact(), result.theta[0].exact()) == ("complete", "1/4 - 1/40*log(3)", "1/4 - 1/40*log(3)")
    assert step.objective == Real.of("-log(4/3)/20")
    assert [term.side for term in step.terms] == ["zero advantage"] * 2 + ["unclipped"] * 2

    def objective(t: Any) -> Any:
        p = 1 / (1 + mpmath.exp(-t))
        kl = p * mpmath.log(4 * p) + (1 - p) * mpmath.log(4 * (1 - p) / 3)
        return (p / 0.5 - (1 - p) / 0.5) / 4 - kl / 10

    with mpmath.workdps(60):
        slope = mpmath.diff(objective, 0)
        lower, upper = step.gradient[0].enclose(20)
        assert abs(slope - mpmath.mpf(lower.numerator) / lower.denominator) < mpmath.mpf(10) ** -18
        assert 0 <= upper - lower < Fraction(1, 10**20)


# ---- log-ratio 800


@pytest.mark.parametrize(
    ("advantage", "value", "slope", "side"),
    [(1, "5/4", "0", "clipped"), (0, "0", "0", "zero advantage"), (-1, "-exp(800)", "-exp(800)", "unclipped")],
)
def test_a_log_ratio_of_eight_hundred_is_exact(advantage: int, value: str, slope: str, side: str) -> None:
    rho = Real.of("exp(800)")
    term = clip_term(rho, advantage, epsilon="1/4")
    assert term.derivative is not None
    # d/d(log-ratio) = rho d/d(rho)
    assert (term.value.exact(), (rho * term.derivative).exact(), term.side) == (value, slope, side)


@pytest.mark.parametrize(
    ("rewards", "slope", "sides"),
    [((1, 0), "0", ["clipped", "clipped"]), ((1, 1), "0", ["zero advantage"] * 2), ((0, 1), "-1/2*exp(800)", ["unclipped", "unclipped"])],
)
def test_softmax_reaches_a_log_ratio_of_eight_hundred(rewards: tuple[int, int], slope: str, sides: list[str]) -> None:
    """Logits s+u, s-u, -s, -s: from s = -400 to s = 400 at u = 0 each mass is multiplied by e^800 or e^-800 exactly.

    There the mean of the features of u is 0, so d log pi(right)/du = 1, and F has d/du = A rho/(M G), or 0 where it is clipped.
    """
    prompts = [Prompt("q", ("right", "twin", "wrong", "other"), tuple(Fraction(rewards[i]) for i in (0, 0, 1, 1)))]
    problem = Problem.of(
        prompts=prompts,
        family=Softmax.of([[[1, 1], [1, -1], [-1, 0], [-1, 0]]], size=2),
        theta0=[-400, 0],
        group_size=2,
        outer_iterations=1,
        inner_steps=1,
        epsilon="1/4",
        beta=0,
        step_size=1,
        draws=Tape.of([[["right", "wrong"]]], prompts),
    )
    step = evaluate_at(problem, [400, 0])
    assert step.gradient is not None
    assert [step.gradient[1].exact(), [term.side for term in step.terms]] == [slope, sides]
    if rewards[0] != rewards[1]:
        assert [term.ratio.exact() for term in step.terms if term.ratio is not None] == ["exp(800)", "exp(-800)"]


# ---- no convergence: grad F = -beta p (1 - p) t with p (1 - p) = 2/9 at t = +- log 2, so eta beta = 9 maps t to -t


def test_equal_rewards_can_cycle_for_ever() -> None:
    uniform = ReferenceMasses(Column([HALF, HALF]))
    result = run(one_logit([[1, 1]], uniform, theta0=["log(2)"], beta="1/10", step_size=90, outer_iterations=5))
    assert [step.theta[0].exact() for step in result.steps] == ["log(2)", "-log(2)"] * 2 + ["log(2)"]
    assert (result.status, result.theta[0].exact()) == ("complete", "-log(2)")


@pytest.mark.parametrize(("step_size", "is_smaller"), [(89, True), (91, False)])
def test_the_cycle_needs_exactly_this_step_size(step_size: int, is_smaller: bool) -> None:
    uniform = ReferenceMasses(Column([HALF, HALF]))
    result = run(one_logit([[1, 1]], uniform, theta0=["log(2)"], beta="1/10", step_size=step_size))
    compare: Callable[[Real, Real], bool] = (lambda x, y: x < y) if is_smaller else (lambda x, y: x > y)
    assert compare(abs(result.theta[0]), Real.of("log(2)"))
