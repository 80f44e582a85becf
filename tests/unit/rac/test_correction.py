"""Late residuals in a group that is normalised: hand-worked instances, and advantages of the sums as the second route."""

from __future__ import annotations

from fractions import Fraction as F
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from exactgrpo import DelayQueue, InexactInputError, InputError, Real, advantages
from exactgrpo.field.advantages import dr_grpo, rloo, sample_normalised
from exactgrpo.rac.correction import exact_injection, group_correction
from exactgrpo.strategies import rationals

CONVENTIONS: Any = [advantages, dr_grpo, rloo, sample_normalised]


@st.composite
def groups(draw: st.DrawFn) -> tuple[list[F], list[F]]:
    size = draw(st.integers(2, 5))
    numbers = st.lists(rationals(denominator=3), min_size=size, max_size=size)
    return draw(numbers), draw(numbers)


def test_a_residual_added_to_the_advantages_can_cancel_them() -> None:
    # fast (1, 0), slow (0, 1): X = (-1, 1). A(1, 0) + X = (1, -1) + (-1, 1), and the truth is A(0, 1)
    seen = group_correction([1, 0], [-1, 1])
    assert (seen.fast, seen.added, seen.injected, seen.complete) == ((1, -1), (0, 0), (-1, 1), (-1, 1))
    assert exact_injection([1, 0], [-1, 1]) == (-2, 2)


def test_a_group_of_which_half_has_arrived_tells_apart_what_is_equal() -> None:
    # fast (0, 0), slow (1, 1): after one arrival the rewards are (1, 0)
    for seen in (group_correction([0, 0], [1, 1], arrived=[True, False]), group_correction([0, 0], [1, None])):
        assert (seen.fast, seen.added, seen.injected) == ((0, 0), (1, 0), (1, -1))
    assert group_correction([0, 0], [1, 1], arrived=[True, False]).complete == (0, 0)
    assert exact_injection([0, 0], [1, None]) == (1, -1)
    assert exact_injection([1, 0], [None, 1]) == (-1, 1)


def test_irrational_residuals_are_injected_exactly() -> None:
    assert exact_injection([0, 0, 0], ["sqrt(2)", "sqrt(2)", "sqrt(8)/2"]) == (0, 0, 0)
    assert exact_injection([0, 0], ["sqrt(2)", "1.41421356"]) == (1, -1)


@given(groups(), st.sampled_from(CONVENTIONS))
@settings(max_examples=100, deadline=None)
def test_exact_injection_gives_the_advantages_of_the_sums(group: Any, convention: Any) -> None:
    fast, late = group
    delta = exact_injection(fast, late, convention=convention)
    corrected = [a + d for a, d in zip(convention(fast), delta, strict=True)]
    assert corrected == list(convention([r + x for r, x in zip(fast, late, strict=True)]))


@given(groups(), st.data(), st.sampled_from(CONVENTIONS))
@settings(max_examples=60, deadline=None)
def test_injections_one_after_the_other_sum_to_the_whole(group: Any, data: st.DataObject, convention: Any) -> None:
    fast, late = group
    rewards, total = list(fast), [Real(0)] * len(fast)
    for i in data.draw(st.permutations(range(len(fast)))):
        delta = exact_injection(rewards, [late[i] if j == i else None for j in range(len(fast))], convention=convention)
        total = [a + d for a, d in zip(total, delta, strict=True)]
        rewards[i] += late[i]
    assert total == list(exact_injection(fast, late, convention=convention))


@given(groups(), rationals())
@settings(max_examples=60, deadline=None)
def test_a_residual_that_all_share_is_erased_in_rewards_and_kept_in_advantages(group: Any, shared: F) -> None:
    fast = group[0]
    assert set(map(str, exact_injection(fast, [shared] * len(fast)))) == {"Real('0')"}
    seen = group_correction(fast, [shared] * len(fast))
    assert seen.added == tuple(a + shared for a in seen.fast)


def test_corrections_of_the_queue_are_residuals_of_the_group() -> None:
    # gain 1/2 and ratio 1/2: X = (4, 0) arrives as (1, 0)
    queue = DelayQueue({"judge": {"gain": "1/2"}}, offset=0)
    for rollout, x in (("a", 4), ("b", 0)):
        queue.enqueue(0, rollout, "judge", delay=0, residual=x, ratio="1/2")
    assert exact_injection([0, 0], queue.inject(0).deltas(["a", "b"])) == (1, -1)


def test_floats_take_a_convention_on_floats() -> None:
    def centred(rewards: list[float]) -> list[float]:
        return [r - sum(rewards) / len(rewards) for r in rewards]

    assert exact_injection([0.5, 0.25], [0.25, None], convention=centred, numbers=float) == (0.125, -0.125)
    with pytest.raises(InexactInputError, match=r"rewards\[0\]"):
        exact_injection([0.5, 0.25], [0.25, None])
    with pytest.raises(InexactInputError, match=r"rewards\[0\]"):  # exact advantages of floats
        exact_injection([0.5, 0.25], [0.25, None], numbers=float)
    with pytest.raises(InputError, match=r"residuals\[0\]: nan: a finite float"):
        exact_injection([0.5, 0.25], [float("nan"), None], convention=centred, numbers=float)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"residuals": [1]}, "residuals: '1 entries': one for each of the 2 rewards"),
        ({"arrived": [True]}, "arrived: '1 entries'"),
        ({"arrived": [1, 0]}, "arrived: .*: true or false"),
        ({"rewards": 3}, "rewards: 3: a list"),
        ({"rewards": [], "residuals": []}, "rewards: "),
        ({"convention": lambda rewards: rewards[:1]}, "convention: '1 advantages'"),
        ({"numbers": int}, "numbers: "),
    ],
)
def test_bad_groups_are_refused(options: Any, text: str) -> None:
    with pytest.raises(InputError, match=text) as error:
        group_correction(**({"rewards": [1, 0], "residuals": [0, 1]} | options))
    assert "\n" not in str(error.value)


def test_a_batch_holds_each_rollout_once_and_all_that_are_due() -> None:
    queue = DelayQueue({"judge": {}}, offset=0)
    queue.enqueue(0, 7, "judge", delay=0, residual=1, ratio=1)
    due = queue.inject(0)
    for batch, text in (
        ([1], "rollouts: 'no rollout 7': its correction is due at step 0"),
        ([7, 7], r"rollouts\[1\]: 7: a rollout stands once in a batch"),
        ([7, None], r"rollouts\[1\]: None: a rollout is named by"),
        ("7", "rollouts: '7': a list is needed"),
    ):
        with pytest.raises(InputError, match=text):
            due.deltas(batch)
