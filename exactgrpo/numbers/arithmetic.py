"""The array arithmetic: the mathematics is written once over these operations, and several number systems run it.

A *vector* is opaque to formulas. It has ``+ - * /`` with a vector of the same length, with a number of its arithmetic or an
int, unary minus, and ``x[index]`` with an integer array (gather). Positions and decisions are plain integer data in every
arithmetic, so formulas gather the active subset instead of masking.

Numbers turn into control flow only through `Arithmetic.signs`: every decision has a key, is made once, and is remembered with
its proof in the `DecisionTable` that the arithmetics of one run share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from exactgrpo.numbers.decision import Proof
from exactgrpo.numbers.expression import Expression

Signs = npt.NDArray[np.int8]
Key = tuple[Any, ...]
Exact = Fraction | Expression

OPEN = 2
"""The entry of a sign vector that nothing has decided yet."""


class Open(Exception):
    """Some comparisons of one call could not be decided by this arithmetic: their key and positions."""

    def __init__(self, key: Key, places: npt.NDArray[np.intp]) -> None:
        self.key, self.places = key, places
        super().__init__(key, places)


class NotRepresentable(Exception):
    """The arithmetic cannot hold this value: an irrational number, or a rational one beyond its size budget."""


def index(positions: Iterable[int]) -> npt.NDArray[np.intp]:
    """Positions as the integer array that gathers and places."""
    return np.fromiter(positions, dtype=np.intp)


class Rows:
    """A ragged table stored flat: row r owns the positions start[r] to start[r+1] - 1; owner[i] is the row of position i.

    >>> rows = Rows([2, 0, 1])
    >>> rows.start, rows.owner.tolist()
    ((0, 2, 2, 3), [0, 0, 2])
    """

    __slots__ = ("__dict__", "cache", "count", "lengths", "size", "start")

    def __init__(self, lengths: Iterable[int]) -> None:
        self.lengths = tuple(lengths)
        start = [0]
        for length in self.lengths:
            start.append(start[-1] + length)
        self.start, self.size, self.count = tuple(start), start[-1], len(self.lengths)
        self.cache: dict[str, Any] = {}

    @cached_property
    def owner(self) -> npt.NDArray[np.intp]:
        return np.repeat(np.arange(self.count, dtype=np.intp), self.lengths)

    def __iter__(self) -> Iterator[range]:
        return (range(a, b) for a, b in zip(self.start, self.start[1:], strict=False))


class Column(tuple[Exact, ...]):
    """Exact numbers as data. `cache` holds what each arithmetic has made of them, so that they are converted once."""

    cache: dict[Any, Any]

    def __new__(cls, numbers: Iterable[Exact | int]) -> Column:
        column = super().__new__(cls, tuple(Fraction(x) if isinstance(x, int) else x for x in numbers))
        column.cache = {}
        return column

    @cached_property
    def is_rational(self) -> bool:
        return all(isinstance(x, Fraction) for x in self)


class Matrix:
    """An exact matrix by sparse rows ``[(column, value), ...]``; zeros are dropped."""

    def __init__(self, rows: Iterable[Sequence[Exact | int] | Mapping[int, Exact | int]], width: int) -> None:
        self.rows: list[list[tuple[int, Exact]]] = []
        for row in rows:
            items = row.items() if isinstance(row, Mapping) else enumerate(row)
            exact = ((j, Fraction(v) if isinstance(v, int) else v) for j, v in items)
            self.rows.append([(j, v) for j, v in exact if not (isinstance(v, Fraction) and v == 0)])
        self.height, self.width = len(self.rows), width
        self.cache: dict[Any, Any] = {}

    @cached_property
    def columns(self) -> list[list[tuple[int, Exact]]]:
        columns: list[list[tuple[int, Exact]]] = [[] for _ in range(self.width)]
        for i, row in enumerate(self.rows):
            for j, value in row:
                columns[j].append((i, value))
        return columns

    @cached_property
    def is_rational(self) -> bool:
        return all(isinstance(v, Fraction) for row in self.rows for _, v in row)


class Arithmetic(Protocol):
    """The operations that formulas may use. Vectors and numbers are those of the arithmetic; results are vectors."""

    def number(self, value: Exact | int) -> Any:
        """One exact number, to be combined with vectors."""

    def exact(self, column: Column) -> Any:
        """A vector of exact numbers."""

    def exp(self, x: Any) -> Any: ...

    def log(self, x: Any) -> Any: ...

    def root(self, x: Any, degree: int) -> Any:
        """The non-negative real root of a non-negative vector."""

    def linear(self, matrix: Matrix, x: Any) -> Any:
        """matrix . x"""

    def adjoint(self, matrix: Matrix, y: Any) -> Any:
        """matrix^T . y"""

    def sums(self, x: Any, rows: Rows) -> Any:
        """One sum for each row; 0 for an empty row."""

    def cumulate(self, x: Any, rows: Rows) -> Any:
        """Running sums inside each row."""

    def products(self, x: Any, rows: Rows) -> Any:
        """One product for each row; 1 for an empty row."""

    def cofactors(self, x: Any, rows: Rows) -> Any:
        """For each entry the product of the others in its row: the pullback of products, without a division."""

    def place(self, x: Any, positions: npt.NDArray[np.intp], size: int) -> Any:
        """Zeros with x at the (distinct) positions: the adjoint of gathering."""

    def join(self, vectors: Sequence[Any]) -> Any:
        """The vectors one behind the other."""

    def shift(self, x: Any, rows: Rows) -> Any:
        """x up to one number for each row, where exponents are bounded: only for formulas in which it cancels."""

    def signs(self, key: Key, x: Any, y: Any, *, soft: bool = False) -> Signs:
        """Signs of x - y. Raises `Open` where this arithmetic cannot tell; with `soft` such places stay `OPEN`."""

    def mark(self, level: Key, x: Any) -> Any:
        """x, a parameter vector that may be cut off here: later formulas may treat it as given."""

    def observe(self, name: str, level: Key, x: Callable[[], Any]) -> None:
        """Record a vector under a name for the user; it is computed only where somebody wants it."""


class DecisionTable:
    """The decided comparisons of one run by key, each with its proof, shared by all arithmetics that execute the run."""

    def __init__(self) -> None:
        self.signs: dict[Key, Signs] = {}
        self.proofs: list[Proof] = []
        self._proof_index: dict[Proof, int] = {}
        self._by: dict[Key, npt.NDArray[np.int32]] = {}
        self.soft: set[Key] = set()

    def ask(self, key: Key, size: int, decide: Callable[[Signs, npt.NDArray[np.intp]], None], proof: Proof, *, soft: bool) -> Signs:
        """The signs under the key; `decide` fills in what is still open, and what stays open is raised unless soft."""
        signs = self.signs.get(key)
        if signs is None:
            signs = self.signs[key] = np.full(size, OPEN, np.int8)
            self._by[key] = np.full(size, -1, np.int32)
            if soft:
                self.soft.add(key)
        todo = np.flatnonzero(signs == OPEN)
        if len(todo):
            decide(signs, todo)
            done = todo[signs[todo] != OPEN]
            self._by[key][done] = self._number(proof)
            if len(done) < len(todo) and not soft:
                raise Open(key, np.flatnonzero(signs == OPEN))
        return signs

    def settle(self, key: Key, place: int, sign: int, proof: Proof) -> None:
        """Record the sign of one open place."""
        self.signs[key][place] = sign
        self._by[key][place] = self._number(proof)

    def proof(self, key: Key, place: int) -> Proof | None:
        """The proof of one decision; None while it is open."""
        number = int(self._by[key][place])
        return None if number < 0 else self.proofs[number]

    def tally(self, of: Callable[[Key], bool] = lambda key: True) -> dict[str, int]:
        """How many decisions each kind of proof has made, under the keys asked for."""
        count: dict[str, int] = {}
        for by in (by for key, by in self._by.items() if of(key)):
            for number, times in zip(*np.unique(by[by >= 0], return_counts=True), strict=True):
                kind = self.proofs[int(number)].kind
                count[kind] = count.get(kind, 0) + int(times)
        return count

    def _number(self, proof: Proof) -> int:
        number = self._proof_index.get(proof)
        if number is None:
            number = self._proof_index[proof] = len(self.proofs)
            self.proofs.append(proof)
        return number
