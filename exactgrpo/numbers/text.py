"""Text to numbers, polynomials and formulas: one grammar, and a builder for each kind of result.

    formula := term (("+" | "-") term)*          factor := ("-" | "+") factor | atom [("^" | "**") factor]
    term    := factor (("*" | "/") factor)*      atom   := literal | name | function "(" formula ")" | "(" formula ")"

`^` binds tighter than a minus sign on its left (-2^2 is -4), is right associative, and takes a rational exponent. Literals are
exact decimals (`12`, `0.1`, `1e-60`), functions are sqrt, log and exp. Nothing is ever evaluated as Python. The parser keeps its
own stack, so that nesting cannot exhaust Python's, and every size is bounded before the work that it costs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from flint import fmpz

from exactgrpo.errors import InputError, LimitError, ParseError
from exactgrpo.numbers.builders import Budget, Builder, ExactBuilder
from exactgrpo.numbers.formula import Formula
from exactgrpo.numbers.formula_text import FormulaBuilder
from exactgrpo.numbers.polynomial_text import PolynomialBuilder
from exactgrpo.numbers.rational import MAX_DIGITS, MAX_EXPONENT, Exact

MAX_LENGTH = 100_000
"""Characters of one text."""
MAX_DEPTH = 100
"""Brackets, signs and exponents that are open at the same time."""
MAX_RELATIONS = 100
"""Inequality signs of one text."""
CHARACTER_COST = 40
"""Of the budget: all texts that are more than a plain number have together about a million characters."""
FUNCTIONS = ("sqrt", "log", "exp")

Table = dict[tuple[int, ...], Fraction]
Parameters = Sequence[str] | dict[str, int]

_PLAIN = re.compile(r"\s*([+-]?[0-9]{1,400})(?:/([0-9]{1,400})|\.([0-9]{1,400}))?\s*", re.ASCII)
_TOKEN = re.compile(
    r"[ \t\r\n]*(?:(?P<literal>(?P<mantissa>[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE](?P<power>[+-]?[0-9]+))?)|(?P<name>[A-Za-z_][A-Za-z_0-9]*)"
    r"|(?P<operator>\*\*|[-+*/^()])|(?P<end>\Z))"
)
_SPACE = re.compile(r"[ \t\r\n]*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_RELATION = re.compile(r"[<>=!≤≥≠]+")


def parse_exact(text: str, place: str = "number", *, budget: Budget | None = None) -> Exact:
    """Return the number that the text denotes: a Fraction when rational arithmetic suffices, else an Expression.

    Raises ParseError for text outside the grammar, LimitError for one that is too long, deep or large, DomainError for a number
    that does not exist (division by zero, log or root of a negative number).

    >>> parse_exact("3/7"), parse_exact("-2^-2"), parse_exact("1.5e-3"), parse_exact("sqrt(4/9)")
    (Fraction(3, 7), Fraction(-1, 4), Fraction(3, 2000), Fraction(2, 3))
    >>> parse_exact("9^9^9^9", "epsilon")
    Traceback (most recent call last):
    exactgrpo.errors.LimitError: epsilon: '9^9^9^9': a number of about 2^30 bits; at most 200000 are allowed (character 4)
    """
    plain = _PLAIN.fullmatch(text) if len(text) <= 1000 else None
    if plain is not None:
        whole, below, decimals = plain.groups()
        if decimals is not None:
            return Fraction(int(whole + decimals), 10 ** len(decimals))
        if below is None or int(below):
            return Fraction(int(whole), int(below or 1))
    number: Exact = parse(text, ExactBuilder(budget), place=place)
    return number


def parse_polynomial(text: str, parameters: Parameters, place: str = "polynomial", *, budget: Budget | None = None) -> Table:
    """Return the polynomial over Q as {exponent tuple: non-zero coefficient}; the zero polynomial is {}.

    >>> parse_polynomial("(1 - a)*b^2/3", ["a", "b"])
    {(0, 2): Fraction(1, 3), (1, 2): Fraction(-1, 3)}
    """
    table: Table = parse(text, PolynomialBuilder(numbered(parameters, place), budget), place=place)
    return table


def parse_formula(text: str, parameters: Parameters, place: str = "formula", *, budget: Budget | None = None) -> Formula:
    """Return the formula tree over the named parameters.

    >>> print(parse_formula("t*exp(-t)/2 + 1/3", ["t"]))
    (((1/2)*t*exp(((-1)*t))) + (1/3))
    """
    tree: Formula = parse(text, FormulaBuilder(numbered(parameters, place), budget), place=place)
    return tree


def parse_inequality(text: str, parameters: Parameters, place: str = "inequality", *, budget: Budget | None = None) -> list[Formula]:
    """Return the formulas that a strict inequality, or a chain of them, says are positive.

    >>> [str(formula) for formula in parse_inequality("0 < t < 1", ["t"])]
    ['t', '(((-1)*t) + 1)']
    """
    names = numbered(parameters, place)
    return _inequality(text, lambda: FormulaBuilder(names, budget), place)


def parse_polynomial_inequality(
    text: str, parameters: Parameters, place: str = "inequality", *, budget: Budget | None = None
) -> list[Table]:
    """Return the polynomials that a strict inequality, or a chain of them, says are positive.

    >>> parse_polynomial_inequality("a + b < 1", ["a", "b"])
    [{(1, 0): Fraction(-1, 1), (0, 1): Fraction(-1, 1), (0, 0): Fraction(1, 1)}]
    """
    names = numbered(parameters, place)
    return _inequality(text, lambda: PolynomialBuilder(names, budget), place)


def numbered(parameters: Parameters, place: str = "parameters") -> dict[str, int]:
    """Return {name: index} of distinct names made of letters, digits and underscores, or raise ParseError.

    Its result may stand for the names in every parse function: a dict is taken to be checked already.

    >>> numbered(["a", "b"])
    {'a': 0, 'b': 1}
    """
    if isinstance(parameters, dict):
        return parameters
    names: dict[str, int] = {}
    for index, name in enumerate(parameters):
        if not _NAME.fullmatch(name) or len(name) > 100:
            raise ParseError(place, name, "parameter names are at most 100 letters, digits and underscores, not starting with a digit")
        if name in FUNCTIONS:
            raise ParseError(place, name, "this is the name of a function")
        if name in names:
            raise ParseError(place, name, "parameter names are distinct")
        names[name] = index
    return names


def parse(text: str, builder: Any, *, place: str = "formula") -> Any:
    """Parse the text with the builder (see `builders.Builder`), and return `builder.finish` of the result.

    Every InputError that the builder raises gets this place and text, and the character at which it arose.
    """
    _check_length(text, place)
    parser = _Parser(text, builder, place)
    parser.values.append(parser.run())
    return parser.finished()


def _check_length(text: str, place: str) -> None:
    if len(text) > MAX_LENGTH:
        raise LimitError(place, text, f"formulas have at most {MAX_LENGTH} characters")


def _inequality(text: str, new_builder: Callable[[], Any], place: str) -> list[Any]:
    _check_length(text, place)
    signs = list(_RELATION.finditer(text))
    for sign in signs:
        if sign.group() not in ("<", ">"):
            raise ParseError(place, text, f"the domain is open: write < or >, not {sign.group()[:10]!r} (character {sign.start() + 1})")
    if not signs:
        raise ParseError(place, text, "a strict inequality such as 't > 0' is needed")
    if len(signs) > MAX_RELATIONS or len({sign.group() for sign in signs}) > 1:
        raise ParseError(place, text, f"a chain has signs of one direction, and at most {MAX_RELATIONS} of them")
    bounds = [0, *(edge for sign in signs for edge in sign.span()), len(text)]
    positives = []
    for number, sign in enumerate(signs):
        builder = new_builder()
        sides = [_Parser(text, builder, place, *bounds[2 * side : 2 * side + 2]) for side in (number, number + 1)]
        left, right = (side.run() for side in sides)
        low, high = (left, right) if sign.group() == "<" else (right, left)
        sides[0].values.append(sides[0]._call(sign.start(), builder.sub, high, low))
        positives.append(sides[0].finished())
    return positives


# ---- the parser --------------------------------------------------------------------------------------------------------

_LEVELS = {"+": 1, "-": 1, "*": 2, "/": 2, "^": 4}
_SIGN_LEVEL = 3


class _Pending(NamedTuple):
    """An operator whose right operand is still being read; level 0 is an open bracket, whose symbol is its function or ""."""

    symbol: str
    level: int
    position: int


class _Parser:
    """Operator precedence with explicit stacks. Inside an exponent the values are numbers, not the builder's."""

    def __init__(self, text: str, builder: Builder[Any], place: str, start: int = 0, stop: int | None = None) -> None:
        self.text, self.builder, self.place = text, builder, place
        self.start = self.position = start
        self.stop = len(text) if stop is None else stop
        self.numbers = ExactBuilder(builder.budget)
        self._call(start, builder.budget.charge, CHARACTER_COST * (self.stop - start))
        self.values: list[Any] = []
        self.pending: list[_Pending] = []
        self.depth = self.exponents = 0

    def run(self) -> Any:
        """Return the builder's value of the whole text: operands and operators in turn, until the end."""
        while True:
            self._read_operand()
            if self._read_operators():
                return self.values.pop()

    def finished(self) -> Any:
        """Return what the builder makes of the last value."""
        builder: Any = self.builder
        return self._call(self.start, builder.finish, self.values.pop())

    def _read_operand(self) -> None:
        """Signs, functions and opening brackets, then a literal or a name."""
        while True:
            token, position = self._next()
            symbol = token["operator"]
            if token["literal"] is not None:
                self.values.append(self._call(position, self._active().number, self._literal(token, position)))
                return
            if token["name"] is not None and token["name"] not in FUNCTIONS:
                self.values.append(self._call(position, self._active().name, token["name"]))
                return
            if token["name"] is not None:
                bracket, after = self._next()
                if bracket["operator"] != "(":
                    raise self._error(f"{token['name']} needs a bracket", after)
                self._push(_Pending(token["name"], 0, position))
            elif symbol == "(":
                self._push(_Pending("", 0, position))
            elif symbol == "-":
                self._push(_Pending("-", _SIGN_LEVEL, position))
            elif symbol != "+":
                raise self._error("a number, a name or a bracket is missing", position)

    def _read_operators(self) -> bool:
        """Closing brackets, then a binary operator (False) or the end (True)."""
        while True:
            token, position = self._next()
            symbol = token["operator"]
            if token["end"] is not None:
                self._reduce(1)
                if self.pending:
                    raise self._error("this bracket is not closed", self.pending[-1].position)
                return True
            if symbol is None or symbol == "(":
                raise self._error("an operator is missing", position)
            if symbol != ")":
                symbol = "^" if symbol == "**" else symbol
                self._reduce(_LEVELS[symbol] + (symbol == "^"))
                self._push(_Pending(symbol, _LEVELS[symbol], position))
                return False
            self._reduce(1)
            if not self.pending:
                raise self._error("this bracket was never opened", position)
            opened = self._pop()
            if opened.symbol:
                self.values.append(self._call(opened.position, self._active().call, opened.symbol, self.values.pop()))

    def _reduce(self, level: int) -> None:
        """Apply the pending operators that bind at least as tightly as `level`."""
        while self.pending and self.pending[-1].level >= level:
            symbol, own_level, position = self._pop()
            right = self.values.pop()
            if own_level == _SIGN_LEVEL:
                value = self._call(position, self._active().neg, right)
            elif symbol == "^":
                value = self._call(position, self._active().power, self.values.pop(), self._exponent(right, position))
            else:
                builder = self._active()
                apply = {"+": builder.add, "-": builder.sub, "*": builder.mul, "/": builder.div}[symbol]
                value = self._call(position, apply, self.values.pop(), right)
            self.values.append(value)

    def _push(self, operator: _Pending) -> None:
        self.exponents += operator.symbol == "^"
        self.depth += operator.level not in (1, 2)
        if self.depth > MAX_DEPTH:
            raise LimitError(self.place, self.text, f"brackets, signs and exponents nest at most {MAX_DEPTH} deep")
        self.pending.append(operator)

    def _pop(self) -> _Pending:
        operator = self.pending.pop()
        self.exponents -= operator.symbol == "^"
        self.depth -= operator.level not in (1, 2)
        return operator

    def _active(self) -> Builder[Any]:
        return self.numbers if self.exponents else self.builder

    def _exponent(self, value: Any, position: int) -> Fraction:
        exponent = self.numbers.finish(value)
        if not isinstance(exponent, Fraction):
            raise self._error("an exponent is a rational number", position)
        return exponent

    def _next(self) -> tuple[re.Match[str], int]:
        token = _TOKEN.match(self.text, self.position, self.stop)
        if token is None:
            self.position = _SPACE.match(self.text, self.position, self.stop).end()  # type: ignore[union-attr]
            raise self._error(f"unexpected {self.text[self.position]!r}", self.position)
        self.position = token.end()
        kind = token.lastgroup
        return token, token.start(kind) if kind else token.end()

    def _literal(self, token: re.Match[str], position: int) -> Fraction:
        mantissa, power = token["mantissa"], token["power"] or "0"
        if token["power"] is None and len(mantissa) < 1000 and mantissa.isdigit():
            return Fraction(int(mantissa))
        whole, _, decimals = mantissa.partition(".")
        if len(whole) + len(decimals) > MAX_DIGITS:
            raise LimitError(self.place, self.text, f"number literals have at most {MAX_DIGITS} digits (character {position + 1})")
        if len(power) > 10 or abs(int(power)) > MAX_EXPONENT:
            raise LimitError(
                self.place, self.text, f"decimal exponents are at most {MAX_EXPONENT} in absolute value (character {position + 1})"
            )
        shift = int(power) - len(decimals)
        self._call(position, self.numbers.budget.charge, max(0, 4 * abs(shift) - 256))
        digits = int(fmpz(whole + decimals))
        return Fraction(digits * 10**shift) if shift >= 0 else Fraction(digits, 10**-shift)

    def _call(self, position: int, function: Callable[..., Any], *args: Any) -> Any:
        try:
            return function(*args)
        except InputError as error:
            raise type(error)(self.place, self.text, f"{error.rule} (character {position + 1})") from None

    def _error(self, rule: str, position: int) -> ParseError:
        return ParseError(self.place, self.text, f"{rule} (character {position + 1})")
