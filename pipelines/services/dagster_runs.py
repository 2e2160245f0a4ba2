"""Whether the process of a Dagster run still lives.

Dagster's own launcher can't tell: a run whose process was killed stays "started" for ever. So each
run's process holds a lock while it lives, which the system frees however it ends.
"""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from storage.locks import file_lock, try_lock

if TYPE_CHECKING:
    from dagster import DagsterRunStatus

START_S = 180.0
"""How long a run may take until its process holds the lock."""

_held: dict[Path, ExitStack] = {}


def hold_run_lock(folder: Path, run_id: str) -> None:
    """Hold a run's lock until this process ends."""
    path = folder / f"{run_id}.lock"
    if path not in _held:
        _held[path] = ExitStack()
        _held[path].enter_context(file_lock(path))


def is_dead(folder: Path, run_id: str, heard_at: float) -> bool:
    """Return whether a run that Dagster takes for going on has no process any more.

    Args:
        folder: Of the locks.
        run_id: The run.
        heard_at: When Dagster last heard of it, in seconds since 1970.
    """
    try:
        descriptor = os.open(folder / f"{run_id}.lock", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return time.time() - heard_at > START_S
    try:
        return try_lock(descriptor)
    finally:
        os.close(descriptor)


def cancel_leftovers(home: Path) -> int:
    """Mark every unfinished run as cancelled, when none of their processes can be alive.

    Args:
        home: Dagster's folder.

    Returns:
        How many there were.
    """
    if not (home / "history").exists():
        return 0
    from dagster import DagsterInstance, RunsFilter

    with DagsterInstance.from_config(str(home)) as instance:
        unfinished = instance.get_runs(RunsFilter(statuses=unfinished_statuses()))
        for run in unfinished:
            instance.report_run_canceled(run, message="`pawl up` was ended before it was done")
    return len(unfinished)


def unfinished_statuses() -> list[DagsterRunStatus]:
    """Return Dagster's names of a run that has not ended."""
    from dagster import DagsterRunStatus as Status

    return [
        Status.QUEUED,
        Status.NOT_STARTED,
        Status.STARTING,
        Status.STARTED,
        Status.CANCELING,
    ]
