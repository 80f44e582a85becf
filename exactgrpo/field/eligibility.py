"""Eligibility traces of off-policy TD(lambda) with per-decision ratios."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exactgrpo.field.inputs import ZERO, positives, reals
from exactgrpo.numbers.real import Real


def eligibility_traces(features: Sequence[Any], ratios: Sequence[Any], *, gamma: Any, lambda_: Any) -> tuple[Real, ...]:
    """z_t = rho_t (gamma lambda z_{t-1} + phi_t), z_{-1} = 0, for one feature phi; rho_t = pi/mu > 0 acts once on each step.

    Source: Sutton and Barto, Reinforcement learning (2018), equation 12.25.

    >>> eligibility_traces([1, 1], [2, "1/2"], gamma=1, lambda_="1/2")
    (Real('2'), Real('1'))
    """
    phi = reals(features, "features")
    rho = positives(ratios, "ratios", length=len(phi), rule="a ratio of positive masses is positive")
    decay, trace, out = Real.of(gamma, "gamma") * Real.of(lambda_, "lambda_"), ZERO, []
    for x, w in zip(phi, rho, strict=True):
        trace = w * (decay * trace + x)
        out.append(trace)
    return tuple(out)
