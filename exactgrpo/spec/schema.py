"""The format of an update file: frozen structures, validated strictly, and their JSON Schema."""

from __future__ import annotations

import difflib
import os
import re
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from exactgrpo.errors import InputError, LimitError, PromptError
from exactgrpo.spec.reading import Format, located, parse_data, read_text

MAX_PROMPTS = 100_000
MAX_RESPONSES = 1_000_000
MAX_PARAMETERS = 10_000
MAX_STEPS = 100_000
MAX_GROUP_SIZE = 100_000
MAX_DRAWS = 10_000_000

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


_NUMBER = {"anyOf": [{"type": "number"}, {"type": "string"}]}


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
            {"anyOf": [_list(_NUMBER), _table(_NUMBER)]},
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
        Table[list[Number]], _about("For each prompt one polynomial for each response, such as '1 - t'.", _table(_list(_NUMBER)))
    ]
    domain: Domain = []


class ExpressionPolicy(Struct, frozen=True, forbid_unknown_fields=True, tag_field="family", tag="expression"):
    """Masses proportional to formulas with + - * / ^ sqrt log exp in the parameters."""

    parameters: Parameters
    theta0: Theta0
    weights: Annotated[
        Table[list[Number]], _about("For each prompt one formula for each response, such as 'exp(-t^2)'.", _table(_list(_NUMBER)))
    ]
    domain: Domain = []


