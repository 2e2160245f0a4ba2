"""What one look at a run's folder tells, and how states follow each other."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from run_builders import (
    LAST,
    add_step,
    checkpoint_files,
    lab_run,
    looks,
    run_in,
    run_of,
    start,
    told,
    trainer_files,
    trainer_run,
    write_files,
)

from evals.checkpoint import CheckpointFolder, inspect_checkpoint
from evals.errors import CheckpointError, InputError
from pipelines.checkpoints.contents import is_model_file, measure_folder, read_contents
from pipelines.checkpoints.layout import Layout
from pipelines.checkpoints.look import look
from storage.sightings import Sighting, SightingState

WRITING, COMPLETE, PINNED = SightingState.WRITING, SightingState.COMPLETE, SightingState.PINNED
CORRUPT, VANISHED, ABANDONED = (
    SightingState.CORRUPT,
    SightingState.VANISHED,
    SightingState.ABANDONED,
)

BY_QUIET = Layout(
    name="quiet",
    frameworks="a framework that says nothing",
    looked_for="nothing",
    run_file="none.json",
    step_name=re.compile("epoch_([0-9]+)"),
)


@pytest.mark.parametrize("make", [lab_run, trainer_run])
def test_steps_come_in_the_order_of_their_numbers(
    make: Callable[..., Path], tmp_path: Path
) -> None:
    run = run_in(make(tmp_path / "grpo", 10, 9, 100, 0))
    seen = look(run, ())
    assert [each.step for each in seen] == [0, 9, 10, 100]
    assert {each.state for each in seen} == {COMPLETE}
    assert [each.name for each in seen][:2] == ["grpo@0", "grpo@9"]
    assert Path(seen[1].path).is_dir()


def test_a_look_that_finds_nothing_new_returns_what_it_was_given(tmp_path: Path) -> None:
    trainer_run(tmp_path / "run", 1, 2)
    write_files(tmp_path / "run" / "checkpoint-3", checkpoint_files())
    seen = look(run_in(tmp_path / "run"), ())
    again = look(run_in(tmp_path / "run"), seen)
    assert all(new is old for new, old in zip(again, seen, strict=True))


def test_sightings_of_other_runs_are_left_out(tmp_path: Path) -> None:
    run = run_in(trainer_run(tmp_path / "run", 1))
    others = look(run_in(trainer_run(tmp_path / "other", 1, 2)), ())
    assert [each.name for each in look(run, others)] == ["run@1"]


# writing


def test_the_lab_writes_under_another_name_until_it_renames(tmp_path: Path) -> None:
    folder = lab_run(tmp_path / "run")
    assert look(run_in(folder), ()) == ()
    draft = write_files(folder / "checkpoints" / "tmp_step_5", checkpoint_files())
    (seen,) = look(run_in(folder), ())
    assert (seen.state, seen.path) == (WRITING, str(draft))
    assert "tmp_step_5" in (seen.detail or "")
    draft.rename(draft.with_name("step_5"))
    (after,) = look(run_in(folder), [seen])
    assert (after.state, after.path) == (COMPLETE, str(draft.with_name("step_5")))


def test_a_step_that_is_written_anew_is_what_it_was_until_then(tmp_path: Path) -> None:
    folder = lab_run(tmp_path / "run", 5)
    write_files(folder / "checkpoints" / "tmp_step_5", {"config.json": b"{}"})
    (seen,) = look(run_in(folder), ())
    assert (seen.state, Path(seen.path).name) == (COMPLETE, "step_5")


def test_the_trainer_says_by_its_last_file_that_it_is_done(tmp_path: Path) -> None:
    folder = trainer_run(tmp_path / "run")
    files = trainer_files(7)
    step = folder / "checkpoint-7"
    step.mkdir()
    seen: tuple[Sighting, ...] = ()
    for name, content in files.items():
        seen = look(run_in(folder), seen)
        assert told(seen) == {7: "writing"}, f"before {name}"
        assert f"no {LAST} yet" in (seen[0].detail or "")
        (step / name).write_bytes(content)
    assert told(look(run_in(folder), seen)) == {7: "complete"}


@pytest.mark.parametrize(
    "mark", ["checkpoint-is-incomplete.txt", "model-00001.tmp", "x.incomplete", "a.lock"]
)
def test_marks_of_writing_come_before_all_else(mark: str, tmp_path: Path) -> None:
    folder = trainer_run(tmp_path / "run", 1)
    (folder / "checkpoint-1" / mark).touch()
    (folder / "checkpoint-1" / "config.json").unlink()
    (seen,) = look(run_in(folder), ())
    assert seen.state is WRITING
    assert mark in (seen.detail or "")


def is_as_seen(path: Path, sighting: Sighting) -> bool:
    """Return whether a folder is as it was: a writer that rests between two looks is another."""
    return read_contents(sighting.detail) == measure_folder(path, path.parent)


def test_a_writer_is_never_ahead_of_itself(tmp_path: Path) -> None:
    folder = trainer_run(tmp_path / "run", 1)
    path = folder / "checkpoint-2"
    seen = look(run_in(folder), ())
    states = set()
    with start("write_slowly", path, 2) as writer:
        while writer.poll() is None:
            if any(each.step == 2 and is_as_seen(path, each) for each in seen):
                continue
            whole = (path / LAST).exists()
            seen = look(run_in(folder), seen)
            states |= {each.state for each in seen if each.step == 2}
            assert whole or COMPLETE not in states
    assert WRITING in states
    assert states <= {WRITING, COMPLETE}
    assert told(look(run_in(folder), seen)) == {1: "complete", 2: "complete"}


def test_a_writer_that_renames_is_seen_before_and_after_and_never_between(tmp_path: Path) -> None:
    folder = lab_run(tmp_path / "run", 1)
    seen = look(run_in(folder), ())
    states = []
    with start("write_and_rename", folder / "checkpoints" / "step_2", 2) as writer:
        while writer.poll() is None:
            seen = look(run_in(folder), seen)
            states += [each.state for each in seen if each.step == 2]
    states += [look(run_in(folder), seen)[-1].state]
    assert [state for state, _ in itertools.groupby(states)] == [WRITING, COMPLETE]


# complete by being left alone


def test_what_no_mark_speaks_for_is_complete_when_nothing_changed_between_two_looks(
    tmp_path: Path,
) -> None:
    step = write_files(tmp_path / "run" / "epoch_3", checkpoint_files())
    run = run_of(tmp_path / "run", BY_QUIET)
    first = look(run, ())
    assert told(first) == {3: "writing"}
    (step / "tokenizer_config.json").write_bytes(b'{"later": 1}')
    second = look(run, first)
    assert told(second) == {3: "writing"}
    third = look(run, second)
    assert told(third) == {3: "complete"}
    assert look(run, third)[0] is third[0]


def test_what_no_mark_speaks_for_and_is_not_whole_is_still_being_written(tmp_path: Path) -> None:
    step = write_files(tmp_path / "run" / "epoch_3", checkpoint_files())
    (step / "tokenizer.json").unlink()
    run = run_of(tmp_path / "run", BY_QUIET)
    (seen,) = looks(run, 4)
    assert seen.state is WRITING
    assert "no tokenizer" in (seen.detail or "")


def test_the_final_model_counts_where_its_step_has_no_folder(tmp_path: Path) -> None:
    folder = trainer_run(tmp_path / "run", 10)
    write_files(folder, checkpoint_files(20))
    run = run_in(folder)
    assert told(looks(run, 2)) == {10: "complete"}, "its step is not known"
    (folder / LAST).write_text('{"global_step": 10}')
    assert told(looks(run, 2)) == {10: "complete"}
    assert looks(run, 2)[0].path == str(folder / "checkpoint-10")
    (folder / LAST).write_text('{"global_step": 20}')
    first = look(run, ())
    assert told(first) == {10: "complete", 20: "writing"}
    add_step(folder, 15)
    (folder / "runs").mkdir()
    second = look(run, first)
    assert told(second) == {10: "complete", 15: "complete", 20: "complete"}
    assert second[-1].path == str(folder)
    (folder / "tokenizer_config.json").write_text('{"a": 1}')
    assert told(look(run, second))[20] == "writing"


@pytest.mark.parametrize("step", ["-1", "true", "1.5", '"7"', "null", "1" * 30, "[]"])
def test_a_step_that_is_none_names_no_final_model(step: str, tmp_path: Path) -> None:
    folder = trainer_run(tmp_path / "run", 1)
    write_files(folder, checkpoint_files())
    (folder / LAST).write_text(f'{{"global_step": {step}}}')
    assert told(looks(run_in(folder), 2)) == {1: "complete"}


# corrupt


def cut(path: Path, keep: int = 20) -> None:
    path.write_bytes(path.read_bytes()[:keep])


SHARD = "model-00001-of-00002.safetensors"


@pytest.mark.parametrize("make", [lab_run, trainer_run])
@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda f: cut(f / SHARD), f"{SHARD}: "),
        (lambda f: (f / SHARD).write_bytes((f / SHARD).read_bytes() + b"x"), "asks for"),
        (lambda f: (f / SHARD).unlink(), "1 of 2 weight files missing"),
        (lambda f: (f / "config.json").unlink(), "no config.json"),
        (lambda f: cut(f / "config.json"), "config.json: not valid JSON"),
        (lambda f: (f / "tokenizer.json").unlink(), "no tokenizer"),
        (lambda f: cut(f / "model.safetensors.index.json"), "not valid JSON"),
    ],
)
def test_what_is_said_to_be_whole_and_is_not_is_corrupt(
    make: Callable[..., Path], damage: Callable[[Path], object], says: str, tmp_path: Path
) -> None:
    folder = make(tmp_path / "run", 1, 2)
    path = Path(look(run_in(folder), ())[1].path)
    damage(path)
    seen = look(run_in(folder), ())
    assert told(seen) == {1: "complete", 2: "corrupt"}
    assert says in (seen[1].detail or "")
    assert str(folder) not in (seen[1].detail or "")
    assert look(run_in(folder), seen)[1] is seen[1]
    shutil.rmtree(path)
    add_step(folder, 2)
    assert told(look(run_in(folder), seen)) == {1: "complete", 2: "complete"}


def test_a_checkpoint_that_is_cut_off_after_it_was_complete_is_corrupt(tmp_path: Path) -> None:
    folder = trainer_run(tmp_path / "run", 1)
    seen = look(run_in(folder), ())
    cut(folder / "checkpoint-1" / SHARD)
    assert told(look(run_in(folder), seen)) == {1: "corrupt"}


@pytest.mark.parametrize("content", [b"", b'{"global_step": 1', b"[1]", b"\xff\xfe{", b"[" * 9999])
def test_a_last_file_that_is_cut_off_is_corrupt_when_it_stays_so(
    content: bytes, tmp_path: Path
) -> None:
    folder = trainer_run(tmp_path / "run", 1)
    last = folder / "checkpoint-1" / LAST
    whole = last.read_bytes()
    last.write_bytes(content)
    first = look(run_in(folder), ())
    assert told(first) == {1: "writing"}
    second = look(run_in(folder), first)
    assert told(second) == {1: "corrupt"}
    assert LAST in (second[0].detail or "")
    assert look(run_in(folder), second)[0] is second[0]
    last.write_bytes(whole)
    assert told(look(run_in(folder), second)) == {1: "complete"}


def test_a_lora_adapter_says_what_to_do_with_it(tmp_path: Path) -> None:
    folder = trainer_run(tmp_path / "run")
    files = {"adapter_config.json": b"{}", "adapter_model.safetensors": b"x"}
    kept = {n: c for n, c in trainer_files(1).items() if not n.startswith("model")}
    write_files(folder / "checkpoint-1", kept | files)
    (seen,) = look(run_in(folder), ())
    assert seen.state is CORRUPT
    assert "merge" in (seen.detail or "")


# abandoned


def test_what_is_written_no_more_is_abandoned_when_a_newer_one_is_complete(tmp_path: Path) -> None:
    folder = trainer_run(tmp_path / "run", 1)
    half = write_files(folder / "checkpoint-5", checkpoint_files())
    seen = looks(run_in(folder), 3)
    assert told(seen) == {1: "complete", 5: "writing"}, "an older one tells nothing"
    add_step(folder, 10)
    (half / "optimizer.pt").write_bytes(b"on it")
    seen = look(run_in(folder), seen)
    assert told(seen) == {1: "complete", 5: "writing", 10: "complete"}
    seen = look(run_in(folder), seen)
    assert told(seen) == {1: "complete", 5: "abandoned", 10: "complete"}
    again = look(run_in(folder), seen)
    assert again[1] is seen[1]
    (half / "rng_state.pth").write_bytes(b"more")
    seen = look(run_in(folder), seen)
    assert told(seen)[5] == "writing"
    (half / LAST).write_bytes(b'{"global_step": 5}')
    assert told(look(run_in(folder), seen))[5] == "complete"


@pytest.mark.parametrize("ours", [PINNED, SightingState.EVALUATED, SightingState.FAILED])
def test_a_newer_one_that_pawl_has_taken_was_complete_too(
    ours: SightingState, tmp_path: Path
) -> None:
    folder = trainer_run(tmp_path / "run", 10)
    write_files(folder / "checkpoint-5", checkpoint_files())
    half, whole = look(run_in(folder), ())
    taken = whole.turned(ours, None)
    shutil.rmtree(folder / "checkpoint-10")
    assert told(look(run_in(folder), [half, taken])) == {5: "abandoned", 10: ours.value}


def test_an_abandoned_one_stays_so_when_the_newer_one_is_deleted(tmp_path: Path) -> None:
    folder = trainer_run(tmp_path / "run", 10)
    write_files(folder / "checkpoint-5", checkpoint_files())
    seen = looks(run_in(folder), 2)
    shutil.rmtree(folder / "checkpoint-10")
    assert told(look(run_in(folder), seen)) == {5: "abandoned", 10: "vanished"}


def test_a_draft_of_the_lab_that_was_left_is_abandoned(tmp_path: Path) -> None:
    folder = lab_run(tmp_path / "run", 2)
    write_files(folder / "checkpoints" / "tmp_step_1", {"config.json": b"{}"})
    assert told(looks(run_in(folder), 2)) == {1: "abandoned", 2: "complete"}


# vanished


def test_what_was_seen_and_is_gone_has_vanished_and_may_come_again(tmp_path: Path) -> None:
    folder = trainer_run(tmp_path / "run", 1, 2)
    write_files(folder / "checkpoint-3", checkpoint_files())
    cut(folder / "checkpoint-2" / SHARD)
    seen = look(run_in(folder), ())
    assert told(seen) == {1: "complete", 2: "corrupt", 3: "writing"}
    for step in (1, 2, 3):
        shutil.rmtree(folder / f"checkpoint-{step}")
    run = run_in(folder, layout="trainer")
    gone = look(run, seen)
    assert told(gone) == {1: "vanished", 2: "vanished", 3: "vanished"}
    assert look(run, gone)[0] is gone[0]
    add_step(folder, 2)
    assert told(look(run, gone)) == {1: "vanished", 2: "complete", 3: "vanished"}


@pytest.mark.parametrize("state", [PINNED, SightingState.EVALUATED, SightingState.FAILED])
def test_what_pawl_has_taken_stays_so_whatever_becomes_of_the_folder(
    state: SightingState, tmp_path: Path
) -> None:
    folder = trainer_run(tmp_path / "run", 1, 2)
    seen = tuple(each.turned(state, "kept") for each in look(run_in(folder), ()))
    cut(folder / "checkpoint-1" / SHARD)
    shutil.rmtree(folder / "checkpoint-2")
    assert look(run_in(folder), seen) == seen


@pytest.mark.parametrize("make", [lab_run, trainer_run])
def test_a_deletion_that_takes_its_time_is_no_damage(
    make: Callable[..., Path], tmp_path: Path
) -> None:
    for number, first in enumerate(trainer_files(1) if make is trainer_run else checkpoint_files()):
        folder = make(tmp_path / f"run{number}", 1)
        seen = look(run_in(folder), ())
        path = Path(seen[0].path)
        names = sorted((file.name for file in path.iterdir()), key=lambda name: name != first)
        begun = False
        for name in names:
            (path / name).unlink()
            begun = begun or is_model_file(name) or name == LAST
            for _ in range(2):
                seen = look(run_in(folder, layout="lab" if make is lab_run else "trainer"), seen)
                # One file less that a checkpoint can be without, and no more: it is whole again.
                allowed = {VANISHED, COMPLETE} if is_whole(path, make) else {VANISHED}
                assert seen[0].state in (allowed if begun else {COMPLETE}), (first, name)
        path.rmdir()
        run = run_in(folder, layout="lab" if make is lab_run else "trainer")
        assert told(look(run, seen)) == {1: "vanished"}


def is_whole(path: Path, make: Callable[..., Path]) -> bool:
    try:
        inspect_checkpoint(path)
    except CheckpointError:
        return False
    return make is lab_run or (path / LAST).exists()


def test_a_checkpoint_that_lost_its_template_is_not_complete_at_once(tmp_path: Path) -> None:
    folder = trainer_run(tmp_path / "run", 1)
    seen = look(run_in(folder), ())
    (folder / "checkpoint-1" / "chat_template.jinja").unlink()
    seen = look(run_in(folder), seen)
    assert told(seen) == {1: "vanished"}
    assert told(look(run_in(folder), seen)) == {1: "complete"}, "it was left at that"


def test_optimizer_state_may_be_deleted(tmp_path: Path) -> None:
    folder = trainer_run(tmp_path / "run", 1)
    seen = look(run_in(folder), ())
    (folder / "checkpoint-1" / "optimizer.pt").unlink()
    assert look(run_in(folder), seen)[0] is seen[0]


def test_a_vanished_one_that_is_written_again_is_writing_then_complete(tmp_path: Path) -> None:
    folder = trainer_run(tmp_path / "run", 1)
    seen = look(run_in(folder), ())
    (folder / "checkpoint-1" / "config.json").unlink()
    seen = look(run_in(folder), seen)
    assert told(seen) == {1: "vanished"}
    shutil.rmtree(folder / "checkpoint-1")
    run = run_in(folder, layout="trainer")
    seen = look(run, seen)
    states = []
    for name, content in trainer_files(1).items():
        write_files(folder / "checkpoint-1", {name: content})
        seen = look(run, seen)
        states.append(seen[0].state)
    assert [state for state, _ in itertools.groupby(states)] == [WRITING, COMPLETE]


def test_coming_and_going_at_any_moment_raises_nothing(tmp_path: Path) -> None:
    folder = trainer_run(tmp_path / "run", 2)
    run = run_in(folder)
    seen: tuple[Sighting, ...] = ()
    with start("come_and_go", folder / "checkpoint-1") as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            for _ in range(400):
                seen = look(run, seen)
                assert told(seen)[2] == "complete"
        finally:
            process.kill()


@pytest.mark.parametrize("what", ["config.json", "folder"])
@pytest.mark.parametrize("known", [True, False])
def test_a_deletion_within_a_look_is_told_by_the_next(
    what: str, known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_in(trainer_run(tmp_path / "run", 1, 2))
    seen = look(run, ()) if known else ()
    path = tmp_path / "run" / "checkpoint-1"

    def inspect_late(folder: Path) -> CheckpointFolder:
        if folder == path and path.exists():
            (path / what).unlink() if what != "folder" else shutil.rmtree(path)
        return inspect_checkpoint(folder)

    monkeypatch.setattr("pipelines.checkpoints.look.inspect_checkpoint", inspect_late)
    within = look(run, seen)
    assert told(within) == ({1: "complete", 2: "complete"} if known else {2: "complete"})
    if known:
        assert within[0] is seen[0]
        assert told(look(run, within)) == {1: "vanished", 2: "complete"}


# hostile and unreadable folders


def test_links_that_leave_the_run_are_refused(tmp_path: Path) -> None:
    outside = write_files(tmp_path / "outside", trainer_files(9))
    folder = trainer_run(tmp_path / "run", 1, 2, 3, 4)
    (folder / "checkpoint-9").symlink_to(outside)
    for name, step in (("config.json", 1), (SHARD, 2), (LAST, 3)):
        file = folder / f"checkpoint-{step}" / name
        file.unlink()
        file.symlink_to(outside / name)
    inside = folder / "checkpoint-4" / SHARD
    inside.rename(folder / "shared.safetensors")
    inside.symlink_to(folder / "shared.safetensors")
    seen = look(run_in(folder), ())
    corrupt = dict.fromkeys((1, 2, 3, 9), "corrupt")
    assert told(seen) == {**corrupt, 4: "complete"}
    for each in seen:
        if each.state is CORRUPT:
            assert "leads out of the run folder" in (each.detail or "")


def test_links_in_circles_and_to_nothing_raise_nothing(tmp_path: Path) -> None:
    folder = trainer_run(tmp_path / "run", 1, 2)
    for step in (1, 2):
        (folder / f"checkpoint-{step}" / "config.json").unlink()
    (folder / "checkpoint-1" / "config.json").symlink_to("config.json")
    (folder / "checkpoint-2" / "config.json").symlink_to("nothing")
    (folder / "checkpoint-3").symlink_to("checkpoint-3")
    (folder / "checkpoint-4").symlink_to("nothing")
    (folder / LAST).symlink_to(LAST)
    assert told(look(run_in(folder), ())) == {1: "corrupt", 2: "corrupt"}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["config.json", LAST, SHARD, "tokenizer_config.json"])
def test_a_pipe_in_the_place_of_a_file_holds_nothing_up(name: str, tmp_path: Path) -> None:
    folder = trainer_run(tmp_path / "run", 1, 2)
    (folder / "checkpoint-1" / name).unlink()
    os.mkfifo(folder / "checkpoint-1" / name)
    os.mkfifo(folder / LAST)
    seen = look(run_in(folder), ())
    assert told(seen) == {1: "corrupt", 2: "complete"}
    assert "neither a file nor a folder" in (seen[0].detail or "")


def test_only_folders_of_the_layouts_names_are_checkpoints(tmp_path: Path) -> None:
    folder = trainer_run(tmp_path / "run", 7)
    for name in (
        *("checkpoint-", "checkpoint-05", "checkpoint--1", "checkpoint-1.5", "checkpoint-١"),
        *("checkpoint-²", "xcheckpoint-1", "checkpoint-1\n", "checkpoint-" + "9" * 16),
        *("checkpoint-1;DROP TABLE", "step_3", "..checkpoint-4", "checkpoint-8 "),
    ):
        write_files(folder / name, trainer_files(1))
    (folder / "checkpoint-6").write_text("a file")
    assert told(look(run_in(folder), ())) == {7: "complete"}


def test_names_that_are_no_text_and_times_beyond_the_calendar_raise_nothing(
    tmp_path: Path,
) -> None:
    folder = trainer_run(tmp_path / "run", 1)
    odd = os.fsencode(folder / "checkpoint-1") + b"/\xff\xfe\n.txt"
    with open(odd, "wb") as file:  # noqa: PTH123  a name that Path can't spell
        file.write(b"x")
    os.utime(folder / "checkpoint-1" / SHARD, ns=(0, 10**21))
    (seen,) = look(run_in(folder), ())
    assert seen.state is COMPLETE
    assert read_contents(seen.detail) is not None


@pytest.fixture
def not_root() -> Iterator[None]:
    """Give up root's right to read everything, for as long as the test lasts."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.usefixtures("not_root")
