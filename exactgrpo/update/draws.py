"""Response draws: a supplied tape, or a seeded exact sampler."""

from __future__ import annotations

import hashlib
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from exactgrpo.errors import DrawError
from exactgrpo.numbers.arithmetic import Arithmetic, Column, Rows
from exactgrpo.numbers.inputs import listed, refusal

FIRST_BITS = 64
CHUNK = 1 << 18
"""Comparisons of the exact sampler that are made together."""
MAX_SEED_BITS = 256


class Support(Protocol):
    """What a tape is checked against: a prompt with its responses."""

    @property
    def name(self) -> str: ...

    @property
    def responses(self) -> tuple[str, ...]: ...


class Draws(Protocol):
    """Where the G responses of each prompt and outer iteration come from."""

    def check(self, prompts: Sequence[Support], group_size: int, outer_iterations: int) -> None:
        """Raise DrawError unless the draws fit the problem."""

    def take(self, arithmetic: Arithmetic, t: int, mass: Any, rows: Rows, group_size: int) -> tuple[tuple[int, ...], ...]:
        """Positions in each prompt's support, drawn at outer iteration t (from 1) from the masses of theta_{t-1}."""


@dataclass(frozen=True, slots=True)
class Tape:
    """Supplied draws: draws[outer][prompt][sample] is a response, by name.

    Theorem: read_word (RunLaw.v): each slot is read back as drawn.
    """

    draws: tuple[tuple[tuple[str, ...], ...], ...]
    positions: tuple[tuple[tuple[int, ...], ...], ...]

    @classmethod
    def of(cls, draws: Sequence[Sequence[Sequence[str]]], prompts: Sequence[Support]) -> Tape:
        """Return the tape: draws[outer][prompt][sample] is looked up in the support of its prompt. Raises DrawError.

        >>> from exactgrpo.update.problem import Prompt
        >>> Tape.of([[["b", "a"]]], [Prompt.of("q", ["a", "b"], [1, 0])]).positions
        (((1, 0),),)
        """
        supports = listed(prompts, "prompts", error=DrawError)
        for q, prompt in enumerate(supports):
            if not isinstance(getattr(prompt, "responses", None), (list, tuple)):
                raise refusal(f"prompts[{q}]", prompt, "a tape needs the prompts that it is for", DrawError)
        place_of = [{y: j for j, y in enumerate(p.responses) if isinstance(y, str)} for p in supports]
        names, positions = [], []
        for t, outer in enumerate(listed(draws, "update.draws", error=DrawError)):
            groups = listed(outer, f"update.draws[{t}]", error=DrawError)
            if len(groups) != len(supports):
                raise DrawError(f"update.draws[{t}]", f"{len(groups)} groups", f"one group for each of the {len(supports)} prompts")
            rows = [tuple(listed(group, f"update.draws[{t}][{q}]", error=DrawError)) for q, group in enumerate(groups)]
            for q, (group, known) in enumerate(zip(rows, place_of, strict=True)):
                for i, response in enumerate(group):
                    if not isinstance(response, str) or response not in known:
                        rule = f"a draw lies in the support of prompt {supports[q].name!r}"
                        raise refusal(f"update.draws[{t}][{q}][{i}]", response, rule, DrawError)
            names.append(tuple(rows))
            positions.append(tuple(tuple(known[y] for y in group) for group, known in zip(rows, place_of, strict=True)))
        return cls(tuple(names), tuple(positions))

    def check(self, prompts: Sequence[Support], group_size: int, outer_iterations: int) -> None:
        """Raise DrawError unless there are group_size draws for each outer iteration and prompt, inside the supports."""
        if len(self.positions) != outer_iterations:
            rule = f"draws for each of the {outer_iterations} outer iterations"
            raise DrawError("update.draws", f"{len(self.positions)} outer iterations", rule)
        for t, outer in enumerate(self.positions):
            if len(outer) != len(prompts):
                raise DrawError(f"update.draws[{t}]", f"{len(outer)} groups", f"one group for each of the {len(prompts)} prompts")
            for q, (group, prompt) in enumerate(zip(outer, prompts, strict=True)):
                if len(group) != group_size:
                    raise DrawError(f"update.draws[{t}][{q}]", f"{len(group)} draws", f"a group has group_size = {group_size} draws")
                if any(not 0 <= y < len(prompt.responses) for y in group):
                    raise DrawError(f"update.draws[{t}][{q}]", group, f"draws lie in the support of prompt {prompt.name!r}")

    def take(self, arithmetic: Arithmetic, t: int, mass: Any, rows: Rows, group_size: int) -> tuple[tuple[int, ...], ...]:
        """The supplied positions of outer iteration t."""
        return self.positions[t - 1]


