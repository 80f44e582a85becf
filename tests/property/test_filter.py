"""The float64 filter and the other arithmetics run the same random programs: enclosures hold, and no sign is decided wrong.

A program is a random series of the operations that formulas may use, on numbers from 2^-1074 to 2^1000 with ties, cancellation,
zeros, overflow and irrational entries. It runs in Filter, Rationals, Balls (1,500 bits) and Symbols; what one of them says about
an entry has to agree with all others.
"""

from __future__ import annotations

import contextlib
import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, fmpq

from exactgrpo.errors import DomainError, UndecidedError
from exactgrpo.numbers import expression as ex
from exactgrpo.numbers.arithmetic import OPEN, Column, Matrix, NotRepresentable, Open, Rows
from exactgrpo.numbers.balls import Balls
from exactgrpo.numbers.decision import decide_sign
from exactgrpo.numbers.expression import Expression
from exactgrpo.numbers.filter import TINY, Filter, Interval, U, is_ieee
from exactgrpo.numbers.precision import precision
from exactgrpo.numbers.rationals import Rationals
from exactgrpo.numbers.symbols import Symbols, node

BITS = 1500
PROGRAMS = 1000
CHUNKS = 3

Program = Callable[[Any], list[Any]]


@pytest.fixture(autouse=True)
def _quiet_floats() -> Any:
    with np.errstate(all="ignore"):
        yield


# ---- random programs


def number(r: random.Random, *, wild: bool, rational: bool) -> Fraction | Expression:
    """A number of any size if wild, else of moderate size; sometimes zero, on a grid, next to one, or irrational."""
    kind = r.random() * (0.9 if rational else 1)
    sign = r.choice((-1, 1))
    if kind < 0.05:
        return Fraction(0)
    if kind < 0.25:
        value = Fraction(r.randint(1, 8), r.choice((1, 2, 4, 8)))
    elif kind < 0.4:
        value = Fraction(r.randint(1, 20), r.randint(1, 20))
    elif kind < 0.6:
        value = Fraction(r.randint(2**52, 2**53 - 1), 2**52)
    elif kind < 0.75:
        value = 1 + Fraction(r.randint(-3, 3), 2 ** r.choice((52, 53, 54, 60)))
    elif kind < 0.9:
        value = Fraction(r.getrandbits(90) + 1, r.getrandbits(90) + 1)
    else:
        root = node(Fraction(r.randint(2, 7))).sqrt() if r.random() < 0.5 else node(Fraction(r.randint(2, 7))).log()
        return root * Fraction(sign * r.randint(1, 5), r.randint(1, 5))
    if wild:
        edge = r.choice((-1074, -1022, -900, 511, 512, 898, 1000))
        value *= Fraction(2) ** r.choice((0, 0, r.randint(-60, 60), r.randint(-1074, 1000), edge))
    return sign * value


def partition(r: random.Random, size: int) -> Rows:
    """Rows of random lengths, empty ones among them."""
    lengths: list[int] = []
    while size:
        lengths.append(r.randint(0, min(size, 5)))
        size -= lengths[-1]
    return Rows([*lengths, *([0] if r.random() < 0.2 else [])]) if lengths else Rows([0])


