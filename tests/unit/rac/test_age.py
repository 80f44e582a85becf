"""Age weights by hand and by their formulas; squared errors and gaps against sums over all samples."""

from __future__ import annotations

from fractions import Fraction as F
from itertools import product
from math import prod
from typing import Any

import pytest
from hypothesis import assume, example, given, settings, strategies as st
from sympy import exp, symbols

from exactgrpo import InexactInputError, InputError, LimitError, Real
from exactgrpo.rac import age as ages
from exactgrpo.rac.age import AgeWeight, decide_ageing_gap, mean_squared_error, mean_weight, mse_optimal
from exactgrpo.rac.delay_law import DelayLaw
from exactgrpo.rac.values import is_zero
from exactgrpo.strategies import positive_rationals, positive_simplex_points, rationals, simplex_points

A, B, TAU = symbols("a b tau", positive=True)


@st.composite
def laws(draw: st.DrawFn, *, never: bool = True) -> DelayLaw:
    """Laws on a few small delays, with or without a dropped mass, that arrive with positive probability."""
    delays = draw(st.lists(st.integers(0, 8), min_size=1, max_size=4, unique=True))
    names: list[Any] = [*delays, *(["never"] if never and draw(st.booleans()) else [])]
    return DelayLaw.of(dict(zip(names, draw(positive_simplex_points(size=len(names))), strict=True)))


# ---- the family


@given(delay=st.integers(0, 30), step=st.integers(0, 9), number=positive_rationals())
def test_weights_are_their_formulas(delay: int, step: int, number: F) -> None:
    assert ages.none()(step, delay) == 1
    assert ages.exponential(number)(step, delay) ** number.numerator == Real(-delay * number.denominator).exp()
    assert ages.geometric(number)(step, delay) == number**delay
    assert ages.hyperbolic(number)(step, delay) == F(1) / (1 + number * delay)


def test_the_extremes() -> None:
    assert [ages.geometric(0)(0, d) for d in range(3)] == [1, 0, 0]
    assert ages.hyperbolic(0)(0, 7) == 1
    assert ages.exponential("log(2)")(0, 3) == (Real(-3) / Real.of(2).log()).exp()


def test_ageing_twice_is_the_squared_weight() -> None:
    law = DelayLaw.of({0: "1/2", 1: "1/3", 2: "1/6"})
    assert [mean_weight(law, ages.geometric(F(1, n))) for n in (1, 2, 4)] == [1, F(17, 24), F(19, 32)]


def test_symbolic_weights_hold_for_all_values() -> None:
    assert ages.exponential(TAU)(0, 3) == exp(-3 / TAU)
    assert ages.exponential(TAU)(0, 0) == 1
    assert ages.hyperbolic(A)(0, 2) == 1 / (1 + 2 * A)
    p, r = A / (A + B), 1 / (1 + B)
    q = B / (A + B)
    # sum_{d < 9} p (q r)^d = p (1 - (q r)^9)/(1 - q r)
    assert is_zero(mean_weight(DelayLaw.geometric(p, max=9), ages.geometric(r)) - p * (1 - (q * r) ** 9) / (1 - q * r))
    # two delays: 1 - E exp(-D/tau) = (1 - e)(1/2 + (1 + e)/2), e = exp(-1/tau)
    e = exp(-1 / TAU)
    assert is_zero(1 - mean_weight(DelayLaw.of({1: "1/2", 2: "1/2"}), ages.exponential(TAU)) - (1 - e) * (2 + e) / 2)


