"""Hypothesis strategies of exact data. Each describes a range of valid values, is bounded, and shrinks towards the simplest of them.

Options are keyword-only and checked at once: InputError for a range without values. Nothing yields a float. `import exactgrpo` does not
import this package, so that Hypothesis is imported only where strategies are used.
"""

from exactgrpo.strategies.bounds import (
    near_misses,
    problems_at_a_tangency,
    problems_on_a_bound,
    problems_on_a_kink,
    problems_on_a_smooth_tie,
)
from exactgrpo.strategies.numbers import (
    binary_rewards,
    epsilons,
    positive_rationals,
    positive_simplex_points,
    rationals,
    ratios,
    reward_groups,
    simplex_points,
)
from exactgrpo.strategies.policies import FAMILIES, PolicyAt, policies
from exactgrpo.strategies.problems import problems

__all__ = [
    "FAMILIES",
    "PolicyAt",
    "binary_rewards",
    "epsilons",
    "near_misses",
    "policies",
    "positive_rationals",
    "positive_simplex_points",
    "problems",
    "problems_at_a_tangency",
    "problems_on_a_bound",
    "problems_on_a_kink",
    "problems_on_a_smooth_tie",
    "rationals",
    "ratios",
    "reward_groups",
    "simplex_points",
]