def random_program(seed: int) -> Program:
    """The program of a seed: it returns all its vectors. Data are drawn here, once, so that every arithmetic does the same."""
    r = random.Random(seed)
    wild, rational = r.random() < 0.6, r.random() < 0.4
    operations = [o for o in OPERATIONS if not (rational and o in IRRATIONAL)]
    lengths: list[int] = []
    steps: list[Callable[[Any, list[Any]], Any]] = []

    def add(length: int, step: Callable[[Any, list[Any]], Any]) -> None:
        lengths.append(length)
        steps.append(step)

    def data(length: int) -> Column:
        return Column(number(r, wild=wild, rational=rational) for _ in range(length))

    def load(length: int) -> None:
        column = data(length)
        add(length, lambda a, v: a.exact(column))

    for _ in range(r.randint(1, 3)):
        load(r.randint(1, 6))
    for _ in range(r.randint(2, 9)):
        i = r.randrange(len(lengths))
        n = lengths[i]
        if n == 0:
            continue
        twins = [j for j, m in enumerate(lengths) if m == n]
        j = r.choice(twins)
        match r.choice(operations):
            case "load":
                load(n)
            case "add":
                add(n, lambda a, v, i=i, j=j: v[i] + v[j])
            case "sub":
                add(n, lambda a, v, i=i, j=j: v[i] - v[j])
            case "mul":
                add(n, lambda a, v, i=i, j=j: v[i] * v[j])
            case "div":
                add(n, lambda a, v, i=i, j=j: v[i] / v[j])
            case "neg":
                add(n, lambda a, v, i=i: -v[i])
            case "number":
                c, side = number(r, wild=wild, rational=rational), r.randrange(5)
                add(n, lambda a, v, i=i, c=c, side=side: with_number(v[i], a.number(c), side))
            case "int":
                c, side = r.choice((-3, -1, 1, 2, 7)), r.randrange(5)
                add(n, lambda a, v, i=i, c=c, side=side: with_number(v[i], c, side))
            case "gather":
                at = np.array([r.randrange(n) for _ in range(r.randint(1, 6))], np.intp)
                add(len(at), lambda a, v, i=i, at=at: v[i][at])
            case "exp":
                add(n, lambda a, v, i=i: a.exp(v[i]))
            case "log":
                add(n, lambda a, v, i=i: a.log(v[i] * v[i]))
            case "root":
                degree = r.choice((2, 2, 3, 5))
                add(n, lambda a, v, i=i, degree=degree: a.root(v[i] * v[i], degree))
            case "linear":
                matrix = Matrix([[number(r, wild=wild, rational=rational) for _ in range(n)] for _ in range(r.randint(1, 4))], n)
                add(matrix.height, lambda a, v, i=i, matrix=matrix: a.linear(matrix, v[i]))
            case "adjoint":
                width = r.randint(1, 4)
                matrix = Matrix([[number(r, wild=wild, rational=rational) for _ in range(width)] for _ in range(n)], width)
                add(width, lambda a, v, i=i, matrix=matrix: a.adjoint(matrix, v[i]))
            case "sums" | "products" as operation:
                rows = partition(r, n)
                add(rows.count, lambda a, v, i=i, rows=rows, operation=operation: getattr(a, operation)(v[i], rows))
            case "cumulate" | "cofactors" as operation:
                rows = partition(r, n)
                add(n, lambda a, v, i=i, rows=rows, operation=operation: getattr(a, operation)(v[i], rows))
            case "place":
                size = n + r.randint(0, 3)
                at = np.array(r.sample(range(size), n), np.intp)
                add(size, lambda a, v, i=i, at=at, size=size: a.place(v[i], at, size))
            case "join":
                j = r.randrange(len(lengths))
                if n + lengths[j] <= 12:
                    add(n + lengths[j], lambda a, v, i=i, j=j: a.join([v[i], v[j]]))
            case "softmax":
                rows = Rows([n])
                add(n, lambda a, v, i=i, rows=rows: softmax(a, v[i], rows))
            case "log softmax":
                rows = Rows([n])
                add(n, lambda a, v, i=i, rows=rows: log_softmax(a, v[i], rows))

    def program(a: Any) -> list[Any]:
        vectors: list[Any] = []
        for step in steps:
            vectors.append(step(a, vectors))
        return vectors

    return program


OPERATIONS = (
    *("load", "add", "add", "sub", "sub", "mul", "mul", "div", "neg", "number", "number", "int", "gather", "exp", "log", "root"),
    *("linear", "adjoint", "sums", "products", "cumulate", "cofactors", "place", "join", "softmax", "log softmax"),
)
IRRATIONAL = {"exp", "log", "root", "softmax", "log softmax"}


