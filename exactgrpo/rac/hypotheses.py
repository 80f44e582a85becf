"""What the bias identity needs, in each reading of its hypotheses, decided for one model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from exactgrpo.errors import InputError, UndecidedError
from exactgrpo.field.inputs import ONE, ZERO
from exactgrpo.rac.outcomes import Atom, Model
from exactgrpo.rac.values import Value, is_zero, settled, total

Name = Literal["H1", "H2", "H3"]
Reading = Literal["given the delay", "given context and delay", "given the context", "marginal"]
Answer = Literal["holds", "fails", "vacuous", "undecided"]

STATEMENTS: Mapping[Name, str] = MappingProxyType(
    {
        "H1": "the clipped ratio has mean one",
        "H2": "clipped ratio and residual are uncorrelated",
        "H3": "the delay does not tell about the mean of the residual",
    }
)
READINGS: tuple[Reading, ...] = ("given the delay", "given context and delay", "given the context", "marginal")
SUFFICIENT: tuple[Reading, ...] = READINGS[:2]
"""The readings of H1 and H2 that, with H3, imply the identity; the two others do not."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One hypothesis in one reading: whether it holds, and the first place where it fails.

    `value` is what should be one (H1) or zero (H2, H3) at `place`. "vacuous" says that there is no signal in question: none that lands with
    positive weight, or none that arrives. "undecided" says that an irrational number at `place` was not told from its target.
    """

    name: Name
    reading: Reading
    answer: Answer
    place: str = ""
    value: Value | None = None


def decide_hypotheses(model: Model) -> tuple[Hypothesis, ...]:
    """H1, H2 and H3 in each reading; H3 has one reading, given the delay. Each channel and step is looked at by itself.

    Given the delay: E[rho | D=d] = 1; Cov(rho, X | D=d) = 0; E[X | D=d] = E X, for every d that lands with positive weight. Given context
    and delay: the first two for every context C and such d. Given the context: for every C, all delays together that arrive at all.
    Marginal: over all that arrives. Only the first two readings suffice, each with H3.
    Theorems: C1_one (Delay.v), ratio_unbiased_of_cond_indep (Premise.v); that pairwise independence does not suffice: bias_half (Xor.v).

    >>> from exactgrpo.rac.kernel import Channel, Kernel
    >>> from exactgrpo.rac.outcomes import Outcome
    >>> channel = Channel.of("judge", {0: "1/2", 1: "1/2"})
    >>> outcome = Outcome.of(1, [channel], residual={"judge": 1}, ratio={"judge": ["3/2", "1/2"]})
    >>> model = Model.of(Kernel.of([channel], horizon=2, offset=0), [outcome])
    >>> [(h.name, h.answer) for h in decide_hypotheses(model) if h.reading == "given the delay"]
    [('H1', 'fails'), ('H2', 'holds'), ('H3', 'holds')]
    """
    arriving = {cell: [atom for atom in model.atoms(*cell) if atom.delay is not None] for cell in model.cells()}
    landing = {cell: [atom for atom in atoms if not is_zero(model.weight(*cell, atom))] for cell, atoms in arriving.items()}
    found = []
    for reading in READINGS:
        signals = landing if reading in SUFFICIENT else arriving
        found.append(_decided("H1", reading, model, signals, _ratio_defect))
        found.append(_decided("H2", reading, model, signals, _correlation))
        if reading == "given the delay":
            found.append(_decided("H3", reading, model, signals, _delay_defect))
    return tuple(found)


def implied_by(hypotheses: Iterable[Hypothesis]) -> Reading | None:
    """The first reading in which H1 and H2 hold, H3 holding too: then the bias identity follows. None if it does not."""
    answers = {(h.name, h.reading): h.answer in ("holds", "vacuous") for h in hypotheses}
    if not answers["H3", "given the delay"]:
        return None
    return next((reading for reading in SUFFICIENT if answers["H1", reading] and answers["H2", reading]), None)


_Cells = Mapping[tuple[int, int], list[Atom]]
_Defect = Callable[[list[Atom], Value], Value]


def _decided(name: Name, reading: Reading, model: Model, signals: _Cells, defect: _Defect) -> Hypothesis:
    """A place where it fails, before one where that is undecided."""
    undecided = None
    for (channel, step), atoms in signals.items():
        mean = total(settled(a.probability * a.residual) for a in model.atoms(channel, step))
        for where, group in _groups(reading, atoms):
            gap = defect(group, mean)
            shown = settled(gap + ONE) if name == "H1" else gap
            place = f"channel {model.kernel.channels[channel].name}, step {step}{where}"
            try:
                if not is_zero(gap):
                    return Hypothesis(name, reading, "fails", place, shown)
            except UndecidedError:
                undecided = undecided or Hypothesis(name, reading, "undecided", place, shown)
    return undecided or Hypothesis(name, reading, "holds" if any(signals.values()) else "vacuous")


def _groups(reading: Reading, atoms: list[Atom]) -> Iterator[tuple[str, list[Atom]]]:
    if reading not in READINGS:
        raise InputError("reading", reading, f"one of {', '.join(READINGS)}")
    groups: dict[tuple[str, str], list[Atom]] = {}
    for atom in atoms:
        context = f", context {atom.context!r}" if "context" in reading and atom.context else ""
        delay = f", delay {atom.delay}" if "delay" in reading else ""
        groups.setdefault((context, delay), []).append(atom)
    for (context, delay), group in groups.items():
        yield context + delay, group


def _mean(atoms: list[Atom], f: Callable[[Atom], Value]) -> Value:
    """E[f | the atoms]."""
    mass = total(a.probability for a in atoms)
    return settled(total(settled(a.probability * f(a)) for a in atoms) / mass) if atoms else ZERO


def _ratio_defect(atoms: list[Atom], mean: Value) -> Value:
    return settled(_mean(atoms, lambda a: a.ratio) - ONE)


def _correlation(atoms: list[Atom], mean: Value) -> Value:
    product = _mean(atoms, lambda a: settled(a.ratio * a.residual))
    return settled(product - _mean(atoms, lambda a: a.ratio) * _mean(atoms, lambda a: a.residual))


def _delay_defect(atoms: list[Atom], mean: Value) -> Value:
    return settled(_mean(atoms, lambda a: a.residual) - mean)
