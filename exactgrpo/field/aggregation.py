"""How token losses of several responses become one number: four conventions, equal only in special cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exactgrpo.field.inputs import positive, reals, sum_of
from exactgrpo.numbers.inputs import listed
from exactgrpo.numbers.real import Real


def token_mean(losses: Sequence[Sequence[Any]]) -> Real:
    """Sum over all tokens of all responses / number of tokens. Source: Yu et al., DAPO (2025), section 3.3 (verl: token-mean).

    >>> token_mean([[6], [1, 2, 3]])
    Real('3')
    """
    rows = _rows(losses)
    return sum_of([x for row in rows for x in row]) / sum(map(len, rows))


def mean_of_sequence_means(losses: Sequence[Sequence[Any]]) -> Real:
    """(1/G) sum_i (1/L_i) sum_t loss_it. Source: Shao et al., DeepSeekMath (2024), equation 3 (verl: seq-mean-token-mean).

    >>> mean_of_sequence_means([[6], [1, 2, 3]])
    Real('4')
    """
    rows = _rows(losses)
    return sum_of([sum_of(row) / len(row) for row in rows]) / len(rows)


def mean_of_sums(losses: Sequence[Sequence[Any]]) -> Real:
    """(1/G) sum_i sum_t loss_it. Source: verl, seq-mean-token-sum.

    >>> mean_of_sums([[6], [1, 2, 3]])
    Real('6')
    """
    rows = _rows(losses)
    return sum_of([sum_of(row) for row in rows]) / len(rows)


def constant_length(losses: Sequence[Sequence[Any]], *, length: Any) -> Real:
    """(1/G) sum_i (1/length) sum_t loss_it with one constant length > 0. Source: Liu et al. (2025), section 3 (Dr. GRPO).

    >>> constant_length([[6], [1, 2, 3]], length=3)
    Real('2')
    """
    return mean_of_sums(losses) / positive(length, "length", "a length is positive")


def _rows(losses: Any) -> list[list[Real]]:
    rows = [reals(row, f"losses[{i}]") for i, row in enumerate(listed(losses, "losses"))]
    return rows or [reals([], "losses")]
