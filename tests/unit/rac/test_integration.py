"""The two lines in a trainer: advantages that the queue corrects, against a sum over all signals ever made, written out by hand."""

from __future__ import annotations

from fractions import Fraction as F
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from exactgrpo import DelayQueue, Real
from exactgrpo.field.returns import gae as exact_gae
from exactgrpo.rac.clip import injected_elsewhere_gradient, injected_gradient

Floats = npt.NDArray[np.float64]

GAIN, CEILING, LENGTH, SIZE = 0.5, 1.25, 4, 4


def age_weight(step: int, delay: int) -> float:
    return 0.5**delay


class Rewards:
    """A reward manager with two slow channels: everything is a multiple of 1/8, so that floats are exact."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.under_way: list[dict[str, Any]] = []
        self.settled: list[dict[str, Any]] = []

    def ask(self, step: int, rollout: int) -> list[str]:
        for channel in ("verifier", "judge"):
            delay = 2 if channel == "verifier" else int(self.random.integers(0, 6))
            signal = {"step": step, "rollout": rollout, "channel": channel, "arrival": None if delay == 5 else step + delay}
            self.under_way.append(signal | {"residual": self.dyadic(-8, 9), "ratio": self.dyadic(1, 17)})
        return ["verifier", "judge"]

    def dyadic(self, low: int, high: int) -> float:
        return float(self.random.integers(low, high)) / 8

    def answers(self, step: int) -> list[dict[str, Any]]:
        there = [s for s in self.under_way if s["arrival"] == step]
        self.settled += there
        return there

    def by_hand(self, step: int, rollout: int) -> float:
        total = 0.0
        for s in self.settled:
            if s["rollout"] == rollout and s["arrival"] + 1 == step:
                weight = GAIN * age_weight(s["step"], s["arrival"] - s["step"]) if s["channel"] == "judge" else 1.0
                total += weight * min(CEILING, s["ratio"]) * s["residual"]
        return total


def new_queue(number: Any = float) -> DelayQueue:
    judge = {"gain": number(GAIN), "weights": lambda step, delay: number(age_weight(step, delay))}
    return DelayQueue({"verifier": {}, "judge": judge}, ceiling=number(CEILING), numbers=Real if number is F else float)


def group_advantages(rewards: Floats) -> Floats:
    spread = rewards.std()
    return (rewards - rewards.mean()) / (spread if spread > 0 else 1.0)


def gae(rewards: Floats, values: Floats, decay: float, gamma: float) -> Floats:
    """Rows of tokens; the value after the last is zero."""
    after = np.concatenate([values[:, 1:], np.zeros((len(values), 1))], axis=1)
    errors = rewards + gamma * after - values
    out, following = np.zeros_like(errors), np.zeros(len(errors))
    for t in reversed(range(errors.shape[1])):
        following = errors[:, t] + decay * following
        out[:, t] = following
    return out


def batches(seed: int, steps: int, queues: list[tuple[DelayQueue, Any]]) -> Any:
    """The trainer's loop around the two lines: step, new rollouts, injections of each queue, and the reward manager."""
    rewards = Rewards(seed)
    for step in range(steps):
        fresh = list(range(SIZE * step, SIZE * (step + 1)))
        for rollout in fresh:
            for channel in rewards.ask(step, rollout):
                for queue, _ in queues:
                    queue.enqueue(step, rollout, channel)
        for s in rewards.answers(step):
            for queue, number in queues:
                queue.arrive(step, s["rollout"], s["channel"], residual=number(s["residual"]), ratio=number(s["ratio"]))
        yield step, fresh, [queue.inject(step) for queue, _ in queues], rewards


