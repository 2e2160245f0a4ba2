"""What an evaluation says of its checkpoint, task by task and by capability, for tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evals.evaluation import Evaluation
from evals.scoring import Outcome, Score
from evals.stats.single_run import mean_interval
from evals.task import Capability, Item


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSummary:
    """One task's mean score with its interval, and what became of its items."""

    task: str
    capability: Capability
    metric: str
    n: int
    """Items with a score; errored and missing ones are not among them."""
    value: float | None
    """Mean over items of the mean over repeats; None where no item has a score."""
    low: float | None
    high: float | None
    level: float
    outcomes: Mapping[Outcome, int]
    """Responses by outcome; ``missing`` counts those that were planned and never came."""


def summarize(
    evaluation: Evaluation,
    scores: Iterable[Score],
    items: Mapping[str, Sequence[Item]],
    repeats: Mapping[str, int],
    level: float = 0.95,
) -> tuple[TaskSummary, ...]:
    """Return a summary for each task of the evaluation, in its order.

    Args:
        evaluation: What was asked.
        scores: In any order.
        items: By task name, what was planned; items that share content carry a cluster.
        repeats: By task name, planned repeats of each item.
        level: Of the intervals, two-sided.
    """
    by_task: dict[str, list[Score]] = {spec.name: [] for spec in evaluation.tasks}
    for score in scores:
        by_task[score.task].append(score)
    summaries = []
    for spec in evaluation.tasks:
        found = by_task[spec.name]
        planned = items.get(spec.name, ())
        outcomes = dict.fromkeys(Outcome, 0)
        for score in found:
            outcomes[score.outcome] += 1
        owed = len(planned) * repeats.get(spec.name, 1) - len(found)
        outcomes[Outcome.MISSING] += max(0, owed)
        values = item_means(found)
        clusters = cluster_codes(values, planned)
        interval = None
        if values:
            interval = mean_interval(
                np.array(list(values.values())),
                binary=spec.binary and repeats.get(spec.name, 1) == 1,
                clusters=clusters,
                level=level,
            )
        summaries.append(
            TaskSummary(
                task=spec.name,
                capability=spec.capability,
                metric=spec.metric_key,
                n=len(values),
                value=interval.value if interval else None,
                low=interval.low if interval else None,
                high=interval.high if interval else None,
                level=level,
                outcomes=outcomes,
            )
        )
    return tuple(summaries)


def item_means(scores: Iterable[Score]) -> dict[str, float]:
    """Return each item's mean over the repeats that have a score, by item id in id order."""
    values: dict[str, list[float]] = {}
    for score in scores:
        if score.value is not None:
            values.setdefault(score.item_id, []).append(score.value)
    return {key: sum(found) / len(found) for key, found in sorted(values.items())}


def cluster_codes(
    values: Mapping[str, float], planned: Sequence[Item]
) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
    """Return a number for each item's cluster, or None where no two items share one."""
    named = {item.item_id: item.cluster for item in planned if item.cluster is not None}
    labels = [named.get(key, key) for key in values]
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    if len(numbers) == len(labels):
        return None
    return np.array([numbers[label] for label in labels], dtype=np.int64)
