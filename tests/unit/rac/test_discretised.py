"""Discretised laws against mpmath: each cell by its own formula at 60 digits, the error bound by the sum of all differences."""

from __future__ import annotations

from fractions import Fraction as F
from itertools import pairwise
from typing import Any

import mpmath
import pytest
from hypothesis import assume, given, settings, strategies as st
from mpmath import mpf
from sympy import Symbol

from exactgrpo import InexactInputError, InputError, LimitError, Real
from exactgrpo.rac.delay_law import MAX_CELLS, DelayLaw
from exactgrpo.rac.discretised import discretised
from exactgrpo.rac.values import total
from exactgrpo.strategies import positive_rationals, rationals

DIGITS = 60


def number(x: F) -> mpf:
    return mpf(x.numerator) / x.denominator


def density(name: str, x: mpf, **at: mpf) -> mpf:
    """The density at x, from its textbook formula."""
    match name:
        case "pareto":
            return at["shape"] * at["scale"] ** at["shape"] / x ** (at["shape"] + 1) if x > at["scale"] else mpf(0)
        case "gaussian":
            return mpmath.npdf(x, at["mu"], at["sigma"])
        case "log-normal":
            return mpmath.npdf(mpmath.log(x), at["mu"], at["sigma"]) / x if x > 0 else mpf(0)
        case "cauchy":
            return 1 / (mpmath.pi * at["scale"] * (1 + ((x - at["location"]) / at["scale"]) ** 2))
    return mpmath.exp(-x / at["scale"]) / at["scale"] if x > 0 else mpf(0)


def distribution(name: str, x: mpf, **at: mpf) -> mpf:
    match name:
        case "pareto":
            return 1 - (at["scale"] / x) ** at["shape"] if x > at["scale"] else mpf(0)
        case "gaussian":
            return mpmath.ncdf(x, at["mu"], at["sigma"])
        case "log-normal":
            return mpmath.ncdf(mpmath.log(x), at["mu"], at["sigma"]) if x > 0 else mpf(0)
        case "cauchy":
            return mpf(1) / 2 + mpmath.atan((x - at["location"]) / at["scale"]) / mpmath.pi
    return 1 - mpmath.exp(-x / at["scale"]) if x > 0 else mpf(0)


def cells(name: str, last: int, parameters: dict[str, F]) -> list[mpf]:
    at = {key: number(x) for key, x in parameters.items()}
    edges = [distribution(name, mpf(2 * d - 1) / 2, **at) for d in range(last + 2)]
    return [(b - a) / (edges[-1] - edges[0]) for a, b in pairwise(edges)]


def distance(seen: DelayLaw, true: list[mpf]) -> mpf:
    masses = {d: number(mass.as_fraction()) for d, mass in seen.masses}
    return mpmath.fsum(abs(masses.get(d, mpf(0)) - p) for d, p in enumerate(true)) / 2


@st.composite
def laws(draw: st.DrawFn) -> tuple[str, int, dict[str, F]]:
    positive, any_ = positive_rationals(max=6, denominator=4), rationals(min=-3, max=12, denominator=4)
    name = draw(st.sampled_from(("pareto", "gaussian", "log-normal", "cauchy", "exponential")))
    shapes: dict[str, dict[str, Any]] = {
        "pareto": {"shape": positive, "scale": positive},
        "gaussian": {"mu": any_, "sigma": positive},
        "log-normal": {"mu": rationals(min=-1, max=2), "sigma": positive_rationals(max=2)},
        "cauchy": {"location": any_, "scale": positive},
        "exponential": {"scale": positive},
    }
    return name, draw(st.integers(7, 30)), {key: draw(strategy) for key, strategy in shapes[name].items()}