@pytest.mark.parametrize("seed", range(3))
def test_group_advantages_are_corrected_as_by_hand(seed: int) -> None:
    queue, exact = new_queue(), new_queue(F)
    corrections = 0
    for step, fresh, (late, exactly), rewards in batches(seed, 30, [(queue, float), (exact, F)]):
        fast = group_advantages(rewards.random.integers(0, 2, SIZE).astype(float))

        rows = fresh + late.rollouts
        advantages = np.append(fast, np.zeros(len(late.rollouts)))
        corrected = advantages + late.deltas(rows)

        by_hand = [rewards.by_hand(step, rollout) for rollout in rows]
        assert np.array_equal(corrected, advantages + np.array(by_hand))
        assert [x.as_fraction() for x in exactly.deltas(rows)] == [F(x) for x in by_hand]  # bit for bit
        others = {s["rollout"] for s in rewards.settled} - set(rows)
        assert all(rewards.by_hand(step, rollout) == 0 for rollout in others)  # nothing is due elsewhere
        corrections += len(late)
    assert corrections > 100
    assert queue.counts() == exact.counts()
    assert queue.counts().enqueued == 30 * SIZE * 2 == corrections + queue.counts().waiting + queue.counts().due


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("gamma", "lam"), [(1.0, 1.0), (0.5, 0.5), (1.0, 0.5)])
def test_token_advantages_are_corrected_as_if_the_last_reward_had_been_there(seed: int, gamma: float, lam: float) -> None:
    queue = new_queue()
    for step, fresh, (late,), rewards in batches(seed, 12, [(queue, float)]):
        rows = fresh + late.rollouts
        tokens = np.array([[rewards.dyadic(-4, 5) for _ in range(LENGTH)] for _ in rows])
        values = np.array([[rewards.dyadic(-4, 5) for _ in range(LENGTH)] for _ in rows])
        advantages = gae(tokens, values, gamma * lam, gamma)

        decay = (gamma * lam) ** np.arange(LENGTH)[::-1]
        corrected = advantages + np.array(late.deltas(rows))[:, None] * decay

        for row, rollout in enumerate(rows):
            tokens[row, -1] += rewards.by_hand(step, rollout)
        assert np.array_equal(corrected, gae(tokens, values, gamma * lam, gamma))
        exactly = exact_gae([F(x) for x in tokens[-1]], [F(x) for x in values[-1]], gamma=F(gamma), lambda_=F(lam), bootstrap=0)
        assert [F(x) for x in corrected[-1]] == [x.as_fraction() for x in exactly]


def test_a_resumed_run_goes_on_bit_for_bit() -> None:
    straight, resumed = new_queue(), new_queue()
    seen = []
    for step, _, (late,), _ in batches(5, 20, [(straight, float)]):
        seen.append((step, late.items))
    again = []
    rewards = Rewards(5)
    for step in range(20):
        for rollout in range(SIZE * step, SIZE * (step + 1)):
            for channel in rewards.ask(step, rollout):
                resumed.enqueue(step, rollout, channel)
        resumed = DelayQueue.restore(resumed.state(), weights={"judge": age_weight_of_judge})
        for s in rewards.answers(step):
            resumed.arrive(step, s["rollout"], s["channel"], residual=s["residual"], ratio=s["ratio"])
        again.append((step, resumed.inject(step).items))
    assert seen == again


def age_weight_of_judge(step: int, delay: int) -> float:
    return age_weight(step, delay)


def test_an_injection_on_its_own_rollout_is_the_gradient_that_was_missing() -> None:
    # E_mu[rho X score] over both answers: 3/8 without a clip, 5/16 with ceiling 1; on another rollout of the current policy: 0
    mu, pi, slopes, x = [F(1, 2)] * 2, [F(3, 4), F(1, 4)], [F(3, 16), F(-3, 16)], [1, -1]
    for ceiling, expected in ((None, F(3, 8)), (1, F(5, 16))):
        total = elsewhere = Real(0)
        for y in range(2):
            queue = DelayQueue({"judge": {}}, offset=1, ceiling=ceiling)
            queue.enqueue(0, "old", "judge")
            queue.inject(0)
            queue.arrive(1, "old", "judge", residual=x[y], ratio=pi[y] / mu[y])
            queue.inject(1)
            (delta,) = queue.inject(2).deltas(["old"])
            total += mu[y] * delta * slopes[y] / pi[y]
            elsewhere += sum((mu[y] * pi[z] * delta * slopes[z] / pi[z] for z in range(2)), Real(0))
        assert total == expected == injected_gradient(mu, pi, slopes, x, ceiling=ceiling)
        assert elsewhere == 0 == injected_elsewhere_gradient(pi, pi, slopes)
