"""Numbers, polynomials and formulas from text: hand-worked values, and the limits."""

from __future__ import annotations

import math
import pickle
from decimal import Decimal
from fractions import Fraction as F
from time import perf_counter

import pytest
from hypothesis import given, settings, strategies as st

from exactgrpo.errors import DomainError, InexactInputError, InputError, LimitError, ParseError
from exactgrpo.numbers.builders import Budget
from exactgrpo.numbers.decision import decide_sign
from exactgrpo.numbers.expression import Expression, enclose
from exactgrpo.numbers.formula import Formula, formula
from exactgrpo.numbers.rational import dyadic, exact
from exactgrpo.numbers.real import Real
from exactgrpo.numbers.text import parse_exact, parse_formula, parse_inequality, parse_polynomial, parse_polynomial_inequality


def _short(value: object) -> str:
    return ascii(value)[:30] if isinstance(value, str) else value.__name__ if isinstance(value, type) else type(value).__name__


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", F(7)),
        (" 3/7\n", F(3, 7)),
        ("-3/7", F(-3, 7)),
        ("0.1", F(1, 10)),
        (".5", F(1, 2)),
        ("-0.05", F(-1, 20)),
        ("1e-60", F(1, 10**60)),
        ("2.5E+3", F(2500)),
        ("12/4/3", F(1)),  # left associative
        ("7 - 2 - 1", F(4)),
        ("2^3^2", F(512)),  # right associative: 2^9
        ("2**3**2", F(512)),
        ("-2^2", F(-4)),  # the sign binds less tightly than the power
        ("(-2)^2", F(4)),
        ("2^-3", F(1, 8)),
        ("2^-3*4", F(1, 2)),
        ("2^-1^2", F(1, 2)),  # 2^(-(1^2))
        ("2*-3", F(-6)),
        ("--2", F(2)),
        ("+2", F(2)),
        ("3 - -2", F(5)),
        ("1 + 2*3^2/6 - 4", F(0)),
        ("4^(1/2)", F(2)),
        ("(8/27)^(2/3)", F(4, 9)),
        ("(8/27)^(-2/3)", F(9, 4)),
        ("sqrt(49/4)", F(7, 2)),
        ("sqrt(0)", F(0)),
        ("0^(1/2)", F(0)),
        ("0^0", F(1)),
        ("log(1)", F(0)),
        ("exp(0)", F(1)),
        ("sqrt(2)^2", F(2)),
        ("sqrt(2)*sqrt(2)", F(2)),
        ("sqrt(2) - sqrt(2)", F(0)),
        ("exp(log(3))", F(3)),
        ("log(exp(3))", F(3)),
        ("(1 + sqrt(5))*(1 - sqrt(5))", F(-4)),
        ("log(4)/log(2)", F(2)),
        ("sqrt(2)*sqrt(8)/3", F(4, 3)),
        ("2^(log(9)/log(3))", F(4)),
        ("1^(10^100)", F(1)),
        ("(-1)^(10^100 + 1)", F(-1)),
    ],
    ids=_short,
)
def test_text_of_a_rational_number_gives_the_fraction(text: str, value: F) -> None:
    result = parse_exact(text)
    assert value == result
    assert type(result) is F


@pytest.mark.parametrize("bits", [64, 192, 193, 700, 4096, 1 << 17])
def test_a_rational_is_recognised_whatever_was_computed_before(bits: int) -> None:
    root = Expression.of(2).sqrt() * Expression.of(8).sqrt()
    logs = Expression.of(4).log() / Expression.of(2).log()
    kept = [root / 3, root / 10**12, logs]  # alive, so that the texts below mean these very nodes, with all that they remember
    for x in kept:
        enclose(x, bits)
    assert [parse_exact(text) for text in ("sqrt(2)*sqrt(8)/3", "sqrt(2)*sqrt(8)*1e-12", "log(4)/log(2)")] == [F(4, 3), F(4, 10**12), F(2)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("sqrt(3)/2", math.sqrt(3) / 2),
        ("log(2)", math.log(2)),
        ("2^(1/3)", 2 ** (1 / 3)),
        ("2^(-2/3)", 2 ** (-2 / 3)),
        ("1/sqrt(2)", 1 / math.sqrt(2)),
        ("exp(-1/2)", math.exp(-0.5)),
        ("1/2*log(4/3)", math.log(4 / 3) / 2),
        ("(1 + sqrt(5))^3/8", ((1 + math.sqrt(5)) / 2) ** 3),
        ("-sqrt(2)", -math.sqrt(2)),
        ("(1 + sqrt(2))^(1/2)", math.sqrt(1 + math.sqrt(2))),
        ("(1 + sqrt(2))^-2", (1 + math.sqrt(2)) ** -2),
    ],
    ids=_short,
)
def test_text_of_an_irrational_number_gives_an_expression(text: str, value: float) -> None:
    result = parse_exact(text)
    assert isinstance(result, Expression)
    error = result - F(value)
    bound = F(value) * F(1, 10**12)
    assert decide_sign(error * error - bound * bound).value == -1


