"""Recognising the folder of a run, and what it says of itself."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from run_builders import LAST, add_step, lab_run, project_in, run_in, trainer_run, write_files

from evals.errors import InputError
from pipelines.checkpoints.layout import LAB, LAYOUTS, TRAINER
from pipelines.checkpoints.run_folder import find_run, telemetry_files
from storage.project import RunSection


def test_each_layout_has_a_name_of_its_own() -> None:
    assert [layout.name for layout in LAYOUTS] == ["lab", "trainer"]


def test_the_lab_is_recognised_by_its_file(tmp_path: Path) -> None:
    run = run_in(lab_run(tmp_path / "my run", 1))
    assert (run.layout, run.name) == (LAB, "my-run")
    assert run.config["model_line"] == "lab-1m"
    assert run_in(lab_run(tmp_path / "young")).layout is LAB, "before its first checkpoint"


def test_the_trainer_is_recognised_by_its_checkpoints_or_its_state(tmp_path: Path) -> None:
    assert run_in(trainer_run(tmp_path / "a", 1)).layout is TRAINER
    write_files(tmp_path / "b", {LAST: b'{"global_step": 3}'})
    assert run_in(tmp_path / "b").layout is TRAINER
    (tmp_path / "c" / "checkpoint-5").mkdir(parents=True)
    assert run_in(tmp_path / "c").layout is TRAINER


def test_the_configuration_is_the_newest_state_without_telemetry(tmp_path: Path) -> None:
    folder = trainer_run(tmp_path / "run", 9, 10)
    config = run_in(folder).config
    assert config["global_step"] == 10
    assert "log_history" not in config
    (folder / "checkpoint-10" / LAST).write_text('{"global_step"')
    assert run_in(folder).config["global_step"] == 9
    (folder / LAST).write_text('{"global_step": 12}')
    assert run_in(folder).config["global_step"] == 12
    add_step(folder, 13)
    assert run_in(folder).config["global_step"] == 13


def test_numbers_that_json_has_no_name_for_are_text(tmp_path: Path) -> None:
    folder = trainer_run(tmp_path / "run")
    state = '{"global_step": 3, "best_metric": NaN, "x": [-Infinity, 1e999, 0.5]}'
    write_files(folder, {LAST: state.encode()})
    config = run_in(folder).config
    assert config["best_metric"] == "NaN"
    assert config["x"] == ["-Infinity", "1e999", 0.5]
    json.dumps(config, allow_nan=False)


def test_telemetry_is_where_the_layout_has_it(tmp_path: Path) -> None:
    lab = lab_run(tmp_path / "lab", 1)
    write_files(lab / "tensorboard", {"events.out.tfevents.1": b"", "other": b""})
    write_files(lab, {"metrics.jsonl": b""})
    found = [file.relative_to(lab).as_posix() for file in telemetry_files(run_in(lab))]
    assert found == ["metrics.jsonl", "tensorboard/events.out.tfevents.1"]
    trainer = trainer_run(tmp_path / "trainer", 9, 10)
    write_files(trainer / "runs" / "Dec01", {"events.out.tfevents.2": b""})
    found = [file.relative_to(trainer).as_posix() for file in telemetry_files(run_in(trainer))]
    assert found == [f"checkpoint-10/{LAST}", "runs/Dec01/events.out.tfevents.2"]


@pytest.mark.parametrize(
    "content", [b"{", b"[]", b'{"framework": "other"}', b'{"framework": ["pawl-lab"]}', b"\xff"]
)
def test_what_is_no_run_says_what_was_looked_for(content: bytes, tmp_path: Path) -> None:
    folder = write_files(tmp_path / "run", {"run.json": content, "checkpoint-1": b""})
    with pytest.raises(InputError) as refused:
        run_in(folder)
    text = str(refused.value)
    for word in (str(folder), "run.json", "pawl-lab", "checkpoint-N", LAST, "layout trainer"):
        assert word in text


def test_a_checkpoint_or_its_parent_is_no_run_and_leads_to_it(tmp_path: Path) -> None:
    trainer = trainer_run(tmp_path / "trainer", 5)
    lab = lab_run(tmp_path / "lab", 5)
    for inner, run in ((trainer / "checkpoint-5", trainer), (lab / "checkpoints", lab)):
        with pytest.raises(InputError, match=f"give {run}, which has layout"):
            run_in(inner)


def test_a_named_layout_needs_no_recognising(tmp_path: Path) -> None:
    (tmp_path / "young").mkdir()
    run = run_in(tmp_path / "young", layout="trainer")
    assert (run.layout, dict(run.config)) == (TRAINER, {})
    with pytest.raises(InputError, match="write lab or trainer"):
        run_in(tmp_path / "young", layout="trainr")


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name, says in (("none", "no such folder"), ("file", "not a folder")):
        with pytest.raises(InputError, match=says):
            run_in(tmp_path / name)


def test_paths_are_relative_to_the_project_and_links_are_followed_once(tmp_path: Path) -> None:
    run = trainer_run(tmp_path / "runs" / "grpo", 1)
    (tmp_path / "runs" / "latest").symlink_to("grpo")
    project = project_in(tmp_path / "project")
    found = find_run(RunSection(folder="../runs/latest"), project)
    assert (found.folder, found.name) == (run.resolve(), "grpo")
    named = find_run(RunSection(folder="../runs/latest", name="mine"), project)
    assert named.name == "mine"


@pytest.mark.timeout(60)
def test_files_that_lead_out_or_never_end_say_nothing(tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text('{"framework": "pawl-lab", "token": "x"}')
    folder = trainer_run(tmp_path / "run", 1)
    (folder / "run.json").symlink_to(secret)
    os.mkfifo(folder / LAST)
    run = run_in(folder)
    assert run.layout is TRAINER
    assert run.config["global_step"] == 1
