"""The bias of delayed correction: its expectation over all joint outcomes, what the closed form says, and what makes the difference."""

from __future__ import annotations

from dataclasses import dataclass

from exactgrpo.field.inputs import ONE, ZERO
from exactgrpo.rac.outcomes import Model
from exactgrpo.rac.values import Value, is_zero, settled, total


@dataclass(frozen=True, slots=True)
class BiasTerms:
    """The bias of one residual in three terms, an identity without hypotheses.

    E[g(D) rho X] - E X = -slack E X + Cov(g(D), X) + E[g(D) X (rho - 1)], with the slack 1 - E g(D) of the law that the outcomes give the
    delay. Theorem: bias_decomposition (Delay.v).
    """

    channel: int
    step: int
    injected: Value
    mean_residual: Value
    slack: Value
    from_slack: Value
    from_informative_delay: Value
    from_ratio: Value

    @property
    def bias(self) -> Value:
        """E J - E X, from the expectation over all joint outcomes."""
        return settled(self.injected - self.mean_residual)


@dataclass(frozen=True, slots=True)
class Bias:
    """The bias of a model, in all and by term, step and channel, beside what the identity -sum slack E X says.

    `by_step`[s] is E[what is injected at s] - E[what step s brought], `naive` the bias of injecting nothing. `variance` is that of the
    injected sum, `mean_squared_error` adds the square of the bias.
    """

    terms: tuple[BiasTerms, ...]
    by_step: tuple[Value, ...]
    variance: Value

    @property
    def injected(self) -> Value:
        return total(term.injected for term in self.terms)

    @property
    def owed(self) -> Value:
        return total(term.mean_residual for term in self.terms)

    @property
    def cumulative(self) -> Value:
        return settled(self.injected - self.owed)

    @property
    def closed_form(self) -> Value:
        """-sum slack E X."""
        return total(term.from_slack for term in self.terms)

    @property
    def naive(self) -> Value:
        return settled(-self.owed)

    @property
    def mean_squared_error(self) -> Value:
        return settled(self.variance + self.cumulative * self.cumulative)

    @property
    def is_closed_form(self) -> bool:
        """Whether the bias is what the identity says, for whatever reason. UndecidedError if that is not decided."""
        return is_zero(self.cumulative - self.closed_form)

    @property
    def is_unbiased(self) -> bool:
        return is_zero(self.cumulative)


def expected_bias(model: Model) -> Bias:
    """The bias by brute force: expectations over every outcome, delay and ratio; nothing is assumed of their dependence.

    With X the residual, J = g(t, D) rho X what is injected of it: cumulative bias sum_{k,t} E J - E X. The cost is one product for each
    outcome, delay, channel and step. Source of the identity: Retroactive Advantage Correction, arXiv:2606.27580; the terms are ours.
    Theorems: bias_decomposition, total_decomposition, C1_total (Delay.v).

    >>> from exactgrpo.rac.kernel import Channel, Kernel
    >>> from exactgrpo.rac.outcomes import Outcome
    >>> channel = Channel.of("judge", {0: 1})
    >>> outcomes = [Outcome.of("1/2", [channel], residual={"judge": x}, ratio={"judge": rho}) for x, rho in ((1, "3/2"), (-1, "1/2"))]
    >>> bias = expected_bias(Model.of(Kernel.of([channel], horizon=1, offset=0), outcomes))
    >>> bias.cumulative, bias.closed_form, bias.terms[0].from_ratio
    (Real('1/2'), Real('0'), Real('1/2'))
    """
    kernel = model.kernel
    at_step: list[list[Value]] = [[] for _ in range(kernel.horizon + kernel.drain)]
    terms = []
    for k, t in model.cells():
        atoms = model.atoms(k, t)
        weights = [model.weight(k, t, atom) for atom in atoms]
        parts = [settled(a.probability * g * a.ratio * a.residual) for a, g in zip(atoms, weights, strict=True)]
        for atom, part in zip(atoms, parts, strict=True):
            if atom.delay is not None and kernel.lands(t, atom.delay):
                at_step[t + atom.delay + kernel.offset].append(part)
        mean = total(settled(a.probability * a.residual) for a in atoms)
        at_step[t].append(settled(-mean))
        reached = total(settled(a.probability * g) for a, g in zip(atoms, weights, strict=True))
        product = total(settled(a.probability * g * a.residual) for a, g in zip(atoms, weights, strict=True))
        from_ratio = total(settled(a.probability * g * a.residual * (a.ratio - ONE)) for a, g in zip(atoms, weights, strict=True))
        slack = settled(ONE - reached)
        terms.append(BiasTerms(k, t, total(parts), mean, slack, settled(-slack * mean), settled(product - reached * mean), from_ratio))
    return Bias(tuple(terms), tuple(map(total, at_step)), _variance(model))


def _variance(model: Model) -> Value:
    """The variance of the injected sum: rollouts are independent, channels are so given the outcome."""
    parts: list[Value] = []
    for t, outcomes in enumerate(model.outcomes):
        means, squares = [], []
        for outcome in outcomes:
            first, spread = ZERO, ZERO
            for k, signal in enumerate(outcome.signals):
                injected = [
                    (mass, settled(model.kernel.weight(k, t, d) * rho * signal.residual))
                    for (d, mass), rho in zip(signal.delay.masses, signal.ratios, strict=True)
                ]
                mean = total(settled(mass * x) for mass, x in injected)
                spread = settled(spread + total(settled(mass * x * x) for mass, x in injected) - mean * mean)
                first = settled(first + mean)
            means.append(settled(outcome.probability * first))
            squares.append(settled(outcome.probability * (spread + first * first)))
        mean = total(means)
        parts.append(settled(total(squares) - mean * mean))
    return total(parts)
