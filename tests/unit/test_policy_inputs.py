"""Policy families from Python: the forms of polynomials, formulas, inequalities and parameters, and refusals with their place."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
import sympy as sp

from exactgrpo.errors import DomainError, InexactInputError, InputError, LimitError, ParseError, PolicyError
from exactgrpo.numbers.arithmetic import Column
from exactgrpo.numbers.expression import Expression
from exactgrpo.numbers.formula import formula
from exactgrpo.numbers.rational import exact
from exactgrpo.numbers.rationals import Rationals
from exactgrpo.numbers.real import Real
from exactgrpo.numbers.text import parse_exact, parse_formula, parse_inequality, parse_polynomial
from exactgrpo.policies.expression import Expressions
from exactgrpo.policies.family import PolicyFamily
from exactgrpo.policies.inputs import formula_bounds, formula_of, polynomial, polynomial_bounds
from exactgrpo.policies.protocol import GenerationProtocol
from exactgrpo.policies.rational import Rational
from exactgrpo.policies.simplex import Simplex
from exactgrpo.policies.softmax import Softmax
from exactgrpo.policies.tokens import Tokens

t, u = sp.symbols("t u")
NAMES = {"t": 0, "u": 1}
PROTOCOL = GenerationProtocol.of(["x"], end=".", max_length=2)


def _masses(family: PolicyFamily, *theta: F) -> list[F]:
    mass = family.at(Rationals(), Rationals().exact(Column(theta))).mass
    return [F(int(x.p), int(x.q)) for x in mass.entries]


# ---- one polynomial, formula or inequality in all its forms

POLYNOMIALS: list[tuple[str, Any]] = [
    ("1 - t", 1 - t),
    ("2*t*u/3", 2 * t * u / 3),
    ("(t + u)^3 - t", (t + u) ** 3 - t),
    ("-t^2/7", -(t**2) / 7),
    ("0", sp.Integer(0)),
    ("5", 5),
    ("1/3", F(1, 3)),
]


@pytest.mark.parametrize(("text", "other"), POLYNOMIALS)
def test_a_polynomial_has_one_meaning_in_every_form(text: str, other: Any) -> None:
    table = parse_polynomial(text, NAMES)
    given = {powers: c for powers, c in polynomial(other, NAMES, "w").items() if c}
    assert given == table == polynomial(text, NAMES, "w") == polynomial(table, NAMES, "w")


FORMULAS = [
    t * sp.exp(-t) / 2 + sp.Rational(1, 3),
    1 / t,
    t**-2,
    t**-3 * u,
    1 / sp.sqrt(t),
    u / t**2,
    sp.sqrt(2) * t / 2,
    -t,
    1 - t,
    t - u + 2 * t * u,
    sp.exp(t) / (1 + u),
    (t + 1) ** sp.Rational(-3, 2) * u,
    -(t + u) * u / 3,
    u / (2 * t),
    2 / (3 * t * u),
    t ** sp.Rational(1, 3),
    sp.log(t, 2),
    sp.exp(t * u - 1) ** 2,
    sp.Rational(2, 3) ** sp.Rational(1, 3) * t,
    1 / (t * u),
    sp.log(sp.sqrt(t) + sp.exp(-u / 2)),
    (t**2 + 1) ** 4 / (t - 3),
    sp.Mul(-1, t + u, evaluate=False) + u**2,
    sp.exp(2) * t,
    sp.Integer(7),
    sp.Rational(-7, 3),
]


@pytest.mark.parametrize("expression", FORMULAS, ids=str)
def test_a_sympy_expression_is_the_formula_of_its_text(expression: Any) -> None:
    assert formula_of(expression, NAMES, "w") is parse_formula(str(expression), NAMES)


POWER_OF_E = sp.Pow(sp.E, t, evaluate=False)


@pytest.mark.parametrize(
    ("expression", "text"), [(sp.E, "exp(1)"), (sp.E * t, "exp(1)*t"), (POWER_OF_E, "exp(t)"), (F(1, 3), "1/3"), (2, "2")]
)
def test_what_prints_otherwise_than_in_our_grammar(expression: Any, text: str) -> None:
    assert formula_of(expression, NAMES, "w") is parse_formula(text, NAMES)


def test_a_formula_passes_as_it_is() -> None:
    made = parse_formula("exp(t)", NAMES)
    assert formula_of(made, NAMES, "w") is made
    with pytest.raises(PolicyError, match="formulas use the parameters t, u"):
        formula_of(formula("parameter", value="s"), NAMES, "w")


@pytest.mark.parametrize(
    ("relation", "text"),
    [(t > 0, "t > 0"), (sp.Lt(t, u), "t < u"), (sp.Gt(t**2, 1 - u), "t^2 > 1 - u"), (sp.Lt(0, t, evaluate=False), "0 < t")],
)
def test_a_sympy_inequality_is_that_of_its_text(relation: Any, text: str) -> None:
    assert formula_bounds([relation], NAMES) == parse_inequality(text, NAMES)
    assert polynomial_bounds([relation], NAMES) == polynomial_bounds([text], NAMES)


def test_chains_and_conjunctions_are_several_inequalities() -> None:
    assert polynomial_bounds(["0 < t < 1"], NAMES) == [{(1, 0): F(1)}, {(1, 0): F(-1), (0, 0): F(1)}]
    both = sp.And(sp.Gt(t, 0), sp.Lt(t, 1))
    assert {str(bound) for bound in formula_bounds([both], NAMES)} == {"t", "(((-1)*t) + 1)"}
    assert formula_bounds([parse_formula("t", NAMES)], NAMES) == [parse_formula("t", NAMES)]


@pytest.mark.parametrize(
    ("expression", "error", "rule"),
    [
        (sp.sin(t), PolicyError, "sin has no exact form here"),
        (sp.pi * t, PolicyError, "Pi has no exact form"),
        (abs(t), PolicyError, "Abs has no exact form"),
        (sp.I, PolicyError, "ImaginaryUnit"),
        (sp.oo, PolicyError, "Infinity"),
        (sp.nan, PolicyError, "NaN"),
        (sp.zoo, PolicyError, "ComplexInfinity"),
        (t**u, PolicyError, "an exponent is a rational number"),
        (3**t, PolicyError, "an exponent is a rational number"),
        (t ** sp.sqrt(2), PolicyError, "an exponent is a rational number"),
        (sp.Piecewise((t, t > 0), (1, True)), PolicyError, "Piecewise"),
        (sp.Function("f")(t), PolicyError, "f has no exact form"),
        (sp.Derivative(t**2, t), PolicyError, "Derivative"),
        (t > 0, PolicyError, "StrictGreaterThan"),
        (sp.true, PolicyError, "BooleanTrue"),
        (sp.Symbol("s"), PolicyError, "unknown name 's'"),
        (t + 0.5, InexactInputError, "a Float is not exact"),
        (t**0.5, InexactInputError, "a Float is not exact"),
        (sp.Float(1), InexactInputError, "a Float is not exact"),
        (t**10**6, LimitError, "at most 10000"),
        (sp.Pow(sp.Integer(-2), sp.Rational(1, 3), evaluate=False), DomainError, "root of a negative"),
        (sp.Add(*[sp.exp(t * i) for i in range(9000)]), LimitError, "at most 20000 nodes"),
    ],
)
def test_a_sympy_expression_without_a_formula_is_refused(expression: Any, error: type[InputError], rule: str) -> None:
    with pytest.raises(error, match=rule) as caught:
        Expressions.of([[expression, 1]], parameters=[t, u])
    assert caught.value.place == "weights[0][0]"
    assert "\n" not in str(caught.value)


def test_deep_sympy_expressions_are_refused_before_any_recursion() -> None:
    deep = t
    for _ in range(400):
        deep = sp.exp(deep, evaluate=False)
    with pytest.raises(LimitError, match="nest at most 100 deep"):
        formula_of(deep, NAMES, "w")


def test_a_shared_sympy_expression_that_is_huge_as_a_tree_is_refused() -> None:
    shared = t
    for _ in range(60):
        shared = sp.Add(sp.exp(shared, evaluate=False), sp.log(shared, evaluate=False), evaluate=False)
    for expression in (shared, sp.sin(shared, evaluate=False), sp.Pow(2, shared, evaluate=False)):
        with pytest.raises(InputError) as caught:
            formula_of(expression, NAMES, "w")
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize("relation", [sp.Ge(t, 0), sp.Le(t, 0), sp.Eq(t, 1), sp.Ne(t, 1), sp.true, t, sp.Or(t > 0, t < -1), sp.Integer(1)])
def test_a_sympy_relation_that_is_not_strict_is_refused(relation: Any) -> None:
    for bounds in (formula_bounds, polynomial_bounds):
        with pytest.raises(PolicyError, match="strict inequality") as caught:
            bounds([relation], NAMES)
        assert caught.value.place == "inequalities[0]"


def test_sympy_numbers_are_exact_numbers() -> None:
    assert exact(sp.Rational(1, 2)) == F(1, 2)
    assert exact(sp.Integer(3)) == F(3)
    assert exact(sp.sqrt(8) / sp.sqrt(2)) == F(2)
    assert exact(sp.sqrt(2) + sp.log(3)) == parse_exact("log(3) + sqrt(2)")
    for value, error in ((sp.Float(0.5), InexactInputError), (sp.pi, InputError), (t, InputError), (sp.log(-1), InputError)):
        with pytest.raises(error) as caught:
            exact(value, "beta")
        assert caught.value.place == "beta"


def test_sympy_is_not_imported_for_texts() -> None:
    program = "import sys; from exactgrpo.policies.expression import Expressions as E; "
    program += "E.of([['exp(t)']], parameters=['t']); print('sympy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "False\n"


# ---- the families

def test_rational_from_texts_tables_and_sympy_is_one_family() -> None:
    ready = {(1,): F(1)}
    for family in (
        Rational.of([["t", "1 - t"]], parameters=["t"]),
        Rational.of([[t, 1 - t]], parameters=[t]),
        Rational.of([[ready, {(0,): 1, (1,): -1}]], parameters=("t",)),
        Rational.of([["theta1", "1 - theta1"]], size=1),
        Rational.of([[ready, "1 - theta1"]], size=np.int64(1)),  # type: ignore[arg-type]
    ):
        assert _masses(family, F(1, 3)) == [F(1, 3), F(2, 3)]
        assert len(family.parameters) == family.size == 1


def test_inequalities_of_every_family_may_be_texts() -> None:
    families: list[PolicyFamily] = [
        Rational.of([["t", "1 - t"]], parameters=["t"], inequalities=["t < 1/2"]),
        Simplex.of([2], parameters=["t"], inequalities=["t < 1/2"]),
        Simplex.of([2], inequalities=["theta1 < 1/2"]),
        Softmax.of([[[1], [0]]], parameters=["t"], inequalities=["t < 1/2"]),
        Softmax.of([[[1], [0]]], inequalities=[{(1,): F(-1), (0,): F(1, 2)}]),
        Expressions.of([["t", "1 - t"]], parameters=["t"], inequalities=["t < 1/2"]),
        Tokens.of(PROTOCOL, ["q"], {"*": {"x": "t", ".": "1 - t"}}, conditional="rational", parameters=["t"], inequalities=["t < 1/2"]),
    ]
    for family in families:
        for theta, expected in ((F(1, 4), True), (F(1, 2), False)):
            point = Rationals().exact(Column([theta]))
            assert expected == all(x > 0 for vector in family.domain(Rationals(), point) for x in vector.entries), family


def test_softmax_features_and_bases_are_any_exact_numbers() -> None:
    family = Softmax.of([[["1/2", 0], [Real.of(2).sqrt(), np.int8(3)]]], base=[["log(2)", 1]])
    assert family.features.rows == [[(0, F(1, 2))], [(0, Expression.of(2).sqrt()), (1, F(3))]]
    assert family.base == (Expression.of(2).log(), F(1))
    assert family.parameters == ("theta1", "theta2")
    assert Softmax.of(np.arange(12).reshape(2, 3, 2)).rows.lengths == (3, 3)  # type: ignore[arg-type]


def test_tokens_take_texts_numbers_and_ready_polynomials() -> None:
    tables: dict[str, dict[str, Any]] = {"q": {"x": "2*t", ".": 1}, "*": {"x": {(1,): F(2)}, ".": F(1)}}
    family = Tokens.of(PROTOCOL, ["q", "p"], tables, conditional="rational", parameters=["t"])
    assert _masses(family, F(1)) == [F(4, 9), F(2, 9), F(1, 3)] * 2
    shifted = Tokens.of(PROTOCOL, ["q"], {"*": {"x": "t + 1/2", ".": 0}}, conditional="softmax", size=None, parameters=[t])
    assert isinstance(shifted.conditionals, Softmax)
    assert shifted.conditionals.base == (parse_exact("exp(1/2)"), F(1))


TOKENS: dict[str, Any] = {"tables": {"*": {"x": "t", ".": "1"}}, "conditional": "softmax", "parameters": ["t"]}


def _tokens(**changes: Any) -> PolicyFamily:
    parts = {"protocol": PROTOCOL, "prompts": ["q"], **TOKENS, **changes}
    return Tokens.of(parts.pop("protocol"), parts.pop("prompts"), parts.pop("tables"), **parts)


def _rational(weights: Any, **changes: Any) -> Callable[[], PolicyFamily]:
    return lambda: Rational.of(weights, **{"parameters": ["t"], **changes})


def _softmax(features: Any, **changes: Any) -> Callable[[], PolicyFamily]:
    return lambda: Softmax.of(features, **changes)


def _expressions(weights: Any, **changes: Any) -> Callable[[], PolicyFamily]:
    return lambda: Expressions.of(weights, **{"parameters": ["t"], **changes})


BAD: list[tuple[Callable[[], PolicyFamily], str, type[InputError]]] = [
    (_rational("t"), "weights", PolicyError),
    (_rational(None), "weights", PolicyError),
    (_rational(0.5), "weights", InexactInputError),
    (_rational([]), "weights", PolicyError),
    (_rational(w for w in [["t"]]), "weights", PolicyError),
    (_rational(["t", "1 - t"]), "weights[0]", PolicyError),
    (_rational([[]]), "weights[0]", PolicyError),
    (_rational([["t"], 1]), "weights[1]", PolicyError),
    (_rational([["t", 0.5]]), "weights[0][1]", InexactInputError),
    (_rational([["t", np.float64(1)]]), "weights[0][1]", InexactInputError),
    (_rational([["t", float("nan")]]), "weights[0][1]", InexactInputError),
    (_rational([["t", None]]), "weights[0][1]", InputError),
    (_rational([["t", True]]), "weights[0][1]", InputError),
    (_rational([["t", Real.of(2).sqrt()]]), "weights[0][1]", PolicyError),
    (_rational([["t", sp.sqrt(t)]]), "weights[0][1]", PolicyError),
    (_rational([["t", sp.exp(t)]]), "weights[0][1]", PolicyError),
    (_rational([["t", t / (1 + t)]]), "weights[0][1]", PolicyError),
    (_rational([["t", "sqrt(t)"]]), "weights[0][1]", ParseError),
    (_rational([["t", "s"]]), "weights[0][1]", ParseError),
    (_rational([["t", {(1, 0): 1}]]), "weights[0][1]", PolicyError),
    (_rational([["t", {1: 1}]]), "weights[0][1]", PolicyError),
    (_rational([["t", {"t": 1}]]), "weights[0][1]", PolicyError),
    (_rational([["t", {(1.0,): 1}]]), "weights[0][1]", PolicyError),
    (_rational([["t", {(True,): 1}]]), "weights[0][1]", PolicyError),
    (_rational([["t", {(-1,): 1}]]), "weights[0][1]", PolicyError),
    (_rational([["t", {(10**12,): 1}]]), "weights[0][1]", LimitError),
    (_rational([["t", {(1,): 0.5}]]), "weights[0][1]", InexactInputError),
    (_rational([["t", {(1,): None}]]), "weights[0][1]", InputError),
    (_rational([["t", "1"]], inequalities="t > 0"), "inequalities", PolicyError),
    (_rational([["t", "1"]], inequalities=None), "inequalities", PolicyError),
    (_rational([["t", "1"]], inequalities=["t > 0", 1]), "inequalities[1]", PolicyError),
    (_rational([["t", "1"]], inequalities=["t >= 0"]), "inequalities[0]", ParseError),
    (_rational([["t", "1"]], parameters="t"), "parameters", PolicyError),
    (_rational([["t", "1"]], parameters=[1]), "parameters[0]", PolicyError),
    (_rational([["t", "1"]], parameters=[None]), "parameters[0]", PolicyError),
    (_rational([["t", "1"]], parameters=["t", "t"]), "parameters", ParseError),
    (_rational([["t", "1"]], parameters=["exp"]), "parameters", ParseError),
    (_rational([["t", "1"]], parameters=["t", sp.Symbol("a b")]), "parameters", ParseError),
    (_rational([["t", "1"]], parameters=None), "parameters", PolicyError),
    (_rational([["t", "1"]], parameters=2), "parameters", PolicyError),
    (_rational([["t", "1"]], size=2), "size", PolicyError),
    (_rational([["t", "1"]], size=1.0), "size", InexactInputError),
    (_rational([["t", "1"]], size=-1), "size", PolicyError),
    (_softmax([[[1, 0.5]]]), "features[0][0][1]", InexactInputError),
    (_softmax(np.eye(2).reshape(1, 2, 2)), "features[0][0][0]", InexactInputError),
    (_softmax(np.eye(2, dtype=int)), "features[0][0]", PolicyError),
    (_softmax([[[1, None]]]), "features[0][0][1]", InputError),
    (_softmax([[["1/2", "x"]]]), "features[0][0][1]", ParseError),
    (_softmax([[[1, 0], [1]]]), "features[0][1]", PolicyError),
    (_softmax([["10"]]), "features[0][0]", PolicyError),
    (_softmax([[1, 0]]), "features[0][0]", PolicyError),
    (_softmax([[]]), "features[0]", PolicyError),
    (_softmax([]), "features", PolicyError),
    (_softmax("abc"), "features", PolicyError),
    (_softmax({"q": [[1]]}), "features", PolicyError),
    (_softmax([[[1], [0]]], size=2), "features[0][0]", PolicyError),
    (_softmax([[[1], [0]]], parameters=["a", "b"]), "features[0][0]", PolicyError),
    (_softmax([[[1], [0]]], base=[[1]]), "base", PolicyError),
    (_softmax([[[1], [0]]], base=[1, 2]), "base[0]", PolicyError),
    (_softmax([[[1], [0]]], base=3), "base", PolicyError),
    (_softmax([[[1], [0]]], base=[[1, 0.5]]), "base[0][1]", InexactInputError),
    (_softmax([[[1], [0]]], base=[[1, 0]]), "base[0][1]", PolicyError),
    (_softmax([[[1], [0]]], base=[[1, "sqrt(2) - 3/2"]]), "base[0][1]", PolicyError),
    (lambda: Simplex.of(None), "lengths", PolicyError),  # type: ignore[arg-type]
    (lambda: Simplex.of(3), "lengths", PolicyError),  # type: ignore[arg-type]
    (lambda: Simplex.of([]), "lengths", PolicyError),
    (lambda: Simplex.of([2, 0]), "lengths[1]", PolicyError),
    (lambda: Simplex.of([2, True]), "lengths[1]", PolicyError),
    (lambda: Simplex.of([2, 2.0]), "lengths[1]", InexactInputError),  # type: ignore[list-item]
    (lambda: Simplex.of([10**12]), "lengths", LimitError),
    (lambda: Simplex.of([3], parameters=["a"]), "size", PolicyError),
    (_expressions([["exp(t)", 0.5]]), "weights[0][1]", InexactInputError),
    (_expressions([["exp(t)", None]]), "weights[0][1]", InputError),
    (_expressions([["exp(t)", Real.of(2).sqrt()]]), "weights[0][1]", PolicyError),
    (_expressions([["exp(t)", {(1,): 1}]]), "weights[0][1]", InputError),
    (_expressions([["exp(s)", "t"]]), "weights[0][0]", ParseError),
    (_expressions("t"), "weights", PolicyError),
    (_expressions([]), "weights", PolicyError),
    (_expressions([["t"]], parameters=None), "parameters", PolicyError),
    (_expressions([["t"]], inequalities=[{(1,): 1}]), "inequalities[0]", PolicyError),
    (lambda: _tokens(protocol=None), "protocol", PolicyError),
    (lambda: _tokens(prompts="q"), "prompts", PolicyError),
    (lambda: _tokens(prompts=[]), "prompts", PolicyError),
    (lambda: _tokens(prompts=[1]), "prompts[0]", PolicyError),
    (lambda: _tokens(prompts=["q"] * 400_000), "prompts", LimitError),
    (lambda: _tokens(tables=None), "logits", PolicyError),
    (lambda: _tokens(tables=[["t"]]), "logits", PolicyError),
    (lambda: _tokens(tables={}), "logits", PolicyError),
    (lambda: _tokens(tables={1: {}}), "logits", PolicyError),
    (lambda: _tokens(tables={"q": "t"}), "logits['q']", PolicyError),
    (lambda: _tokens(tables={"q": {"x": "t"}}), "logits['q']", PolicyError),
    (lambda: _tokens(tables={"q": {"x": "t", ".": 0, None: 0}}), "logits['q']", PolicyError),
    (lambda: _tokens(tables={"q": {"x": "t", ".": 0.5}}), "logits['q']['.']", InexactInputError),
    (lambda: _tokens(tables={"q": {"x": "t^2", ".": 0}}), "logits['q']['x']", PolicyError),
    (lambda: _tokens(tables={"q": {"x": None, ".": 0}}, conditional="rational"), "weights['q']['x']", InputError),
    (lambda: _tokens(conditional="hard"), "conditional", PolicyError),
    (lambda: _tokens(conditional=None), "conditional", PolicyError),
    (lambda: _tokens(parameters=None), "parameters", PolicyError),
]


@pytest.mark.parametrize(("build", "place", "error"), BAD, ids=[f"{i}-{row[1]}" for i, row in enumerate(BAD)])
def test_a_bad_family_is_refused_with_its_place(build: Callable[[], PolicyFamily], place: str, error: type[InputError]) -> None:
    with pytest.raises(error) as caught:
        build()
    assert caught.value.place == place
    line = str(caught.value)
    assert line.startswith(place + ": ")
    assert "\n" not in line
    assert len(line) < 300
