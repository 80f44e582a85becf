"""Numbers as texts that the grammar reads back: the canonical text if it is short, else the expression as it is built."""

from __future__ import annotations

from fractions import Fraction

from exactgrpo.errors import LimitError
from exactgrpo.numbers import expression as ex
from exactgrpo.numbers.arithmetic import Exact
from exactgrpo.numbers.decision import full_expansion
from exactgrpo.numbers.display import exact_text
from exactgrpo.numbers.expression import Expression
from exactgrpo.numbers.rational import MAX_DIGITS
from exactgrpo.numbers.symbols import node
from exactgrpo.numbers.text import parse_exact

MAX_NODES = 2000
MAX_TEXT = 20_000
"""Of an irrational number: nodes of its expression, characters of its text."""


def number_text(x: Exact, place: str = "number") -> str:
    """Exact text of a number that the grammar reads back: canonical if short, else as its expression is built.

    LimitError for a number of more than 10,000 digits, 2,000 nodes or 20,000 characters.

    >>> number_text(Fraction(7, 5)), number_text(node(Fraction(8)).sqrt())
    ('7/5', '2*sqrt(2)')
    >>> number_text(Expression.of(2).sqrt() + Fraction(1, 10**100))[:20]
    '(2)^(1/2) + 1/100000'
    """
    if isinstance(x, Fraction):
        return fraction_text(x, place)
    text = exact_text(x)
    if text is None:
        text = _expression_text(x, place)
        if len(text) > MAX_TEXT:
            raise LimitError(place, f"a text of {len(text)} characters", f"numbers are written with at most {MAX_TEXT} characters")
        parse_exact(text, place)  # deeper or larger than the grammar reads: refused now and not when the file is read
    return text


def fraction_text(x: Fraction, place: str) -> str:
    if max(x.numerator.bit_length(), x.denominator.bit_length()) > 3.3 * MAX_DIGITS:
        raise LimitError(place, x, f"numbers are written with at most {MAX_DIGITS} digits")
    value = node(x).payload
    return str(value.p) if value.q == 1 else f"{value.p}/{value.q}"


def _expression_text(x: Expression, place: str) -> str:
    expanded = full_expansion(x, MAX_NODES)
    if expanded is None:
        raise LimitError(place, repr(x), f"numbers are written with at most {MAX_NODES} operations")
    texts: dict[Expression, tuple[str, int]] = {}  # with the binding strength: 0 sum, 1 product or quotient, 2 atom

    def inside(y: Expression, strength: int) -> str:
        text, own = texts[y]
        return text if own >= strength else f"({text})"

    for y in ex.cone(expanded):
        a = y.args
        match y.kind:
            case ex.RATIONAL:
                text = fraction_text(Fraction(int(y.payload.p), int(y.payload.q)), place)
                made = (text, 2 if text.isdigit() else 0 if text.startswith("-") else 1)
            case ex.SUM:
                made = (" + ".join(inside(b, 1) for b in a), 0)
            case ex.PRODUCT:
                made = ("*".join(inside(b, 2) for b in a), 1)
            case ex.QUOTIENT:
                made = (f"{inside(a[0], 2)}/{inside(a[1], 2)}", 1)
            case ex.POWER:
                made = (f"({texts[a[0]][0]})^({y.payload})", 1)
            case ex.ROOT:
                made = (f"({texts[a[0]][0]})^(1/{y.payload})", 1)
            case _:
                made = (f"{ex.KIND_NAMES[y.kind]}({texts[a[0]][0]})", 2)
        if len(made[0]) > MAX_TEXT:
            raise LimitError(place, repr(x), f"numbers are written with at most {MAX_TEXT} characters")
        texts[y] = made
    return texts[expanded][0]
