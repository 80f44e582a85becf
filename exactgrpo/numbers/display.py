"""Short exact text of a number, from its normal form: `7/5`, `sqrt(7)/20 + 1/2*log(4/3)`, `-exp(800)`."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from flint import fmpq

from exactgrpo.numbers import expression as ex
from exactgrpo.numbers.decision import full_expansion
from exactgrpo.numbers.expression import Expression, cone
from exactgrpo.numbers.normal_form import normal_form
from exactgrpo.numbers.plan import NoNormalForm
from exactgrpo.numbers.polynomials import Polynomial
from exactgrpo.numbers.tower import Element, Generator, Tower

_MAX_NODES = 200
_MAX_TERMS = 12
_MAX_BITS = 400
_WORK = 20_000


class _TooLong(Exception):
    """The text would not be short."""


def exact_text(x: Expression, *, limit: int = 80, latex: bool = False) -> str | None:
    """Canonical text of x, readable by an ordinary grammar; None if it is longer than `limit` or x is too large to look at.

    >>> exact_text(Expression.of(7).sqrt() / 20 + Expression.of(4).log() / 2 - Expression.of(3).log() / 2)
    'sqrt(7)/20 + 1/2*log(4/3)'
    >>> exact_text(Expression.of(3).sqrt() / 2, latex=True)
    '\\\\frac{\\\\sqrt{3}}{2}'
    """
    if x.kind == ex.RATIONAL:
        if x.payload.height_bits() > 8 * limit:
            return None
        return _short(_Writer(latex).rational(x.payload), limit)
    expanded = full_expansion(x, _MAX_NODES)
    if expanded is None or any(_is_heavy(node) for node in cone(expanded)):
        return None
    try:
        form = normal_form(expanded, work=_WORK, relation_bits=128)
        return _short(_Text(form.tower, _Writer(latex)).element(form.element), limit)
    except (NoNormalForm, _TooLong):
        return None


def rational_value(x: Expression) -> Fraction | None:
    """x as a Fraction if its normal form is a rational number; None if it is not, or is too large to look at."""
    if x.kind != ex.RATIONAL:
        expanded = full_expansion(x, 10 * _MAX_NODES)
        if expanded is None:
            return None
        try:
            numerator, denominator = normal_form(expanded, work=10 * _WORK).element
        except NoNormalForm:
            return None
        if not (numerator.is_constant() and denominator.is_constant()):
            return None
        q = numerator.leading_coefficient() / denominator.leading_coefficient() if not numerator.is_zero() else fmpq(0)
    else:
        q = x.payload
    return Fraction(int(q.p), int(q.q))


def _is_heavy(node: Expression) -> bool:
    if node.kind == ex.RATIONAL:
        return bool(node.payload.height_bits() > _MAX_BITS)
    return node.kind in (ex.POWER, ex.ROOT) and node.payload > 1000


def _short(text: str, limit: int) -> str | None:
    return text if len(text) <= limit else None


class _Writer:
    """Plain text or LaTeX."""

    def __init__(self, latex: bool) -> None:
        self.latex = latex
        self.times = " \\cdot " if latex else "*"

    def rational(self, q: Any) -> str:
        if q.q == 1:
            return str(q.p)
        if not self.latex:
            return f"{q.p}/{q.q}"
        return f"{'-' if q < 0 else ''}\\frac{{{abs(q.p)}}}{{{q.q}}}"

    def call(self, name: str, argument: str) -> str:
        if not self.latex:
            return f"{name}({argument})"
        if name == "exp":
            return f"e^{{{argument}}}"
        return f"\\sqrt{{{argument}}}" if name == "sqrt" else f"\\log\\left({argument}\\right)"

    def power(self, base: str, exponent: Fraction) -> str:
        if exponent == 1:
            return base
        shown = str(exponent)
        if self.latex:
            return f"{base}^{{{shown}}}"
        return f"{base}^{shown}" if exponent.denominator == 1 else f"{base}^({shown})"

    def product(self, c: Any, pieces: list[str], over: bool) -> str:
        """The product of a positive rational and the pieces; with `over`, the denominator goes below the pieces."""
        if self.latex:
            above = self.times.join([str(c.p)] * (c.p != 1) + pieces) or "1"
            return above if c.q == 1 else f"\\frac{{{above}}}{{{c.q}}}"
        if over:
            return self.times.join([str(c.p)] * (c.p != 1) + pieces) + (f"/{c.q}" if c.q != 1 else "")
        return self.times.join([self.rational(c)] * (c != 1) + pieces)

    def parentheses(self, text: str) -> str:
        return f"\\left({text}\\right)" if self.latex else f"({text})"

    def quotient(self, above: str, below: str) -> str:
        return f"\\frac{{{above}}}{{{below}}}" if self.latex else f"({above})/({below})"


class _Text:
    """Text of the elements of one tower."""

    def __init__(self, tower: Tower, writer: _Writer) -> None:
        self.tower, self.writer = tower, writer

    def element(self, x: Element) -> str:
        numerator, denominator = x
        if denominator.is_one():
            return self.polynomial(numerator, {})
        if len(denominator) == 1 and all(g.kind == "exp" for g in self.tower.used(denominator)):
            ((monomial, _),) = denominator.terms()
            return self.polynomial(numerator, {i: int(e) for i, e in enumerate(monomial) if e})
        return self.writer.quotient(self.polynomial(numerator, {}), self.polynomial(denominator, {}))

    def polynomial(self, p: Polynomial, divided: dict[int, int]) -> str:
        """The sum of the terms of p, each divided by a monomial in exponentials."""
        if len(p) > _MAX_TERMS:
            raise _TooLong
        logs: dict[int, Any] = {}
        terms: list[tuple[int, str, bool]] = []
        for monomial, c in p.terms():
            exponents = {i: int(e) for i, e in enumerate(monomial) if e}
            for i, e in divided.items():
                exponents[i] = exponents.get(i, 0) - e
            used = [(self.tower.generators[i], e) for i, e in exponents.items() if e]
            if len(used) == 1 and used[0][0].kind == "log" and used[0][1] == 1 and used[0][0].meaning.is_constant():
                logs[int(used[0][0].meaning.leading_coefficient().p)] = c
            else:
                terms.append(self.term(used, c))
        terms.extend(self.logarithms(logs))
        if not terms:
            return "0"
        terms.sort(key=lambda term: term[:2])
        text = ""
        for _, body, negative in terms:
            if text:
                text += f" - {body}" if negative else f" + {body}"
            else:
                text = f"-{body}" if negative else body
        return text

    def logarithms(self, logs: dict[int, Any]) -> list[tuple[int, str, bool]]:
        """A rational combination of logarithms as one logarithm of a short rational, or term by term."""
        if not logs:
            return []
        values = [Fraction(int(c.p), int(c.q)) for c in logs.values()]
        common = _gcd(values)
        exponents = {b: int(Fraction(int(c.p), int(c.q)) / common) for b, c in logs.items()}
        if sum(abs(e) * b.bit_length() for b, e in exponents.items()) <= 64:
            argument = Fraction(1)
            for b, e in exponents.items():
                argument *= Fraction(b) ** e
            negative = argument < 1 and argument.numerator == 1
            if negative:
                argument = 1 / argument
            shown = self.writer.rational(fmpq(argument.numerator, argument.denominator))
            return [(3, self.writer.product(fmpq(common.numerator, common.denominator), [self.writer.call("log", shown)], False), negative)]
        return [
            (3, self.writer.product(abs(c), [self.writer.call("log", str(b))], False), bool(c < 0)) for b, c in sorted(logs.items())
        ]

    def term(self, used: list[tuple[Generator, int]], c: Any) -> tuple[int, str, bool]:
        """(rank, text of the absolute value, whether negative)."""
        surd, pieces, rank = 1, [], 0
        exponent: Element = self.tower.zero, self.tower.one
        for g, e in used:
            rank = max(rank, {"root": 1, "radical": 2, "log": 4, "exp": 5}.get(g.kind, 6))
            if g.kind == "root" and 2 * e == g.degree:
                surd *= int(g.radicand.leading_coefficient().p)
            elif g.kind == "root":
                pieces.append(self.writer.power(str(g.radicand.leading_coefficient()), Fraction(e, g.degree)))
            elif g.kind == "radical":
                pieces.append(self.radical(g, e))
            elif g.kind == "log":
                pieces.append(self.writer.power(self.writer.call("log", self.polynomial(g.meaning, {})), Fraction(e)))
            elif g.kind == "exp":
                part, denominator, _ = g.meaning
                exponent = self.tower.add(exponent, self.tower.scale(part, fmpq(e, denominator)))
            else:
                raise _TooLong
        pieces.sort()
        if surd > 1:
            pieces.insert(0, self.writer.call("sqrt", str(surd)))
        if not exponent[0].is_zero():
            pieces.append(self.writer.call("exp", self.element(exponent)))
        if not pieces:
            return 0, self.writer.rational(abs(c)), bool(c < 0)
        return rank, self.writer.product(abs(c), pieces, rank <= 2), bool(c < 0)

    def radical(self, g: Generator, e: int) -> str:
        inner = self.polynomial(g.radicand, {})
        if g.degree == 2:
            return self.writer.call("sqrt", inner)
        return self.writer.power(self.writer.parentheses(inner), Fraction(e, g.degree))


def _gcd(values: list[Fraction]) -> Fraction:
    """The positive greatest common divisor of rationals."""
    total = values[0]
    for value in values[1:]:
        while value:
            total, value = value, total - value * (total // value)
    return abs(total)