@dataclass(frozen=True, slots=True)
class Seed:
    """The exact sampler: sample i of prompt q at outer iteration t is the cell of a uniform number u in [0, 1).

    The bits of u are those of SHA-256 of the ASCII text ``"n,t,prompt,sample,block"``, most significant bit first, for
    block = 0, 1, ...; all four positions count from zero. Bits are revealed until the dyadic interval that they leave lies
    inside one cell of the exact cumulative masses. It needs no zero test, ends almost surely, and the draw has exactly the
    policy's law given ideal bits.
    """

    seed: int

    def check(self, prompts: Sequence[Support], group_size: int, outer_iterations: int) -> None:
        """Raise DrawError unless the seed is an integer."""
        if isinstance(self.seed, bool) or not isinstance(self.seed, numbers.Integral):
            raise refusal("update.draws.seed", self.seed, "a seed is an integer", DrawError)
        if int(self.seed).bit_length() > MAX_SEED_BITS:
            raise DrawError("update.draws.seed", self.seed, f"a seed has at most {MAX_SEED_BITS} bits")

    def take(self, arithmetic: Arithmetic, t: int, mass: Any, rows: Rows, group_size: int) -> tuple[tuple[int, ...], ...]:
        """Positions drawn at outer iteration t. UndecidedError if a cumulative mass cannot be told from a dyadic number."""
        counts: list[tuple[int, ...]] = []
        cumulative = arithmetic.cumulate(mass, rows)
        for q, row in enumerate(rows):
            inner = np.arange(row.start, row.stop - 1)  # the last cumulative mass is one: no boundary
            size = max(1, CHUNK // max(1, len(inner)))
            drawn: list[int] = []
            for first in range(0, group_size, size):
                samples = range(first, min(first + size, group_size))
                drawn += self._cells(arithmetic, t, q, samples, cumulative[np.tile(inner, len(samples))], len(inner))
            counts.append(tuple(drawn))
        return tuple(counts)

    def _cells(self, arithmetic: Arithmetic, t: int, q: int, samples: range, boundaries: Any, inner: int) -> list[int]:
        """The cells of some samples of one prompt: how many boundaries lie at or below the uniform number of each."""
        owners = np.repeat(np.arange(len(samples)), inner)
        bits = FIRST_BITS
        while True:
            low = [_uniform_bits(self.seed, t - 1, q, i, bits) for i in samples]
            unit = 1 << bits
            lower = arithmetic.exact(Column(Fraction(a, unit) for a in low))
            upper = arithmetic.exact(Column(Fraction(a + 1, unit) for a in low))
            key = (t, "draw", bits, q, samples.start)
            at_most = arithmetic.signs((*key, "low"), boundaries, lower[owners]) <= 0
            at_least = arithmetic.signs((*key, "high"), boundaries, upper[owners]) >= 0
            if bool((at_most | at_least).all()):
                return [int(n) for n in at_most.reshape(len(samples), inner).sum(axis=1)]
            bits *= 2


def _uniform_bits(seed: int, t: int, prompt: int, sample: int, bits: int) -> int:
    """The first `bits` bits of one uniform number, as an integer."""
    blocks = -(-bits // 256)
    data = b"".join(hashlib.sha256(f"{seed},{t},{prompt},{sample},{b}".encode("ascii")).digest() for b in range(blocks))
    return int.from_bytes(data, "big") >> (256 * blocks - bits)
