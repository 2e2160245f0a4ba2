"""Reads over storage, each kept until the lake has another snapshot.

A read ends its transaction before it returns, so no page holds one open while somebody looks at
it. What a page shows is the lake at one snapshot.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import pandas as pd
import streamlit as st

from app.frames import TaskCounts, TaskKey, changed_items, index_counts
from app.series import Window, line_table, window_of
from evals.compare import Difference, TaskComparison, compare_capabilities, compare_task
from evals.errors import LakeError
from evals.evaluation import EvaluationState
from evals.telemetry import Change, rank_series
from storage.aggregates import (
    DecisionHead,
    load_decision_heads,
    load_outcome_counts,
    load_planned_counts,
    load_score_counts,
)
from storage.answers import AskedItem, load_asked_item, load_docs
from storage.checkpoints import StoredCheckpoint
from storage.connection import open_lake
from storage.decisions import StoredDecision
from storage.evaluations import StoredEvaluation
from storage.ledger import LedgerEntry, LedgerReport
from storage.naming import load_named
from storage.pairing import Sides, find_sides, pair
from storage.project import Project
from storage.runs import StoredRun
from storage.store import LakeStore
from storage.telemetry import (
    SeriesSummary,
    load_series,
    load_series_summaries,
    load_telemetry_runs,
    load_thinned,
)

P = ParamSpec("P")
R = TypeVar("R")

KEPT = 32
"""Results of each read that are kept."""

SHOWN_ITEMS = 1000
"""Changed items whose questions are read for a list."""

DRAWN_STEPS = 300
"""Places along a panel's axis; of more steps than that a chart keeps the extremes."""

