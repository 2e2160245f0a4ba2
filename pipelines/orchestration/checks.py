"""Asset checks: those of integrity stop a checkpoint's run, the gate's only shows the verdict."""

from dagster import (
    AssetCheckExecutionContext,
    AssetCheckResult,
    AssetCheckSeverity,
    asset_check,
)

from evals.stats.verdict import Verdict
from pipelines.orchestration.assets import decision, responses, scores
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
        passed=unscored == 0 and (errored < total or total == 0),
        metadata={"unscored": unscored, "errored": errored, "responses": total},
    )


@asset_check(asset=decision)
def gate(context: AssetCheckExecutionContext) -> AssetCheckResult:
    """Show the verdict: red for FAIL, yellow for INCONCLUSIVE."""
    decided = chain_of(context).decide()
    verdicts = {one.verdict for one in decided.values()}
    return AssetCheckResult(
        passed=verdicts == {Verdict.PASS},
        severity=AssetCheckSeverity.ERROR if Verdict.FAIL in verdicts else AssetCheckSeverity.WARN,
        description="; ".join(f"{name}: {one.sentence}" for name, one in decided.items()),
    )


CHECKS = (all_answered, all_scored, gate)
