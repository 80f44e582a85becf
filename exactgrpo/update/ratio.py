"""The sequence-level importance ratio from token masses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exactgrpo.errors import InputError
from exactgrpo.numbers.inputs import listed
from exactgrpo.numbers.real import Real


def sequence_ratio(policy: Sequence[Any], old: Sequence[Any]) -> Real:
    """rho = prod_i pi(y_i | q, y_<i) / pi_old(y_i | q, y_<i): the product over the tokens of one response.

    Only the product is a change of measure, E_old[rho f] = E_pi[f]; a mean of log-ratios is another estimator. Masses are positive
    exact numbers, one for each token. Theorems: token_ratio_eq, token_change_of_measure (Tokens.v).

    >>> sequence_ratio(["3/4", "1/3"], ["1/2", "1/2"])
    Real('1')
    """
    news, olds = listed(policy, "policy"), listed(old, "old")
    if len(news) != len(olds) or not news:
        raise InputError("old", f"{len(olds)} masses", f"one mass for each of the {len(news)} tokens, at least one")
    rho = Real.of(1)
    for i, (new_mass, old_mass) in enumerate(zip(news, olds, strict=True)):
        new, before = Real.of(new_mass, f"policy[{i}]"), Real.of(old_mass, f"old[{i}]")
        if new <= 0 or before <= 0:
            raise InputError(f"policy[{i}]" if new <= 0 else f"old[{i}]", repr(new if new <= 0 else before), "a token mass is positive")
        rho = rho * new / before
    return rho