def with_number(x: Any, c: Any, side: int) -> Any:
    return (x + c, x - c, x * c, x / c, 1 - x * c)[side]


def softmax(a: Any, x: Any, rows: Rows) -> Any:
    weight = a.exp(a.shift(x, rows))
    return weight * (1 / a.sums(weight, rows))[rows.owner]


def log_softmax(a: Any, x: Any, rows: Rows) -> Any:
    logit = a.shift(x, rows)
    return logit - a.log(a.sums(a.exp(logit), rows))[rows.owner]


# ---- running one in every arithmetic


def in_balls(program: Program) -> list[list[arb]]:
    with precision(BITS):
        return [v.entries for v in program(Balls(BITS))]


def in_rationals(program: Program) -> list[list[fmpq]] | None:
    try:
        return [v.entries for v in program(Rationals())]
    except (NotRepresentable, ZeroDivisionError):
        return None


def in_filter(program: Program) -> list[Interval] | None:
    try:
        return program(Filter())
    except NotRepresentable:
        return None


def exactly(x: float) -> arb:
    return arb(x)


def is_outside(value: arb, m: float, r: float) -> bool:
    """True if the exact number in the ball certainly lies outside m - r .. m + r."""
    return bool(abs(value - exactly(m)) > exactly(r))


def is_inside(value: arb, m: float, r: float) -> bool:
    return bool(abs(value - exactly(m)) <= exactly(r))


def compare_enclosures(seed: int, count: Counter[str]) -> None:
    program = random_program(seed)
    floats, balls, rationals = in_filter(program), in_balls(program), in_rationals(program)
    count["programs"] += 1
    count["rational programs"] += rationals is not None
    with precision(BITS):
        for exact, close in zip(rationals or balls, balls, strict=True):
            for q, b in zip(exact, close, strict=True):
                assert not b.is_finite() or b.overlaps(arb(q)), f"seed {seed}: ball {b} without {q}"
    if floats is None:
        return
    for n, (vector, close) in enumerate(zip(floats, balls, strict=True)):
        assert len(vector.m) == len(vector.r) == len(close)
        assert not (vector.r < 0).any()
        for i, (m, r, b) in enumerate(zip(vector.m.tolist(), vector.r.tolist(), close, strict=True)):
            count["entries"] += 1
            if not b.is_finite() or math.isnan(r) or math.isinf(r):
                continue
            assert math.isfinite(m), f"seed {seed}, vector {n}[{i}]: midpoint {m} with radius {r}"
            with precision(BITS):
                assert not is_outside(b, m, r), f"seed {seed}, vector {n}[{i}]: {b} outside {m} +/- {r}"
                count["enclosures confirmed"] += is_inside(b, m, r)


# ---- comparisons: pairs of vectors, and ties and near misses built from exact values


def near(q: Fraction, step: int) -> Fraction:
    """A fraction away from q by about `step` units of a double's last place."""
    scale = max(abs(q), Fraction(1, 2**1074))
    exponent = scale.numerator.bit_length() - scale.denominator.bit_length() - 53
    return q + step * Fraction(2) ** exponent


def as_fraction(q: fmpq) -> Fraction:
    return Fraction(int(q.p), int(q.q))


def signs_in(arithmetic: Any, program: Program, pairs: Sequence[tuple[Any, Any]]) -> list[list[int]] | None:
    try:
        vectors = program(arithmetic)
        out = []
        for n, (x, y) in enumerate(pairs):
            left, right = vectors[x], vectors[y] if isinstance(y, int) else arithmetic.exact(y)
            out.append(arithmetic.signs((n,), left, right, soft=True).tolist())
        return out
    except (NotRepresentable, ZeroDivisionError):
        return None


