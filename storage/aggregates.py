"""What pages need of many evaluations at once, summed up inside the lake.

A page that shows every checkpoint can't read every score: the lake counts equal scores, and what
comes back is as small as the number of distinct ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from evals.evaluation import Evaluation
from storage.connection import Lake, source
from storage.tables import DECISIONS, ITEMS, REQUESTS, SCORES
from storage.text import decode_text, encode_text

_HEAD = ("candidate_digest", "candidate_evaluation", "baseline_evaluation", "policy")
"""What a decision's document has beside the table's columns and a list of decisions shows."""

_ASKED = """
    asked AS (
        SELECT unnest(?::VARCHAR[]) AS evaluation_id, unnest(?::VARCHAR[]) AS task,
            unnest(?::VARCHAR[]) AS version, unnest(?::VARCHAR[]) AS metric
    )
"""
"""One row for each task of each evaluation; ``_asked`` gives the parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionHead:
    """A decision without its evidence."""

    decision: str
    verdict: str
    """PASS, FAIL or INCONCLUSIVE."""
    candidate: str
    """``RUN@STEP``."""
    baseline: str
    """``RUN@STEP``, or empty for a first promotion."""
    at: str
    """UTC, ISO 8601."""
    candidate_digest: str
    candidate_evaluation: str
    baseline_evaluation: str
    """Empty for a first promotion."""
    policy: str
    """``name@version``."""


def load_decision_heads(lake: Lake, *, snapshot: int | None = None) -> tuple[DecisionHead, ...]:
    """Return all decisions, oldest first, without reading their evidence."""
    extracted = ", ".join(
        f"coalesce(json_extract_string(document, '$.{name}'), '')" for name in _HEAD
    )
    found = lake.rows(
        f"SELECT decision, verdict, candidate, baseline, recorded_at, {extracted} "
        f"FROM {source(DECISIONS, snapshot)} ORDER BY recorded_at, decision"
    )
    return tuple(
        DecisionHead(
            decision=decision,
            verdict=verdict,
            candidate=decode_text(candidate),
            baseline=decode_text(baseline),
            at=at,
            candidate_digest=digest,
            candidate_evaluation=ours,
            baseline_evaluation=theirs,
            policy=decode_text(policy),
        )
        for decision, verdict, candidate, baseline, at, digest, ours, theirs, policy in found
    )


def load_score_counts(
    lake: Lake, evaluations: Sequence[Evaluation], *, snapshot: int | None = None
) -> pa.Table:
    """Return how many items of each task have which score, under its latest scoring.

    Scores are counted before anything is joined to them. Only tasks with repeats, or with items
    that share content, need to be told apart by item first.

    Returns:
        ``evaluation_id``, ``task`` (as stored), ``cluster`` (null: the item stands alone),
        ``value`` (the item's mean over the repeats that have a score) and ``items``.
    """
    return lake.table(
        f"""
        WITH {_ASKED},
        {_latest("value, max(repeat) AS repeat, count(*) AS items", snapshot)},
        shared AS (
            SELECT task, task_version AS version, item_id, cluster
            FROM {source(ITEMS, snapshot)} WHERE cluster IS NOT NULL
        ),
        by_item AS (
            SELECT evaluation_id, task, metric, version, scoring FROM latest
            GROUP BY ALL
            HAVING max(repeat) > 0 OR (task, version) IN (SELECT (task, version) FROM shared)
        ),
        means AS (
            SELECT evaluation_id, task, version, item_id, avg(value) AS value
            FROM {source(SCORES, snapshot)} JOIN by_item
                USING (evaluation_id, task, metric, scoring)
            WHERE value IS NOT NULL GROUP BY ALL
        )
        SELECT evaluation_id, task, NULL AS cluster, value, sum(items)::BIGINT AS items
        FROM latest ANTI JOIN by_item USING (evaluation_id, task)
        WHERE value IS NOT NULL GROUP BY ALL
        UNION ALL
        SELECT evaluation_id, task, cluster, value, count(*) AS items
        FROM means LEFT JOIN shared USING (task, version, item_id)
        GROUP BY ALL
        ORDER BY ALL
        """,
        _asked(evaluations),
    )


def load_outcome_counts(
    lake: Lake, evaluations: Sequence[Evaluation], *, snapshot: int | None = None
) -> pa.Table:
    """Return how many responses of each task have which outcome, under its latest scoring.

    Returns:
        ``evaluation_id``, ``task`` (as stored), ``outcome`` and ``responses``.
    """
    return lake.table(
        f"""
        WITH {_ASKED}, {_latest("outcome, count(*) AS responses", snapshot)}
        SELECT evaluation_id, task, outcome, sum(responses)::BIGINT AS responses
        FROM latest GROUP BY ALL ORDER BY ALL
        """,
        _asked(evaluations),
    )


def load_planned_counts(
    lake: Lake, evaluations: Sequence[Evaluation], *, snapshot: int | None = None
) -> pa.Table:
    """Return what was planned of each task.

    Returns:
        ``evaluation_id``, ``task`` (as stored), ``responses`` (planned) and ``repeats`` (the most
        of one request).
    """
    return lake.table(
        f"""
        SELECT evaluation_id, task, sum(len(repeats))::BIGINT AS responses,
            max(len(repeats))::BIGINT AS repeats
        FROM {source(REQUESTS, snapshot)}
        WHERE evaluation_id IN (SELECT unnest(?::VARCHAR[]))
        GROUP BY ALL ORDER BY ALL
        """,
        [[evaluation.evaluation_id for evaluation in evaluations]],
    )


def _latest(counted: str, snapshot: int | None) -> str:
    """Return the common tables that hold what is counted of each task's latest scoring."""
    return f"""
        counted AS (
            SELECT evaluation_id, task, metric, scoring, {counted}
            FROM {source(SCORES, snapshot)}
            WHERE evaluation_id IN (SELECT evaluation_id FROM asked)
            GROUP BY ALL
        ),
        latest AS (
            SELECT * FROM counted JOIN asked USING (evaluation_id, task, metric)
            QUALIFY scoring = max(scoring) OVER (PARTITION BY evaluation_id, task)
        )
    """


def _asked(evaluations: Sequence[Evaluation]) -> list[list[str]]:
    asked = [
        (
            evaluation.evaluation_id,
            encode_text(spec.name),
            encode_text(spec.version),
            encode_text(spec.metric_key),
        )
        for evaluation in evaluations
        for spec in evaluation.tasks
    ]
    return [[row[column] for row in asked] for column in range(4)]
