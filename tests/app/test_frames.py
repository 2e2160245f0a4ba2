from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from small_lake import ARITHMETIC, ATTACKS, FAILED, FIRST, OPEN, TRANSLATION, Made, evaluation_of

from app.frames import (
    TaskCounts,
    capability_scores,
    changed_items,
    chosen_items,
    decision_table,
    doc_fields,
    index_counts,
    latest_decisions,
    limit_table,
    overview_table,
    question_text,
    reason_lines,
    rule_reasons,
    rule_table,
    state_text,
    task_scores,
)
from evals.compare import PairedScores
from evals.evaluation import EvaluationState
from evals.gate import REASONS
from evals.scoring import Outcome
from evals.stats.single_run import mean_interval
from storage.aggregates import DecisionHead
from storage.checkpoints import CheckpointState, StoredCheckpoint
from storage.evaluations import StoredEvaluation
from storage.tables import SCORES


def stored(made: Made) -> StoredEvaluation:
    return StoredEvaluation(evaluation=evaluation_of(made), created_at="1", completed_at=None)


def counts(
    values: list[float],
    items: list[int],
    clusters: list[str | None] | None = None,
    repeats: int = 1,
    **outcomes: int,
) -> TaskCounts:
    return TaskCounts(
        values=np.array(values),
        items=np.array(items),
        clusters=tuple(clusters or [None] * len(values)),
        outcomes={one: outcomes.get(one.value, 0) for one in Outcome},
        planned=sum(items),
        repeats=repeats,
    )


def head(candidate: str, verdict: str, at: str, digest: str = "d") -> DecisionHead:
    return DecisionHead(
        decision=at,
        verdict=verdict,
        candidate=candidate,
        baseline="b@1",
        at=at,
        candidate_digest=digest,
        candidate_evaluation="e",
        baseline_evaluation="f",
        policy="p@1",
    )


def test_counts_are_indexed_and_what_is_planned_and_absent_is_missing() -> None:
    found = index_counts(
        pa.table(
            {
                "evaluation_id": ["e", "e"],
                "task": ["t", "t"],
                "cluster": [None, "c"],
                "value": [0.0, 1.0],
                "items": [3, 4],
            }
        ),
        pa.table({"evaluation_id": ["e"], "task": ["t"], "outcome": ["scored"], "responses": [7]}),
        pa.table(
            {
                "evaluation_id": ["e", "e"],
                "task": ["t", "u"],
                "responses": [9, 5],
                "repeats": [1, 1],
            }
        ),
    )
    assert found["e", "t"].clusters == (None, "c")
    assert found["e", "t"].outcomes[Outcome.SCORED] == 7
    assert found["e", "t"].outcomes[Outcome.MISSING] == 2
    assert found["e", "u"].outcomes[Outcome.MISSING] == 5
    assert len(found["e", "u"].values) == 0


def test_a_task_has_its_own_score_and_a_capability_its_goodness() -> None:
    one = stored(FIRST)
    known = {(FIRST.evaluation_id, ATTACKS.name): counts([0.0, 1.0], [90, 10], scored=100)}
    tasks = task_scores(one, known).set_index("task")
    assert tasks.loc[ATTACKS.name, "value"] == pytest.approx(0.1)
    assert tasks.loc[ATTACKS.name, "better"] == "lower"
    safety = capability_scores([one], known).set_index("capability").loc["safety"]
    assert safety["value"] == pytest.approx(0.9)
    expected = mean_interval(np.repeat([1.0, 0.0], [90, 10]), binary=True)
    assert (safety["low"], safety["high"]) == pytest.approx((expected.low, expected.high))


def test_a_task_without_a_score_is_unknown_and_not_0() -> None:
    tasks = task_scores(stored(FIRST), {}).set_index("task")
    assert tasks["value"].isna().all()
    assert list(tasks["n"]) == [0, 0, 0]


def test_shared_clusters_widen_the_interval() -> None:
    one = stored(FIRST)
    key = (FIRST.evaluation_id, TRANSLATION.name)
    names: list[str | None] = [f"c{number}" for number in range(20)]
    values = [float(number % 2) for number in range(20)]
    alone = {key: counts(values, [5] * 20)}
    shared = {key: counts(values, [5] * 20, names)}
    widths = [
        capability_scores([one], known).set_index("capability").loc["multilingual"]
        for known in (alone, shared)
    ]
    assert widths[1]["high"] - widths[1]["low"] > 1.5 * (widths[0]["high"] - widths[0]["low"])
    codes = np.repeat(np.arange(20), 5)
    expected = mean_interval(np.repeat(values, 5), binary=False, clusters=codes)
    assert widths[1]["low"] == pytest.approx(expected.low)


