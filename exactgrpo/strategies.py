"""Hypothesis strategies of exact data. Each describes a range of valid values, is bounded, and shrinks towards the simplest of them.

Options are keyword-only and checked at once: InputError for a range without values. Nothing yields a float.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal

from hypothesis import strategies as st

from exactgrpo.errors import InputError
from exactgrpo.numbers.inputs import whole
from exactgrpo.numbers.rational import exact
from exactgrpo.policies.family import PolicyFamily
from exactgrpo.policies.rational import Rational
from exactgrpo.policies.simplex import Simplex
from exactgrpo.policies.softmax import Softmax
from exactgrpo.update.draws import Tape
from exactgrpo.update.problem import Problem, Prompt
from exactgrpo.update.reference import ReferenceMasses
from exactgrpo.update.run import run

Strategy = st.SearchStrategy
Family = Literal["simplex", "rational", "softmax"]
FAMILIES: tuple[Family, ...] = ("simplex", "rational", "softmax")


def rationals(*, min: Any = -4, max: Any = 4, denominator: int = 12) -> Strategy[Fraction]:
    """Rationals from `min` to `max` with denominators up to `denominator`; they shrink towards 0 and small denominators.

    >>> from hypothesis import find
    >>> find(rationals(min=2, max=3), lambda x: x > 2)
    Fraction(5, 2)
    """
    low, high = _rational(min, "min"), _rational(max, "max")
    if low > high:
        raise InputError("min", str(low), f"not above max, {high}")
    whole(denominator, "denominator", least=1)
    if any(bound.denominator > denominator for bound in (low, high)):
        raise InputError("denominator", denominator, f"at least those of the bounds {low} and {high}")
    return st.fractions(min_value=low, max_value=high, max_denominator=denominator)


def epsilons(*, denominator: int = 12) -> Strategy[Fraction]:
    """Clipping thresholds strictly between 0 and 1."""
    whole(denominator, "denominator", least=2)
    return rationals(min=Fraction(1, denominator), max=1 - Fraction(1, denominator), denominator=denominator)


def ratios(*, max: Any = 4, denominator: int = 8) -> Strategy[Fraction]:
    """Importance ratios: positive, up to `max`; exactly 1 is likely."""
    return st.just(Fraction(1)) | rationals(min=Fraction(1, denominator), max=max, denominator=denominator)


def simplex_points(*, size: int, weight: int = 6) -> Strategy[tuple[Fraction, ...]]:
    """Probability mass functions of `size` masses, zeros allowed, from integer weights up to `weight`, so that sums are exactly one.

    They shrink to a point mass.
    """
    weights = st.lists(st.integers(0, whole(weight, "weight", least=1)), min_size=_size(size), max_size=size)
    return weights.filter(any).map(_normalised)


def positive_simplex_points(*, size: int, weight: int = 6) -> Strategy[tuple[Fraction, ...]]:
    """Probability mass functions of `size` positive masses; they shrink to the uniform one.

    >>> from hypothesis import find
    >>> find(positive_simplex_points(size=2), lambda masses: True)
    (Fraction(1, 2), Fraction(1, 2))
    """
    return st.lists(st.integers(1, whole(weight, "weight", least=1)), min_size=_size(size), max_size=size).map(_normalised)


def reward_groups(*, min_size: int = 2, max_size: int = 6, denominator: int = 4) -> Strategy[list[Fraction]]:
    """The rewards of one group: equal ones are likely, all equal possible."""
    _sizes(min_size, max_size)
    return st.lists(rationals(denominator=denominator), min_size=min_size, max_size=max_size)


def binary_rewards(*, min_size: int = 2, max_size: int = 6) -> Strategy[list[Fraction]]:
    """The rewards of one group, each 0 or 1."""
    _sizes(min_size, max_size)
    return st.lists(st.sampled_from((Fraction(0), Fraction(1))), min_size=min_size, max_size=max_size)


@st.composite
def _problems(
    draw: st.DrawFn, families: Sequence[Family], max_prompts: int, max_responses: int, max_group_size: int, max_steps: int
) -> Problem:
    lengths = draw(st.lists(st.integers(2, max_responses), min_size=1, max_size=max_prompts))
    family, theta0 = draw(st.sampled_from([_MAKERS[name] for name in families]).flatmap(lambda make: make(lengths)))
    prompts = [
        Prompt.of(f"q{q + 1}", [f"y{j + 1}" for j in range(n)], draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
        for q, n in enumerate(lengths)
    ]
    size, outer, inner = draw(st.integers(2, max_group_size)), draw(st.integers(1, 2)), draw(st.integers(1, max_steps))
    draws = [[draw(st.lists(st.sampled_from(p.responses), min_size=size, max_size=size)) for p in prompts] for _ in range(outer)]
    beta = draw(st.sampled_from([Fraction(0), Fraction(1, 10)]))
    return Problem.of(
        prompts=prompts,
        family=family,
        theta0=theta0,
        group_size=size,
        outer_iterations=outer,
        inner_steps=inner,
        epsilon=draw(epsilons(denominator=5)),
        beta=beta,
        step_size=draw(st.sampled_from([Fraction(1, 16), Fraction(1, 4), Fraction(1)])),
        draws=Tape.of(draws, prompts),
        reference=ReferenceMasses.of([draw(positive_simplex_points(size=n, weight=3)) for n in lengths]),
    )


def problems(
    *, families: Sequence[Family] = FAMILIES, max_prompts: int = 2, max_responses: int = 3, max_group_size: int = 4, max_steps: int = 3
) -> Strategy[Problem]:
    """Updates of the families with supplied draws; theta0 lies in U, everything else is small and rational."""
    for name in families:
        if name not in FAMILIES:
            raise InputError("families", name, f"one of {', '.join(FAMILIES)}")
    if not families:
        raise InputError("families", "an empty list", f"some of {', '.join(FAMILIES)}")
    _sizes(1, max_prompts)
    _sizes(2, max_responses)
    _sizes(2, max_group_size)
    _sizes(1, max_steps)
    return _problems(tuple(families), max_prompts, max_responses, max_group_size, max_steps)


def problems_on_a_bound(*, miss: Any = 0, families: Sequence[Family] = FAMILIES) -> Strategy[Problem]:
    """Updates of two inner steps whose second finds a ratio exactly on a bound: at a kink or at a smooth tie.

    The first step is run exactly and epsilon is set to the distance of one ratio from 1, plus `miss` (such as 10^-300), so it may
    be irrational. Kinks whose ratio gradient vanishes (tangencies) occur too.
    """
    offset = _rational(miss, "miss")

    @st.composite
    def moved(draw: st.DrawFn) -> Problem:
        from hypothesis import assume

        given = draw(problems(families=families, max_prompts=1))
        second = _with(given, outer_iterations=1, inner_steps=2, draws=Tape(given.draws.draws[:1], given.draws.positions[:1]))  # type: ignore[attr-defined]
        steps = run(second).steps
        assume(len(steps) == 2)
        distances = [abs(term.ratio - 1) for term in steps[1].terms if term.ratio is not None]
        assume(distances)
        epsilon = draw(st.sampled_from(distances)) + offset
        assume(epsilon > 0 and epsilon < 1)
        return _with(second, epsilon=epsilon)

    return moved()


def _with(problem: Problem, **changes: Any) -> Problem:
    fields: dict[str, Any] = {
        "prompts": problem.prompts,
        "family": problem.family,
        "theta0": problem.theta0,
        "group_size": problem.group_size,
        "outer_iterations": problem.outer_iterations,
        "inner_steps": problem.inner_steps,
        "epsilon": (problem.epsilon_low, problem.epsilon_high),
        "beta": problem.beta,
        "step_size": problem.step_sizes[0],
        "draws": problem.draws,
        "reference": problem.reference,
    }
    return Problem.of(**{**fields, **changes})


# ---- families, each with a parameter inside U

_FamilyStrategy = Strategy[tuple[PolicyFamily, list[Fraction]]]


def _simplex(lengths: list[int]) -> _FamilyStrategy:
    points = st.tuples(*(positive_simplex_points(size=n, weight=3) for n in lengths))
    return points.map(lambda rows: (Simplex.of(lengths), [x for row in rows for x in row[:-1]]))


def _rational_family(lengths: list[int]) -> _FamilyStrategy:
    weight = st.sampled_from(["1", "t", "1 + t", "2 - t", "1 + t^2"])
    rows = st.tuples(*(st.lists(weight, min_size=n, max_size=n) for n in lengths))
    theta = rationals(min=Fraction(1, 4), max=Fraction(7, 4), denominator=4)
    return st.tuples(rows, theta).map(lambda drawn: (Rational.of(list(drawn[0]), parameters=["t"]), [drawn[1]]))


def _softmax(lengths: list[int]) -> _FamilyStrategy:
    feature = st.integers(-1, 1).map(lambda x: [x])
    rows = st.tuples(*(st.lists(feature, min_size=n, max_size=n) for n in lengths))
    return st.tuples(rows, rationals(min=-1, max=1, denominator=2)).map(lambda drawn: (Softmax.of(list(drawn[0]), size=1), [drawn[1]]))


_MAKERS: dict[str, Any] = {"simplex": _simplex, "rational": _rational_family, "softmax": _softmax}


def _normalised(weights: Sequence[int]) -> tuple[Fraction, ...]:
    return tuple(Fraction(w, sum(weights)) for w in weights)


def _rational(x: Any, place: str) -> Fraction:
    value = exact(x, place)
    if not isinstance(value, Fraction):
        raise InputError(place, str(x), "a rational number")
    return value


def _size(size: int) -> int:
    return whole(size, "size", least=1)


def _sizes(low: int, high: int) -> None:
    if whole(low, "min_size", least=1) > whole(high, "max_size", least=1):
        raise InputError("max_size", high, f"at least {low}")