@given(rows=st.lists(st.lists(positive_rationals() | st.just(F(0)), min_size=1, max_size=4), min_size=1, max_size=3))
def test_tables(rows: list[list[F]]) -> None:
    by_step, by_delay = ages.table(rows), ages.table({str(2 * d): w for d, w in enumerate(rows[0])})
    for t, row in enumerate(rows):
        assert [by_step(t, d) for d in range(len(row))] == row
        with pytest.raises(InputError, match=rf"^weights\[{t}\]: 'delay {len(row)}': there is no weight for this delay"):
            by_step(t, len(row))
    assert [ages.table(rows[0])(7, d) for d in range(len(rows[0]))] == rows[0]
    assert [by_delay(7, 2 * d) for d in range(len(rows[0]))] == rows[0]
    with pytest.raises(InputError, match="there are rows for the steps"):
        by_step(len(rows), 0)
    with pytest.raises(InputError, match=r"^weights: 'delay 1': there is no weight"):
        by_delay(0, 1)


@pytest.mark.parametrize(
    ("make", "error", "place"),
    [
        (lambda: ages.exponential(0), InputError, "tau"),
        (lambda: ages.exponential(-1), InputError, "tau"),
        (lambda: ages.exponential(2.0), InexactInputError, "tau"),
        (lambda: ages.exponential(symbols("x")), InputError, "tau"),
        (lambda: ages.geometric("-1/2"), InputError, "ratio"),
        (lambda: ages.hyperbolic(-1), InputError, "rate"),
        (lambda: ages.table([1, -1]), InputError, "weights.1"),
        (lambda: ages.table([[1], [0, "-1/2"]]), InputError, "weights[1].1"),
        (lambda: ages.table([[1], 2]), InputError, "weights[1]"),
        (lambda: ages.table({1: 1, "1": 1}), InputError, "weights"),
        (lambda: ages.table({"soon": 1}), InputError, "weights"),
        (lambda: ages.table("12"), InputError, "weights"),
        (lambda: ages.table([1] * 1_000_001), LimitError, "weights"),
        (lambda: ages.inverse_arrival()(0, 0), InputError, "law"),
        (lambda: mse_optimal(second_moments={0: 1}, mean=1, samples=1)(0, 0), InputError, "law"),
        (lambda: mse_optimal(second_moments={0: 0}, mean=0, samples=1), InputError, "second_moments.0"),
        (lambda: mse_optimal(second_moments={0: "3/4"}, mean=1, samples=1), InputError, "second_moments.0"),
        (lambda: mse_optimal(second_moments={0: 1}, mean=1, samples=0), InputError, "samples"),
        (lambda: mse_optimal(second_moments=[1], mean=1, samples=1), InputError, "second_moments"),
        (lambda: decide_ageing_gap(DelayLaw.deterministic(1), TAU), InputError, "law"),
        (lambda: decide_ageing_gap(DelayLaw.of({"never": 1}), 1), InputError, "delay"),
    ],
)
def test_bad_weights(make: Any, error: type[InputError], place: str) -> None:
    with pytest.raises(error) as refused:
        make()
    assert refused.value.place == place
    assert "\n" not in str(refused.value)


# ---- inverse arrival


@given(law=laws(), horizon=st.integers(1, 10), offset=st.integers(0, 1))
def test_inverse_arrival_saturates_every_row_that_can_land(law: DelayLaw, horizon: int, offset: int) -> None:
    age = ages.inverse_arrival()
    for t in range(horizon):
        lands = sum((mass.as_fraction() for d, mass in law.masses if t + d + offset < horizon), F(0))
        assert mean_weight(law, age, step=t, horizon=horizon, offset=offset) == (1 if lands else 0)
        assert age.weight(t, 3, law=law, horizon=horizon, offset=offset) == (1 / lands if lands else 0)
    arrives = sum((mass.as_fraction() for _, mass in law.masses), F(0))
    assert age.weight(0, 0, law=law) == 1 / arrives


def test_one_weight_serves_several_laws() -> None:
    age = ages.inverse_arrival()
    seen = [age.weight(0, 0, law=DelayLaw.of({0: F(1, n), "never": 1 - F(1, n)}), horizon=1, offset=0) for n in range(1, 40)]
    assert seen == list(range(1, 40))


