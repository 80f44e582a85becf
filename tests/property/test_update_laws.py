"""Laws of advantages and of runs, on random groups and problems."""

from __future__ import annotations

from fractions import Fraction as F
from typing import Any

from hypothesis import HealthCheck, assume, given, settings, strategies as st

from exactgrpo import (
    Problem,
    Prompt,
    Rational,
    Real,
    ReferenceMasses,
    Run,
    Softmax,
    Tape,
    advantages,
    clip_term,
    evaluate_at,
    kl_policy_from_reference,
    population_std,
    run,
)

relaxed = settings(max_examples=40, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
NUMBERS = st.fractions(min_value=-5, max_value=5, max_denominator=12)
GROUPS = st.lists(NUMBERS, min_size=2, max_size=6)


# ---- advantages


@relaxed
@given(GROUPS)
def test_advantages_are_centred_scaled_and_bounded(rewards: list[F]) -> None:
    group, size = advantages(rewards), len(rewards)
    assert sum(group, Real.of(0)) == 0
    assert sum((a * a for a in group), Real.of(0)) == (0 if len(set(rewards)) == 1 else size)
    assert all(a * a <= size - 1 for a in group)
    assert population_std(rewards) * group[0] == rewards[0] - sum(rewards) / F(size)


@relaxed
@given(GROUPS, st.fractions(min_value=F(1, 1000), max_value=1000), NUMBERS)
def test_advantages_do_not_change_under_positive_scale_and_shift(rewards: list[F], scale: F, shift: F) -> None:
    assert all(a == b for a, b in zip(advantages(rewards), advantages([scale * r + shift for r in rewards]), strict=True))
    assert all(a == -b for a, b in zip(advantages(rewards), advantages([-r for r in rewards]), strict=True))


@relaxed
@given(GROUPS, st.sampled_from(["sqrt(2)", "log(3)", "exp(1/2)"]))
def test_irrational_scales_change_nothing_either(rewards: list[F], scale: str) -> None:
    scaled = [Real.of(scale) * r for r in rewards]
    assert all(a == b for a, b in zip(advantages(rewards), advantages(scaled), strict=True))


@relaxed
@given(st.fractions(min_value=F(1, 20), max_value=4, max_denominator=20), NUMBERS, st.sampled_from([F(1, 5), F(1, 4), F(1, 2)]))
def test_a_clipped_term_is_the_minimum_of_its_definition(rho: F, advantage: F, epsilon: F) -> None:
    term = clip_term(rho, advantage, epsilon=epsilon)
    assert term.value == min(rho * advantage, max(1 - epsilon, min(1 + epsilon, rho)) * advantage)
    h = F(1, 10**9)
    for side, measured in ((-1, term.left), (1, term.right)):
        moved = rho + side * h
        value = min(moved * advantage, max(1 - epsilon, min(1 + epsilon, moved)) * advantage)
        assert measured == (value - term.value) / (side * h)


# ---- runs


@st.composite
def problems(draw: st.DrawFn, **changes: Any) -> dict[str, Any]:
    prompts = [
        Prompt.of(f"q{q}", list("abc"), draw(st.lists(st.integers(0, 3), min_size=3, max_size=3))) for q in range(draw(st.integers(1, 2)))
    ]
    family = draw(
        st.sampled_from(
            [
                Rational.of([["t", "1 + t^2", "2"]] * len(prompts), parameters=["t"]),
                Softmax.of([[[0], [1], [-2]]] * len(prompts), size=1),
            ]
        )
    )
    size, outer, inner = draw(st.integers(2, 4)), draw(st.integers(1, 2)), draw(st.integers(1, 3))
    names = st.lists(st.sampled_from("abc"), min_size=size, max_size=size)
    draws = [[draw(names) for _ in prompts] for _ in range(outer)]
    return {
        "prompts": prompts,
        "family": family,
        "theta0": [draw(st.sampled_from([F(1, 2), F(1), F(3, 2)]))],
        "group_size": size,
        "outer_iterations": outer,
        "inner_steps": inner,
        "epsilon": draw(st.sampled_from([F(1, 10), F(1, 4)])),
        "beta": draw(st.sampled_from([F(0), F(1, 10)])),
        "step_size": draw(st.sampled_from([F(1, 16), F(1, 2), F(2)])),
        "draws": Tape.of(draws, prompts),
        "reference": ReferenceMasses.of([["1/2", "1/4", "1/4"]] * len(prompts)),
    }


def made(given_: dict[str, Any], **changes: Any) -> Run:
    return run(Problem.of(**{**given_, **changes}))


@relaxed
@given(problems())
def test_counts_are_those_of_the_procedure(given_: dict[str, Any]) -> None:
    result, support = made(given_), given_["family"].rows.size
    attempts, outer = len(result.steps), len({step.level[0] for step in result.steps})
    samples = len(given_["prompts"]) * given_["group_size"]
    counts = result.counts
    assert counts.gradient_attempts == attempts <= given_["outer_iterations"] * given_["inner_steps"]
    assert counts.draws == counts.reward_evaluations == outer * samples
    assert counts.square_roots == outer * len(given_["prompts"])
    assert counts.mass_evaluations == attempts * support
    assert counts.logarithms == (attempts * support if given_["beta"] else 0)
    assert counts.domain_calls == attempts - (result.status == "undefined-gradient")
    if result.status == "complete":
        assert attempts == given_["outer_iterations"] * given_["inner_steps"]


@relaxed
@given(problems())
def test_every_comparison_has_a_proof_and_every_step_follows_from_the_one_before(given_: dict[str, Any]) -> None:
    result = made(given_)
    assert all(d.sign is not None and d.proof is not None for step in result.steps for d in step.decisions())
    for step in result.steps:
        if step.gradient is not None:
            assert step.proposal is not None
            assert step.proposal[0] == step.theta[0] + step.gradient[0] * given_["step_size"]


@relaxed
@given(problems(), st.integers(0, 3))
def test_the_order_of_samples_changes_nothing(given_: dict[str, Any], turn: int) -> None:
    turned = [[g[turn % len(g) :] + g[: turn % len(g)] for g in outer] for outer in given_["draws"].draws]
    other = made(given_, draws=Tape.of(turned, given_["prompts"]))
    result = made(given_)
    assert (result.status, result.counts) == (other.status, other.counts)
    assert result.theta[0] == other.theta[0]


@relaxed
@given(problems(), st.fractions(min_value=F(1, 100), max_value=100, max_denominator=100), NUMBERS)
def test_scaled_and_shifted_rewards_give_the_same_run(given_: dict[str, Any], scale: F, shift: F) -> None:
    assume(scale > 0)
    prompts = [Prompt.of(p.name, p.responses, [scale * r + shift for r in p.rewards]) for p in given_["prompts"]]
    result, other = made(given_), made(given_, prompts=prompts)
    assert result.status == other.status
    assert result.theta[0].digits(60) == other.theta[0].digits(60)


@relaxed
@given(problems())
def test_the_objective_is_below_its_ceiling(given_: dict[str, Any]) -> None:
    """F_t <= eps mean|A| - beta mean KL <= eps."""
    for step in made(given_).steps:
        assert step.objective is not None
        magnitudes = [abs(term.advantage) for term in step.terms]
        assert step.objective <= given_["epsilon"] * sum(magnitudes, Real.of(0)) / len(magnitudes)
        assert step.objective <= given_["epsilon"]


@relaxed
@given(problems())
def test_more_digits_change_no_decision_and_no_value(given_: dict[str, Any]) -> None:
    result, finer = made(given_), run(Problem.of(**given_), digits=200)
    assert result.status == finer.status
    assert result.theta[0].digits(50) == finer.theta[0].digits(50)


@relaxed
@given(problems())
def test_a_run_is_the_same_when_it_is_run_again(given_: dict[str, Any]) -> None:
    problem = Problem.of(**given_)
    first, again, anew = run(problem), run(problem), made(given_)
    for other in (again, anew):
        assert (first.status, first.counts, first.proof_counts()) == (other.status, other.counts, other.proof_counts())
        assert [list(step.decisions()) for step in first.steps] == [list(step.decisions()) for step in other.steps]
        assert first.theta[0].digits(50) == other.theta[0].digits(50)


# ---- repeats: a response "a" against two responses "a1" and "a2" of half its mass each, which have its ratio

HALVED = {"abc": ["t", "1 + t^2", "2"], "aAbc": ["t/2", "t/2", "1 + t^2", "2"]}


@relaxed
@given(
    st.lists(st.integers(0, 3), min_size=3, max_size=3),
    st.lists(st.sampled_from("aab") | st.sampled_from("abc"), min_size=2, max_size=6),
    st.sampled_from([F(1, 10), F(1, 4)]),
    st.sampled_from([F(0), F(1, 10)]),
    st.sampled_from([F(1, 2), F(3)]),
)
def test_equal_draws_count_like_draws_of_two_equal_responses(
    rewards: list[int], draws: list[str], epsilon: F, beta: F, step_size: F
) -> None:
    split = [y if y != "a" or draws[:i].count("a") % 2 else "A" for i, y in enumerate(draws)]
    results = []
    for names, values, group, masses in (
        ("abc", rewards, draws, ["1/2", "1/4", "1/4"]),
        ("aAbc", [rewards[0], *rewards], split, ["1/4", "1/4", "1/4", "1/4"]),
    ):
        prompt = Prompt.of("q", list(names), values)
        results.append(
            run(
                Problem.of(
                    prompts=[prompt], family=Rational.of([HALVED[names]], parameters=["t"]), theta0=[1], group_size=len(draws),
                    outer_iterations=1, inner_steps=3, epsilon=epsilon, beta=beta, step_size=step_size,
                    draws=Tape.of([[group]], [prompt]), reference=ReferenceMasses.of([masses]),
                )
            )
        )  # fmt: skip
    one, two = results
    assert one.status == two.status
    for x, y in zip(one.steps, two.steps, strict=True):
        assert [term.side for term in x.terms] == [term.side for term in y.terms]
        assert x.objective is not None
        assert y.objective is not None
        assert x.objective.digits(50) == y.objective.digits(50)
    assert one.theta[0].digits(50) == two.theta[0].digits(50)


# ---- at any point: pi = (s, 1 + s t, 2 t)/(1 + s + s t + 2 t), differentiated by hand

POINTS = st.tuples(*[st.fractions(min_value=F(1, 4), max_value=3, max_denominator=6)] * 2)


def masses(s: F, t: F) -> list[tuple[F, tuple[F, F]]]:
    """(mass, gradient) of each response, by the quotient rule."""
    rows = [(s, (F(1), F(0))), (1 + s * t, (t, s)), (2 * t, (F(0), F(2)))]
    total, slope = sum(w for w, _ in rows), tuple(sum(g[k] for _, g in rows) for k in range(2))
    return [(w / total, ((g[0] * total - w * slope[0]) / total**2, (g[1] * total - w * slope[1]) / total**2)) for w, g in rows]


def test_kinks_bend_one_way_by_their_slopes() -> None:
    seen = set()

    @relaxed
    @given(
        st.lists(st.lists(st.integers(0, 2), min_size=3, max_size=3), min_size=1, max_size=2),
        st.lists(st.lists(st.sampled_from("abc"), min_size=4, max_size=4), min_size=2, max_size=2),
        POINTS,
        POINTS,
        st.integers(0, 2),
        st.tuples(NUMBERS, NUMBERS),
        st.sampled_from([F(0), F(1, 3)]),
    )
    def holds(
        rewards: list[list[int]], words: list[list[str]], old: tuple[F, F], at: tuple[F, F], target: int, v: tuple[F, F], beta: F
    ) -> None:
        """F'(v) + F'(-v) = -(1/(M G)) sum over true kinks of |A| |<grad rho, v>|, and F <= eps mean|A| - beta mean KL."""
        pairs = list(zip(masses(*at), masses(*old), strict=True))
        ratios = [new[0] / before[0] for new, before in pairs]
        slopes = [sum(g * x for g, x in zip(new[1], v, strict=True)) / before[0] for new, before in pairs]
        epsilon = abs(ratios[target] - 1)  # this ratio is exactly on a bound
        assume(0 < epsilon < 1)
        prompts = [Prompt.of(f"q{q}", list("abc"), row) for q, row in enumerate(rewards)]
        draws = words[: len(prompts)]
        reference = ["1/2", "1/4", "1/4"]
        problem = Problem.of(
            prompts=prompts, family=Rational.of([["s", "1 + s*t", "2*t"]] * len(prompts), parameters=["s", "t"]), theta0=old, group_size=4,
            outer_iterations=1, inner_steps=1, epsilon=epsilon, beta=beta, step_size=1, draws=Tape.of([draws], prompts),
            reference=ReferenceMasses.of([reference] * len(prompts)),
        )  # fmt: skip
        step = evaluate_at(problem, at)
        bend, size = Real.of(0), Real.of(0)
        for row, group in zip(rewards, draws, strict=True):
            for y, advantage in zip(group, advantages([row["abc".index(y)] for y in group]), strict=True):
                rho, slope, magnitude = ratios["abc".index(y)], slopes["abc".index(y)], abs(advantage)
                size = size + magnitude
                if (rho == 1 + epsilon and advantage > 0) or (rho == 1 - epsilon and advantage < 0):
                    bend = bend + magnitude * abs(slope)
        count = 4 * len(prompts)
        if step.evidence is None:
            assert step.gradient is not None
            assert bend == 0
        else:
            seen.add(bend != 0)
            assert step.evidence.directional(v) + step.evidence.directional([-x for x in v]) == -bend / count
        assert step.objective is not None
        penalty = beta * kl_policy_from_reference([m for m, _ in masses(*at)], reference)
        assert step.objective <= epsilon * size / count - penalty

    holds()
    assert True in seen  # the test would be idle without kinks
