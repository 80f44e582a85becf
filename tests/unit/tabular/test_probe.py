"""The three checks on batches: by hand, by enumeration of all shifts, both ways of v < m^2, and hostile files."""

from __future__ import annotations

import json
from fractions import Fraction as F
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import assume, given, strategies as st

import exactgrpo.cli
import exactgrpo.tabular.probe
from exactgrpo import InputError, LimitError
from exactgrpo.cli import app
from exactgrpo.strategies import rationals
from exactgrpo.tabular.probe import STATEMENTS, ForwardInjection, Probe, Rewards, probe, read_rewards

ROWS = [
    {"q": "a", "t": 2, "judge": 0.5, "oracle": 1.0},
    {"q": "a", "t": 1, "judge": 0.25, "oracle": 1},
    {"q": "b", "t": 3, "judge": 1, "oracle": 0.5},
    {"q": "b", "t": 4, "judge": 0.5},
    {"q": "b", "t": 0, "judge": None, "oracle": None},
]


def _file(folder: Path, text: str, name: str = "log.jsonl") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def _log(folder: Path, rows: list[dict[str, Any]]) -> Path:
    return _file(folder, "".join(json.dumps(row) + "\n" for row in rows))


def _injection(found: Probe) -> ForwardInjection:
    assert found.injection is not None
    return found.injection


# ---- by hand


def test_residuals_1_and_3_by_hand() -> None:
    """m = 2, v = 1: 1 < 4. Shifted by one, (3 - 1)^2 and (1 - 3)^2 against 1 and 9. Best w: 2 * 3 * 1/(1 + 9)."""
    found = _injection(probe(Rewards.of([[(0, 1), (1, 4)]])))
    assert (found.dropped, found.error, found.helps) == (5, 4, True)
    assert (found.variance, found.squared_mean, found.covariance) == (1, 4, -1)
    assert (found.average_error, found.helps_on_average, found.best_weight) == (2, True, F(3, 5))


def test_residuals_without_an_offset_by_hand() -> None:
    """m = 0, v = 1: injecting a row's negative doubles each error of size 1 to 2."""
    found = _injection(probe(Rewards.of([[(0, 1), (0, -1)]])))
    assert (found.dropped, found.error, found.helps, found.average_error, found.helps_on_average) == (1, 4, False, 2, False)


def test_a_shift_can_help_where_shifts_do_not_on_average_and_the_other_way_round() -> None:
    """1, 1, -1, -1 four times over at shift 4: the residual taken is the row's own. 1, 3 at shift 1 with w = 6/5: 2.6, 2.6."""
    periodic = _injection(probe(Rewards.of([[(0, x) for x in [1, 1, -1, -1] * 2]]), shift=4))
    assert (periodic.helps, periodic.helps_on_average, periodic.error, periodic.covariance) == (True, False, 0, 1)
    far = _injection(probe(Rewards.of([[(0, 1), (0, 3)]]), weight="6/5"))
    assert far.error == ((F(6, 5) * 3 - 1) ** 2 + (F(6, 5) - 3) ** 2) / 2 == 5
    assert (far.helps, far.helps_on_average) == (False, True)


def test_the_boundary_does_not_help() -> None:
    """Residuals 0 and 2: m = 1, v = 1."""
    found = _injection(probe(Rewards.of([[(0, 0), (0, 2)]])))
    assert (found.variance, found.squared_mean, found.average_error, found.dropped) == (1, 1, 2, 2)
    assert not found.helps_on_average


def test_groups_have_means_of_their_own() -> None:
    """Residuals (1, 3) and (-1, -3) have m = 0 together, but m^2 = 4 by group; a group of one row is left out."""
    rewards = Rewards.of([[(0, 1), (0, 3)], [(0, -1), (0, -3)], [(0, 100)]])
    found = _injection(probe(rewards))
    assert (found.rows, found.left_out, found.variance, found.squared_mean, found.helps_on_average) == (4, 1, 1, 4, True)
    together = _injection(probe(Rewards.of([[pair for group in rewards.groups[:2] for pair in group]])))
    assert (together.squared_mean, together.variance, together.helps_on_average) == (0, 5, False)


