"""Delay laws: tables, constructors and moments by hand and by sums of fractions, and means matched exactly."""

from __future__ import annotations

from fractions import Fraction as F
from typing import Any

import pytest
from hypothesis import assume, given, settings, strategies as st
from sympy import Rational, cancel, symbols

from exactgrpo import InexactInputError, InputError, LimitError, Real
from exactgrpo.rac.delay_law import MAX_CELLS, MAX_DELAY, DelayLaw
from exactgrpo.rac.values import is_zero, total
from exactgrpo.strategies import simplex_points

A, B = symbols("a b", positive=True)
P = symbols("p", nonnegative=True)


def tables(*, never: bool = True) -> st.SearchStrategy[dict[Any, F]]:
    """Tables from distinct delays, and perhaps "never", to masses; zeros are likely."""
    delays = st.lists(st.integers(0, 40), min_size=1, max_size=6, unique=True)
    keys = st.tuples(delays, st.booleans()).map(lambda pair: [*pair[0], *(["never"] if never and pair[1] else [])])
    return keys.flatmap(lambda names: simplex_points(size=len(names)).map(lambda masses: dict(zip(names, masses, strict=True))))


def fractions(law: DelayLaw) -> dict[int, F]:
    pairs = {delay: mass.as_fraction() for delay, mass in law.masses}
    assert None not in pairs.values()
    return pairs


# ---- tables


@given(table=tables())
def test_a_law_has_the_masses_of_its_table(table: dict[Any, F]) -> None:
    law = DelayLaw.of({str(key): mass for key, mass in table.items()})
    assert law == DelayLaw.of(table)
    positive = {d: mass for d, mass in table.items() if d != "never" and mass}
    assert fractions(law) == positive
    assert [d for d, _ in law.masses] == sorted(positive)
    assert law.never == table.get("never", 0)
    assert law.largest == max(positive, default=-1)


@given(table=tables(), within=st.integers(-3, 45))
def test_moments_and_arrivals_are_sums(table: dict[Any, F], within: int) -> None:
    law = DelayLaw.of(table)
    pairs = [(d, mass) for d, mass in table.items() if d != "never"]
    assert law.landed(within) == sum((mass for d, mass in pairs if d <= within), F(0))
    assert law.expectation(lambda d: Real(d**3 - 2)) == sum((mass * (d**3 - 2) for d, mass in pairs), F(0))
    arrives = sum((mass for _, mass in pairs), F(0))
    if not arrives:
        with pytest.raises(InputError, match="every signal is dropped"):
            law.mean()
        return
    assert law.mean() == sum((mass * d for d, mass in pairs), F(0)) / arrives
    mean = law.mean().as_fraction()
    assert law.variance() == sum((mass * (d - mean) ** 2 for d, mass in pairs), F(0)) / arrives


def test_the_law_of_the_model() -> None:
    law = DelayLaw.of({0: "1/2", 1: "1/3", 2: "1/6"})
    assert law.expectation(lambda d: Real(1)) == 1
    assert law.expectation(lambda d: Real(F(1, 2**d))) == F(17, 24)
    assert law.expectation(lambda d: Real(F(1, 4**d))) == F(19, 32)
    # P(D <= 3 - t - iota) over four rows: (1 + 1 + 5/6 + 1/2) and (1 + 5/6 + 1/2 + 0)
    assert [total(law.landed(3 - t - iota) for t in range(4)) for iota in (0, 1)] == [F(10, 3), F(7, 3)]


def test_irrational_masses() -> None:
    law = DelayLaw.of({0: "sqrt(2) - 1", 1: "2 - sqrt(2)"})
    assert law.mean() == 2 - Real.of(2).sqrt()
    with pytest.raises(InputError, match=r"sum Real\('2"):
        DelayLaw.of({0: "sqrt(2)", 1: "2 - sqrt(2)"})


