"""Delay laws from continuous ones: certified cell masses, rounded to multiples of 2^-64 that sum to one exactly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import ceil
from typing import Any, Literal, TypeAlias

from flint import arb, fmpq

from exactgrpo.errors import InputError, LimitError
from exactgrpo.field.inputs import ZERO, positive, sum_of
from exactgrpo.numbers.expression import enclose
from exactgrpo.numbers.inputs import whole
from exactgrpo.numbers.precision import precision
from exactgrpo.numbers.real import Real
from exactgrpo.numbers.rounding import bounds
from exactgrpo.rac.delay_law import MAX_CELLS, DelayLaw

UNIT_BITS = 64
"""Masses are multiples of 2^-64."""
_GUARD_BITS = 16  # further bits that order the remainders
_FIRST_BITS, _MAX_BITS = 192, 3072
_TINY = Fraction(1, 1 << (UNIT_BITS + 2 * _GUARD_BITS))
_PRECISE = arb(2) ** -(UNIT_BITS + _GUARD_BITS + 1)

Name = Literal["pareto", "gaussian", "log-normal", "cauchy", "exponential"]
Tails: TypeAlias = Callable[[Fraction, Mapping[str, Any]], tuple[Any, Any]]
"""Balls of P(X <= x) and P(X > x) for balls of the parameters."""


def discretised(law: Name, *, max: int, mean: Any = None, **parameters: Any) -> DelayLaw:
    """The law of a continuous X rounded to whole steps and truncated: P(D = d) = P(d - 1/2 < X <= d + 1/2)/P(-1/2 < X <= max + 1/2).

    Laws, their parameters, and their distribution functions:

    - "pareto": shape a > 0, scale b > 0: 1 - (b/x)^a for x > b.
    - "gaussian": mu, sigma > 0: (1 + erf((x - mu)/(sigma sqrt 2)))/2.
    - "log-normal": mu, sigma > 0: that of "gaussian" at log x, x > 0.
    - "cauchy": location c, scale b > 0: 1/2 + arctan((x - c)/b)/pi.
    - "exponential": scale b > 0: 1 - exp(-x/b) for x > 0.

    `mean` matches E D exactly, by `DelayLaw.matched`. With it the scale of "pareto" and "exponential", mu and the location may be left out:
    they are then such that X itself has this mean (of a Cauchy law: this median).

    Each cell is enclosed by balls until it is known to 2^-80 or better, and rounded down to a multiple of 2^-64; what is then missing to
    one goes, 2^-64 each, to the cells of largest remainder. Cells left with nothing are no part of the law. The `error` of the law bounds
    its total variation distance to the exact cell masses: the rounding, and the mass moved to match a mean. Numbers are not symbolic.
    InputError for other parameters or a mean that is not reached; LimitError beyond 10,000 cells, or if 3072 bits do not tell the masses,
    because almost nothing of the law is on {0..max}, or a step is too small for it. Ours.

    >>> seen = discretised("gaussian", mu=1, sigma=1, max=2)
    >>> [mass.digits(6) for _, mass in seen.masses], seen.error < Fraction(1, 2**64)
    (['0.279010', '0.441980', '0.279010'], True)
    >>> discretised("pareto", shape=3, mean=20, max=200).mean()
    Real('20')
    """
    if not isinstance(law, str) or law not in _LAWS:
        raise InputError("law", law, f"one of {', '.join(_LAWS)}")
    cells = whole(max, "max", least=1) + 1
    if cells > MAX_CELLS:
        raise LimitError("max", max, f"below {MAX_CELLS}")
    target = None if mean is None else Real.of(mean, "mean")
    enclosures = _cells(_LAWS[law].tails, _parameters(law, target, parameters), cells)
    masses = [Fraction(units, 1 << UNIT_BITS) for units in _rounded(enclosures)]
    error = sum((mass - low if mass - low > high - mass else high - mass) for mass, (low, high) in zip(masses, enclosures, strict=True)) / 2
    scale = 1 << (UNIT_BITS + _GUARD_BITS)
    bound = Real(Fraction(ceil(error * scale), scale))
    rounded = DelayLaw(tuple((d, Real(mass)) for d, mass in enumerate(masses) if mass), ZERO, bound)
    if target is None:
        return rounded
    matched = rounded.matched(target)
    return replace(matched, error=bound + _moved(rounded, matched))


def _moved(before: DelayLaw, after: DelayLaw) -> Real:
    """The total variation distance, for `after` on the delays of `before`."""
    masses = dict(after.masses)
    return sum_of([abs(mass - masses.get(delay, ZERO)) for delay, mass in before.masses]) / 2


# ---- cells


def _cells(tails: Tails, parameters: Mapping[str, Real], count: int) -> list[tuple[Fraction, Fraction]]:
    """Bounds of the cell masses, closer than 2^-80."""
    edges = [Fraction(2 * d - 1, 2) for d in range(count + 1)]
    bits = _FIRST_BITS
    while bits <= _MAX_BITS:
        with precision(bits):
            balls = {name: enclose(x.expression, bits) for name, x in parameters.items()}
            at = [tails(edge, balls) for edge in edges]
            everything = _between(at[0], at[-1])
            masses = [_between(left, right) / everything for left, right in pairwise(at)] if everything > 0 else []
            if masses and all(mass.is_finite() and mass.rad() < _PRECISE for mass in masses):
                return [_bounds(mass) for mass in masses]
        bits *= 2
    last = count - 1
    rule = f"{_MAX_BITS} bits do not tell the cell masses: hardly anything of the law is on 0 to {last}, or a step is too small for it"
    raise LimitError("max", last, rule)


def _bounds(mass: Any) -> tuple[Fraction, Fraction]:
    """Bounds of a mass, which is not negative; one that is tiny, or known too well, is not written out."""
    return (Fraction(0), _TINY) if mass < _ball(_TINY) else bounds(mass + arb(0, _ball(_TINY)))


def _between(left: tuple[Any, Any], right: tuple[Any, Any]) -> Any:
    """P(x < X <= y) by the lower or the upper tails of x and y, whichever is closer."""
    below, above = right[0] - left[0], left[1] - right[1]
    return below if below.rad() < above.rad() else above


def _rounded(enclosures: Sequence[tuple[Fraction, Fraction]]) -> list[int]:
    """Non-negative integers that sum to 2^64: what the masses have in this unit, rounded down, and one more for the largest remainders.

    The mid-points sum to one up to 10,000 * 2^-80, so less than one unit for each cell is missing.
    """
    scale = 1 << (UNIT_BITS + _GUARD_BITS)
    scaled = [max(0, round((low + high) / 2 * scale)) for low, high in enclosures]
    units = [x >> _GUARD_BITS for x in scaled]
    missing = (1 << UNIT_BITS) - sum(units)
    for d in sorted(range(len(units)), key=lambda d: (-(scaled[d] % (1 << _GUARD_BITS)), d))[:missing]:
        units[d] += 1
    return units


# ---- laws


@dataclass(frozen=True, slots=True)
class _Law:
    """The tails, the parameters (True for positive ones), and the parameter that a mean can stand for, from the mean and the others."""

    tails: Tails
    parameters: dict[str, bool]
    free: str
    by_mean: Callable[[Real, Mapping[str, Real]], Real]


def _parameters(name: str, mean: Real | None, given: Mapping[str, Any]) -> dict[str, Real]:
    law = _LAWS[name]
    for key in given:
        if key not in law.parameters:
            raise InputError(key, given[key], f"no parameter of {name}, which has {', '.join(law.parameters)}")
    numbers = {key: positive(x, key, f"{key} > 0") if law.parameters[key] else Real.of(x, key) for key, x in given.items() if x is not None}
    for key in law.parameters:
        if key not in numbers and not (key == law.free and mean is not None):
            raise InputError(key, "missing", f"{name} has the parameters {', '.join(law.parameters)}; a mean can stand for {law.free}")
    if law.free not in numbers and mean is not None:
        numbers[law.free] = law.by_mean(mean, numbers)
    return numbers


def _positive_mean(mean: Real) -> Real:
    return positive(mean, "mean", "mean > 0, as this law has")


def _pareto_scale(mean: Real, numbers: Mapping[str, Real]) -> Real:
    shape = numbers["shape"]
    if shape <= 1:
        raise InputError("shape", repr(shape), "shape > 1, or a scale: otherwise the law has no mean")
    return _positive_mean(mean) * (shape - 1) / shape


def _pareto(x: Fraction, at: Mapping[str, Any]) -> tuple[Any, Any]:
    above = arb(1) if x <= 0 else ((at["scale"] / _ball(x)).log().min(arb(0)) * at["shape"]).exp()
    return 1 - above, above


def _exponential(x: Fraction, at: Mapping[str, Any]) -> tuple[Any, Any]:
    above = arb(1) if x <= 0 else (-_ball(x) / at["scale"]).exp()
    return 1 - above, above


def _gaussian(x: Fraction, at: Mapping[str, Any]) -> tuple[Any, Any]:
    return _normal_tails((_ball(x) - at["mu"]) / at["sigma"])


def _log_normal(x: Fraction, at: Mapping[str, Any]) -> tuple[Any, Any]:
    return (arb(0), arb(1)) if x <= 0 else _normal_tails((_ball(x).log() - at["mu"]) / at["sigma"])


def _normal_tails(z: Any) -> tuple[Any, Any]:
    u = z / arb(2).sqrt()
    return (-u).erfc() / 2, u.erfc() / 2


def _cauchy(x: Fraction, at: Mapping[str, Any]) -> tuple[Any, Any]:
    angle = ((_ball(x) - at["location"]) / at["scale"]).atan() / arb.pi()
    return arb(1) / 2 + angle, arb(1) / 2 - angle


def _ball(x: Fraction) -> Any:
    return arb(fmpq(x.numerator, x.denominator))


_LAWS: dict[str, _Law] = {
    "pareto": _Law(_pareto, {"shape": True, "scale": True}, "scale", _pareto_scale),
    "gaussian": _Law(_gaussian, {"mu": False, "sigma": True}, "mu", lambda mean, numbers: mean),
    "log-normal": _Law(
        _log_normal, {"mu": False, "sigma": True}, "mu", lambda mean, numbers: _positive_mean(mean).log() - numbers["sigma"] ** 2 / 2
    ),
    "cauchy": _Law(_cauchy, {"location": False, "scale": True}, "location", lambda mean, numbers: mean),
    "exponential": _Law(_exponential, {"scale": True}, "scale", lambda mean, numbers: _positive_mean(mean)),
}
PARAMETERS = {name: ([key for key in law.parameters if key != law.free], law.free) for name, law in _LAWS.items()}
"""The parameters of each law beside `max`, and the one that a mean can stand for."""
