"""``pawl init`` on the folder of a run."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from command_line import RunPawl
from run_builders import LAST, lab_run, trainer_run, write_files

from evals.errors import InputError
from pipelines import cli
from pipelines.checkpoints.run_folder import find_run
from pipelines.commands.project import init, project_text
from storage.project import ProjectFile, find_project


def test_a_trainers_run_is_recognised_told_and_written(run_pawl: RunPawl, tmp_path: Path) -> None:
    run = trainer_run(tmp_path / "grpo-7b", 9, 10)
    (run / "checkpoint-10" / "config.json").unlink()
    write_files(run / "checkpoint-11", {"config.json": b"{}"})
    write_files(run / "runs" / "a", {"events.out.tfevents.1": b""})
    done = run_pawl("init", "grpo-7b", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for text in (
        *("grpo-7b: layout trainer", "TRL", "writing: 1, at step 11", "complete: 1, at step 9"),
        *("corrupt: 1, at step 10", "grpo-7b@10 is corrupt: no config.json"),
        *("runs/a/events.out.tfevents.1", f"checkpoint-10/{LAST}", "max_steps: 100", "pawl up"),
    ):
        assert text in done.stdout, text
    project = find_project(tmp_path)
    (section,) = project.file.runs
    assert (section.folder, section.name, section.layout) == ("grpo-7b", "grpo-7b", "trainer")
    assert find_run(section, project).folder == run
    (channel,) = project.file.channels.items()
    assert channel[0] == "production"
    assert (channel[1].policy, channel[1].suite, channel[1].first) == ("smoke", "smoke", None)
    text = (tmp_path / "pawl.yaml").read_text()
    assert "--first" in text
    assert "checkpoint: grpo-7b@9\n" in text


def test_the_labs_run_gets_the_labs_suite_and_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = lab_run(tmp_path / "elsewhere" / "lab", 10, 2)
    (tmp_path / "project").mkdir()
    assert cli.run(["init", str(run), "--json", "--project", str(tmp_path / "project")]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["written"] == str(tmp_path / "project" / "pawl.yaml")
    assert (told["run"]["name"], told["run"]["layout"]) == ("lab", "lab")
    assert [each["checkpoint"] for each in told["run"]["checkpoints"]] == ["lab@2", "lab@10"]
    assert {each["state"] for each in told["run"]["checkpoints"]} == {"complete"}
    assert told["run"]["config"]["model_line"] == "lab-1m"
    file = find_project(tmp_path / "project").file
    assert file.runs[0].folder == str(run)
    assert (file.channels["production"].policy, file.channels["production"].suite) == ("lab", "lab")


@pytest.mark.parametrize("made", ["empty", "files", "none"])
def test_what_is_no_run_says_what_was_looked_for_and_writes_nothing(
    made: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "folder"
    if made != "none":
        folder.mkdir()
    if made == "files":
        write_files(folder, {"run.json": b"{}", "notes.txt": b""})
    assert cli.run(["init", str(folder), "--json", "--project", str(tmp_path)]) == 3
    printed = capsys.readouterr()
    error = json.loads(printed.out)["error"]
    assert ("no such folder" if made == "none" else "looked for run.json") in error["what"]
    assert (error["where"], bool(error["fix"])) == (str(folder), True)
    assert str(folder) in printed.err
    assert not (tmp_path / "pawl.yaml").exists()


def test_a_project_file_that_is_there_stays_and_the_fix_names_the_run(tmp_path: Path) -> None:
    run = trainer_run(tmp_path / "grpo", 1)
    (tmp_path / "pawl.yaml").write_text("runs: []\n")
    with pytest.raises(InputError, match="is there already") as refused:
        init(run, project=tmp_path)
    assert f'{{folder: "{run}", layout: trainer}}' in refused.value.fix
    assert (tmp_path / "pawl.yaml").read_text() == "runs: []\n"


@pytest.mark.parametrize(
    "name",
    ['a"b', "a'b: c", "# no", "1e5", "null", "- x", "ü {}", "a\nb: 1", "run²", "a%b", "\x07"],
)
def test_any_name_of_a_folder_is_written_so_that_it_is_read_back(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = trainer_run(tmp_path / name, 1)
    for as_json in (True, False):
        (tmp_path / "pawl.yaml").unlink(missing_ok=True)
        assert init(run, json=as_json, project=tmp_path) == 0
        printed = capsys.readouterr().out
        if as_json:
            assert json.loads(printed)["run"]["folder"] == str(run)
    project = find_project(tmp_path)
    assert find_run(project.file.runs[0], project).folder == run


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    run = trainer_run(Path(folder), 1)
    with pytest.raises(InputError, match="no UTF-8"):
        init(run, project=tmp_path)


def test_odd_text_in_a_runs_own_files_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = trainer_run(tmp_path / "run", 1)
    state = b'{"global_step": 2, "name": "\\ud800\\u0007[red]"}'
    write_files(run, {LAST: state})
    assert init(run, json=True, project=tmp_path) == 0
    assert json.loads(capsys.readouterr().out)["run"]["config"]["global_step"] == 2
    (tmp_path / "pawl.yaml").unlink()
    assert init(run, project=tmp_path) == 0
    assert "[red]" in capsys.readouterr().out


def test_the_examples_in_comments_are_right_when_they_are_uncommented(tmp_path: Path) -> None:
    text = project_text(None, (), tmp_path)
    (tmp_path / "pawl.yaml").write_text(text)
    assert find_project(tmp_path).file == ProjectFile()
    lines = text.splitlines()
    start, end = lines.index("# runs:"), lines.index("services:")
    for number in range(start, end):
        line = lines[number].removeprefix("# ")
        if line[:1] in (" ", "") or line in ("runs:", "channels:"):
            lines[number] = line.replace("# first:", "first:").replace("#   ", "  ")
    (tmp_path / "pawl.yaml").write_text("\n".join(lines))
    file = find_project(tmp_path).file
    assert file.runs[0].folder == "runs/grpo-7b"
    first = file.channels["production"].first
    assert first is not None
    assert first.checkpoint == "grpo-7b@0"
