"""Claims, true and false, about how far late rewards move a policy in one step: bounds from the KL, and from the change of scores."""

from __future__ import annotations

from typing import Any

from exactgrpo.claims.catalogue.delayed_clip import RAC
from exactgrpo.claims.catalogue.variables import entries, law, laws, numbers, positive_number, whole, whole_numbers
from exactgrpo.claims.claim import Claim
from exactgrpo.field.inputs import greatest_of
from exactgrpo.numbers.real import Real
from exactgrpo.rac.crossing import crossing
from exactgrpo.rac.divergence import bretagnolle_huber, least_bound, pinsker, total_variation
from exactgrpo.rac.policy_shift import decide_corrected_step, decide_shift, extremal_shift, shift_bound, shifted

TSYBAKOV = "Tsybakov, Introduction to nonparametric estimation (2009), section 2.4"


def _crosses(kl: Any) -> bool:
    """Pinsker's bound is the smaller one before the crossing and the larger one after it; squares are compared."""
    at, excess = crossing(20), 1 - (-Real.of(kl)).exp() - Real.of(kl) / 2
    return (at.lower < kl or excess > 0) and (kl < at.upper or excess < 0)


def _moved(policy: Any, changes: Any) -> Real:
    return total_variation(shifted(policy, changes), policy)


def _step(policy: Any, features: Any, drawn: Any, advantages: Any, corrections: Any, step_size: Any) -> Any:
    rows = [[x] for x in features]
    return decide_corrected_step(policy, rows, [int(y) for y in drawn], advantages, corrections, step_size=step_size).shift


def _laws(size: int) -> dict[str, Any]:
    return {"policy": law(size), **laws(size, "reference")}


CLAIMS = (
    Claim(
        "pinsker-bound",
        "The total variation of two policies is at most the root of half their KL.",
        _laws(3),
        left=lambda policy, reference: total_variation(policy, reference),
        right=lambda policy, reference: pinsker(policy, reference),
        relation="<=",
        source=TSYBAKOV,
        latex=r"\mathrm{TV} \le \sqrt{\mathrm{KL}/2}",
        theorem="pinsker (Divergence.v)",
    ),
    Claim(
        "bretagnolle-huber-bound",
        "The total variation of two policies is at most the root of one minus the exponential of minus their KL.",
        _laws(3),
        left=lambda policy, reference: total_variation(policy, reference),
        right=lambda policy, reference: bretagnolle_huber(policy, reference),
        relation="<=",
        source=TSYBAKOV,
        latex=r"\mathrm{TV} \le \sqrt{1 - e^{-\mathrm{KL}}}",
        theorem="bretagnolle_huber (Divergence.v)",
    ),
    Claim(
        "per-step-bound",
        "The total variation of two policies is at most the smaller of the two bounds.",
        _laws(2),
        left=lambda policy, reference: total_variation(policy, reference),
        right=lambda policy, reference: least_bound(policy, reference),
        relation="<=",
        source=RAC,
        latex=r"\mathrm{TV} \le \min(\sqrt{\mathrm{KL}/2}, \sqrt{1 - e^{-\mathrm{KL}}})",
        theorem="TV_bound (Divergence.v)",
    ),
    Claim(
        "pinsker-is-always-the-smaller-bound",
        "The bound of Pinsker is never above that of Bretagnolle and Huber.",
        _laws(2),
        left=lambda policy, reference: pinsker(policy, reference),
        right=lambda policy, reference: bretagnolle_huber(policy, reference),
        relation="<=",
        expected=False,
    ),
    Claim(
        "bretagnolle-huber-is-always-the-smaller-bound",
        "The bound of Bretagnolle and Huber is never above that of Pinsker.",
        _laws(2),
        left=lambda policy, reference: bretagnolle_huber(policy, reference),
        right=lambda policy, reference: pinsker(policy, reference),
        relation="<=",
        expected=False,
    ),
    Claim(
        "bounds-cross-once",
        "The bound of Pinsker is the smaller one up to KL = 1.59362426..., that of Bretagnolle and Huber beyond.",
        {"kl": positive_number()},
        conclusion=_crosses,
        latex=r"\mathrm{KL}/2 < 1 - e^{-\mathrm{KL}} \iff \mathrm{KL} < 1.59362426\dots",
        theorem="bounds_cross_once (Crossing.v)",
    ),
    Claim(
        "reweighting-moves-a-policy-by-at-most-tanh",
        "A policy reweighted by exp(h) has moved by at most tanh of a quarter of the oscillation of h.",
        {**laws(3, "policy"), "changes": numbers(3)},
        left=_moved,
        right=lambda changes: shift_bound(changes),
        relation="<=",
        latex=r"\pi' \propto \pi e^h \Rightarrow \mathrm{TV}(\pi', \pi) \le \tanh(\mathrm{osc}(h)/4)",
        theorem="TV_shift_tanh (Shift.v)",
    ),
    Claim(
        "tanh-is-reached",
        "At every oscillation some policy moves by as much as the bound.",
        {"width": positive_number()},
        left=lambda width: decide_shift(*extremal_shift(width)).total_variation,
        right=lambda width: shift_bound([width, 0]),
        theorem="TV_shift_sharp (Shift.v)",
    ),
    Claim(
        "reweighting-is-bounded-by-the-largest-change",
        "In that bound the largest absolute change may stand for the oscillation.",
        {**laws(2, "policy"), "changes": whole_numbers(2)},
        left=_moved,
        right=lambda changes: shift_bound([greatest_of(*(abs(Real.of(h)) for h in changes)), 0]),
        relation="<=",
        latex=r"\mathrm{TV}(\pi', \pi) \le \tanh(\max |h|/4)",
        expected=False,
    ),
    Claim(
        "corrections-move-a-step-by-at-most-tanh",
        "A softmax step with corrected advantages ends within that bound of the step without, from one policy and the same draws.",
        {
            **laws(2, "policy"),
            "features": whole_numbers(2),
            "drawn": entries(whole(0, 1), 2),
            "advantages": whole_numbers(2),
            "corrections": whole_numbers(2),
            "step_size": positive_number(max=1),
        },
        conclusion=lambda policy, features, drawn, advantages, corrections, step_size: (
            _step(policy, features, drawn, advantages, corrections, step_size).holds
        ),
        source=RAC,
        latex=r"h_y = \phi_y \cdot \frac{\eta}{n} \sum_i \delta_i \nabla \log \pi(y_i)",
        theorem="softmax_step_TV (Shift.v)",
    ),
)
