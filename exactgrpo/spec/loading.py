"""From text to a validated description: structure and types, then sizes, each failure with its place."""

from __future__ import annotations

import difflib
import os
import re
from decimal import Decimal
from typing import Any, get_args, get_origin

import msgspec

from exactgrpo.errors import InputError, LimitError, PromptError
from exactgrpo.spec.keys import unknown_key
from exactgrpo.spec.reading import Format, located, parse_data, read_text
from exactgrpo.spec.schema import FAMILIES, Choice, Number, Prompt, Protocol, ReferenceParameter, SeedDraws, Table, Update, UpdateFile

MAX_PROMPTS = 100_000
MAX_RESPONSES = 1_000_000
MAX_PARAMETERS = 10_000
MAX_STEPS = 100_000
MAX_GROUP_SIZE = 100_000
MAX_DRAWS = 10_000_000


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
    return loaded(parse_data(text, format))


def loaded(data: dict[str, Any]) -> UpdateFile:
    """Return the validated description that plain data hold, as `loads` does for text."""
    kind = data.get("kind")
    if kind != "update":
        shown = kind if isinstance(kind, str) else "missing" if kind is None else _shown(kind)
        raise InputError("kind", shown, "'update', 'rac' or 'counterexample'; `exactgrpo run` takes 'update' only")
    file = _validated(data)
    _check_sizes(file)
    return file


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
        return unknown_key((path + key_place(key)).removeprefix("."), key, _known_keys(data, path))
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