def test_slack_scaling_by_hand() -> None:
    quarter, half, _ = probe(Rewards.of([[(0, 1), (1, 4)]])).scaling
    assert (quarter.bias, quarter.error, quarter.holds) == (-1, F(5, 16), True)
    assert (half.bias, half.error) == (-2, F(5, 4))


def test_doubles_miss_where_the_difference_is_rounded() -> None:
    """0.1 + (0.45 - 0.1) is 0.45 - 2^-54 in doubles; the exact sum is 0.45."""
    found = probe(Rewards.of([[(F(0.1), F(0.45)), (F(0.5), F(0.25))]])).identity
    assert (found.holds, found.double_misses, found.greatest_double_error) == (True, 1, F(1, 2**54))


def test_equal_scorers_have_nothing_to_inject() -> None:
    found = _injection(probe(Rewards.of([[(1, 1), (2, 2)]])))
    assert (found.dropped, found.error, found.best_weight, found.helps, found.helps_on_average) == (0, 0, None, False, False)


def test_no_group_has_more_rows_than_the_shift() -> None:
    assert probe(Rewards.of([[(0, 1)], [(0, 2)]])).injection is None
    assert probe(Rewards.of([[(0, 1), (0, 2)]]), shift=2).injection is None


# ---- laws

groups = st.lists(st.lists(st.tuples(rationals(), rationals()), min_size=2, max_size=5), min_size=1, max_size=3)
doubles = st.floats(-1e9, 1e9, allow_nan=False)


@given(groups, rationals(min=-3, max=3))
def test_two_checks_hold_for_any_numbers(table: list[list[tuple[F, F]]], slack: F) -> None:
    found = probe(Rewards.of(table), slacks=[slack])
    residuals = [slow - fast for group in table for fast, slow in group]
    assert found.identity.holds
    assert found.scaling[0].holds
    assert found.scaling[0].bias == -slack * sum(residuals)
    assert found.scaling[0].error == slack**2 * sum(x**2 for x in residuals) / len(residuals)


@given(groups, rationals(min=0, max=3), st.integers(1, 4))
def test_injection_by_enumeration(table: list[list[tuple[F, F]]], weight: F, shift: int) -> None:
    found = probe(Rewards.of(table), shift=shift, weight=weight).injection
    kept = [[slow - fast for fast, slow in group] for group in table if len(group) > shift]
    assert (found is None) == (not kept)
    if found is None:
        return
    rows = sum(map(len, kept))

    def error(lag: int) -> F:
        return sum(((weight * x[(i - lag) % len(x)] - x[i]) ** 2 for x in kept for i in range(len(x))), F(0)) / rows

    assert found.error == error(shift)
    assert (
        found.average_error == sum((sum(((weight * y - z) ** 2 for y in x for z in x), F(0)) / len(x) for x in kept), F(0)) / rows
    )  # each row takes each row's residual equally often
    assert found.helps == (found.error < sum((z**2 for x in kept for z in x), F(0)) / rows)
    v, m, c = found.variance, found.squared_mean, found.covariance
    assert found.dropped == v + m
    assert found.error == weight**2 * (v + m) - 2 * weight * (m + c) + v + m
    if found.best_weight is not None and found.best_weight >= 0:
        assert _injection(probe(Rewards.of(table), shift=shift, weight=found.best_weight)).error <= found.error


@given(groups, st.integers(1, 4))
def test_weight_one_helps_on_average_iff_v_is_below_m_squared(table: list[list[tuple[F, F]]], shift: int) -> None:
    found = probe(Rewards.of(table), shift=shift).injection
    assume(found is not None)
    assert found is not None
    assert found.helps_on_average == (found.variance < found.squared_mean)
    assert found.helps == (found.variance < found.squared_mean + 2 * found.covariance)