class SoftmaxPolicy(Struct, frozen=True, forbid_unknown_fields=True, tag_field="family", tag="softmax"):
    """Masses proportional to base_j exp(phi_j . theta)."""

    theta0: Theta0
    features: Annotated[
        Table[list[list[Number]]],
        _about("For each prompt a matrix: a row for each response, a column for each parameter.", _table(_list(_list(_NUMBER)))),
    ]
    base: Annotated[
        Annotated[Table[list[Number]], _shape(_table(_list(_NUMBER)))] | None,
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
        Annotated[Table[Table[Number]], _shape(_table(_table(_NUMBER)))] | None,
        _about("With conditional softmax: context -> token -> logit, affine in the parameters."),
    ] = None
    weights: Annotated[
        Annotated[Table[Table[Number]], _shape(_table(_table(_NUMBER)))] | None,
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
        _about("Step size > 0, or a table of T rows with K step sizes each.", {"anyOf": [_NUMBER, _list(_list(_NUMBER))]}),
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


def load(path: str | os.PathLike[str]) -> UpdateFile:
    """Return the validated description that a .toml or .json file holds; see `loads`. Errors name the file."""
    with located(str(path)):
        return loads(*read_text(path))


def loads(text: str, format: Format) -> UpdateFile:
    """Return the validated description that a text holds: structure, types and sizes are checked, numbers are still text.

    Raises InputError, or a class of it, with the place (such as `prompts[0].rewards[1]`), the value and the rule.

    >>> loads('{"kind": "update", "prompt": []}', "json")
    Traceback (most recent call last):
    exactgrpo.errors.InputError: prompt: 'prompt': unknown key; did you mean 'prompts'?
    """
    data = parse_data(text, format)
    kind = data.get("kind")
    if kind != "update":
        shown = kind if isinstance(kind, str) else "missing" if kind is None else _shown(kind)
        raise InputError("kind", shown, "the kind of an update file is 'update'")
    file = _validated(data)
    _check_sizes(file)
    return file


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
        return _NUMBER
    raise NotImplementedError  # tables and choices carry theirs in their annotations


# ---- validation --------------------------------------------------------------------------------------------------------

_PATH = re.compile(r" - at (?:`key` in )?`\$(.*?)`\Z", re.DOTALL)
_KEY = re.compile(r"[A-Za-z0-9_-]{1,40}")
_EXPECTED = {"array": "a list", "object": "a table", "str": "text", "int": "an integer", "null": "nothing", "bool": "true or false"}


class _Nested(ValueError):
    """A failure inside a table or list that msgspec does not look into."""

    def __init__(self, path: str, value: object, message: str) -> None:
        self.path, self.value, self.message = path, value, message
        super().__init__(message)


def _validated(data: dict[str, Any]) -> UpdateFile:
    try:
        return msgspec.convert(data, UpdateFile, dec_hook=_convert_custom)
    except msgspec.ValidationError as error:
        path, value, message = _failure(error, data)
        raise _input_error(data, path.removeprefix("."), value, message) from None
    except RecursionError:
        raise LimitError("file", "deep nesting", "the file nests too deeply") from None


def _convert_custom(kind: Any, value: Any) -> Any:
    origin = get_origin(kind) or kind
    if origin is Number:
        if isinstance(value, (int, Decimal, str)) and not isinstance(value, bool):
            return Number(value)
        raise _Nested("", value, "a number is an integer, a decimal, or text such as '3/7'")
    if origin is Choice:
        return Choice(_converted(value, get_args(kind)[0 if isinstance(value, list) else 1], ""))
    if not isinstance(value, dict):
        raise _Nested("", value, "a table is needed")
    (entry,) = get_args(kind)
    return Table({key: _converted(x, entry, key_place(key)) for key, x in value.items()})


def _converted(value: Any, kind: Any, path: str) -> Any:
    try:
        return msgspec.convert(value, kind, dec_hook=_convert_custom)
    except msgspec.ValidationError as error:
        below, bad, message = _failure(error, value)
        raise _Nested(path + below, bad, message) from None
    except _Nested as error:
        raise _Nested(path + error.path, error.value, error.message) from None


def _failure(error: msgspec.ValidationError, data: Any) -> tuple[str, object, str]:
    """Path, offending value and message."""
    message = str(error)
    at = _PATH.search(message)
    path = at[1] if at else ""
    cause = error.__cause__
    if isinstance(cause, _Nested):
        return path + cause.path, cause.value, cause.message
    return path, _value_at(data, path), message[: at.start()] if at else message


def _value_at(data: Any, path: str) -> Any:
    for key, index in re.findall(r"\.([a-z_0-9]+)|\[(\d+)\]", path):
        data = data.get(key) if key and isinstance(data, dict) else data[int(index)] if index else None
    return data


def key_place(key: str) -> str:
    """Return how a place goes on after a key: `.q1`, or `['a b']` for a key that is not a plain word.

    >>> key_place("q1"), key_place("a b")
    ('.q1', "['a b']")
    """
    if _KEY.fullmatch(key):
        return f".{key}"
    return f"[{key!r}]" if len(key) <= 40 else f"[{key[:40]!r}...]"


def _input_error(data: dict[str, Any], path: str, value: object, message: str) -> InputError:
    place = path or "file"
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", message, re.DOTALL)
    if unknown is not None:
        key = unknown[1]
        known = _known_keys(data, path)
        near = difflib.get_close_matches(key[:100], known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"the keys here are {', '.join(known)}"
        return InputError((path + key_place(key)).removeprefix("."), key, f"unknown key; {hint}")
    missing = re.fullmatch(r"Object missing required field `(.*)`", message)
    if missing is not None:
        return InputError(place, missing[1], "this key is missing")
    if path == "policy.family":
        near = difflib.get_close_matches(value[:100] if isinstance(value, str) else "", FAMILIES, n=1)
        return InputError(place, _shown(value), f"did you mean {near[0]!r}?" if near else f"families are {', '.join(FAMILIES)}")
    if path == "policy.conditional":
        return InputError(place, _shown(value), "conditional is 'softmax' or 'rational'")
    expected = re.fullmatch(r"Expected `([^`]*)`(?:, got `.*`)?", message)
    if expected is not None:
        return InputError(place, _shown(value), " or ".join(_EXPECTED.get(kind, kind) for kind in expected[1].split(" | ")) + " is needed")
    return InputError(place, _shown(value), message)


def _known_keys(data: dict[str, Any], path: str) -> list[str]:
    kinds: dict[str, Any] = {"update": Update, "update.draws": SeedDraws, "protocol": Protocol, "reference": ReferenceParameter}
    if path == "":
        return ["kind", *UpdateFile.__struct_fields__]
    if path == "policy":
        return ["family", *FAMILIES[data["policy"]["family"]].__struct_fields__]
    return list(kinds.get(path, Prompt).__struct_fields__)


def _shown(value: object) -> str:
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return f"a table of {len(value)}"
    return {True: "true", False: "false", None: "null"}[value] if isinstance(value, bool) or value is None else str(value)


# ---- sizes -------------------------------------------------------------------------------------------------------------


def _check_sizes(file: UpdateFile) -> None:
    prompts, policy, update = file.prompts, file.policy, file.update
    if not prompts:
        raise PromptError("prompts", "an empty list", "there is at least one prompt")
    _at_most("prompts", len(prompts), MAX_PROMPTS, "prompts")
    responses = sum(len(prompt.responses or ()) for prompt in prompts)
    _at_most("prompts", responses, MAX_RESPONSES, "responses")
    for place, names in (("policy.theta0", policy.theta0), ("policy.parameters", policy.parameters or ())):
        _at_most(place, len(names), MAX_PARAMETERS, "parameters")
    _at_most("update.group_size", update.group_size, MAX_GROUP_SIZE, "draws in a group")
    _at_most("update", update.outer_iterations * update.inner_steps, MAX_STEPS, "steps T*K")
    _at_most("update", update.outer_iterations * len(prompts) * update.group_size, MAX_DRAWS, "draws T*M*G")
    _check_names(prompts)


def _at_most(place: str, count: int, limit: int, what: str) -> None:
    if count > limit:
        raise LimitError(place, str(count) if count < 10**30 else "more than 10^30", f"at most {limit} {what}")


def _check_names(prompts: list[Prompt]) -> None:
    seen: dict[str, int] = {}
    for q, prompt in enumerate(prompts):
        _check_name(prompt.name, f"prompts[{q}].name")
        if seen.setdefault(prompt.name, q) != q:
            raise PromptError(f"prompts[{q}].name", prompt.name, f"prompts are distinct; prompts[{seen[prompt.name]}] has this name")
        known: set[str] = set()
        for j, response in enumerate(prompt.responses or ()):
            place = f"prompts[{q}].responses[{j}]"
            _check_text(response, place)
            if response in known:
                raise PromptError(place, response, "the responses of a prompt are distinct")
            known.add(response)


def _check_name(name: str, place: str) -> None:
    if not name or not name.isprintable() or len(name) > 1000:
        raise PromptError(place, name, "the name of a prompt is 1 to 1000 printable characters")


def _check_text(response: str, place: str) -> None:
    if not response or len(response) > 100_000:
        raise PromptError(place, response, "a response is 1 to 100000 characters of text")
