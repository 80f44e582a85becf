"""Claims, searches and verdicts, on claims made for the purpose."""

from __future__ import annotations

import time
from fractions import Fraction as F
from typing import Any

import pytest
from hypothesis import strategies as st

from exactgrpo.claims.claim import Claim, Sides, shown
from exactgrpo.claims.registry import bundled
from exactgrpo.claims.symbolic import is_identity, value_of
from exactgrpo.claims.verdict import falsify, necessary, verdict_on, verify
from exactgrpo.errors import ClaimError, InexactInputError, UndecidedError
from exactgrpo.numbers.real import Real

NUMBERS = st.fractions(min_value=-8, max_value=8, max_denominator=8)


def claim(left: Any, right: Any, relation: Any = "==", **fields: Any) -> Claim:
    given = {"id": "c", "statement": "a claim", "variables": {"x": NUMBERS, "y": NUMBERS}, **fields}
    return Claim(**given, left=left, right=right, relation=relation)


# ---- verdicts


def test_a_true_claim_without_a_proof_holds_on_instances_and_no_more() -> None:
    verdict = verify(claim(lambda x, y: (x + y) ** 2, lambda x, y: x * x + 2 * x * y + y * y), instances=50)
    assert (verdict.kind, verdict.is_expected) == ("holds", True)
    assert verdict.instances >= 40


def test_a_false_claim_is_refuted_by_a_smallest_instance() -> None:
    verdict = verify(claim(lambda x, y: (x + y) ** 2, lambda x, y: x * x + y * y))
    assert verdict.kind == "refuted"
    assert verdict.counterexample is not None
    assert verdict.counterexample.instance == {"x": 1, "y": 1}
    assert verdict.counterexample.sides == Sides(False, Real.of(4), Real.of(2))
    assert not verdict.is_expected


def test_an_off_by_one_in_a_true_claim_is_refuted() -> None:
    def total(n: int) -> int:
        return sum(range(n + 1))

    numbers = {"n": st.integers(0, 50)}
    assert verify(Claim("sum", "0 + ... + n = n (n + 1)/2", numbers, left=total, right=lambda n: F(n * (n + 1), 2))).kind == "holds"
    wrong = verify(Claim("sum", "off by one", numbers, left=total, right=lambda n: F(n * (n - 1), 2)))
    assert wrong.counterexample is not None
    assert wrong.counterexample.instance == {"n": 1}


def test_contradictory_hypotheses_are_vacuous_and_never_hold() -> None:
    verdict = verify(claim(0, 0, hypotheses={"above": lambda x: x > 1, "below": lambda x: x < 0}))
    assert (verdict.kind, verdict.instances, verdict.is_expected) == ("vacuous", 0, False)


def test_all_cases_of_finite_variables_are_a_proof() -> None:
    bits = {"a": (0, 1), "b": (0, 1)}
    proved = verify(Claim("and", "a b = min(a, b)", bits, left=lambda a, b: a * b, right=lambda a, b: min(a, b)))
    assert (proved.kind, proved.by, proved.instances) == ("proved", "all 4 cases", 4)
    refuted = verify(Claim("or", "a + b = max(a, b)", bits, left=lambda a, b: a + b, right=lambda a, b: max(a, b)))
    assert refuted.counterexample is not None
    assert refuted.counterexample.instance == {"a": 1, "b": 1}


def test_rational_functions_are_proved_by_their_normal_form() -> None:
    from sympy import symbols

    x, y = symbols("x y")
    proved = verify(claim((x**3 - y**3) / (x - y), x**2 + x * y + y**2, hypotheses={"x is not y": lambda x, y: x != y}))
    assert (proved.kind, proved.by) == ("proved", "one normal form of both sides, wherever both are defined")
    assert verify(claim(x**2 - y**2, (x - y) ** 2)).kind == "refuted"


def test_a_normal_form_is_no_proof_of_an_inequality_or_outside_rational_functions() -> None:
    from sympy import exp, symbols

    x, y = symbols("x y")
    assert verify(claim(x**2 + 1, x, ">="), instances=20).kind == "holds"
    assert verify(claim(exp(x) * exp(y), exp(x + y)), instances=10).kind == "holds"
    assert not is_identity(exp(x), exp(x))
    assert not is_identity((x + y) ** 300, (x + y) ** 300)  # beyond the budget: nothing is said


