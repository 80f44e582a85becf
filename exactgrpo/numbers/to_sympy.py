"""Exact numbers as SymPy numbers."""

from __future__ import annotations

from typing import Any

from exactgrpo.errors import LimitError
from exactgrpo.numbers import expression as ex
from exactgrpo.numbers.decision import full_expansion
from exactgrpo.numbers.expression import Expression, cone

MAX_NODES = 2000


def to_sympy(x: Expression) -> Any:
    """The same number in SymPy; LimitError beyond `MAX_NODES` operations.

    >>> to_sympy(Expression.of(8).sqrt() / 6 + Expression.of(2).log())
    sqrt(2)/3 + log(2)
    """
    import sympy

    expanded = full_expansion(x, MAX_NODES)
    if expanded is None:
        raise LimitError("number", repr(x), f"a number of more than {MAX_NODES} operations is not written as a SymPy expression")
    made: dict[Expression, Any] = {}
    for node in cone(expanded):
        args = [made[a] for a in node.args]
        match node.kind:
            case ex.RATIONAL:
                made[node] = sympy.Rational(int(node.payload.p), int(node.payload.q))
            case ex.SUM:
                made[node] = args[0] + args[1]
            case ex.PRODUCT:
                made[node] = args[0] * args[1]
            case ex.QUOTIENT:
                made[node] = args[0] / args[1]
            case ex.POWER:
                made[node] = args[0] ** node.payload
            case ex.ROOT:
                made[node] = args[0] ** sympy.Rational(1, node.payload)
            case ex.LOG:
                made[node] = sympy.log(args[0])
            case _:
                made[node] = sympy.exp(args[0])
    return made[expanded]
