"""What a parsed text becomes: the protocol of builders, the budget that they share, and the builder of exact numbers.

A builder receives each part of a text once, innermost first, and each value that it returns is used once: the builders of
polynomials and formulas therefore extend their left operand in place. Errors carry the rule only; the parser adds place and text.
"""

from __future__ import annotations

import difflib
from fractions import Fraction
from typing import Any, Protocol, TypeAlias, TypeVar

from flint import fmpq, fmpz

from exactgrpo.errors import DomainError, LimitError, ParseError
from exactgrpo.numbers.expression import POWER, RATIONAL, ROOT, Expression, enclose, rational
from exactgrpo.numbers.rational import MAX_BITS, Exact, settled

MAX_POWER = 10_000
"""Powers of irrational numbers and formulas: exponents, and formal degrees, are at most this large."""
MAX_IRRATIONAL_NODES = 10_000
"""Operations on irrational numbers in one text."""
MAX_EXP = 10**9
"""Arguments of exp are at most this large, in absolute value: beyond, no enclosure of the result is of use."""

V = TypeVar("V")


class Builder(Protocol[V]):
    """What the parser calls; `exponent` is rational, `function` is sqrt, log or exp. Numbers in exponents share the budget."""

    @property
    def budget(self) -> Budget: ...

    def number(self, value: Fraction) -> V: ...
    def name(self, name: str) -> V: ...
    def add(self, x: V, y: V) -> V: ...
    def sub(self, x: V, y: V) -> V: ...
    def mul(self, x: V, y: V) -> V: ...
    def div(self, x: V, y: V) -> V: ...
    def neg(self, x: V) -> V: ...
    def power(self, x: V, exponent: Fraction) -> V: ...
    def call(self, function: str, x: V) -> V: ...


class Budget:
    """Work that the texts of one file may cause, their length included; a second or two.

    >>> Budget(100).charge(101)
    Traceback (most recent call last):
    exactgrpo.errors.LimitError: : '': the arithmetic written here needs too much work
    """

    __slots__ = ("left",)

    def __init__(self, left: int = 40_000_000) -> None:
        self.left = left

    def charge(self, cost: int) -> None:
        """Take `cost` from what is left; raise LimitError when it does not suffice."""
        self.left -= cost
        if self.left < 0:
            raise LimitError("", "", "the arithmetic written here needs too much work")


