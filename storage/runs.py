"""Runs as the lake knows them: where each writes, and how it was configured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from storage.clock import utc_now
from storage.connection import Lake, Row, Transaction, source, transaction
from storage.tables import RUNS
from storage.text import decode_json, decode_text, encode_json, encode_text

_COLUMNS = "run, folder, layout, config, registered_at"
_CHANGING = ("folder", "layout", "config")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run that was registered."""

    run: str
    folder: str
    """What it writes into."""
    layout: str
    """How checkpoints and telemetry lie in it."""
    config: Mapping[str, Any]
    """Model line, owner, tags and training configuration; JSON types only."""
    registered_at: str
    """When it was first registered; UTC, ISO 8601."""


def register_run(
    lake: Lake, run: str, folder: str, layout: str, config: Mapping[str, Any]
) -> StoredRun:
    """Return the run as stored, its folder, layout and configuration as given.

    Args:
        lake: The lake.
        run: Its name, which identifies it.
        folder: What it writes into.
        layout: How checkpoints and telemetry lie in it.
        config: Model line, owner, tags and training configuration: JSON types only.
    """
    row = {
        "run": encode_text(run),
        "folder": encode_text(folder),
        "layout": encode_text(layout),
        "config": encode_json(dict(config)),
        "registered_at": utc_now(),
    }
    rows = pa.Table.from_pylist([row], schema=RUNS.schema)
    changing = [row[name] for name in _CHANGING]

    def write(tx: Transaction) -> Row:
        select = f"SELECT {_COLUMNS} FROM lake.runs WHERE run = ?"
        known = tx.rows(select, [row["run"]])
        if not known:
            tx.insert_missing(RUNS, rows)
        elif list(known[0][1:-1]) != changing:
            tx.guard(RUNS)
            assignments = ", ".join(f"{name} = ?" for name in _CHANGING)
            tx.change(f"UPDATE lake.runs SET {assignments} WHERE run = ?", [*changing, row["run"]])
        return tx.rows(select, [row["run"]])[0]

    return _run(transaction(lake, write))


def load_runs(lake: Lake, *, snapshot: int | None = None) -> tuple[StoredRun, ...]:
    """Return all registered runs by name."""
    found = lake.rows(f"SELECT {_COLUMNS} FROM {source(RUNS, snapshot)} ORDER BY run")
    return tuple(_run(row) for row in found)


def _run(row: Row) -> StoredRun:
    run, folder, layout, config, registered_at = row
    return StoredRun(
        run=decode_text(run),
        folder=decode_text(folder),
        layout=decode_text(layout),
        config=decode_json(config),
        registered_at=registered_at,
    )
