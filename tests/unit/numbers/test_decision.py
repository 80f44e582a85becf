"""Hand-worked signs, and the routes to them."""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import Any

import pytest
from flint import arb, ctx

from exactgrpo.errors import DomainError, InexactInputError, UndecidedError
from exactgrpo.numbers import expression as ex
from exactgrpo.numbers.coprime import CoprimeBase
from exactgrpo.numbers.decision import Proof, decide_sign, number_class, prove_zero
from exactgrpo.numbers.expression import Expression, enclose, leaf
from exactgrpo.numbers.normal_form import judge, normal_form
from exactgrpo.numbers.precision import precision
from exactgrpo.numbers.residue import residue_is_zero
from exactgrpo.numbers.rounding import bounds
from exactgrpo.numbers.separation import separation_bits, sign_by_separation


def sqrt(q: object) -> Expression:
    return Expression.of(q).sqrt()


def log(q: object) -> Expression:
    return Expression.of(q).log()


def exp(q: object) -> Expression:
    return Expression.of(q).exp()


def cbrt(q: object) -> Expression:
    return Expression.of(q).root(3)


P, Q, R = 2**89 - 1, 2**107 - 1, 2**127 - 1  # primes too large to be found by trial division

ZEROS = {
    "product of roots": lambda: sqrt(2) * sqrt(3) - sqrt(6),
    "roots of big composites": lambda: sqrt(P * Q) * sqrt(Q * R) - Q * sqrt(P * R),
    "denesting": lambda: sqrt(5 + 2 * sqrt(6)) - sqrt(2) - sqrt(3),
    "three roots denested": lambda: sqrt(10 + 2 * sqrt(6) + 2 * sqrt(10) + 2 * sqrt(15)) - sqrt(2) - sqrt(3) - sqrt(5),
    "nested conjugates": lambda: sqrt(2 + sqrt(2)) * sqrt(2 - sqrt(2)) - sqrt(2),
    "cube root in its field": lambda: cbrt(7 + 5 * sqrt(2)) - 1 - sqrt(2),
    "Ramanujan": lambda: cbrt(cbrt(2) - 1) - cbrt(Fraction(1, 9)) + cbrt(Fraction(2, 9)) - cbrt(Fraction(4, 9)),
    "golden ratio": lambda: cbrt(2 + sqrt(5)) - (1 + sqrt(5)) / 2,
    "logarithm of a product": lambda: log(6) - log(2) - log(3),
    "logarithms of big composites": lambda: log(P * Q) + log(R) - log(Q * R) - log(P),
    "logarithm of a unit": lambda: log(3 + 2 * sqrt(2)) - 2 * log(1 + sqrt(2)),
    "logarithms that share a prime": lambda: log(2 + sqrt(2)) - log(2) / 2 - log(1 + sqrt(2)),
    "logarithm of a root": lambda: log(cbrt(5)) - log(5) / 3,
    "quotient of logarithms": lambda: log(4) / log(2) - 2,
    "exponents add": lambda: exp(Fraction(1, 2)) * exp(Fraction(1, 3)) - exp(Fraction(5, 6)),
    "algebraic exponents": lambda: exp(1 / (1 + sqrt(2))) * exp(1) - exp(sqrt(2)),
    "hidden relation of exponents": lambda: exp(sqrt(2 + sqrt(2)) * sqrt(2 - sqrt(2))) - exp(sqrt(2)),
    "exp of logarithms": lambda: exp(2 * log(3) + 1) - 9 * exp(1),
    "softmax of two": lambda: exp(1) / (exp(1) + exp(2)) - 1 / (1 + exp(1)),
    "nested logarithms": lambda: log(log(5) ** 2) - 2 * log(log(5)),
    "factors over an extension": lambda: log(exp(1) ** 2 - 2) - log(exp(1) - sqrt(2)) - log(exp(1) + sqrt(2)),
    "rational functions as exponents": lambda: exp(2 / (log(5) ** 2 - 1)) * exp(1 / (log(5) + 1)) - exp(1 / (log(5) - 1)),
    "square of a sum": lambda: sqrt((exp(1) + sqrt(log(3))) ** 2) - exp(1) - sqrt(log(3)),
    "exponents with a denominator in many roots": lambda: exp(1 / (sqrt(P * 30030) + sqrt(Q * 7007)))
    - exp((sqrt(P * 30030) - sqrt(Q * 7007)) / (P * 30030 - Q * 7007)),
    "exponents with cubic denominators": lambda: exp(1 / (cbrt(2) + cbrt(3))) ** 5
    - exp((cbrt(4) - cbrt(6) + cbrt(9)) / 5) ** 5,
    "exponents with nested denominators": lambda: exp(2 / (sqrt(2 + sqrt(3)) + cbrt(5)))
    - exp(2 * (sqrt(2 + sqrt(3)) - cbrt(5)) / (2 + sqrt(3) - cbrt(25))),
    "square root in a huge exponential": lambda: sqrt((exp(10**18) + sqrt(10)) ** 2) - exp(10**18) - sqrt(10),
    "cyclotomic factors": lambda: log((1 + exp(38)) ** 4) - 4 * log(1 + exp(38)),
    "square of a difference": lambda: sqrt((sqrt(log(3)) - exp(1)) ** 2) - exp(1) + sqrt(log(3)),
    "square of a difference, the other way round": lambda: sqrt((exp(1) - sqrt(log(3))) ** 2) - exp(1) + sqrt(log(3)),
    "root of a big perfect power": lambda: Expression.of(P**2 * Q**2).root(4) ** 2 * exp(1) - P * Q * exp(1),
    "huge exponents": lambda: log(1 + exp(log(1 + exp(-(10**18))) + 13)) - log(1 + (1 + exp(-(10**18))) * exp(13)),
}


