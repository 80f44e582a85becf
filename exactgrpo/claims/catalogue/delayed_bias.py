"""Claims, true and false, about the bias of one late residual: which hypotheses the identity needs, and in which reading."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from exactgrpo.claims.catalogue.variables import entries, law, laws, nonnegative_number, number, numbers, one_of, ratio
from exactgrpo.claims.claim import Claim

RAC = "Retroactive Advantage Correction, arXiv:2606.27580, bias identity"

Atom = tuple[Any, Any, int, Any]
"""Probability, residual X, delay (0 or 1), clipped ratio at arrival: rationals, or Reals where an instance has them."""

VARIABLES: dict[str, Any] = {
    "cells": law(4),
    "residuals": entries(one_of(0, 1, -1, domain=number()), 2),
    "ratios": entries(one_of(1, "1/2", "3/2", domain=ratio()), 4),
    "weights": entries(one_of(1, 0, 2, domain=nonnegative_number()), 2),
}
"""Two residuals and the delays 0 and 1: `cells` are the masses of (residual 0, delay 0), (0, 1), (1, 0), (1, 1), `ratios` the ratios there,
`weights` is g(d)."""


def _atoms(cells: Sequence[Any], residuals: Sequence[Any], ratios: Sequence[Any]) -> list[Atom]:
    return [(p, residuals[i // 2], i % 2, rho) for i, (p, rho) in enumerate(zip(cells, ratios, strict=True)) if p != 0]


def _mean(atoms: Sequence[Atom], f: Callable[[Any, int, Any], Any]) -> Any:
    """E[f(X, D, rho) | the atoms]."""
    return sum(p * f(x, d, rho) for p, x, d, rho in atoms) / sum(p for p, _, _, _ in atoms)


def _bias(cells: Any, residuals: Any, ratios: Any, weights: Any) -> Any:
    """E[g(D) rho X] - E X over all joint outcomes."""
    return _mean(_atoms(cells, residuals, ratios), lambda x, d, rho: weights[d] * rho * x - x)


def _minus_slack(cells: Any, residuals: Any, ratios: Any, weights: Any) -> Any:
    atoms = _atoms(cells, residuals, ratios)
    return (_mean(atoms, lambda x, d, rho: weights[d]) - 1) * _mean(atoms, lambda x, d, rho: x)


def _three_terms(cells: Any, residuals: Any, ratios: Any, weights: Any) -> Any:
    atoms = _atoms(cells, residuals, ratios)
    mean, weight = _mean(atoms, lambda x, d, rho: x), _mean(atoms, lambda x, d, rho: weights[d])
    covariance = _mean(atoms, lambda x, d, rho: weights[d] * x) - weight * mean
    return (weight - 1) * mean + covariance + _mean(atoms, lambda x, d, rho: weights[d] * x * (rho - 1))


def _landing(atoms: Sequence[Atom], weights: Sequence[Any]) -> Iterator[list[Atom]]:
    """The atoms of each delay that lands with positive weight."""
    for delay in (0, 1):
        given = [atom for atom in atoms if atom[2] == delay]
        if given and weights[delay] != 0:
            yield given


def _landed(atoms: Sequence[Atom], weights: Sequence[Any]) -> list[Atom]:
    return [atom for given in _landing(atoms, weights) for atom in given]


def _ratio_mean_one(cells: Any, residuals: Any, ratios: Any, weights: Any) -> bool:
    atoms = _atoms(cells, residuals, ratios)
    return all(_mean(given, lambda x, d, rho: rho) == 1 for given in _landing(atoms, weights))


def _uncorrelated(cells: Any, residuals: Any, ratios: Any, weights: Any) -> bool:
    return all(_covariance(given) == 0 for given in _landing(_atoms(cells, residuals, ratios), weights))


def _covariance(atoms: Sequence[Atom]) -> Any:
    return _mean(atoms, lambda x, d, rho: rho * x) - _mean(atoms, lambda x, d, rho: rho) * _mean(atoms, lambda x, d, rho: x)


def _uninformative(cells: Any, residuals: Any, ratios: Any, weights: Any) -> bool:
    atoms = _atoms(cells, residuals, ratios)
    mean = _mean(atoms, lambda x, d, rho: x)
    return all(_mean(given, lambda x, d, rho: x) == mean for given in _landing(atoms, weights))


def _row_sums_to_one(cells: Any, residuals: Any, ratios: Any, weights: Any) -> bool:
    return bool(_mean(_atoms(cells, residuals, ratios), lambda x, d, rho: weights[d]) == 1)


H1 = "H1: the ratio has mean one given the delay"
H2 = "H2: ratio and residual are uncorrelated given the delay"
H3 = "H3: the delay does not tell about the mean of the residual"
HYPOTHESES = {H1: _ratio_mean_one, H2: _uncorrelated, H3: _uninformative}


def _marginally(condition: Callable[[Sequence[Atom]], bool]) -> Callable[..., bool]:
    def holds(cells: Any, residuals: Any, ratios: Any) -> bool:
        return condition(_atoms(cells, residuals, ratios))

    return holds


def _clamped(outcomes: Any, residuals: Any, bound: Any) -> Any:
    return sum(p * max(-bound, min(bound, x)) for p, x in zip(outcomes, residuals, strict=True))


CLAIMS = (
    Claim(
        "late-bias-is-minus-slack",
        "The bias of a late residual is minus the slack times its mean, the hypotheses read given the delay.",
        VARIABLES,
        left=_bias,
        right=_minus_slack,
        hypotheses=HYPOTHESES,
        source=RAC,
        latex=r"E[g(D) \rho X] - E X = -(1 - E g(D)) E X",
        theorem="C1_one (Delay.v)",
    ),
    Claim(
        "late-bias-in-three-terms",
        "The bias is minus slack times mean, plus the covariance of weight and residual, plus what the ratio does: always.",
        VARIABLES,
        left=_bias,
        right=_three_terms,
        latex=r"-(1 - E g) E X + \mathrm{Cov}(g(D), X) + E[g(D) X (\rho - 1)]",
        theorem="bias_decomposition (Delay.v)",
    ),
    Claim(
        "saturated-row-is-unbiased",
        "A residual whose row sums to one is injected without bias, the hypotheses read given the delay.",
        VARIABLES,
        left=_bias,
        right=0,
        hypotheses={**HYPOTHESES, "the row sums to one": _row_sums_to_one},
        source=RAC,
        latex=r"E g(D) = 1 \Rightarrow E[g(D) \rho X] = E X",
        theorem="C1_one (Delay.v)",
    ),
    Claim(
        "late-bias-with-marginal-hypotheses",
        "For the identity it is enough that the ratio has mean one and is uncorrelated with the residual over all delays together.",
        VARIABLES,
        left=_bias,
        right=_minus_slack,
        hypotheses={
            "the ratio has mean one": _marginally(lambda atoms: bool(_mean(atoms, lambda x, d, rho: rho) == 1)),
            "ratio and residual are uncorrelated": _marginally(lambda atoms: bool(_covariance(atoms) == 0)),
            H3: _uninformative,
        },
        source=RAC + ", read marginally",
        latex=r"E \rho = 1,\ \mathrm{Cov}(\rho, X) = 0",
        expected=False,
    ),
    Claim(
        "clamping-keeps-the-mean",
        "A clamp on the size of a residual does not change what is injected on average.",
        {**laws(2, "outcomes"), "residuals": numbers(2), "bound": nonnegative_number()},
        left=_clamped,
        right=lambda outcomes, residuals: sum(p * x for p, x in zip(outcomes, residuals, strict=True)),
        source="ours: a safety clamp on corrections",
        latex=r"E\, \mathrm{clamp}(X) = E X",
        expected=False,
    ),
)