@settings(max_examples=200, deadline=None)
@given(problem=laws())
def test_the_masses_are_the_cells_within_the_bound(problem: Any) -> None:
    name, last, parameters = problem
    seen = discretised(name, max=last, **parameters)
    assert total(mass for _, mass in seen.masses) == 1
    assert all((mass.as_fraction() * 2**64).denominator == 1 and mass > 0 for _, mass in seen.masses)
    assert (seen.never == 0, seen.largest <= last) == (True, True)
    assert seen.error <= F(last + 1, 2**64)  # less than one unit off in each cell, half of it counts
    with mpmath.workdps(DIGITS):
        true = cells(name, last, parameters)
        bound = number(seen.error.as_fraction())
        assert distance(seen, true) <= bound <= distance(seen, true) + mpf(2) ** -70
        masses = {d: mass.as_fraction() * 2**64 for d, mass in seen.masses}
        assert all(abs(masses.get(d, F(0)) - F(int(p * 2**80), 2**16)) <= 1 for d, p in enumerate(true))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("pareto", {"shape": F(3), "scale": F(3, 4)}),
        ("gaussian", {"mu": F(5, 2), "sigma": F(2)}),
        ("log-normal", {"mu": F(1), "sigma": F(1, 2)}),
        ("cauchy", {"location": F(3), "scale": F(1)}),
        ("exponential", {"scale": F(2)}),
    ],
)
def test_the_cells_are_integrals_of_the_density(name: Any, parameters: dict[str, F]) -> None:
    masses = dict(discretised(name, max=6, **parameters).masses)
    with mpmath.workdps(30):
        at = {key: number(x) for key, x in parameters.items()}
        kinks = [number(parameters["scale"])] if name == "pareto" else [mpf(0)]

        def integral(a: mpf, b: mpf) -> mpf:
            return mpmath.quad(lambda x: density(name, x, **at), [a, *(k for k in kinks if a < k < b), b])

        parts = [integral(mpf(2 * d - 1) / 2, mpf(2 * d + 1) / 2) for d in range(7)]
        seen = [number(masses[d].as_fraction()) if d in masses else mpf(0) for d in range(7)]
        assert max(abs(x - p / mpmath.fsum(parts)) for x, p in zip(seen, parts, strict=True)) < mpf(10) ** -15


def test_a_symmetric_law_has_symmetric_masses() -> None:
    for name, parameters in (("gaussian", {"mu": 5, "sigma": 3}), ("cauchy", {"location": 5, "scale": "sqrt(2)"})):
        masses = [mass for _, mass in discretised(name, max=10, **parameters).masses]  # type: ignore[arg-type]
        assert all(abs(a - b) <= F(1, 2**64) for a, b in zip(masses, reversed(masses), strict=True))


def test_an_exponential_law_is_nearly_geometric() -> None:
    # beyond the first cell each mass is half the one before
    masses = [mass.as_fraction() for _, mass in discretised("exponential", scale="1/log(2)", max=20).masses]
    assert all(abs(a / 2 - b) < F(2, 2**64) for a, b in pairwise(masses[1:]))


@settings(max_examples=100, deadline=None)
@given(problem=laws(), position=st.fractions(F(1, 10), F(9, 10), max_denominator=10))
def test_a_matched_mean_is_exact_and_its_move_is_counted(problem: Any, position: F) -> None:
    name, last, parameters = problem
    plain = discretised(name, max=last, **parameters)
    mean = plain.masses[0][0] + position * (plain.largest - plain.masses[0][0])
    assume(len(plain.masses) > 1)
    seen = discretised(name, max=last, mean=mean, **parameters)
    assert seen.mean() == mean
    with mpmath.workdps(DIGITS):
        assert distance(seen, cells(name, last, parameters)) <= number(seen.error.as_fraction())
    move = total(abs(mass - dict(seen.masses).get(d, Real(0))) for d, mass in plain.masses) / 2
    assert seen.error == move + plain.error


