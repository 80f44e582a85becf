"""The exact sampler: its law, its bits, and its ends."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction as F
from unittest import mock

import pytest

from exactgrpo import DrawError, InexactInputError, Problem, Prompt, Rational, Rows, Seed, Softmax, run
from exactgrpo.numbers.arithmetic import Column
from exactgrpo.numbers.ladder import Execution
from exactgrpo.numbers.rationals import Rationals
from exactgrpo.update import draws as module

DEPTH = 20


def draw(masses: Sequence[Sequence[F]], seed: int, *, t: int = 1, group_size: int = 4) -> tuple[tuple[int, ...], ...]:
    """Positions drawn from rational masses, through every rung that a run would use."""
    flat, rows = Column(m for row in masses for m in row), Rows(map(len, masses))
    execution = Execution(lambda arithmetic: Seed(seed).take(arithmetic, t, arithmetic.exact(flat), rows, group_size))
    assert execution.outcome is not None
    return execution.outcome


# ---- the bit rule, written anew from its description


def replayed(masses: Sequence[F], seed: int, t: int, prompt: int, sample: int) -> int:
    low, width = F(0), F(1)
    for block in range(100):
        digest = hashlib.sha256(f"{seed},{t},{prompt},{sample},{block}".encode("ascii")).digest()
        for bit in "".join(f"{byte:08b}" for byte in digest):
            width /= 2
            low += width * int(bit)
            for j in range(len(masses)):
                if sum(masses[:j]) <= low and low + width <= sum(masses[: j + 1]):
                    return j
    raise AssertionError("no cell after 25,600 bits")


@pytest.mark.parametrize("seed", [0, 1, -5, 2**200])
@pytest.mark.parametrize("t", [1, 3])
def test_draws_are_those_of_the_bit_rule(seed: int, t: int) -> None:
    masses = [[F(1, 2), F(1, 3), F(1, 6)], [F(1, 7), F(6, 7)], [F(1)], [F(1, 4)] * 4]
    expected = tuple(tuple(replayed(row, seed, t - 1, q, i) for i in range(8)) for q, row in enumerate(masses))
    assert draw(masses, seed, t=t, group_size=8) == expected


@pytest.mark.parametrize("length", [65, 200, 300, 700])
def test_a_cell_as_small_as_several_blocks_of_bits_is_found(length: int) -> None:
    # the second of three cells holds just the numbers that share `length` bits with the number of sample 0
    digests = (hashlib.sha256(f"8,0,0,0,{block}".encode("ascii")).digest() for block in range(4))
    start = int.from_bytes(b"".join(digests), "big") >> (1024 - length)
    masses = [F(start, 2**length), F(1, 2**length), 1 - F(start + 1, 2**length)]
    assert draw([masses], 8, group_size=2)[0] == (1, replayed(masses, 8, 0, 0, 1))


def test_seeded_runs_draw_by_the_bit_rule_from_the_current_policy() -> None:
    prompt = Prompt.of("q", ["a", "b", "c"], [1, 0, 2])
    problem = Problem.of(
        prompts=[prompt], family=Rational.of([["t", "1", "2 - t"]], parameters=["t"]), theta0=["1/3"], group_size=5, outer_iterations=3,
        inner_steps=1, epsilon="1/5", beta=0, step_size="1/100", draws=Seed(11),
    )  # fmt: skip
    result = run(problem)
    for t in range(3):
        old = result.steps[t].theta[0]
        low, high = old.enclose(60)
        by_bounds = {
            end: [replayed([end / 3, F(1, 3), (2 - end) / 3], 11, t, 0, i) for i in range(5)] for end in (low, high)
        }
        assert by_bounds[low] == by_bounds[high]
        assert ["abc".index(term.response) for term in result.steps[t].terms] == by_bounds[low]


def test_a_prompt_draws_the_same_whatever_stands_after_it() -> None:
    first = [F(1, 3), F(2, 3)]
    assert draw([first], 5)[0] == draw([first, [F(1, 2), F(1, 2)]], 5)[0]


# ---- the law


@pytest.mark.parametrize(
    "masses",
    [[F(1, 2), F(1, 2)], [F(1, 3), F(2, 3)], [F(1, 7), F(2, 7), F(4, 7)], [F(1, 1024), F(1023, 1024)], [F(1, 10)] * 10, [F(1)]],
)
def test_the_law_over_all_bit_strings_brackets_the_masses(masses: list[F]) -> None:
    """Walk the binary tree as the sampler does: a node inside one cell is a draw of that response with probability 2^-depth."""
    drawn, open_nodes = Counter[int](), [0, 1]
    for depth in range(1, DEPTH + 1):
        still = []
        for a in open_nodes:
            cell = cell_of(masses, a, depth)
            if cell is None:
                still += [2 * a, 2 * a + 1]
            else:
                drawn[cell] += 2 ** (DEPTH - depth)
        open_nodes = still
    undecided = F(len(open_nodes) // 2, 2**DEPTH)  # the last level was split once more
    others = [sum(masses[:j], F(0)) for j in range(1, len(masses)) if 2**DEPTH % sum(masses[:j], F(0)).denominator]
    assert undecided == F(len(others), 2**DEPTH)  # one node around each boundary that is no dyadic number of this depth, here
    for j, mass in enumerate(masses):
        lower = F(drawn[j], 2**DEPTH)
        assert lower <= mass <= lower + undecided


def cell_of(masses: list[F], bits: int, depth: int) -> int | None:
    """What the sampler itself says of one bit string: its draw if it ends there, None if it asks for more bits."""

    class MoreBits(Exception):
        pass

    def supply(seed: int, t: int, prompt: int, sample: int, count: int) -> int:
        if count != depth:
            raise MoreBits
        return bits

    with mock.patch.object(module, "_uniform_bits", supply), mock.patch.object(module, "FIRST_BITS", depth):
        try:
            ((j,),) = Seed(0).take(Rationals(), 1, Rationals().exact(Column(masses)), Rows([len(masses)]), 1)
        except MoreBits:
            return None
    return j


def test_two_hundred_thousand_draws_agree_with_the_masses_at_five_sigma() -> None:
    masses = [F(1, 2), F(1, 4), F(3, 16), F(1, 16)]
    size = 200_000
    (drawn,) = draw([masses], 2026, group_size=size)
    counts = Counter(drawn)
    for j, mass in enumerate(masses):
        sigma = math.sqrt(size * mass * (1 - mass))
        assert abs(counts[j] - size * mass) < 5 * sigma


def test_irrational_masses_are_drawn_at_five_sigma() -> None:
    prompt = Prompt.of("q", ["a", "b", "c"], [1, 1, 1])
    size = 20_000
    problem = Problem.of(
        prompts=[prompt], family=Softmax.of([[[0], [1], [2]]], size=1), theta0=["1/3"], group_size=size, outer_iterations=1, inner_steps=1,
        epsilon="1/5", beta=0, step_size=1, draws=Seed(3),
    )  # fmt: skip
    weights = [math.exp(k / 3) for k in range(3)]
    counts = Counter(term.response for term in run(problem).steps[0].terms)
    for response, weight in zip("abc", weights, strict=True):
        p = weight / sum(weights)
        assert abs(counts[response] - size * p) < 5 * math.sqrt(size * p * (1 - p))


# ---- ends


@pytest.mark.parametrize("masses", [[F(1, 2), F(1, 2)], [F(1, 4), F(1, 4), F(1, 2)], [F(1, 2**64), 1 - F(1, 2**64)]])
def test_cells_that_end_at_dyadic_numbers_are_decided_by_finitely_many_bits(masses: list[F]) -> None:
    assert all(0 <= j < len(masses) for j in draw([masses], 9, group_size=64)[0])


@pytest.mark.parametrize("depth", [1, 2, 20, 64])
def test_numbers_that_touch_a_boundary_of_one_half_end_at_once(depth: int) -> None:
    masses, half = [F(1, 2), F(1, 2)], 1 << (depth - 1)
    assert cell_of(masses, half, depth) == 1  # from one half on
    assert cell_of(masses, half - 1, depth) == 0  # up to one half


def test_a_single_response_needs_no_bits() -> None:
    with mock.patch.object(module, "_uniform_bits", return_value=0):
        assert draw([[F(1)]], 0) == ((0, 0, 0, 0),)


@pytest.mark.parametrize("seed", [0.5, True, "7", None])
def test_a_seed_is_an_integer(seed: object) -> None:
    with pytest.raises((DrawError, InexactInputError), match="a seed is an integer"):
        Seed(seed).check([], 2, 1)  # type: ignore[arg-type]