@pytest.mark.parametrize("what", ["folder", "weights", LAST])
def test_a_folder_that_can_not_be_read_is_corrupt_with_the_reason(what: str) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        folder = trainer_run(Path(place) / "run", 1, 2)
        bad = folder / "checkpoint-1"
        path = {"folder": bad, "weights": bad / SHARD, LAST: bad / LAST}[what]
        path.chmod(0)
        seen = looks(run_in(folder), 2)
        path.chmod(0o700)
        assert told(seen) == {1: "corrupt", 2: "complete"}
        assert "can't be read: Permission denied" in (seen[0].detail or "")
        assert told(look(run_in(folder), seen)) == {1: "complete", 2: "complete"}


def test_a_run_folder_that_is_gone_tells_nothing_of_its_checkpoints(tmp_path: Path) -> None:
    folder = lab_run(tmp_path / "run", 1)
    run = run_in(folder)
    seen = look(run, ())
    folder.rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="nothing is concluded"):
        look(run, seen)
    (tmp_path / "elsewhere").rename(folder)
    assert look(run, seen) == seen
    shutil.rmtree(folder / "checkpoints")
    assert told(look(run, seen)) == {1: "vanished"}


# any order of events

FILES = trainer_files(1)
EVENTS = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(sorted(FILES)), st.integers(1, 3)),
    st.tuples(st.just("cut"), st.sampled_from(sorted(FILES)), st.integers(1, 3)),
    st.tuples(st.just("delete"), st.sampled_from(sorted(FILES)), st.integers(1, 3)),
    st.tuples(st.just("whole"), st.just(""), st.integers(1, 3)),
    st.tuples(st.just("gone"), st.just(""), st.integers(1, 3)),
    st.tuples(st.just("mark"), st.just("x.tmp"), st.integers(1, 3)),
    st.tuples(st.just("pin"), st.just(""), st.integers(1, 3)),
)


