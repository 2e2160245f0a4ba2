"""One checkpoint's way as Dagster assets; each calls one method of ``chain.Chain``.

Nothing is handed from asset to asset but through the lake, so that any of them can be run again
alone. A verdict is data: a FAIL leaves the run green, its gate check red and the promotion
unmaterialised.
"""

from collections.abc import Iterator, Mapping

from dagster import (
    AssetCheckResult,
    AssetCheckSeverity,
    AssetCheckSpec,
    AssetExecutionContext,
    AssetKey,
    DynamicPartitionsDefinition,
    MaterializeResult,
    MetadataValue,
    Output,
    asset,
)

from evals.gate import Decision
from evals.stats.verdict import Verdict
from pipelines.orchestration.chain import Chain, project_here
from pipelines.orchestration.names import PARTITIONS
from pipelines.services.dagster_runs import hold_run_lock
from pipelines.services.parts import run_locks

CHECKPOINTS = DynamicPartitionsDefinition(name=PARTITIONS)


def chain_of(context: AssetExecutionContext) -> Chain:
    """Return the way of the checkpoint that the run is about."""
    project = project_here()
    hold_run_lock(run_locks(project), context.run_id)
    return Chain(project, context.partition_key, context.log.info)


@asset(partitions_def=CHECKPOINTS, output_required=False)
def checkpoint(context: AssetExecutionContext) -> Iterator[Output[None]]:
    """The checkpoint as it was found: whole, pinned, named by digest. Absent where it vanished."""
    found = chain_of(context).pick_up()
    if found is not None:
        yield Output(None, metadata={"digest": found.digest, "path": found.path})


@asset(partitions_def=CHECKPOINTS, deps=[checkpoint])
def responses(context: AssetExecutionContext) -> MaterializeResult[None]:
    """Every answer of the channels' suites, each stored exactly once."""
    return MaterializeResult(metadata={"evaluations": list(chain_of(context).generate())})


@asset(partitions_def=CHECKPOINTS, deps=[responses])
def scores(context: AssetExecutionContext) -> MaterializeResult[None]:
    """Each answer under its task's rule."""
    return MaterializeResult(metadata={"scores": chain_of(context).score()})


@asset(partitions_def=CHECKPOINTS, deps=[checkpoint])
def telemetry(context: AssetExecutionContext) -> MaterializeResult[None]:
    """What training has logged so far."""
    read = chain_of(context).read_telemetry()
    return MaterializeResult(metadata={"points": read.points, "problems": list(read.problems)})


@asset(partitions_def=CHECKPOINTS, deps=[scores])
def comparison(context: AssetExecutionContext) -> MaterializeResult[None]:
    """The checkpoint beside each channel's holder, capability by capability."""
    tables = chain_of(context).compare()
    return MaterializeResult(
        metadata={channel: MetadataValue.md(table) for channel, table in tables.items()}
    )


@asset(
    partitions_def=CHECKPOINTS,
    deps=[comparison],
    check_specs=[
        AssetCheckSpec(
            "gate",
            asset="decision",
            description="Shows the verdict, red for FAIL, yellow for INCONCLUSIVE; stops nothing.",
        )
    ],
)
def decision(context: AssetExecutionContext) -> Iterator[MaterializeResult[None]]:
    """Each channel's verdict with its evidence, in the ledger."""
    decided = chain_of(context).decide()
    yield MaterializeResult(
        metadata={channel: MetadataValue.text(one.sentence) for channel, one in decided.items()},
        check_results=[gate(decided)],
    )


def gate(decided: Mapping[str, Decision]) -> AssetCheckResult:
    """Return what the gate check shows of each channel's decision."""
    verdicts = {one.verdict for one in decided.values()}
    return AssetCheckResult(
        check_name="gate",
        passed=verdicts == {Verdict.PASS},
        severity=AssetCheckSeverity.ERROR if Verdict.FAIL in verdicts else AssetCheckSeverity.WARN,
        description="; ".join(f"{name}: {one.sentence}" for name, one in decided.items()),
    )


@asset(partitions_def=CHECKPOINTS, deps=[decision, telemetry], output_required=False)
def promotion(context: AssetExecutionContext) -> Iterator[Output[None]]:
    """The channels that point to the checkpoint now. Absent where none does."""
    moved = chain_of(context).promote()
    if moved:
        yield Output(None, metadata={"channels": list(moved)})


CHAIN = (checkpoint, responses, scores, telemetry, comparison, decision, promotion)
CHAIN_KEYS: tuple[AssetKey, ...] = tuple(one.key for one in CHAIN)
