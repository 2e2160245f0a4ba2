"""Scores: each of them once per scorer version; readers get a task's latest scoring."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from evals.scoring import Outcome, Score
from storage.connection import Lake, Transaction, source, transaction
from storage.tables import SCORES
from storage.text import decode_text, encode_text


def put_scores(lake: Lake, evaluation_id: str, scorer_version: str, scores: Iterable[Score]) -> int:
    """Return how many scores were not stored; what is stored stays as it is.

    A version that the evaluation has no scores of becomes its latest scoring. Readers take it
    for a task as soon as it has one score there, so give a task's rescored items in one call.
    """
    first: dict[tuple[str, str, int, str], Score] = {}
    for score in scores:
        first.setdefault((score.task, score.item_id, score.repeat, score.metric), score)
    if not first:
        return 0
    rows = _rows(evaluation_id, encode_text(scorer_version), tuple(first.values()))
    ordinal = SCORES.schema.field("scoring")

    def write(tx: Transaction) -> int:
        scoring = tx.rows(
            "SELECT coalesce(min(scoring) FILTER (scorer_version = ?), max(scoring) + 1, 0) "
            "FROM lake.scores WHERE evaluation_id = ?",
            [encode_text(scorer_version), evaluation_id],
        )[0][0]
        numbered = rows.append_column(ordinal, pa.repeat(pa.scalar(scoring, pa.int32()), len(rows)))
        return tx.insert_missing(SCORES, numbered)

    return transaction(lake, write)


def load_scores(
    lake: Lake,
    evaluation_id: str,
    *,
    task: str | None = None,
    scorer_version: str | None = None,
    snapshot: int | None = None,
) -> tuple[Score, ...]:
    """Return scores by task, item and repeat, as ``load_score_table`` picks them."""
    found = load_score_table(
        lake, evaluation_id, task=task, scorer_version=scorer_version, snapshot=snapshot
    )
    outcomes = {outcome.value: outcome for outcome in Outcome}
    names = ("task", "item_id", "repeat", "metric", "outcome", "value", "answer", "detail")
    return tuple(
        Score(
            task=decode_text(task_name),
            item_id=item_id,
            repeat=repeat,
            metric=decode_text(metric),
            outcome=outcomes[outcome],
            value=value,
            answer=decode_text(answer),
            detail=decode_text(detail),
        )
        for task_name, item_id, repeat, metric, outcome, value, answer, detail in zip(
            *(found.column(name).to_pylist() for name in names), strict=True
        )
    )


def load_score_table(
    lake: Lake,
    evaluation_id: str,
    *,
    task: str | None = None,
    scorer_version: str | None = None,
    snapshot: int | None = None,
) -> pa.Table:
    """Return scores by task, item and repeat as a table of ``SCORES``.

    Args:
        lake: The lake.
        evaluation_id: The evaluation.
        task: One task only.
        scorer_version: One scoring only; None: each task's latest.
        snapshot: The lake as it was then.
    """
    wanted = {
        "evaluation_id": evaluation_id,
        "task": encode_text(task),
        "scorer_version": encode_text(scorer_version),
    }
    given = {name: value for name, value in wanted.items() if value is not None}
    latest = (
        "QUALIFY scoring = max(scoring) OVER (PARTITION BY task)" if scorer_version is None else ""
    )
    return lake.table(
        f"SELECT * FROM {source(SCORES, snapshot)} "
        f"WHERE {' AND '.join(f'{name} = ?' for name in given)} {latest} "
        "ORDER BY task, item_id, repeat, metric",
        list(given.values()),
    )


def _rows(evaluation_id: str, scorer_version: str, scores: tuple[Score, ...]) -> pa.Table:
    """Return all columns but ``scoring``, which only the transaction knows."""
    columns = {
        "evaluation_id": [evaluation_id] * len(scores),
        "task": [encode_text(score.task) for score in scores],
        "item_id": [score.item_id for score in scores],
        "repeat": [score.repeat for score in scores],
        "metric": [encode_text(score.metric) for score in scores],
        "outcome": [score.outcome.value for score in scores],
        "value": [score.value for score in scores],
        "answer": [encode_text(score.answer) for score in scores],
        "detail": [encode_text(score.detail) for score in scores],
        "scorer_version": [scorer_version] * len(scores),
    }
    return pa.table(columns, schema=pa.schema(list(SCORES.schema)[:-1]))
