"""`Real`: an exact real number as a user holds it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from flint import fmpq

from exactgrpo.errors import InexactInputError
from exactgrpo.numbers.decision import Sign, decide_sign
from exactgrpo.numbers.display import exact_text, rational_value
from exactgrpo.numbers.expression import RATIONAL, Expression, enclose, sub
from exactgrpo.numbers.from_sympy import is_sympy
from exactgrpo.numbers.rational import exact
from exactgrpo.numbers.rounding import BFLOAT16, FLOAT32, FLOAT64, bounds, to_binary, to_digits


class Real:
    """An exact real number.

    Arithmetic is exact; comparisons are decided with proof, and raise UndecidedError when they cannot be. Numbers are not hashable
    and have no truth value; binary floats are refused as operands. With a SymPy expression that has symbols, the result of + - * / and **
    is SymPy's.

    >>> x = Real.of(2).sqrt() * Real.of(3).sqrt()
    >>> x == Real.of(6).sqrt(), x < Fraction(49, 20), x
    (True, True, Real('sqrt(6)'))
    """

    __slots__ = ("expression",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: int | Fraction | Expression | Real) -> None:
        self.expression = _expression(value)

    @classmethod
    def of(cls, value: object, place: str = "number") -> Real:
        """The number of an int, Fraction, Decimal, text, Expression or Real; `place` names it in errors.

        InexactInputError for a float, InputError for what is not an exact number.

        >>> Real.of(Fraction(7, 5)), Real.of("0.1"), Real.of("sqrt(8)/2")
        (Real('7/5'), Real('1/10'), Real('sqrt(2)'))
        """
        return cls(value if isinstance(value, (Expression, Real)) else exact(value, place))

    def __add__(self, other: object) -> Real:
        return NotImplemented if has_symbols(other) else Real(self.expression + _expression(other))

    __radd__ = __add__

    def __sub__(self, other: object) -> Real:
        return NotImplemented if has_symbols(other) else Real(self.expression - _expression(other))

    def __rsub__(self, other: object) -> Real:
        return NotImplemented if has_symbols(other) else Real(_expression(other) - self.expression)

    def __mul__(self, other: object) -> Real:
        return NotImplemented if has_symbols(other) else Real(self.expression * _expression(other))

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Real:
        return NotImplemented if has_symbols(other) else Real(self.expression / _expression(other))

    def __rtruediv__(self, other: object) -> Real:
        return NotImplemented if has_symbols(other) else Real(_expression(other) / self.expression)

    def __pow__(self, exponent: int | Fraction) -> Real:
        return NotImplemented if has_symbols(exponent) else Real(self.expression**exponent)

    def __neg__(self) -> Real:
        return Real(-self.expression)

    def __pos__(self) -> Real:
        return self

    def __abs__(self) -> Real:
        return -self if self.sign().value < 0 else self

    def sqrt(self) -> Real:
        """The square root; DomainError below zero."""
        return Real(self.expression.sqrt())

    def root(self, index: int) -> Real:
        """The real root of a non-negative number; DomainError below zero."""
        return Real(self.expression.root(index))

    def log(self) -> Real:
        """The natural logarithm; DomainError unless positive."""
        return Real(self.expression.log())

    def exp(self) -> Real:
        """The exponential."""
        return Real(self.expression.exp())

    def sign(self) -> Sign:
        """-1, 0 or 1 with a proof; UndecidedError when neither an identity nor an enclosure decides.

        >>> Real.of(-3).sign().value
        -1
        """
        return decide_sign(self.expression)

    def _compare(self, other: object) -> int:
        return decide_sign(sub(self.expression, _expression(other)), question="comparison").value

    def __lt__(self, other: object) -> bool:
        return self._compare(other) < 0

    def __le__(self, other: object) -> bool:
        return self._compare(other) <= 0

    def __gt__(self, other: object) -> bool:
        return self._compare(other) > 0

    def __ge__(self, other: object) -> bool:
        return self._compare(other) >= 0

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (int, float, Fraction, Expression, Real, fmpq)) or (is_sympy(other) and not has_symbols(other)):
            return self._compare(other) == 0
        return NotImplemented

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __bool__(self) -> bool:
        raise TypeError("an exact number has no truth value; compare it with 0")

    def __float__(self) -> float:
        raise TypeError("an exact number does not become a float silently; use to_float64()")

    def enclose(self, digits: int) -> tuple[Fraction, Fraction]:
        """Rational bounds lower <= x <= upper with upper - lower <= 10^-digits |x|; equal for numbers that are kept as rationals.

        >>> lower, upper = Real.of(2).sqrt().enclose(30)
        >>> lower**2 < 2 < upper**2, (upper - lower) < Fraction(2, 10**30)
        (True, True)
        """
        if self.expression.kind == RATIONAL:
            value = Fraction(int(self.expression.payload.p), int(self.expression.payload.q))
            return value, value
        if decide_sign(self.expression, question="is the number to be enclosed zero?").value == 0:
            return Fraction(0), Fraction(0)
        bits = 64 + 4 * digits
        while True:
            ball = enclose(self.expression, bits)
            if ball > 0 or ball < 0:
                lower, upper = bounds(ball)
                if (upper - lower) * 10**digits <= min(abs(lower), abs(upper)):
                    return lower, upper
            bits *= 2

    def digits(self, n: int) -> str:
        """n significant decimal digits, correctly rounded, ties to even.

        >>> Real.of(2).log().digits(12), (-Real.of(921)).exp().digits(4)
        ('0.693147180560', '1.035e-400')
        """
        return to_digits(self.expression, n)

    def to_float64(self) -> float:
        """The nearest double, ties to even.

        >>> Real.of(Fraction(1, 10)).to_float64()
        0.1
        """
        return to_binary(self.expression, FLOAT64)

    def to_float32(self) -> float:
        """The nearest single-precision number, ties to even, as a Python float.

        >>> Real.of(Fraction(1, 10)).to_float32()
        0.10000000149011612
        """
        return to_binary(self.expression, FLOAT32)

    def to_bfloat16(self) -> float:
        """The nearest bfloat16 number, ties to even, as a Python float.

        >>> Real.of(Fraction(1, 10)).to_bfloat16()
        0.10009765625
        """
        return to_binary(self.expression, BFLOAT16)

    def exact(self) -> str | None:
        """Short canonical text, readable by an ordinary grammar; None if it is longer than 80 characters or costly to find.

        >>> (Real.of(2).log().exp() * 9).exact(), (-Real.of(800).exp()).exact(), (Real.of(1) / 2).log().exact()
        ('18', '-exp(800)', '-log(2)')
        """
        return exact_text(self.expression)

    def latex(self) -> str:
        r"""LaTeX of the short exact text, or of twelve digits if there is none.

        >>> (Real.of(1) / 3).log().latex()
        '-\\log\\left(3\\right)'
        """
        text = exact_text(self.expression, limit=400, latex=True)
        return text if text is not None else self.digits(12) + r"\ldots"

    def as_fraction(self) -> Fraction | None:
        """The value as a Fraction if it is provably rational, else None.

        >>> (Real.of(2).sqrt() ** 2).as_fraction(), Real.of(2).sqrt().as_fraction()
        (Fraction(2, 1), None)
        """
        return rational_value(self.expression)

    def _sympy_(self) -> Any:
        """The number in SymPy, which calls this; LimitError beyond 2,000 operations.

        >>> from sympy import symbols
        >>> Real.of(2).sqrt() * symbols("p") + Real.of(1)
        sqrt(2)*p + 1
        """
        from exactgrpo.numbers.to_sympy import to_sympy

        return to_sympy(self.expression)

    def __repr__(self) -> str:
        text = self.exact()
        if text is not None:
            return f"Real('{text}')"
        ball = enclose(self.expression, 64)
        return f"Real({ball.str(12)})"


def has_symbols(value: object) -> bool:
    """True for a SymPy expression with symbols.

    >>> from sympy import Integer, symbols
    >>> has_symbols(1 + symbols("p")), has_symbols(Integer(1)), has_symbols(1)
    (True, False, False)
    """
    return is_sympy(value) and bool(getattr(value, "free_symbols", False))


def _expression(value: object) -> Expression:
    if isinstance(value, Real):
        return value.expression
    if is_sympy(value):
        return Expression.of(exact(value, "number"))
    if isinstance(value, float):
        raise InexactInputError("number", value, 'a binary float is not exact; write "0.1", Fraction(1, 10) or dyadic(0.1)')
    return Expression.of(value)
