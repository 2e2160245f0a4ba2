"""Evaluations as the lake knows them: one row each, its state changed in place."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from evals.engine import EngineFingerprint
from evals.errors import LakeError
from evals.evaluation import CheckpointRef, Evaluation, EvaluationState
from evals.task import Capability, RequestKind, TaskSpec
from storage.clock import utc_now
from storage.connection import Lake, Row, Transaction, source, transaction
from storage.tables import EVALUATIONS
from storage.text import decode_json, decode_text, encode_json, encode_text

_COLUMNS = (
    "evaluation_id, run, step, checkpoint_digest, checkpoint_path, suite, suite_version, "
    "suite_fingerprint, tasks, engine, sampling, attempt, state, planned_items, created_at, "
    "completed_at"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEvaluation:
    """An evaluation and when it was stored."""

    evaluation: Evaluation
    created_at: str
    """UTC, ISO 8601."""
    completed_at: str | None
    """When it was first complete, UTC, ISO 8601; None before."""


def put_evaluation(lake: Lake, evaluation: Evaluation) -> StoredEvaluation:
    """Return the evaluation as stored; a row that is there stays as it is."""
    rows = pa.Table.from_pylist([_row(evaluation)], schema=EVALUATIONS.schema)

    def write(tx: Transaction) -> Row:
        tx.insert_missing(EVALUATIONS, rows)
        return tx.rows(
            f"SELECT {_COLUMNS} FROM lake.evaluations WHERE evaluation_id = ?",
            [evaluation.evaluation_id],
        )[0]

    return _stored(transaction(lake, write))


def finish_evaluation(lake: Lake, evaluation_id: str, state: EvaluationState) -> None:
    """Set an evaluation's state; the first COMPLETE also sets ``completed_at``.

    Raises:
        LakeError: There is none of that id.
    """
    completed_at = utc_now() if state is EvaluationState.COMPLETE else None

    def write(tx: Transaction) -> int:
        tx.guard(EVALUATIONS)
        return tx.change(
            "UPDATE lake.evaluations SET state = ?, completed_at = coalesce(completed_at, ?) "
            "WHERE evaluation_id = ?",
            [state.value, completed_at, evaluation_id],
        )

    if transaction(lake, write) == 0:
        raise LakeError("there is no such evaluation", evaluation_id)


def load_evaluation(
    lake: Lake, evaluation_id: str, *, snapshot: int | None = None
) -> StoredEvaluation:
    """Return one evaluation.

    Raises:
        LakeError: There is none of that id.
    """
    found = lake.rows(
        f"SELECT {_COLUMNS} FROM {source(EVALUATIONS, snapshot)} WHERE evaluation_id = ?",
        [evaluation_id],
    )
    if not found:
        raise LakeError("there is no such evaluation", evaluation_id)
    return _stored(found[0])


def find_evaluations(
    lake: Lake,
    *,
    checkpoint_digest: str | None = None,
    suite: str | None = None,
    state: EvaluationState | None = None,
    snapshot: int | None = None,
) -> tuple[StoredEvaluation, ...]:
    """Return the evaluations that fit all that is given, oldest first."""
    wanted = {
        "checkpoint_digest": checkpoint_digest,
        "suite": encode_text(suite),
        "state": None if state is None else state.value,
    }
    given = {name: value for name, value in wanted.items() if value is not None}
    where = " AND ".join(f"{name} = ?" for name in given) or "true"
    found = lake.rows(
        f"SELECT {_COLUMNS} FROM {source(EVALUATIONS, snapshot)} WHERE {where} "
        "ORDER BY created_at, evaluation_id",
        list(given.values()),
    )
    return tuple(_stored(row) for row in found)


def _row(evaluation: Evaluation) -> dict[str, Any]:
    checkpoint = evaluation.checkpoint
    done = evaluation.state is EvaluationState.COMPLETE
    now = utc_now()
    return {
        "evaluation_id": evaluation.evaluation_id,
        "run": encode_text(checkpoint.run),
        "step": checkpoint.step,
        "checkpoint_digest": checkpoint.digest,
        "checkpoint_path": encode_text(checkpoint.path),
        "suite": encode_text(evaluation.suite),
        "suite_version": encode_text(evaluation.suite_version),
        "suite_fingerprint": evaluation.suite_fingerprint,
        "tasks": encode_json([asdict(task) for task in evaluation.tasks]),
        "engine": encode_json(asdict(evaluation.engine)),
        "engine_digest": evaluation.engine.digest,
        "sampling": encode_text(evaluation.sampling),
        "attempt": evaluation.attempt,
        "state": evaluation.state.value,
        "planned_items": evaluation.planned_items,
        "created_at": now,
        "completed_at": now if done else None,
    }


def _stored(row: Row) -> StoredEvaluation:
    values = dict(zip(_COLUMNS.split(", "), row, strict=True))
    evaluation = Evaluation(
        evaluation_id=values["evaluation_id"],
        checkpoint=CheckpointRef(
            run=decode_text(values["run"]),
            step=values["step"],
            digest=values["checkpoint_digest"],
            path=decode_text(values["checkpoint_path"]),
        ),
        suite=decode_text(values["suite"]),
        suite_version=decode_text(values["suite_version"]),
        suite_fingerprint=values["suite_fingerprint"],
        tasks=tuple(_task(fields) for fields in decode_json(values["tasks"])),
        engine=EngineFingerprint(**decode_json(values["engine"])),
        sampling=decode_text(values["sampling"]),
        attempt=values["attempt"],
        state=EvaluationState(values["state"]),
        planned_items=values["planned_items"],
    )
    return StoredEvaluation(
        evaluation=evaluation,
        created_at=values["created_at"],
        completed_at=values["completed_at"],
    )


def _task(fields: dict[str, Any]) -> TaskSpec:
    typed = {
        "capability": Capability(fields["capability"]),
        "kind": RequestKind(fields["kind"]),
        "stops": tuple(fields["stops"]),
    }
    return TaskSpec(**{**fields, **typed})
