"""The exact gradient oracle at ties, kinks and near misses, with values worked by hand.

Unless a test says otherwise: one prompt with responses a and b, pi = (t, 1 - t), theta_old = 1/2, so rho = (2t, 2 - 2t) and
grad rho = (2, -2); rewards (1, 0); epsilon = 1/4; beta = 0; one draw of each response, so A = (1, -1) and G M = 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import pytest

from exactgrpo.numbers.real import Real
from exactgrpo.policies.expression import Expressions
from exactgrpo.policies.family import PolicyFamily
from exactgrpo.policies.rational import Rational
from exactgrpo.policies.softmax import Softmax
from exactgrpo.update.draws import Tape
from exactgrpo.update.point import evaluate_at
from exactgrpo.update.problem import Problem, Prompt
from exactgrpo.update.run import run
from exactgrpo.update.trace import Evidence, Step

QUARTER = Fraction(1, 4)
PROOFS = {"rational", "enclosure", "identity", "separation bound"}
BERNOULLI = Rational.of([["t", "1 - t"]], parameters=["t"])
LOGIT = Softmax.of([[[1], [0]]], parameters=["t"])


def problem(draws: Sequence[str] = ("ab",), **changes: Any) -> Problem:
    """draws[prompt] is a word of one-letter responses; rewards, family, theta0 and constants can be changed."""
    rewards = changes.pop("rewards", [[1, 0]] * len(draws))
    prompts = [Prompt.of(f"q{i + 1}", list("abc"[: len(row)]), row) for i, row in enumerate(rewards)]
    data: dict[str, Any] = {"family": BERNOULLI, "theta0": ["1/2"], "epsilon": QUARTER, "step_size": "1/16", "inner_steps": 2, **changes}
    tape = Tape.of([[list(word) for word in draws]], prompts)
    return Problem.of(prompts=prompts, group_size=len(draws[0]), outer_iterations=1, beta=0, draws=tape, **data)


def checked(step: Step) -> Step:
    """The step; every one of its decisions and terms carries a proof."""
    assert all(d.sign is not None and d.proof is not None and d.proof.kind in PROOFS for d in step.decisions())
    assert all(term.side != "undecided" and term.proof is not None and term.proof.kind in PROOFS for term in step.terms)
    return step


def at(point: Sequence[Any], **changes: Any) -> Step:
    return checked(evaluate_at(problem(**changes), point))


def steps(asked: Problem) -> tuple[Step, ...]:
    return tuple(map(checked, run(asked).steps))


def sides(step: Step) -> list[str]:
    return [term.side for term in step.terms]


def evidence_of(step: Step) -> Evidence:
    assert step.gradient is None
    assert step.evidence is not None
    return step.evidence


def equal(found: Iterable[Real] | None, expected: Iterable[Any]) -> bool:
    assert found is not None
    return all(x == Real.of(y) for x, y in zip(found, expected, strict=True))


# ---- the four ties, one at a time: unequal bounds keep the other response away from its own


def test_positive_advantage_on_the_upper_bound_is_a_kink() -> None:
    # t = 5/8: rho = (5/4, 3/4) with bounds 1/2 and 5/4. Left of it F' = (1/2)(1 * 2 + (-1)(-2)) = 2; right of it only b is left: 1
    step = at(["5/8"], epsilon=("1/2", "1/4"))
    evidence = evidence_of(step)
    assert sides(step) == ["kink", "unclipped"]
    assert evidence.terms == (("q1", "a"),)
    assert equal(evidence.rest, [1])
    assert equal(evidence.generators[0], [1])
    assert equal(evidence.one_sided()[0], [2, 1])


def test_negative_advantage_on_the_lower_bound_is_a_kink() -> None:
    # t = 5/8: rho = (5/4, 3/4) with bounds 3/4 and 3/2. Right of it b is clipped, and a is left: 1
    step = at(["5/8"], epsilon=("1/4", "1/2"))
    evidence = evidence_of(step)
    assert sides(step) == ["unclipped", "kink"]
    assert evidence.terms == (("q1", "b"),)
    assert equal(evidence.rest, [1])
    assert equal(evidence.generators[0], [1])
    assert equal(evidence.one_sided()[0], [2, 1])


def test_positive_advantage_on_the_lower_bound_is_smooth() -> None:
    # t = 3/8: rho = (3/4, 5/4) with bounds 3/4 and 3/2. min(rho, clip(rho)) = rho on both sides of 3/4: F' = (1/2)(2 + 2)
    step = at(["3/8"], epsilon=("1/4", "1/2"))
    assert sides(step) == ["smooth tie", "unclipped"]
    assert equal(step.gradient, [2])
    assert equal([step.objective], [Fraction(3 - 5, 8)])


def test_negative_advantage_on_the_upper_bound_is_smooth() -> None:
    # t = 3/8: rho = (3/4, 5/4) with bounds 1/2 and 5/4. min(-rho, -clip(rho)) = -rho on both sides of 5/4: F' = (1/2)(2 + 2)
    step = at(["3/8"], epsilon=("1/2", "1/4"))
    assert sides(step) == ["unclipped", "smooth tie"]
    assert equal(step.gradient, [2])
    assert equal([step.objective], [Fraction(3 - 5, 8)])


def test_terms_beyond_their_own_bound_have_no_derivative() -> None:
    # t = 3/4: rho = (3/2, 1/2): both clipped, F = (1/2)(5/4 - 3/4)
    step = at(["3/4"])
    assert sides(step) == ["clipped", "clipped"]
    assert equal(step.gradient, [0])
    assert equal([step.objective], [QUARTER])


def test_terms_beyond_the_other_bound_keep_their_derivative() -> None:
    # t = 1/4: rho = (1/2, 3/2): both on the side where the clip does not act, F = (1/2)(1/2 - 3/2)
    step = at(["1/4"])
    assert sides(step) == ["unclipped", "unclipped"]
    assert equal(step.gradient, [2])
    assert equal([step.objective], [Fraction(-1, 2)])


def test_bounds_may_differ_and_the_upper_one_exceed_two() -> None:
    # theta_old = 1/5, t = 4/5: rho = (4, 1/4), bounds 3/4 and 4: a at its kink with grad rho = 5, b clipped
    step = at(["4/5"], theta0=["1/5"], epsilon=("1/4", 3))
    evidence = evidence_of(step)
    assert sides(step) == ["kink", "clipped"]
    assert equal(evidence.rest, [0])
    assert equal(evidence.one_sided()[0], [Fraction(5, 2), 0])


# ---- tangency: the ratio is on its bound with gradient zero

TANGENT = Rational.of([["5/8 - (t - 1)^2", "t/8", "3/8 + (t - 1)^2 - t/8"]], parameters=["t"])
TOUCHING: dict[str, Any] = {"family": TANGENT, "rewards": [[1, 0, 0]], "epsilon": Fraction(2, 3)}


def test_a_ratio_that_only_touches_its_bound_leaves_a_gradient() -> None:
    # masses at 1/2: (3/8, 1/16, 9/16), at 1: (5/8, 1/8, 1/4): rho_a = 5/3 = 1 + epsilon with slope -2 (t - 1) = 0, and rho_b = 2
    # with slope 2, A_b = -1, above the bounds where the clip does not act: F' = (1/2)(0 - 2) = -1
    step = at([1], **TOUCHING)
    assert sides(step) == ["kink", "unclipped"]
    assert equal(step.gradient, [-1])
    assert step.evidence is None
    assert equal([step.objective], [Fraction(5, 6) - 1])


def test_a_run_goes_on_through_a_touched_bound() -> None:
    # F'(1/2) = (1/2)(8/3 - 2) = 1/3, so eta = 3/2 leads to 1 exactly; then F' = -1 and eta = 1/4 leads to 3/4
    result = run(problem(step_size=[["3/2", "1/4"]], **TOUCHING))
    assert (result.status, result.counts.gradient_attempts) == ("complete", 2)
    assert equal(result.steps[1].theta, [1])
    assert equal(result.theta, [Fraction(3, 4)])


def test_a_touched_lower_bound_leaves_a_gradient() -> None:
    # pi = (3/8 + (t - 1)^2, t/8, rest), at 1/2: (5/8, 1/16, 5/16), at 1: (3/8, 1/8, 1/2): rho_a = 3/5 = 1 - 2/5 with slope 0 and
    # A_a = -1; rho_b = 2 with A_b = 1 lies beyond 1 + 2/5: clipped. Nothing is left
    family = Rational.of([["3/8 + (t - 1)^2", "t/8", "5/8 - (t - 1)^2 - t/8"]], parameters=["t"])
    step = at([1], family=family, rewards=[[0, 1, 0]], epsilon=Fraction(2, 5))
    assert sides(step) == ["kink", "clipped"]
    assert equal(step.gradient, [0])


def test_one_true_kink_beside_a_touched_bound_is_the_only_evidence() -> None:
    # two prompts over theta = (t, u): the first touches at t = 1 (see above), the second is a Bernoulli in u with bounds 1 -+ 2/3:
    # u = 5/6 from 1/2 has rho = (5/3, 1/3), two kinks with grad rho = (0, 2) and (0, -2); G M = 4
    names = ["t", "u"]
    family = Rational.of([["5/8 - (t - 1)^2", "t/8", "3/8 + (t - 1)^2 - t/8"], ["u", "1 - u"]], parameters=names)
    step = at([1, "5/6"], draws=("ab", "ab"), family=family, rewards=[[1, 0, 0], [1, 0]], theta0=["1/2", "1/2"], epsilon=Fraction(2, 3))
    evidence = evidence_of(step)
    assert sides(step) == ["kink", "unclipped", "kink", "kink"]
    assert evidence.terms == (("q2", "a"), ("q2", "b"))
    assert equal(evidence.rest, [Fraction(-1, 2), 0])
    assert [equal(g, [0, Fraction(1, 2)]) for g in evidence.generators] == [True, True]
    assert equal(evidence.one_sided()[0], [Fraction(-1, 2), Fraction(-1, 2)])
    assert equal(evidence.one_sided()[1], [1, 0])


# ---- irrational routes: G = 3, draws a, a, b: mean 2/3, variance (1/9 + 1/9 + 4/9)/3 = 2/9, A = (1/sqrt 2, 1/sqrt 2, -sqrt 2);
# F'(1/2) = (1/3)(2 (1/sqrt 2) 2 + sqrt(2) 2) = 4 sqrt(2)/3, so eta = 3 sqrt(2)/64 is a step of 1/8 to 5/8, rho = (5/4, 3/4)

ROUTE: dict[str, Any] = {"draws": ("aab",), "step_size": "3*sqrt(2)/64"}


def test_an_irrational_route_onto_the_bound_is_recognised() -> None:
    result = run(problem(**ROUTE))
    first, second = map(checked, result.steps)
    assert result.status == "undefined-gradient"
    assert equal(first.gradient, ["4*sqrt(2)/3"])
    assert equal(result.theta, [Fraction(5, 8)])
    assert sides(second) == ["kink", "kink", "kink"]
    assert {d.proof.kind for d in second.decisions() if d.sign == 0 and d.proof is not None} == {"identity"}
    # a stands twice in the group: 2 (1/sqrt 2) 2/3; b: sqrt(2) 2/3. The Clarke set is [0, 4 sqrt(2)/3]
    evidence = evidence_of(second)
    assert evidence.terms == (("q1", "a"), ("q1", "b"))
    assert [equal(g, ["2*sqrt(2)/3"]) for g in evidence.generators] == [True, True]
    assert equal(evidence.one_sided()[0], ["4*sqrt(2)/3", 0])
    assert equal([second.objective], ["sqrt(2)/6"])  # (1/3)(2 (1/sqrt 2)(5/4) - sqrt(2)(3/4)) = (sqrt(2)/3)(1/2)


@pytest.mark.parametrize("power", [60, 300])
def test_a_bound_missed_from_inside_has_the_whole_gradient(power: int) -> None:
    result = run(problem(epsilon=QUARTER + Fraction(1, 10**power), **ROUTE))
    second = checked(result.steps[1])
    assert result.status == "complete"
    assert sides(second) == ["unclipped"] * 3
    assert equal(second.gradient, ["4*sqrt(2)/3"])
    assert equal(result.theta, [Fraction(3, 4)])


@pytest.mark.parametrize("power", [60, 300])
def test_a_bound_missed_from_outside_has_gradient_zero(power: int) -> None:
    result = run(problem(epsilon=QUARTER - Fraction(1, 10**power), **ROUTE))
    second = checked(result.steps[1])
    assert result.status == "complete"
    assert sides(second) == ["clipped"] * 3
    assert equal(second.gradient, [0])
    assert equal(result.theta, [Fraction(5, 8)])


@pytest.mark.parametrize("power", [60, 300])
@pytest.mark.parametrize(("sign", "side"), [("+", "clipped"), ("-", "unclipped")])
def test_a_step_size_that_misses_the_bound_is_told_from_one_that_meets_it(power: int, sign: str, side: str) -> None:
    second = steps(problem(draws=("aab",), step_size=f"3*sqrt(2)/64*(1 {sign} 1/10^{power})"))[1]
    assert sides(second) == [side] * 3
    assert equal(second.gradient, [0 if side == "clipped" else "4*sqrt(2)/3"])


@pytest.mark.parametrize("power", [60, 300])
@pytest.mark.parametrize(("sign", "gradient"), [(1, 0), (-1, 2)])
def test_a_rational_miss_is_decided_too(power: int, sign: int, gradient: int) -> None:
    step = at([Fraction(5, 8) + sign * Fraction(1, 10**power)])
    assert equal(step.gradient, [gradient])


@pytest.mark.parametrize("power", [60, 300])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_smooth_tie_missed_on_either_side_has_the_same_gradient(power: int, sign: int) -> None:
    step = at([Fraction(3, 8) + sign * Fraction(1, 10**power)])
    assert sides(step) == ["unclipped", "unclipped"]
    assert equal(step.gradient, [2])


def test_irrational_points_on_smooth_ties_are_recognised() -> None:
    # pi = (t^2, 1 - t^2) frozen at t = sqrt(1/2): at sqrt(3/8) the masses are (3/8, 5/8), rho = (3/4, 5/4);
    # grad rho_a = 2 (2 t) = 4 sqrt(3/8) = sqrt(6), so F' = (1/2)(sqrt 6 + sqrt 6)
    square = Rational.of([["t^2", "1 - t^2"]], parameters=["t"])
    step = at(["sqrt(3/8)"], family=square, theta0=["sqrt(1/2)"])
    assert sides(step) == ["smooth tie", "smooth tie"]
    assert equal(step.gradient, ["sqrt(6)"])
    assert sides(at(["sqrt(3/8)"], family=square, theta0=["sqrt(1/2)"], rewards=[[0, 1]])) == ["kink", "kink"]
    for offset in ("+ 1/10^300", "- 1/10^300"):
        assert sides(at([f"sqrt(3/8) {offset}"], family=square, theta0=["sqrt(1/2)"])) == ["unclipped", "unclipped"]


def test_softmax_meets_its_bound_at_a_logarithm() -> None:
    # pi_a = e^t/(e^t + 1) = 5/8 at t = log(5/3), from 1/2 at 0: rho = (5/4, 3/4), grad rho_a = 2 (5/8)(3/8) = 15/32 = -grad rho_b
    step = at(["log(5/3)"], family=LOGIT, theta0=[0])
    evidence = evidence_of(step)
    assert sides(step) == ["kink", "kink"]
    assert equal(evidence.one_sided()[0], [Fraction(15, 32), 0])
    assert [equal(g, [Fraction(15, 64)]) for g in evidence.generators] == [True, True]


def test_softmax_beside_the_logarithm_is_no_kink() -> None:
    # log(5/3) = 0.51082562376599068320551409630366...
    for point, side in (
        ("0.5108256237659906832055140963", "unclipped"),
        ("0.5108256237659906832055140964", "clipped"),
        ("log(5/3) - 1/10^300", "unclipped"),
        ("log(5/3) + 1/10^300", "clipped"),
    ):
        assert sides(at([point], family=LOGIT, theta0=[0])) == [side, side]


def test_roots_in_the_masses_meet_the_bound() -> None:
    # weights sqrt(t) and 1: pi_a = sqrt(t)/(1 + sqrt(t)); t = 1 gives 1/2, t = 25/9 gives 5/8.
    # grad pi_a = (1/(2 sqrt t))/(1 + sqrt t)^2 = (3/10)(9/64) = 27/640, grad rho_a = 27/320
    step = at(["25/9"], family=Expressions.of([["sqrt(t)", "1"]], parameters=["t"]), theta0=[1])
    assert sides(step) == ["kink", "kink"]
    assert equal(evidence_of(step).one_sided()[0], [Fraction(27, 320), 0])


# ---- several prompts share theta


def test_kinks_of_one_prompt_do_not_cancel_those_of_another() -> None:
    # q2 has the rewards (0, 1), so A = (-1, 1). At 5/8 q1 is at two kinks, and q2 at two smooth ties with F' = (1/2)(-2 - 2) = -2:
    # left (2 - 2)/2 = 0, right (0 - 2)/2 = -1; generators 1 * 2/4 each
    step = at(["5/8"], draws=("ab", "ab"), family=Rational.of([["t", "1 - t"]] * 2, parameters=["t"]), rewards=[[1, 0], [0, 1]])
    evidence = evidence_of(step)
    assert sides(step) == ["kink", "kink", "smooth tie", "smooth tie"]
    assert evidence.terms == (("q1", "a"), ("q1", "b"))
    assert equal(evidence.rest, [-1])
    assert [equal(g, ["1/2"]) for g in evidence.generators] == [True, True]
    assert equal(evidence.one_sided()[0], [0, -1])


def test_kinks_of_two_prompts_add_up() -> None:
    # q1 has pi = (t, 1 - t) with A = (1, -1), q2 has pi = (1 - t, t) with A = (-1, 1). With bounds 1/2 and 5/4, at 5/8 both
    # rho that rise are at 5/4 with A = 1: generators (1/4) 2 each, and the two others are left: (1/4)(2 + 2)
    family = Rational.of([["t", "1 - t"], ["1 - t", "t"]], parameters=["t"])
    evidence = evidence_of(at(["5/8"], draws=("ab", "ab"), family=family, rewards=[[1, 0], [0, 1]], epsilon=("1/2", "1/4")))
    assert evidence.terms == (("q1", "a"), ("q2", "b"))
    assert equal(evidence.rest, [1])
    assert [equal(g, ["1/2"]) for g in evidence.generators] == [True, True]
    assert equal(evidence.one_sided()[0], [2, 1])


def test_kinks_with_opposite_slopes_give_the_whole_interval() -> None:
    # q1: pi_a = 1/2 + t/4, q2: pi_a = 1/2 + t - 3 t^2/2: both 1/2 at t = 0 and 5/8 at t = 1/2, there with slopes 1/4 and -1/2, so
    # grad rho_a = 1/2 and -1. With bounds 1/2 and 5/4 only the two a are at kinks: generators 1/8 and -1/4; the two b are
    # left: -grad rho_b = grad rho_a, (1/4)(1/2 - 1) = -1/8
    family = Rational.of([["(2 + t)/4", "(2 - t)/4"], ["1/2 + t - 3*t^2/2", "1/2 - t + 3*t^2/2"]], parameters=["t"])
    evidence = evidence_of(at(["1/2"], draws=("ab", "ab"), family=family, theta0=[0], epsilon=("1/2", "1/4")))
    assert evidence.terms == (("q1", "a"), ("q2", "a"))
    assert equal(evidence.rest, ["-1/8"])
    assert [equal(g, [x]) for g, x in zip(evidence.generators, ["1/8", "-1/4"], strict=True)] == [True, True]
    # left: q1 still unclipped, q2 clipped: -1/8 + 1/8; right: q1 clipped, q2 unclipped: -1/8 - 1/4. The Clarke set is [-3/8, 0]
    assert equal(evidence.one_sided()[0], [0, "-3/8"])
    assert equal([evidence.directional([1]), evidence.directional([-1])], ["-3/8", 0])


def test_a_kink_along_one_parameter_is_smooth_along_the_other() -> None:
    # theta = (t, u), a prompt for each; t = 5/8 is at two kinks, u = 9/16 inside: G M = 4, the rest is (0, (1/4)(2 + 2)) = (0, 1),
    # generators (1/2, 0) twice: F'(v) = v_2 + 2 min(v_1/2, 0)
    family = Rational.of([["t", "1 - t"], ["u", "1 - u"]], parameters=["t", "u"])
    evidence = evidence_of(at(["5/8", "9/16"], draws=("ab", "ab"), family=family, theta0=["1/2", "1/2"]))
    assert equal(evidence.rest, [0, 1])
    assert [equal(g, ["1/2", 0]) for g in evidence.generators] == [True, True]
    assert equal(evidence.one_sided()[0], [1, 0])
    assert equal(evidence.one_sided()[1], [1, 1])
    for v, expected in (([0, 1], 1), ([0, -1], -1), ([1, -1], -1), ([-1, 1], 0), ([-3, "1/2"], "-5/2"), ([0, 0], 0)):
        assert evidence.directional(v) == Real.of(expected)


def test_a_slope_of_zero_along_one_parameter_leaves_both_sides_equal() -> None:
    # pi = (t u, 1 - t u), frozen at (1/2, 1): at (1, 5/8) rho = (5/4, 3/4), grad rho_a = 2 (u, t) = (5/4, 2): both kinks bend
    step = at([1, "5/8"], family=Rational.of([["t*u", "1 - t*u"]], parameters=["t", "u"]), theta0=["1/2", 1])
    evidence = evidence_of(step)
    assert equal(evidence.one_sided()[0], [Fraction(5, 4), 0])
    assert equal(evidence.one_sided()[1], [2, 0])
    # along v = (8, -5), which keeps t u to first order, F'(v) = 0 and F'(-v) = 0
    assert evidence.directional([8, -5]) == Real.of(0)
    assert evidence.directional([-8, 5]) == Real.of(0)


# ---- zero advantages and repeats


def test_a_zero_advantage_on_the_bound_is_no_kink() -> None:
    # rewards (1, 1/2, 0), each drawn once: s^2 = 1/6, A = (sqrt(6)/2, 0, -sqrt(6)/2). pi = (1/4, t, 3/4 - t) frozen at 1/4; at 5/16
    # rho = (1, 5/4, 7/8): b is on the bound without advantage; F' = (1/3)(-sqrt(6)/2)(-2) = sqrt(6)/3
    family = Rational.of([["1/4", "t", "3/4 - t"]], parameters=["t"])
    step = at(["5/16"], draws=("abc",), family=family, rewards=[[1, "1/2", 0]], theta0=["1/4"])
    assert sides(step) == ["unclipped", "zero advantage", "unclipped"]
    assert equal(step.gradient, ["sqrt(6)/3"])
    assert equal([term.advantage for term in step.terms], ["sqrt(6)/2", 0, "-sqrt(6)/2"])


@pytest.mark.parametrize("draws", ["aa", "ab"])
def test_a_group_of_equal_rewards_on_the_bounds_has_gradient_zero(draws: str) -> None:
    step = at(["5/8"], draws=(draws,), rewards=[[3, 3]])
    assert sides(step) == ["zero advantage", "zero advantage"]
    assert equal(step.gradient, [0])
    assert equal([step.objective], [0])


def test_equal_irrational_rewards_written_differently_have_zero_advantage() -> None:
    step = at(["5/8"], rewards=[["sqrt(8)", "2*sqrt(2)"]])
    assert sides(step) == ["zero advantage", "zero advantage"]
    assert equal(step.gradient, [0])


def test_repeated_responses_count_once_for_each_sample() -> None:
    # a, a, a, b: mean 3/4, variance 3/16, A = 1/sqrt 3 three times and -sqrt 3. Generators 3 (1/sqrt 3) 2/4 = sqrt(3)/2 and
    # sqrt(3) 2/4 = sqrt(3)/2; F = (1/4)(3 (1/sqrt 3)(5/4) - sqrt(3)(3/4)) = sqrt(3)/8
    step = at(["5/8"], draws=("aaab",))
    evidence = evidence_of(step)
    assert sides(step) == ["kink"] * 4
    assert evidence.terms == (("q1", "a"), ("q1", "b"))
    assert [equal(g, ["sqrt(3)/2"]) for g in evidence.generators] == [True, True]
    assert equal(evidence.one_sided()[0], ["sqrt(3)", 0])
    assert equal([step.objective], ["sqrt(3)/8"])


@pytest.mark.parametrize("draws", ["aaab", "aaba", "abaa", "baaa"])
def test_the_order_of_samples_changes_nothing(draws: str) -> None:
    step = at(["9/16"], draws=(draws,))
    assert equal(step.gradient, ["sqrt(3)"])  # (1/4)(3 (1/sqrt 3) 2 + sqrt(3) 2)


# ---- several kinks at once and the first step


def test_the_first_step_is_never_at_a_kink() -> None:
    for epsilon in (Fraction(1, 10**50), QUARTER, 1 - Fraction(1, 10**50)):
        first = steps(problem(epsilon=epsilon, inner_steps=1))[0]
        assert sides(first) == ["unclipped", "unclipped"]
        assert equal(first.gradient, [2])
        assert equal([first.objective], [0])


def test_the_kink_theorem_holds_where_gradients_are_undefined() -> None:
    # F'(v) + F'(-v) = -(1/(M G)) sum over kinks |A| |grad rho . v|: for aab at 5/8: -(1/3)(2 (1/sqrt 2) 2 + sqrt(2) 2)
    evidence = evidence_of(steps(problem(**ROUTE))[1])
    assert evidence.directional([1]) + evidence.directional([-1]) == Real.of("-4*sqrt(2)/3")
    assert evidence.directional([5]) + evidence.directional([-5]) == Real.of("-20*sqrt(2)/3")


class Own(PolicyFamily):
    """pi = (t, 1 - t) written by a user."""

    def __init__(self) -> None:
        self.rows, self.size = BERNOULLI.rows, 1

    def at(self, arithmetic: Any, theta: Any) -> Any:
        return BERNOULLI.at(arithmetic, theta)

    def domain(self, arithmetic: Any, theta: Any) -> Any:
        return BERNOULLI.domain(arithmetic, theta)


def test_a_family_of_ones_own_has_the_same_kink() -> None:
    step = at(["5/8"], family=Own())
    assert sides(step) == ["kink", "kink"]
    assert equal(evidence_of(step).one_sided()[0], [2, 0])
