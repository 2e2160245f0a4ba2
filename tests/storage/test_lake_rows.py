"""Round trips of every noun through both catalogues."""

from __future__ import annotations

import dataclasses
import math
import uuid

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from lake_builders import (
    digest,
    make_checkpoint,
    make_evaluation,
    make_item,
    make_request,
    make_response,
    make_score,
    make_task,
)

from evals.errors import LakeError
from evals.evaluation import EvaluationState
from evals.response import FinishReason, LogLikelihood, Response
from evals.scoring import WITH_SCORE, Outcome, Score
from storage.checkpoints import CheckpointState
from storage.connection import Lake
from storage.responses import load_responses, put_responses
from storage.scores import load_score_table, load_scores, put_scores
from storage.store import LakeStore
from storage.tables import SCORES

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=8)
INTS = st.integers(-(2**31), 2**31 - 1)
ROUND_TRIP = settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.generate],
)


LOG_LIKELIHOODS = st.lists(
    st.builds(
        LogLikelihood,
        log_prob=st.floats(allow_nan=False, allow_infinity=False),
        greedy=st.booleans(),
    ),
    max_size=3,
).map(tuple)


@st.composite
def any_response(draw: st.DrawFn, number: int) -> Response:
    kind = draw(st.sampled_from(("text", "choices", "error")))
    failed = kind == "error"
    return Response(
        request_id=digest(number),
        repeat=draw(st.integers(0, 3)),
        text=draw(ANY_TEXT) if kind == "text" else None,
        log_likelihoods=draw(LOG_LIKELIHOODS) if kind == "choices" else None,
        token_ids=tuple(draw(st.lists(INTS, max_size=4))),
        finish_reason=FinishReason.ERROR if failed else FinishReason.LENGTH,
        prompt_tokens=draw(st.integers(0, 2**31 - 1)),
        output_tokens=0,
        error=draw(ANY_TEXT) if failed else None,
    )


@st.composite
def any_score(draw: st.DrawFn, number: int) -> Score:
    outcome = draw(st.sampled_from(Outcome))
    return Score(
        task=draw(ANY_TEXT),
        item_id=digest(number),
        repeat=draw(st.integers(0, 3)),
        metric="exact_match,strict",
        outcome=outcome,
        value=draw(st.floats(0, 1)) if outcome in WITH_SCORE else None,
        answer=draw(st.none() | ANY_TEXT),
        detail=draw(st.none() | ANY_TEXT),
    )


# Up to ten rows are kept in the catalogue, more in Parquet: both must give back what they got.
SIZES = st.sampled_from([1, 10, 11, 20])


@ROUND_TRIP
@given(st.data())
def test_responses_come_back(lake: Lake, data: st.DataObject) -> None:
    evaluation_id = uuid.uuid4().hex
    wanted = [data.draw(any_response(number)) for number in range(data.draw(SIZES))]
    assert put_responses(lake, evaluation_id, wanted) == len(wanted)
    assert put_responses(lake, evaluation_id, wanted) == 0
    found = load_responses(lake, evaluation_id)
    assert list(found) == sorted(wanted, key=lambda each: (each.request_id, each.repeat))


@ROUND_TRIP
@given(st.data())
def test_scores_come_back(lake: Lake, data: st.DataObject) -> None:
    evaluation_id = uuid.uuid4().hex
    wanted = {number: data.draw(any_score(number)) for number in range(data.draw(SIZES))}
    assert put_scores(lake, evaluation_id, "\ud800", wanted.values()) == len(wanted)
    found = {score.item_id: score for score in load_scores(lake, evaluation_id)}
    assert found == {score.item_id: score for score in wanted.values()}


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 1.1])
def test_scores_that_are_none_can_not_be_made(value: float) -> None:
    with pytest.raises(ValueError, match=r"not in \[0, 1\]"):
        make_score(1, value)


def test_the_first_response_stays(lake: Lake) -> None:
    first = [make_response(number) for number in range(20)]
    put_responses(lake, "e", first)
    again = [make_response(number, text="other") for number in range(30)]
    assert put_responses(lake, "e", [*again, make_response(29, text="third")]) == 10
    found = {response.request_id: response.text for response in load_responses(lake, "e")}
    assert found == {
        digest(number): f"answer {number}" if number < 20 else "other" for number in range(30)
    }


def test_evaluations_do_not_mix(lake: Lake) -> None:
    put_responses(lake, "a", [make_response(1, text="a")])
    assert put_responses(lake, "b", [make_response(1, text="b")]) == 1
    assert [response.text for response in load_responses(lake, "b")] == ["b"]