def happen(event: tuple[str, str, int], folder: Path) -> None:
    kind, name, step = event
    path = folder / f"checkpoint-{step}"
    if kind == "write":
        write_files(path, {name: FILES[name]})
    elif kind == "cut" and (path / name).exists():
        cut(path / name, 5)
    elif kind == "delete":
        (path / name).unlink(missing_ok=True)
    elif kind == "whole":
        write_files(path, FILES)
    elif kind == "gone":
        shutil.rmtree(path, ignore_errors=True)
    elif kind == "mark":
        write_files(path, {name: b""})


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(EVENTS, max_size=4), max_size=6))
def test_whatever_happens_a_look_says_what_is_there(
    rounds: list[list[tuple[str, str, int]]],
) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = trainer_run(Path(place) / "run")
        run = run_in(folder, layout="trainer")
        seen: tuple[Sighting, ...] = ()
        for events in rounds:
            pinned = {step for kind, _, step in events if kind == "pin"}
            for event in events:
                happen(event, folder)
            known = tuple(
                each.turned(PINNED, None)
                if each.step in pinned and each.state is COMPLETE
                else each
                for each in seen
            )
            seen = look(run, known)
            before = {each.step: each for each in known}
            assert [each.step for each in seen] == sorted({each.step for each in seen})
            assert {each.step for each in seen} >= set(before)
            for each in seen:
                check_sighting(each, before.get(each.step))


