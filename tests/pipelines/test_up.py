"""`pawl up` on a run: picked up, evaluated, gated, promoted or blocked, all on loopback."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from up_project import (
    VLLM,
    UpProject,
    make_project,
    pawl_up,
    processes_of,
    wait_until,
    write_checkpoint,
    write_metrics,
)

from pipelines.services.leftovers import read_parts
from pipelines.status import read_status
from storage.project import find_project

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

BROKEN = 1.0
DECISIONS = [
    ("decision", "lab@0", "INCONCLUSIVE"),
    ("promotion", "lab@0", None),
    ("decision", "lab@1", "PASS"),
    ("promotion", "lab@1", None),
    ("decision", "lab@2", "FAIL"),
]
"""What the three checkpoints come to, whatever is killed meanwhile."""


def write_run(project: UpProject) -> None:
    write_checkpoint(project, 0)
    write_checkpoint(project, 1)
    write_checkpoint(project, 2, noise=BROKEN)
    write_metrics(project, 2, 1)


def all_evaluated(project: UpProject) -> bool:
    return project.states() == {f"lab@{step}": "evaluated" for step in range(3)}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpProject]:
    """A project whose three checkpoints were evaluated, with `pawl up` still running."""
    project = make_project(tmp_path_factory.mktemp("up"))
    with pawl_up(project) as process:
        write_run(project)
        write_checkpoint(project, 3)
        (project.run / "checkpoints" / "step_3" / "config.json").write_text("{")
        (project.run / "checkpoints" / "tmp_step_4").mkdir()
        wait_until(lambda: list(project.states().values())[:3] == ["evaluated"] * 3, process)
        yield project


def test_sound_checkpoints_are_promoted_and_the_broken_one_is_not(finished: UpProject) -> None:
    assert finished.ledger() == DECISIONS
    assert finished.read("status")["channels"][0]["holder"] == "lab@1"


def test_half_written_and_corrupt_ones_are_told_apart_and_stop_nothing(
    finished: UpProject,
) -> None:
    states = finished.states()
    assert states["lab@3"] == "corrupt"
    assert states["lab@4"] in {"writing", "abandoned"}


def test_why_tells_the_rule_that_blocked(finished: UpProject) -> None:
    told = finished.pawl("why", "lab@2").stdout
    assert "FAIL" in told
    assert "holds" in told or "hold" in told
    assert len(told.strip().splitlines()) <= 5


def test_telemetry_is_in_the_lake(finished: UpProject) -> None:
    shown = finished.read("telemetry", "show", "lab")
    assert "entropy" in {series["series"] for series in shown["series"]}


def test_everything_listens_on_loopback_only(finished: UpProject) -> None:
    ours = processes_of(finished)
    inodes = {}
    for pid in ours:
        for link in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                target = str(link.readlink())
            except OSError:
                continue
            if target.startswith("socket:["):
                inodes[target[8:-1]] = pid
    listening = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                listening.append((fields[1].split(":")[0], ours[inodes[fields[9]]][:60]))
    loopback = {
        "0100007F",
        "0000000000000000FFFF00000100007F",
        "00000000000000000000000001000000",
    }
    assert len(listening) >= 4
    assert [one for one in listening if one[0] not in loopback] == []


def test_status_tells_what_runs_and_the_disk(finished: UpProject) -> None:
    told = finished.read("status")
    names = [part["name"] for part in told["services"]]
    assert names == ["ray", "code", "dagster", "daemon", "app"]
    assert told["disk"]["lake"] > 0
    assert told["running"] == []
    table = finished.pawl("status").stdout
    assert "production: lab@1" in table


def test_a_second_pawl_up_is_refused(finished: UpProject) -> None:
    done = finished.pawl("up")
    assert done.returncode == 3
    assert "runs already" in done.stderr


def test_one_flipped_byte_in_the_ledger_is_found(finished: UpProject, tmp_path: Path) -> None:
    assert finished.pawl("ledger", "verify").returncode == 0
    copy = UpProject(tmp_path / "copy")
    shutil.copytree(finished.folder, copy.folder, ignore=shutil.ignore_patterns("*.sock"))
    flip_a_byte(copy.folder / ".pawl")
    assert copy.pawl("ledger", "verify").returncode == 3


def flip_a_byte(state: Path) -> None:
    """Change one character of a promotion, wherever the lake keeps small tables."""
    with sqlite3.connect(state / "lake.sqlite") as catalogue:
        names = [
            row[0]
            for row in catalogue.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        inlined = [name for name in names if "inlined_data_" in name]
        for name in inlined:
            columns = [row[1] for row in catalogue.execute(f"PRAGMA table_info({name})")]
            if "payload" in columns:
                catalogue.execute(f"UPDATE {name} SET payload = replace(payload, 'lab@1', 'lab@7')")
                return
    pytest.fail("the ledger is not where it was looked for")


VICTIMS = {
    "the daemon": "dagster._daemon",
    "the code server": "dagster api grpc",
    "a job": "multiprocessing.spawn",
    "Ray's head": "gcs_server",
    "a worker": "ray::_Holder",
}

MOMENTS: dict[str, Callable[[UpProject], bool]] = {
    "is pinned": lambda project: "pinned" in project.states().values(),
    "is evaluated": lambda project: "evaluated" in project.states().values(),
    "its engine starts": lambda project: any(
        VICTIMS["a worker"] in command for command in processes_of(project).values()
    ),
    "its answers come": lambda project: any(
        owing.stored for owing in read_status(find_project(project.folder)).owing
    ),
}


@pytest.mark.parametrize("victim", ["the daemon", "the code server", "a job"])
@pytest.mark.parametrize("moment", ["is pinned", "is evaluated"])
def test_killed_and_started_again_it_ends_in_the_same_decisions(
    tmp_path: Path, victim: str, moment: str
) -> None:
    assert kill_and_start_again(make_project(tmp_path), victim, moment) == DECISIONS


@pytest.mark.parametrize("victim", ["Ray's head", "a worker"])
@pytest.mark.parametrize("moment", ["its engine starts", "its answers come"])
def test_killed_while_vllm_answers_and_started_again_it_ends_in_the_same_decisions(
    tmp_path: Path, victim: str, moment: str
) -> None:
    project = make_project(tmp_path, engine=VLLM, items=600)
    assert kill_and_start_again(project, victim, moment) == DECISIONS


def kill_and_start_again(
    project: UpProject, victim: str, moment: str
) -> list[tuple[str, str, str | None]]:
    """Kill a process once a checkpoint is so far, then `pawl up`; return what a new one decides."""
    write_run(project)
    with pawl_up(project) as process:
        wait_until(lambda: MOMENTS[moment](project), process)
        killed = [
            pid for pid, command in processes_of(project).items() if VICTIMS[victim] in command
        ]
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        time.sleep(2)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert killed or moment == "is evaluated"
    with pawl_up(project) as process:
        wait_until(lambda: all_evaluated(project), process)
    assert project.pawl("ledger", "verify").returncode == 0
    assert read_parts(project.folder / ".pawl") == ()
    return project.ledger()


def test_checkpoints_deleted_truncated_and_slowly_written_meanwhile(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    write_checkpoint(project, 0)
    with pawl_up(project) as process:
        wait_until(lambda: "lab@0" in project.states(), process)
        gone = write_checkpoint(project, 5)
        wait_until(lambda: "lab@5" in project.states(), process)
        shutil.rmtree(gone)
        cut = write_checkpoint(project, 6)
        with (cut / "model.safetensors").open("r+b") as file:
            file.truncate(1000)
        slow = write_checkpoint(project, 7).rename(project.run / "checkpoints" / "tmp_step_7")
        wait_until(lambda: project.states().get("lab@7") == "writing", process)
        slow.rename(project.run / "checkpoints" / "step_7")
        wait_until(
            lambda: [project.states().get(f"lab@{n}") for n in (0, 7)] == ["evaluated"] * 2,
            process,
        )
        states = project.states()
    assert states["lab@5"] in {"vanished", "evaluated"}
    assert states["lab@6"] == "corrupt"
