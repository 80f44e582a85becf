"""The format of files of kind "rac" as a JSON Schema, from which the reader takes the keys of each table."""

from __future__ import annotations

from typing import Any, get_args

from exactgrpo.rac.delay_law import MAX_CELLS, MAX_DELAY
from exactgrpo.rac.discretised import PARAMETERS
from exactgrpo.rac.kernel import MAX_HORIZON
from exactgrpo.rac.verdict import Kind
from exactgrpo.spec.schema import NUMBER, closed_object

Schema = dict[str, Any]
_WHOLE: Schema = {"type": "integer", "minimum": 0}
_TEXT: Schema = {"type": "string"}
_VERDICTS: Schema = {"type": "object", "additionalProperties": {"enum": list(get_args(Kind))}}
_BY_DELAY: Schema = {"type": "object", "patternProperties": {"^[0-9]+$": NUMBER}, "additionalProperties": False}
_ROW: Schema = {"anyOf": [{"type": "array", "items": NUMBER}, _BY_DELAY]}


def _about(text: str, shape: Schema) -> Schema:
    return {"description": text, **shape}


def _table(needed: Schema, more: Schema | None = None) -> Schema:
    return closed_object({**needed, **(more or {})}, optional=more or ())


def _by_law(laws: dict[str, tuple[Schema, Schema]]) -> dict[str, Schema]:
    return {name: _table({"law": {"const": name}, **needed}, more) for name, (needed, more) in laws.items()}


_MAX = _about("The largest delay.", {"type": "integer", "minimum": 1, "maximum": MAX_CELLS})


def _continuous(name: str, needed: list[str], free: str) -> Schema:
    largest = {**_MAX, "maximum": MAX_CELLS - 1}
    mean = _about(f"The mean of the delay, matched exactly; it can stand for {free}.", NUMBER)
    parameters = {key: _about("A parameter of the law.", NUMBER) for key in (*needed, free)}
    table = _table(
        {"law": {"const": name}, "max": largest, **{key: parameters[key] for key in needed}}, {free: parameters[free], "mean": mean}
    )
    return {**table, "anyOf": [{"required": [free]}, {"required": ["mean"]}]}


DELAY_LAWS = _by_law(
    {
        "deterministic": ({"delay": _about("The delay.", {**_WHOLE, "maximum": MAX_DELAY})}, {}),
        "geometric": (
            {"p": _about("P(D = d) = p (1 - p)^d: the probability of arriving at each step, 0 to 1.", NUMBER), "max": _MAX},
            {"rest": _about("Where what is left goes: dropped, or the delay max.", {"enum": ["never", "last"]})},
        ),
    }
) | {name: _continuous(name, needed, free) for name, (needed, free) in PARAMETERS.items()}
LATENCY_FILE = _table(
    {
        "file": _about("A CSV file beside this one.", _TEXT),
        "column": _about("The column of latencies.", _TEXT),
        "unit": _about("The time of one optimiser step, in the unit of the column.", NUMBER),
    },
    {
        "failed": _about("A column that says which rows failed; those never arrive.", _TEXT),
        "where": _about("Texts that columns of the rows must have.", {"type": "object", "additionalProperties": _TEXT}),
    },
)
AGE_LAWS = _by_law(
    {
        "none": ({}, {}),
        "exponential": ({"tau": _about("exp(-d/tau), tau > 0.", NUMBER)}, {}),
        "geometric": ({"ratio": _about("ratio^d, ratio >= 0.", NUMBER)}, {}),
        "hyperbolic": ({"rate": _about("1/(1 + rate d), rate >= 0.", NUMBER)}, {}),
        "table": (
            {
                "weights": _about(
                    "A weight for each delay: a list, a table by delay, or a list of those, one for each step.",
                    {"anyOf": [_ROW, {"type": "array", "items": _ROW}]},
                )
            },
            {},
        ),
        "inverse-arrival": ({}, {}),
        "mse-optimal": (
            {
                "second_moments": _about("E[rho_d^2 X^2 | D = d] for each delay d.", _BY_DELAY),
                "mean": _about("E X.", NUMBER),
                "samples": _about("How many rollouts are averaged.", {"type": "integer", "minimum": 1}),
            },
            {},
        ),
    }
)
DELAY: Schema = _about(
    'The law of the delay in steps: a delay, a table from delays and "never" to probabilities, a law by name, or measured latencies.',
    {"anyOf": [{**_WHOLE, "maximum": MAX_DELAY}, *({"$ref": f"#/$defs/{name}"} for name in ("DelayTable", "LatencyFile", "DelayLaw"))]},
)


