"""One run's checkpoints through every step of the chain, without Dagster."""

from __future__ import annotations

from pathlib import Path

import pytest
from up_project import UpProject, make_project, write_checkpoint, write_metrics

from pipelines.checkpoints.look import look
from pipelines.checkpoints.pin import pinned_folder
from pipelines.checkpoints.run_folder import find_run
from pipelines.orchestration.chain import Chain
from storage.project import Project, find_project

pytestmark = [pytest.mark.timeout(600)]

BROKEN = 1.0


def see(project: Project) -> None:
    with project.open_store(create=True) as store:
        for section in project.file.runs:
            run = find_run(section, project)
            store.put_sightings(look(run, store.sightings(run.name)))


def go_through(project: Project, step: int) -> Chain:
    chain = Chain(project, f"lab@{step}", lambda _text: None)
    assert chain.pick_up() is not None
    chain.generate()
    assert chain.owed() == 0
    chain.score()
    assert chain.outcomes().unscored == 0
    assert chain.read_telemetry().problems == ()
    chain.compare()
    chain.decide()
    chain.promote()
    return chain


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> UpProject:
    written = make_project(tmp_path_factory.mktemp("chain"))
    for step, noise in enumerate((0.0, 0.0, BROKEN)):
        write_checkpoint(written, step, noise=noise)
    write_metrics(written, 2, 1)
    project = find_project(written.folder)
    see(project)
    for step in range(3):
        go_through(project, step)
    return written


def test_the_sound_one_is_promoted_and_the_broken_one_is_not(finished: UpProject) -> None:
    assert finished.ledger() == [
        ("decision", "lab@0", "INCONCLUSIVE"),
        ("promotion", "lab@0", None),
        ("decision", "lab@1", "PASS"),
        ("promotion", "lab@1", None),
        ("decision", "lab@2", "FAIL"),
    ]
    assert finished.states() == {f"lab@{step}": "evaluated" for step in range(3)}


def test_steps_done_again_change_nothing(finished: UpProject) -> None:
    before = finished.ledger()
    chain = Chain(find_project(finished.folder), "lab@1", lambda _text: None)
    chain.decide()
    assert chain.promote() == ("production",)
    chain = Chain(find_project(finished.folder), "lab@2", lambda _text: None)
    chain.decide()
    assert chain.promote() == ()
    assert finished.ledger() == before


def test_only_the_holders_pin_stays(finished: UpProject) -> None:
    project = find_project(finished.folder)
    kept = [step for step in range(3) if pinned_folder("lab", step, project).exists()]
    assert kept == [1]


def test_one_that_was_deleted_before_it_was_pinned_has_vanished(tmp_path: Path) -> None:
    written = make_project(tmp_path)
    gone = write_checkpoint(written, 4)
    project = find_project(written.folder)
    see(project)
    for file in gone.iterdir():
        file.unlink()
    gone.rmdir()
    assert Chain(project, "lab@4", lambda _text: None).pick_up() is None
    assert written.states() == {"lab@4": "vanished"}