def test_the_overview_is_by_run_and_step_and_keeps_checkpoints_without_evaluation() -> None:
    made = [FAILED, OPEN, Made(run="a", step=5, skill=0.5)]
    evaluations = [stored(one) for one in made[:2]]
    checkpoints = [
        StoredCheckpoint(
            ref=evaluation_of(one).checkpoint,
            files={},
            state=CheckpointState.READY,
            registered_at="1",
        )
        for one in made
    ]
    digest = evaluation_of(FAILED).checkpoint.digest
    heads = [
        head(FAILED.name, "PASS", "1", digest),
        head(FAILED.name, "FAIL", "2", digest),
        head(OPEN.name, "PASS", "3", "weights of the same name"),
    ]
    table = overview_table(checkpoints, evaluations, heads, {}, {})
    assert list(table["checkpoint"]) == ["a@5", OPEN.name, FAILED.name]
    assert list(table["state"]) == ["not evaluated", "complete", "complete"]
    assert list(table["verdict"]) == ["none", "none", "FAIL"]


def test_the_latest_decision_counts() -> None:
    latest = latest_decisions([head("a@1", "FAIL", "1"), head("a@1", "PASS", "2")])
    assert latest["a@1", "d"].verdict == "PASS"


def test_a_state_says_how_far_it_is() -> None:
    running = replace(FIRST, state=EvaluationState.RUNNING)
    known = {(FIRST.evaluation_id, ARITHMETIC.name): counts([1.0], [50])}
    assert state_text(stored(running), known, {FIRST.evaluation_id: 10}) == "running, 20%"
    assert state_text(stored(running), {}, {}) == "running"
    assert state_text(stored(FIRST), known, {}) == "complete"


def pair(spec: Any, baseline: list[float], candidate: list[float]) -> PairedScores:
    return PairedScores(
        spec=spec,
        item_ids=tuple(f"i{number}" for number in range(len(baseline))),
        baseline=np.array(baseline),
        candidate=np.array(candidate),
        baseline_missing=np.isnan(baseline).astype(float),
        candidate_missing=np.isnan(candidate).astype(float),
    )


def score_table(rows: list[tuple[str, str, str]]) -> pa.Table:
    blank = dict.fromkeys(SCORES.schema.names)
    return pa.Table.from_pylist(
        [{**blank, "task": task, "item_id": item, "outcome": out} for task, item, out in rows],
        schema=SCORES.schema,
    )


NAN = float("nan")


def changed() -> pd.DataFrame:
    return changed_items(
        [
            pair(ARITHMETIC, [1, 0, 1, 1, 0.5], [0, 1, 1, NAN, 0.25]),
            pair(ATTACKS, [0, 1], [1, 0]),
        ],
        score_table([(ARITHMETIC.name, "i0", "scored"), (ARITHMETIC.name, "i3", "scored")]),
        score_table(
            [
                (ARITHMETIC.name, "i0", "truncated"),
                (ARITHMETIC.name, "i0", "scored"),
                (ARITHMETIC.name, "i3", "errored"),
            ]
        ),
    )


def test_changed_items_are_lost_first_and_the_largest_first() -> None:
    table = changed()
    assert list(zip(table["change"], table["task"], table["item"], strict=True)) == [
        ("lost", ARITHMETIC.name, "i0"),
        ("lost", ATTACKS.name, "i0"),
        ("lost", ARITHMETIC.name, "i4"),
        ("gained", ARITHMETIC.name, "i1"),
        ("gained", ATTACKS.name, "i1"),
        ("missing", ARITHMETIC.name, "i3"),
    ]


def test_changed_items_name_all_outcomes_of_their_repeats() -> None:
    table = changed().set_index(["task", "item"])
    assert table.loc[(ARITHMETIC.name, "i0"), "candidate_outcome"] == "scored + truncated"
    assert table.loc[(ARITHMETIC.name, "i3"), "candidate_outcome"] == "errored"
    assert table.loc[(ARITHMETIC.name, "i1"), "candidate_outcome"] == "missing"