def test_readers_get_each_tasks_latest_scoring(lake: Lake) -> None:
    old = [make_score(1, 0.0), make_score(2, 0.0), make_score(1, 0.0, task="gsm")]
    put_scores(lake, "e", "old", old)
    put_scores(lake, "e", "new", [make_score(1, 1.0), make_score(2, 1.0)])
    assert put_scores(lake, "e", "old", [make_score(3, 0.0)]) == 1
    found = {(score.task, score.value) for score in load_scores(lake, "e")}
    assert found == {("arc", 1.0), ("gsm", 0.0)}
    assert len(load_scores(lake, "e", scorer_version="old")) == 4
    assert len(load_scores(lake, "e", task="gsm")) == 1
    table = load_score_table(lake, "e", task="arc")
    assert table.schema.names == SCORES.schema.names
    assert table.column("scoring").to_pylist() == [1, 1]


def test_checkpoints_come_back(store: LakeStore) -> None:
    checkpoint = make_checkpoint()
    files = {"model\0.safetensors": {"size": 12, "sha256": "ab"}}
    stored = store.register_checkpoint(checkpoint, files)
    assert (stored.ref, stored.files, stored.state) == (checkpoint, files, CheckpointState.READY)
    assert store.register_checkpoint(checkpoint, {}) == stored
    store.set_checkpoint_state(checkpoint, CheckpointState.VANISHED)
    gone = dataclasses.replace(stored, state=CheckpointState.VANISHED)
    assert store.find_checkpoint(checkpoint.run, checkpoint.step) == gone
    assert store.checkpoints(checkpoint.run) == (gone,) == store.checkpoints()
    assert store.checkpoints("other") == ()
    assert store.find_checkpoint("other", 1) is None
    with pytest.raises(LakeError, match="never registered"):
        store.set_checkpoint_state(make_checkpoint("x"), CheckpointState.READY)


def test_evaluations_come_back(store: LakeStore) -> None:
    evaluation = make_evaluation()
    stored = store.put_evaluation(evaluation)
    assert stored.evaluation == evaluation
    assert stored.completed_at is None
    store.finish_evaluation(evaluation.evaluation_id, EvaluationState.COMPLETE)
    done = store.load_evaluation(evaluation.evaluation_id)
    assert done.evaluation == dataclasses.replace(evaluation, state=EvaluationState.COMPLETE)
    assert done.created_at == stored.created_at < str(done.completed_at)
    assert store.put_evaluation(evaluation) == done
    store.finish_evaluation(evaluation.evaluation_id, EvaluationState.COMPLETE)
    assert store.load_evaluation(evaluation.evaluation_id) == done
    store.put_evaluation(make_evaluation("two", suite="standard"))
    assert store.find_evaluations(suite="smoke") == (done,)
    assert store.find_evaluations(state=EvaluationState.COMPLETE) == (done,)
    assert len(store.find_evaluations(checkpoint_digest=evaluation.checkpoint.digest)) == 2
    assert store.find_evaluations(checkpoint_digest="none") == ()
    with pytest.raises(LakeError, match="no such evaluation"):
        store.load_evaluation("none")
    with pytest.raises(LakeError, match="no such evaluation"):
        store.finish_evaluation("none", EvaluationState.COMPLETE)


def test_plans_come_back_in_order(store: LakeStore) -> None:
    evaluation = make_evaluation()
    order = [3, 1, 2, *range(10, 40)]
    items = {
        "arc": [make_item(number) for number in order],
        "gsm": [make_item(number, "gsm") for number in (7, 8)],
    }
    requests = [make_request(number, repeats=2) for number in order]
    requests += [make_request(number, "gsm") for number in (8, 7)]
    for _ in range(2):
        store.put_plan(evaluation, items, requests)
        assert store.requests(evaluation.evaluation_id) == tuple(requests)
        assert store.items(evaluation, "arc") == tuple(items["arc"])
        assert store.items(evaluation, "gsm") == (make_item(8, "gsm"), make_item(7, "gsm"))
    then = store.snapshot()
    store.put_plan(make_evaluation("later"), items, requests)
    assert store.items(evaluation, "arc", snapshot=then) == tuple(items["arc"])
    assert store.requests(evaluation.evaluation_id, snapshot=then) == tuple(requests)


def test_items_are_stored_once_for_all_evaluations(store: LakeStore) -> None:
    items = {"arc": [make_item(number) for number in range(20)]}
    for name in ("one", "two"):
        evaluation = make_evaluation(name)
        store.put_plan(evaluation, items, [make_request(4)])
        assert store.items(evaluation, "arc") == (make_item(4),)
    assert store.lake.rows("SELECT count(*) FROM lake.items") == [(20,)]
    newer = dataclasses.replace(make_evaluation("three"), tasks=(make_task("arc", "9"),))
    store.put_plan(newer, items, [])
    assert store.lake.rows("SELECT count(*) FROM lake.items") == [(40,)]


def test_rows_say_nothing_of_when_or_in_what_order_they_came(lake: Lake) -> None:
    responses = [make_response(number) for number in range(12)]
    put_responses(lake, "a", responses)
    for response in reversed(responses):
        put_responses(lake, "b", [response])
    columns = "* EXCLUDE (evaluation_id)"
    a, b = (
        lake.rows(
            f"SELECT {columns} FROM lake.responses WHERE evaluation_id = ? ORDER BY ALL", [name]
        )
        for name in "ab"
    )
    assert a == b
