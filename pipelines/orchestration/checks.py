"""The checks of integrity: each stops a checkpoint's run where it does not hold."""

from dagster import AssetCheckExecutionContext, AssetCheckResult, asset_check

from pipelines.orchestration.assets import responses, scores
from pipelines.orchestration.chain import Chain, project_here
from pipelines.orchestration.names import PARTITION_TAG


def chain_of(context: AssetCheckExecutionContext) -> Chain:
    """Return the way of the checkpoint that the run is about."""
    return Chain(project_here(), context.run.tags[PARTITION_TAG], context.log.info)


@asset_check(asset=responses, blocking=True)
def all_answered(context: AssetCheckExecutionContext) -> AssetCheckResult:
    """Hold that no response is owed and that each is there once."""
    owed = chain_of(context).owed()
    return AssetCheckResult(passed=owed == 0, metadata={"owed": owed})


@asset_check(asset=scores, blocking=True)
def all_scored(context: AssetCheckExecutionContext) -> AssetCheckResult:
    """Hold that every response has an outcome, and that not all are errors of the system."""
    counts = chain_of(context).outcomes()
    unscored, errored, total = counts.unscored, counts.errored, counts.total
    return AssetCheckResult(
        passed=unscored == 0 and errored < total,
        metadata={"unscored": unscored, "errored": errored, "responses": total},
    )


CHECKS = (all_answered, all_scored)