def compare_signs(seed: int, count: Counter[str]) -> None:
    program = random_program(seed)
    balls, rationals = in_balls(program), in_rationals(program)
    pairs: list[tuple[Any, Any]] = []
    for x, close in enumerate(balls):
        pairs += [(x, y) for y in range(x) if len(balls[y]) == len(close)]
    kinds, known = ["pair"] * len(pairs), [OPEN] * len(pairs)
    for x, vector in enumerate(rationals or ()):
        exact = list(map(as_fraction, vector))
        for step in (0, 1, -1, 2, -7, 2**12, -(2**20)):
            pairs.append((x, Column(near(q, step) for q in exact)))
            kinds.append({0: "tie", 1: "miss by one ulp", 2: "miss by two ulps"}.get(abs(step), "miss by more"))
            known.append((step < 0) - (step > 0))
    by_filter = signs_in(Filter(), program, pairs)
    by_rationals = signs_in(Rationals(), program, pairs) if rationals is not None else None
    with precision(BITS):
        by_balls = signs_in(Balls(BITS), program, pairs)
    assert by_balls is not None
    for n, (answers, kind, truth) in enumerate(zip(by_balls, kinds, known, strict=True)):
        exact_signs = by_rationals[n] if by_rationals is not None else [OPEN] * len(answers)
        for i, (sign, exact_sign) in enumerate(zip(answers, exact_signs, strict=True)):
            where = f"seed {seed}, comparison {n}, place {i}"
            said = {sign, exact_sign, truth} - {OPEN}
            assert len(said) <= 1, where
            if by_filter is None:
                continue
            claimed = by_filter[n][i]
            count[f"{kind}: asked"] += 1
            if claimed != OPEN:
                assert said <= {claimed}, f"{where}: the filter says {claimed}, the truth is {said}"
                count[f"{kind}: decided"] += 1
                count["confirmed"] += len(said)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_enclosures_of_the_filter_hold_the_exact_values(chunk: int) -> None:
    count: Counter[str] = Counter()
    for seed in range(chunk * PROGRAMS, (chunk + 1) * PROGRAMS):
        compare_enclosures(seed, count)
    assert count["enclosures confirmed"] > 15 * PROGRAMS, count  # the test would be idle if the filter knew little


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_signs_decided_by_the_filter_are_those_of_exact_arithmetic(chunk: int) -> None:
    count: Counter[str] = Counter()
    for seed in range(chunk * PROGRAMS, (chunk + 1) * PROGRAMS):
        compare_signs(seed, count)
    assert count["tie: decided"] == 0, count
    assert count["confirmed"] == sum(n for key, n in count.items() if key.endswith(": decided")), count
    assert count["pair: decided"] > count["pair: asked"] // 2 > 5 * PROGRAMS, count  # the test would be idle if few were decided
    assert count["miss by more: decided"] > count["tie: asked"] > PROGRAMS, count


def test_symbols_denote_the_numbers_that_balls_and_rationals_compute() -> None:
    checked = 0
    for seed in range(300):
        program = random_program(seed)
        balls, rationals = in_balls(program), in_rationals(program)
        lazy = program(Symbols(Rationals().table, lambda name, level, i: node(0)))
        for vector, close, exact in zip(lazy, balls, rationals or balls, strict=True):
            for i, b in enumerate(close):
                if not b.is_finite():
                    continue  # divided by zero, or not told from it
                with contextlib.suppress(DomainError, UndecidedError):
                    expression = vector.at(i)
                    with precision(BITS):
                        assert ex.enclose(expression, BITS).overlaps(b), f"seed {seed}"
                    if rationals is not None:
                        assert decide_sign(expression - node(exact[i])).value == 0, f"seed {seed}"
                    checked += 1
    assert checked > 5000


# ---- what random programs meet too seldom


def sign(x: Any, y: Any) -> list[int]:
    return Filter().signs(("question",), x, y, soft=True).tolist()


