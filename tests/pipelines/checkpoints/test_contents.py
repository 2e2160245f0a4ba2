"""What a look remembers of a folder."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.errors import CheckpointError, CheckpointVanished
from pipelines.checkpoints.contents import (
    Contents,
    measure_folder,
    measure_model,
    moment_of,
    read_contents,
)


@given(st.integers(0, 10**9), st.integers(0, 10**18), st.text())
def test_contents_are_read_back_from_the_end_of_a_detail(files: int, size: int, why: str) -> None:
    contents = Contents(files=files, size=size, changed="2026-12-01T02:07:14.000001+00:00")
    assert read_contents(f"{why}; {contents}") == contents
    assert read_contents(str(contents)) == contents


@pytest.mark.parametrize("detail", [None, "", "its folder is gone", "3 files", "3 files, x bytes"])
def test_a_detail_without_contents_has_none(detail: str | None) -> None:
    assert read_contents(detail) is None


@given(st.integers(-(10**18), 10**19))
def test_times_are_told_to_the_microsecond(nanoseconds: int) -> None:
    told = datetime.fromisoformat(moment_of(nanoseconds)) - datetime(1970, 1, 1, tzinfo=UTC)
    assert told // timedelta(microseconds=1) == nanoseconds // 1000


def test_a_time_beyond_the_calendar_is_told_as_its_number() -> None:
    for nanoseconds in (10**21, 10**40, -(10**21)):
        assert moment_of(nanoseconds) == str(nanoseconds)


def write(path: Path, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))


def test_files_of_all_folders_below_count_and_each_change_shows(tmp_path: Path) -> None:
    write(tmp_path / "config.json", 3)
    write(tmp_path / "global_step5" / "deep" / "optim.pt", 5)
    first = measure_folder(tmp_path)
    assert (first.files, first.size) == (2, 8)
    assert measure_folder(tmp_path) == first
    changed = [first]
    write(tmp_path / "global_step5" / "deep" / "optim.pt", 6)
    changed.append(measure_folder(tmp_path))
    os.utime(tmp_path / "config.json", ns=(0, 2 * 10**18))
    changed.append(measure_folder(tmp_path))
    (tmp_path / "config.json").rename(tmp_path / "other.json")
    (tmp_path / "other.json").unlink()
    changed.append(measure_folder(tmp_path))
    assert len(set(changed)) == len(changed)


def test_of_a_model_only_what_can_move_an_answer_counts(tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors", "odd.safetensors", "chat_template.jinja"):
        write(tmp_path / name, 1)
    first = measure_model(tmp_path)
    assert first.files == 4
    for name in ("optimizer.pt", "trainer_state.json", "deep/config.json"):
        write(tmp_path / name, 1)
    assert measure_model(tmp_path) == first


def test_a_folder_that_is_gone_has_vanished(tmp_path: Path) -> None:
    for measure in (measure_folder, measure_model):
        with pytest.raises(CheckpointVanished):
            measure(tmp_path / "none")


def test_links_may_not_lead_out_of_the_root(tmp_path: Path) -> None:
    write(tmp_path / "outside", 1)
    write(tmp_path / "run" / "step" / "config.json", 1)
    write(tmp_path / "run" / "shared", 1)
    step, run = tmp_path / "run" / "step", tmp_path / "run"
    (step / "in.safetensors").symlink_to("../shared")
    assert measure_folder(step, run).files == 2
    (step / "deep").symlink_to(tmp_path)
    for measure in (measure_folder, measure_model):
        if measure is measure_model:
            (step / "deep").rename(step / "tokenizer.deep")
        with pytest.raises(CheckpointError, match="leads out"):
            measure(step, run)
        measure(step)
