"""The format of an update file: frozen structures, validated strictly, and their JSON Schema."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args

import msgspec
from msgspec import Meta, Struct

A = TypeVar("A")
B = TypeVar("B")


class Number:
    """A number as it stands in the file: int, Decimal, or text in the grammar of exactgrpo.numbers.text."""

    __slots__ = ("raw",)

    def __init__(self, raw: int | Decimal | str) -> None:
        self.raw = raw


class Table(dict[str, A], Generic[A]):
    """Entries by name."""


class Choice(Generic[A, B]):
    """A list (A) or something else (B)."""

    __slots__ = ("value",)

    def __init__(self, value: A | B) -> None:
        self.value = value


NUMBER = {"anyOf": [{"type": "number"}, {"type": "string"}]}


def closed_object(properties: Mapping[str, Any], *, optional: Collection[str] = ()) -> dict[str, Any]:
    """The JSON Schema of an object with these properties and no others.

    >>> closed_object({"a": {}, "b": {}}, optional=["b"])["required"]
    ['a']
    """
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": dict(properties), "required": required, "additionalProperties": False}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _table(values: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": values}


def _shape(schema: dict[str, Any]) -> Meta:
    return Meta(extra_json_schema=schema)


def _about(text: str, shape: dict[str, Any] | None = None) -> Meta:
    return Meta(description=text, extra_json_schema=shape)


Parameters = Annotated[list[str], _about("Names of the parameters: letters, digits, underscores.")]
Names = Annotated[list[str] | None, _about("Names of the parameters; theta1, theta2, ... when absent.")]
Theta0 = Annotated[list[Number], _about("The initial parameter: one exact number for each parameter, inside the domain.")]
Domain = Annotated[list[str], _about("Strict inequalities in the parameters, such as '0 < t < 1', that cut the open domain U.")]


class Prompt(Struct, frozen=True, forbid_unknown_fields=True):
    """A prompt with its ordered policy support, rewards and reference."""

    name: Annotated[str, _about("Name of the prompt; names are distinct.")]
    rewards: Annotated[
        Choice[list[Number], Table[Number]],
        _about(
            "The reward of each response in order, or a table from response to reward in which '*' stands for all others.",
            {"anyOf": [_list(NUMBER), _table(NUMBER)]},
        ),
    ]
    responses: Annotated[list[str] | None, _about("The ordered policy support; absent when a [protocol] generates it.")] = None
    reference: Annotated[list[Number] | None, _about("Reference masses in support order: positive, summing to one.")] = None
    reference_logits: Annotated[list[Number] | None, _about("Reference logits in support order.")] = None


class SimplexPolicy(Struct, frozen=True, forbid_unknown_fields=True, tag_field="family", tag="simplex"):
    """theta holds the first n-1 masses of each prompt."""

    theta0: Theta0
    parameters: Names = None
    domain: Domain = []


class RationalPolicy(Struct, frozen=True, forbid_unknown_fields=True, tag_field="family", tag="rational"):
    """Masses proportional to polynomials over Q in the parameters."""

    parameters: Parameters
    theta0: Theta0
    weights: Annotated[
        Table[list[Number]], _about("For each prompt one polynomial for each response, such as '1 - t'.", _table(_list(NUMBER)))
    ]
    domain: Domain = []


class ExpressionPolicy(Struct, frozen=True, forbid_unknown_fields=True, tag_field="family", tag="expression"):
    """Masses proportional to formulas with + - * / ^ sqrt log exp in the parameters."""

    parameters: Parameters
    theta0: Theta0
    weights: Annotated[
        Table[list[Number]], _about("For each prompt one formula for each response, such as 'exp(-t^2)'.", _table(_list(NUMBER)))
    ]
    domain: Domain = []


class SoftmaxPolicy(Struct, frozen=True, forbid_unknown_fields=True, tag_field="family", tag="softmax"):
    """Masses proportional to base_j exp(phi_j . theta)."""

    theta0: Theta0
    features: Annotated[
        Table[list[list[Number]]],
        _about("For each prompt a matrix: a row for each response, a column for each parameter.", _table(_list(_list(NUMBER)))),
    ]
    base: Annotated[
        Annotated[Table[list[Number]], _shape(_table(_list(NUMBER)))] | None,
        _about("For a prompt, positive base masses, one for each response; one when absent."),
    ] = None
    parameters: Names = None
    domain: Domain = []


class TokensPolicy(Struct, frozen=True, forbid_unknown_fields=True, tag_field="family", tag="tokens"):
    """Next-token families, composed by the protocol; the longest matching context wins: 'q1 x y', 'q1 x', 'q1', '*'."""

    conditional: Annotated[Literal["softmax", "rational"], _about("How a context's table makes next-token masses.")]
    parameters: Parameters
    theta0: Theta0
    logits: Annotated[
        Annotated[Table[Table[Number]], _shape(_table(_table(NUMBER)))] | None,
        _about("With conditional softmax: context -> token -> logit, affine in the parameters."),
    ] = None
    weights: Annotated[
        Annotated[Table[Table[Number]], _shape(_table(_table(NUMBER)))] | None,
        _about("With conditional rational: context -> token -> weight, a polynomial in the parameters."),
    ] = None
    domain: Domain = []


class Protocol(Struct, frozen=True, forbid_unknown_fields=True):
    """The generation protocol: responses are the token sequences that end with `end` or have the maximum length."""

    vocabulary: Annotated[list[str], _about("Tokens other than the end token.")]
    end: Annotated[str, _about("The end token.")]
    max_length: Annotated[int, _about("Maximum number of tokens of a response, the end token included.")]


class ReferenceParameter(Struct, frozen=True, forbid_unknown_fields=True):
    """The reference as the policy family at a parameter."""

    theta: Annotated[list[Number], _about("A parameter in the domain.")]


class SeedDraws(Struct, frozen=True, forbid_unknown_fields=True):
    """Draws by the exact sampler."""

    seed: Annotated[int, _about("The seed n of the sampler's bits, SHA-256 of 'n,t,prompt,sample,block'.")]


class Update(Struct, frozen=True, forbid_unknown_fields=True):
    """The constants of the update and its draws."""

    group_size: Annotated[int, _about("G >= 2, draws for each prompt and outer iteration.")]
    outer_iterations: Annotated[int, _about("T >= 1.")]
    inner_steps: Annotated[int, _about("K >= 1.")]
    beta: Annotated[Number, _about("Penalty weight, >= 0.")]
    step_size: Annotated[
        Choice[list[list[Number]], Number],
        _about("Step size > 0, or a table of T rows with K step sizes each.", {"anyOf": [NUMBER, _list(_list(NUMBER))]}),
    ]
    draws: Annotated[list[list[list[str]]] | SeedDraws, _about("Responses by name, [outer][prompt][sample]; or {seed = n}.")]
    epsilon: Annotated[Number | None, _about("Clipping threshold, 0 < epsilon < 1.")] = None
    epsilon_low: Annotated[Number | None, _about("Lower clipping threshold, instead of epsilon.")] = None
    epsilon_high: Annotated[Number | None, _about("Upper clipping threshold, instead of epsilon.")] = None


Policy = SimplexPolicy | RationalPolicy | SoftmaxPolicy | TokensPolicy | ExpressionPolicy
FAMILIES = {str(kind.__struct_config__.tag): kind for kind in get_args(Policy)}


class UpdateFile(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="update"):
    """A finite-budget group-relative policy update. Numbers are integers, decimals (taken exactly) or text such as '3/7', 'sqrt(2)'."""

    prompts: Annotated[list[Prompt], _about("The ordered prompts.")]
    policy: Annotated[Policy, _about("The policy family.")]
    update: Annotated[Update, _about("The constants of the update and its draws.")]
    protocol: Annotated[Protocol | None, _about("The generation protocol of a tokens policy.")] = None
    reference: Annotated[ReferenceParameter | None, _about("The reference as the family at a parameter.")] = None


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of the format.

    >>> json_schema()["$defs"]["Protocol"]["required"]
    ['vocabulary', 'end', 'max_length']
    """
    schema = msgspec.json.schema(UpdateFile, schema_hook=_schema_of_custom)
    schema["$defs"]["UpdateFile"]["properties"]["kind"]["description"] = "The kind of the file."
    for family in FAMILIES.values():
        schema["$defs"][family.__name__]["properties"]["family"]["description"] = "The name of the policy family."
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "exactgrpo update file", **schema}


def _schema_of_custom(kind: Any) -> dict[str, Any]:
    if kind is Number:
        return NUMBER
    raise NotImplementedError  # tables and choices carry theirs in their annotations