def test_a_partial_sum_that_overflows_decides_nothing() -> None:
    # four terms +-2^1023: each is a double, their sum is 0, but adding them from the left gives infinity; a radius may stay finite
    a = Filter()
    big = a.exact(Column([Fraction(2) ** 500] * 4)) * a.exact(Column([s * Fraction(2) ** 523 for s in (1, 1, -1, -1)]))
    small = a.exact(Column([Fraction(2) ** 460] * 4)) * a.exact(Column([Fraction(2) ** 462] * 4))
    row = [s * Fraction(2) ** 101 for s in (1, 1, -1, -1)]
    one = a.exact(Column([1]))
    assert np.isfinite(big.r).all()
    for total in (
        a.sums(big, Rows([4])),
        a.cumulate(big, Rows([4]))[np.array([3])],
        a.linear(Matrix([row], 4), small),
        a.adjoint(Matrix([[x] for x in row], 1), small),
    ):
        assert not np.isfinite(total.m).any()
        assert sign(total, one) == sign(one, total) == [OPEN]


@pytest.mark.parametrize("unknown", [(math.nan, 0.0), (math.inf, math.inf), (1.0, math.inf), (1.0, math.nan), (-math.inf, math.inf)])
def test_nan_and_infinity_decide_nothing_in_any_operation(unknown: tuple[float, float]) -> None:
    a, (m, r) = Filter(), unknown
    x = Interval(np.array([m, 2.0]), np.array([r, 0.0]))
    y = a.exact(Column([3, 5]))
    rows = Rows([2])
    single = [x + y, y - x, x * y, y / x, x / y, -x, x * 2, 1 / x, a.exp(x), a.log(x), a.root(x, 2), a.root(x, 3), a.shift(x, Rows([1, 1]))]
    single += [a.sums(x, Rows([1, 1])), a.products(x, Rows([1, 1])), a.cumulate(x, rows), a.cofactors(x, rows)[np.array([1, 0])]]
    total = [a.sums(x, rows), a.products(x, rows), a.linear(Matrix([[1, 1]], 2), x), a.adjoint(Matrix([[1], [1]], 1), x)]
    for z in (*single, *total):
        for bound in (-1, 0, 1, 10**6):
            assert sign(z, a.exact(Column([bound] * len(z))))[0] == OPEN


def test_divisors_and_radicands_that_may_vanish_decide_nothing() -> None:
    a = Filter()
    wide = a.exact(Column([1, 1])) - a.exact(Column([1, 1]))  # the midpoint is exactly 0, the radius is not
    one = a.exact(Column([1, 1]))
    for z in (one / wide, a.log(wide), a.root(wide, 2), one / a.exact(Column([0, 0]))):
        assert sign(z, one) == [OPEN, OPEN]


def test_only_exactly_represented_numbers_have_radius_zero() -> None:
    inexact = [Fraction(1, 3), 2**53 + 1, Fraction(1, 2**1074), Fraction(3, 2**1080), Fraction(10) ** 250, node(Fraction(2)).sqrt()]
    vector = Filter().exact(Column(inexact))
    assert (vector.r > 0).all()
    exact = Filter().exact(Column([0, 5, Fraction(3, 8), 2**53, -(2**53) + 1]))
    assert (exact.r == 0).all()
    assert exact.m.tolist() == [0, 5, 0.375, 2.0**53, -(2.0**53) + 1]


def test_numbers_beyond_doubles_decide_nothing() -> None:
    a = Filter()
    for value in (Fraction(10) ** 400, -(Fraction(10) ** 400), Fraction(2) ** 1030, node(Fraction(1000)).exp()):
        x = a.exact(Column([value]))
        assert sign(x, a.exact(Column([1]))) == [OPEN]
        with contextlib.suppress(NotRepresentable):
            assert sign(a.linear(Matrix([[value]], 1), a.exact(Column([1]))), a.exact(Column([1]))) == [OPEN]


