"""What a competent user writes by hand for one softmax problem: the same update in numpy, and in python-flint balls."""

from __future__ import annotations

from typing import Any

import numpy as np
from flint import arb, arb_mat, fmpq

from .cases import SoftmaxCase


class NumpyUpdate:
    """Vectorised float64: prompts are rows, responses columns, and both products with the features are BLAS calls."""

    def __init__(self, case: SoftmaxCase) -> None:
        m, n = case.prompts, case.responses
        self.features = np.array(case.features, float)
        self.log_reference = np.log(np.array(case.reference, float))
        self.weight = np.zeros((m, n))
        for term in case.terms():
            advantage = float(term.deviation) / float(term.variance) ** 0.5
            self.weight[term.prompt, term.response] = term.count * advantage / (m * case.group_size)
        self.positive, self.negative = self.weight > 0, self.weight < 0
        self.high, self.low = 1 + float(case.epsilon), 1 - float(case.epsilon)
        self.beta, self.step_size = float(case.beta) / m, float(case.step_size)
        self.theta0 = np.array(case.theta0, float)

    def log_policy(self, theta: Any) -> Any:
        z = self.features @ theta
        z -= z.max(axis=1, keepdims=True)
        return z - np.log(np.exp(z).sum(axis=1, keepdims=True))

    def step(self, theta: Any, log_old: Any) -> tuple[Any, Any]:
        """(theta after one inner step, which terms are unclipped)."""
        log_p = self.log_policy(theta)
        p, rho = np.exp(log_p), np.exp(log_p - log_old)
        active = (self.positive & (rho < self.high)) | (self.negative & (rho > self.low))
        gain = self.weight * rho * active
        gap = log_p - self.log_reference
        kl = (p * gap).sum(axis=1, keepdims=True)
        slope = gain - p * (gain.sum(axis=1, keepdims=True) + self.beta * (gap - kl))
        return theta + self.step_size * np.tensordot(slope, self.features, 2), active


class BallUpdate:
    """python-flint balls: one feature matrix for each prompt, lists of balls, one comparison for each term."""

    def __init__(self, case: SoftmaxCase) -> None:
        d = len(case.theta0)
        self.features = [arb_mat(len(f), d, [ball(x) for row in f for x in row]) for f in case.features]
        self.transposed = [f.transpose() for f in self.features]
        self.log_reference = [[ball(x).log() for x in row] for row in case.reference]
        self.terms: list[list[tuple[int, bool, Any]]] = [[] for _ in range(case.prompts)]
        for term in case.terms():
            advantage = ball(term.deviation) / ball(term.variance).sqrt()
            weight = advantage * term.count / (case.group_size * case.prompts)
            self.terms[term.prompt].append((term.response, term.deviation > 0, weight))
        self.high, self.low = ball(1 + case.epsilon), ball(1 - case.epsilon)
        self.beta, self.step_size = ball(case.beta / case.prompts), ball(case.step_size)
        self.theta0 = arb_mat(d, 1, [ball(x) for x in case.theta0])

    def policy(self, q: int, theta: Any) -> tuple[list[Any], list[Any]]:
        """(masses, log masses) of one prompt."""
        logits = (self.features[q] * theta).entries()
        weights = [z.exp() for z in logits]
        total = sum(weights[1:], weights[0])
        inverse, log_total = 1 / total, total.log()
        return [w * inverse for w in weights], [z - log_total for z in logits]

    def old(self, theta: Any) -> list[list[Any]]:
        return [self.policy(q, theta)[0] for q in range(len(self.features))]

    def step(self, theta: Any, old: list[list[Any]]) -> tuple[Any, list[tuple[int, int]]]:
        """(theta after one inner step, the (prompt, response) of unclipped terms); every comparison is certified."""
        gradient, unclipped = theta * 0, []
        for q, terms in enumerate(self.terms):
            p, log_p = self.policy(q, theta)
            gap = [x - y for x, y in zip(log_p, self.log_reference[q], strict=True)]
            weighted = [x * y for x, y in zip(p, gap, strict=True)]
            kl = sum(weighted[1:], weighted[0])
            gain, total = {}, arb(0)
            for y, is_positive, weight in terms:
                rho = p[y] / old[q][y]
                bound = self.high if is_positive else self.low
                if rho < bound:
                    inside = is_positive
                elif rho > bound:
                    inside = not is_positive
                else:
                    raise ArithmeticError("the precision is too low to decide a comparison")
                if inside:
                    gain[y] = weight * rho
                    total = total + gain[y]
                    unclipped.append((q, y))
            rest = self.beta * kl - total
            slope = [rest * x - self.beta * y for x, y in zip(p, weighted, strict=True)]
            for y, g in gain.items():
                slope[y] = slope[y] + g
            gradient = gradient + self.transposed[q] * arb_mat(len(slope), 1, slope)
        return theta + gradient * self.step_size, unclipped


def ball(x: Any) -> arb:
    return arb(fmpq(x.numerator, x.denominator))
