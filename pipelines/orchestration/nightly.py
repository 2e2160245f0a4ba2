"""The one schedule: each night the ledger is verified and telemetry read once more."""

from __future__ import annotations

from dagster import (
    AssetCheckResult,
    AssetSelection,
    DefaultScheduleStatus,
    MaterializeResult,
    ScheduleDefinition,
    asset,
    asset_check,
    define_asset_job,
)

from pipelines.orchestration.chain import project_here, read_all_telemetry


@asset
def run_telemetry() -> MaterializeResult[None]:
    """All watched runs' telemetry, also of steps after the last checkpoint."""
    read = read_all_telemetry(project_here())
    return MaterializeResult(metadata={"points": read.points, "problems": list(read.problems)})


@asset
def ledger() -> MaterializeResult[None]:
    """The ledger's length."""
    with project_here().open_store(create=True) as store:
        return MaterializeResult(metadata={"entries": len(store.ledger())})


@asset_check(asset=ledger)
def ledger_is_whole() -> AssetCheckResult:
    """Hold that ledger, decisions and channels are what was written."""
    with project_here().open_store(create=True) as store:
        report = store.verify_ledger()
    problems = [problem.text for problem in report.problems]
    return AssetCheckResult(passed=report.sound, metadata={"problems": problems})


NIGHTLY_JOB = define_asset_job("nightly", AssetSelection.assets(run_telemetry, ledger))

NIGHTLY = ScheduleDefinition(
    job=NIGHTLY_JOB, cron_schedule="0 3 * * *", default_status=DefaultScheduleStatus.RUNNING
)