@pytest.mark.parametrize("value", [*map(Fraction, ("1", "1/3", "5/4", "3/4")), Fraction(7, 2**1070), Fraction(2**900, 7)])
def test_a_tie_is_never_decided_and_one_ulp_never_wrong(value: Fraction) -> None:
    a = Filter()
    for way in (lambda x: x, lambda x: x * 3 / 3, lambda x: x + 1 - 1, lambda x: a.root(x * x, 2), lambda x: a.exp(a.log(x))):
        x = way(a.exact(Column([value])))
        for step in range(-4, 5):
            claimed = sign(x, a.exact(Column([near(value, step)])))
            assert claimed in ([OPEN], [(step < 0) - (step > 0)])


def test_subnormal_products_keep_a_radius() -> None:
    a = Filter()
    x = a.exact(Column([Fraction(3) / 2**540] * 2)) * a.exact(Column([Fraction(1, 2**540), Fraction(5, 2**538)]))
    assert (x.r >= TINY).all()
    assert sign(x, x * 0) == [OPEN, OPEN]


def reals(kind: str, size: int) -> np.ndarray:
    r = np.random.default_rng(7)
    if kind == "exp":
        tiny = np.exp(r.uniform(-80, 0, size))
        return np.concatenate([r.uniform(-689.9, 689.9, size), r.uniform(-1, 1, size), tiny, [0.0, 689.99, -689.99]])
    return np.concatenate([np.exp(r.uniform(-686, 686, size)), 1 + r.uniform(-1e-3, 1e-3, size), [1.0, 1 + 2**-52, 1 - 2**-53, 2.0**-980]])


@pytest.mark.parametrize("function", ["exp", "log"])
def test_exp_and_log_of_exact_doubles_are_within_their_radii(function: str) -> None:
    x = reals(function, 3000)
    a = Filter()
    y = getattr(a, function)(Interval(x, np.zeros(len(x))))
    with precision(200):
        for argument, m, r in zip(x.tolist(), y.m.tolist(), y.r.tolist(), strict=True):
            exact = getattr(arb(argument), function)()
            assert is_inside(exact, m, r)
            if function == "exp":
                assert is_inside(exact, m, 3 * U * m), "the bound of the header"
    assert (y.r <= 20 * U * (1 + np.abs(y.m))).all()


def test_a_wide_argument_widens_exp_log_and_roots_enough() -> None:
    r = np.random.default_rng(8)
    m = np.exp(r.uniform(-20, 3, 2000))
    radius = m * r.uniform(0, 0.2, 2000)
    a = Filter()
    for name, function in (("exp", a.exp), ("log", a.log), ("sqrt", lambda x: a.root(x, 2)), ("root", lambda x: a.root(x, 5))):
        y = function(Interval(m, radius))
        with precision(200):
            for middle, wide, found, found_radius in zip(m.tolist(), radius.tolist(), y.m.tolist(), y.r.tolist(), strict=True):
                for end in (arb(middle) - arb(wide), arb(middle) + arb(wide)):
                    exact = end.root(5) if name == "root" else getattr(end, name)()
                    assert not is_outside(exact, found, found_radius)


def test_shift_subtracts_one_double_from_each_row() -> None:
    r = random.Random(9)
    for _ in range(300):
        rows = partition(r, r.randint(1, 9))
        if not rows.size or not all(rows.lengths):
            continue
        column = Column(number(r, wild=False, rational=True) * r.choice((1, 10**6, Fraction(1, 10**9))) for _ in range(rows.size))
        x, y = Filter().exact(column), Filter().shift(Filter().exact(column), rows)
        for row in rows:
            top = max(x.m[i] for i in row)
            for i in row:
                assert abs(Fraction(column[i]) - Fraction(top) - Fraction(y.m[i])) <= Fraction(y.r[i])


def test_this_machine_runs_the_filter() -> None:
    assert is_ieee()


def test_an_open_comparison_is_raised_with_its_places() -> None:
    a = Filter()
    x = a.exact(Column([1, Fraction(1, 3), 2]))
    with pytest.raises(Open) as question:
        a.signs(("key",), x, x)
    assert question.value.places.tolist() == [0, 1, 2]