def test_symbolic_masses_hold_for_all_values() -> None:
    law = DelayLaw.of({0: A / (A + B), 2: B / (A + B), 3: A - A})
    assert [d for d, _ in law.masses] == [0, 2]
    assert law.landed(1) == A / (A + B)
    assert is_zero(law.landed(2) - 1)
    assert is_zero(law.mean() - 2 * B / (A + B))
    assert is_zero(law.variance() - 4 * A * B / (A + B) ** 2)
    with pytest.raises(InputError, match=r"^delay: 'sum .*a.*': probabilities, that of never included, sum to one"):
        DelayLaw.of({0: A / (A + B), 1: B / (A + 2 * B)})
    with pytest.raises(
        InputError, match=r"^delay\.1: 1 - p: a probability is not negative, which does not follow from the assumptions on p"
    ):
        DelayLaw.of({0: P, 1: 1 - P})


@pytest.mark.parametrize(
    ("table", "error", "line"),
    [
        ({0: "1/2", 1: "-1/2", 2: 1}, InputError, "delay.1: \"Real('-1/2')\": a probability is not negative"),
        ({0: "1/2"}, InputError, "delay: \"sum Real('1/2')\": probabilities, that of never included, sum to one"),
        ({"never": "1/3"}, InputError, "delay: \"sum Real('1/3')\": probabilities, that of never included, sum to one"),
        ({}, InputError, "delay: \"sum Real('0')\": probabilities, that of never included, sum to one"),
        ({1: "1/2", "1": "1/2"}, InputError, "delay: '1': each delay stands once"),
        ({"soon": 1}, InputError, "delay: 'soon': a delay is a number of steps, or \"never\""),
        ({"-1": 1}, InputError, "delay: '-1': a delay is a number of steps, or \"never\""),
        ({"²": 1}, InputError, "delay: '²': a delay is a number of steps, or \"never\""),
        ({-1: 1}, InputError, "delay: -1: an integer of at least 0"),
        ({True: 1}, InputError, "delay: True: an integer of at least 0"),
        ({None: 1}, InputError, "delay: None: an integer of at least 0"),
        ({0.0: 1}, InexactInputError, "delay: 0.0: an integer of at least 0"),
        ({0: 1.0}, InexactInputError, None),
        ({MAX_DELAY + 1: 1}, LimitError, "delay: 1000001: a delay of at most 1000000 steps"),
        ({"9" * 400: 1}, InputError, None),
        (dict.fromkeys(range(MAX_CELLS + 2), 0), LimitError, "delay: '10002 delays': at most 10001"),
        ([(0, 1)], InputError, 'delay: [(0, 1)]: a table from delays, and "never", to probabilities'),
    ],
)
def test_bad_tables(table: Any, error: type[InputError], line: str | None) -> None:
    with pytest.raises(error) as refused:
        DelayLaw.of(table)
    assert line is None or str(refused.value) == line
    assert "\n" not in str(refused.value)


# ---- constructors


@given(delay=st.integers(0, MAX_DELAY))
def test_a_deterministic_delay(delay: int) -> None:
    law = DelayLaw.deterministic(delay)
    assert law == DelayLaw.of({delay: 1})
    assert (law.mean(), law.variance()) == (delay, 0)


@given(p=st.fractions(0, 1, max_denominator=12), cells=st.integers(1, 12))
def test_a_geometric_law(p: F, cells: int) -> None:
    table: dict[Any, F] = {d: p * (1 - p) ** d for d in range(cells)}
    assert DelayLaw.geometric(p, max=cells) == DelayLaw.of({**table, "never": (1 - p) ** cells})
    assert DelayLaw.geometric(p, max=cells, rest="last") == DelayLaw.of({**table, cells: (1 - p) ** cells})


