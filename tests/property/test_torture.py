"""Signs known by construction: none may be wrong, none of the unconditional classes undecided."""

from __future__ import annotations

import pytest
import torture

CHUNKS = 4  # so large that the share of undecided cases in each is near the mean
EVERY_RUN = 50_000
LONG_RUN = 1_000_000
SEED = 1


def _check(summary: torture.Summary) -> None:
    assert summary.wrong == [], summary.line()
    assert summary.contradicted == [], summary.line()
    assert sum(summary.undecided[name] for name in torture.UNCONDITIONAL) == 0, summary.line()
    assert 1000 * summary.undecided.total() <= summary.count, summary.line()


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_sign_is_wrong(chunk: int) -> None:
    size = EVERY_RUN // CHUNKS
    summary = torture.run(chunk * size, (chunk + 1) * size, SEED)
    _check(summary)
    assert summary.zeros > size // 3  # the test would be idle if zeros were rare


@pytest.mark.long
@pytest.mark.timeout(6 * 3600)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_sign_is_wrong_in_a_million(chunk: int) -> None:
    size = LONG_RUN // CHUNKS
    _check(torture.run(chunk * size, (chunk + 1) * size, SEED + 1))


def test_interval_check_notices_a_wrong_sign() -> None:
    case = torture.Case(torture.minus(torture.rt(torture.q(2)), torture.q(1)), 1, torture.MULTIQUADRATIC)
    assert not torture.contradicts(case, 1, digits=50)
    assert torture.contradicts(case, -1, digits=50)
    assert torture.contradicts(case, 0, digits=50)
