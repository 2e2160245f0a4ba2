"""A run's telemetry: which files of its folder hold it, and their way into the lake."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from evals.errors import InputError
from evals.telemetry import Point
from pipelines.telemetry.dialects import LAB, TRAINER, Dialect, build_points, find_dialect
from pipelines.telemetry.jsonl import read_jsonl
from pipelines.telemetry.rows import Problem, Rows
from pipelines.telemetry.tensorboard import EVENT_FILES, find_event_files, read_event_files
from pipelines.telemetry.trainer_state import STATE_FILE, has_state, read_newest_state, read_state
from storage.store import LakeStore

METRICS_FILE = "metrics.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A layout of run folders, or one kind of file."""

    name: str
    fits: Callable[[Path], bool]
    """Says whether a path holds telemetry of this format."""
    read: Callable[[Path], Rows]
    dialect: Dialect | None = None
    """None: told by the names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a run has logged so far, and what of it could not be read."""

    points: tuple[Point, ...]
    problems: tuple[Problem, ...]


def read_run(folder: Path, layout: str, run: str) -> Reading:
    """Return what a run has logged so far.

    Args:
        folder: What the trainer writes into; one without telemetry yet gives no points.
        layout: A name of :data:`FORMATS`; also that of a single file's format.
        run: The run's name.

    Raises:
        InputError: The layout is none of them.
    """
    form = next((one for one in FORMATS if one.name == layout), None)
    if form is None:
        known = ", ".join(one.name for one in FORMATS)
        raise InputError(f"no telemetry format {layout[:80]!r}", "format", f"it is one of {known}")
    found = form.read(folder)
    names = {name for row in found.rows for name in row.values}
    dialect = form.dialect or find_dialect(names)
    return Reading(points=build_points(run, found.rows, dialect), problems=found.problems)


def import_run(
    store: LakeStore, run_name: str, folder: Path, layout: str
) -> tuple[int, tuple[Problem, ...]]:
    """Store what a run has logged and the lake has not, in one transaction.

    Returns:
        How many points are new, and what could not be read.

    Raises:
        InputError: The layout is unknown.
    """
    reading = read_run(folder, layout, run_name)
    return store.put_points(reading.points), reading.problems


def find_format(path: Path) -> str:
    """Return the format of a run's folder or of one file, by what is there.

    Raises:
        InputError: There is nothing that is telemetry of a known format.
    """
    if not path.exists():
        raise InputError("no such file or folder", str(path), "correct the path")
    for form in FORMATS:
        if form.fits(path):
            return form.name
    raise InputError(
        "no telemetry of a known format",
        str(path),
        f"give a run's folder with {METRICS_FILE}, tensorboard/ or checkpoint-N/{STATE_FILE}, "
        "one such file, or --format",
    )


def _read_lab(folder: Path) -> Rows:
    """Return what the lab logged; its TensorBoard files only repeat ``metrics.jsonl``."""
    metrics = folder / METRICS_FILE
    if metrics.exists():
        return read_jsonl(metrics)
    return read_event_files(find_event_files(folder / "tensorboard"))


def _read_trainer(folder: Path) -> Rows:
    """Return what the HF Trainer logged; its TensorBoard files only until a checkpoint has it."""
    if has_state(folder):
        return read_newest_state(folder)
    return read_event_files(_trainer_events(folder))


def _trainer_events(folder: Path) -> list[Path]:
    return [path for launch in folder.glob("runs/*") for path in find_event_files(launch)]


def _read_events(path: Path) -> Rows:
    return read_event_files(find_event_files(path) if path.is_dir() else [path])


FORMATS = (
    Format(
        name="lab",
        fits=lambda path: (
            (path / METRICS_FILE).exists() or bool(find_event_files(path / "tensorboard"))
        ),
        read=_read_lab,
        dialect=LAB,
    ),
    Format(
        name="trainer",
        fits=lambda path: path.is_dir() and (has_state(path) or bool(_trainer_events(path))),
        read=_read_trainer,
        dialect=TRAINER,
    ),
    Format(name="jsonl", fits=lambda path: path.suffix == ".jsonl", read=read_jsonl),
    Format(name="trainer_state", fits=lambda path: path.name == STATE_FILE, read=read_state),
    Format(
        name="tensorboard",
        fits=lambda path: path.match(EVENT_FILES) or bool(find_event_files(path)),
        read=_read_events,
    ),
)
"""Of folders first, since a folder's files may fit too."""