def test_a_theorem_is_a_proof_for_bundled_claims_only() -> None:
    cited = verify(claim(lambda x: x * x, 0, ">=", theorem="square (Squares.v)"), instances=20)
    assert (cited.kind, cited.by) == ("holds", "20 instances; its author cites square (Squares.v)")
    proved = next(c for c in bundled().values() if c.theorem is not None and c.expected)
    assert verify(proved, instances=20).by == f"theorem {proved.theorem}"
    assert verify(claim(lambda x: x * x, 0, ">", theorem="square (Squares.v)")).kind == "refuted"


def test_what_cannot_be_decided_is_undecided() -> None:
    def open_question(x: Any) -> bool:
        raise UndecidedError("is it?", "[-1, 1]", "unknown", False)

    verdict = verify(Claim("open", "open", {"x": NUMBERS}, conclusion=open_question), instances=20)
    assert (verdict.kind, verdict.is_expected) == ("undecided", False)


def test_a_false_claim_is_as_expected_when_it_is_refuted() -> None:
    assert verify(claim(lambda x: x, 0, expected=False)).is_expected
    assert not verify(claim(lambda x: 0 * x, 0, expected=False)).is_expected


@pytest.mark.parametrize(("value", "kind"), [(3, "holds"), (1, "refuted"), (-1, "vacuous")])
def test_a_claim_at_a_given_instance(value: int, kind: str) -> None:
    asked = Claim("c", "x > 1", {"x": NUMBERS}, left=lambda x: x, right=1, relation=">", hypotheses={"positive": lambda x: x > 0})
    assert verdict_on(asked, {"x": value}).kind == kind


def test_vectors_are_compared_entry_by_entry() -> None:
    pair = {"x": (1, 2), "y": (1, 2)}
    assert verify(Claim("v", "v", pair, left=lambda x, y: [x, y], right=lambda x, y: (x, y))).kind == "proved"
    with pytest.raises(ClaimError, match="sides of one shape"):
        verify(Claim("v", "v", pair, left=lambda x, y: [x, y], right=lambda x, y: [x, y, 0]))
    with pytest.raises(ClaimError, match="truth values"):
        verify(Claim("v", "v", pair, left=lambda x, y: x == y, right=1))
    assert verify(Claim("v", "v", pair, left=lambda x, y: [x, y], right=lambda x, y: [y, x], relation="!=")).kind == "refuted"


# ---- searches


def test_the_same_seed_gives_the_same_search() -> None:
    asked = claim(lambda x, y: x * y, lambda x, y: x + y, "<=")
    first, second = (falsify(asked, seed=3) for _ in range(2))
    assert first.counterexample == second.counterexample
    assert (first.tried, first.satisfied) == (second.tried, second.satisfied)


def test_a_search_ends_in_time() -> None:
    def slow(x: Any) -> bool:
        time.sleep(0.01)
        return True

    start = time.monotonic()
    result = falsify(Claim("slow", "slow", {"x": NUMBERS}, conclusion=slow), seconds=0.3)
    assert time.monotonic() - start < 3
    assert (result.ended, result.counterexample) == ("out of time", None)


def test_an_interrupt_keeps_the_best_counterexample_so_far() -> None:
    count = 0

    def conclusion(x: Any) -> bool:
        nonlocal count
        count += x > 2
        if count > 3:
            raise KeyboardInterrupt
        return bool(x <= 2)

    result = falsify(Claim("c", "x <= 2", {"x": NUMBERS}, conclusion=conclusion))
    assert result.ended == "interrupted"
    assert result.counterexample is not None
    assert result.counterexample.instance["x"] > 2


def test_each_better_counterexample_is_reported_and_they_get_smaller() -> None:
    seen: list[Any] = []
    falsify(claim(lambda x: x, 2, "<="), found=lambda found: seen.append(found.instance["x"]))
    assert seen[-1] == 3
    assert len(seen) > 1


def test_dropped_hypotheses_are_dropped_and_unknown_ones_refused() -> None:
    asked = claim(lambda x: x * x, 0, ">", hypotheses={"x is not zero": lambda x: x != 0})
    assert falsify(asked, instances=100).counterexample is None
    dropped = falsify(asked, drop=["x is not zero"]).counterexample
    assert dropped is not None
    assert dropped.instance["x"] == 0
    with pytest.raises(ClaimError, match="a hypothesis of the claim: x is not zero"):
        falsify(asked, drop=["x is zero"])