@given(st.lists(rationals(), min_size=2, max_size=5), st.booleans())
def test_both_answers_are_met_by_moving_the_offset(residuals: list[F], far: bool) -> None:
    """With an offset of its whole range beyond the greatest residual v < m^2; with none, v >= m^2 = 0."""
    mean = sum(residuals) / len(residuals)
    offset = max(map(abs, residuals)) * 3 + 1 if far else -mean
    found = _injection(probe(Rewards.of([[(0, x + offset) for x in residuals]])))
    assert found.helps_on_average == far


@given(st.lists(st.tuples(doubles, doubles), min_size=1, max_size=20))
def test_misses_of_doubles_are_counted_as_doubles_do_them(rows: list[tuple[float, float]]) -> None:
    found = probe(Rewards.of([[(F(fast), F(slow)) for fast, slow in rows]])).identity
    assert found.double_misses == sum(fast + (slow - fast) != slow for fast, slow in rows)
    assert found.holds


# ---- files


def test_missing_rewards_are_counted(tmp_path: Path) -> None:
    found = read_rewards(_log(tmp_path, ROWS), fast="judge", slow="oracle")
    assert (found.rows, found.complete, found.missing_fast, found.missing_slow) == (5, 3, 1, 2)
    assert found.groups == (((F(1, 2), F(1)), (F(1, 4), F(1)), (F(1), F(1, 2))),)


def test_prompts_are_groups_and_steps_order_them(tmp_path: Path) -> None:
    found = read_rewards(_log(tmp_path, ROWS), fast="judge", slow="oracle", prompt="q", step="t")
    assert found.groups == (((F(1, 4), F(1)), (F(1, 2), F(1))), ((F(1), F(1, 2)),))


def test_csv_and_jsonl_say_the_same(tmp_path: Path) -> None:
    lines = [
        "q,t,judge,oracle",
        *(",".join("" if row.get(k) is None else str(row.get(k)) for k in ("q", "t", "judge", "oracle")) for row in ROWS),
    ]
    csv = _file(tmp_path, "\r\n".join(lines) + "\r\n", "log.csv")
    options = {"fast": "judge", "slow": "oracle", "prompt": "q", "step": "t"}
    assert read_rewards(csv, **options) == read_rewards(_log(tmp_path, ROWS), **options)


