"""How a project stands: what runs, what is owed, since when nothing moved, what the disk holds."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from evals.evaluation import EvaluationState
from pipelines.services.leftovers import Noted, read_parts
from storage.aggregates import DecisionHead, load_decision_heads, load_planned_counts
from storage.channels import Channel
from storage.evaluations import StoredEvaluation
from storage.project import Project
from storage.sightings import Sighting
from storage.spool import evaluation_folder
from storage.store import LakeStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Owing:
    """An evaluation that is not complete."""

    evaluation: str
    checkpoint: str
    """``RUN@STEP``."""
    suite: str
    planned: int
    """Responses asked for."""
    stored: int
    """Responses that are durable."""
    moved_at: str | None
    """When the last response became durable, UTC; None: none did."""

    @property
    def owed(self) -> int:
        """Return how many responses are still to come."""
        return self.planned - self.stored


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskUse:
    """Bytes on disk."""

    lake: int
    spool: int
    pins: int
    """Checkpoints kept for evaluation; hard links, so the run's own files may be the same bytes."""
    free: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectStatus:
    """A project at one moment."""

    parts: tuple[Noted, ...]
    """What `pawl up` runs; empty where it does not."""
    sightings: tuple[Sighting, ...]
    verdicts: dict[str, DecisionHead]
    """The latest decision of each checkpoint, by ``RUN@STEP``."""
    owing: tuple[Owing, ...]
    channels: tuple[Channel, ...]
    disk: DiskUse


def read_status(project: Project) -> ProjectStatus:
    """Return how the project stands now; where nothing was evaluated yet, that is not an error."""
    parts, disk = read_parts(project.state), disk_use(project)
    if not project.has_lake:
        return ProjectStatus(
            parts=parts, sightings=(), verdicts={}, owing=(), channels=(), disk=disk
        )
    with project.open_store() as store:
        return ProjectStatus(
            parts=parts,
            sightings=store.sightings(),
            verdicts={head.candidate: head for head in load_decision_heads(store.lake)},
            owing=owing(store),
            channels=store.channels(),
            disk=disk,
        )


def owing(store: LakeStore) -> tuple[Owing, ...]:
    """Return the evaluations that are not complete, oldest first."""
    running = store.find_evaluations(state=EvaluationState.RUNNING)
    counts = load_planned_counts(store.lake, [one.evaluation for one in running])
    planned: dict[str, int] = {}
    for row in counts.to_pylist():
        key = row["evaluation_id"]
        planned[key] = planned.get(key, 0) + row["responses"]
    return tuple(owing_of(one, planned, store) for one in running)


def owing_of(stored: StoredEvaluation, planned: dict[str, int], store: LakeStore) -> Owing:
    """Return what one evaluation still owes."""
    evaluation = stored.evaluation
    return Owing(
        evaluation=evaluation.evaluation_id,
        checkpoint=evaluation.checkpoint.name,
        suite=evaluation.suite,
        planned=planned.get(evaluation.evaluation_id, 0),
        stored=len(store.stored_keys(evaluation.evaluation_id)),
        moved_at=last_change(evaluation_folder(store.spool.folder, evaluation.evaluation_id)),
    )


def last_change(folder: Path) -> str | None:
    """Return when a file in a folder last changed, UTC; None where there is none."""
    times = [path.stat().st_mtime for path in folder.glob("*.spool")] if folder.is_dir() else []
    return datetime.fromtimestamp(max(times), UTC).isoformat(timespec="seconds") if times else None


def disk_use(project: Project) -> DiskUse:
    """Return how much of the disk the project uses and how much is free."""
    catalog = [] if project.lake.shared else [Path(project.lake.catalog)]
    return DiskUse(
        lake=bytes_in([project.lake.data_path, *catalog]),
        spool=bytes_in([project.state / "spool"]),
        pins=bytes_in([project.state / "pins"]),
        free=shutil.disk_usage(project.folder).free,
    )


def bytes_in(places: Iterable[Path]) -> int:
    """Return the bytes of files and of all that folders hold; what goes meanwhile is left out."""
    total = 0
    for place in places:
        for path in (place, *place.rglob("*")):
            try:
                if path.is_file():
                    total += path.stat().st_size
            except OSError:
                continue
    return total