@pytest.mark.parametrize("name", ZEROS)
def test_identity_is_proved_and_its_near_misses_are_separated(name: str) -> None:
    zero = ZEROS[name]()
    assert decide_sign(zero).value == 0
    for digits in (1, 30, 1000):
        assert decide_sign(zero + Fraction(1, 10**digits)).value == 1
        assert decide_sign(zero - Fraction(1, 10**digits)).value == -1


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (lambda: sqrt(2) + sqrt(3), "multiquadratic"),
        (lambda: cbrt(2), "real algebraic"),
        (lambda: sqrt(2) * log(3) + log(1 + sqrt(2)), "linear forms in logarithms (Baker)"),
        (lambda: exp(sqrt(2)) + 3 * exp(1) ** 2, "exponential polynomial (Lindemann-Weierstrass)"),
        (lambda: log(2) * exp(1) + log(3), "conditional (Schanuel)"),
        (lambda: log(2) * (log(3) - 1), "product of linear forms in logarithms (Baker)"),
        (lambda: log(4) / log(2), "rational"),
    ],
)
def test_class_of_numbers(number: Any, expected: str) -> None:
    assert number_class(number()) == expected


def test_normal_form_and_separation_bound_agree_on_algebraic_numbers() -> None:
    roots = [sqrt(2), sqrt(3), sqrt(6), cbrt(2), sqrt(2 + sqrt(3)), sqrt(8), cbrt(16), sqrt(Fraction(3, 2)), sqrt(Fraction(1, 2))]
    zeros = 0
    for a in roots:
        for b in roots:
            for x in (
                (a + b) * (a - b) - a * a + b * b,
                a * a - b * (a * (a / b)),
                (a * b).sqrt() * a.sqrt() - a * b.sqrt(),
                a * b - 2,
                a + b - 2 * a,
            ):
                by_form = judge(normal_form(x)).is_zero
                decided = sign_by_separation(x)
                assert decided is not None
                assert by_form == (decided[0] == 0)
                zeros += by_form
    assert zeros >= 3 * 81


