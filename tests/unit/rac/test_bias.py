"""Kernels, joint outcomes, bias and hypotheses: published numbers, a second route over whole histories, planted violations."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction as F
from typing import Any

import pytest
import sympy
from hypothesis import assume, event, given, settings, strategies as st

from exactgrpo import InputError, LimitError, Real
from exactgrpo.rac.bias import expected_bias
from exactgrpo.rac.hypotheses import SUFFICIENT, decide_hypotheses, implied_by
from exactgrpo.rac.kernel import Channel, Kernel, routed_row_sum
from exactgrpo.rac.outcomes import Model, Outcome
from exactgrpo.rac.simulation import simulate
from exactgrpo.rac.values import is_zero
from exactgrpo.rac.verdict import decide_model
from exactgrpo.strategies import rationals, simplex_points

LAW = {0: "1/2", 1: "1/3", 2: "1/6"}


def halving(step: int, delay: int) -> Real:
    return Real.of(F(1, 2**delay))


def model(outcomes: list[tuple[Any, ...]], *, delay: Any, gain: Any = 1, horizon: int = 1, drain: int = 0) -> Model:
    """One channel; an outcome is (probability, residual, ratio, context)."""
    channel = Channel.of("c", delay, gain=gain)
    made = [
        Outcome.of(p, [channel], residual={"c": x}, ratio={"c": rho}, context=context)
        for p, x, rho, context in (((*o, "") if len(o) == 3 else o) for o in outcomes)
    ]
    return Model.of(Kernel.of([channel], horizon=horizon, offset=0, drain=drain), made)


# ---- kernels


def test_row_sums_of_the_published_law() -> None:
    plain, aged, twice = (
        Kernel.of([Channel.of("c", LAW, weight=weight)], horizon=9, offset=0)
        for weight in (lambda t, d: 1, halving, lambda t, d: F(1, 4**d))
    )
    assert plain.row_sum(0, 0) == 1
    assert (aged.row_sum(0, 0), aged.slack(0, 0)) == (F(17, 24), F(7, 24))
    assert twice.row_sum(0, 0) == F(1, 2) + F(1, 12) + F(1, 96) == F(57, 96) == F(19, 32)
    for offset, landed in ((1, F(7, 3)), (0, F(10, 3))):
        kernel = Kernel.of([Channel.of("c", LAW)], horizon=4, offset=offset)
        assert kernel.landed_total(0) == landed
        assert sum(kernel.slack(0, t) for t in range(4)) == 4 - landed


@given(simplex_points(size=4), st.integers(1, 6), st.integers(0, 1), st.integers(0, 5))
def test_truncation_loses_the_expected_overhang(law: tuple[F, ...], horizon: int, offset: int, shift: int) -> None:
    masses = {d + shift: p for d, p in enumerate(law[:3])}
    kernel = Kernel.of([Channel.of("c", {**masses, "never": law[3]})], horizon=horizon, offset=offset)
    overhang = sum(p * min(d + offset, horizon) for d, p in masses.items()) + law[3] * horizon
    assert sum(kernel.slack(0, t) for t in range(horizon)) == overhang
    if offset == 1:
        assert kernel.slack(0, horizon - 1) == 1
    drained = Kernel.of([Channel.of("c", {**masses, "never": law[3]})], horizon=horizon, offset=offset, drain=shift + 4)
    assert all(drained.slack(0, t) == law[3] for t in range(horizon))


def test_gains_saturate_rows_and_symbols_prove_it_for_all_laws() -> None:
    a, b = sympy.symbols("a b", positive=True)
    law = {1: a / (a + b), 2: b / (a + b)}
    kernel = Kernel.of([Channel.of("c", law, weight=halving)], horizon=9, offset=0)
    gain = kernel.saturation_gain(0, 0)
    saturated = Kernel.of([Channel.of("c", law, weight=halving, gain=gain)], horizon=9, offset=0)
    assert is_zero(saturated.slack(0, 0))
    assert not is_zero(kernel.slack(0, 0))
    assert not is_zero(saturated.slack(0, 7))  # its second delay does not land
    assert saturated.common_slack() is None
    assert Kernel.of([Channel.of("c", {3: 1})], horizon=3, offset=0).saturation_gain(0, 0) is None


def test_a_routed_residual_has_one_row_sum() -> None:
    channels = [Channel.of("a", {0: 1}), Channel.of("b", {2: 1}, weight=halving)]
    kernel = Kernel.of(channels, horizon=5, offset=0)
    assert routed_row_sum(kernel, ["2/3", "1/3"], 0) == F(2, 3) + F(1, 12)
    for bad in (["1/2"], ["2/3", "2/3"], ["-1/2", "1/2"]):
        with pytest.raises(InputError):
            routed_row_sum(kernel, bad, 0)


# ---- bias


def test_the_counterexamples_of_the_pairwise_readings() -> None:
    # X = +-1, D in {0, 1}, fair and independent, rho = 1 + X (-1)^D, only D = 0 lands
    xor = model([("1/2", 1, [2, 0]), ("1/2", -1, [0, 2])], delay={0: "1/2", 1: "1/2"})
    assert (expected_bias(xor).cumulative, expected_bias(xor).closed_form) == (F(1, 2), 0)
    answers = {(h.name, h.reading): h.answer for h in decide_hypotheses(xor)}
    assert answers["H2", "given the delay"] == "fails"
    assert implied_by(decide_hypotheses(xor)) is None

    early = model([(1, 1, ["3/2", "1/2"])], delay={0: "1/2", 1: "1/2"})
    assert (expected_bias(early).injected, expected_bias(early).closed_form) == (F(3, 4), F(-1, 2))

    fair = model([("1/2", 1, "3/2", "high"), ("1/2", -1, "1/2", "low")], delay={0: 1})
    assert (expected_bias(fair).cumulative, expected_bias(fair).closed_form) == (F(1, 2), 0)
    answers = {(h.name, h.reading): h.answer for h in decide_hypotheses(fair)}
    assert [answers[name, "given context and delay"] for name in ("H1", "H2")] == ["fails", "holds"]
    assert [answers[name, "given the delay"] for name in ("H1", "H2")] == ["holds", "fails"]
    assert [answers[name, "marginal"] for name in ("H1", "H2")] == ["holds", "fails"]


@pytest.mark.parametrize(
    ("ratios", "mean", "injected"), [((1, "1/2"), "3/4", "1/4"), (("3/2", "1/2"), 1, "1/2"), (("6/5", "4/5"), 1, "1/5")]
)
def test_a_clip_that_acts(ratios: tuple[Any, Any], mean: Any, injected: Any) -> None:
    clipped = model([("1/2", 1, ratios[0]), ("1/2", -1, ratios[1])], delay={0: 1})
    bias = expected_bias(clipped)
    assert (bias.injected, bias.owed, bias.terms[0].slack) == (F(injected), 0, 0)
    h1 = next(h for h in decide_hypotheses(clipped) if (h.name, h.reading) == ("H1", "given the delay"))
    assert (h1.answer == "holds") == (F(mean) == 1)
    assert h1.answer == "holds" or h1.value == F(mean)


def test_cancelling_slacks_channels_and_overshoot() -> None:
    channel = Channel.of("c", {0: "1/2", "never": "1/2"})
    steps = [[Outcome.of(1, [channel], residual={"c": x})] for x in (1, -1)]
    cancelling = Model.of(Kernel.of([channel], horizon=2, offset=0), steps)
    assert expected_bias(cancelling).cumulative == 0
    assert not cancelling.kernel.is_saturated()

    channels = [Channel.of("a", {0: 1}), Channel.of("b", {0: "1/2", "never": "1/2"})]
    two = Model.of(Kernel.of(channels, horizon=1, offset=0), [Outcome.of(1, channels, residual={"a": 1, "b": -1})])
    assert (expected_bias(two).naive, expected_bias(two).cumulative) == (0, F(1, 2))

    over = expected_bias(model([(1, 1, 1)], delay={0: 1}, gain=3))
    assert (over.terms[0].slack, over.cumulative, over.naive) == (-2, 2, -1)


def test_cumulative_bias_hides_the_steps() -> None:
    channel = Channel.of("c", {1: 1})
    steps = [[Outcome.of(1, [channel], residual={"c": x})] for x in (1, 3, -2, 0)]
    bias = expected_bias(Model.of(Kernel.of([channel], horizon=4, offset=0), steps))
    assert (bias.cumulative, bias.by_step) == (0, (-1, -2, 5, -2))


def test_an_informative_delay() -> None:
    channel = Channel.of("c", {0: "1/2", 1: "1/2"})
    late = [Outcome.of("1/2", [channel], residual={"c": d}, delay={"c": d}) for d in (0, 1)]
    bias = expected_bias(Model.of(Kernel.of([channel], horizon=1, offset=0), late))
    assert (bias.cumulative, bias.closed_form, bias.terms[0].from_informative_delay) == (F(-1, 2), F(-1, 4), F(-1, 4))


@st.composite
def models(draw: st.DrawFn) -> tuple[Model, Any]:
    """A random model, and the plain fractions that it was made of: a signal is (X, law of 0, 1 and never, rho for each delay)."""
    count, horizon = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    offset, drain = draw(st.integers(0, 1)), draw(st.integers(0, 1))
    size = draw(st.integers(1, 3))
    steps: list[Any] = []
    laws = [draw(simplex_points(size=3)) for _ in range(count)]  # delays 0 and 1, and never
    ages = [[[draw(rationals(min=0, max=2, denominator=2)) for _ in range(2)] for _ in range(horizon)] for _ in range(count)]
    gains = [draw(rationals(min=0, max=2, denominator=2)) for _ in range(count)]
    informative = draw(st.booleans())
    for _ in range(horizon):
        probabilities = draw(simplex_points(size=size))
        rows = []
        for j in range(size):
            signals = []
            for k in range(count):
                law = laws[k]
                if informative and size == 2 and probabilities == (F(1, 2), F(1, 2)):  # moved apart, the same law in the mixture
                    move = min(law[0], law[2]) * (1 if j == 0 else -1)
                    law = (law[0] + move, law[1], law[2] - move)
                rho = [draw(rationals(min="1/2", max=2, denominator=2)) for _ in range(2)]
                signals.append((draw(rationals(min=-2, max=2, denominator=2)), law, rho))
            rows.append((probabilities[j], signals))
        steps.append(rows)
    channels = [
        Channel.of(f"c{k}", {0: law[0], 1: law[1], "never": law[2]}, weight=lambda t, d, k=k: ages[k][t][d], gain=gains[k])
        for k, law in enumerate(laws)
    ]
    outcomes = []
    for rows in steps:
        outcomes.append(
            [
                Outcome.of(
                    p,
                    channels,
                    residual={f"c{k}": x for k, (x, _, _) in enumerate(signals)},
                    delay={f"c{k}": {0: law[0], 1: law[1], "never": law[2]} for k, (_, law, _) in enumerate(signals)},
                    ratio={f"c{k}": [r for r, mass in zip(rho, law, strict=False) if mass] for k, (_, law, rho) in enumerate(signals)},
                )
                for p, signals in rows
            ]
        )
    made = Model.of(Kernel.of(channels, horizon=horizon, offset=offset, drain=drain), outcomes)
    return made, [steps, ages, gains, offset, drain]


def queue_expectation(case: Any) -> F:
    """E sum J by the queue itself, one run for each joint outcome of a rollout; what rollouts inject adds up."""
    steps, ages, gains, offset, drain = case
    channels = {f"c{k}": {"weights": lambda t, d, k=k: ages[k][t][d], "gain": gain} for k, gain in enumerate(gains)}
    expected = F(0)
    for t, rows in enumerate(steps):
        for p, signals in rows:
            for chosen in itertools.product(*([(0, law[0]), (1, law[1]), (None, law[2])] for _, law, _ in signals)):
                q = p * math.prod(mass for _, mass in chosen)
                given_ = [
                    (t, "rollout", f"c{k}", d, x, 1 if d is None else rho[d])
                    for k, ((x, _, rho), (d, _)) in enumerate(zip(signals, chosen, strict=True))
                ]
                if q:
                    totals = simulate(len(steps), offset, given_, channels=channels, drain=drain).totals
                    expected += q * sum((total.as_fraction() for total in totals), F(0))
    return expected


def histories(case: Any) -> tuple[F, F, F, list[F]]:
    """E sum J, E sum X, E (sum J)^2 and E per step, over every joint history of all rollouts, in fractions."""
    steps, ages, gains, offset, drain = case
    horizon = len(steps)
    rollouts = []
    for t, rows in enumerate(steps):
        cases = []
        for p, signals in rows:
            delays = [[(0, law[0]), (1, law[1]), (None, law[2])] for _, law, _ in signals]
            for chosen in itertools.product(*delays):
                q, x, at = p, F(0), {}
                for k, ((residual, _, rho), (d, mass)) in enumerate(zip(signals, chosen, strict=True)):
                    q, x = q * mass, x + residual
                    if d is not None and t + d + offset < horizon + drain:
                        s = t + d + offset
                        at[s] = at.get(s, F(0)) + gains[k] * ages[k][t][d] * rho[d] * residual
                if q:
                    cases.append((q, x, at))
        rollouts.append(cases)
    injected = owed = square = F(0)
    by_step = [F(0)] * (horizon + drain)
    for history in itertools.product(*rollouts):
        q = F(1)
        for p, _, _ in history:
            q *= p
        x, j = sum(h[1] for h in history), sum(sum(h[2].values(), F(0)) for h in history)
        injected, owed, square = injected + q * j, owed + q * x, square + q * j * j
        for t, (_, own, at) in enumerate(history):
            by_step[t] -= q * own
            for s, amount in at.items():
                by_step[s] += q * amount
    return injected, owed, square, by_step


@given(models())
@settings(max_examples=60, deadline=None)
def test_the_bias_over_all_histories_and_its_terms(case: Any) -> None:
    check_model(*case)


def check_model(made: Model, plain: Any) -> None:
    injected, owed, square, by_step = histories(plain)
    bias = expected_bias(made)
    assert (bias.injected, bias.owed, list(bias.by_step)) == (injected, owed, by_step)
    assert queue_expectation(plain) == injected
    assert bias.variance == square - injected**2
    assert bias.mean_squared_error == bias.variance + (injected - owed) ** 2
    assert bias.cumulative == sum(t.from_slack + t.from_informative_delay + t.from_ratio for t in bias.terms)
    assert all(t.slack == made.kernel.slack(t.channel, t.step) for t in bias.terms)
    reading = implied_by(decide_hypotheses(made))
    event(f"implied {reading}, closed form {bias.is_closed_form}")
    assert reading is None or bias.is_closed_form


@pytest.mark.long
@given(models())
@settings(max_examples=3000, deadline=None)
def test_the_bias_of_thousands_of_models(case: Any) -> None:
    check_model(*case)


# ---- hypotheses


@given(simplex_points(size=2), st.lists(rationals(denominator=2), min_size=2, max_size=2), rationals(min=0, max=1, denominator=4))
def test_the_identity_follows_from_either_sufficient_reading_and_from_no_other(law: tuple[F, ...], x: list[F], shift: F) -> None:
    assume(law[0] > 0)
    # given the residual as the context, ratios 1 +- shift of mean one at each delay
    rows = [(F(1, 4), value, 1 + sign * shift, f"X = {value}") for value in x for sign in (1, -1)]
    contextual = model(rows, delay={0: law[0], "never": law[1]})
    found = decide_hypotheses(contextual)
    assert implied_by(found) in SUFFICIENT
    assert expected_bias(contextual).is_closed_form


@pytest.mark.parametrize(
    ("outcomes", "delay", "broken"),
    [
        ([(1, 1, ["3/2", "1/2"])], {0: "1/2", 1: "1/2"}, {("H1", "given the delay"), ("H1", "given context and delay")}),
        ([("1/2", 1, 2, "a"), ("1/2", 0, 0, "b")], {0: 1}, {("H1", "given the context"), ("H1", "given context and delay"),
            ("H2", "given the delay"), ("H2", "marginal")}),
        ([("1/2", 1, 2, "a"), ("1/2", 1, 1, "b")], {0: 1}, {("H1", r) for r in ("marginal", "given the delay", "given the context",
            "given context and delay")}),
    ],
)  # fmt: skip
def test_planted_violations_are_named_in_exactly_their_readings(outcomes: Any, delay: Any, broken: set[tuple[str, str]]) -> None:
    found = decide_hypotheses(model(outcomes, delay=delay, horizon=3, drain=1))
    assert {(h.name, h.reading) for h in found if h.answer == "fails"} == broken
    assert all(h.place.startswith("channel c, step 0") and h.value is not None for h in found if h.answer == "fails")


def test_a_planted_informative_delay_is_named() -> None:
    channel = Channel.of("c", {0: "1/2", 1: "1/2"})
    late = [Outcome.of("1/2", [channel], residual={"c": d}, delay={"c": d}) for d in (0, 1)]
    found = decide_hypotheses(Model.of(Kernel.of([channel], horizon=1, offset=0), late))
    assert [(h.name, h.place, h.value) for h in found if h.answer == "fails"] == [("H3", "channel c, step 0, delay 0", F(-1, 2))]


def test_what_never_lands_is_vacuous() -> None:
    found = decide_hypotheses(model([(1, 1, 2)], delay={5: 1}))
    assert {h.answer for h in found if h.reading in SUFFICIENT} == {"vacuous"}
    assert {h.answer for h in decide_hypotheses(model([(1, 1, 2)], delay={"never": 1}))} == {"vacuous"}


def test_the_marginal_reading_is_over_all_that_arrives() -> None:
    # the ratio has mean one over both delays; only the first has a weight
    channel = Channel.of("c", {0: "1/2", 1: "1/2"}, weight=lambda step, delay: 1 - delay)
    outcome = Outcome.of(1, [channel], residual={"c": 1}, ratio={"c": ["1/2", "3/2"]})
    made = Model.of(Kernel.of([channel], horizon=1, offset=0, drain=1), [outcome])
    assert {h.reading for h in decide_hypotheses(made) if h.answer == "fails"} == set(SUFFICIENT)


def test_an_undecided_hypothesis_keeps_the_rest() -> None:
    a, b = sympy.symbols("a b", positive=True)
    hidden = sympy.log(a * b, evaluate=False) - sympy.log(a) - sympy.log(b)
    verdicts = decide_model(model([(1, 1, 1 + hidden**2)], delay={0: 1}, horizon=1))
    answers = {(h.name, h.reading): h.answer for h in verdicts.hypotheses}
    kinds = {v.claim: v.kind for v in verdicts.claims}
    assert (answers["H1", "given the delay"], kinds["bias-in-three-terms"]) in (("undecided", "follows"), ("holds", "follows"))
    assert kinds["bias-is-minus-slack"] == ("undecided" if answers["H1", "given the delay"] == "undecided" else "follows")


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_channels_are_matched_by_name(order: tuple[str, str]) -> None:
    channels = {"a": Channel.of("a", {0: 1}, gain=2), "b": Channel.of("b", {0: 1}), "z": Channel.of("z", {0: 1})}
    kernel = Kernel.of([channels["a"], channels["b"]], horizon=1, offset=0)
    outcome = Outcome.of(1, [channels[name] for name in order], residual={"a": 1, "b": 10})
    assert expected_bias(Model.of(kernel, [outcome])).cumulative == 1
    for wrong in (["a", "z"], ["a"]):
        with pytest.raises(InputError, match="the channels of the kernel"):
            Model.of(kernel, [Outcome.of(1, [channels[name] for name in wrong], residual=dict.fromkeys(wrong, 1))])


def test_indices_are_checked() -> None:
    made = model([(1, 1, 1)], delay={0: 1}, horizon=3)
    for k, t in ((0, -1), (0, 3), (1, 0), (-1, 0)):
        for ask in (made.kernel.slack, made.kernel.row, made.kernel.landed, made.kernel.saturation_gain):
            with pytest.raises(InputError, match="from 0 to"):
                ask(k, t)
    with pytest.raises(InputError, match="from 0 to 2"):
        made.atoms(0, 3)


# ---- bad input


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda c: Kernel.of([], horizon=1), "at least one Channel"),
        (lambda c: Kernel.of([c, c], horizon=1), "names are distinct"),
        (lambda c: Kernel.of([c], horizon=0), "horizon"),
        (lambda c: Kernel.of([c], horizon=1, offset=2), "0 or 1"),
        (lambda c: Channel.of("c", {0: "1/2"}), "sum to one"),
        (lambda c: Channel.of("c", {0: 1}, gain=-1), "a gain is not negative"),
        (lambda c: Channel.of("", {0: 1}), "a name"),
        (lambda c: Kernel.of([Channel.of("c", {0: 1}, weight=lambda t, d: -1)], horizon=2).row(0, 0), "an age weight is not negative"),
        (lambda c: Outcome.of(1, [c], residual={}), "a residual for each channel"),
        (lambda c: Outcome.of(1, [c], residual={"c": 1, "d": 1}), "a channel: c"),
        (lambda c: Outcome.of(1, [c], residual={"c": 1}, ratio={"c": [1]}), "one for each of the 2 delays"),
        (lambda c: Outcome.of(1, [c], residual={"c": 1}, ratio={"c": -1}), "a ratio is not negative"),
        (lambda c: Outcome.of(-1, [c], residual={"c": 1}), "a probability is not negative"),
        (lambda c: Model.of(Kernel.of([c], horizon=1), [Outcome.of("1/2", [c], residual={"c": 1})]), "probabilities sum to one"),
        (lambda c: Model.of(Kernel.of([c], horizon=1), [Outcome.of(1, [c], residual={"c": 1}, delay={"c": 0})]), "mix to the law"),
        (lambda c: Model.of(Kernel.of([c], horizon=2), [[Outcome.of(1, [c], residual={"c": 1})]]), "one for each of the 2 steps"),
    ],
)  # fmt: skip
def test_bad_input_is_one_clear_line(make: Any, rule: str) -> None:
    with pytest.raises(InputError) as caught:
        make(Channel.of("c", {0: "1/2", 1: "1/2"}))
    assert rule in str(caught.value)
    assert "\n" not in str(caught.value)


def test_sizes_are_bounded_before_work_starts() -> None:
    with pytest.raises(LimitError):
        Kernel.of([Channel.of("c", {0: 1})], horizon=10**9)
    law = {d: F(1, 1000) for d in range(1000)}
    with pytest.raises(LimitError):
        Kernel.of([Channel.of("c", law)], horizon=9999)
