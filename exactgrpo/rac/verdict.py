"""Which claims of Retroactive Advantage Correction hold for one model: by their hypotheses, by coincidence, or not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal, get_args

from exactgrpo.errors import InputError, UndecidedError
from exactgrpo.field.inputs import ONE, ZERO
from exactgrpo.numbers.real import Real
from exactgrpo.rac.bias import Bias, expected_bias
from exactgrpo.rac.hypotheses import SUFFICIENT, Hypothesis, decide_hypotheses, implied_by
from exactgrpo.rac.kernel import Kernel
from exactgrpo.rac.outcomes import Model
from exactgrpo.rac.values import Value, is_zero, settled, total

Kind = Literal["follows", "holds here", "refuted", "vacuous", "undecided"]


@dataclass(frozen=True, slots=True)
class ModelVerdict:
    """What is true of one claim for one model.

    "follows": its hypotheses hold, so a theorem gives it. "holds here": its two sides are equal although its hypotheses fail. "refuted":
    the sides differ. "vacuous": its premise does not hold for this kernel, so it says nothing. `why` names the reading of the hypotheses,
    the premise, or the comparison that was not decided.
    """

    claim: str
    statement: str
    kind: Kind
    why: str
    left: Value | None = None
    right: Value | None = None
    expected: Kind | None = None

    @property
    def is_expected(self) -> bool:
        """Whether this is the verdict that was expected; without an expectation, any but a refutation."""
        return self.kind == self.expected if self.expected else self.kind != "refuted"


@dataclass(frozen=True, slots=True)
class Verdicts:
    """All claims for one model, its hypotheses in every reading, and its bias in all detail."""

    model: Model
    bias: Bias
    hypotheses: tuple[Hypothesis, ...]
    claims: tuple[ModelVerdict, ...]


def decide_model(model: Model, *, expected: Mapping[str, Kind] = MappingProxyType({})) -> Verdicts:
    """Decide the claims of Retroactive Advantage Correction for a model: each says no more than the hypotheses that hold allow.

    `expected` gives verdicts that are known, by claim; they change no verdict, only `is_expected`. InputError for a claim that is none.

    Source: Retroactive Advantage Correction, arXiv:2606.27580, whose hypotheses are read here given the delay. The numbers of a claim
    are brute force on the left, closed form on the right. Theorems: C1_total, truncation_sum (Delay.v), bias_zero_row_stochastic,
    bias_uniform_slack (Kernel.v).
    """
    bias, hypotheses = expected_bias(model), decide_hypotheses(model)
    reading = implied_by(hypotheses)
    first = [h for h in hypotheses if h.reading == SUFFICIENT[0]]
    failing, open_ = ([h.name for h in first if h.answer == answer] for answer in ("fails", "undecided"))
    verb = "fail" if len(failing) > 1 else "fails"
    parts = [f"{' and '.join(names)} {word}" for names, word in ((failing, verb), (open_, "undecided")) if names]
    premise = f"H1 and H2 {reading}, H3" if reading else f"{', '.join(parts)} {SUFFICIENT[0]}"
    is_open = any(h.answer == "undecided" and (h.reading in SUFFICIENT) for h in hypotheses)

    def under_hypotheses(left: Value, right: Value) -> tuple[Kind, str, Value, Value]:
        if not is_zero(settled(left - right)):
            return "refuted", premise, left, right
        return "follows" if reading else "undecided" if is_open else "holds here", premise, left, right

    terms = total(settled(t.from_slack + t.from_informative_delay + t.from_ratio) for t in bias.terms)
    eta = model.kernel.common_slack()
    decided = [
        _verdict("bias-is-minus-slack", "cumulative bias = -sum slack E X", lambda: under_hypotheses(bias.cumulative, bias.closed_form)),
        _verdict(
            "bias-in-three-terms",
            "cumulative bias = -sum slack E X + sum Cov(g(D), X) + sum E[g(D) X (rho - 1)]",
            lambda: (
                ("follows" if is_zero(settled(bias.cumulative - terms)) else "refuted", "no hypothesis needed", bias.cumulative, terms)
            ),
        ),
        _verdict(
            "saturated-is-unbiased",
            "rows that sum to one: cumulative bias = 0",
            lambda: (
                under_hypotheses(bias.cumulative, ZERO) if model.kernel.is_saturated() else _vacuous("a row sums to another number")
            ),
        ),
        _verdict(
            "bias-is-slack-times-naive",
            "one slack for all: cumulative bias = slack x naive bias",
            lambda: _vacuous("slacks differ") if eta is None else under_hypotheses(bias.cumulative, settled(eta * bias.naive)),
        ),
        _verdict(
            "truncation-loses-the-overhang",
            "weight one: sum of slacks = sum_k E[steps of the horizon that the delay passes]",
            lambda: _truncation(model.kernel),
        ),
    ]
    names = [v.claim for v in decided]
    for claim, kind in expected.items():
        if claim not in names or kind not in get_args(Kind):
            rule = f"a claim ({', '.join(names)}) and its verdict ({', '.join(get_args(Kind))})"
            raise InputError(f"expected.{claim}"[:100], str(kind)[:100], rule)
    return Verdicts(model, bias, hypotheses, tuple(replace(v, expected=expected.get(v.claim)) for v in decided))


_Decision = tuple[Kind, str, Value | None, Value | None]


def _verdict(claim: str, statement: str, decide: Callable[[], _Decision]) -> ModelVerdict:
    try:
        return ModelVerdict(claim, statement, *decide())
    except UndecidedError as error:
        return ModelVerdict(claim, statement, "undecided", str(error))


def _vacuous(why: str) -> _Decision:
    return "vacuous", why, None, None


def _truncation(kernel: Kernel) -> _Decision:
    """sum_t slack_t against sum_d P(d) min(max(d + offset - drain, 0), N), dropped signals counting N."""
    steps = kernel.horizon
    cells = [(k, d) for k, channel in enumerate(kernel.channels) for d, _ in channel.delay.masses]
    if not all(is_zero(settled(kernel.weight(k, t, d) - ONE)) for k, d in cells for t in range(steps) if kernel.lands(t, d)):
        return _vacuous("weights differ from one")
    slacks = total(kernel.slack(k, t) for k in range(len(kernel.channels)) for t in range(steps))
    lost = [channel.delay.never * Real(steps) for channel in kernel.channels]
    for channel in kernel.channels:
        for d, mass in channel.delay.masses:
            lost.append(mass * Real(min(max(d + kernel.offset - kernel.drain, 0), steps)))
    overhang = total(settled(x) for x in lost)
    return "follows" if is_zero(settled(slacks - overhang)) else "refuted", "no hypothesis needed", slacks, overhang