@pytest.mark.parametrize(
    ("text", "error", "rule"),
    [
        ("9^9^9^9", LimitError, "at most 200000"),
        ("9^(9^9)", LimitError, "at most 200000"),
        ("(1/9)^(9^9)", LimitError, "at most 200000"),
        ("2^-1e9", LimitError, "at most 200000"),
        ("1e999999999", LimitError, "decimal exponents are at most 10000"),
        ("1e-10001", LimitError, "decimal exponents are at most 10000"),
        ("1e99999999999999999999999", LimitError, "decimal exponents are at most 10000"),
        ("9" * 10_001, LimitError, "at most 10000 digits"),
        ("9" * 3_000_000, LimitError, "at most 100000 characters"),
        ("(" * 10_000 + "1" + ")" * 10_000, LimitError, "at most 100 deep"),
        ("-" * 10_000 + "1", LimitError, "at most 100 deep"),
        ("2^" * 10_000 + "1", LimitError, "at most 100 deep"),
        ("sqrt(" * 101 + "2" + ")" * 101, LimitError, "at most 100 deep"),
        ("9^60000*9^60000", LimitError, "at most 200000"),
        ("+".join(["9^60000"] * 10_000), LimitError, "too much work"),
        ("+".join(["1e-9999"] * 10_000), LimitError, "too much work"),
        ("(((3^(1/7))^10000)^7000)^10000", LimitError, "at most 10000"),
        ("(sqrt(3)^10000)^10000*1", LimitError, "at most 200000"),
        ("2^(1/10001)", LimitError, "at most 10000"),
        ("exp(exp(exp(1000)))", LimitError, "arguments of exp"),
        ("exp(-1000000001)", LimitError, "arguments of exp"),
        ("+".join(f"sqrt({k}+1/3)" for k in range(6000)), LimitError, "at most 10000 operations"),
        ("1/0", DomainError, "division by zero (character 2)"),
        ("0^-1", DomainError, "division by zero"),
        ("1/(2^2 - 4)", DomainError, "division by zero"),
        ("1/(sqrt(8) - 2*sqrt(2))", DomainError, "must not be zero"),
        ("log(0)", DomainError, "log of a number that is not positive"),
        ("log(-1)", DomainError, "log of a number that is not positive"),
        ("log(1 - sqrt(2))", DomainError, "must be positive"),
        ("sqrt(-1)", DomainError, "root of a negative number"),
        ("(-8)^(1/3)", DomainError, "root of a negative number"),
        ("sqrt(1 - sqrt(2))", DomainError, "must not be negative"),
        ("", ParseError, "is missing (character 1)"),
        (" ", ParseError, "is missing"),
        ("__import__('os')", ParseError, "not the name '__import__'"),
        ("().__class__", ParseError, "is missing"),
        ("1_000", ParseError, "an operator is missing (character 2)"),
        ("\u0661\u0662", ParseError, "unexpected"),
        ("2\u00b2", ParseError, "unexpected"),
        ("\u22121", ParseError, "unexpected"),
        ("2 3", ParseError, "an operator is missing (character 3)"),
        ("2(3)", ParseError, "an operator is missing"),
        ("1.", ParseError, "unexpected '.'"),
        ("1..2", ParseError, "unexpected '.'"),
        ("(1", ParseError, "not closed (character 1)"),
        ("1)", ParseError, "never opened (character 2)"),
        ("sqrt 2", ParseError, "needs a bracket"),
        ("sin(2)", ParseError, "not the name 'sin'"),
        ("2^sqrt(2)", ParseError, "an exponent is a rational number"),
        ("1 +", ParseError, "is missing (character 4)"),
        ("*1", ParseError, "is missing (character 1)"),
        ("nan", ParseError, "not the name 'nan'"),
        ("0x10", ParseError, "an operator is missing"),
        ("1,5", ParseError, "unexpected ','"),
        ("\0", ParseError, "unexpected"),
        ("\ud800", ParseError, "unexpected"),
    ],
    ids=_short,
)
def test_bad_text_is_one_clear_line_at_once(text: str, error: type[InputError], rule: str) -> None:
    start = perf_counter()
    with pytest.raises(error) as caught:
        parse_exact(text, "update.epsilon")
    line = str(caught.value)
    assert perf_counter() - start < 1.0
    assert type(caught.value) is error
    assert caught.value.place == "update.epsilon"
    assert caught.value.value == text
    assert rule in line
    assert "\n" not in line
    assert len(line) < 300


