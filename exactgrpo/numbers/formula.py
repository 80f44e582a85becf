"""Formula trees over named parameters: the immutable form of what a user writes for an expression policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias, TypeVar
from weakref import WeakValueDictionary

Op: TypeAlias = Literal["number", "parameter", "add", "mul", "div", "power", "log", "exp"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Formula:
    """One node: `op`, its `args`, and a `value` for three ops: the number, the parameter's name, the power's exponent.

    Ops are number, parameter, add and mul (two or more args), div (two), power (one arg, a Fraction as exponent), log and exp.
    Equal nodes made by `formula` are the same object, so `==` is identity and shared subtrees are shared. Where a formula is
    defined is for its user to decide: nothing that could be undefined (a quotient, a log, a fractional power) is simplified away.
    """

    op: Op
    args: tuple[Formula, ...] = ()
    value: Fraction | str | None = None

    def nodes(self) -> list[Formula]:
        """Return the distinct nodes, each after its args, this node last."""
        order: dict[Formula, None] = {}
        stack: list[tuple[Formula, bool]] = [(self, False)]
        while stack:
            node, ready = stack.pop()
            if ready:
                order[node] = None
            elif node not in order:
                stack.append((node, True))
                stack.extend((arg, False) for arg in reversed(node.args))
        return list(order)

    def fold(self, visit: Callable[[Formula, tuple[T, ...]], T]) -> T:
        """Return `visit(node, results for its args)` of this node; each distinct node is visited once, args first.

        >>> t = formula("parameter", value="t")
        >>> formula("add", (t, formula("power", (t,), Fraction(2)))).fold(lambda node, below: 1 + sum(below))
        4
        """
        results: dict[Formula, T] = {}
        for node in self.nodes():
            results[node] = visit(node, tuple(results[arg] for arg in node.args))
        return results[self]

    def parameters(self) -> set[str]:
        """Return the names of the parameters that occur."""
        return {str(node.value) for node in self.nodes() if node.op == "parameter"}

    def __str__(self) -> str:
        return self.fold(_text)

    def __reduce__(self) -> tuple[object, ...]:
        return formula, (self.op, self.args, self.value)


_LIVE: WeakValueDictionary[tuple[object, ...], Formula] = WeakValueDictionary()


def formula(op: Op, args: tuple[Formula, ...] = (), value: Fraction | str | None = None) -> Formula:
    """Return the node; the same arguments give the same object.

    >>> formula("number", value=Fraction(2)) is formula("number", value=Fraction(2))
    True
    """
    return _LIVE.setdefault((op, args, value), Formula(op, args, value))


def _text(node: Formula, below: tuple[str, ...]) -> str:
    if node.op == "number":
        return text if (text := str(node.value)).isdigit() else f"({text})"
    if node.op == "parameter":
        return str(node.value)
    if node.op == "power":
        return f"({below[0]})^({node.value})"
    if node.op in ("log", "exp"):
        return f"{node.op}({below[0]})"
    return "(" + {"add": " + ", "mul": "*", "div": "/"}[node.op].join(below) + ")"