def test_a_symbolic_geometric_law_sums_to_one_for_all_values() -> None:
    p = A / (A + B)
    for rest in ("never", "last"):
        law: DelayLaw = DelayLaw.geometric(p, max=12, rest=rest)  # type: ignore[arg-type]
        assert is_zero(total([law.never, *(mass for _, mass in law.masses)]) - 1)
        concrete = DelayLaw.geometric("2/5", max=12, rest=rest)  # type: ignore[arg-type]
        at = [Rational(*mass.as_fraction().as_integer_ratio()) for _, mass in concrete.masses]
        assert [mass.subs({A: 2, B: 3}) for _, mass in law.masses] == at
    assert cancel(DelayLaw.geometric(p, max=2).mean() - B / (A + 2 * B)) == 0  # p q / (p + p q) = q / (1 + q)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"p": "5/4", "max": 3}, InputError),
        ({"p": "-1/4", "max": 3}, InputError),
        ({"p": 0.5, "max": 3}, InexactInputError),
        ({"p": "1/2", "max": 0}, InputError),
        ({"p": "1/2", "max": MAX_CELLS + 1}, LimitError),
        ({"p": F(1, 3**4000), "max": 9000}, LimitError),
        ({"p": "1/2", "max": 3, "rest": "first"}, InputError),
        ({"p": symbols("p", positive=True), "max": 3}, InputError),
    ],
)
def test_bad_geometric_laws(arguments: dict[str, Any], error: type[InputError]) -> None:
    with pytest.raises(error) as refused:
        DelayLaw.geometric(**arguments)
    assert "\n" not in str(refused.value)


# ---- matched means


@settings(max_examples=200)
@given(table=tables(), position=st.fractions(0, 1, max_denominator=20))
def test_a_mean_is_matched_exactly(table: dict[Any, F], position: F) -> None:
    law = DelayLaw.of(table)
    assume(law.masses)
    low, high = law.masses[0][0], law.largest
    mean = low + position * (high - low)
    matched = law.matched(mean)
    assert matched.mean() == mean
    assert matched.never == law.never
    assert total([matched.never, *(mass for _, mass in matched.masses)]) == 1
    assert {d for d, _ in matched.masses} <= {d for d, _ in law.masses}
    assert all(mass > 0 for _, mass in matched.masses)
    assert [d for d, _ in matched.masses] == sorted(d for d, _ in matched.masses)
    sign = 1 if mean >= law.mean() else -1  # mass moves in one direction only
    assert all((law.landed(d) - matched.landed(d)) * sign >= 0 for d, _ in law.masses)


@given(table=tables())
def test_the_own_mean_changes_nothing(table: dict[Any, F]) -> None:
    law = DelayLaw.of(table)
    assume(law.masses)
    assert law.matched(law.mean()) == law


@given(table=tables(), by=st.sampled_from((F(1, 10**9), F(1), F(100))))
def test_a_mean_outside_the_delays_is_refused(table: dict[Any, F], by: F) -> None:
    law = DelayLaw.of(table)
    assume(law.masses)
    for mean in (law.largest + by, law.masses[0][0] - by):
        with pytest.raises(InputError, match="the delays of the law"):
            law.matched(mean)


def test_a_small_move_takes_the_same_fraction_of_each_mass() -> None:
    # from mean 1 to 5/4: fraction f of the first two masses moves one step, f (1/3 + 1/3) = 1/4
    assert fractions(DelayLaw.of({0: "1/3", 1: "1/3", 2: "1/3"}).matched("5/4")) == {0: F(5, 24), 1: F(1, 3), 2: F(11, 24)}
    assert fractions(DelayLaw.of({0: "1/3", 1: "1/3", 2: "1/3"}).matched("3/4")) == {0: F(11, 24), 1: F(1, 3), 2: F(5, 24)}


def test_symbols_have_no_matched_mean() -> None:
    with pytest.raises(InputError, match="without symbols"):
        DelayLaw.of({0: A / (A + B), 1: B / (A + B)}).matched("1/2")
    with pytest.raises(InputError, match="without symbols"):
        DelayLaw.of({0: "1/2", 1: "1/2"}).matched(A)