def test_limits_are_inclusive() -> None:
    assert F(10**9_999, 3) == parse_exact("1" + "0" * 9_999 + "/3")
    assert F(10**10_000) == parse_exact("1e10000")
    assert F(1) == parse_exact("(" * 100 + "1" + ")" * 100)
    assert F(2**199_000) == parse_exact("2^199000")


def test_a_budget_is_shared_by_the_texts_of_a_file() -> None:
    budget = Budget(300_000)
    parse_exact("9^60000", budget=budget)
    with pytest.raises(LimitError, match="too much work"):
        parse_exact("9^60000", budget=budget)


def test_irrational_numbers_and_open_signs_take_from_the_budget() -> None:
    with pytest.raises(LimitError, match="too much work"):
        parse_exact("sqrt(2) + sqrt(3)", budget=Budget(5000))
    hidden = "sqrt(sqrt(8) - 2*sqrt(2))"
    assert parse_exact(hidden) == F(0)
    with pytest.raises(LimitError, match="too much work"):
        parse_exact(hidden, budget=Budget(1_000_000))


# ---- exact and dyadic


def test_exact_takes_each_kind_of_exact_number() -> None:
    two = Expression.of(2)
    assert (F(3), F(1, 3), F(1, 10), F(-5)) == (exact(3), exact(F(1, 3)), exact(Decimal("0.10")), exact("-5"))
    assert two.sqrt() is exact(two.sqrt())
    assert type(exact(3)) is F
    assert F(1, 2) == exact(Real.of(F(1, 2))) == exact(Expression.of(F(1, 2)))
    assert two.sqrt() is exact(Real.of(two.sqrt()))


@pytest.mark.parametrize(
    ("value", "error", "rule"),
    [
        (0.1, InexactInputError, 'write "0.1" or Fraction(1, 10), or eg.dyadic(0.1)'),
        (1e300, InexactInputError, 'write "1e+300", or eg.dyadic(1e+300)'),
        (float("nan"), InexactInputError, "NaN and infinities are not numbers"),
        (True, InputError, "a bool is not a number"),
        (None, InputError, "an exact number is needed"),
        (1j, InputError, "an exact number is needed"),
        (Decimal("NaN"), InputError, "NaN and infinities are not numbers"),
        (Decimal("-Infinity"), InputError, "NaN and infinities are not numbers"),
        (Decimal("1e999999999"), LimitError, "decimal exponents are at most 10000"),
        (Decimal("1e-999999999"), LimitError, "decimal exponents are at most 10000"),
        (Decimal("1" * 10_001), LimitError, "at most 10000 digits"),
        (10**100_000, LimitError, "at most 200000 bits"),
        (F(1, 10**100_000), LimitError, "at most 200000 bits"),
    ],
    ids=_short,
)
def test_exact_refuses_what_is_not_an_exact_number(value: object, error: type[InputError], rule: str) -> None:
    with pytest.raises(error) as caught:
        exact(value, "beta")
    assert type(caught.value) is error
    assert str(caught.value).startswith("beta: ")
    assert rule in str(caught.value)


