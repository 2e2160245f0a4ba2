"""Checkpoints as the lake knows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pyarrow as pa

from evals.errors import LakeError
from evals.evaluation import CheckpointRef
from storage.clock import utc_now
from storage.connection import Lake, Row, Transaction, source, transaction
from storage.tables import CHECKPOINTS
from storage.text import decode_json, decode_text, encode_json, encode_text

_COLUMNS = "run, step, digest, path, files, state, registered_at"


class CheckpointState(StrEnum):
    """What is known of a checkpoint's files."""

    READY = "ready"
    VANISHED = "vanished"
    """Deleted since; what was measured of it stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCheckpoint:
    """A checkpoint that was registered."""

    ref: CheckpointRef
    files: Mapping[str, Any]
    """Relative path to what is known of the file."""
    state: CheckpointState
    registered_at: str
    """UTC, ISO 8601."""


def register_checkpoint(
    lake: Lake, checkpoint: CheckpointRef, files: Mapping[str, Any]
) -> StoredCheckpoint:
    """Return the checkpoint as stored; a second registration changes nothing.

    Args:
        lake: The lake.
        checkpoint: Run, step, digest and path; the first three identify it.
        files: Relative path to what is known of the file (size, hash): JSON types only.
    """
    row = {
        "run": encode_text(checkpoint.run),
        "step": checkpoint.step,
        "digest": checkpoint.digest,
        "path": encode_text(checkpoint.path),
        "files": encode_json(dict(files)),
        "state": CheckpointState.READY.value,
        "registered_at": utc_now(),
    }
    rows = pa.Table.from_pylist([row], schema=CHECKPOINTS.schema)

    def write(tx: Transaction) -> Row:
        tx.insert_missing(CHECKPOINTS, rows)
        return tx.rows(
            f"SELECT {_COLUMNS} FROM lake.checkpoints WHERE run = ? AND step = ? AND digest = ?",
            [row["run"], checkpoint.step, checkpoint.digest],
        )[0]

    return _checkpoint(transaction(lake, write))


def set_checkpoint_state(lake: Lake, checkpoint: CheckpointRef, state: CheckpointState) -> None:
    """Record what became of a checkpoint's files.

    Raises:
        LakeError: It was never registered.
    """

    def write(tx: Transaction) -> int:
        tx.guard(CHECKPOINTS)
        return tx.change(
            "UPDATE lake.checkpoints SET state = ? WHERE run = ? AND step = ? AND digest = ?",
            [state.value, encode_text(checkpoint.run), checkpoint.step, checkpoint.digest],
        )

    if transaction(lake, write) == 0:
        raise LakeError("was never registered", checkpoint.name)


def find_checkpoint(
    lake: Lake, run: str, step: int, *, snapshot: int | None = None
) -> StoredCheckpoint | None:
    """Return the checkpoint last registered as ``run@step``, or None."""
    found = lake.rows(
        f"SELECT {_COLUMNS} FROM {source(CHECKPOINTS, snapshot)} WHERE run = ? AND step = ? "
        "ORDER BY registered_at DESC, digest LIMIT 1",
        [encode_text(run), step],
    )
    return _checkpoint(found[0]) if found else None


def load_checkpoints(
    lake: Lake, run: str | None = None, *, snapshot: int | None = None
) -> tuple[StoredCheckpoint, ...]:
    """Return all checkpoints, or one run's, by run, step and time of registration."""
    where, parameters = ("true", []) if run is None else ("run = ?", [encode_text(run)])
    found = lake.rows(
        f"SELECT {_COLUMNS} FROM {source(CHECKPOINTS, snapshot)} WHERE {where} "
        "ORDER BY run, step, registered_at, digest",
        parameters,
    )
    return tuple(_checkpoint(row) for row in found)


def _checkpoint(row: Row) -> StoredCheckpoint:
    run, step, digest, path, files, state, registered_at = row
    return StoredCheckpoint(
        ref=CheckpointRef(run=decode_text(run), step=step, digest=digest, path=decode_text(path)),
        files=decode_json(files),
        state=CheckpointState(state),
        registered_at=registered_at,
    )