def check_sighting(each: Sighting, old: Sighting | None) -> None:
    """Hold a sighting against the folder as it is, by the rules as the documentation has them."""
    path = Path(each.path)
    if old is not None and old.state is PINNED:
        assert each is old
        return
    marked = (path / LAST).exists() and not list(path.glob("*.tmp"))
    if each.state is COMPLETE:
        assert marked
        assert is_whole(path, trainer_run)
    if not path.exists():
        assert each.state is VANISHED
    if each.state is CORRUPT:
        assert (path / LAST).exists()
        assert not is_whole(path, trainer_run) or cut_off(path / LAST)
    if each.state in (WRITING, ABANDONED):
        assert not marked or cut_off(path / LAST)
    if old is not None and each.same_as(old):
        assert each is old
    elif old is not None:
        assert each.changed_at >= old.changed_at


def cut_off(path: Path) -> bool:
    return path.stat().st_size < len(FILES[LAST])


def test_the_time_of_change_is_that_of_the_state_and_its_detail(tmp_path: Path) -> None:
    folder = trainer_run(tmp_path / "run", 1)
    (seen,) = look(run_in(folder), ())
    old = replace(seen, changed_at="2026-01-01T00:00:00.000000+00:00")
    assert look(run_in(folder), [old])[0].changed_at == old.changed_at
    cut(folder / "checkpoint-1" / SHARD)
    assert look(run_in(folder), [old])[0].changed_at > old.changed_at
