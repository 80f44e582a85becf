"""Files of delayed rewards: what they mean, what `verify` says of them, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction as F
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from exactgrpo import InputError
from exactgrpo.cli import EXAMPLES, ExitCode
from exactgrpo.rac.file import load_model, model_of
from exactgrpo.rac.verdict import decide_model
from exactgrpo.strategies import rationals, simplex_points


def data(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "kind": "rac",
        "horizon": 2,
        "offset": 0,
        "channels": [{"name": "c", "delay": {"0": "1/2", "1": "1/2"}}],
        "outcomes": [{"probability": "1/2", "residual": {"c": x}} for x in (1, -1)],
    }
    return {key: x for key, x in {**base, **changes}.items() if x is not None}


def verified(*arguments: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "exactgrpo.cli", "verify", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def kinds(model: dict[str, Any]) -> dict[str, str]:
    return {v.claim: v.kind for v in decide_model(model_of(model, Path())).claims}


def test_the_refuted_example_as_json() -> None:
    done = verified(EXAMPLES / "clipped_delay.toml", "--json")
    assert (done.returncode, done.stderr) == (ExitCode.REFUTED, "")
    (model,) = json.loads(done.stdout)["models"]
    first = model["claims"][0]
    assert (first["verdict"], first["left"]["exact"], first["right"]["exact"]) == ("refuted", "3/4", "0")
    assert [t["from_ratio"]["exact"] for t in model["bias"]["terms"]] == ["1/4", "1/4", "1/4", "0"]
    assert [(h["name"], h["value"]["exact"]) for h in model["hypotheses"][:2]] == [("H1", "3/4"), ("H2", "1/4")]


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


def test_laws_ages_and_latency_files(tmp_path: Path) -> None:
    (tmp_path / "latency.csv").write_text("seconds\n0.5\n1.5\n\n", encoding="utf-8")
    for delay in (
        {"law": "geometric", "p": "1/2", "max": 3},
        {"law": "deterministic", "delay": 2},
        {"file": "latency.csv", "column": "seconds", "unit": 1},
        5,
    ):
        for age in (
            {"law": "none"},
            {"law": "exponential", "tau": 2},
            {"law": "geometric", "ratio": "1/2"},
            {"law": "hyperbolic", "rate": 1},
            {"law": "table", "weights": [1, "1/2", "1/4", "1/8", "1/16", "1/32"]},
            {"law": "inverse-arrival"},
        ):
            made = decide_model(model_of(data(channels=[{"name": "c", "delay": delay, "age": age}]), tmp_path))
            assert made.claims[0].kind in ("follows", "vacuous")


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
        ({"channels": [{"name": "c", "delay": {"law": "zeta"}}]}, "channels[0]", "one of deterministic, geometric"),
        ({"channels": [{"name": "c", "delay": {"9999999999": 1}}]}, "channels[0]", "at most 1000000 steps"),
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
        ({"outcomes": [{**OUTCOME, "step": 0}]}, "outcomes[1]", "outcomes, at least one"),
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


def test_a_bad_file_ends_with_2_and_names_itself(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(json.dumps(data(horizon=0)), encoding="utf-8")
    done = verified(path)
    assert (done.returncode, done.stdout) == (ExitCode.BAD_INPUT, "")
    assert done.stderr.startswith(f"exactgrpo: {path}: horizon")
    assert done.stderr.count("\n") == 1