def test_necessary_tells_needed_hypotheses_from_others() -> None:
    asked = claim(lambda x: x * x, 0, ">", hypotheses={"x is not zero": lambda x: x != 0, "y is small": lambda y: y < 9})
    needed = {name: result.counterexample is not None for name, result in necessary(asked, seconds=1).items()}
    assert needed == {"x is not zero": True, "y is small": False}


def test_a_search_leaves_nothing_behind(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    falsify(claim(lambda x: x, 2, "<="))
    assert list(tmp_path.iterdir()) == []


# ---- bad claims


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"left": lambda z: z, "right": 0}, "left: 'z': a variable of the claim: x"),
        ({"left": 0, "right": 0, "hypotheses": {"h": lambda w: True}}, "hypothesis 'h': 'w': a variable of the claim"),
        ({"left": 0, "right": 0, "relation": "="}, "relation: '=': one of"),
        ({"left": 0, "right": 0, "conclusion": lambda x: True}, "a conclusion, or a left and a right side"),
        ({}, "a conclusion, or a left and a right side"),
        ({"left": 0, "right": 0, "variables": {}}, "at least one variable"),
    ],
)
def test_claims_that_are_not_well_formed_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ClaimError, match=message.replace("(", r"\(")):
        Claim(**{"id": "bad", "statement": "bad", "variables": {"x": NUMBERS}, **fields})


def test_a_symbol_that_is_no_variable_is_refused() -> None:
    from sympy import symbols

    with pytest.raises(ClaimError, match="left: 'q': a variable of the claim: x, y"):
        claim(symbols("q"), 0)


def test_a_side_that_raises_is_named_with_the_instance() -> None:
    with pytest.raises(ClaimError, match=r"left: .*ZeroDivisionError.*: raised at x = 0, y = 0"):
        verify(claim(lambda x: 1 / x, 0, "!="))


def test_floats_from_strategies_or_sides_are_refused() -> None:
    with pytest.raises(InexactInputError, match="strategies yield exact numbers"):
        verify(Claim("c", "c", {"x": st.floats(0, 1)}, left=lambda x: x, right=0, relation=">="))
    with pytest.raises(InexactInputError, match=r"left: 0\.5"):
        verify(claim(0.5, 0))


def test_a_predicate_that_is_not_true_or_false_is_refused() -> None:
    with pytest.raises(ClaimError, match="returns True or False"):
        verify(Claim("c", "c", {"x": NUMBERS}, conclusion=lambda x: 1))  # type: ignore[arg-type,return-value]


def test_an_impossible_strategy_is_an_error_of_the_claim() -> None:
    with pytest.raises(ClaimError, match="strategies that Hypothesis accepts"):
        verify(Claim("c", "c", {"x": st.integers(5, 1)}, left=lambda x: x, right=0))


def test_values_are_shown_exactly() -> None:
    assert shown({"a": [F(1, 3), (1, True)], "b": Real.of("sqrt(2)/2")}) == "a = [1/3, (1, True)], b = sqrt(2)/2"


def test_sides_may_be_formulas_over_the_array_arithmetic() -> None:
    from exactgrpo import Column, Rows

    def softmax_by_arithmetic(arithmetic: Any, x: Any, y: Any) -> Any:
        rows = Rows([2])
        weight = arithmetic.exp(arithmetic.shift(arithmetic.exact(Column([x, y])), rows))
        return weight * (1 / arithmetic.sums(weight, rows))[rows.owner]

    def softmax(x: Any, y: Any) -> list[Real]:
        weights = [Real.of(x).exp(), Real.of(y).exp()]
        return [w / (weights[0] + weights[1]) for w in weights]

    assert verify(claim(softmax_by_arithmetic, softmax), instances=20).kind == "holds"
    assert verify(claim(softmax_by_arithmetic, lambda x, y: softmax(y, x)), instances=50).kind == "refuted"


def test_sympy_sides_have_exact_values() -> None:
    from sympy import Rational, exp, log, sqrt, symbols

    x = symbols("x")
    assert value_of(sqrt(x) * exp(log(x)) / 3 - Rational(1, 2), {"x": F(4)}) == F(8, 3) - F(1, 2)