FRESH_S = 3
"""How long the number of answers of a running evaluation is taken as known, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """The lake as it is now."""

    store: LakeStore
    lake: str
    """Which lake: two never share a kept result."""
    snapshot: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """What there is, without scores."""

    checkpoints: tuple[StoredCheckpoint, ...]
    evaluations: tuple[StoredEvaluation, ...]
    """Oldest first."""
    decisions: tuple[DecisionHead, ...]
    """Oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two evaluations, and what is not the same on both sides."""

    sides: Sides
    tasks: tuple[TaskComparison, ...]
    capabilities: tuple[TaskComparison, ...]
    differences: tuple[Difference, ...]
    only_candidate: tuple[str, ...]
    """Tasks that the baseline lacks."""
    only_baseline: tuple[str, ...]
    changed: pd.DataFrame
    """Of ``frames.changed_items``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemOnBothSides:
    """One item with its answers; None where a side does not ask it."""

    task: str
    item_id: str
    baseline: AskedItem | None
    candidate: AskedItem | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerState:
    """The ledger's entries, and whether it is what was written."""

    report: LedgerReport
    entries: tuple[LedgerEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """What moved in training in a window of a run's steps."""

    window: Window
    changes: tuple[Change, ...]
    """The largest first; none where the run has no telemetry."""


class _OpenLake:
    """A lake that stays open between pages: attaching it takes longer than reading."""

    def __init__(self, project: Project) -> None:
        self.key = uuid.uuid4().hex
        self._closing = ExitStack()
        self._catalog = Path(project.lake.catalog)
        self._file = None if project.lake.shared else self._catalog.stat().st_ino
        lake = self._closing.enter_context(open_lake(project.lake, read_only=True))
        self.store = LakeStore(lake, project.state)

    def is_current(self) -> bool:
        """Return whether the catalogue's file is still the one that was opened."""
        if self._file is None:
            return True
        try:
            return self._catalog.stat().st_ino == self._file
        except OSError:
            return False

    def close(self) -> None:
        """Let go of the catalogue."""
        self._closing.close()


def open_reader(project: Project) -> Reader:
    """Return the lake as it is now.

    Raises:
        LakeError: It is missing, damaged or newer than this Pawl, or can't be reached.
    """
    if not project.lake.shared and not Path(project.lake.catalog).exists():
        raise LakeError(
            "the catalogue is gone, while its data are there",
            project.lake.name,
            "restore the catalogue from a backup",
        )
    opened = _open(project.lake.catalog, str(project.lake.data_path), project)
    return Reader(
        store=opened.store,
        lake=opened.key,
        snapshot=opened.store.snapshot(),
    )


def load_catalog(reader: Reader) -> Catalog:
    """Return what there is."""
    return _catalog(reader.lake, reader.snapshot, reader.store)


def load_counts(
    reader: Reader, evaluations: Sequence[StoredEvaluation]
) -> dict[TaskKey, TaskCounts]:
    """Return how many items have which score and outcome, by evaluation and task."""
    ids = tuple(stored.evaluation.evaluation_id for stored in evaluations)
    return _counts(reader.lake, reader.snapshot, ids, evaluations, reader.store)


def load_progress(reader: Reader, evaluations: Sequence[StoredEvaluation]) -> dict[str, int]:
    """Return the responses there are of each evaluation that is running, spooled ones too."""
    return {
        stored.evaluation.evaluation_id: _responses(
            reader.lake, stored.evaluation.evaluation_id, reader.store
        )
        for stored in evaluations
        if stored.evaluation.state is EvaluationState.RUNNING
    }


def find_pair(reader: Reader, candidate: str, baseline: str, suite: str | None) -> Sides:
    """Return the evaluations of two checkpoints, by name, that are best compared.

    Raises:
        InputError: A name is unknown, or they were never evaluated on the same suite.
    """
    ours, theirs = load_named(candidate, reader.store), load_named(baseline, reader.store)
    return find_sides(ours, theirs, suite, reader.store)


def load_comparison(reader: Reader, sides: Sides) -> Comparison:
    """Return what changed between two evaluations.

    Raises:
        ComparisonRefused: Metric or prompt of a task differs.
    """
    states = (sides.candidate.state.value, sides.baseline.state.value)
    ids = (sides.candidate.evaluation_id, sides.baseline.evaluation_id)
    return _comparison(reader.lake, reader.snapshot, (*ids, *states), sides, reader.store)


def load_questions(
    reader: Reader, sides: Sides, changed: pd.DataFrame
) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Return the documents of the first changed items, by task and item id."""
    ids = tuple(changed["item"].head(SHOWN_ITEMS))
    both = (sides.candidate.evaluation_id, sides.baseline.evaluation_id)
    return _questions(reader.lake, reader.snapshot, both, ids, sides, reader.store)


def load_item(reader: Reader, sides: Sides, task: str, item_id: str) -> ItemOnBothSides:
    """Return one item with both sides' answers."""
    baseline, candidate = (
        load_asked_item(reader.store.lake, side, task, item_id, snapshot=reader.snapshot)
        for side in (sides.baseline, sides.candidate)
    )
    return ItemOnBothSides(task=task, item_id=item_id, baseline=baseline, candidate=candidate)


def load_decision(reader: Reader, decision: str) -> StoredDecision:
    """Return one decision with its evidence.

    Raises:
        LakeError: There is none of that id.
    """
    return reader.store.load_decision(decision, snapshot=reader.snapshot)


def load_telemetry_names(reader: Reader) -> tuple[str, ...]:
    """Return the runs that have telemetry."""
    return _telemetry_names(reader.lake, reader.snapshot, reader.store)


def find_run(reader: Reader, run: str) -> StoredRun | None:
    """Return a run as it was registered; None where it was not."""
    runs = _runs(reader.lake, reader.snapshot, reader.store)
    return next((one for one in runs if one.run == run), None)


def load_summaries(reader: Reader, run: str) -> tuple[SeriesSummary, ...]:
    """Return each series of a run in numbers."""
    return _summaries(reader.lake, reader.snapshot, run, reader.store)


def load_lines(reader: Reader, run: str, series: Sequence[str]) -> pd.DataFrame:
    """Return what a chart needs of some series, thinned in the lake; of ``series.line_table``."""
    return _lines(reader.lake, reader.snapshot, run, tuple(series), reader.store)


def load_moved(reader: Reader, catalog: Catalog, stored: StoredDecision) -> Moved | None:
    """Return what moved in training before a decision's candidate; None where nothing failed."""
    window = window_of(stored.decision.document, catalog.checkpoints)
    if window is None:
        return None
    return Moved(
        window=window, changes=_changes(reader.lake, reader.snapshot, window, reader.store)
    )


def load_ledger(reader: Reader) -> LedgerState:
    """Return the ledger, verified again whenever the lake or the head outside it has changed."""
    head = reader.store.head_file
    outside = head.read_bytes() if head.is_file() else b""
    return _ledger(reader.lake, reader.snapshot, outside, reader.store)


def _kept(read: Callable[P, R]) -> Callable[P, R]:
    """Return a read whose results are kept by its arguments, those with an underscore left out."""
    kept: Callable[P, R] = st.cache_data(read, show_spinner=False, max_entries=KEPT)
    return kept


def _opened(catalog: str, data: str, _project: Project) -> _OpenLake:
    return _OpenLake(_project)


_open: Callable[[str, str, Project], _OpenLake] = st.cache_resource(
    _opened,
    show_spinner="Opening the lake …",
    max_entries=4,
    validate=lambda opened: opened.is_current(),
    on_release=lambda opened: opened.close(),
)


@_kept
def _catalog(lake: str, snapshot: int, _store: LakeStore) -> Catalog:
    return Catalog(
        checkpoints=_store.checkpoints(snapshot=snapshot),
        evaluations=_store.find_evaluations(snapshot=snapshot),
        decisions=load_decision_heads(_store.lake, snapshot=snapshot),
    )


@_kept
def _counts(
    lake: str,
    snapshot: int,
    ids: tuple[str, ...],
    _evaluations: Sequence[StoredEvaluation],
    _store: LakeStore,
) -> dict[TaskKey, TaskCounts]:
    asked = [stored.evaluation for stored in _evaluations]
    return index_counts(
        load_score_counts(_store.lake, asked, snapshot=snapshot),
        load_outcome_counts(_store.lake, asked, snapshot=snapshot),
        load_planned_counts(_store.lake, asked, snapshot=snapshot),
    )


def _count_responses(lake: str, evaluation_id: str, _store: LakeStore) -> int:
    return len(_store.stored_keys(evaluation_id))


_responses: Callable[[str, str, LakeStore], int] = st.cache_data(
    _count_responses, show_spinner=False, ttl=FRESH_S
)


@_kept
def _comparison(
    lake: str, snapshot: int, ids: tuple[str, ...], _sides: Sides, _store: LakeStore
) -> Comparison:
    paired = pair(_sides, _store, snapshot)
    baseline, candidate = (
        _store.score_table(side.evaluation_id, snapshot=snapshot)
        for side in (_sides.baseline, _sides.candidate)
    )
    return Comparison(
        sides=_sides,
        tasks=tuple(compare_task(one) for one in paired.tasks),
        capabilities=compare_capabilities(paired.tasks),
        differences=paired.differences,
        only_candidate=tuple(sorted(paired.only_candidate)),
        only_baseline=tuple(spec.name for spec in paired.only_baseline),
        changed=changed_items(paired.tasks, baseline, candidate),
    )


@_kept
def _questions(
    lake: str,
    snapshot: int,
    evaluations: tuple[str, str],
    ids: tuple[str, ...],
    _sides: Sides,
    _store: LakeStore,
) -> dict[tuple[str, str], Mapping[str, Any]]:
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for side in (_sides.baseline, _sides.candidate):
        found.update(load_docs(_store.lake, side, ids, snapshot=snapshot))
    return found


@_kept
def _ledger(lake: str, snapshot: int, head_file: bytes, _store: LakeStore) -> LedgerState:
    return LedgerState(report=_store.verify_ledger(), entries=_store.ledger())


@_kept
def _telemetry_names(lake: str, snapshot: int, _store: LakeStore) -> tuple[str, ...]:
    return load_telemetry_runs(_store.lake, snapshot=snapshot)


@_kept
def _runs(lake: str, snapshot: int, _store: LakeStore) -> tuple[StoredRun, ...]:
    return _store.runs(snapshot=snapshot)


@_kept
def _summaries(lake: str, snapshot: int, run: str, _store: LakeStore) -> tuple[SeriesSummary, ...]:
    return load_series_summaries(_store.lake, run, snapshot=snapshot)


@_kept
def _lines(
    lake: str, snapshot: int, run: str, series: tuple[str, ...], _store: LakeStore
) -> pd.DataFrame:
    thinned = load_thinned(_store.lake, run, series, buckets=DRAWN_STEPS, snapshot=snapshot)
    return line_table(thinned)


@_kept
def _changes(lake: str, snapshot: int, window: Window, _store: LakeStore) -> tuple[Change, ...]:
    series = load_series(_store.lake, window.run, last_step=window.at_step, snapshot=snapshot)
    return rank_series(series, window.before_step, window.at_step)
