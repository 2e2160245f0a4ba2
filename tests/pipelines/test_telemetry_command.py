"""``pawl telemetry``, as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import RunPawl, read_json

LINES = [
    '{"step": 1, "time": 1764500000, "reward/mean": 0.25, "entropy": 2.0, "my/own": 5}',
    '{"step": 2, "time": 1764500001, "reward/mean": NaN, "entropy": null, "my/own": 6}',
    "not a line",
    '{"step": 3, "time": 1764500002, "reward/mean": 0.75, "entropy": 1.5, "my/own": 7}',
    '{"step": 4, "rew',
]


def write(folder: Path) -> Path:
    folder.mkdir()
    (folder / "metrics.jsonl").write_text("\n".join(LINES))
    return folder


def test_what_was_logged_is_stored_once_and_shown(run_pawl: RunPawl, tmp_path: Path) -> None:
    write(tmp_path / "grpo-tiny")
    arguments = ("telemetry", "import", "grpo-tiny", "--run", "grpo-tiny")
    done = run_pawl(*arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "grpo-tiny: 9 new of 9 points, 3 series\n"
    assert "metrics.jsonl line 3: it is no JSON" in done.stderr
    told = read_json(run_pawl(*arguments, "--json", cwd=tmp_path))
    assert (told["points"], told["new"], told["format"]) == (9, 0, "lab")
    assert [one["line"] for one in told["problems"]] == [3]

    shown = run_pawl("telemetry", "show", "grpo-tiny", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "mean reward" in shown.stdout
    told = read_json(run_pawl("telemetry", "show", "grpo-tiny", "--json", cwd=tmp_path))
    entropy, own, reward = told["series"]
    assert (reward["first"], reward["last"], reward["non_finite"], reward["n"]) == (
        0.25,
        0.75,
        1,
        3,
    )
    assert (reward["worse"], reward["unit"]) == ("down", "reward")
    assert (entropy["none"], entropy["min"], entropy["max"]) == (1, 1.5, 2.0)
    assert (own["series"], own["meaning"], own["last_step"]) == ("my/own", None, 3)
    one = run_pawl("telemetry", "show", "grpo-tiny", "--series", "entropy", "--json", cwd=tmp_path)
    assert [each["series"] for each in read_json(one)["series"]] == ["entropy"]


def test_values_that_json_can_not_hold_are_told_by_name(run_pawl: RunPawl, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"step": 1, "a": -Infinity}\n{"step": 2, "a": NaN}\n')
    assert run_pawl("telemetry", "import", str(path), "--run", "r", cwd=tmp_path).returncode == 0
    done = run_pawl("telemetry", "show", "r", "--json", cwd=tmp_path)
    (told,) = json.loads(done.stdout, parse_constant=refuse)["series"]
    assert (told["first"], told["last"], told["min"]) == ("-Infinity", "NaN", None)


def refuse(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def test_what_can_not_be_done_says_how_to_mend_it(run_pawl: RunPawl, tmp_path: Path) -> None:
    run = write(tmp_path / "run")
    (tmp_path / "bad.jsonl").write_text("oops\noops\n")
    for arguments, says in (
        (("import", "gone", "--run", "r"), "no such file"),
        (("import", str(tmp_path), "--run", "r"), "no telemetry of a known format"),
        (("import", str(run), "--run", "../r"), "no run's name"),
        (("import", str(run), "--run", "r", "--format", "odd"), "no telemetry format"),
        (("import", "bad.jsonl", "--run", "r"), "line 1: it is no JSON"),
        (("import", str(run), "--run", "r", "--format", "trainer"), "no values were logged"),
        (("show", "r"), "no lake yet"),
    ):
        done = run_pawl("telemetry", *arguments, cwd=tmp_path)
        assert done.returncode == 3, (arguments, done.stdout, done.stderr)
        assert says in done.stderr, (arguments, done.stderr)
        assert "Traceback" not in done.stderr
    assert not (tmp_path / ".pawl").exists(), "a refused command made a lake"
    assert run_pawl("telemetry", "import", str(run), "--run", "r", cwd=tmp_path).returncode == 0
    unknown = run_pawl("telemetry", "show", "s", cwd=tmp_path)
    assert unknown.returncode == 3
    assert "there is some of r" in unknown.stderr
    odd = run_pawl("telemetry", "show", "r", "--series", "kl", cwd=tmp_path)
    assert odd.returncode == 3
    assert "it has entropy, my/own, reward/mean" in odd.stderr
