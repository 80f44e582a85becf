"""Strategies of whole updates, and how a drawn one prints: as the data of its file."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from exactgrpo.errors import InputError
from exactgrpo.numbers.display import exact_text
from exactgrpo.numbers.inputs import whole
from exactgrpo.numbers.rational import Exact, exact
from exactgrpo.numbers.symbols import node
from exactgrpo.spec.writing import problem_data
from exactgrpo.strategies.numbers import Strategy, check_sizes, epsilons, positive_simplex_points
from exactgrpo.strategies.policies import FAMILIES, Family, PolicyAt, check_families, policies
from exactgrpo.update.domain import sign
from exactgrpo.update.draws import Tape
from exactgrpo.update.problem import Problem, Prompt
from exactgrpo.update.reference import Reference, ReferenceLogits, ReferenceMasses, ReferenceParameter

_STEP_SIZES = (Fraction(1, 16), Fraction(1, 4), Fraction(1))
_IRRATIONAL_STEP_SIZES = ("sqrt(2)/16", "log(2)/4", "exp(-2)")
_BETAS = (Fraction(0), Fraction(1, 10))


class DrawnProblem(Problem):
    """A problem that prints as Python data: `exactgrpo.spec.problem(exactgrpo.spec.loaded(data))` builds it again."""

    def __repr__(self) -> str:
        try:
            return repr(problem_data(self))
        except InputError:  # a number without an exact text of reasonable length
            low, high = (exact_text(node(x)) or repr(node(x)) for x in (self.epsilon_low, self.epsilon_high))
            return f"<{type(self.family).__name__} problem, epsilon {low}, {high}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """How Hypothesis prints a failing example."""
        printer.text(repr(self))


def problems(
    *,
    families: Sequence[Family] = FAMILIES,
    beta: Any = None,
    max_prompts: int = 2,
    max_responses: int = 3,
    min_group_size: int = 2,
    max_group_size: int = 4,
    max_steps: int = 3,
    irrational_steps: bool = False,
) -> Strategy[Problem]:
    """Updates of the families with supplied draws; theta0 lies in U, everything else is small.

    `beta` is a fixed penalty weight; without it, 0 and 1/10 occur. Group sizes go from `min_group_size` to `max_group_size`, outer
    iterations to 2, inner steps to `max_steps`. Thresholds may differ; references are masses, logits or the family at theta0.
    Everything is rational, except that with `irrational_steps` step sizes may be roots, logarithms and exponentials.

    >>> problems(max_responses=1)
    Traceback (most recent call last):
    exactgrpo.errors.InputError: max_responses: 1: an integer of at least 2
    """
    check_families(families)
    check_sizes(min_group_size, max_group_size, "group_size", least=2)
    whole(max_steps, "max_steps", least=1)
    if not isinstance(irrational_steps, bool):
        raise InputError("irrational_steps", irrational_steps, "True or False")
    weights: Sequence[Exact] = _BETAS if beta is None else (exact(beta, "beta"),)
    if sign(weights[0], "beta >= 0") < 0:
        raise InputError("beta", str(beta), "beta >= 0")
    drawn = policies(families=families, max_prompts=max_prompts, max_responses=max_responses)
    sizes = (*_STEP_SIZES, *(_IRRATIONAL_STEP_SIZES if irrational_steps else ()))
    return _problems(drawn, weights, (min_group_size, max_group_size), max_steps, sizes)


@st.composite
def _problems(
    draw: st.DrawFn,
    policies: Strategy[PolicyAt],
    betas: Sequence[Exact],
    group_sizes: tuple[int, int],
    max_steps: int,
    step_sizes: Sequence[Any],
) -> Problem:
    policy = draw(policies)
    prompts = [
        Prompt.of(name, responses, draw(st.lists(st.integers(0, 3), min_size=len(responses), max_size=len(responses))))
        for name, responses in zip(policy.prompts, policy.responses, strict=True)
    ]
    size, outer, inner = draw(st.integers(*group_sizes)), draw(st.integers(1, 2)), draw(st.integers(1, max_steps))
    draws = [[draw(st.lists(st.sampled_from(p.responses), min_size=size, max_size=size)) for p in prompts] for _ in range(outer)]
    epsilon = draw(epsilons(denominator=5))
    return DrawnProblem.of(
        prompts=prompts,
        family=policy.family,
        theta0=policy.theta0,
        group_size=size,
        outer_iterations=outer,
        inner_steps=inner,
        epsilon=(epsilon, draw(st.just(epsilon) | st.sampled_from((Fraction(1, 3), Fraction(3, 2))))),
        beta=draw(st.sampled_from(betas)),
        step_size=draw(st.sampled_from(step_sizes)),
        draws=Tape.of(draws, prompts),
        reference=draw(_references(policy)),
    )


def _references(policy: PolicyAt) -> Strategy[Reference]:
    lengths = [len(responses) for responses in policy.responses]
    masses = st.tuples(*(positive_simplex_points(size=n, weight=3) for n in lengths)).map(ReferenceMasses.of)
    logits = st.tuples(*(st.lists(st.integers(-1, 1), min_size=n, max_size=n) for n in lengths)).map(ReferenceLogits.of)
    return masses | logits | st.just(ReferenceParameter.of(policy.theta0))


def changed(problem: Problem, **changes: Any) -> Problem:
    """The problem with some of the arguments of `Problem.of` replaced; it prints as its data."""
    inner, sizes = problem.inner_steps, problem.step_sizes
    fields: dict[str, Any] = {
        "prompts": problem.prompts,
        "family": problem.family,
        "theta0": problem.theta0,
        "group_size": problem.group_size,
        "outer_iterations": problem.outer_iterations,
        "inner_steps": inner,
        "epsilon": (problem.epsilon_low, problem.epsilon_high),
        "beta": problem.beta,
        "step_size": sizes[0] if len(sizes) == 1 else [list(sizes[i : i + inner]) for i in range(0, len(sizes), inner)],
        "draws": problem.draws,
        "reference": problem.reference,
        "parameters": problem.parameters,
    }
    return DrawnProblem.of(**{**fields, **changes})