def test_dyadic_is_the_double_itself() -> None:
    assert F(0.1) == dyadic(0.1) != F(1, 10)
    for bad in (float("inf"), float("nan"), 1):
        with pytest.raises(InputError):
            dyadic(bad)


# ---- polynomials


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("0", {}),
        ("a - a", {}),
        ("3", {(0, 0): F(3)}),
        ("b", {(0, 1): F(1)}),
        ("1 - a", {(0, 0): F(1), (1, 0): F(-1)}),
        ("(a + b)^2", {(2, 0): F(1), (1, 1): F(2), (0, 2): F(1)}),
        ("(a + b)*(a - b)", {(2, 0): F(1), (0, 2): F(-1)}),
        ("2/5 + a/5", {(0, 0): F(2, 5), (1, 0): F(1, 5)}),
        ("5/16 + a/4 + 3*a^2/16", {(0, 0): F(5, 16), (1, 0): F(1, 4), (2, 0): F(3, 16)}),
        ("-(a*b)^3", {(3, 3): F(-1)}),
        ("sqrt(4)*a", {(1, 0): F(2)}),
        ("a^(4/2)", {(2, 0): F(1)}),
        ("a^0", {(0, 0): F(1)}),
        ("2^-2*a", {(1, 0): F(1, 4)}),
        ("a^64", {(64, 0): F(1)}),
        ("(a^40 - a^40 + b)^40", {(0, 40): F(1)}),
    ],
    ids=_short,
)
def test_polynomial_text_gives_its_coefficients(text: str, table: dict[tuple[int, ...], F]) -> None:
    assert table == parse_polynomial(text, ["a", "b"])


@pytest.mark.parametrize(
    ("text", "error", "rule"),
    [
        ("a^65", LimitError, "degree at most 64"),
        ("(a + b)^1000000000", LimitError, "degree at most 64"),
        ("a^60*b^5", LimitError, "degree at most 64"),
        ("(a + b + c + d + e)^28", LimitError, "at most 10000 terms"),
        ("+".join(["(a + b + c)^30*(a - b - c)^30"] * 20), LimitError, "too much work"),
        ("1/a", ParseError, "divided by numbers only"),
        ("a/0", DomainError, "division by zero"),
        ("a^(1/2)", ParseError, "whole numbers"),
        ("a^-1", ParseError, "whole numbers"),
        ("a^a", ParseError, "not the name 'a'"),
        ("sqrt(a)", ParseError, "no sqrt of a parameter"),
        ("sqrt(2)*a", ParseError, "rational numbers"),
        ("x", ParseError, "unknown name 'x'"),
    ],
    ids=_short,
)
def test_text_that_is_no_small_polynomial_over_q_is_refused(text: str, error: type[InputError], rule: str) -> None:
    start = perf_counter()
    with pytest.raises(error) as caught:
        parse_polynomial(text, list("abcde"), "policy.weights.q1[0]")
    assert perf_counter() - start < 3.0
    assert caught.value.place == "policy.weights.q1[0]"
    assert rule in caught.value.rule


def test_a_misspelt_parameter_gets_a_hint() -> None:
    with pytest.raises(ParseError, match="did you mean 'theta1'"):
        parse_polynomial("thta1", ["theta1", "theta2"])


def test_terms_times_parameters_are_bounded() -> None:
    names = [f"p{i}" for i in range(10_000)]
    assert len(parse_polynomial("p9999", names)) == 1
    with pytest.raises(LimitError, match="terms times parameters"):
        parse_polynomial("+".join(names), names)


@pytest.mark.parametrize("names", [["1a"], ["sqrt"], ["a", "a"], ["a b"], [""], ["\u00e4"], ["a" * 101]])
def test_bad_parameter_names_are_refused(names: list[str]) -> None:
    with pytest.raises(ParseError):
        parse_polynomial("1", names)


# ---- formulas