@given(law=laws(), ratio=positive_rationals(max=1), horizon=st.integers(1, 10))
def test_weights_of_at_most_c_leave_a_slack_of_at_least_one_minus_c(law: DelayLaw, ratio: F, horizon: int) -> None:
    least = law.masses[0][0]
    for t in range(horizon):
        assert 1 - mean_weight(law, ages.geometric(ratio), step=t, horizon=horizon) >= 1 - ratio**least


# ---- least squared error


@st.composite
def samples(draw: st.DrawFn) -> tuple[DelayLaw, list[tuple[F, F]], dict[int, dict[F, F]]]:
    """A law, the law of a residual X, and for each delay a spread c(x): rho is 1 - c or 1 + c, so its mean given D and X is one."""
    law = draw(laws())
    values = draw(st.lists(rationals(max=3, min=-3, denominator=3), min_size=1, max_size=2, unique=True))
    masses = draw(positive_simplex_points(size=len(values)))
    spread = {d: {x: draw(st.sampled_from((F(0), F(1, 2), F(1)))) for x in values} for d, _ in law.masses}
    return law, list(zip(masses, values, strict=True)), spread


def moments_of(residual: list[tuple[F, F]], spread: dict[int, dict[F, F]]) -> tuple[dict[int, F], F]:
    """s_d = E[rho^2 X^2 | D = d] and E X."""
    return {d: sum(q * x * x * (1 + c[x] ** 2) for q, x in residual) for d, c in spread.items()}, sum(q * x for q, x in residual)


def injected(law: DelayLaw, residual: list[tuple[F, F]], spread: dict[int, dict[F, F]], weights: dict[int, F]) -> list[tuple[F, F]]:
    """The law of J: every joint outcome of delay, residual and ratio; what is dropped injects 0."""
    atoms = [
        (mass.as_fraction() * q / 2, weights[d] * rho * x) for d, mass in law.masses for q, x in residual for rho in ends(spread[d][x])
    ]
    return [*atoms, (law.never.as_fraction(), F(0))]


def ends(c: F) -> tuple[F, F]:
    return 1 - c, 1 + c


@settings(max_examples=60, deadline=None)
@given(problem=samples(), n=st.integers(1, 3), data=st.data())
def test_the_squared_error_is_that_of_all_samples(problem: Any, n: int, data: st.DataObject) -> None:
    law, residual, spread = problem
    moments, mean = moments_of(residual, spread)
    assume(all(moments.values()))
    weights = {d: data.draw(positive_rationals(max=2, denominator=3)) for d, _ in law.masses}
    atoms: dict[F, F] = {}
    for p, j in injected(law, residual, spread, weights):
        atoms[j] = atoms.get(j, F(0)) + p
    by_hand = sum(
        (prod((atoms[j] for j in draws), start=F(1)) * (sum(draws, F(0)) / n - mean) ** 2 for draws in product(atoms, repeat=n)), F(0)
    )
    assert mean_squared_error(law, ages.table(weights), second_moments=moments, mean=mean, samples=n) == by_hand


@settings(max_examples=150, deadline=None)
@given(problem=samples(), n=st.integers(1, 5), data=st.data())
def test_no_other_weights_have_a_smaller_error(problem: Any, n: int, data: st.DataObject) -> None:
    law, residual, spread = problem
    moments, mean = moments_of(residual, spread)
    assume(all(moments.values()))
    given: dict[str, Any] = {"second_moments": moments, "mean": mean, "samples": n}
    best = mse_optimal(**given)
    least = mean_squared_error(law, best, **given)
    weights = {d: best.weight(0, d, law=law).as_fraction() for d, _ in law.masses}
    factors = [data.draw(positive_rationals(max=2, denominator=7)) for _ in weights]
    other = {d: w * f for (d, w), f in zip(weights.items(), factors, strict=True)}
    error = mean_squared_error(law, ages.table(other), **given)
    assert error >= least
    assert (error == least) == (other == weights)  # the minimum is the only one
    assert least <= mean_squared_error(law, ages.none(), **given)


