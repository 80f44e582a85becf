"""Real numbers as nodes of a hash-consed expression graph.

An `Expression` is immutable and denotes one real number: a rational, a sum, product or quotient, an integer power, a real root,
a logarithm, an exponential, or a leaf that is defined elsewhere. Equal construction gives the same node, so that `==` and `hash`
are identity of nodes: two different nodes may well denote the same number. Compare values with `decision.decide_sign`.

The module functions (`add`, `div`, `log`, ...) are unchecked: they are for numbers whose divisors, radicands and arguments of
logarithms have been certified elsewhere. The operators and methods of the class check their domains.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import count
from typing import Any, Protocol

from flint import arb, fmpq, fmpz

from exactgrpo.errors import DomainError, InexactInputError, InputError
from exactgrpo.numbers.precision import precision

RATIONAL, SUM, PRODUCT, QUOTIENT, POWER, ROOT, LOG, EXP, LEAF = range(9)
KIND_NAMES = ("rational", "sum", "product", "quotient", "power", "root", "log", "exp", "leaf")


class LeafSource(Protocol):
    """Where leaves are defined: certified enclosures, a definition over earlier leaves, and an order of definition."""

    def enclose(self, key: Any, bits: int) -> Any: ...
    def expand(self, key: Any) -> Expression: ...
    def level(self, key: Any) -> tuple[Any, ...]: ...


class _Reference(weakref.ref["Expression"]):
    """A weak reference that knows its place in the table of nodes."""

    __slots__ = ("key",)
    key: tuple[Any, ...]


_TABLE: dict[tuple[Any, ...], _Reference] = {}
_SERIAL = count()
_FOLD_BITS = 1 << 18  # sums, products and powers of rationals that would take more bits stay as they are


def _forget(reference: weakref.ref[Expression]) -> None:
    key = reference.key  # type: ignore[attr-defined]
    if _TABLE.get(key) is reference:
        del _TABLE[key]


class Expression:
    """A node: `kind`, its operands `args`, and `payload` (the fmpq, exponent, root index, or (source, key) of a leaf).

    `serial` grows with construction, so that operands always come before the nodes that use them. `ball` caches the enclosure of
    the highest precision asked for, `bits`.

    >>> x = Expression.of(2).sqrt()
    >>> (x * x) is Expression.of(2), x == Expression.of(2).sqrt()
    (True, True)
    """

    __slots__ = ("__weakref__", "args", "ball", "bits", "kind", "payload", "serial")
    kind: int
    args: tuple[Expression, ...]
    payload: Any
    serial: int
    ball: Any
    bits: int

    @staticmethod
    def of(value: object) -> Expression:
        """The node of an int, Fraction, fmpq or Expression; a float is refused."""
        if isinstance(value, Expression):
            return value
        if isinstance(value, float):
            raise InexactInputError("number", value, 'a binary float is not exact; write "0.1" or Fraction(1, 10)')
        if isinstance(value, bool) or not isinstance(value, (int, Fraction, fmpq, fmpz)):
            raise InexactInputError("number", value, "must be an int, a Fraction or an exact number")
        return rational(value)

    def __bool__(self) -> bool:
        raise TypeError("the truth of an exact number is not defined: decide its sign")

    def __repr__(self) -> str:
        if self.kind == RATIONAL:
            return f"Expression({self.payload})"
        return f"Expression({KIND_NAMES[self.kind]}: {enclose(self, 64).str(15)})"

    def __neg__(self) -> Expression:
        return neg(self)

    def __add__(self, other: object) -> Expression:
        return add(self, Expression.of(other))

    __radd__ = __add__

    def __sub__(self, other: object) -> Expression:
        return sub(self, Expression.of(other))

    def __rsub__(self, other: object) -> Expression:
        return sub(Expression.of(other), self)

    def __mul__(self, other: object) -> Expression:
        return mul(self, Expression.of(other))

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Expression:
        divisor = Expression.of(other)
        if _sign(divisor, "is the divisor zero?") == 0:
            raise DomainError("division", str(self), "the divisor must not be zero")
        return div(self, divisor)

    def __rtruediv__(self, other: object) -> Expression:
        return Expression.of(other) / self

    def __pow__(self, exponent: object) -> Expression:
        if isinstance(exponent, Fraction) and exponent.denominator != 1:
            return self._positive_power(exponent)
        if isinstance(exponent, bool) or not isinstance(exponent, (int, Fraction)):
            raise InexactInputError("exponent", exponent, "must be an int or a Fraction")
        if exponent < 0 and _sign(self, "is the base of a negative power zero?") == 0:
            raise DomainError("power", str(self), "a negative power of zero does not exist")
        return power(self, int(exponent))

    def _positive_power(self, exponent: Fraction) -> Expression:
        if _sign(self, "is the base of a fractional power positive?") <= 0:
            raise DomainError("power", str(self), "a fractional power needs a positive base")
        return power(root(self, exponent.denominator), exponent.numerator)

    def root(self, index: int) -> Expression:
        """The non-negative real root of the given index; DomainError below zero."""
        if isinstance(index, bool) or not isinstance(index, int) or index < 1:
            raise InputError("root index", index, "must be a positive int")
        sign = _sign(self, "is the radicand negative?")
        if sign < 0:
            raise DomainError("root", str(self), "the radicand must not be negative")
        return root(self, index) if sign else ZERO

    def sqrt(self) -> Expression:
        """The non-negative square root; DomainError below zero."""
        return self.root(2)

    def log(self) -> Expression:
        """The natural logarithm; DomainError unless the argument is positive."""
        if _sign(self, "is the argument of the logarithm positive?") <= 0:
            raise DomainError("log", str(self), "the argument must be positive")
        return log(self)

    def exp(self) -> Expression:
        """The exponential; it exists for every real number."""
        return exp(self)


def _sign(x: Expression, question: str) -> int:
    # Deciding a sign needs the normal forms, which are built on this module: hence the late import.
    from exactgrpo.numbers.decision import decide_sign

    return decide_sign(x, question=question).value


def _node(key: tuple[Any, ...], kind: int, args: tuple[Expression, ...], payload: Any) -> Expression:
    reference = _TABLE.get(key)
    if reference is not None:
        found = reference()
        if found is not None:
            return found
    node = object.__new__(Expression)
    node.kind, node.args, node.payload, node.serial, node.ball, node.bits = kind, args, payload, next(_SERIAL), None, 0
    reference = _Reference(node, _forget)
    reference.key = key
    _TABLE[key] = reference
    return node


def rational(value: int | Fraction | Any) -> Expression:
    """The node of an int, Fraction, fmpz or fmpq."""
    if isinstance(value, Fraction):
        value = fmpq(value.numerator, value.denominator)
    elif not isinstance(value, fmpq):
        value = fmpq(value)
    return _node((RATIONAL, int(value.p), int(value.q)), RATIONAL, (), value)


def leaf(source: LeafSource, key: Any) -> Expression:
    """An opaque number that `source` defines under `key`."""
    return _node((LEAF, id(source), key), LEAF, (), (source, key))


def add(x: Expression, y: Expression) -> Expression:
    """x + y."""
    if x is ZERO:
        return y
    if y is ZERO:
        return x
    if x.kind == RATIONAL:
        if y.kind == RATIONAL and _folds(x, y):
            return rational(x.payload + y.payload)
    elif (y.kind == PRODUCT and y.args[0] is MINUS_ONE and y.args[1] is x) or (
        x.kind == PRODUCT and x.args[0] is MINUS_ONE and x.args[1] is y
    ):
        return ZERO
    if x.serial > y.serial:
        x, y = y, x
    return _node((SUM, id(x), id(y)), SUM, (x, y), None)


def _folds(x: Expression, y: Expression) -> bool:
    return bool(x.payload.height_bits() + y.payload.height_bits() <= _FOLD_BITS)


def neg(x: Expression) -> Expression:
    """-x."""
    if x.kind == RATIONAL:
        return rational(-x.payload)
    if x.kind == PRODUCT and x.args[0] is MINUS_ONE:
        return x.args[1]
    return _node((PRODUCT, id(MINUS_ONE), id(x)), PRODUCT, (MINUS_ONE, x), None)


def sub(x: Expression, y: Expression) -> Expression:
    """x - y."""
    return add(x, neg(y))


def mul(x: Expression, y: Expression) -> Expression:
    """x * y. A rational operand comes first; an existing number times zero is zero."""
    if y.kind == RATIONAL and x.kind != RATIONAL:
        x, y = y, x
    if x is ZERO or y is ZERO:
        return ZERO
    if x is ONE or y is ONE:
        return y if x is ONE else x
    if x.kind == RATIONAL:
        if x is MINUS_ONE:
            return neg(y)
        if y.kind == RATIONAL and _folds(x, y):
            return rational(x.payload * y.payload)
    elif x is y:
        return power(x, 2)
    elif x.serial > y.serial:
        x, y = y, x
    return _node((PRODUCT, id(x), id(y)), PRODUCT, (x, y), None)


def div(x: Expression, y: Expression) -> Expression:
    """x / y for y known to be non-zero; a rational zero divisor is refused."""
    if y.kind == RATIONAL:
        if y is ZERO:
            raise DomainError("division", str(x), "the divisor must not be zero")
        return mul(rational(1 / y.payload), x)
    if x is ZERO:
        return ZERO
    if x is y:
        return ONE
    return _node((QUOTIENT, id(x), id(y)), QUOTIENT, (x, y), None)


def power(x: Expression, n: int) -> Expression:
    """x^n; x is known to be non-zero if n < 0. x^0 is 1."""
    if n == 0 or x is ONE:
        return ONE
    if n == 1:
        return x
    if n < 0:
        return div(ONE, power(x, -n))
    if x.kind == RATIONAL and n * x.payload.height_bits() <= _FOLD_BITS:
        return rational(x.payload**n)
    if x.kind == POWER:
        return power(x.args[0], x.payload * n)
    if x.kind == ROOT and n % x.payload == 0:
        return power(x.args[0], n // x.payload)
    return _node((POWER, id(x), n), POWER, (x,), n)


def root(x: Expression, k: int) -> Expression:
    """The real k-th root of x, known to be non-negative."""
    if k == 1 or x is ONE or x is ZERO:
        return x
    if x.kind == RATIONAL:
        value = x.payload
        if value < 0:
            raise DomainError("root", str(value), "the radicand must not be negative")
        above, below = _exact_root(value.p, k), _exact_root(value.q, k)
        if above is not None and below is not None:
            return rational(fmpq(above, below))
    return _node((ROOT, id(x), k), ROOT, (x,), k)


def _exact_root(n: Any, k: int) -> Any:
    if n.bit_length() <= k and n > 1:
        return None
    candidate = n.root(k) if n else n
    return candidate if candidate**k == n else None


def log(x: Expression) -> Expression:
    """log x for x known to be positive."""
    if x is ONE:
        return ZERO
    if x.kind == EXP:
        return x.args[0]
    if x.kind == RATIONAL and x.payload <= 0:
        raise DomainError("log", str(x.payload), "the argument must be positive")
    return _node((LOG, id(x)), LOG, (x,), None)


def exp(x: Expression) -> Expression:
    """exp x."""
    if x is ZERO:
        return ONE
    if x.kind == LOG:
        return x.args[0]
    return _node((EXP, id(x)), EXP, (x,), None)


def rebuild(node: Expression, args: Sequence[Expression]) -> Expression:
    """The operation of `node` on other operands."""
    if not args:
        return node
    if node.kind == POWER:
        return power(args[0], node.payload)
    if node.kind == ROOT:
        return root(args[0], node.payload)
    operations: dict[int, Callable[..., Expression]] = {SUM: add, PRODUCT: mul, QUOTIENT: div, LOG: log, EXP: exp}
    return operations[node.kind](*args)


def cone(x: Expression, *, keep: Callable[[Expression], bool] | None = None) -> list[Expression]:
    """All nodes that x is built from, x included, operands first; with `keep`, only the part reachable through kept nodes."""
    seen: set[Expression] = set()
    stack = [x]
    while stack:
        node = stack.pop()
        if node in seen or (keep is not None and not keep(node)):
            continue
        seen.add(node)
        stack.extend(node.args)
    return sorted(seen, key=_serial)


def _serial(node: Expression) -> int:
    return node.serial


def enclose(x: Expression, bits: int) -> Any:
    """A ball that certainly contains x, computed with `bits` bits of working precision (at least), and remembered.

    If the ball is finite then every divisor in the cone of x is certified to be non-zero, every argument of a logarithm positive,
    and every radicand non-negative, because a node with an operand that is not finite is not finite either.

    >>> enclose(Expression.of(2).sqrt(), 64).str(15)
    '[1.41421356237310 +/- 4.96e-15]'
    """
    if x.bits >= bits:
        return x.ball
    with precision(bits):
        for node in cone(x, keep=lambda candidate: candidate.bits < bits):
            node.ball = _evaluate(node, bits)
            node.bits = bits
    return x.ball


_NOT_A_NUMBER = arb("nan")


def _evaluate(node: Expression, bits: int) -> Any:
    kind, args = node.kind, node.args
    if kind == RATIONAL:
        return arb(node.payload)
    if kind == LEAF:
        source, key = node.payload
        return source.enclose(key, bits)
    first = args[0].ball
    # Arb may turn 0 * infinity or exp(-infinity) into a finite ball, which would hide a divisor that contains zero.
    if not first.is_finite() or (len(args) == 2 and not args[1].ball.is_finite()):
        return _NOT_A_NUMBER
    if kind == SUM:
        return first + args[1].ball
    if kind == PRODUCT:
        return first * args[1].ball
    if kind == QUOTIENT:
        return first / args[1].ball
    if kind == POWER:
        return first ** node.payload
    if kind == ROOT:
        return first.sqrt() if node.payload == 2 else first.root(node.payload)
    if kind == LOG:
        return first.log()
    return first.exp()


ZERO, ONE, MINUS_ONE = (rational(n) for n in (0, 1, -1))
