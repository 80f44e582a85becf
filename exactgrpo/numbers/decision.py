"""Signs of exact real numbers, each with its proof: a ball first, algebra only on suspicion.

Zero is answered only on a proved chain of identities or below a proved separation bound, and only if the number exists (some
enclosure of it is finite); positive and negative only on a separated enclosure. The rest is an UndecidedError.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from exactgrpo.errors import UndecidedError
from exactgrpo.numbers import expression as ex
from exactgrpo.numbers.expression import Expression, cone, enclose
from exactgrpo.numbers.normal_form import ALGEBRAIC, TOO_LARGE, Verdict, judge, normal_form
from exactgrpo.numbers.plan import NoNormalForm
from exactgrpo.numbers.residue import residue_is_zero
from exactgrpo.numbers.separation import BUDGET_BITS, is_below, separation_bits, sign_by_separation

_FIRST_BITS = (64, 128, 256)
_CHEAP_BITS = 4096  # a formally non-zero number is refined to here before its class is determined
_LATTICE_BITS = 1 << 13  # the search for relations between generators goes on to here,
_SEARCH_BITS = 1 << 20  # and the refinement to here, where independence rests on that search
_CUT_NODES = 3000
_CUTS = 64


@dataclass(frozen=True, slots=True)
class Proof:
    """Why a sign is what it is. `kind` is "rational", "enclosure", "identity" or "separation bound"; `bits` is the precision used."""

    kind: str
    bits: int | None
    detail: str


@dataclass(frozen=True, slots=True)
class Sign:
    """-1, 0 or 1, with its proof."""

    value: int
    proof: Proof


def decide_sign(x: Expression | Fraction | int, *, max_bits: int = 1 << 15, question: str = "sign") -> Sign:
    """The sign of x, with a proof.

    Never undecided for real algebraic numbers of moderate degree, linear forms in logarithms of algebraic numbers, and exponential
    polynomials with algebraic exponents: there the precision has no cap. Elsewhere UndecidedError is raised when neither an
    identity nor an enclosure of `max_bits` bits decides.

    >>> x = Expression.of(6).log() - Expression.of(2).log() - Expression.of(3).log()
    >>> decide_sign(x)
    Sign(value=0, proof=Proof(kind='identity', bits=None, detail='normal form zero'))
    >>> decide_sign(Fraction(-1, 3)).value, decide_sign(x + Fraction(1, 10**1000)).value
    (-1, 1)
    """
    x = Expression.of(x)
    if x.kind == ex.RATIONAL:
        return Sign((x.payload > 0) - (x.payload < 0), Proof("rational", None, "exact rational arithmetic"))
    for bits in _FIRST_BITS:
        decided = _by_enclosure(x, bits)
        if decided is not None:
            return decided
    return _decide_suspect(x, max_bits, question)


def prove_zero(x: Expression) -> Proof | None:
    """A proof that x is zero, or None if none is found; None says nothing about x.

    >>> prove_zero(Expression.of(8).sqrt() - 2 * Expression.of(2).sqrt()).kind
    'identity'
    >>> prove_zero(Expression.of(1)) is None
    True
    """
    x = Expression.of(x)
    if x.kind == ex.RATIONAL:
        return Proof("rational", None, "exact rational arithmetic") if x.payload == 0 else None
    if not _is_certified(x, 1 << 12):
        return None
    proof, _, last = _search(x)
    if proof is None:
        decided = sign_by_separation(last)
        if decided is not None and decided[0] == 0:
            return Proof("separation bound", decided[1], "an algebraic number below its separation bound")
    return proof


def number_class(x: Expression | Fraction | int) -> str:
    """The name of the class of numbers that the normal form of x belongs to, for messages.

    >>> number_class(Expression.of(2).log() + 1), number_class(Expression.of(2).log().exp())
    ('linear forms in logarithms (Baker)', 'rational')
    """
    x = Expression.of(x)
    for cut in _cuts(x):
        last = cut
    return _judge(last).number_class


def _by_enclosure(x: Expression, bits: int) -> Sign | None:
    ball = enclose(x, bits)
    if ball > 0:
        return Sign(1, Proof("enclosure", bits, "separated from zero"))
    if ball < 0:
        return Sign(-1, Proof("enclosure", bits, "separated from zero"))
    return None


def _by_normal_form(verdict: Verdict, x: Expression, bits: int) -> Sign | None:
    """The sign of the normal form, which denotes the same number as x if x exists."""
    if verdict.simplified is None:
        return None
    decided = _by_enclosure(verdict.simplified, bits)
    if decided is None or not _is_certified(x, bits):
        return None
    return Sign(decided.value, Proof("enclosure", bits, "normal form separated from zero"))


def _is_certified(x: Expression, max_bits: int) -> bool:
    """True if some enclosure is finite: every divisor, radicand and argument of a logarithm is then certified in its domain."""
    bits = 64
    while bits <= max_bits:
        if enclose(x, bits).is_finite():
            return True
        bits *= 2
    return False


def _decide_suspect(x: Expression, max_bits: int, question: str) -> Sign:
    """The sign of a number that the first enclosures do not separate from zero."""
    proof, formally_nonzero, last = _search(x)
    if proof is not None and _is_certified(x, max_bits):
        return Sign(0, proof)
    bits = 2 * _FIRST_BITS[-1]
    while bits <= min(_CHEAP_BITS, max_bits):
        decided = _by_enclosure(x, bits)
        if decided is not None:
            return decided
        bits *= 2
    separation = separation_bits(last)
    verdict = _judge(last)
    while True:
        if proof is None and verdict.is_zero and _is_certified(x, max_bits):
            return Sign(0, _identity(verdict, last, x))
        unconditional = separation is not None and separation <= BUDGET_BITS
        unconditional = unconditional or (verdict.complete and not verdict.is_zero and not (verdict.provisional and bits > _SEARCH_BITS))
        if bits > max_bits and not (unconditional and _is_certified(x, max_bits)):
            nonzero = formally_nonzero or (not verdict.is_zero and verdict.number_class != TOO_LARGE)
            raise UndecidedError(question, _text(enclose(x, max_bits)), verdict.number_class, nonzero)
        decided = _by_enclosure(x, bits) or _by_normal_form(verdict, x, bits)
        if decided is not None:
            return decided
        if separation is not None and enclose(x, bits).is_finite() and is_below(enclose(x, bits), separation):
            return Sign(0, Proof("separation bound", bits, f"an algebraic number that is not zero would exceed 2^-{separation}"))
        if verdict.provisional and not verdict.is_zero and bits <= _LATTICE_BITS:
            verdict = _judge(last, relation_bits=bits)
        bits *= 2


def _text(ball: Any) -> str:
    return str(ball.str(10))


def _search(x: Expression) -> tuple[Proof | None, bool, Expression]:
    """(proof of zero or None, whether a residue at full depth is not zero, x with its leaves expanded as far as the budget allows)."""
    formally_nonzero, last = False, x
    for cut in _cuts(x):
        last = cut
        residue = residue_is_zero(cut)
        formally_nonzero = residue is False
        if formally_nonzero:
            continue
        verdict = _judge(cut)
        if verdict.is_zero:
            return _identity(verdict, cut, x), False, cut
    return None, formally_nonzero, last


def _identity(verdict: Verdict, cut: Expression, x: Expression) -> Proof:
    opaque = sum(node.kind == ex.LEAF for node in cone(cut))
    over = f" over {opaque} opaque leaves" if opaque else ""
    return Proof("identity", None, verdict.detail + over)


def _judge(x: Expression, relation_bits: int = 192) -> Verdict:
    try:
        return judge(normal_form(x, relation_bits=relation_bits))
    except NoNormalForm:
        name = ALGEBRAIC if all(node.kind < ex.LOG for node in cone(x)) else TOO_LARGE
        return Verdict(False, name, False, False, "no normal form within the budget")


def _cuts(x: Expression) -> Iterator[Expression]:
    """x with all leaves opaque, then with those of the highest level replaced by their definitions, and so on downwards."""
    for _ in range(_CUTS):
        yield x
        nodes = cone(x)
        leaves = [node for node in nodes if node.kind == ex.LEAF]
        if not leaves or len(nodes) > _CUT_NODES:
            return
        levels = {node: node.payload[0].level(node.payload[1]) for node in leaves}
        top = max(levels.values())
        x = _substitute(nodes, {node: node.payload[0].expand(node.payload[1]) for node in leaves if levels[node] == top})


def full_expansion(x: Expression, max_nodes: int) -> Expression | None:
    """x with all leaves replaced by their definitions; None if that takes more than `max_nodes` nodes."""
    for _ in range(_CUTS):
        nodes = cone(x)
        if len(nodes) > max_nodes:
            return None
        leaves = [node for node in nodes if node.kind == ex.LEAF]
        if not leaves:
            return x
        x = _substitute(nodes, {node: node.payload[0].expand(node.payload[1]) for node in leaves})
    return None


def _substitute(nodes: list[Expression], definitions: dict[Expression, Expression]) -> Expression:
    new: dict[Expression, Expression] = {}
    for node in nodes:
        args = [new[a] for a in node.args]
        if node in definitions:
            new[node] = definitions[node]
        elif all(a is b for a, b in zip(args, node.args, strict=True)):
            new[node] = node
        else:
            new[node] = ex.rebuild(node, args)
    return new[nodes[-1]]