def _by_channel(text: str, entry: Schema) -> Schema:
    return _about(text, {"type": "object", "additionalProperties": entry})


CHANNEL = _table(
    {"name": _about("The name of the channel; names are distinct.", {"type": "string", "minLength": 1}), "delay": DELAY},
    {
        "age": _about("The age weight w; 1 when absent.", {"$ref": "#/$defs/AgeWeight"}),
        "gain": _about("A factor of all weights, >= 0; 1 when absent.", NUMBER),
    },
)
CLIP = _table({}, {"floor": _about("Ratios below are raised to it.", NUMBER), "ceiling": _about("Ratios above are lowered to it.", NUMBER)})
OUTCOME = _table(
    {
        "probability": _about("Probabilities of a step's outcomes sum to one.", NUMBER),
        "residual": _by_channel("The residual X = slow - fast, by channel.", NUMBER),
    },
    {
        "ratio": _by_channel(
            "pi/mu at arrival, by channel: a number, or one for each delay; 1 when absent.",
            {"anyOf": [NUMBER, {"type": "array", "items": NUMBER}]},
        ),
        "behaviour": _about("The mass mu of what was drawn, > 0; with target, instead of ratio.", NUMBER),
        "target": _about("The mass pi of what was drawn.", NUMBER),
        "delay": _by_channel("The law of the delay given this outcome, by channel.", DELAY),
        "context": _about("A name that outcomes share whose conditions are read together.", _TEXT),
        "step": _about("The step that the outcome belongs to; outcomes without one are for all other steps.", _WHOLE),
    },
)
FILE = _table(
    {
        "kind": _about("The kind of the file.", {"const": "rac"}),
        "horizon": _about("Steps that enqueue residuals.", {"type": "integer", "minimum": 1, "maximum": MAX_HORIZON}),
        "channels": _about("The channels of late residuals.", {"type": "array", "items": {"$ref": "#/$defs/Channel"}, "minItems": 1}),
        "outcomes": _about("The joint law of one rollout.", {"type": "array", "items": {"$ref": "#/$defs/Outcome"}, "minItems": 1}),
    },
    {
        "offset": _about("A residual of step t with delay d is injected at t + d + offset; 1 when absent.", {"enum": [0, 1]}),
        "drain": _about("Steps after the last one that inject what is still under way; 0 when absent.", {**_WHOLE, "maximum": MAX_HORIZON}),
        "clip": _about("The clip of every ratio; none when absent.", CLIP),
        "expected": _about("Verdicts that are known, by claim; `verify` ends with 1 if there is another.", _VERDICTS),
    },
)


def json_schema() -> Schema:
    """The JSON Schema of the format.

    >>> json_schema()["required"]
    ['kind', 'horizon', 'channels', 'outcomes']
    """
    definitions = {
        "Channel": CHANNEL,
        "Outcome": OUTCOME,
        "DelayTable": {"type": "object", "patternProperties": {"^([0-9]+|never)$": NUMBER}, "additionalProperties": False},
        "DelayLaw": {"anyOf": list(DELAY_LAWS.values())},
        "LatencyFile": LATENCY_FILE,
        "AgeWeight": {"anyOf": list(AGE_LAWS.values())},
    }
    title = "exactgrpo file of delayed rewards"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **FILE, "$defs": definitions}