def check_name(name: str, known: dict[str, int]) -> None:
    if name not in known:
        near = difflib.get_close_matches(name[:100], list(known)[:1000], n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "; the parameters are " + _short(", ".join(list(known)[:10]))
        raise ParseError("", "", f"unknown name {_short(name)!r}{hint}")


def _short(name: str) -> str:
    return name if len(name) <= 40 else name[:40] + "..."


Number: TypeAlias = Any
"""fmpq or Expression (python-flint is untyped)."""


class ExactBuilder:
    """Numbers without names: rationals are `fmpq` until `finish`, anything else is an `Expression`."""

    def __init__(self, budget: Budget | None = None) -> None:
        self.budget = Budget() if budget is None else budget
        self.irrational = 0

    def number(self, value: Fraction) -> Number:
        return self.checked(fmpq(value.numerator, value.denominator))

    def name(self, name: str) -> Number:
        raise ParseError("", "", f"only numbers are allowed here, not the name {_short(name)!r}")

    def add(self, x: Number, y: Number) -> Number:
        return self.checked(x + y) if isinstance(x, fmpq) and isinstance(y, fmpq) else self._settled(_operand(x) + _operand(y))

    def sub(self, x: Number, y: Number) -> Number:
        return self.checked(x - y) if isinstance(x, fmpq) and isinstance(y, fmpq) else self._settled(_operand(x) - _operand(y))

    def mul(self, x: Number, y: Number) -> Number:
        return self.checked(x * y) if isinstance(x, fmpq) and isinstance(y, fmpq) else self._settled(_operand(x) * _operand(y))

    def div(self, x: Number, y: Number) -> Number:
        if isinstance(y, fmpq) and not y:
            raise DomainError("", "", "division by zero")
        if isinstance(x, fmpq) and isinstance(y, fmpq):
            return self.checked(x / y)
        self._before_decision(y)
        return self._settled(_operand(x) / _operand(y))

    def neg(self, x: Number) -> Number:
        return -x if isinstance(x, fmpq) else self._settled(-x)

    def power(self, x: Number, exponent: Fraction) -> Number:
        p, q = exponent.numerator, exponent.denominator
        if isinstance(x, Expression):
            check_power(exponent)
            _check_irrational_power(x, p if q == 1 else 1)
            if q > 1 or p < 0:
                self._before_decision(x)
            return self._settled((x if q == 1 else x.root(q)) ** p)
        if q == 1:
            return self._rational_power(x, p)
        if x < 0:
            raise DomainError("", "", "root of a negative number")
        check_power(Fraction(1, q))
        root = _rational_root(x, q)
        if root is not None:
            return self._rational_power(root, p)
        check_power(exponent)
        _check_size((height(x) - 1) * abs(p) // q)
        return self._settled(rational(x).root(q) ** p)

    def call(self, function: str, x: Number) -> Number:
        if function == "sqrt":
            return self.power(x, Fraction(1, 2))
        if isinstance(x, fmpq):
            if function == "log" and x <= 0:
                raise DomainError("", "", "log of a number that is not positive")
            if x == (1 if function == "log" else 0):
                return fmpq(0 if function == "log" else 1)
            x = rational(x)
        if function == "log":
            self._before_decision(x)
            return self._settled(x.log())
        if not bool(abs(enclose(x, 128)) < MAX_EXP):
            raise LimitError("", "", f"arguments of exp are at most {MAX_EXP} in absolute value")
        return self._settled(x.exp())

    def finish(self, x: Number) -> Exact:
        """Return the value as a Fraction or an Expression."""
        return fraction(x) if isinstance(x, fmpq) else settled(x)

    def _rational_power(self, x: fmpq, p: int) -> fmpq:
        if not x:
            if p < 0:
                raise DomainError("", "", "division by zero")
            return fmpq(0 if p else 1)
        if abs(x) == 1:
            return x if p % 2 else fmpq(1)
        _check_size((height(x) - 1) * abs(p))
        return self.checked(x**p)

    def checked(self, x: fmpq) -> fmpq:
        bits = x.p.bit_length() + x.q.bit_length()
        if bits > 256:
            _check_size(bits)
            self.budget.charge(bits)
        return x

    def _before_decision(self, x: Number) -> None:
        """A sign that a cheap enclosure leaves open may need a proof, so the texts of a file can ask for few of them."""
        if isinstance(x, Expression) and not bool(enclose(x, 128) != 0):
            self.budget.charge(2_000_000)

    def _settled(self, x: Expression) -> Number:
        self.irrational += 1
        self.budget.charge(2000)
        if self.irrational > MAX_IRRATIONAL_NODES:
            raise LimitError("", "", f"a text holds at most {MAX_IRRATIONAL_NODES} operations on irrational numbers")
        return self.checked(x.payload) if x.kind == RATIONAL else x


def _operand(x: Number) -> Expression:
    return x if isinstance(x, Expression) else rational(x)


def fraction(x: fmpq) -> Fraction:
    """Return the rational as a Fraction.

    >>> fraction(fmpq(2, 6))
    Fraction(1, 3)
    """
    return Fraction(int(x.p), int(x.q))


def height(x: fmpq) -> int:
    return int(max(x.p.bit_length(), x.q.bit_length()))


def _check_size(bits: int) -> None:
    if bits > MAX_BITS:
        raise LimitError("", "", f"a number of about 2^{bits.bit_length() - 1} bits; at most {MAX_BITS} are allowed")


def check_power(exponent: Fraction) -> None:
    if abs(exponent.numerator) > MAX_POWER or exponent.denominator > MAX_POWER:
        raise LimitError("", "", f"the exponent's numerator and denominator are at most {MAX_POWER} here")


def _check_irrational_power(x: Expression, p: int) -> None:
    """Powers of powers and of roots merge, so the bound is on the merged exponent and on the rational that it may make."""
    if x.kind == POWER:
        p, x = p * x.payload, x.args[0]
        check_power(Fraction(p))
    if x.kind == ROOT and x.args[0].kind == RATIONAL:
        _check_size((height(x.args[0].payload) - 1) * abs(p) // x.payload)


def _rational_root(x: fmpq, q: int) -> fmpq | None:
    """The q-th root of x >= 0 if it is rational."""
    root = fmpq(_floor_root(x.p, q), _floor_root(x.q, q))
    return root if root**q == x else None


def _floor_root(n: fmpz, q: int) -> fmpz:
    return n if n <= 1 else fmpz(1) if q >= n.bit_length() else n.root(q)
