"""Event files here are written by TensorBoard's and by torch's own writers."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from pipelines.telemetry.rows import Row, number_attempts
from pipelines.telemetry.tensorboard import find_event_files, read_event_files


def write(folder: Path, values: list[tuple[int, str, float]]) -> Path:
    """Write scalars as torch does, in the order given, into a new file of a folder."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    known = set(find_event_files(folder))
    writer = EventFileWriter(str(folder))
    for number, (step, tag, value) in enumerate(values):
        summary = Summary(value=[Summary.Value(tag=tag, simple_value=value)])
        writer.add_event(Event(step=step, wall_time=1000.0 + number, summary=summary))
    writer.close()
    (path,) = set(find_event_files(folder)) - known
    return path


def flat(rows: tuple[Row, ...]) -> list[tuple[int, str, float | None]]:
    return [(row.step, name, value) for row in rows for name, value in row.values.items()]


def test_what_torch_writes_is_read(tmp_path: Path) -> None:
    writing = pytest.importorskip("torch.utils.tensorboard")
    with writing.SummaryWriter(str(tmp_path)) as writer:
        for step in (1, 2, 3):
            writer.add_scalar("reward/mean", 0.1 * step, step, walltime=1764500000.0 + step)
            writer.add_scalar("grad_norm", math.nan if step == 2 else step, step)
        writer.add_text("args", "lr 1e-5")
        writer.add_histogram("weights", np.arange(9.0), 1)
    found = read_event_files(find_event_files(tmp_path))
    assert found.problems == ()
    values = flat(found.rows)
    assert [(step, name) for step, name, _ in values] == [
        (step, name) for step in (1, 2, 3) for name in ("reward/mean", "grad_norm")
    ]
    rewards = [value for _, name, value in values if name == "reward/mean"]
    assert rewards == [float(np.float32(0.1 * step)) for step in (1, 2, 3)]
    assert math.isnan(values[3][2] or 0.0)
    assert found.rows[0].logged_at == "2025-11-30T10:53:21.000000+00:00"


def test_scalars_kept_as_tensors_are_read_though_only_the_first_says_so(tmp_path: Path) -> None:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
    from tensorboard.summary.writer.event_file_writer import EventFileWriter
    from tensorboard.util.tensor_util import make_tensor_proto

    writer = EventFileWriter(str(tmp_path))
    plugin = SummaryMetadata.PluginData(plugin_name="scalars")
    for step in (1, 2):
        metadata = SummaryMetadata(plugin_data=plugin) if step == 1 else None
        value = Summary.Value(
            tag="loss", tensor=make_tensor_proto(np.float64(step / 3)), metadata=metadata
        )
        text = Summary.Value(tag="text", tensor=make_tensor_proto([b"words"]))
        writer.add_event(Event(step=step, wall_time=5.0, summary=Summary(value=[value, text])))
    writer.close()
    found = read_event_files(find_event_files(tmp_path))
    assert flat(found.rows) == [(1, "loss", 1 / 3), (2, "loss", 2 / 3)]


def test_files_of_a_restart_follow_each_other_in_time(tmp_path: Path) -> None:
    first = write(tmp_path / "z", [(step, "a", 10.0 + step) for step in (1, 2, 3)])
    later = write(tmp_path / "a", [(step, "a", 20.0 + step) for step in (3, 4)])
    found = read_event_files([later, first])
    assert flat(found.rows) == [
        (1, "a", 11.0),
        (2, "a", 12.0),
        (3, "a", 13.0),
        (3, "a", 23.0),
        (4, "a", 24.0),
    ]
    assert number_attempts(found.rows) == [0, 0, 0, 1, 1]


def test_a_last_record_that_is_cut_anywhere_is_no_error(tmp_path: Path) -> None:
    path = write(tmp_path, [(1, "a", 1.0), (2, "a", 2.0)])
    content = path.read_bytes()
    one = len(content) - len(content_before_last(path))
    for lost in range(1, one):
        path.write_bytes(content[:-lost])
        found = read_event_files([path])
        assert flat(found.rows) == [(1, "a", 1.0)]
        assert found.problems == ()


def content_before_last(path: Path) -> bytes:
    """Return the file without its last record, whose payload is as long as the first value's."""
    content = path.read_bytes()
    place = ends = 0
    while place < len(content):
        ends = place
        place += 16 + int.from_bytes(content[place : place + 8], "little")
    return content[:ends]


@pytest.mark.parametrize(
    "where", [0, 4, 9, 13, 20], ids=["length", "length 2", "sum", "data", "more"]
)
def test_a_damaged_record_is_named_and_costs_what_follows(tmp_path: Path, where: int) -> None:
    path = write(tmp_path, [(1, "a", 1.0), (2, "a", 2.0), (3, "a", 3.0)])
    content = bytearray(path.read_bytes())
    place = 16 + int.from_bytes(content[:8], "little")
    place += 16 + int.from_bytes(content[place : place + 8], "little")
    content[place + where] ^= 0x55
    path.write_bytes(bytes(content))
    found = read_event_files([path])
    assert flat(found.rows) == [(1, "a", 1.0)]
    (problem,) = found.problems
    assert "record 3 is damaged" in problem.what
    assert problem.file == str(path)


def test_an_empty_file_and_one_that_is_none(tmp_path: Path) -> None:
    empty, other = tmp_path / "events.out.tfevents.1.a", tmp_path / "events.out.tfevents.2.a"
    empty.touch()
    other.write_text("these are no events at all\n" * 9)
    found = read_event_files([empty, other, tmp_path / "gone"])
    assert found.rows == ()
    assert sorted(Path(one.file).name for one in found.problems) == [
        "events.out.tfevents.2.a",
        "gone",
    ]


def test_a_step_below_0_costs_its_record(tmp_path: Path) -> None:
    found = read_event_files([write(tmp_path, [(-3, "a", 1.0), (2, "a", 2.0)])])
    assert flat(found.rows) == [(2, "a", 2.0)]
    assert "record 2: its step is '-3'" in found.problems[0].what
