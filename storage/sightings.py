"""Sightings: how far each checkpoint of a watched run is, as last seen on disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import pyarrow as pa

from storage.clock import utc_now
from storage.connection import Lake, Row, Transaction, source, transaction
from storage.tables import SIGHTINGS
from storage.text import decode_text, encode_text

_COLUMNS = "run, step, path, state, detail, changed_at"
Key = tuple[str, int]
"""Run and step."""


class SightingState(StrEnum):
    """How far a checkpoint on disk is."""

    WRITING = "writing"
    """Not yet said to be whole."""
    COMPLETE = "complete"
    """Said to be whole, and is."""
    PINNED = "pinned"
    """Kept by Pawl, whatever becomes of the run's own folder."""
    CORRUPT = "corrupt"
    """Said to be whole, and is not, or can't be read."""
    VANISHED = "vanished"
    """Seen, and gone before it was pinned."""
    ABANDONED = "abandoned"
    """Still not whole, nothing happens in it, and a newer one is complete."""
    EVALUATED = "evaluated"
    """Pawl is done with it."""
    FAILED = "failed"
    """It could not be evaluated, however often that was tried."""


OURS = frozenset({SightingState.PINNED, SightingState.EVALUATED, SightingState.FAILED})
"""What Pawl itself did with a checkpoint: no look at the run's folder changes it any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A checkpoint of a run as last seen on disk."""

    run: str
    step: int
    path: str
    """Folder it was seen in."""
    state: SightingState
    detail: str | None = None
    """What was seen, for a person; None: nothing to add."""
    changed_at: str
    """When path, state or detail last changed, UTC, ISO 8601."""

    @property
    def name(self) -> str:
        """Return ``RUN@STEP``."""
        return f"{self.run}@{self.step}"

    def same_as(self, other: Sighting | None) -> bool:
        """Return whether both say the same of the same checkpoint, whenever they say it."""
        return other is not None and replace(other, changed_at=self.changed_at) == self

    def turned(self, state: SightingState, detail: str | None) -> Sighting:
        """Return the sighting in this state from now on; itself where it says so already."""
        turned = replace(self, state=state, detail=detail, changed_at=utc_now())
        return self if turned.same_as(self) else turned

    def failed(self, why: str) -> Sighting:
        """Return the sighting of a checkpoint that could not be evaluated."""
        return self.turned(SightingState.FAILED, why)


def load_sightings(
    lake: Lake, run: str | None = None, *, snapshot: int | None = None
) -> tuple[Sighting, ...]:
    """Return all sightings, or one run's, by run and step."""
    where, parameters = ("true", []) if run is None else ("run = ?", [encode_text(run)])
    found = lake.rows(
        f"SELECT {_COLUMNS} FROM {source(SIGHTINGS, snapshot)} WHERE {where} ORDER BY run, step",
        parameters,
    )
    return tuple(_sighting(row) for row in found)


def put_sightings(lake: Lake, sightings: Iterable[Sighting], *, unpinned: bool = False) -> int:
    """Return how many rows were written: those that say something else than what is stored.

    What is stored of a checkpoint that was pinned, evaluated or failed stays, whatever a look
    says that began before: only another of these three states replaces it.

    Args:
        lake: The lake.
        sightings: One for each checkpoint, as ``look`` returns them.
        unpinned: Replace these three states by any other too: no pin stands behind them.
    """
    told = {(each.run, each.step): each for each in sightings}
    if not _changed(told, _by_key(load_sightings(lake)), unpinned):
        return 0

    def write(tx: Transaction) -> int:
        stored = _by_key(map(_sighting, tx.rows(f"SELECT {_COLUMNS} FROM lake.sightings")))
        changed = _changed(told, stored, unpinned)
        new = [_row(each) for each in changed if (each.run, each.step) not in stored]
        tx.guard(SIGHTINGS)
        for each in changed:
            if (each.run, each.step) in stored:
                _replace(tx, each)
        tx.insert_missing(SIGHTINGS, pa.Table.from_pylist(new, schema=SIGHTINGS.schema))
        return len(changed)

    return transaction(lake, write)


def _changed(
    told: Mapping[Key, Sighting], stored: Mapping[Key, Sighting], unpinned: bool
) -> list[Sighting]:
    """Return what is to be written."""
    changed = []
    for key, each in told.items():
        before = stored.get(key)
        kept = before is not None and before.state in OURS and each.state not in OURS
        if not each.same_as(before) and (unpinned or not kept):
            changed.append(each)
    return changed


def _replace(tx: Transaction, sighting: Sighting) -> None:
    row = _row(sighting)
    columns = ("path", "state", "detail", "changed_at", "run", "step")
    tx.change(
        "UPDATE lake.sightings SET path = ?, state = ?, detail = ?, changed_at = ? "
        "WHERE run = ? AND step = ?",
        [row[name] for name in columns],
    )


def _by_key(sightings: Iterable[Sighting]) -> dict[Key, Sighting]:
    return {(each.run, each.step): each for each in sightings}


def _row(sighting: Sighting) -> dict[str, Any]:
    return {
        "run": encode_text(sighting.run),
        "step": sighting.step,
        "path": encode_text(sighting.path),
        "state": sighting.state.value,
        "detail": encode_text(sighting.detail),
        "changed_at": sighting.changed_at,
    }


def _sighting(row: Row) -> Sighting:
    run, step, path, state, detail, changed_at = row
    return Sighting(
        run=decode_text(run),
        step=step,
        path=decode_text(path),
        state=SightingState(state),
        detail=decode_text(detail),
        changed_at=changed_at,
    )