def _value(tree: Formula, at: dict[str, F]) -> F:
    """Plain evaluation in rationals."""

    def visit(node: Formula, below: tuple[F, ...]) -> F:
        if node.op == "number":
            return F(node.value)
        if node.op == "parameter":
            return at[str(node.value)]
        if node.op == "add":
            return sum(below, F(0))
        if node.op == "mul":
            return math.prod(below, start=F(1))
        if node.op == "div":
            return below[0] / below[1]
        return below[0] ** int(node.value)

    return tree.fold(visit)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("t", "t"),
        ("2*3*t/6", "t"),
        ("1 - t", "(((-1)*t) + 1)"),
        ("a + b - t", "(a + b + ((-1)*t))"),
        ("a/b/t", "(a/(b*t))"),
        ("a/(b/t)", "(a/(b/t))"),  # not a*t/b, which exists for t = 0
        ("sqrt(t)", "(t)^(1/2)"),
        ("t^(-3/2)", "(t)^(-3/2)"),
        ("0*log(t)", "(0*log(t))"),  # the domain t > 0 stays visible
        ("t^0", "(t)^(0)"),
        ("t/t", "(t/t)"),
        ("t - t", "(t + ((-1)*t))"),
        ("exp(-t)*log(1 + t)", "(exp(((-1)*t))*log((t + 1)))"),
        ("sqrt(2)*t", "((2)^(1/2)*t)"),
        ("log(2)", "log(2)"),
        ("sqrt(4) + log(1) + exp(0)", "3"),
    ],
    ids=_short,
)
def test_formula_text_gives_a_flat_tree_in_which_nothing_undefined_is_lost(text: str, shown: str) -> None:
    assert shown == str(parse_formula(text, ["a", "b", "t"]))


def test_equal_subtrees_of_formulas_are_one_object() -> None:
    tree = parse_formula("log(a + 1)/log(a + 1)", ["a"])
    assert tree.args[0] is tree.args[1]
    assert parse_formula("a*b + 1", ["a", "b"]) is (again := parse_formula("a * b + 1", ["a", "b"]))
    assert again is pickle.loads(pickle.dumps(again))
    assert {"a", "b"} == again.parameters()
    assert len(again.nodes()) == 5


def test_long_sums_and_quotients_make_shallow_trees() -> None:
    for text in ("+".join(["t"] * 20_000), "/".join(["t"] * 5_000), "-".join(["t*2"] * 20_000)):
        depth = parse_formula(text, ["t"]).fold(lambda node, below: 1 + max(below, default=0))
        assert depth <= 4


@pytest.mark.parametrize(
    ("text", "error", "rule"),
    [
        ("log(0)", DomainError, "log of a number"),
        ("log(1 - 1)", DomainError, "log of a number"),
        ("t/(1 - 1)", DomainError, "division by zero"),
        ("(0 - 2)^(1/2) + t", DomainError, "root of a negative"),
        ("((t^100)^100)^2", LimitError, "degree of a formula"),
        ("t^10001", LimitError, "at most 10000"),
        ("t^9^9^9", LimitError, "at most 200000"),
        ("t^t", ParseError, "not the name 't'"),
        ("u", ParseError, "unknown name 'u'"),
        ("t.real", ParseError, "unexpected '.'"),
    ],
    ids=_short,
)
def test_bad_formulas_are_refused(text: str, error: type[InputError], rule: str) -> None:
    with pytest.raises(error, match=rule):
        parse_formula(text, ["t"])


# ---- inequalities


def test_inequalities_give_what_is_positive() -> None:
    names = ["a", "b"]
    assert [{(1, 0): F(1)}] == parse_polynomial_inequality("a > 0", names)
    assert [{(0, 0): F(1), (1, 0): F(-1), (0, 1): F(-1)}] == parse_polynomial_inequality("a + b < 1", names)
    assert [{(1, 0): F(1)}, {(0, 0): F(1), (1, 0): F(-1)}] == parse_polynomial_inequality("0 < a < 1", names)
    assert [{(0, 0): F(1), (1, 0): F(-1)}, {(1, 0): F(1)}] == parse_polynomial_inequality("1 > a > 0", names)
    assert [str(bound) for bound in parse_inequality("exp(a) > 0", ["a"])] == ["exp(a)"]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("a >= 0", "the domain is open"),
        ("a <= 0", "the domain is open"),
        ("a = 0", "the domain is open"),
        ("a != 0", "the domain is open"),
        ("a \u2265 0", "the domain is open"),
        ("a", "a strict inequality"),
        ("0 < a > 1", "one direction"),
        ("<".join("a" * 200), "at most 100"),
        ("a <", "is missing"),
        ("(a < 1)", "not closed"),
        ("", "a strict inequality"),
    ],
    ids=_short,
)
def test_what_is_no_strict_inequality_is_refused(text: str, rule: str) -> None:
    with pytest.raises(ParseError, match=rule):
        parse_inequality(text, ["a"])


