"""Numbers whose sign is known by construction: an identity in disguise, plus an offset that is zero, positive or negative.

A case is z = x - y + s d, where x and y are two forms of one number (y is x rewritten by a true identity of algebra) and d > 0.
Trees are plain tuples of this module, so that a second evaluator can read them without the package. Only positive trees stand
under roots, below fraction bars and in logarithms, so that every number exists by construction.

Run `python -m tests.property.torture N SEED [--jobs 2]` for a summary line.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import mpmath

from exactgrpo.errors import UndecidedError
from exactgrpo.numbers import expression as ex
from exactgrpo.numbers.decision import decide_sign

Tree = tuple[Any, ...]
Pair = tuple[Tree, Tree]

MULTIQUADRATIC, ALGEBRAIC, BAKER, LINDEMANN, MIXED = "multiquadratic", "algebraic", "Baker", "Lindemann-Weierstrass", "mixed"
UNCONDITIONAL = (MULTIQUADRATIC, ALGEBRAIC, BAKER, LINDEMANN)
CLASSES = (*UNCONDITIONAL, MIXED)


@dataclass(frozen=True, slots=True)
class Case:
    """A tree, the sign it was made to have, and its class."""

    tree: Tree
    sign: int
    number_class: str


# -- trees ----------------------------------------------------------------------------------------------------------------------


def q(p: int, r: int = 1) -> Tree:
    return ("q", Fraction(p, r))


def plus(a: Tree, b: Tree) -> Tree:
    return ("+", a, b)


def times(a: Tree, b: Tree) -> Tree:
    return ("*", a, b)


def over(a: Tree, b: Tree) -> Tree:
    return ("/", a, b)


def to(a: Tree, n: int) -> Tree:
    return ("^", a, n)


def rt(a: Tree, k: int = 2) -> Tree:
    return ("root", a, k)


def ln(a: Tree) -> Tree:
    return ("log", a)


def e(a: Tree) -> Tree:
    return ("exp", a)


def minus(a: Tree, b: Tree) -> Tree:
    return plus(a, times(q(-1), b))


# -- positive atoms -------------------------------------------------------------------------------------------------------------


def fraction(rng: random.Random) -> Tree:
    return q(rng.randint(1, 30), rng.choice((1, 1, 1, 2, 3, 7)))


def big(rng: random.Random) -> int:
    """A product of two primes, so that a coprime base has something to split."""
    primes = (1009, 1013, 10007, 1000003, 2**61 - 1, 2**89 - 1, 10**18 + 9)
    return rng.choice(primes) * rng.choice(primes)


def surd(rng: random.Random) -> Tree:
    if rng.random() < 0.05:
        return rt(q(big(rng)))
    return rt(fraction(rng))


def multiquadratic_atom(rng: random.Random) -> Tree:
    kind = rng.randrange(4)
    if kind == 0:
        return fraction(rng)
    if kind == 1:
        return surd(rng)
    return plus(fraction(rng), surd(rng)) if kind == 2 else times(fraction(rng), surd(rng))


def algebraic_atom(rng: random.Random) -> Tree:
    kind = rng.randrange(5)
    if kind == 0:
        return rt(fraction(rng), 3)
    if kind == 1:
        return rt(plus(fraction(rng), surd(rng)))
    return multiquadratic_atom(rng)


def mixed_atom(rng: random.Random) -> Tree:
    kind = rng.randrange(7)
    if kind == 0:
        return ln(plus(q(1), fraction(rng)))
    if kind == 1:
        return e(times(q(rng.choice((-1, 1))), multiquadratic_atom(rng)))
    if kind == 2:
        return ln(plus(q(1), e(fraction(rng))))
    if kind == 3:
        return rt(plus(q(1), ln(q(rng.randint(2, 9)))))
    return algebraic_atom(rng)


ATOMS: dict[str, Callable[[random.Random], Tree]] = {
    MULTIQUADRATIC: multiquadratic_atom,
    ALGEBRAIC: algebraic_atom,
    MIXED: mixed_atom,
}


# -- identities: pairs of trees that denote one positive number -----------------------------------------------------------------


def identity(rng: random.Random, a: Tree, b: Tree, c: Tree) -> Pair:
    """A random identity of field arithmetic and square roots in positive numbers a, b, c."""
    kind = rng.randrange(12)
    if kind == 0:
        return times(a, plus(b, c)), plus(times(a, b), times(a, c))
    if kind == 1:
        return to(plus(a, b), 2), plus(plus(to(a, 2), to(b, 2)), times(q(2), times(a, b)))
    if kind == 2:
        return plus(over(a, b), over(b, c)), over(plus(times(a, c), times(b, b)), times(b, c))
    if kind == 3:
        return over(q(1), times(a, plus(a, q(1)))), minus(over(q(1), a), over(q(1), plus(a, q(1))))
    if kind == 4:
        return to(plus(a, q(1)), 3), plus(plus(to(a, 3), q(1)), times(q(3), times(a, plus(a, q(1)))))
    if kind == 5:
        return rt(to(plus(a, b), 2)), plus(a, b)
    if kind == 6:
        return over(a, plus(a, b)), minus(q(1), over(b, plus(a, b)))
    if kind == 7:
        return plus(to(a, 2), times(a, b)), times(plus(a, b), a)
    if kind == 8:
        return over(plus(to(a, 3), to(b, 3)), plus(a, b)), plus(minus(to(a, 2), times(a, b)), to(b, 2))
    if kind == 9:
        return over(plus(times(a, c), times(b, c)), c), plus(a, b)
    if kind == 10:
        return over(q(1), plus(over(q(1), a), over(q(1), b))), over(times(a, b), plus(a, b))
    return over(a, b), times(a, over(q(1), b))


def surd_identity(rng: random.Random, deep: bool) -> Pair:
    """Identities between roots of rational numbers (and, if `deep`, nested and cubic ones)."""
    a, b = rng.randint(2, 40), rng.randint(2, 40)
    if a == b:
        b += 1
    c = rng.randint(2, 12)
    if rng.random() < 0.05:
        a *= big(rng)
        b *= big(rng)
        if a == b:
            b *= 2
    kind = rng.randrange(12 if deep else 7)
    if kind == 0:
        return times(rt(q(a)), rt(q(b))), rt(q(a * b))
    if kind == 1:
        return rt(plus(q(a + b), times(q(2), rt(q(a * b))))), plus(rt(q(a)), rt(q(b)))
    if kind == 2:
        return to(plus(rt(q(a)), rt(q(b))), 2), plus(q(a + b), times(q(2), rt(q(a * b))))
    if kind == 3:
        return over(q(1), plus(rt(q(a)), rt(q(b)))), over(minus(rt(q(a)), rt(q(b))), q(a - b))
    if kind == 4:
        return rt(q(a * c * c, b)), over(times(q(c), rt(q(a * b))), q(b))
    if kind == 5:
        return rt(plus(q(a * a + c * c * b), times(q(2 * a * c), rt(q(b))))), plus(q(a), times(q(c), rt(q(b))))
    if kind == 6:
        return to(plus(q(a), rt(q(b))), 3), plus(q(a**3 + 3 * a * b), times(q(3 * a * a + b), rt(q(b))))
    if kind == 7:
        return times(rt(plus(q(a + 7), rt(q(a)))), rt(minus(q(a + 7), rt(q(a))))), rt(q((a + 7) ** 2 - a))
    if kind == 8:
        return rt(plus(q(a**3 + 3 * a * b), times(q(3 * a * a + b), rt(q(b)))), 3), plus(q(a), rt(q(b)))
    if kind == 9:
        return times(rt(q(a), 3), rt(q(b), 3)), rt(q(a * b), 3)
    if kind == 10:
        return rt(rt(q(a))), rt(q(a), 4)
    return to(plus(rt(q(a), 3), q(1)), 3), plus(q(a + 1), times(q(3), plus(rt(q(a * a), 3), rt(q(a), 3))))


def log_identity(rng: random.Random, a: Tree, b: Tree) -> Pair:
    """Identities between logarithms of positive numbers a and b."""
    n = rng.randint(2, 5)
    kind = rng.randrange(8)
    if kind == 0:
        return ln(times(a, b)), plus(ln(a), ln(b))
    if kind == 1:
        return ln(over(a, b)), minus(ln(a), ln(b))
    if kind == 2:
        return ln(to(a, n)), times(q(n), ln(a))
    if kind == 3:
        return ln(rt(a, n)), times(q(1, n), ln(a))
    if kind == 4:
        r, s, t = rng.randint(1, 9), rng.randint(1, 9), rng.randint(2, 30)
        return ln(plus(q(r * r + s * s * t), times(q(2 * r * s), rt(q(t))))), times(q(2), ln(plus(q(r), times(q(s), rt(q(t))))))
    if kind == 5:
        t = rng.randint(2, 30)
        return ln(plus(rt(q(t + 1)), rt(q(t)))), times(q(-1), ln(minus(rt(q(t + 1)), rt(q(t)))))
    if kind == 6:
        u, v, w = big(rng), big(rng), big(rng)
        return plus(ln(q(u * v)), ln(q(w, u))), ln(q(v * w))
    return ln(rt(times(a, b))), times(q(1, 2), plus(ln(a), ln(b)))


def exp_identity(rng: random.Random, a: Tree, b: Tree) -> Pair:
    """Identities between exponentials of numbers a and b."""
    n = rng.randint(2, 5)
    kind = rng.randrange(6)
    if kind == 0:
        return e(plus(a, b)), times(e(a), e(b))
    if kind == 1:
        return e(minus(a, b)), over(e(a), e(b))
    if kind == 2:
        return e(times(q(n), a)), to(e(a), n)
    if kind == 3:
        return to(e(times(q(1, n), a)), n), e(a)
    if kind == 4:
        return rt(e(a), n), e(times(q(1, n), a))
    return to(plus(e(a), e(b)), 2), plus(plus(e(times(q(2), a)), e(times(q(2), b))), times(q(2), e(plus(a, b))))


def algebraic_pair(rng: random.Random, name: str) -> Pair:
    """Two forms of a positive algebraic number."""
    if rng.random() < 0.5:
        return surd_identity(rng, name != MULTIQUADRATIC)
    atom = ATOMS[name if name == MULTIQUADRATIC else ALGEBRAIC] if rng.random() < 0.3 else multiquadratic_atom
    return identity(rng, atom(rng), multiquadratic_atom(rng), fraction(rng))


def mixed_pair(rng: random.Random, depth: int) -> Pair:
    """Two forms of a positive number of any kind."""
    kind = rng.randrange(8)
    a, b = mixed_atom(rng), mixed_atom(rng)
    if kind == 0:
        return surd_identity(rng, True)
    if kind == 1:
        return identity(rng, a, b, fraction(rng))
    if kind == 2:
        x, y = log_identity(rng, plus(q(1), a), b if rng.random() < 0.5 else fraction(rng))
        return plus(q(1000), x), plus(q(1000), y)  # far above any value that occurs, so that the pair is positive
    if kind == 3:
        return exp_identity(rng, ln(plus(q(1), a)), fraction(rng))
    if kind == 4:
        r, s = rng.randint(1, 5), rng.randint(1, 4)
        return e(times(q(r, s), ln(a))), rt(to(a, r), s)
    if kind == 5:
        return times(rt(a), rt(b)), rt(times(a, b))
    if depth > 0:
        x, y = mixed_pair(rng, depth - 1)
        outer = rng.randrange(3)
        if outer == 0:
            return ln(plus(q(1), x)), ln(plus(q(1), y))
        return (rt(x), rt(y)) if outer == 1 else (over(q(1), plus(q(1), x)), over(q(1), plus(q(1), y)))
    return a, a


def class_pair(rng: random.Random, name: str) -> Pair:
    """Two forms of a number in a class, not necessarily positive."""
    if name in (MULTIQUADRATIC, ALGEBRAIC):
        x, y = algebraic_pair(rng, name)
        if rng.random() < 0.4:
            u, v = algebraic_pair(rng, MULTIQUADRATIC)
            return (plus(x, u), plus(y, v)) if rng.random() < 0.5 else (times(x, u), times(y, v))
        return x, y
    if name == BAKER:
        a, b = (multiquadratic_atom(rng) if rng.random() < 0.6 else fraction(rng) for _ in range(2))
        x, y = log_identity(rng, a, b)
        if rng.random() < 0.3:
            x, y = times(surd(rng), x), times(y, q(1))
            y = times(x[1], y)
        if rng.random() < 0.4:
            u, v = algebraic_pair(rng, MULTIQUADRATIC)
            x, y = plus(x, u), plus(y, v)
        if rng.random() < 0.3:
            u, v = log_identity(rng, fraction(rng), fraction(rng))
            x, y = plus(x, times(q(-3, 7), u)), plus(y, times(q(-3, 7), v))
        return x, y
    if name == LINDEMANN:
        a, b = (multiquadratic_atom(rng) if rng.random() < 0.4 else fraction(rng) for _ in range(2))
        x, y = exp_identity(rng, a, b)
        roll = rng.random()
        if roll < 0.2:
            u, v = surd_identity(rng, False)
            u, v = times(q(1, 8), u), times(q(1, 8), v)
            return plus(x, e(u)), plus(y, e(v))
        if roll < 0.5:
            return identity(rng, e(a), e(b), e(fraction(rng))) if roll < 0.4 else identity(rng, e(a), surd(rng), fraction(rng))
        return x, y
    x, y = mixed_pair(rng, 2)
    if rng.random() < 0.4:
        u, v = mixed_pair(rng, 1)
        return (plus(x, u), plus(y, v)) if rng.random() < 0.5 else (times(x, u), times(y, v))
    return x, y


def offset(rng: random.Random, name: str) -> Tree:
    """A small positive number that keeps the class."""
    small = q(rng.randint(1, 9), 10 ** rng.choice((0, 1, 3, 9, 20, 20, 40, 80, 150, 300, 1000)))
    if rng.random() < 0.6:
        return small
    if name in (MULTIQUADRATIC, ALGEBRAIC):
        return times(small, surd(rng))
    if name == BAKER:
        return ln(plus(q(1), small))
    return e(q(-rng.randint(1, 2300))) if name == LINDEMANN or rng.random() < 0.5 else times(small, mixed_atom(rng))


def make_case(seed: int, index: int) -> Case:
    """Case number `index` of a series; the same for the same arguments."""
    rng = random.Random(f"{seed}:{index}")
    name = CLASSES[index % len(CLASSES)]
    x, y = class_pair(rng, name)
    if rng.random() < 0.5:
        x, y = y, x
    sign = rng.choice((0, 0, 1, -1))
    tree = minus(x, y)
    if sign:
        tree = plus(tree, times(q(sign), offset(rng, name)))
    roll = rng.random()
    if roll < 0.15:
        tree, sign = times(q(-rng.randint(1, 9), 7), tree), -sign
    elif roll < 0.3:
        tree = over(tree, plus(q(1), surd(rng))) if name != MIXED else over(tree, mixed_atom(rng))
    return Case(tree, sign, name)


# -- two evaluators -------------------------------------------------------------------------------------------------------------


def to_expression(tree: Tree) -> ex.Expression:
    """The expression of a tree."""
    op = tree[0]
    if op == "q":
        return ex.rational(tree[1])
    a = to_expression(tree[1])
    if op == "^":
        return ex.power(a, tree[2])
    if op == "root":
        return ex.root(a, tree[2])
    if op == "log":
        return ex.log(a)
    if op == "exp":
        return ex.exp(a)
    b = to_expression(tree[2])
    return {"+": ex.add, "*": ex.mul, "/": ex.div}[op](a, b)


def to_interval(tree: Tree) -> Any:
    """An interval that contains the value of a tree, by mpmath alone."""
    iv = mpmath.iv
    op = tree[0]
    if op == "q":
        return iv.mpf(tree[1].numerator) / iv.mpf(tree[1].denominator)
    a = to_interval(tree[1])
    if op == "^":
        return a ** tree[2]
    if op == "root":
        return iv.sqrt(a) if tree[2] == 2 else iv.exp(iv.log(a) / tree[2])
    if op == "log":
        return iv.log(a)
    if op == "exp":
        return iv.exp(a)
    b = to_interval(tree[2])
    return {"+": lambda: a + b, "*": lambda: a * b, "/": lambda: a / b}[op]()


def contradicts(case: Case, sign: int, digits: int = 1500) -> bool:
    """True if an interval of `digits` digits excludes the sign that was decided."""
    before = mpmath.iv.dps
    mpmath.iv.dps = digits
    try:
        value = to_interval(case.tree)
    finally:
        mpmath.iv.dps = before
    if sign > 0:
        return bool(value.b <= 0)
    return bool(value.a >= 0) if sign < 0 else bool(value.a > 0 or value.b < 0)


# -- the run --------------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Summary:
    """What a run found."""

    count: int = 0
    wrong: list[int] = field(default_factory=list)
    contradicted: list[int] = field(default_factory=list)
    undecided: Counter[str] = field(default_factory=Counter)
    undecided_cases: list[int] = field(default_factory=list)
    zeros: int = 0
    seconds: float = 0.0
    slowest: tuple[float, int] = (0.0, -1)
    by_class: Counter[str] = field(default_factory=Counter)

    def merge(self, other: Summary) -> None:
        """Add another run to this one."""
        self.count += other.count
        self.wrong += other.wrong
        self.contradicted += other.contradicted
        self.undecided += other.undecided
        self.undecided_cases += other.undecided_cases
        self.zeros += other.zeros
        self.seconds += other.seconds
        self.slowest = max(self.slowest, other.slowest)
        self.by_class.update(other.by_class)

    def line(self) -> str:
        """One line of text."""
        mean = 1000 * self.seconds / max(self.count, 1)
        means = {name: round(1000 * self.by_class[name] * len(CLASSES) / max(self.count, 1), 2) for name in CLASSES}
        return (
            f"count {self.count}, zeros {self.zeros}, wrong {len(self.wrong)} {self.wrong[:5]}, contradicted {len(self.contradicted)}, "
            f"undecided {dict(self.undecided)} {self.undecided_cases[:8]}, "
            f"slowest {1000 * self.slowest[0]:.1f} ms (case {self.slowest[1]}), mean {mean:.3f} ms {means}"
        )


def run(start: int, stop: int, seed: int, check_every: int = 200) -> Summary:
    """Decide the cases start..stop-1 of a series, cross-checking one in `check_every` by intervals."""
    summary = Summary()
    for index in range(start, stop):
        case = make_case(seed, index)
        began = time.perf_counter()
        try:
            sign = decide_sign(to_expression(case.tree)).value
        except UndecidedError:
            summary.undecided[case.number_class] += 1
            summary.undecided_cases.append(index)
            sign = None
        spent = time.perf_counter() - began
        summary.count += 1
        summary.zeros += case.sign == 0
        summary.seconds += spent
        summary.by_class[case.number_class] += spent
        summary.slowest = max(summary.slowest, (spent, index))
        if sign is not None and sign != case.sign:
            summary.wrong.append(index)
        if sign is not None and index % check_every == 7 and contradicts(case, sign):
            summary.contradicted.append(index)
    return summary


def main() -> None:
    """Run a series from the command line."""
    parser = argparse.ArgumentParser(description="Decide numbers whose sign is known by construction.")
    parser.add_argument("count", type=int)
    parser.add_argument("seed", type=int)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    chunk = 5000
    starts = range(0, options.count, chunk)
    total = Summary()
    with ProcessPoolExecutor(options.jobs) as pool:
        tasks = [pool.submit(run, start, min(start + chunk, options.count), options.seed) for start in starts]
        for task in tasks:
            total.merge(task.result())
    print(total.line())


if __name__ == "__main__":
    main()
