"""Writes the example files that are too large to write by hand: `python -m tests.examples_source [LOGGED_ROWS.jsonl]`.

`large_softmax.toml` follows from nothing but SHA-256; a test re-derives it byte for byte. `logged_groups.toml` is a selection of
fields of a public data set, whose rows are an argument: one JSON object on each line with group, policy, judge_fast and oracle_slow.
So is `two_judges.jsonl`.
"""

from __future__ import annotations

import hashlib
import json
import sys
from decimal import Decimal
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "exactgrpo" / "examples"
WRITERS = ("base", "clone", "parallel_universe_prompt", "premium", "unhelpful")

LARGE_HEADER = """\
# A larger softmax run: 64 prompts, 64 responses each, 16 parameters, groups of 16, four inner steps, beta = 1/10.
#
# Every number is made from a SHA-256 digest by tests/examples_source.py: features in tenths from -1 to 1, rewards in
# hundredths from 0 to 1. The first policy, theta = 0, is uniform and is the reference too. There is no short exact answer: the
# status is complete, every comparison of a ratio with its bound is proved, and theta can be had to any number of digits.
"""

LOGGED_HEADER = """\
# 101 logged groups with the scores of a real judge: one softmax parameter for each of the five policies that wrote responses.
#
# The data: 504 scores from 0 to 1 by a fast judge, taken as the decimals that they are, for the responses of five policies to
# 101 prompts; 100 groups have five responses and arena_22 has four (none by "base"). Two groups (arena_127 is one) have equal
# scores. Source: github.com/fondutech/causal-judge-evaluation at commit 6cf6e0ba7d66b38b2b73256bd4cbe8bceba1d039,
# cje/tests/data/arena_sample; MIT licence, (c) 2025 Fondu Technologies. Texts, other scores and log-probabilities are left out.
# The model of the update is ours: a response has the logit of its writer, the same for all prompts, theta = 0 is uniform and is
# the reference. The run lowers "unhelpful", to which the judge gives the lowest mean score (0.25; the others have 0.78 to 0.79).
"""


class Digits:
    """Integers from SHA-256 of "name,block", 16 bits at a time."""

    def __init__(self, name: str) -> None:
        self.name, self.block, self.left = name, 0, b""

    def below(self, n: int) -> int:
        """The next 16 bits modulo n: all that matters is that anybody gets the same ones."""
        if not self.left:
            self.left = hashlib.sha256(f"{self.name},{self.block}".encode("ascii")).digest()
            self.block += 1
        value, self.left = int.from_bytes(self.left[:2], "big"), self.left[2:]
        return value % n


def large_softmax(prompts: int = 64, responses: int = 64, parameters: int = 16, group_size: int = 16) -> str:
    features, rewards = Digits("features"), Digits("rewards")
    names = [f"q{q + 1}" for q in range(prompts)]
    support = ", ".join(f'"y{j + 1}"' for j in range(responses))
    lines = [LARGE_HEADER + 'kind = "update"']
    for name in names:
        row = ", ".join(decimal(rewards.below(101), 2) for _ in range(responses))
        lines += ["", "[[prompts]]", f'name = "{name}"', f"responses = [{support}]", f"rewards = [{row}]"]
    lines += ["", "[policy]", 'family = "softmax"', f"theta0 = {[0] * parameters}", "", "[policy.features]"]
    for name in names:
        matrix = [",".join(decimal(features.below(21) - 10, 1) for _ in range(parameters)) for _ in range(responses)]
        lines += [f"{name} = [", *(f"  [{row}]," for row in matrix), "]"]
    lines += ["", "[reference]", f"theta = {[0] * parameters}", ""]
    lines += ["[update]", f"group_size = {group_size}", "outer_iterations = 1", "inner_steps = 4"]
    lines += ["epsilon = 0.2", "beta = 0.1", "step_size = 1", "draws = {seed = 64}", ""]
    return "\n".join(lines)


def logged_groups(rows: list[dict[str, str]]) -> str:
    groups: dict[str, dict[str, str]] = {}
    for row in rows:
        groups.setdefault(row["group"], {})[row["policy"]] = row["judge_fast"]
    lines = [LOGGED_HEADER + 'kind = "update"']
    for name, scores in groups.items():
        writers = [w for w in WRITERS if w in scores]
        support = ", ".join(f'"{w}"' for w in writers)
        lines += ["", "[[prompts]]", f'name = "{name}"', f"responses = [{support}]", f"rewards = [{', '.join(scores[w] for w in writers)}]"]
    lines += ["", "[policy]", 'family = "softmax"', f"parameters = {json.dumps(WRITERS)}", f"theta0 = {[0] * len(WRITERS)}"]
    lines += ["", "[policy.features]"]
    for name, scores in groups.items():
        matrix = [[int(w == v) for v in WRITERS] for w in WRITERS if w in scores]
        lines.append(f"{name} = {json.dumps(matrix)}")
    lines += ["", "[reference]", f"theta = {[0] * len(WRITERS)}", ""]
    lines += ["[update]", "group_size = 8", "outer_iterations = 4", "inner_steps = 3"]
    lines += ["epsilon = 0.2", "beta = 0.04", "step_size = 1", "draws = {seed = 101}", ""]
    return "\n".join(lines)


def two_judges(rows: list[dict[str, str | None]]) -> str:
    lines = []
    for row in rows:
        names = ", ".join(f'"{key}": {json.dumps(row[key])}' for key in ("group", "policy"))
        scores = ", ".join(f'"{key}": {"null" if row[key] is None else row[key]}' for key in ("judge_fast", "oracle_slow"))
        lines.append(f"{{{names}, {scores}}}\n")
    return "".join(lines)


def decimal(value: int, places: int) -> str:
    """value / 10^places, without closing zeros.

    >>> decimal(-5, 1), decimal(70, 2), decimal(100, 2)
    ('-0.5', '0.7', '1')
    """
    text = format(Decimal(value).scaleb(-places).normalize(), "f")
    return "0" if text == "-0" else text


def main() -> None:
    (EXAMPLES / "large_softmax.toml").write_text(large_softmax(), encoding="utf-8")
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as lines:
            rows = [json.loads(line, parse_float=str, parse_int=str) for line in lines]
        (EXAMPLES / "logged_groups.toml").write_text(logged_groups(rows), encoding="utf-8")
        (EXAMPLES / "two_judges.jsonl").write_text(two_judges(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
