"""Pins: what they hold, what they leave alone, and what a kill or a deletion does to them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from run_builders import (
    LAST,
    add_step,
    checkpoint_files,
    lab_run,
    look,
    project_in,
    run_in,
    start,
    trainer_run,
    write_files,
)

from evals.checkpoint import digest_checkpoint, inspect_checkpoint
from evals.errors import CheckpointError, CheckpointVanished, InputError, LakeError
from pipelines.checkpoints.pin import pin, pinned_folder, unpin
from storage.project import Project
from storage.sightings import Sighting, SightingState

SHARD = "model-00001-of-00002.safetensors"
FILES = sorted(checkpoint_files())


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return project_in(tmp_path / "project")


def complete(run: Path, step: int = 1) -> Sighting:
    (seen,) = [each for each in look(run_in(run), ()) if each.step == step]
    assert seen.state is SightingState.COMPLETE
    return seen


def digest(path: Path) -> str:
    return digest_checkpoint(inspect_checkpoint(path))


def tree(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Size, time of change and inode of all that is in a folder, and of the folder."""
    told = {path: path.stat() for path in (folder, *sorted(folder.rglob("*")))}
    return {str(p): (t.st_size, t.st_mtime_ns, t.st_ino) for p, t in told.items()}


def test_a_pin_holds_what_can_move_an_answer_as_hard_links(
    tmp_path: Path, project: Project
) -> None:
    run = trainer_run(tmp_path / "run", 1)
    pinned = pin(complete(run), project)
    assert pinned == project.folder / ".pawl" / "pins" / "run" / "1"
    assert sorted(file.name for file in pinned.iterdir()) == FILES
    source = run / "checkpoint-1"
    assert all((pinned / name).samefile(source / name) for name in FILES)
    assert digest(pinned) == digest(source)


@pytest.mark.parametrize("make", [lab_run, trainer_run])
def test_pinning_leaves_the_run_as_it_is(make: object, tmp_path: Path, project: Project) -> None:
    run = make(tmp_path / "run", 1, 2)  # type: ignore[operator]
    before = tree(run)
    seen = complete(run)
    pin(seen, project)
    unpin(seen, project)
    pin(seen, project)
    assert tree(run) == before


def test_the_trainers_own_rotation_deletes_the_same_with_and_without_pins(
    tmp_path: Path, project: Project
) -> None:
    from transformers.trainer_utils import rotate_checkpoints

    left = []
    for name in ("with", "without"):
        run = trainer_run(tmp_path / name, 8, 9, 10, 11)
        for age, step in enumerate((8, 10, 9, 11)):
            os.utime(run / f"checkpoint-{step}", (1_700_000_000 + 100 * age,) * 2)
        if name == "with":
            pin(complete(run, 8), project)
            pin(complete(run, 10), project)
        rotate_checkpoints(str(run), save_total_limit=2, use_mtime=True)
        left.append(sorted(path.name for path in run.iterdir()))
    assert left[0] == left[1] == ["checkpoint-11", "checkpoint-9"]


def test_a_pinned_checkpoint_outlives_its_folder(tmp_path: Path, project: Project) -> None:
    run = trainer_run(tmp_path / "run", 1)
    seen, before = complete(run), digest(run / "checkpoint-1")
    pinned = pin(seen, project)
    shutil.rmtree(run / "checkpoint-1")
    assert digest(pinned) == before
    assert pin(seen, project) == pinned, "and may be pinned again"
    assert pin(seen.turned(SightingState.PINNED, None), project) == pinned


def test_pinning_again_changes_nothing(tmp_path: Path, project: Project) -> None:
    seen = complete(trainer_run(tmp_path / "run", 1))
    before = tree(pin(seen, project))
    assert tree(pin(seen, project)) == before


def test_a_damaged_pin_is_made_anew_while_its_source_is_there(
    tmp_path: Path, project: Project
) -> None:
    run = trainer_run(tmp_path / "run", 1)
    seen = complete(run)
    pinned = pin(seen, project)
    (pinned / SHARD).unlink()
    (pinned / "left.txt").write_text("")
    assert sorted(file.name for file in pin(seen, project).iterdir()) == FILES
    (pinned / SHARD).unlink()
    shutil.rmtree(run / "checkpoint-1")
    with pytest.raises(CheckpointVanished):
        pin(seen, project)


def test_unpinning_removes_the_pin_and_nothing_else(tmp_path: Path, project: Project) -> None:
    run = trainer_run(tmp_path / "run", 1, 2)
    first, second = complete(run, 1), complete(run, 2)
    pin(first, project)
    pin(second, project)
    unpin(first, project)
    unpin(first, project)
    assert not pinned_folder("run", 1, project).exists()
    assert digest(pinned_folder("run", 2, project)) == digest(run / "checkpoint-2")
    assert digest(pin(first, project)) == digest(run / "checkpoint-1")


