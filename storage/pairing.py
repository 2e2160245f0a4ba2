"""From two stored evaluations to one comparison: which two, and their scores item by item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evals.compare import PairedEvaluations, PlannedItem, Readings, pair_evaluations
from evals.errors import InputError
from evals.evaluation import Evaluation, EvaluationState
from storage.connection import source
from storage.naming import Named
from storage.store import LakeStore
from storage.tables import ITEMS, REQUESTS
from storage.text import decode_text, encode_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """The two evaluations of a comparison."""

    candidate: Evaluation
    baseline: Evaluation


def find_sides(candidate: Named, baseline: Named, suite: str | None, store: LakeStore) -> Sides:
    """Return the evaluations of both checkpoints that are best compared.

    Those that ask the same come first, then complete ones, then those under one engine, then the
    latest.

    Args:
        candidate: The checkpoint in question.
        baseline: What it is compared with; the same checkpoint where two A/A repeats are.
        suite: Name of the suite; None: whatever both were evaluated on.
        store: The lake.

    Raises:
        InputError: One was never evaluated (on that suite), or never on the same suite.
    """
    ours = evaluations_of(candidate, suite, store)
    theirs = evaluations_of(baseline, suite, store)
    pairs = [
        Sides(candidate=a, baseline=b)
        for a in ours
        for b in theirs
        if a.suite == b.suite and a.evaluation_id != b.evaluation_id
    ]
    if not pairs and candidate.digest == baseline.digest:
        raise InputError(
            f"{candidate.name} and {baseline.name} are the same weights, evaluated once",
            "lake",
            "run `pawl eval --again` for an A/A repeat",
        )
    if not pairs:
        raise InputError(
            f"{candidate.name} and {baseline.name} were never evaluated on the same suite",
            "lake",
            "run `pawl eval` on both with the same --suite or --tasks",
        )
    return max(pairs, key=lambda sides: rank(sides, ours, theirs))


def rank(
    sides: Sides, ours: Sequence[Evaluation], theirs: Sequence[Evaluation]
) -> tuple[bool, bool, bool, int, int]:
    """Return what makes one pair the better choice."""
    a, b = sides.candidate, sides.baseline
    complete = all(side.state is EvaluationState.COMPLETE for side in (a, b))
    asked_alike = a.suite_fingerprint == b.suite_fingerprint
    return asked_alike, complete, a.engine == b.engine, ours.index(a), theirs.index(b)


def evaluations_of(checkpoint: Named, suite: str | None, store: LakeStore) -> list[Evaluation]:
    """Return a checkpoint's evaluations, oldest first.

    Raises:
        InputError: There are none.
    """
    found = [
        stored.evaluation
        for stored in store.find_evaluations(checkpoint_digest=checkpoint.digest, suite=suite)
    ]
    if not found:
        on = f" on suite {suite}" if suite else ""
        raise InputError(
            f"{checkpoint.name} was not evaluated{on}",
            "lake",
            f"run `pawl eval {checkpoint.name}{f' --suite {suite}' if suite else ''}` first",
        )
    return found


def pair(
    sides: Sides, store: LakeStore, snapshot: int, readings: Readings | None = None
) -> PairedEvaluations:
    """Return both evaluations joined item by item, as the lake was at ``snapshot``.

    Raises:
        ComparisonRefused: Metric or prompt of a task differs.
    """
    return join(sides.candidate, sides.baseline, store, snapshot, readings)


def join(
    candidate: Evaluation,
    baseline: Evaluation | None,
    store: LakeStore,
    snapshot: int,
    readings: Readings | None = None,
) -> PairedEvaluations:
    """Return an evaluation joined with a baseline, or alone, as the lake was at ``snapshot``.

    Args:
        candidate: The evaluation in question.
        baseline: What it is compared with; None for a first promotion.
        store: The lake.
        snapshot: Of the lake.
        readings: How truncated and unparsed responses count; by default as the task says.

    Raises:
        ComparisonRefused: Metric or prompt of a task differs.
    """
    planned: dict[str, list[PlannedItem]] = {}
    repeats: dict[str, int] = {}
    for side in [candidate] if baseline is None else [baseline, candidate]:
        for task, item, asked in _planned(side, store, snapshot):
            planned.setdefault(task, []).append(item)
            repeats[task] = max(repeats.get(task, 1), asked)
    return pair_evaluations(
        candidate,
        baseline,
        candidate_scores=store.scores(candidate.evaluation_id, snapshot=snapshot),
        baseline_scores=(
            store.scores(baseline.evaluation_id, snapshot=snapshot) if baseline else ()
        ),
        planned=planned,
        readings=readings,
        repeats=repeats,
    )


def _planned(
    evaluation: Evaluation, store: LakeStore, snapshot: int
) -> list[tuple[str, PlannedItem, int]]:
    """Return task, item and number of repeats of all that an evaluation asks.

    Neither prompts nor documents are read: they are most of the bytes, and pairing needs none.
    """
    found = store.lake.table(
        f"""
        WITH versions AS (SELECT unnest(?::VARCHAR[]) AS task, unnest(?::VARCHAR[]) AS version)
        SELECT r.task, r.item_id, i.cluster, i.stratum, len(r.repeats) AS repeats
        FROM (FROM {source(REQUESTS, snapshot)}) AS r
        JOIN versions AS v ON v.task = r.task
        LEFT JOIN (FROM {source(ITEMS, snapshot)}) AS i
            ON i.task = r.task AND i.task_version = v.version AND i.item_id = r.item_id
        WHERE r.evaluation_id = ?
        """,
        [
            [encode_text(spec.name) for spec in evaluation.tasks],
            [encode_text(spec.version) for spec in evaluation.tasks],
            evaluation.evaluation_id,
        ],
    )
    return [
        (
            decode_text(task),
            PlannedItem(
                item_id=item_id, cluster=decode_text(cluster), stratum=decode_text(stratum)
            ),
            repeats,
        )
        for task, item_id, cluster, stratum, repeats in zip(
            *(column.to_pylist() for column in found.columns), strict=True
        )
    ]