def test_separation_bound_holds_for_a_number_that_comes_close() -> None:
    # (sqrt 2 - 1)^k is an algebraic integer of degree 2 whose conjugate is (-sqrt 2 - 1)^k.
    for k in (5, 20, 60):
        x = (sqrt(2) - 1) ** k
        limit = separation_bits(x)
        assert limit is not None
        assert enclose(x, 200) >= Fraction(1, 2**limit).numerator / ex.arb(2) ** limit


def test_zero_that_does_not_exist_is_never_proved() -> None:
    nothing = ex.sub(ex.mul(ex.root(ex.rational(2), 2), ex.root(ex.rational(3), 2)), ex.root(ex.rational(6), 2))
    x = ex.sub(ex.div(ex.ONE, nothing), ex.mul(ex.rational(2), ex.div(ex.rational(Fraction(1, 2)), nothing)))
    assert prove_zero(x) is None
    with pytest.raises(UndecidedError):
        decide_sign(x, max_bits=1024)


def test_identity_between_logarithms_of_negative_numbers_is_not_a_proof() -> None:
    root2 = ex.root(ex.rational(2), 2)
    x = ex.sub(ex.log(ex.add(root2, ex.rational(-3))), ex.log(ex.div(ex.rational(-7), ex.add(root2, ex.rational(3)))))
    assert judge(normal_form(x)).is_zero  # it holds for the logarithms of absolute values
    assert prove_zero(x) is None
    with pytest.raises(UndecidedError):
        decide_sign(x, max_bits=1024)


def test_cancellation_spares_precision_that_nobody_has() -> None:
    # The offset is about 10^-(10^15): only the normal form, in which everything else cancels, shows its sign.
    x = 28 + sqrt(21)
    tiny = exp(-sqrt(6 * 10**30 + 1))
    assert decide_sign((x**3).root(4) - exp(x.log() * Fraction(3, 4)) - tiny).value == -1
    assert decide_sign(exp(sqrt(2) + 1) - exp(sqrt(2)) * exp(1) + tiny).value == 1


def test_relation_that_almost_holds_is_not_used() -> None:
    tiny = Fraction(1, 10**80)  # below the resolution of the search for relations
    x = log(1 + 2 * sqrt(log(3)) + log(3) + tiny) - 2 * log(1 + sqrt(log(3)))
    assert decide_sign(x).value == 1
    number = Expression.of(5).root(7) + cbrt(3) + sqrt(2)
    y = exp(1 / number) - exp(1 / (number + tiny))
    assert decide_sign(y).value == 1


class Infinite:
    """A leaf without a finite enclosure."""

    def enclose(self, key: int, bits: int) -> Any:
        return arb.neg_inf()

    def expand(self, key: int) -> Expression:
        raise NotImplementedError

    def level(self, key: int) -> tuple[int]:
        return (key,)


def test_infinite_leaf_leaves_nothing_finite() -> None:
    source = Infinite()
    x = leaf(source, 0)
    for node in (ex.exp(x), ex.div(ex.ONE, x), ex.add(x, ex.ONE), ex.power(x, 2)):
        assert not enclose(node, 64).is_finite()


def test_product_with_a_number_that_does_not_exist_has_no_finite_enclosure() -> None:
    nothing = ex.sub(ex.mul(ex.root(ex.rational(2), 2), ex.root(ex.rational(3), 2)), ex.root(ex.rational(6), 2))
    exact_zero = ex.sub(ex.div(ex.rational(1), ex.exp(ex.rational(1))), ex.ONE)
    assert not enclose(ex.mul(exact_zero, ex.div(ex.ONE, nothing)), 128).is_finite()
    assert not enclose(ex.exp(ex.div(ex.MINUS_ONE, nothing)), 128).is_finite()


