"""The sensor: looks at the runs' folders and asks for the next checkpoint's job.

One checkpoint is under way at a time and the lowest step goes first, since each verdict is against
the channel's holder, which the one before may have moved. So the same checkpoints end in the same
decisions, whatever was killed in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dagster import (
    AddDynamicPartitionsRequest,
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    DefaultSensorStatus,
    RunRequest,
    RunsFilter,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    sensor,
)

from evals.errors import PawlError
from pipelines.checkpoints.look import look
from pipelines.checkpoints.run_folder import find_run
from pipelines.orchestration.chain import project_here
from pipelines.orchestration.names import ATTEMPTS, JOB, PARTITION_TAG, PARTITIONS
from pipelines.services.dagster_runs import is_dead, unfinished_statuses
from pipelines.services.parts import run_locks
from storage.project import Project
from storage.sightings import Sighting, SightingState
from storage.store import LakeStore

READY = (SightingState.COMPLETE, SightingState.PINNED)


@sensor(
    job_name=JOB,
    name="checkpoints",
    minimum_interval_seconds=project_here().file.services.poll_s,
    default_status=DefaultSensorStatus.RUNNING,
)
def checkpoints(context: SensorEvaluationContext) -> SensorResult:
    """Ask for the job of the lowest step that is complete and has not been evaluated."""
    project = project_here()
    with project.open_store(create=True) as store:
        seen, problems = see(project, store)
        busy = under_way(context.instance, run_locks(project))
        if busy is not None:
            return waiting(f"{busy} is under way")
        following = next_checkpoint(seen, context.instance, store)
    if following is None:
        return waiting("; ".join(problems) or "no complete checkpoint is left to evaluate")
    return SensorResult(
        run_requests=[RunRequest(partition_key=following.name)],
        dynamic_partitions_requests=[AddDynamicPartitionsRequest(PARTITIONS, [following.name])],
    )


def waiting(why: str) -> SensorResult:
    """Return that nothing is asked for now."""
    return SensorResult(skip_reason=SkipReason(why))


def see(project: Project, store: LakeStore) -> tuple[tuple[Sighting, ...], tuple[str, ...]]:
    """Return what lies in the runs' folders now, stored, and what could not be looked at."""
    problems: list[str] = []
    for section in project.file.runs:
        try:
            run = find_run(section, project)
            store.put_sightings(look(run, store.sightings(run.name)))
        except PawlError as problem:
            problems.append(str(problem))
    return store.sightings(), tuple(problems)


def under_way(instance: DagsterInstance, locks: Path) -> str | None:
    """Return the checkpoint whose job goes on, after marking those whose process is gone."""
    busy = None
    for record in instance.get_run_records(
        RunsFilter(job_name=JOB, statuses=unfinished_statuses())
    ):
        run = record.dagster_run
        heard = record.update_timestamp.timestamp()
        if run.status is DagsterRunStatus.STARTED and is_dead(locks, run.run_id, heard):
            instance.report_run_failed(run, "its process is gone")
        else:
            busy = partition_of(run)
    return busy


def next_checkpoint(
    seen: Sequence[Sighting], instance: DagsterInstance, store: LakeStore
) -> Sighting | None:
    """Return the next checkpoint to evaluate; those that failed too often are marked."""
    for one in sorted(seen, key=lambda sighting: (sighting.step, sighting.run)):
        if one.state not in READY:
            continue
        failures = instance.get_runs_count(
            RunsFilter(
                job_name=JOB,
                statuses=[DagsterRunStatus.FAILURE],
                tags={PARTITION_TAG: one.name},
            )
        )
        if failures < ATTEMPTS:
            return one
        store.put_sightings([one.failed(f"its job failed {failures} times; see Dagster's runs")])
    return None


def partition_of(run: DagsterRun) -> str:
    """Return the checkpoint that a run is about."""
    return run.tags.get(PARTITION_TAG, run.run_id)
