"""Strategies of updates that find a ratio exactly on a bound, by construction, or that miss it by next to nothing.

Clipping plays no part in the first inner step, so that step is run exactly; the thresholds are then set to the distance of a ratio from
1 (for a tangency, the step size is set so that the step ends where the mass of a response is largest or smallest).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from hypothesis import assume, strategies as st

from exactgrpo.errors import InputError
from exactgrpo.numbers.expression import Expression
from exactgrpo.numbers.inputs import listed, whole
from exactgrpo.numbers.real import Real
from exactgrpo.policies.expression import Expressions
from exactgrpo.policies.family import PolicyFamily
from exactgrpo.policies.rational import Rational
from exactgrpo.policies.softmax import Softmax
from exactgrpo.strategies.numbers import Strategy, positive_simplex_points, rational, rationals
from exactgrpo.strategies.policies import FAMILIES, Family, check_families, policies, response_names
from exactgrpo.strategies.problems import DrawnProblem, changed
from exactgrpo.update.draws import Tape
from exactgrpo.update.problem import Problem, Prompt
from exactgrpo.update.reference import ReferenceMasses
from exactgrpo.update.run import run
from exactgrpo.update.trace import Term

Choice = Callable[[Term], bool]


def problems_on_a_bound(*, miss: Any = 0, families: Sequence[Family] = FAMILIES) -> Strategy[Problem]:
    """Updates of two inner steps whose second finds a ratio exactly on a bound: at a kink or at a smooth tie.

    The first step is run exactly and epsilon is set to the distance of one ratio from 1, plus `miss` (such as 10^-300), so it may
    be irrational. Kinks whose ratio gradient vanishes (tangencies) may occur too.
    """
    return _moved(check_families(families), lambda term: True, rational(miss, "miss"))


def problems_on_a_kink(*, families: Sequence[Family] = FAMILIES) -> Strategy[Problem]:
    """Updates whose second step finds a ratio at 1 + epsilon with A > 0, or at 1 - epsilon with A < 0, and so no gradient.

    >>> from hypothesis import find
    >>> problem = find(problems_on_a_kink(families=["simplex"]), lambda problem: problem.beta == 0)
    >>> run(problem).status, run(problem).steps[1].gradient
    ('undefined-gradient', None)
    """
    drawn = _moved(check_families(families), _is_towards_its_kink, Fraction(0))
    return drawn.filter(lambda problem: run(problem).status == "undefined-gradient")


def problems_on_a_smooth_tie(*, families: Sequence[Family] = FAMILIES) -> Strategy[Problem]:
    """Updates whose second step finds a ratio at 1 - epsilon with A > 0, or at 1 + epsilon with A < 0, and a gradient.

    There automatic differentiation may return half of the term's derivative.
    """
    drawn = _moved(check_families(families), lambda term: not _is_towards_its_kink(term), Fraction(0))
    return drawn.filter(_has_gradients)


def _has_gradients(problem: Problem) -> bool:
    return run(problem).status in ("complete", "invalid-update")


def _is_towards_its_kink(term: Term) -> bool:
    """Whether the ratio has moved the way that its advantage asks: towards the bound where the term has its kink."""
    return term.ratio is not None and (term.ratio > 1) == (term.advantage > 0)


def _moved(families: Sequence[Family], choice: Choice, miss: Fraction) -> Strategy[Problem]:
    drawn: Strategy[Any] = _tried(families, choice, miss)
    return drawn.filter(lambda problem: problem is not None)


@st.composite
def _tried(draw: st.DrawFn, families: Sequence[Family], choice: Choice, miss: Fraction) -> Problem | None:
    """A problem with a threshold at the distance of a chosen ratio from 1; None if no ratio can be chosen."""
    problem = draw(_two_steps(families))
    ratios = _ratios(problem, choice)
    if not ratios:  # where the penalty moves the ratios, the opposite advantages may do
        prompt = problem.prompts[0]
        opposite = Prompt.of(prompt.name, prompt.responses, [-reward for reward in prompt.rewards])
        problem = changed(problem, prompts=[opposite])
        ratios = _ratios(problem, choice)
    if not ratios:
        return None
    ratio = draw(st.sampled_from(ratios))
    distance = abs(ratio - 1) + miss
    if distance <= 0:
        return None
    other = draw(st.sampled_from((distance, Real.of("1/5"), Real.of("1/2"))))
    low, high = (other, distance) if ratio > 1 else (distance, other)
    return changed(problem, epsilon=(low if low < 1 else "1/2", high)) if ratio > 1 or low < 1 else None


def _ratios(problem: Problem, choice: Choice) -> list[Real]:
    """The ratios other than 1 that the second step finds, of the terms of choice."""
    later = run(problem).steps[1:]
    terms = later[0].terms if later and later[0].is_answered else ()
    return [term.ratio for term in terms if term.ratio is not None and term.ratio != 1 and choice(term)]


@st.composite
def _two_steps(draw: st.DrawFn, families: Sequence[Family]) -> Problem:
    """Two steps of one group with different rewards, the penalty often strong enough to pull a ratio the other way."""
    policy = draw(policies(families=families, max_prompts=1))
    (responses,) = policy.responses
    prompt = Prompt.of("q1", responses, draw(st.permutations(range(len(responses)))))
    group = [*draw(st.permutations(responses))[:2], *draw(st.lists(st.sampled_from(responses), max_size=1))]
    return DrawnProblem.of(
        prompts=[prompt],
        family=policy.family,
        theta0=policy.theta0,
        group_size=len(group),
        outer_iterations=1,
        inner_steps=2,
        epsilon="1/2",
        beta=draw(st.sampled_from((0, 1, 8))),
        step_size=draw(st.sampled_from((Fraction(1, 16), Fraction(1, 64), Fraction(1, 4)))),
        draws=Tape.of([[group]], [prompt]),
        reference=ReferenceMasses.of([draw(positive_simplex_points(size=len(responses), weight=5))]),
    )


# ---- tangencies


def problems_at_a_tangency(*, families: Sequence[Family] = ("rational", "softmax", "expression")) -> Strategy[Problem]:
    """Updates whose second step finds a ratio at a kink where its gradient vanishes, so that the objective has a gradient.

    The first response of a one-parameter policy has its largest or smallest mass at a point; the step size takes the first step there.
    """
    return _tangencies(check_families(families, known=tuple(_CRITICAL)))


def _tangencies(families: Sequence[Family]) -> Strategy[Problem]:
    drawn: Strategy[Any] = _tried_tangencies(families)
    return drawn.filter(lambda problem: problem is not None and _has_gradients(problem))


@st.composite
def _tried_tangencies(draw: st.DrawFn, families: Sequence[Family]) -> Problem | None:
    """A problem that reaches the point from one of its sides, with the drawn rewards or their opposites; None if none does."""
    point = draw(rationals(min=-1, max=1, denominator=2))
    family = draw(st.sampled_from(families).flatmap(lambda name: _CRITICAL[name](point)))
    (names,) = response_names(family.rows.lengths)
    rewards = draw(st.permutations(range(len(names))))
    group = [names[0], *draw(st.lists(st.sampled_from(names[1:]), min_size=1, max_size=2))]
    distance = draw(st.sampled_from((Fraction(1), Fraction(1, 2), Fraction(1, 4))))
    for sign in (1, -1):
        prompt = Prompt.of("q1", names, [sign * reward for reward in rewards])
        for away in (distance, -distance):
            problem = DrawnProblem.of(
                prompts=[prompt],
                family=family,
                theta0=[point + away],
                group_size=len(group),
                outer_iterations=1,
                inner_steps=1,
                epsilon="1/2",
                beta=0,
                step_size=1,
                draws=Tape.of([[group]], [prompt]),
            )
            gradient = run(problem).steps[0].gradient
            if gradient is not None and gradient[0] * away < 0:
                found = _at_the_point(changed(problem, step_size=-away / gradient[0], inner_steps=2))
                if found is not None:
                    return found
    return None


def _at_the_point(problem: Problem) -> Problem | None:
    """The problem with the threshold where its second step finds the ratio of the first response; None if that is not at its kink."""
    later = run(problem).steps[1:]
    if not later or not later[0].is_answered:
        return None
    term = later[0].terms[0]
    if term.ratio is None or term.ratio == 1 or not _is_towards_its_kink(term):
        return None
    distance = abs(term.ratio - 1)
    return changed(problem, epsilon=distance if distance < 1 else ("1/2", distance))


def _critical_rational(point: Fraction) -> Strategy[PolicyFamily]:
    """The weight of the first response is largest or smallest at the point; the sum of the others' weights is constant."""
    square = f"(t - ({point}))^2"
    first = st.sampled_from((f"2 + {square}", f"2 - {square}", f"1/2 + 3*{square}"))
    others = st.sampled_from((["1"], ["1", "2"], [f"2 + (t - ({point}))", f"2 - (t - ({point}))"]))
    return st.tuples(first, others).map(lambda drawn: Rational.of([[drawn[0], *drawn[1]]], parameters=["t"]))


