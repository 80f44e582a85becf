"""The three checks on a batch of rewards as JSON data and as tables, each with what it can show."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from rich.text import Text

from exactgrpo.numbers.real import Real
from exactgrpo.report.numbers import SHORT, Format
from exactgrpo.report.tables import plain_table
from exactgrpo.tabular.probe import STATEMENTS, ForwardInjection, Probe

_NUMBERS = ("weight", "dropped", "error", "variance", "squared_mean", "covariance", "average_error", "best_weight")


def probe_data(found: Probe) -> dict[str, Any]:
    """JSON data of the checks; numbers as everywhere. The injection is null if no group has more rows than the shift."""
    rewards, identity, injection = found.rewards, found.identity, found.injection
    return {
        "rows": rewards.rows,
        "complete": rewards.complete,
        "missing_fast": rewards.missing_fast,
        "missing_slow": rewards.missing_slow,
        "groups": len(rewards.groups),
        "identity_kernel": {
            "holds": identity.holds,
            "double_misses": identity.double_misses,
            "greatest_double_error": _number(identity.greatest_double_error),
        },
        "slack_scaling": [
            {"slack": _number(x.slack), "bias": _number(x.bias), "error": _number(x.error), "holds": x.holds} for x in found.scaling
        ],
        "forward_injection": None if injection is None else _injection_data(injection),
        "statements": STATEMENTS,
    }


def _injection_data(injection: ForwardInjection) -> dict[str, Any]:
    return {
        "shift": injection.shift,
        "rows": injection.rows,
        "left_out": injection.left_out,
        **{name: _number(getattr(injection, name)) for name in _NUMBERS},
        "helps": injection.helps,
        "helps_on_average": injection.helps_on_average,
    }


def probe_parts(found: Probe) -> list[Any]:
    """The parts of a report: the rows, and for each check its numbers and its statement."""
    rewards, identity = found.rewards, found.identity
    scaling = plain_table("slack", "sum of errors", "mean square error", "scales")
    for check in found.scaling:
        scaling.add_row(_text(check.slack), _text(check.bias), _text(check.error), "exactly" if check.holds else "no")
    missing = f"{rewards.missing_fast} without a fast and {rewards.missing_slow} without a slow reward"
    return [
        Text(f"{rewards.rows} rows: {rewards.complete} with both rewards, {missing}; groups: {len(rewards.groups)}"),
        Text("identity kernel", "bold"),
        Text(
            f"{'holds exactly' if identity.holds else 'does not hold'}; doubles miss in {identity.double_misses} rows, "
            f"by at most {_text(identity.greatest_double_error)}"
        ),
        Text(STATEMENTS["identity_kernel"]),
        Text("\nslack scaling", "bold"),
        scaling,
        Text(STATEMENTS["slack_scaling"]),
        Text("\nforward injection", "bold"),
        *_injection_parts(found.injection),
        Text(STATEMENTS["forward_injection"]),
    ]


def _injection_parts(injection: ForwardInjection | None) -> list[Any]:
    if injection is None:
        return [Text("no group has more rows than the shift")]
    table = plain_table(f"shift {injection.shift}, w = {_text(injection.weight)}, {injection.rows} rows", "")
    for name, value in (
        ("mean square error when dropped, v + m^2", injection.dropped),
        ("mean square error at this shift", injection.error),
        ("mean square error over all shifts", injection.average_error),
        ("v, variance of the residuals", injection.variance),
        ("m^2, square of their mean", injection.squared_mean),
        ("c, covariance at this shift", injection.covariance),
        ("best w at this shift", injection.best_weight),
    ):
        table.add_row(name, "" if value is None else _text(value))
    answers = [f"{'helps' if helps else 'does not help'} {where}" for helps, where in _answers(injection)]
    return [table, Text(f"{'; '.join(answers)}; rows of groups too short for it: {injection.left_out}")]


def _answers(injection: ForwardInjection) -> list[tuple[bool, str]]:
    return [(injection.helps, "at this shift"), (injection.helps_on_average, "over all shifts")]


def _number(x: Fraction | None) -> Any:
    return None if x is None else Format().data(Real(x))


def _text(x: Fraction) -> str:
    return Format(digits=6).text(Real(x), longest=SHORT)
