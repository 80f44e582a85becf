"""Files of delayed rewards: what they mean, what `verify` says of them, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from fractions import Fraction as F
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from jsonschema import Draft202012Validator

from exactgrpo import InputError
from exactgrpo.cli import EXAMPLES, ExitCode
from exactgrpo.rac.discretised import discretised
from exactgrpo.rac.file import load_model, model_of
from exactgrpo.rac.schema import json_schema
from exactgrpo.rac.verdict import decide_model
from exactgrpo.strategies import rationals, simplex_points

VALIDATOR = Draft202012Validator(json_schema())


def data(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "kind": "rac",
        "horizon": 2,
        "offset": 0,
        "channels": [{"name": "c", "delay": {"0": "1/2", "1": "1/2"}}],
        "outcomes": [{"probability": "1/2", "residual": {"c": x}} for x in (1, -1)],
    }
    return {key: x for key, x in {**base, **changes}.items() if x is not None}


def delayed(law: Any) -> dict[str, Any]:
    return data(channels=[{"name": "c", "delay": law}])


def verified(*arguments: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "exactgrpo.cli", "verify", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def kinds(model: dict[str, Any]) -> dict[str, str]:
    return {v.claim: v.kind for v in decide_model(model_of(model, Path())).claims}


def test_the_refuted_example_as_json() -> None:
    done = verified(EXAMPLES / "clipped_delay.toml", "--json")
    assert (done.returncode, done.stderr) == (ExitCode.DONE, "")  # the file expects it
    (model,) = json.loads(done.stdout)["models"]
    first = model["claims"][0]
    assert (first["verdict"], first["left"]["exact"], first["right"]["exact"]) == ("refuted", "3/4", "0")
    assert [t["from_ratio"]["exact"] for t in model["bias"]["terms"]] == ["1/4", "1/4", "1/4", "0"]
    assert [(h["name"], h["value"]["exact"]) for h in model["hypotheses"][:2]] == [("H1", "3/4"), ("H2", "1/4")]


@pytest.mark.parametrize(
    ("expected", "code"),
    [
        (None, ExitCode.REFUTED),
        ({"bias-is-minus-slack": "refuted"}, ExitCode.DONE),
        ({"bias-is-minus-slack": "follows"}, ExitCode.REFUTED),
        ({"bias-is-minus-slack": "refuted", "bias-in-three-terms": "vacuous"}, ExitCode.REFUTED),
        ({"bias": "refuted"}, ExitCode.BAD_INPUT),
        ({"bias-is-minus-slack": "false"}, ExitCode.BAD_INPUT),
        (["refuted"], ExitCode.BAD_INPUT),
    ],
)
def test_a_refutation_ends_with_1_unless_it_is_expected(expected: Any, code: ExitCode, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    outcomes = [{"probability": 1, "residual": {"c": 1}, "ratio": {"c": 2}}]
    path.write_text(json.dumps(data(outcomes=outcomes, expected=expected)), encoding="utf-8")
    done = verified(path)
    assert (done.returncode, done.stderr.count("\n")) == (code, int(code == ExitCode.BAD_INPUT))


def test_the_example_that_follows() -> None:
    done = verified(EXAMPLES / "geometric_ageing.toml")
    assert (done.returncode, done.stderr) == (ExitCode.DONE, "")
    verdicts = decide_model(load_model(EXAMPLES / "geometric_ageing.toml"))
    assert verdicts.bias.cumulative == -8 * F(7, 24) * F(1, 3)
    assert [v.kind for v in verdicts.claims] == ["follows", "follows", "vacuous", "follows", "vacuous"]


def test_a_claim_that_holds_by_coincidence_is_not_said_to_follow() -> None:
    # rho moves with the residual at each delay, once up and once down; both delays land and the two cancel
    outcomes = [{"probability": "1/2", "residual": {"c": x}, "ratio": {"c": [1 + x, 1 - x]}} for x in (1, -1)]
    model = data(horizon=1, drain=1, outcomes=outcomes)
    assert kinds(model)["bias-is-minus-slack"] == "holds here"
    assert kinds(model)["saturated-is-unbiased"] == "holds here"
    assert kinds(data(outcomes=outcomes))["bias-is-minus-slack"] == "refuted"


def test_weight_one_loses_the_overhang() -> None:
    truncated = decide_model(model_of(data(horizon=4, offset=1, channels=[{"name": "c", "delay": {"2": "1/2", "never": "1/2"}}]), Path()))
    last = truncated.claims[-1]
    assert (last.kind, last.left, last.right) == ("follows", F(7, 2), F(7, 2))


@given(simplex_points(size=4), st.integers(0, 1), st.integers(1, 4), st.integers(0, 4))
def test_the_overhang_is_what_is_lost(law: tuple[F, ...], offset: int, horizon: int, drain: int) -> None:
    table = {"0": str(law[0]), "2": str(law[1]), "5": str(law[2]), "never": str(law[3])}
    made = model_of(data(horizon=horizon, offset=offset, drain=drain, channels=[{"name": "c", "delay": table}]), Path())
    arriving = [(t, d, p) for t in range(horizon) for d, p in zip((0, 2, 5), law[:3], strict=True)]
    lost = horizon * law[3] + sum(p for t, d, p in arriving if t + d + offset >= horizon + drain)
    last = decide_model(made).claims[-1]
    assert (last.kind, last.left, last.right) == ("follows", lost, lost)


@given(
    simplex_points(size=3),
    rationals(min=0, max=2, denominator=4),
    st.integers(0, 1),
    st.lists(rationals(denominator=2), min_size=2, max_size=2),
)
def test_on_policy_everything_follows(law: tuple[F, ...], gain: F, offset: int, x: list[F]) -> None:
    channel = {"name": "c", "delay": {"0": str(law[0]), "3": str(law[1]), "never": str(law[2])}, "gain": str(gain)}
    outcomes = [{"probability": "1/2", "residual": {"c": str(value)}} for value in x]
    found = kinds(data(horizon=3, offset=offset, channels=[channel], outcomes=outcomes))
    assert set(found.values()) <= {"follows", "vacuous"}
    assert found["bias-is-minus-slack"] == "follows"


def test_behaviour_target_and_clip_give_the_ratio() -> None:
    outcomes = [{"probability": "1/2", "residual": {"c": x}, "behaviour": "1/2", "target": p} for x, p in ((1, "3/4"), (-1, "1/4"))]
    both = {"floor": "4/5", "ceiling": "6/5"}
    for clip, ratios in (({}, (F(3, 2), F(1, 2))), ({"ceiling": 1}, (1, F(1, 2))), (both, (F(6, 5), F(4, 5)))):
        made = model_of(data(outcomes=outcomes, clip=clip), Path())
        assert tuple(outcome.signals[0].ratios[0] for outcome in made.outcomes[0]) == ratios


def test_steps_have_outcomes_of_their_own() -> None:
    outcomes = [{"probability": 1, "residual": {"c": x}, "step": t} for t, x in enumerate((1, 3, -2, 0))]
    made = decide_model(model_of(data(horizon=4, channels=[{"name": "c", "delay": 1}], outcomes=outcomes), Path()))
    assert (made.bias.cumulative, made.bias.by_step) == (0, (-1, -2, 5, -2))
    assert kinds(data(horizon=4, channels=[{"name": "c", "delay": 1}], outcomes=outcomes))["bias-is-minus-slack"] == "follows"
    mixed = model_of(data(horizon=3, outcomes=[{"probability": 1, "residual": {"c": 5}}, {**outcomes[1], "step": 1}]), Path())
    assert [outcomes[0].signals[0].residual for outcomes in mixed.outcomes] == [5, 3, 5]


def test_contexts_are_read() -> None:
    # the ratio has mean one and is uncorrelated with the residual over both contexts, in neither of them
    outcomes = [
        {"probability": "1/4", "residual": {"c": x}, "ratio": {"c": 1 + x * sign}, "context": name}
        for name, sign in (("up", 1), ("down", -1))
        for x in (1, 0)
    ]
    answers = {(h.name, h.reading): h.answer for h in decide_model(model_of(data(outcomes=outcomes), Path())).hypotheses}
    assert (answers["H1", "marginal"], answers["H1", "given the context"]) == ("holds", "fails")


DELAYS: list[Any] = [
    {"law": "geometric", "p": "1/2", "max": 3},
    {"law": "geometric", "p": "1/2", "max": 3, "rest": "last"},
    {"law": "deterministic", "delay": 2},
    {"law": "pareto", "shape": 3, "mean": 2, "max": 5},
    {"law": "gaussian", "mu": 2, "sigma": "1/2", "max": 5},
    {"law": "log-normal", "mu": 0, "sigma": 1, "max": 5},
    {"law": "cauchy", "location": 1, "scale": 1, "max": 5},
    {"law": "exponential", "mean": 2, "max": 5},
    {"file": "latency.csv", "column": "seconds", "unit": 1},
    {"file": "latency.csv", "column": "seconds", "unit": 1, "failed": "lost", "where": {"judge": "a"}},
    {"0": "1/2", "3": "1/4", "never": "1/4"},
    5,
]
AGES: list[Any] = [
    {"law": "none"},
    {"law": "exponential", "tau": 2},
    {"law": "geometric", "ratio": "1/2"},
    {"law": "hyperbolic", "rate": 1},
    {"law": "table", "weights": [1, "1/2", "1/4", "1/8", "1/16", "1/32"]},
    {"law": "inverse-arrival"},
    {"law": "mse-optimal", "second_moments": {str(d): d + 1 for d in range(6)}, "mean": 1, "samples": 2},
]


@pytest.mark.parametrize("delay", DELAYS, ids=str)
def test_every_law_and_age_is_read_and_in_the_schema(delay: Any, tmp_path: Path) -> None:
    (tmp_path / "latency.csv").write_text("seconds,lost,judge\n0.5,,a\n1.5,1,a\n,,b\n", encoding="utf-8")
    for age in AGES:
        given = data(channels=[{"name": "c", "delay": delay, "age": age}])
        assert decide_model(model_of(given, tmp_path)).claims[0].kind in ("follows", "vacuous")
        VALIDATOR.validate(given)


def test_laws_of_a_file_are_those_of_python() -> None:
    law = model_of(delayed({"law": "pareto", "shape": 3, "mean": 20, "max": 200}), Path()).kernel.channels[0].delay
    assert law == discretised("pareto", shape=3, mean=20, max=200)
    assert (law.mean(), law.error > 0) == (20, True)
    moments = {"0": 1, "1": 2}
    age = {"law": "mse-optimal", "second_moments": moments, "mean": 1, "samples": 2}
    kernel = model_of(data(channels=[{"name": "c", "delay": {"0": "1/2", "1": "1/2"}, "age": age}]), Path()).kernel
    assert [kernel.weight(0, 0, d) for d in (0, 1)] == [F(8, 7), F(4, 7)]


def test_a_law_that_stands_for_another_says_how_far_it_is(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(json.dumps(delayed({"law": "gaussian", "mu": 1, "sigma": 1, "max": 2})), encoding="utf-8")
    (model,) = json.loads(verified(path, "--json").stdout)["models"]
    assert 0 < model["delays"][0]["error"]["float64"] < 2.0**-63
    assert "in total variation" in verified(path).stdout
    assert "in total variation" not in verified(EXAMPLES / "clipped_delay.toml").stdout


CHANNEL = {"name": "c", "delay": {"0": 1}}
OUTCOME = {"probability": 1, "residual": {"c": 1}}


@pytest.mark.parametrize(
    ("changes", "place", "rule"),
    [
        ({"horizon": 0}, "horizon", "at least 1"),
        ({"horizon": None}, "file", "this key is missing"),
        ({"horizn": 2}, "horizn", "did you mean 'horizon'"),
        ({"offset": 2}, "offset", "0 or 1"),
        ({"channels": []}, "channels", "a list of at least one table"),
        ({"channels": [{"name": "c"}]}, "channels[0]", "this key is missing"),
        ({"channels": [{"name": "c", "delay": {"0": "1/2"}}]}, "channels[0]", "sum to one"),
        ({"channels": [{"name": "c", "delay": {"0": "3/2", "1": "-1/2"}}]}, "channels[0]", "a probability is not negative"),
        (delayed({"law": "zeta"}), "channels[0]", "one of deterministic, geometric, pareto"),
        ({"channels": [{"name": "c", "delay": {"9999999999": 1}}]}, "channels[0]", "at most 1000000 steps"),
        (delayed({"law": "pareto", "shape": 3, "max": 9}), "channels[0]: delay: scale", "a mean can stand for"),
        (delayed({"law": "gaussian", "sgima": 3, "max": 9}), "channels[0]: delay.sgima", "did you mean 'sigma'"),
        (delayed({"law": "cauchy", "mean": 3, "scale": 1}), "channels[0]: delay", "this key is missing"),
        (delayed({"law": "cauchy", "mean": 30, "scale": 1, "max": 9}), "channels[0]: delay: mean", "from 0 to 9"),
        ({"channels": [{**CHANNEL, "age": {"law": "geometric"}}]}, "channels[0].age", "this key is missing"),
        ({"channels": [{**CHANNEL, "age": {"law": "geometric", "ratio": -1}}]}, "channels[0].age", "ratio >= 0"),
        ({"channels": [{**CHANNEL, "gain": -1}]}, "channels[0]", "a gain is not negative"),
        ({"channels": [CHANNEL, CHANNEL]}, "channels", "names are distinct"),
        ({"clip": {"floor": 2, "ceiling": 1}}, "clip", "a clip is not empty"),
        ({"clip": {"top": 1}}, "clip.top", "unknown key"),
        ({"outcomes": [{"probability": "1/2", "residual": {"c": 1}}]}, "outcomes", "probabilities sum to one"),
        ({"outcomes": [{"probability": 1, "residual": {}}]}, "outcomes[0]: residual", "a residual for each channel"),
        ({"outcomes": [{**OUTCOME, "ratio": {"d": 1}}]}, "outcomes[0]: ratio", "a channel: c"),
        ({"outcomes": [{**OUTCOME, "ratio": {"c": [1]}}]}, "outcomes[0]: ratio.c", "one for each of the 2 delays"),
        ({"outcomes": [{**OUTCOME, "ratio": {"c": -1}}]}, "outcomes[0].ratio.c", "a ratio is not negative"),
        ({"outcomes": [{**OUTCOME, "target": 1}]}, "outcomes[0]", "a behaviour and a target mass"),
        ({"outcomes": [{**OUTCOME, "behaviour": 0, "target": 1}]}, "outcomes[0].behaviour", "a positive mass"),
        ({"outcomes": [{**OUTCOME, "step": 2}]}, "outcomes[0].step", "a step from 0 to 1"),
        ({"outcomes": [{**OUTCOME, "step": 0}]}, "outcomes of step 1", "outcomes, at least one"),
        ({"outcomes": [OUTCOME, *({**OUTCOME, "step": t} for t in (0, 1))]}, "outcomes", "every step has outcomes of its own"),
        ({"outcomes": [{**OUTCOME, "behaviour": 1, "target": -1}]}, "outcomes[0].target", "a mass is not negative"),
        ({"outcomes": [{**OUTCOME, "delay": {"c": [0]}}]}, "outcomes[0].delay.c", "an integer"),
        ({"clip": {"ceiling": None}}, "clip.ceiling", "a value, or no such key"),
        (delayed([1, 2]), "channels[0]: delay", "an integer"),
        (delayed("3"), "channels[0]: delay", "an integer"),
        (delayed({"file": "a.csv", "column": "x", "unit": 1, "where": "q"}), "channels[0]: where", "a table from columns to texts"),
        ({"outcomes": [{**OUTCOME, "residual": {"c": 0.5}}]}, "outcomes[0]: residual.c", "exact"),
        ({"outcomes": [{**OUTCOME, "delay": {"c": 0}}]}, "outcomes: delay.c", "mix to the law"),
    ],
)  # fmt: skip
def test_bad_files_are_one_clear_line(changes: dict[str, Any], place: str, rule: str) -> None:
    with pytest.raises(InputError) as caught:
        model_of(data(**changes), Path())
    assert caught.value.place.startswith(place)
    assert rule in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_weight_that_is_missing_names_channel_and_step() -> None:
    made = model_of(data(channels=[{**CHANNEL, "age": {"law": "table", "weights": {"1": 1}}}]), Path())
    with pytest.raises(InputError, match="channel 'c', step 0: weights: 'delay 0': there is no weight for this delay"):
        decide_model(made)


def test_a_bad_file_ends_with_2_and_names_itself(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(json.dumps(data(horizon=0)), encoding="utf-8")
    done = verified(path)
    assert (done.returncode, done.stdout) == (ExitCode.BAD_INPUT, "")
    assert done.stderr.startswith(f"exactgrpo: {path}: horizon")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("example", ["clipped_delay", "geometric_ageing"])
def test_the_schema_takes_the_examples_and_no_unknown_or_missing_key(example: str) -> None:
    given = tomllib.loads((EXAMPLES / f"{example}.toml").read_text(encoding="utf-8"))
    VALIDATOR.validate(given)
    for key in list(given):
        changed = {**given, f"{key}x": given[key]}
        assert not VALIDATOR.is_valid(changed)
        with pytest.raises(InputError, match="unknown key"):
            model_of(changed, Path())
    for key in json_schema()["required"]:
        assert not VALIDATOR.is_valid({name: x for name, x in given.items() if name != key})


def test_every_key_of_the_schema_has_a_description() -> None:
    def check(part: Any, place: str) -> None:
        for key, shape in part.get("properties", {}).items():
            assert "description" in shape or "const" in shape, f"{place}.{key}"
            check(shape, f"{place}.{key}")
        for alternative in part.get("anyOf", []):
            check(alternative, place)

    schema = json_schema()
    Draft202012Validator.check_schema(schema)
    for name, part in {"": schema, **schema["$defs"]}.items():
        check(part, name)
