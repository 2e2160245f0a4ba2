"""One item of an evaluation: the question, and all that became of its answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from evals.evaluation import Evaluation
from evals.response import Response
from evals.scoring import Outcome, Score
from evals.task import Item
from storage.connection import Lake, source
from storage.responses import response_of
from storage.tables import ITEMS, REQUESTS, RESPONSES, SCORES
from storage.text import decode_json, decode_text, encode_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One repeat of an item's request."""

    repeat: int
    max_tokens: int
    """Budget of the answer."""
    response: Response | None
    """None: owed, or not yet moved from the spool into the lake."""
    score: Score | None
    """None: not yet scored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedItem:
    """An item with its answers."""

    item: Item
    answers: tuple[Answer, ...]
    """By repeat; empty where the evaluation did not ask the item."""


def load_asked_item(
    lake: Lake, evaluation: Evaluation, task: str, item_id: str, *, snapshot: int | None = None
) -> AskedItem | None:
    """Return an item with its answers; None where the evaluation's task has no such item."""
    version = next((spec.version for spec in evaluation.tasks if spec.name == task), None)
    if version is None:
        return None
    found = lake.rows(
        f"SELECT doc, target, cluster, stratum FROM {source(ITEMS, snapshot)} "
        "WHERE task = ? AND task_version = ? AND item_id = ?",
        [encode_text(task), encode_text(version), item_id],
    )
    if not found:
        return None
    doc, target, cluster, stratum = found[0]
    item = Item(
        item_id=item_id,
        doc=decode_json(doc),
        target=decode_text(target),
        cluster=decode_text(cluster),
        stratum=decode_text(stratum),
    )
    answers = _load_answers(lake, evaluation.evaluation_id, task, item_id, snapshot)
    return AskedItem(item=item, answers=answers)


def load_docs(
    lake: Lake, evaluation: Evaluation, item_ids: Iterable[str], *, snapshot: int | None = None
) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the documents of some items of an evaluation's tasks, by task and item id."""
    found = lake.rows(
        f"""
        WITH versions AS (SELECT unnest(?::VARCHAR[]) AS task, unnest(?::VARCHAR[]) AS task_version)
        SELECT task, item_id, doc FROM {source(ITEMS, snapshot)}
        SEMI JOIN versions USING (task, task_version)
        WHERE item_id IN (SELECT unnest(?::VARCHAR[]))
        """,
        [
            [encode_text(spec.name) for spec in evaluation.tasks],
            [encode_text(spec.version) for spec in evaluation.tasks],
            list(item_ids),
        ],
    )
    return {(decode_text(task), item_id): decode_json(doc) for task, item_id, doc in found}


def _load_answers(
    lake: Lake, evaluation_id: str, task: str, item_id: str, snapshot: int | None
) -> tuple[Answer, ...]:
    asked = lake.rows(
        f"SELECT request_id, unnest(repeats) AS repeat, max_tokens "
        f"FROM {source(REQUESTS, snapshot)} "
        "WHERE evaluation_id = ? AND task = ? AND item_id = ? ORDER BY repeat",
        [evaluation_id, encode_text(task), item_id],
    )
    responses = _load_responses(lake, evaluation_id, sorted({row[0] for row in asked}), snapshot)
    scores = _load_scores(lake, evaluation_id, task, item_id, snapshot)
    return tuple(
        Answer(
            repeat=repeat,
            max_tokens=max_tokens,
            response=responses.get((request_id, repeat)),
            score=scores.get(repeat),
        )
        for request_id, repeat, max_tokens in asked
    )


def _load_responses(
    lake: Lake, evaluation_id: str, request_ids: list[str], snapshot: int | None
) -> dict[tuple[str, int], Response]:
    rows = lake.rows(
        "SELECT request_id, repeat, text, token_ids, finish_reason, prompt_tokens, "
        f"output_tokens, error, log_likelihoods FROM {source(RESPONSES, snapshot)} "
        "WHERE evaluation_id = ? AND list_contains(?::VARCHAR[], request_id)",
        [evaluation_id, request_ids],
    )
    found = [response_of(row) for row in rows]
    return {(response.request_id, response.repeat): response for response in found}


def _load_scores(
    lake: Lake, evaluation_id: str, task: str, item_id: str, snapshot: int | None
) -> dict[int, Score]:
    """Return the item's scores of the task's latest scoring, by repeat."""
    rows = lake.rows(
        f"""
        SELECT repeat, metric, outcome, value, answer, detail
        FROM {source(SCORES, snapshot)}
        WHERE evaluation_id = ? AND task = ? AND item_id = ? AND scoring = (
            SELECT max(scoring) FROM {source(SCORES, snapshot)}
            WHERE evaluation_id = ? AND task = ?
        )
        """,
        [evaluation_id, encode_text(task), item_id, evaluation_id, encode_text(task)],
    )
    return {
        repeat: Score(
            task=task,
            item_id=item_id,
            repeat=repeat,
            metric=decode_text(metric),
            outcome=Outcome(outcome),
            value=value,
            answer=decode_text(answer),
            detail=decode_text(detail),
        )
        for repeat, metric, outcome, value, answer, detail in rows
    }