def test_the_least_error_for_all_moments() -> None:
    # least error: m^2 (1 - lambda H)
    s, m = {0: A, 3: B}, symbols("m")
    law = DelayLaw.of({0: "1/2", 3: "1/3", "never": "1/6"})
    best = mse_optimal(second_moments=s, mean=m, samples=4)
    h = 1 / (2 * A) + 1 / (3 * B)
    factor = 4 * m**2 / (1 + 3 * m**2 * h)
    assert is_zero(best.weight(0, 3, law=law) - factor / B)
    assert is_zero(mean_squared_error(law, best, second_moments=s, mean=m, samples=4) - m**2 * (1 - factor * h))


@given(law=laws(), s=positive_rationals(), n=st.integers(1, 5))
def test_ageing_pays_only_where_the_second_moment_grows(law: DelayLaw, s: F, n: int) -> None:
    best = mse_optimal(second_moments={d: s + 1 for d, _ in law.masses}, mean=1, samples=n)
    assert len({best.weight(0, d, law=law).as_fraction() for d, _ in law.masses}) == 1


def test_only_what_lands_counts() -> None:
    # horizon 2, offset 0, row 0: the delay 1 lands, 5 does not; H = 1/2, lambda = 1/(1 + 0)
    law, given = DelayLaw.of({1: "1/2", 5: "1/2"}), {"second_moments": {1: 1, 5: 1}, "mean": 1, "samples": 1}
    best = mse_optimal(**given)  # type: ignore[arg-type]
    at: dict[str, Any] = {"horizon": 2, "offset": 0}
    assert [best.weight(0, d, law=law, **at) for d in (1, 5)] == [1, 0]
    assert [best.weight(1, d, law=law, **at) for d in (1, 5)] == [0, 0]
    assert mean_squared_error(law, best, **given, **at) == F(1, 2)  # type: ignore[arg-type]
    assert mean_squared_error(law, best, **given, **at, step=1) == 1  # type: ignore[arg-type]  # nothing lands: the squared bias
    with pytest.raises(InputError, match=r"^second_moments: 'delay 5'"):
        mse_optimal(second_moments={1: 1}, mean=1, samples=1).weight(0, 1, law=law)


# ---- matched mean delay


@settings(max_examples=200, deadline=None)
@given(law=laws(), tau=positive_rationals(max=20, denominator=4))
@example(law=DelayLaw.deterministic(3), tau=F(2))
def test_the_gap_of_ageing_is_between_its_bounds(law: DelayLaw, tau: F) -> None:
    seen = decide_ageing_gap(law, tau)
    assert seen.holds
    assert (seen.gap > 0) == (len(law.masses) > 1)
    arrives = law.landed(law.largest)
    assert seen.gap == law.expectation(lambda d: (Real(-d) / tau).exp() / arrives - (-law.mean() / tau).exp() / arrives)
    assert seen.bound == law.expectation(lambda d: (d - law.mean()) ** 2) / arrives / (2 * tau**2)


def test_the_bound_is_nearly_reached_by_slow_ageing() -> None:
    seen = decide_ageing_gap(DelayLaw.of({0: "1/2", 2: "1/2"}), 1000)
    assert seen.bound * F(99, 100) < seen.gap < seen.bound


@given(masses=simplex_points(size=3), tau=positive_rationals())
def test_matched_mean_delays_have_different_mean_weights(masses: Any, tau: F) -> None:
    law = DelayLaw.of(dict(zip((0, 2, 5), masses, strict=True)))
    spread = DelayLaw.of({0: "1/2", 6: "1/2"}).matched(law.mean())
    difference = mean_weight(spread, ages.exponential(tau)) - mean_weight(law, ages.exponential(tau))
    assert difference > 0 or spread.mean() == 0  # the wider law has the larger weight


def test_weights_are_told_apart_by_name_and_parameters() -> None:
    assert ages.geometric("1/2") == ages.geometric("0.5") != ages.geometric("1/3")
    assert isinstance(ages.none(), AgeWeight)
    with pytest.raises(AttributeError):
        ages.none().name = "other"  # type: ignore[misc]
