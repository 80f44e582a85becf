"""The benchmark over topologies, delay laws of one mean, and sizes; and why the law of the delay hardly matters there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from exactgrpo.errors import InputError
from exactgrpo.field.inputs import ZERO
from exactgrpo.numbers.inputs import listed, whole
from exactgrpo.numbers.real import Real
from exactgrpo.rac.age import decide_ageing_gap
from exactgrpo.rac.delay_law import DelayLaw
from exactgrpo.rac.discretised import discretised
from exactgrpo.tabular.file import SLOW, TIME_CONSTANT
from exactgrpo.tabular.mdp import Law, Mdp
from exactgrpo.tabular.policy_bias import PolicyBias, policy_bias
from exactgrpo.tabular.published import SIZES, published_instance

CANONICAL = "canonical"
DETERMINISTIC = "deterministic"
REACH = 4
"""Delays go up to this many times their mean."""


@dataclass(frozen=True, slots=True)
class DelayEffect:
    """RAC under a law of the delay D, against the delay E D.

    The expected `weight` w = E exp(-D/tau) is all that the law of an independent delay does to an expected gradient. `bias` is that at w,
    `reduction` the naive bias over it (None without a bias), `matched_bias` the bias at exp(-E D/tau). `bound` is
    |g_slow| Var(D)/(2 tau^2). `holds`: 0 <= w - exp(-E D/tau) <= Var(D)/(2 tau^2), and the two biases are at most `bound` apart.
    """

    weight: Real
    bias: Real
    reduction: Real | None
    matched_bias: Real
    bound: Real
    holds: bool


@dataclass(frozen=True, slots=True)
class Cell:
    """RAC at one topology, size, law of the delay and mean delay."""

    topology: str
    states: int
    actions: int
    law: str
    mean_delay: int
    effect: DelayEffect


def grid(
    *,
    topologies: Sequence[str] | None = None,
    sizes: Sequence[tuple[int, int]] = SIZES,
    laws: Sequence[str] | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> list[Cell]:
    """The cells of all `topologies` (by default `TOPOLOGIES`), published `sizes` and delay `laws` (by default `LAWS`) at delays 5, 20, 50.

    Each is instance 0 of its size, with the transitions of the topology. Source: Retroactive Advantage Correction, arXiv:2606.27580, which
    names the topologies and laws and matches the mean delay; transitions and shapes are ours. InputError for a name or size that is none.

    >>> cells = grid(topologies=["canonical"], sizes=[(3, 2)], laws=["deterministic", "pareto"])
    >>> [(cell.law, cell.mean_delay, cell.effect.reduction.digits(4), cell.effect.holds) for cell in cells if cell.mean_delay < 50]
    [('deterministic', 5, '69.29', True), ('deterministic', 20, '83.68', True), ('pareto', 5, '69.28', True), ('pareto', 20, '83.78', True)]
    """
    shapes = [_known(name, TOPOLOGIES, "topology") for name in listed(list(TOPOLOGIES) if topologies is None else topologies, "topologies")]
    names = [_known(name, LAWS, "law") for name in listed(list(LAWS) if laws is None else laws, "laws")]
    cells = []
    for states, actions in listed(sizes, "sizes"):
        benchmark = published_instance(states, actions)
        for shape in shapes:
            progress(f"{shape}, {states}x{actions}")
            bias = policy_bias(with_topology(benchmark.mdp, shape), (SLOW,))
            for name in names:
                for delay in benchmark.delays:
                    effect = decide_delay_effect(bias, delay_law(name, delay), time_constant=benchmark.time_constant)
                    cells.append(Cell(shape, states, actions, name, delay, effect))
    return cells


def decide_delay_effect(bias: PolicyBias, law: DelayLaw, *, time_constant: Any = TIME_CONSTANT) -> DelayEffect:
    """What a law of the delay does to the bias of RAC, one channel being late; both comparisons of `DelayEffect` are decided.

    |g_fast + w g_slow - g*| is Lipschitz in w with the constant |g_slow|, and w is within Var(D)/(2 tau^2) of the weight of the mean
    delay (`decide_ageing_gap`). So laws of one mean and a standard deviation far below tau give one reduction, in whatever MDP; others
    need not. InputError for several late channels, or a law that never arrives. Ours.

    >>> from exactgrpo.tabular.file import load_benchmark
    >>> bias = policy_bias(load_benchmark("3x2").mdp)
    >>> laws = [DelayLaw.deterministic(50), DelayLaw.of({0: "9/10", 500: "1/10"})]
    >>> found = [decide_delay_effect(bias, law) for law in laws]
    >>> [(effect.reduction.digits(3), effect.holds) for effect in found]
    [('27.5', True), ('36.6', True)]
    """
    if len(bias.late) != 1:
        raise InputError("late", f"{len(bias.late)} channels", "one late channel")
    gap = decide_ageing_gap(law, time_constant)
    own, matched = bias.norm([gap.mean_weight]), bias.norm([gap.weight_of_mean])
    bound = Real(bias.gram[1][1]).sqrt() * gap.bound
    reduction = None if own == 0 else bias.norm([ZERO]) / own
    return DelayEffect(gap.mean_weight, own, reduction, matched, bound, gap.holds and abs(own - matched) <= bound)


def with_topology(mdp: Mdp, name: str) -> Mdp:
    """The MDP with the transitions of a topology of `TOPOLOGIES`.

    f_a = (a + 1)/(actions + 1) is how likely action a moves on. "chain": to the next state, else to the one before; the ends stay.
    "cyclic": to the next state in a circle, else it stays. "terminal": to the next state, else it stays; the last state starts again
    anywhere. "dense": to any state, twice as likely to the one that is a + 1 further in the circle. "canonical": as it is.

    >>> one = Mdp.of([[[1, 0]], [[1, 0]]], [[1], [1]], {"slow": [[0], [1]]}, discount=0, horizon=1)
    >>> [[str(x) for x in with_topology(one, name).transition[0][0]] for name in TOPOLOGIES]
    [['1', '0'], ['1/2', '1/2'], ['1/2', '1/2'], ['1/3', '2/3'], ['1/2', '1/2']]
    """
    rule = TOPOLOGIES[_known(name, TOPOLOGIES, "topology")]
    if rule is None:
        return mdp
    rows = [[rule(s, a, mdp.states, mdp.actions) for a in range(mdp.actions)] for s in range(mdp.states)]
    return Mdp.of(rows, mdp.policy, mdp.rewards, discount=mdp.discount, horizon=mdp.horizon, start=mdp.start)


def delay_law(name: str, mean: int) -> DelayLaw:
    """A law of `LAWS` on {0..4 mean} with exactly this mean; all but "deterministic" are `discretised` continuous laws.

    Standard deviation mean/4 ("gaussian"), sigma 1/2 ("log-normal"), shape 3 ("pareto"), scale mean/10 ("cauchy", truncated).

    >>> delay_law("cauchy", 5).mean(), delay_law("cauchy", 5).largest
    (Real('5'), 20)
    """
    return LAWS[_known(name, LAWS, "law")](whole(mean, "mean", least=1))


def _known(name: str, table: Mapping[str, Any], place: str) -> str:
    if not isinstance(name, str) or name not in table:
        raise InputError(place, str(name)[:100], f"one of {', '.join(table)}")
    return name


# ---- topologies


def _moves(states: int, moves: Sequence[tuple[int, Fraction]]) -> Law:
    masses = [Fraction(0)] * states
    for state, mass in moves:
        masses[state] += mass
    return tuple(masses)


def _forward(action: int, actions: int) -> Fraction:
    return Fraction(action + 1, actions + 1)


def _chain(state: int, action: int, states: int, actions: int) -> Law:
    p = _forward(action, actions)
    return _moves(states, [(min(state + 1, states - 1), p), (max(state - 1, 0), 1 - p)])


def _cyclic(state: int, action: int, states: int, actions: int) -> Law:
    p = _forward(action, actions)
    return _moves(states, [((state + 1) % states, p), (state, 1 - p)])


def _terminal(state: int, action: int, states: int, actions: int) -> Law:
    if state == states - 1:
        return (Fraction(1, states),) * states
    return _cyclic(state, action, states, actions)


def _dense(state: int, action: int, states: int, actions: int) -> Law:
    share = Fraction(1, states + 1)
    return _moves(states, [*((s, share) for s in range(states)), ((state + action + 1) % states, share)])


TOPOLOGIES: dict[str, Callable[[int, int, int, int], Law] | None] = {
    CANONICAL: None,
    "chain": _chain,
    "cyclic": _cyclic,
    "dense": _dense,
    "terminal": _terminal,
}

LAWS: dict[str, Callable[[int], DelayLaw]] = {
    DETERMINISTIC: DelayLaw.deterministic,
    "gaussian": lambda mean: discretised("gaussian", max=REACH * mean, mean=mean, sigma=Fraction(mean, 4)),
    "log-normal": lambda mean: discretised("log-normal", max=REACH * mean, mean=mean, sigma=Fraction(1, 2)),
    "pareto": lambda mean: discretised("pareto", max=REACH * mean, mean=mean, shape=3),
    "cauchy": lambda mean: discretised("cauchy", max=REACH * mean, mean=mean, scale=Fraction(mean, 10)),
}