# ---- laws

_SPACE = st.sampled_from(["", "", " ", "\t", "\n  "])
Pair = tuple[str, F | None]


def _joined(draw: st.DrawFn, operator: str, left: Pair, right: Pair) -> Pair:
    text = f"({left[0]}){draw(_SPACE)}{operator}{draw(_SPACE)}({right[0]})"
    x, y = left[1], right[1]
    if x is None or y is None or (operator == "/" and y == 0):
        return text, None
    return text, {"+": lambda: x + y, "-": lambda: x - y, "*": lambda: x * y, "/": lambda: x / y}[operator]()


@st.composite
def _sums(draw: st.DrawFn, base: st.SearchStrategy[Pair]) -> Pair:
    kind = draw(st.sampled_from(["+", "-", "*", "/", "^", "neg"]))
    left = draw(base)
    if kind == "neg":
        return f"-{draw(_SPACE)}({left[0]})", None if left[1] is None else -left[1]
    if kind == "^":
        exponent = draw(st.integers(-3, 3))
        undefined = left[1] is None or (left[1] == 0 and exponent < 0)
        return f"({left[0]})^{draw(_SPACE)}{exponent}", None if undefined else F(left[1]) ** exponent
    return _joined(draw, kind, left, draw(base))


_LEAVES = st.one_of(
    st.integers(0, 99).map(lambda n: (str(n), F(n))),
    st.decimals("0", "99", places=3).map(lambda d: (str(d), F(d))),
    st.just(("t", F(2, 3))),
)
_TEXTS = st.recursive(_LEAVES, lambda base: _sums(base), max_leaves=12)


@settings(max_examples=200, deadline=None)
@given(_TEXTS)
def test_random_formulas_have_the_value_that_they_were_made_with(pair: Pair) -> None:
    text, value = pair
    number = text.replace("t", "(2/3)")
    if value is None:
        with pytest.raises(DomainError):
            parse_exact(number)
        return
    assert value == parse_exact(number)
    assert value == _value(parse_formula(text, ["t"]), {"t": F(2, 3)})
    try:
        table = parse_polynomial(text, ["t"])
    except InputError:
        return
    assert value == sum(c * F(2, 3) ** e for (e,), c in table.items())


@settings(max_examples=100, deadline=None)
@given(_TEXTS)
def test_the_text_of_a_formula_reads_back_to_the_same_value(pair: Pair) -> None:
    try:
        tree = parse_formula(pair[0], ["t"])
        value = _value(tree, {"t": F(2, 3)})
    except (DomainError, ZeroDivisionError):
        return
    assert value == _value(parse_formula(str(tree), ["t"]), {"t": F(2, 3)})


_PIECES = st.sampled_from([*"()+-*/^.e0t<>= \n\x00_\u0661'\"", "sqrt", "log(", "^9^9", ""])


@settings(max_examples=300, deadline=None)
@given(_TEXTS, st.lists(st.tuples(st.integers(0, 200), _PIECES), max_size=4))
def test_mutated_texts_raise_nothing_but_errors_of_this_package(pair: Pair, edits: list[tuple[int, str]]) -> None:
    text = pair[0]
    for position, piece in edits:
        text = text[:position] + piece + text[position + 1 :]
    for parse in (
        parse_exact,
        lambda text: parse_polynomial(text, ["t"]),
        lambda text: parse_formula(text, ["t"]),
        lambda text: parse_inequality(text, ["t"]),
    ):
        line = ""
        try:
            parse(text)
        except InputError as error:
            line = str(error)
        assert "\n" not in line


def test_formula_nodes_are_values() -> None:
    assert formula("parameter", value="t") is formula("parameter", value="t")
    assert formula("parameter", value="t") is not formula("parameter", value="u")
