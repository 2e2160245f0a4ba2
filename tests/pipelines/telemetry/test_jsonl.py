from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from pipelines.telemetry.jsonl import read_jsonl
from pipelines.telemetry.rows import Row, number_attempts, read_number, read_time


def read(
    tmp_path: Path, text: str | bytes
) -> tuple[list[tuple[int, dict[str, float | None]]], list[str]]:
    """Return steps with their values, and the problems' lines."""
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    found = read_jsonl(path)
    problems = [f"{one.line}: {one.what}" for one in found.problems]
    return [(row.step, dict(row.values)) for row in found.rows], problems


def test_each_line_is_a_row_with_its_time(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 3, "time": 1764500000.25, "loss": 0.5, "entropy": 2}\n')
    (row,) = read_jsonl(path).rows
    assert row == Row(
        step=3,
        values={"loss": 0.5, "entropy": 2.0},
        logged_at="2025-11-30T10:53:20.250000+00:00",
    )


def test_numbers_that_json_has_no_name_for_come_through(tmp_path: Path) -> None:
    line = '{"step": 1, "a": NaN, "b": Infinity, "c": -Infinity, "d": "NaN", "e": "-Infinity"}\n'
    ((_, values),), problems = read(tmp_path, line)
    assert problems == []
    assert math.isnan(values.pop("a") or 0.0)
    assert math.isnan(values.pop("d") or 0.0)
    assert values == {"b": math.inf, "c": -math.inf, "e": -math.inf}


def test_null_is_logged_as_none_and_is_no_number(tmp_path: Path) -> None:
    assert read(tmp_path, '{"step": 1, "kl/reference": null}\n') == (
        [(1, {"kl/reference": None})],
        [],
    )


def test_what_is_no_scalar_is_left_out(tmp_path: Path) -> None:
    logged = {
        "step": 1,
        "phase": "warm-up",
        "on": True,
        "list": [1],
        "more": {"a": 1},
        "lr": "1e-5",
    }
    assert read(tmp_path, json.dumps(logged) + "\n") == ([(1, {"lr": 1e-5})], [])


@pytest.mark.parametrize("keep", range(1, 31))
def test_a_last_line_that_is_being_written_is_left_for_the_next_time(
    tmp_path: Path, keep: int
) -> None:
    whole = '{"step": 1, "a": 1.0}\n'
    last = '{"step": 2, "näme": 2.25, "b": 3}'.encode()
    cut = last[:keep] if keep < len(last) else last
    rows, problems = read(tmp_path, whole.encode() + cut)
    assert problems == []
    assert rows == [(1, {"a": 1.0})]
    rows, _ = read(tmp_path, whole.encode() + last + b"\n")
    assert rows == [(1, {"a": 1.0}), (2, {"näme": 2.25, "b": 3.0})]


def test_a_whole_last_line_without_its_end_is_read(tmp_path: Path) -> None:
    assert read(tmp_path, '{"step": 1, "a": 1}')[0] == [(1, {"a": 1.0})]


def test_a_bad_last_line_that_is_ended_is_told(tmp_path: Path) -> None:
    rows, problems = read(tmp_path, '{"step": 1, "a": 1}\n{"step": 2, "lo\n')
    assert len(rows) == len(problems) == 1


BAD = {
    "no JSON": "nonsense",
    "no JSON: ": '{"step": 2, "lo{"step": 2, "loss": 1}',
    "no JSON object": "[1, 2]",
    "no step": '{"loss": 1.0}',
    "not a whole number": '{"step": 1.5, "loss": 1.0}',
    "its step is '-1'": '{"step": -1, "loss": 1.0}',
    "its step is 'None'": '{"step": null, "loss": 1.0}',
    "its step is 'True'": '{"step": true, "loss": 1.0}',
    "its step is 'NaN'": '{"step": "NaN", "loss": 1.0}',
    "its step is '99999999999999999999'": '{"step": "99999999999999999999", "loss": 1.0}',
}


@pytest.mark.parametrize("line", BAD.values(), ids=BAD)
def test_one_bad_line_costs_that_line_alone(tmp_path: Path, line: str) -> None:
    rows, problems = read(tmp_path, f'{{"step": 1, "a": 1}}\n{line}\n\n{{"step": 3, "a": 3}}\n')
    assert rows == [(1, {"a": 1.0}), (3, {"a": 3.0})]
    (problem,) = problems
    assert problem.startswith("2: ")
    says = next(says for says, one in BAD.items() if one == line)
    assert says.strip(": ") in problem


def test_bytes_that_are_no_text_cost_their_line(tmp_path: Path) -> None:
    rows, problems = read(tmp_path, b'{"step": 1, "a": 1}\n\xff\xfe\0\0\n{"step": 2, "a": 2}\n')
    assert [step for step, _ in rows] == [1, 2]
    assert len(problems) == 1


def test_deep_and_long_lines_are_no_crash(tmp_path: Path) -> None:
    deep = '{"step": 1, "a": ' + "[" * 100_000 + "\n"
    long = '{"step": 2, "a": ' + "1" * 5000 + "}\n"
    rows, problems = read(tmp_path, deep + long)
    assert rows == [(2, {"a": math.inf})]
    assert len(problems) == 1


def test_a_file_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    found = read_jsonl(tmp_path / "gone.jsonl")
    assert found.rows == ()
    assert found.problems[0].line is None
    assert "No such file" in found.problems[0].what


def rows_of(*logged: tuple[int, str]) -> list[Row]:
    return [Row(step=step, values=dict.fromkeys(names.split(), 1.0)) for step, names in logged]


def test_an_earlier_step_of_a_name_is_a_new_attempt() -> None:
    rows = rows_of((1, "a"), (2, "a"), (3, "a"), (2, "a"), (3, "a"), (4, "a"), (4, "a"), (5, "a"))
    assert number_attempts(rows) == [0, 0, 0, 1, 1, 1, 2, 2]


def test_an_evaluation_logged_late_is_no_new_attempt() -> None:
    rows = rows_of((1, "a"), (2, "a"), (3, "a"), (2, "eval"), (3, "eval"), (4, "a"), (4, "b"))
    assert number_attempts(rows) == [0] * 7


def test_a_new_attempt_is_one_of_all_names() -> None:
    rows = rows_of((1, "a b"), (2, "a"), (3, "a b"), (2, "a"), (3, "a b"), (4, "b"))
    assert number_attempts(rows) == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("text", ["", "1_000", "0x10", "one", "1 2", "--1", "nano", "+-inf2"])
def test_text_that_names_no_number_is_none(text: str) -> None:
    assert read_number(text) is None


@pytest.mark.parametrize("time", [None, "noon", 1e300, -1e300, math.nan, math.inf, True, [1]])
def test_a_time_that_is_none_is_not_told(time: object) -> None:
    assert read_time(time) is None