@pytest.mark.parametrize(
    ("name", "rest", "free"),
    [
        ("pareto", {"shape": 3}, {"scale": F(40, 3)}),  # mean = scale shape/(shape - 1)
        ("gaussian", {"sigma": 5}, {"mu": 20}),
        ("log-normal", {"sigma": 1}, {"mu": Real.of(20).log() - F(1, 2)}),  # mean = exp(mu + sigma^2/2)
        ("cauchy", {"scale": 5}, {"location": 20}),
        ("exponential", {}, {"scale": 20}),
    ],
)
def test_a_mean_stands_for_the_free_parameter(name: Any, rest: dict[str, Any], free: dict[str, Any]) -> None:
    assert discretised(name, mean=20, max=120, **rest) == discretised(name, mean=20, max=120, **rest, **free)


def test_extreme_parameters_have_a_law_or_a_limit() -> None:
    assert discretised("gaussian", mu=0, sigma="1e-300", max=20).masses[0] == (0, Real(1))
    assert discretised("pareto", shape="1e5000", scale=1, max=9).largest == 1
    assert len(discretised("gaussian", mu=0, sigma=10**40, max=20).masses) == 21  # nearly uniform
    assert discretised("gaussian", mu=-1000, sigma=1, max=20).masses == ((0, Real(1)),)  # far outside, yet told apart
    for parameters in ({"mu": "1e9999", "sigma": 1}, {"mu": 0, "sigma": "1e9999"}):
        with pytest.raises(LimitError, match="bits do not tell the cell masses"):
            discretised("gaussian", max=9, **parameters)


@pytest.mark.parametrize(
    ("name", "arguments", "error", "place"),
    [
        ("weibull", {"max": 5}, InputError, "law"),
        (["pareto"], {"max": 5}, InputError, "law"),
        ("gaussian", {"max": 0, "mu": 0, "sigma": 1}, InputError, "max"),
        ("gaussian", {"max": MAX_CELLS, "mu": 0, "sigma": 1}, LimitError, "max"),
        ("gaussian", {"max": 5.0, "mu": 0, "sigma": 1}, InexactInputError, "max"),
        ("gaussian", {"max": 5, "mu": 0, "sigma": 0}, InputError, "sigma"),
        ("gaussian", {"max": 5, "mu": 0, "sigma": -1}, InputError, "sigma"),
        ("gaussian", {"max": 5, "mu": 0.5, "sigma": 1}, InexactInputError, "mu"),
        ("gaussian", {"max": 5, "mu": Symbol("m"), "sigma": 1}, InputError, "mu"),
        ("gaussian", {"max": 5, "mu": 0}, InputError, "sigma"),
        ("gaussian", {"max": 5, "mu": 0, "sigma": 1, "scale": 1}, InputError, "scale"),
        ("pareto", {"max": 5, "shape": 0, "scale": 1}, InputError, "shape"),
        ("pareto", {"max": 5, "shape": 1, "scale": 0}, InputError, "scale"),
        ("pareto", {"max": 5, "shape": 1, "mean": 3}, InputError, "shape"),
        ("pareto", {"max": 5, "shape": 2, "mean": 0}, InputError, "mean"),
        ("pareto", {"max": 5, "shape": 2}, InputError, "scale"),
        ("cauchy", {"max": 5, "location": 0, "scale": 0}, InputError, "scale"),
        ("log-normal", {"max": 5, "sigma": 1, "mean": -1}, InputError, "mean"),
        ("exponential", {"max": 5, "scale": "-1/2"}, InputError, "scale"),
        ("exponential", {"max": 5, "scale": 1, "mean": 6}, InputError, "mean"),
        ("exponential", {"max": 5, "scale": 1, "mean": 2.5}, InexactInputError, "mean"),
    ],
)
def test_bad_arguments(name: Any, arguments: dict[str, Any], error: type[InputError], place: str) -> None:
    with pytest.raises(error) as refused:
        discretised(name, **arguments)
    assert refused.value.place == place
    assert "\n" not in str(refused.value)