def test_numbers_are_the_doubles_that_they_print(tmp_path: Path) -> None:
    found = read_rewards(
        _file(tmp_path, '{"f": 0.1, "s": 0.10000000000000000000001}\n\n{"f": 9007199254740993, "s": 1e-400}'), fast="f", slow="s"
    )
    assert found.groups == (((F(0.1), F(0.1)), (F(2**53), F(0))),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "column: 'f': no such column; there are none"),
        ("\n \n", "column: 'f': no such column; there are none"),
        ('{"f": 1}', "column: 's': no such column; there are f"),
        ('{"f": null, "s": 1}', "rows: '1 rows, none with both rewards': at least one row with a fast and a slow reward"),
        ('{"f": 1, "s": 1}\n{"f": NaN, "s": 1}', "line 2: number: 'NaN': NaN and infinities are not numbers"),
        ('{"f": 1, "s": "nan"}', "line 1, s: 'nan': a finite decimal number, or nothing if it is missing"),
        ('{"f": 1, "s": -Infinity}', "line 1: number: '-Infinity': NaN and infinities are not numbers"),
        ('{"f": 1, "s": 1e999}', "line 1, s: '1E+999': beyond the largest double"),
        (f'{{"f": 1, "s": 1{"0" * 400}}}', f"line 1, s: 1{'0' * 59}... (401 characters): beyond the largest double"),
        ('{"f": 1e308, "s": -1e308}', "rewards: 'a number of 1024 bits': at most 10^300 in absolute value"),
        ('{"f": true, "s": 1}', "line 1, f: 'True': a number is needed, or nothing if it is missing"),
        ('{"f": [1], "s": 1}', "line 1, f: '[1]': a number is needed, or nothing if it is missing"),
        ('{"f": 1, "s": 1}\n[1, 1]', "line 2: 'list': the file holds one object"),
        ('{"f": 1, "s": 1}\n{"f": 1', "line 2, column 8: '{\"f\": 1': JSON: Expecting ',' delimiter"),
        ('{"f": 1, "f": 2, "s": 1}', "line 1: 'f': this key stands twice in one object"),
        (f'{{"f": {"[" * 99}1{"]" * 99}, "s": 1}}', "line 1: 'deep nesting': brackets nest at most 32 deep"),
    ],
)
def test_hostile_jsonl_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = _file(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_rewards(path, fast="f", slow="s")
    assert str(caught.value) == f"{path}: {message}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "column: 'f': no such column; there are none"),
        ("f,s\n", "rows: '0 rows, none with both rewards': at least one row with a fast and a slow reward"),
        ("f,s,f\n1,1,1\n", "column: 'f': the column stands twice"),
        ("f,s\n1,1\n1\n", "line 3: '1 entries': one for each of the 2 columns"),
        ("f,s\n1,1,1\n", "line 2: '3 entries': one for each of the 2 columns"),
        ("f,s\n1,nan\n", "line 2, s: 'nan': a finite decimal number, or nothing if it is missing"),
        ("f,s\n1,-inf\n", "line 2, s: '-inf': a finite decimal number, or nothing if it is missing"),
        ("f,s\n0x1,1\n", "line 2, f: '0x1': a finite decimal number, or nothing if it is missing"),
        ('f,s\n"1,1\n', "line 2: '': CSV: unexpected end of data"),
    ],
)
def test_hostile_csv_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = _file(tmp_path, text, "log.csv")
    with pytest.raises(InputError) as caught:
        read_rewards(path, fast="f", slow="s")
    assert str(caught.value) == f"{path}: {message}"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fast": "judge", "slow": "judge"}, "slow: 'judge': another column than the fast reward"),
        ({"fast": "judge", "slow": "oracle", "step": "q"}, "line 1, q: 'a': a finite decimal number, or nothing if it is missing"),
        ({"fast": "judge", "slow": "oracle", "prompt": "judge"}, "line 1, judge: '0.5': a prompt is a text or an integer"),
        ({"fast": "judge", "slow": "oracle", "prompt": "p"}, "line 1, p: 'missing': the prompt of a row"),
    ],
)
def test_bad_columns_in_one_line(tmp_path: Path, options: dict[str, str], message: str) -> None:
    path = _log(tmp_path, ROWS)
    with pytest.raises(InputError) as caught:
        read_rewards(path, **options)
    assert str(caught.value) == f"{path}: {message}"


def test_rows_without_prompt_or_step_are_refused(tmp_path: Path) -> None:
    path = _log(tmp_path, [*ROWS, {"judge": 1, "oracle": 1}])
    for option in ("prompt", "step"):
        with pytest.raises(InputError, match="line 6"):
            read_rewards(path, fast="judge", slow="oracle", **{option: "q" if option == "prompt" else "t"})


