"""What an audit makes of its verdicts: surprises, and what stays open."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from exactgrpo.claims.audit import Audit
from exactgrpo.claims.claim import Claim
from exactgrpo.claims.verdict import Kind, Verdict


def audit(kind: Kind, *, expected: bool) -> Audit:
    claim = Claim("c", "c", {"x": st.integers()}, left=lambda x: x, right=0, expected=expected)
    return Audit(verdicts=[Verdict(claim, kind, "", 0)])


@pytest.mark.parametrize(
    ("kind", "expected", "surprise", "is_open"),
    [
        ("proved", True, False, False),
        ("holds", True, False, False),
        ("refuted", True, True, False),
        ("vacuous", True, False, True),
        ("undecided", True, False, True),
        ("refuted", False, False, False),
        ("holds", False, True, False),
        ("proved", False, True, False),
        ("vacuous", False, False, True),
        ("undecided", False, False, True),
    ],
)
def test_surprises_and_open_questions(kind: Kind, expected: bool, surprise: bool, is_open: bool) -> None:
    made = audit(kind, expected=expected)
    assert (made.has_surprise, made.is_open) == (surprise, is_open)