def test_conditional_near_miss_is_undecided_below_its_size_and_says_so() -> None:
    zero = exp(log(2) * log(3)) - exp(log(3) * log(2))
    x = zero + exp(log(2) * log(5)) * Fraction(1, 10**400)
    assert decide_sign(x).value == 1
    number = sqrt(1 + exp(log(2) * log(3))) * exp(1)
    y = number - Fraction(floor(bounds(enclose(number, 4000))[0] * 2**3000), 2**3000)
    with pytest.raises(UndecidedError) as caught:
        decide_sign(y, max_bits=512, question="is y positive?")
    assert caught.value.question == "is y positive?"
    assert caught.value.formally_nonzero
    assert caught.value.number_class == "conditional (Schanuel)"
    assert decide_sign(y).value == 1


def test_checked_operators_refuse_what_does_not_exist() -> None:
    zero = sqrt(8) - 2 * sqrt(2)
    with pytest.raises(DomainError):
        1 / zero
    with pytest.raises(DomainError):
        (zero - 1).sqrt()
    with pytest.raises(DomainError):
        zero.log()
    with pytest.raises(DomainError):
        zero ** -1
    assert zero.sqrt() is ex.ZERO
    assert decide_sign(zero.exp() - 1).value == 0
    for bad in (0.5, True, "1"):
        with pytest.raises(InexactInputError):
            sqrt(2) + bad


def test_nodes_are_shared_and_forgotten() -> None:
    before = len(ex._TABLE)
    x = sqrt(2)
    for n in range(10_000):
        x = x + sqrt(n + 2)
    assert enclose(x, 64).is_finite()
    assert len(ex._TABLE) > before + 5000
    del x
    assert len(ex._TABLE) < before + 100


def test_precision_is_restored_after_an_error() -> None:
    before = ctx.prec
    with pytest.raises(ZeroDivisionError), precision(777):
        raise ZeroDivisionError
    assert ctx.prec == before


def test_base_does_not_hide_a_common_factor() -> None:
    base = CoprimeBase()
    base.insert(P * Q)
    base.insert(Q**2 * R)
    assert base.split(P**2 * Q * 9) == [(3, 2), (P, 2), (Q, 1)]


def test_residue_never_vanishes_where_the_number_does_not() -> None:
    assert residue_is_zero(sqrt(2) * sqrt(3) - sqrt(6)) is True
    assert residue_is_zero(log(12) - 2 * log(2) - log(3)) is True
    assert residue_is_zero(exp(Fraction(1, 2)) ** 2 - exp(1)) is True
    assert residue_is_zero(sqrt(2) * sqrt(3) - sqrt(7)) is False


class Leaves:
    """theta_0 = sqrt 2, theta_1 = theta_0^2 + log theta_0."""

    def __init__(self) -> None:
        self.expanded: list[int] = []

    def enclose(self, key: int, bits: int) -> Any:
        return enclose(self._definition(key), bits)

    def expand(self, key: int) -> Expression:
        self.expanded.append(key)
        return self._definition(key)

    def level(self, key: int) -> tuple[int]:
        return (key,)

    def _definition(self, key: int) -> Expression:
        if key == 0:
            return sqrt(2)
        theta = leaf(self, 0)
        return ex.add(ex.power(theta, 2), ex.log(theta))


def test_identity_over_an_opaque_leaf_needs_no_expansion() -> None:
    source = Leaves()
    theta = leaf(source, 1)
    x = ex.sub(ex.power(ex.add(theta, ex.ONE), 2), ex.add(ex.power(theta, 2), ex.add(ex.mul(ex.rational(2), theta), ex.ONE)))
    sign = decide_sign(x)
    assert sign.value == 0
    assert sign.proof == Proof("identity", None, "normal form zero over 1 opaque leaves")
    assert source.expanded == []


def test_leaves_are_expanded_level_by_level_until_an_identity_appears() -> None:
    source = Leaves()
    theta = leaf(source, 1)
    x = ex.sub(ex.sub(theta, ex.rational(2)), ex.div(ex.log(ex.rational(2)), ex.rational(2)))
    assert decide_sign(x).value == 0
    assert source.expanded[:2] == [1, 0]
    assert decide_sign(ex.add(x, ex.rational(Fraction(1, 10**500)))).value == 1
