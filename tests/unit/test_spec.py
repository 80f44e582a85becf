"""Files to problems: what each part of a file becomes, in TOML and in JSON."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction as F
from pathlib import Path

import pytest

from exactgrpo.errors import DrawError, InputError, PolicyError, PromptError, ReferenceMassError, RewardError, UpdateError
from exactgrpo.numbers.decision import decide_sign
from exactgrpo.numbers.text import parse_exact
from exactgrpo.policies.expression import Expressions
from exactgrpo.policies.rational import Rational
from exactgrpo.policies.simplex import Simplex
from exactgrpo.policies.softmax import Softmax
from exactgrpo.policies.tokens import Tokens
from exactgrpo.spec import json_schema, load, loads, located, problem
from exactgrpo.update.draws import Seed
from exactgrpo.update.problem import Problem
from exactgrpo.update.reference import ReferenceLogits, ReferenceMasses, ReferenceParameter

SMALLEST = """
kind = "update"                       # the smallest useful file
[[prompts]]
name = "q1"
responses = ["a", "b"]
rewards = [1, 0]
reference = ["1/2", "1/2"]
[policy]
family = "rational"
parameters = ["t"]
theta0 = ["1/2"]
domain = ["t > 0", "t < 1"]
weights.q1 = ["t", "1 - t"]
[update]
group_size = 2
outer_iterations = 1
inner_steps = 3
epsilon = "1/4"
beta = 0
step_size = "1/16"
draws = [[["a", "b"]]]
"""

TOKENS = """
kind = "update"
prompts = [{name = "q1", rewards = {"x ." = 1, "*" = "1/2"}}, {name = "q2", rewards = {"*" = 0, "y y" = 3}}]
protocol = {vocabulary = ["x", "y"], end = ".", max_length = 2}
[policy]
family = "tokens"
conditional = "softmax"
parameters = ["a", "b"]
theta0 = [0, 0]
logits."q1" = {x = "a", y = "b - 1/2", "." = 0}
logits."*" = {x = "2*a", y = "b", "." = 0}
[update]
group_size = 2
outer_iterations = 2
inner_steps = 1
epsilon_low = "1/5"
epsilon_high = 0.28
beta = 0
step_size = [["1/2"], ["sqrt(2)"]]
draws = {seed = 7}
"""


def _with(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def _problem(*changes: tuple[str, str], text: str = SMALLEST) -> Problem:
    return problem(loads(_with(text, *changes), "toml"))


def test_the_smallest_file_gives_its_problem() -> None:
    built = _problem()
    assert isinstance(built.family, Rational)
    assert built.prompts[0].name == "q1"
    assert built.prompts[0].responses == ("a", "b")
    assert built.prompts[0].rewards == (F(1), F(0))
    assert list(built.theta0) == [F(1, 2)]
    assert built.parameters == ("t",)
    assert (built.group_size, built.outer_iterations, built.inner_steps) == (2, 1, 3)
    assert (built.epsilon_low, built.epsilon_high, built.beta) == (F(1, 4), F(1, 4), F(0))
    assert built.step_size(1, 3) == F(1, 16)
    assert built.draws.take(None, 1, None, built.family.rows, 2) == ((0, 1),)  # type: ignore[arg-type]
    assert isinstance(built.reference, ReferenceMasses)


def test_json_and_toml_give_the_same_problem() -> None:
    import tomllib

    data = json.dumps(tomllib.loads(SMALLEST))
    first, second = problem(loads(data, "json")), _problem()
    assert first.prompts == second.prompts
    assert list(first.theta0) == list(second.theta0)


@pytest.mark.parametrize("text", ["0.1", "1e-1", '"1/10"', '"0.1"', "0.10000000000000000000000000000000000000000"])
def test_number_literals_are_exact_decimals(text: str) -> None:
    assert _problem(('"1/16"', text)).step_size(1, 1) == F(1, 10)
    assert _problem(('"1/16"', "0.1000000000000000000000000000000000000001")).step_size(1, 1) != F(1, 10)


def test_numbers_of_a_loaded_file_are_still_as_written() -> None:
    file = loads(_with(SMALLEST, ('"1/16"', "0.10"), ("beta = 0", 'beta = "sqrt(2)"')), "toml")
    assert (file.update.step_size.value.raw, file.update.beta.raw) == (Decimal("0.10"), "sqrt(2)")


def test_irrational_data_are_exact() -> None:
    built = _problem(("rewards = [1, 0]", 'rewards = ["log(2)", "-sqrt(3)/2"]'), ("beta = 0", 'beta = "exp(-1)"'))
    assert decide_sign(built.prompts[0].rewards[0] - parse_exact("log(4)/2")).value == 0
    assert decide_sign(built.beta - parse_exact("1/exp(1)")).value == 0


def test_a_tokens_file_generates_its_responses_in_depth_first_order() -> None:
    built = _problem(text=TOKENS)
    assert isinstance(built.family, Tokens)
    assert built.prompts[0].responses == ("x x", "x y", "x .", "y x", "y y", "y .", ".")
    assert built.prompts[0].rewards == tuple(F(r) for r in ("1/2", "1/2", "1", "1/2", "1/2", "1/2", "1/2"))
    assert built.prompts[1].rewards == (0, 0, 0, 0, 3, 0, 0)
    assert (built.epsilon_low, built.epsilon_high) == (F(1, 5), F(7, 25))
    assert built.step_size(1, 1) == F(1, 2)
    assert decide_sign(built.step_size(2, 1) - parse_exact("sqrt(2)")).value == 0
    assert built.draws == Seed(7)
    assert built.reference is None


def test_the_other_families() -> None:
    weights = ('weights.q1 = ["t", "1 - t"]', "")
    rational = ('family = "rational"', 'family = "simplex"')
    assert isinstance(_problem(weights, rational).family, Simplex)
    formulas = (weights[0], 'weights.q1 = ["exp(t)", "sqrt(t)/2"]')
    assert isinstance(_problem(formulas, (rational[0], 'family = "expression"')).family, Expressions)
    softmax = (rational[0], 'family = "softmax"')
    features = (weights[0], 'features.q1 = [[1], ["-sqrt(2)"]]\nbase.q1 = [1, "1/3"]')
    built = _problem(softmax, features)
    assert isinstance(built.family, Softmax)
    assert built.family.base is not None
    assert list(built.family.base) == [1, F(1, 3)]


def test_parameters_have_default_names_where_a_family_does_not_need_them() -> None:
    softmax = ('family = "rational"', 'family = "softmax"')
    features = ('weights.q1 = ["t", "1 - t"]', "features.q1 = [[1], [0]]")
    built = _problem(softmax, features, ('parameters = ["t"]\n', ""), ('["t > 0", "t < 1"]', '["0 < theta1 < 1"]'))
    assert built.parameters == ("theta1",)


def test_the_three_forms_of_the_reference() -> None:
    masses = 'reference = ["1/2", "1/2"]\n'
    assert isinstance(_problem((masses, "reference_logits = [0, 1]\n")).reference, ReferenceLogits)
    by_theta = _problem((masses, ""), ("[update]", '[reference]\ntheta = ["1/3"]\n[update]')).reference
    assert isinstance(by_theta, ReferenceParameter)
    assert list(by_theta.theta) == [F(1, 3)]
    assert _problem((masses, "")).reference is None


SIMPLE_ERRORS: list[tuple[tuple[str, str], type[InputError], str, str]] = [
    # change, class, place, part of the rule
    (("step_size =", "stepsize ="), InputError, "update.stepsize", "did you mean 'step_size'?"),
    (('name = "q1"', 'name = "q1"\nreward = [1]'), InputError, "prompts[0].reward", "did you mean 'rewards'?"),
    (('kind = "update"', 'kind = "update"\nzzz = 1'), InputError, "zzz", "the keys here are kind, prompts, policy"),
    (("theta0 =", "theta ="), InputError, "policy.theta", "did you mean 'theta0'?"),
    (('theta0 = ["1/2"]\n', ""), InputError, "policy", "this key is missing"),
    (('kind = "update"', 'kind = "rac"'), InputError, "kind", "'update'"),
    (('kind = "update"', ""), InputError, "kind", "'update'"),
    (('"rational"', '"rationl"'), InputError, "policy.family", "did you mean 'rational'?"),
    (('"rational"', "7"), InputError, "policy.family", "simplex"),
    (("group_size = 2", "group_size = 2.0"), InputError, "update.group_size", "an integer is needed"),
    (("group_size = 2", "group_size = true"), InputError, "update.group_size", "an integer is needed"),
    (("rewards = [1, 0]", "rewards = [1, true]"), InputError, "prompts[0].rewards[1]", "a number is"),
    (("rewards = [1, 0]", "rewards = [1, [0]]"), InputError, "prompts[0].rewards[1]", "a number is"),
    (("rewards = [1, 0]", "rewards = {a = 1, b = false}"), InputError, "prompts[0].rewards.b", "a number is"),
    (("rewards = [1, 0]", "rewards = 3"), InputError, "prompts[0].rewards", "a table is needed"),
    (("rewards = [1, 0]", 'rewards = {a = 1, "b c" = []}'), InputError, "prompts[0].rewards['b c']", "a number is"),
    (('weights.q1 = ["t", "1 - t"]', 'weights.q1 = ["t", 1979-05-27]'), InputError, "policy.weights.q1[1]", "a number is"),
    (('weights.q1 = ["t", "1 - t"]', 'weights.q1 = "t"'), InputError, "policy.weights.q1", "a list is needed"),
    (('weights.q1 = ["t", "1 - t"]', "weights = 3"), InputError, "policy.weights", "a table is needed"),
    (('["a", "b"]\nrewards', '["a", 7]\nrewards'), InputError, "prompts[0].responses[1]", "text is needed"),
    (('draws = [[["a", "b"]]]', 'draws = "ab"'), InputError, "update.draws", "a table or a list is needed"),
    (('draws = [[["a", "b"]]]', "draws = {sed = 1}"), InputError, "update.draws.sed", "did you mean 'seed'?"),
    (('step_size = "1/16"', 'step_size = [["1/16", true, 1]]'), InputError, "update.step_size[0][1]", "a number is"),
    (('weights.q1 = ["t", "1 - t"]', 'weights.q2 = ["t", "1 - t"]'), PolicyError, "policy.weights.q2", "the names here are q1"),
    (('weights.q1 = ["t", "1 - t"]', "weights = {}"), PolicyError, "policy.weights", "no entry for this name"),
    (('weights.q1 = ["t", "1 - t"]', 'weights.q1 = ["t"]'), PolicyError, "policy.weights.q1", "one entry for each of the 2"),
    (("rewards = [1, 0]", "rewards = {a = 1}"), RewardError, "prompts[0].rewards", "no reward for this response"),
    (("rewards = [1, 0]", "rewards = {a = 1, c = 1}"), RewardError, "prompts[0].rewards.c", "not a response"),
    (("rewards = [1, 0]", "rewards = [1]"), RewardError, "prompts[0].rewards", "one reward for each of the 2"),
    (('epsilon = "1/4"', ""), UpdateError, "update", "either epsilon, or epsilon_low and epsilon_high"),
    (('epsilon = "1/4"', 'epsilon = "1/4"\nepsilon_low = 1'), UpdateError, "update", "either epsilon"),
    (('epsilon = "1/4"', 'epsilon_low = "1/4"'), UpdateError, "update", "either epsilon"),
    (('reference = ["1/2", "1/2"]', 'reference = ["1", "0"]\nreference_logits = [0, 0]'), ReferenceMassError, "prompts[0]", "once"),
    (("[update]", '[reference]\ntheta = ["1/2"]\n[update]'), ReferenceMassError, "prompts[0]", "given once"),
    (('reference = ["1/2", "1/2"]', 'reference = ["1/2"]'), ReferenceMassError, "prompts[0].reference", "one for each of the 2"),
    (('responses = ["a", "b"]\n', ""), PromptError, "prompts[0]", "this key is missing"),
    (("[update]", '[protocol]\nvocabulary = ["x"]\nend = "."\nmax_length = 1\n[update]'), PolicyError, "protocol", "only a tokens policy"),
    (('draws = [[["a", "b"]]]', f"draws = {{seed = {2**256}}}"), DrawError, "update.draws.seed", "at most 256 bits"),
]


@pytest.mark.parametrize(("change", "error", "place", "rule"), SIMPLE_ERRORS, ids=[f"{row[2]}-{n}" for n, row in enumerate(SIMPLE_ERRORS)])
def test_a_wrong_file_names_place_and_rule(change: tuple[str, str], error: type[InputError], place: str, rule: str) -> None:
    with pytest.raises(InputError) as caught:
        _problem(change)
    assert caught.value.place == place
    assert rule in caught.value.rule
    assert isinstance(caught.value, error)


@pytest.mark.parametrize(
    ("change", "place", "rule"),
    [
        (('conditional = "softmax"', 'conditional = "rational"'), "policy", "takes weights, not logits"),
        (('conditional = "softmax"', 'conditional = "soft"'), "policy.conditional", "'softmax' or 'rational'"),
        (('{x = "a", y =', '{x = "a^2", y ='), "policy.logits.q1.x", "affine"),
        (('{x = "a", y =', '{x = "c", y ='), "policy.logits.q1.x", "unknown name 'c'"),
        (('{x = "a", y =', "{y ="), "policy.logits.q1", "no entry for this name"),
        (('{x = "a", y =', '{z = 0, x = "a", y ='), "policy.logits.q1.z", "unknown name"),
        (("max_length = 2", "max_length = 1000000000000"), "protocol.max_length", "at most 1000000"),
        (('["x", "y"], end = ".", max_length = 2', '["x"], end = ".", max_length = 201'), "protocol.max_length", "at most 200"),
        (("max_length = 2", "max_length = 0"), "protocol.max_length", "at least 1"),
        (("max_length = 2", "max_length = 18"), "protocol", "at most 1000000 responses"),
        (("protocol = {", "protocols = {"), "protocols", "did you mean 'protocol'?"),
        (('{"x ." = 1,', '{"x.y" = 1,'), "prompts[0].rewards['x.y']", "not a response"),
        (('rewards = {"x ." = 1, "*" = "1/2"}', 'responses = ["x"], rewards = [1]'), "prompts[0].responses", "generates the responses"),
    ],
)
def test_a_wrong_tokens_file_names_place_and_rule(change: tuple[str, str], place: str, rule: str) -> None:
    with pytest.raises(InputError) as caught:
        _problem(change, text=TOKENS)
    assert caught.value.place == place
    assert rule in caught.value.rule


# ---- files


def test_load_reads_by_suffix_and_names_the_file_in_errors(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.toml", tmp_path / "bad.json"
    good.write_text(SMALLEST, encoding="utf-8")
    assert load(good).update.group_size == 2
    bad.write_text('{"kind": "update"}', encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load(bad)
    assert str(caught.value) == f"{bad}: file: 'prompts': this key is missing"
    with pytest.raises(InputError, match=r"good\.toml: policy\.theta0") as placed, located(str(good)):
        problem(loads(_with(SMALLEST, ('theta0 = ["1/2"]', 'theta0 = ["3/2"]')), "toml"))
    assert "lies in the open domain" in placed.value.rule


@pytest.mark.parametrize(
    ("name", "data", "rule"),
    [
        ("a.toml", b"", "the file is empty"),
        ("a.json", b" \n ", "the file is empty"),
        ("a.toml", b"\x89PNG\r\n\x1a\n\x00\xff\xfe", "input files are UTF-8 text"),
        ("a.toml", b"a\x00b", "without NUL"),
        ("a.json", b"\xff\xfe{\x00}\x00", "input files are UTF-8 text"),
        ("a.json", b"[1]", "the file holds one object"),
        ("a.json", b"{} {}", "JSON: Extra data"),
        ("a.json", b"{", "JSON: Expecting property name"),
        ("a.toml", b"a = ", "TOML: Invalid value"),
        ("a.toml", b"a = 1\na = 2\n", "TOML: Cannot overwrite a value"),
        ("a.json", b'{"kind": 1, "kind": 2}', "stands twice"),
        ("a.toml", b"x" * (4 * 2**20 + 1), "at most 4 MB"),
        ("a.txt", b"{}", "end in .toml or .json"),
    ],
)
def test_files_that_are_no_data_are_refused(tmp_path: Path, name: str, data: bytes, rule: str) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        load(path)
    assert rule in caught.value.rule
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_missing_files_and_folders_are_input_errors(tmp_path: Path) -> None:
    (tmp_path / "folder.toml").mkdir()
    for path in (tmp_path / "absent.toml", tmp_path / "folder.toml", "nul\0.toml"):
        with pytest.raises(InputError, match="cannot be read"):
            load(path)


def test_syntax_errors_name_the_line() -> None:
    with pytest.raises(InputError) as caught:
        loads(_with(SMALLEST, ("beta = 0", "beta = = 0")), "toml")
    assert caught.value.place == "line 19, column 8"
    assert caught.value.value == "beta = = 0"


def test_a_byte_order_mark_is_harmless(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(b"\xef\xbb\xbf" + SMALLEST.encode())
    assert load(path).update.group_size == 2


# ---- the schema


def test_every_key_of_the_schema_has_a_description() -> None:
    schema = json_schema()
    json.dumps(schema)
    for name, part in schema["$defs"].items():
        assert part["description"], name
        assert part["additionalProperties"] is False
        for key, value in part["properties"].items():
            assert value.get("description"), f"{name}.{key}"


def test_the_schema_lists_the_families() -> None:
    mapping = json_schema()["$defs"]["UpdateFile"]["properties"]["policy"]["discriminator"]["mapping"]
    assert set(mapping) == {"simplex", "rational", "softmax", "tokens", "expression"}