def test_items_are_chosen_by_all_that_is_given() -> None:
    table = changed()
    assert len(chosen_items(table, None, None, None)) == 6
    assert list(chosen_items(table, "lost", ATTACKS.name, None)["item"]) == ["i0"]
    assert list(chosen_items(table, None, None, "truncated")["item"]) == ["i0"]
    assert chosen_items(table, "gained", None, "truncated").empty


def test_nothing_changed_is_an_empty_table() -> None:
    table = changed_items([pair(ARITHMETIC, [1], [1])], score_table([]), score_table([]))
    assert table.empty
    assert chosen_items(table, None, None, "scored").empty


def test_a_question_is_the_field_that_asks() -> None:
    assert question_text({"answer": "42", "question": "What\nis it?"}) == "What is it?"
    assert question_text({"a": 1}) == '{"a": 1}'
    assert question_text(None) == ""
    long, short = doc_fields({"level": 2, "question": "Why?", "story": "x" * 80})
    assert [name for name, _ in long] == ["question", "story"]
    assert short == [("level", "2")]


def rule(**changes: Any) -> dict[str, Any]:
    return {
        "name": "r",
        "subject": "t",
        "tasks": ["t"],
        "verdict": "INCONCLUSIVE",
        "role": "must",
        "tier": "capability",
        "margin": 0.1,
        "tolerate": 0.02,
        "ceiling": None,
        "floor": None,
        "n": 10,
        "value": -0.05,
        "low": -0.2,
        "high": 0.1,
        "level": 0.9,
        "p_pass": 0.5,
        "p_fail": 0.25,
        "p_fail_adjusted": 0.75,
        "missing": 3,
        "reasons": [],
        "warnings": [],
        "suspect": False,
        "flips": {"lost": 2, "gained": 1, "lost_items": [], "gained_items": []},
        **changes,
    }


def test_every_column_of_a_rule_is_its_own() -> None:
    numbers = {
        name: 0.01 * (rank + 1)
        for rank, name in enumerate(
            ("margin", "tolerate", "ceiling", "floor", "value", "low", "high", "level")
        )
    }
    ps = {"p_pass": 0.5, "p_fail": 0.6, "p_fail_adjusted": 0.7, "n": 11, "missing": 12}
    row = rule_table({"rules": [rule(**numbers, **ps)]}).iloc[0]
    for name, value in {**numbers, **ps}.items():
        assert row[name] == value, name
    assert (row["lost"], row["gained"], row["role"], row["tier"]) == (2, 1, "must", "capability")


def test_limits_lie_on_the_scale_of_the_estimate() -> None:
    rules = rule_table(
        {
            "rules": [
                rule(),
                rule(name="s", margin=None, tolerate=None, ceiling=0.3),
                rule(name="u", tolerate=0.0),
            ]
        }
    )
    limits = [tuple(one) for one in limit_table(rules).itertuples(index=False)]
    assert limits == [
        ("r", "margin", -0.1),
        ("r", "tolerate", -0.02),
        ("s", "ceiling", 0.3),
        ("u", "margin", -0.1),
    ]


def test_an_open_rule_always_says_why() -> None:
    assert rule_reasons(rule(reasons=["too_few_items"])) == [REASONS["too_few_items"]]
    assert rule_reasons(rule()) == ["its items neither prove it nor prove that it fails"]
    assert rule_reasons(rule(verdict="PASS")) == []
    assert rule_reasons(rule(verdict="PASS", warnings=["code of a later Pawl"])) == [
        "code of a later Pawl"
    ]


def test_each_reason_is_said_once_with_its_rules() -> None:
    rules = [rule(name="a", reasons=["no_baseline"]), rule(name="b", reasons=["no_baseline"])]
    codes = ["no_baseline", "no_gating_rule"]
    assert reason_lines({"rules": rules, "reasons": codes}) == [
        f"The whole: {REASONS['no_gating_rule']}.",
        f"a (INCONCLUSIVE), b (INCONCLUSIVE): {REASONS['no_baseline']}.",
    ]


def test_decisions_are_listed_latest_first() -> None:
    table = decision_table([head("a@1", "FAIL", "1"), head("b@1", "PASS", "2")])
    assert list(table["candidate"]) == ["b@1", "a@1"]
    assert decision_table([]).empty