def test_links_within_the_run_are_pinned_as_files(tmp_path: Path, project: Project) -> None:
    run = lab_run(tmp_path / "run", 1)
    step = run / "checkpoints" / "step_1"
    (step / SHARD).rename(run / "shared.safetensors")
    (step / SHARD).symlink_to(run / "shared.safetensors")
    pinned = pin(complete(run), project)
    assert not (pinned / SHARD).is_symlink()
    shutil.rmtree(run)
    assert inspect_checkpoint(pinned).files


def test_the_final_model_is_pinned_without_the_run_around_it(
    tmp_path: Path, project: Project
) -> None:
    run = trainer_run(tmp_path / "run", 1)
    write_files(run, {**checkpoint_files(7), LAST: b'{"global_step": 7}'})
    final = look(run_in(run), look(run_in(run), ()))[-1]
    assert (final.step, final.state) == (7, SightingState.COMPLETE)
    assert sorted(file.name for file in pin(final, project).iterdir()) == FILES


@contextmanager
def other_file_system() -> Iterator[Path]:
    place = Path("/dev/shm")
    if not place.is_dir() or place.stat().st_dev == Path("/tmp").stat().st_dev:
        pytest.skip("no second file system to write to")
    folder = place / f"pawl-test-{os.getpid()}"
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_across_file_systems_a_pin_is_a_copy(tmp_path: Path) -> None:
    run = trainer_run(tmp_path / "run", 1)
    before = tree(run)
    with other_file_system() as place:
        pinned = pin(complete(run), project_in(place))
        assert digest(pinned) == digest(run / "checkpoint-1")
        assert pinned.stat().st_dev != run.stat().st_dev
    assert tree(run) == before


# names


@pytest.mark.parametrize(
    "name", ["../outside", "a/b", "/etc", "", ".", "..", "a\0b", "a@1", "-x", "a\n", "a b"]
)
def test_a_name_never_leads_out_of_the_pins(name: str, tmp_path: Path, project: Project) -> None:
    seen = replace(complete(trainer_run(tmp_path / "run", 1)), run=name)
    before = sorted(tmp_path.rglob("*"))
    for act in (pin, unpin):
        with pytest.raises(InputError, match="is not RUN@STEP"):
            act(seen, project)
    assert sorted(tmp_path.rglob("*")) == before


def test_only_what_is_complete_is_pinned(tmp_path: Path, project: Project) -> None:
    seen = complete(trainer_run(tmp_path / "run", 1))
    for state in ("writing", "corrupt", "vanished", "abandoned"):
        with pytest.raises(CheckpointError, match=f"is {state}; only what is complete"):
            pin(replace(seen, state=SightingState(state)), project)
    assert not pinned_folder("run", 1, project).exists()


# what changes before and meanwhile


def test_a_checkpoint_that_went_or_began_to_go_has_vanished(
    tmp_path: Path, project: Project
) -> None:
    for number, name in enumerate(FILES):
        run = trainer_run(tmp_path / f"run{number}", 1)
        seen = complete(run)
        (run / "checkpoint-1" / name).unlink()
        with pytest.raises(CheckpointVanished):
            pin(seen, project)
        shutil.rmtree(run / "checkpoint-1")
        with pytest.raises(CheckpointVanished):
            pin(seen, project)
        assert not pinned_folder(seen.run, 1, project).exists()


def test_a_checkpoint_cut_off_since_it_was_seen_is_an_error(
    tmp_path: Path, project: Project
) -> None:
    run = trainer_run(tmp_path / "run", 1)
    seen = complete(run)
    (run / "checkpoint-1" / SHARD).write_bytes(b"short")
    with pytest.raises(CheckpointError, match="truncated") as failed:
        pin(seen, project)
    assert not isinstance(failed.value, CheckpointVanished)
    assert not pinned_folder("run", 1, project).exists()


class Stepwise:
    """A process that pins and waits before it inspects and before each file."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def go_on(self, steps: int = 1) -> str:
        """What it says after so many steps."""
        assert self.process.stdin is not None
        heard = ""
        for _ in range(steps):
            self.process.stdin.write("\n")
            self.process.stdin.flush()
            heard = self.hear()
        return heard

    def end(self) -> str:
        """What it comes to."""
        heard = self.go_on()
        while heard == "link":
            heard = self.go_on()
        return heard


@contextmanager
def pinning(project: Project, run: Path, *forget: str) -> Iterator[Stepwise]:
    """A process that has seen the run's one checkpoint complete and is about to pin it."""
    process = start("pin_stepwise", project.folder, run, *forget)
    try:
        stepwise = Stepwise(process)
        assert stepwise.hear() == "seen"
        yield stepwise
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


