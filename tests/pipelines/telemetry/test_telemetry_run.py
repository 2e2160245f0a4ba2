from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evals.errors import InputError
from evals.telemetry import CANONICAL
from pipelines.telemetry.run import find_format, import_run, read_run
from storage.project import find_project
from storage.store import LakeStore

ROOT = Path(__file__).parents[3]
WORKER = Path(__file__).with_name("import_worker.py")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LakeStore]:
    project = tmp_path / "project"
    project.mkdir()
    with find_project(project).open_store(create=True) as opened:
        yield opened


def write_metrics(folder: Path, steps: range, offset: float = 0.0, names: int = 3) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "metrics.jsonl"
    with path.open("a") as file:
        for step in steps:
            values = {CANONICAL[one].name: offset + step + one / 7 for one in range(names)}
            file.write(json.dumps({"step": step, "time": 1.76e9 + step, **values}) + "\n")
    return path


def write_events(folder: Path, values: dict[str, float]) -> None:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(folder))
    for tag, value in values.items():
        summary = Summary(value=[Summary.Value(tag=tag, simple_value=value)])
        writer.add_event(Event(step=1, wall_time=5.0, summary=summary))
    writer.close()


def test_the_lab_is_read_once_though_it_logs_twice(tmp_path: Path, store: LakeStore) -> None:
    run = tmp_path / "run"
    write_metrics(run, range(1, 11))
    write_events(run / "tensorboard", {"reward/mean": 1.0, "only/here": 1.0})
    assert find_format(run) == "lab"
    assert import_run(store, "r", run, "lab") == (30, ())
    assert import_run(store, "r", run, "lab") == (0, ())
    assert {one.series for one in store.points("r")} == {one.name for one in CANONICAL[:3]}
    write_metrics(run, range(11, 13))
    assert import_run(store, "r", run, "lab") == (6, ())


def test_tensorboard_is_read_where_the_lab_has_no_json(tmp_path: Path) -> None:
    write_events(tmp_path / "tensorboard", {"reward/mean": 1.0})
    assert find_format(tmp_path) == "lab"
    assert [one.series for one in read_run(tmp_path, "lab", "r").points] == ["reward/mean"]


def test_a_restart_is_a_new_attempt_and_the_latest_is_read(
    tmp_path: Path, store: LakeStore
) -> None:
    write_metrics(tmp_path / "run", range(1, 8), names=1)
    import_run(store, "r", tmp_path / "run", "lab")
    write_metrics(tmp_path / "run", range(5, 10), offset=100.0, names=1)
    assert import_run(store, "r", tmp_path / "run", "lab") == (5, ())
    assert [one.value for one in store.points("r")] == [1, 2, 3, 4, *range(105, 110)]
    assert len(store.points("r", every_attempt=True)) == 12


def write_trainer(run: Path, step: int, rewards: dict[int, float]) -> None:
    folder = run / f"checkpoint-{step}"
    folder.mkdir(parents=True, exist_ok=True)
    history = [
        {"step": one, "epoch": one / 10, "reward": value, "loss": float("nan")}
        for one, value in rewards.items()
    ]
    state = {"global_step": step, "log_history": history}
    (folder / "trainer_state.json").write_text(json.dumps(state))


def test_the_trainers_history_takes_the_place_of_its_tensorboard_files(
    tmp_path: Path, store: LakeStore
) -> None:
    run = tmp_path / "run"
    write_events(run / "runs" / "Nov30_host", {"train/reward": 0.1, "train/epoch": 0.1})
    assert find_format(run) == "trainer"
    assert import_run(store, "r", run, "trainer") == (1, ())
    write_trainer(run, 2, {1: 0.1, 2: 0.2})
    assert import_run(store, "r", run, "trainer")[0] == 3
    points = store.points("r", series=["reward/mean"], every_attempt=True)
    assert [(one.step, one.attempt, one.raw_name) for one in points] == [
        (1, 0, "reward"),
        (2, 0, "reward"),
    ]


def test_a_trainer_that_was_restarted_replays_in_a_later_attempt(
    tmp_path: Path, store: LakeStore
) -> None:
    run = tmp_path / "run"
    write_trainer(run, 4, {1: 1.0, 2: 2.0, 3: 3.0, 4: 4.0})
    import_run(store, "r", run, "trainer")
    write_trainer(run, 4, {1: 1.0, 2: 2.0, 3: 30.0, 4: 40.0})
    import_run(store, "r", run, "trainer")
    rewards = store.points("r", series=["reward/mean"])
    assert [one.value for one in rewards] == [1.0, 2.0, 30.0, 40.0]
    assert import_run(store, "r", run, "trainer") == (0, ())


def test_a_run_that_has_just_begun_has_no_points_and_no_problem(
    tmp_path: Path, store: LakeStore
) -> None:
    for layout in ("lab", "trainer"):
        assert import_run(store, "r", tmp_path, layout) == (0, ())


def test_single_files_are_known_by_their_names_and_their_dialect(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text('{"step": 1, "reward": 1.0, "completions/mean_length": 9, "entropy": 2}\n')
    assert find_format(path) == "jsonl"
    series = {one.series for one in read_run(path, "jsonl", "r").points}
    assert series == {"reward/mean", "response_length/mean", "entropy"}
    write_trainer(tmp_path, 1, {1: 1.0})
    assert find_format(tmp_path / "checkpoint-1" / "trainer_state.json") == "trainer_state"
    events = tmp_path / "events"
    write_events(events, {"reward/mean": 1.0})
    assert find_format(events) == "tensorboard"
    (file,) = events.iterdir()
    assert find_format(file) == "tensorboard"
    for path in (events, file):
        assert [one.series for one in read_run(path, "tensorboard", "r").points] == ["reward/mean"]


def test_what_is_no_telemetry_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no telemetry of a known format.*metrics\.jsonl"):
        find_format(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        find_format(tmp_path / "gone")
    with pytest.raises(InputError, match=r"no telemetry format 'odd'.*lab, trainer"):
        read_run(tmp_path, "odd", "r")


def test_one_bad_line_is_a_problem_and_the_rest_is_stored(tmp_path: Path, store: LakeStore) -> None:
    path = write_metrics(tmp_path / "run", range(1, 4), names=1)
    with path.open("a") as file:
        file.write("oops\n")
    write_metrics(tmp_path / "run", range(4, 6), names=1)
    new, problems = import_run(store, "r", tmp_path / "run", "lab")
    assert new == 5
    assert [(one.file, one.line) for one in problems] == [(str(path), 4)]


@pytest.mark.timeout(300)
def test_an_import_that_is_killed_is_whole_after_the_next(tmp_path: Path) -> None:
    """Killed at chance moments of storing; a lake has all points of an import or none."""
    project, run = tmp_path / "project", tmp_path / "run"
    project.mkdir()
    chance = random.Random(4)
    stored = 0
    for grown in range(1, 5):
        write_metrics(run, range(500 * grown - 499, 500 * grown + 1), names=20)
        with start(project, run) as worker:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "begins\n"
            time.sleep(chance.uniform(0.0, 0.4))
            worker.kill()
        with find_project(project).open_store() as store:
            count = len(store.points("r", every_attempt=True))
        assert count in (stored, 10_000 * grown)
        stored = count
    with start(project, run) as worker:
        assert worker.stdout is not None
        assert worker.stdout.read() == f"begins\n{40_000 - stored}\n"
    with find_project(project).open_store() as store:
        assert store.points("r", every_attempt=True) == tuple(
            sorted(read_run(run, "lab", "r").points, key=lambda one: (one.series, one.step))
        )


def start(project: Path, run: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(WORKER), str(project), str(run)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