def test_files_of_other_kinds_and_of_too_many_rows_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"logs end in \.csv or \.jsonl"):
        read_rewards(_file(tmp_path, "{}", "log.json"), fast="f", slow="s")
    monkeypatch.setattr(exactgrpo.tabular.probe, "MAX_ROWS", 3)
    with pytest.raises(LimitError, match="line 4"):
        read_rewards(_log(tmp_path, ROWS), fast="judge", slow="oracle")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shift": 0}, "shift: 0: an integer of at least 1"),
        ({"weight": -1}, "weight: '-1': an age weight is not negative"),
        ({"weight": "sqrt(2)"}, "weight: 'sqrt(2)': a rational number is needed"),
        ({"slacks": [0.5]}, "slacks[0]: 0.5: a float is not exact"),
        ({"slacks": [1] * 65}, "slacks: '65 slacks': at most 64 slacks"),
    ],
)
def test_bad_options_in_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        probe(Rewards.of([[(0, 1), (0, 2)]]), **options)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([], "rows: '0 rows, none with both rewards'"),
        ([[(1, 2, 3)]], "groups[0][0]: '3 numbers': a fast and a slow reward"),
        ([[(1, 0.5)]], "groups[0][0][1]: 0.5: a float is not exact"),
        ("ab", "groups: 'ab': a list is needed"),
        ([[(1, F(1, 2**9000)), (1, F(1, 3**6000))]], "rewards: 'a common denominator of over 16384 bits'"),
    ],
)
def test_bad_batches_in_one_line(table: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        Rewards.of(table)
    assert str(caught.value).startswith(message)


# ---- two real judges


def test_two_judges_by_decimals() -> None:
    """In hundredths of the scores that the log prints: the doubles are off by less than 10^-16."""
    path = Path(exactgrpo.cli.EXAMPLES) / "two_judges.jsonl"
    rows = [json.loads(line, parse_float=F, parse_int=F) for line in path.read_text(encoding="utf-8").splitlines()]
    residuals = [row["oracle_slow"] - row["judge_fast"] for row in rows if row["oracle_slow"] is not None]
    n, mean = len(residuals), sum(residuals) / len(residuals)
    found = probe(read_rewards("two_judges", fast="judge_fast", slow="oracle_slow"))
    assert (
        (found.rewards.rows, found.rewards.complete, found.rewards.missing_fast, found.rewards.missing_slow)
        == (504, n, 0, 4)
        == (504, 500, 0, 4)
    )
    injection = _injection(found)
    close = F(1, 10**14)
    assert abs(injection.squared_mean - mean**2) < close
    assert abs(injection.variance - sum((x - mean) ** 2 for x in residuals) / n) < close
    assert abs(injection.error - sum((residuals[i - 1] - residuals[i]) ** 2 for i in range(n)) / n) < close
    assert (injection.helps, injection.helps_on_average) == (False, False)
    assert (round(float(injection.variance), 5), round(float(injection.squared_mean), 5)) == (0.0258, 0.00432)


def test_two_judges_group_by_group_do_not_help_either() -> None:
    injection = _injection(probe(read_rewards("two_judges", fast="judge_fast", slow="oracle_slow", prompt="group")))
    assert (injection.rows, injection.left_out, injection.helps, injection.helps_on_average) == (499, 1, False, False)


# ---- the command


def test_command_prints_each_check_with_its_statement(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["probe", str(_log(tmp_path, ROWS)), "--fast", "judge", "--slow", "oracle"])
    text = " ".join(result.output.split())
    assert result.exit_code == 0
    assert "5 rows: 3 with both rewards, 1 without a fast and 2 without a slow reward; groups: 1" in text
    assert all(statement in text for statement in STATEMENTS.values())


def test_command_prints_json(tmp_path: Path) -> None:
    arguments = ["probe", str(_log(tmp_path, ROWS)), "--fast", "judge", "--slow", "oracle", "--prompt", "q", "--weight", "1/2", "--json"]
    data = json.loads(CliRunner().invoke(app, arguments).output)
    assert (data["complete"], data["groups"], data["identity_kernel"]["holds"]) == (3, 2, True)
    injection = data["forward_injection"]
    assert (injection["rows"], injection["left_out"], injection["weight"]["exact"]) == (2, 1, "1/2")
    assert injection["error"]["exact"] == str(((F(3, 8) - F(1, 2)) ** 2 + (F(1, 4) - F(3, 4)) ** 2) / 2)
    assert data["statements"] == STATEMENTS


def test_command_without_an_injection(tmp_path: Path) -> None:
    path = _log(tmp_path, ROWS[:1])
    result = CliRunner().invoke(app, ["probe", str(path), "--fast", "judge", "--slow", "oracle"])
    assert "no group has more rows than the shift" in result.output
    result = CliRunner().invoke(app, ["probe", str(path), "--fast", "judge", "--slow", "oracle", "--json"])
    assert json.loads(result.output)["forward_injection"] is None