def _critical_expression(point: Fraction) -> Strategy[PolicyFamily]:
    square = f"(t - ({point}))^2"
    first = st.sampled_from((f"exp({square})", f"exp(-{square})", f"sqrt(1 + {square})", f"1/(1 + {square})"))
    others = st.sampled_from((["1"], ["1", "2"], [f"2 + (t - ({point}))", f"2 - (t - ({point}))"]))
    return st.tuples(first, others).map(lambda drawn: Expressions.of([[drawn[0], *drawn[1]]], parameters=["t"]))


def _critical_softmax(point: Fraction) -> Strategy[PolicyFamily]:
    """Weights 1, exp(s (t - point)) and exp(-s (t - point)): the first mass is largest where the others are equal."""

    def made(slope: int) -> PolicyFamily:
        shift = slope * point
        base = [[1, Expression.of(-shift).exp(), Expression.of(shift).exp()]]
        return Softmax.of([[[0], [slope], [-slope]]], size=1, base=None if shift == 0 else base)

    return st.sampled_from((1, 2)).map(made)


_CRITICAL: dict[str, Callable[[Fraction], Strategy[PolicyFamily]]] = {
    "rational": _critical_rational,
    "softmax": _critical_softmax,
    "expression": _critical_expression,
}


# ---- near misses


def near_misses(*, families: Sequence[Family] = FAMILIES, exponents: Sequence[int] = (60, 300)) -> Strategy[Problem]:
    """Updates on a kink, a smooth tie or at a tangency, with epsilon changed by 10^-exponent to either side: nothing is on a bound."""
    chosen = check_families(families)
    powers = [whole(e, f"exponents[{i}]", least=1) for i, e in enumerate(listed(exponents, "exponents"))]
    kinds = [problems_on_a_kink(families=chosen), problems_on_a_smooth_tie(families=chosen)]
    if not powers:
        raise InputError("exponents", "an empty list", "at least one exponent")
    curved = [name for name in chosen if name in _CRITICAL]
    if curved:
        kinds.append(problems_at_a_tangency(families=curved))
    misses = st.sampled_from(powers).flatmap(lambda e: st.sampled_from((Fraction(1, 10**e), Fraction(-1, 10**e))))
    return st.builds(_missed, st.one_of(kinds), misses)


def _missed(problem: Problem, miss: Fraction) -> Problem:
    low, high = Real.of(problem.epsilon_low) + miss, Real.of(problem.epsilon_high) + miss
    assume(low > 0 and low < 1 and high > 0)
    return changed(problem, epsilon=(low, high))