@pytest.mark.parametrize("linked", [None, *range(0, len(FILES) + 1, 2)])
def test_a_deletion_during_the_pin_ends_in_a_whole_pin_or_in_vanished(
    linked: int | None, tmp_path: Path, project: Project
) -> None:
    run = trainer_run(tmp_path / "run", 1)
    before = digest(run / "checkpoint-1")
    with pinning(project, run) as pinner:
        if linked is None:
            assert pinner.go_on() == "inspect"
        else:
            heard = pinner.go_on(2 + linked)
            assert (heard == "link") == (linked < len(FILES))
        shutil.rmtree(run / "checkpoint-1")
        if linked != len(FILES):
            heard = pinner.end()
    pinned = pinned_folder("run", 1, project)
    if linked == len(FILES):
        assert heard == f"pinned {pinned}"
        assert digest(pinned) == before
    else:
        assert heard == "CheckpointVanished"
        assert not pinned.exists()


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_goes_before_the_inspection_is_a_deletion(
    name: str, tmp_path: Path, project: Project
) -> None:
    run = trainer_run(tmp_path / "run", 1)
    with pinning(project, run) as pinner:
        assert pinner.go_on() == "inspect"
        (run / "checkpoint-1" / name).unlink()
        assert pinner.end() == "CheckpointVanished"
    assert not pinned_folder("run", 1, project).exists()


def test_a_file_that_went_before_the_first_look_is_missed_when_more_goes(
    tmp_path: Path, project: Project
) -> None:
    run = trainer_run(tmp_path / "run", 1)
    (run / "checkpoint-1" / "generation_config.json").unlink()
    with pinning(project, run, "forget") as pinner:
        assert pinner.go_on(4) == "link"
        (run / "checkpoint-1" / "config.json").unlink()
        assert pinner.end() == "CheckpointVanished", "though it was linked before"
    assert not pinned_folder("run", 1, project).exists()


@pytest.mark.parametrize("linked", [0, 1, 4, len(FILES) - 1])
def test_a_kill_during_the_pin_leaves_nothing_that_counts_as_one(
    linked: int, tmp_path: Path, project: Project
) -> None:
    run = trainer_run(tmp_path / "run", 1)
    before = tree(run)
    pinned = pinned_folder("run", 1, project)
    with pinning(project, run) as pinner:
        assert pinner.go_on(2 + linked) == "link"
        pinner.process.send_signal(signal.SIGKILL)
        pinner.process.wait()
    assert not pinned.exists()
    assert len(list(pinned.with_name("1.draft").iterdir())) == linked
    assert pin(complete(run), project) == pinned
    assert digest(pinned) == digest(run / "checkpoint-1")
    assert not pinned.with_name("1.draft").exists()
    assert tree(run) == before


def test_two_that_pin_at_once_come_to_the_same_pin(tmp_path: Path, project: Project) -> None:
    run = trainer_run(tmp_path / "run", 1)
    with pinning(project, run) as first, pinning(project, run) as second:
        assert first.go_on(2) == "link"
        assert second.process.stdin is not None
        second.process.stdin.write("\n" * (len(FILES) + 2))
        second.process.stdin.flush()
        assert first.end() == second.hear() == f"pinned {pinned_folder('run', 1, project)}"
    assert inspect_checkpoint(pinned_folder("run", 1, project)).files


def test_a_file_written_anew_during_a_copy_is_no_pin(tmp_path: Path) -> None:
    run = trainer_run(tmp_path / "run", 1)
    with other_file_system() as place, pinning(project_in(place), run) as pinner:
        assert pinner.go_on(2 + len(FILES) - 1) == "link"
        path = run / "checkpoint-1" / SHARD
        path.write_bytes(path.read_bytes())
        assert pinner.end() == "CheckpointError"


def test_a_file_cut_off_after_it_was_linked_is_no_pin(tmp_path: Path, project: Project) -> None:
    run = trainer_run(tmp_path / "run", 1)
    with pinning(project, run) as pinner:
        assert pinner.go_on(2 + len(FILES) - 1) == "link"
        os.truncate(run / "checkpoint-1" / SHARD, 10)
        assert pinner.end() == "CheckpointError"
    assert not pinned_folder("run", 1, project).exists()


def test_a_disk_that_refuses_is_told_in_one_line(tmp_path: Path, project: Project) -> None:
    run = trainer_run(tmp_path / "run", 1)
    seen = complete(run)
    folder = pinned_folder("run", 1, project)
    folder.parent.mkdir(parents=True)
    folder.with_name("1.draft").write_text("a file in the way")
    with pytest.raises(LakeError, match="can't be pinned") as failed:
        pin(seen, project)
    assert failed.value.fix
    folder.with_name("1.draft").unlink()
    assert pin(seen, project) == folder


def test_steps_are_pinned_apart(tmp_path: Path, project: Project) -> None:
    run = trainer_run(tmp_path / "run", 1)
    add_step(run, 10)
    pins = [pin(complete(run, step), project) for step in (1, 10)]
    assert digest(pins[0]) != digest(pins[1])
