"""``pawl up`` and ``pawl status``."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from evals.errors import InputError
from pipelines.console import (
    AsJson,
    ProjectFolder,
    moment,
    note,
    print_json,
    print_table,
    print_text,
)
from pipelines.services.supervisor import keep_running, services
from pipelines.status import ProjectStatus, read_status
from storage.project import PROJECT_FILE, Project, find_project

STEP = 1024


def up(project: ProjectFolder = None) -> None:
    """Run everything on loopback until Ctrl-C: Ray head, Dagster and the app."""
    where = find_project(project)
    refuse_nothing_to_do(where)
    with ended_by_signal(), services(where, note) as running:
        note(f"Dagster: http://127.0.0.1:{where.file.services.dagster_port}")
        note(f"the app: http://127.0.0.1:{where.file.services.app_port}")
        note("checkpoints are picked up as they are written; Ctrl-C ends all")
        keep_running(running)


@contextmanager
def ended_by_signal() -> Iterator[None]:
    """Let SIGTERM and SIGINT end the block as Ctrl-C does, even where a shell ignores SIGINT."""
    kinds = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(kind, signal.default_int_handler) for kind in kinds]
    try:
        yield
    finally:
        for kind, handler in zip(kinds, before, strict=True):
            signal.signal(kind, handler)


def refuse_nothing_to_do(project: Project) -> None:
    """Raise ``InputError`` where no run is watched or no channel decides."""
    if not project.file.runs:
        raise InputError(
            "no run to watch", f"{PROJECT_FILE}: runs", "`pawl init RUN_FOLDER` writes it"
        )
    if not project.file.channels:
        raise InputError(
            "no channel to promote to",
            f"{PROJECT_FILE}: channels",
            "`pawl init RUN_FOLDER` writes one named production",
        )


def status(json: AsJson = False, project: ProjectFolder = None) -> None:
    """Tell what runs, what is owed and since when, what failed, and how full the disk is."""
    told = read_status(find_project(project))
    if json:
        print_json(status_json(told))
        return
    running = ", ".join(f"{part.name} {part.address}" for part in told.parts)
    print_text(f"services: {running or 'none; `pawl up` starts them'}")
    tell_checkpoints(told)
    tell_owing(told)
    for channel in told.channels:
        holder = channel.holder.name if channel.holder else "nobody yet"
        print_text(f"{channel.name}: {holder} since {moment(channel.changed_at)}")
    sizes = {"lake": told.disk.lake, "spool": told.disk.spool, "pinned": told.disk.pins}
    used = ", ".join(f"{name} {size_text(size)}" for name, size in sizes.items())
    print_text(f"disk: {used}, free {size_text(told.disk.free)}")


def tell_checkpoints(told: ProjectStatus) -> None:
    """Print how far each checkpoint of the watched runs is."""
    rows = [
        [
            one.name,
            one.state.value,
            moment(one.changed_at),
            told.verdicts[one.name].verdict if one.name in told.verdicts else "–",
            one.detail or "–",
        ]
        for one in told.sightings
    ]
    if rows:
        print_table(["checkpoint", "state", "since", "verdict", "detail"], rows)


def tell_owing(told: ProjectStatus) -> None:
    """Print the evaluations that are not complete."""
    rows = [
        [
            one.checkpoint,
            one.suite,
            str(one.stored),
            str(one.owed),
            moment(one.moved_at),
        ]
        for one in told.owing
    ]
    if rows:
        print_table(["running", "suite", "stored", "owed", "last answer"], rows)


def status_json(told: ProjectStatus) -> dict[str, Any]:
    """Return the status as JSON types."""
    return {
        "services": [{"name": part.name, "address": part.address} for part in told.parts],
        "checkpoints": [
            {
                "checkpoint": one.name,
                "state": one.state.value,
                "since": one.changed_at,
                "verdict": told.verdicts[one.name].verdict if one.name in told.verdicts else None,
                "detail": one.detail,
            }
            for one in told.sightings
        ],
        "running": [
            {
                "evaluation": one.evaluation,
                "checkpoint": one.checkpoint,
                "suite": one.suite,
                "stored": one.stored,
                "owed": one.owed,
                "last_answer": one.moved_at,
            }
            for one in told.owing
        ],
        "channels": [
            {
                "channel": channel.name,
                "holder": channel.holder.name if channel.holder else None,
                "policy": channel.policy,
                "changed_at": channel.changed_at,
            }
            for channel in told.channels
        ],
        "disk": {
            "lake": told.disk.lake,
            "spool": told.disk.spool,
            "pins": told.disk.pins,
            "free": told.disk.free,
        },
    }


def size_text(count: int) -> str:
    """Return bytes as text in the unit that suits them."""
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < STEP:
            break
        size, unit = size / STEP, larger
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
