"""An evaluation: one checkpoint on one suite under one engine fingerprint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

from evals.engine import EngineFingerprint
from evals.identity import fingerprint
from evals.task import TaskSpec


class EvaluationState(StrEnum):
    """How far an evaluation has come."""

    RUNNING = "running"
    COMPLETE = "complete"
    VANISHED = "vanished"
    """The checkpoint was deleted before all of it was evaluated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRef:
    """The weights of a run at a step."""

    run: str
    step: int
    digest: str
    """Tree hash of the files, 64 hex digits."""
    path: str

    @property
    def name(self) -> str:
        """Return ``RUN@STEP``."""
        return f"{self.run}@{self.step}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What was asked of a checkpoint and under what conditions; answers and scores refer to it."""

    evaluation_id: str
    checkpoint: CheckpointRef
    suite: str
    suite_version: str
    suite_fingerprint: str
    """Hash of the suite and of every task's identity: prompts, metric, budget."""
    tasks: tuple[TaskSpec, ...]
    engine: EngineFingerprint
    sampling: str
    """Sampling parameters as canonical JSON."""
    attempt: int = 0
    """0, or the number of the A/A repeat (``--again``)."""
    state: EvaluationState = EvaluationState.RUNNING
    planned_items: int = 0
    """Items over all tasks; with ``repeats`` rows each."""


def suite_fingerprint(suite: str, tasks: Sequence[TaskSpec]) -> str:
    """Return what an evaluation calls the suite it asks.

    Args:
        suite: The suite's own fingerprint.
        tasks: Its tasks as they are asked.
    """
    return fingerprint([suite, [asdict(task) for task in tasks]])


def evaluation_id(
    checkpoint_digest: str,
    suite_fingerprint: str,
    plan_fingerprint: str,
    engine_digest: str,
    attempt: int,
) -> str:
    """Return the evaluation's id: the same question asked twice is the same evaluation."""
    return fingerprint(
        [checkpoint_digest, suite_fingerprint, plan_fingerprint, engine_digest, attempt]
    )[:32]
