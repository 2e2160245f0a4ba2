"""What Dagster loads: assets, checks, the job of one checkpoint, the sensor and the schedule."""

from __future__ import annotations

from dagster import (
    AssetSelection,
    Definitions,
    define_asset_job,
    in_process_executor,
)

from pipelines.orchestration.assets import CHAIN, CHECKPOINTS
from pipelines.orchestration.checks import CHECKS
from pipelines.orchestration.names import JOB
from pipelines.orchestration.nightly import NIGHTLY, ledger, ledger_is_whole, run_telemetry
from pipelines.orchestration.pickup import checkpoints

definitions = Definitions(
    assets=[*CHAIN, run_telemetry, ledger],
    asset_checks=[*CHECKS, ledger_is_whole],
    jobs=[
        define_asset_job(
            JOB,
            AssetSelection.assets(*CHAIN),
            partitions_def=CHECKPOINTS,
            description="Takes one checkpoint from its folder to a decision.",
        )
    ],
    schedules=[NIGHTLY],
    sensors=[checkpoints],
    executor=in_process_executor,
)
