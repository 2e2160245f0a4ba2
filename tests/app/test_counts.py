"""What the lake counts for a page is what the core computes from the scores one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from small_lake import (
    ATTACKS,
    FIRST,
    TRANSLATION,
    Made,
    evaluation_of,
    make_item,
    make_request,
    open_project,
    put,
)

from app.frames import index_counts, task_scores
from evals.scoring import Outcome, Score
from evals.summary import summarize
from storage.aggregates import load_outcome_counts, load_planned_counts, load_score_counts
from storage.answers import load_asked_item
from storage.connection import open_lake
from storage.evaluations import StoredEvaluation
from storage.project import find_project
from storage.store import LakeStore


@pytest.fixture
def store(small: Path) -> Iterator[LakeStore]:
    project = find_project(small)
    with open_lake(project.lake, read_only=True) as lake:
        yield LakeStore(lake, project.state)


def counted(
    store: LakeStore, stored: StoredEvaluation, snapshot: int | None = None
) -> pd.DataFrame:
    asked = [stored.evaluation]
    counts = index_counts(
        load_score_counts(store.lake, asked, snapshot=snapshot),
        load_outcome_counts(store.lake, asked, snapshot=snapshot),
        load_planned_counts(store.lake, asked, snapshot=snapshot),
    )
    return task_scores(stored, counts)


def summarized(store: LakeStore, stored: StoredEvaluation) -> pd.DataFrame:
    one = stored.evaluation
    items = {spec.name: store.items(one, spec.name) for spec in one.tasks}
    repeats = {r.task: len(r.repeats) for r in store.requests(one.evaluation_id)}
    rows = summarize(one, store.scores(one.evaluation_id), items, repeats)
    return pd.DataFrame(
        [
            {
                "task": row.task,
                "n": row.n,
                "value": row.value,
                "low": row.low,
                "high": row.high,
                **{outcome.value: row.outcomes[outcome] for outcome in Outcome},
            }
            for row in rows
        ]
    )


def assert_alike(store: LakeStore, stored: StoredEvaluation) -> None:
    expected = summarized(store, stored)
    pd.testing.assert_frame_equal(counted(store, stored)[expected.columns], expected)


def test_all_evaluations_are_counted_as_the_core_sums_them_up(store: LakeStore) -> None:
    for stored in store.find_evaluations():
        assert_alike(store, stored)
        assert_frame_equal_at_a_snapshot(store, stored)


def assert_frame_equal_at_a_snapshot(store: LakeStore, stored: StoredEvaluation) -> None:
    now = counted(store, stored)
    pd.testing.assert_frame_equal(counted(store, stored, store.snapshot()), now)


@pytest.fixture
def repeated(tmp_path: Path) -> Iterator[LakeStore]:
    """Return a lake whose evaluation asks some items twice and was scored twice."""
    with open_project(tmp_path) as (_, store):
        put(store, Made(step=1, skill=0.5, answered=0))
        evaluation = replace(evaluation_of(FIRST), tasks=(TRANSLATION, ATTACKS))
        items = {spec.name: [make_item(spec, k) for k in range(9)] for spec in evaluation.tasks}
        requests = [
            replace(make_request(spec, item), repeats=(0, 1))
            for spec in evaluation.tasks
            for item in items[spec.name]
        ]
        store.put_evaluation(evaluation)
        store.put_plan(evaluation, items, requests)
        for version, shift in (("old", 0.5), ("new", 0.0)):
            scores = [
                Score(
                    task=request.task,
                    item_id=request.item_id,
                    repeat=repeat,
                    metric=next(s for s in evaluation.tasks if s.name == request.task).metric_key,
                    outcome=Outcome.SCORED if number % 4 or repeat else Outcome.ERRORED,
                    value=(number % 3 + repeat) / 8 + shift if number % 4 or repeat else None,
                )
                for number, request in enumerate(requests)
                for repeat in (0, 1)
            ]
            store.put_scores(evaluation.evaluation_id, version, scores)
        yield store


def test_repeats_are_averaged_and_the_latest_scoring_counts(repeated: LakeStore) -> None:
    stored = repeated.load_evaluation(FIRST.evaluation_id)
    assert_alike(repeated, stored)
    assert counted(repeated, stored)["value"].max() < 0.5


def test_an_item_has_an_answer_for_each_repeat(repeated: LakeStore) -> None:
    evaluation = repeated.load_evaluation(FIRST.evaluation_id).evaluation
    item = make_item(TRANSLATION, 0)
    found = load_asked_item(repeated.lake, evaluation, TRANSLATION.name, item.item_id)
    assert found is not None
    assert found.item == item
    assert [one.repeat for one in found.answers] == [0, 1]
    assert [one.score.value if one.score else -1 for one in found.answers] == [None, 0.125]
    assert [one.response for one in found.answers] == [None, None]
    assert load_asked_item(repeated.lake, evaluation, TRANSLATION.name, "gone") is None
    assert load_asked_item(repeated.lake, evaluation, "gone", item.item_id) is None
