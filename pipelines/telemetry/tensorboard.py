"""TensorBoard's event files: records with a length and two checksums, appended.

A restart writes a second file beside the first, with the steps that it replays.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.telemetry.rows import UNREADABLE, BadRow, Problem, Row, Rows, read_step, read_time

EVENT_FILES = "*tfevents*"

_SCALARS = "scalars"
_PREFIX = struct.Struct("<QI")
_PREFIX_LENGTH_BYTES = 8
_CHECKSUM_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class _EventFile:
    path: Path
    began: float
    """Wall time of its first event, seconds since 1970; 0 where it has none."""
    rows: tuple[Row, ...]
    problems: tuple[Problem, ...]


def find_event_files(folder: Path) -> list[Path]:
    """Return the event files that lie in a folder itself."""
    return sorted(path for path in folder.glob(EVENT_FILES) if path.is_file())


def read_event_files(paths: Iterable[Path]) -> Rows:
    """Return the scalars of one run's event files, in the order in which they were begun.

    A last record that is not whole is being written, or its writer was killed: it is left out.
    Where a record is damaged, TensorBoard's reader can't go on in that file.
    """
    files = sorted((_read_file(path) for path in paths), key=lambda one: (one.began, one.path))
    return Rows(
        rows=tuple(row for file in files for row in file.rows),
        problems=tuple(problem for file in files for problem in file.problems),
    )


def _read_file(path: Path) -> _EventFile:
    rows: list[Row] = []
    problems: list[Problem] = []
    scalars: set[str] = set()
    began = 0.0
    read = 0

    def note(what: str, fix: str) -> None:
        problems.append(Problem(file=str(path), line=None, what=what, fix=fix))

    try:
        whole, damaged = _count_records(path)
        for record in _load_records(path):
            read += 1
            try:
                event = _parse(record)
                began = began or event.wall_time
                rows.extend(_read_event(event, scalars))
            except BadRow as bad:
                note(f"record {read}: {bad}", "no other record is concerned")
    except OSError as bad:
        note(f"it can't be read ({bad.strerror})", UNREADABLE)
        whole, damaged = 0, False
    if damaged or read < whole:
        note(
            f"record {read + 1} is damaged, and nothing after it was read",
            "restore the file; if it never was an event file, move it away",
        )
    return _EventFile(path=path, began=began, rows=tuple(rows), problems=tuple(problems))


def _load_records(path: Path) -> Iterator[bytes]:
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader

    yield from RawEventFileLoader(str(path)).Load()


def _parse(record: bytes) -> Any:
    from google.protobuf.message import DecodeError
    from tensorboard.compat.proto.event_pb2 import Event

    try:
        return Event.FromString(record)
    except DecodeError:
        raise BadRow("it is no event") from None


def _read_event(event: Any, scalars: set[str]) -> Iterator[Row]:
    """Yield the event's scalars as a row, if it has any.

    Args:
        event: As parsed.
        scalars: Tags that are known to be scalars; only a tag's first value has to say so.
    """
    values = dict(_scalars(event, scalars))
    if values:
        step, logged_at = read_step(event.step), read_time(event.wall_time)
        yield Row(step=step, values=values, logged_at=logged_at)


def _scalars(event: Any, scalars: set[str]) -> Iterator[tuple[str, float]]:
    from tensorboard.util.tensor_util import make_ndarray

    for value in event.summary.value:
        if value.metadata.plugin_data.plugin_name == _SCALARS:
            scalars.add(value.tag)
        if value.HasField("simple_value"):
            yield value.tag, float(value.simple_value)
        elif value.tag in scalars and value.HasField("tensor"):
            numbers = make_ndarray(value.tensor)
            if numbers.size == 1:
                yield value.tag, float(numbers.item())


def _count_records(path: Path) -> tuple[int, bool]:
    """Return how many records are whole by their lengths, and whether a length is damaged."""
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

    size = path.stat().st_size
    count = place = 0
    with path.open("rb") as file:
        while place + _PREFIX.size <= size:
            file.seek(place)
            prefix = file.read(_PREFIX.size)
            length, checksum = _PREFIX.unpack(prefix)
            if masked_crc32c(prefix[:_PREFIX_LENGTH_BYTES]) != checksum:
                return count, True
            place += _PREFIX.size + length + _CHECKSUM_BYTES
            count += place <= size
    return count, False
