"""The job over a real lake and spool with the scripted engine; kills are real."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest
from small_task import DigitTask, small_evaluation, small_plan

from evals.adapters.scripted import ScriptedEngine
from evals.errors import CheckpointVanished, WorkerLost
from evals.evaluation import EvaluationState
from evals.identity import canonical_json
from evals.job import answer_here, evaluate
from evals.judging import score_response
from evals.plan import Request, owed_requests
from evals.response import FinishReason, Response
from evals.scoring import Outcome, Score
from storage.project import find_project
from storage.store import LakeStore

HERE = Path(__file__).parent
ID = "1" * 32


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LakeStore]:
    with open_project(tmp_path) as opened:
        yield opened


def open_project(folder: Path) -> AbstractContextManager[LakeStore]:
    return find_project(folder).open_store(create=True)


def run_small(store: LakeStore, script: object, **changes: object) -> tuple[Score, ...]:
    task = DigitTask(20)
    plan = small_plan(task)
    evaluation = small_evaluation(task, plan)
    engine = ScriptedEngine(script)  # type: ignore[arg-type]
    answer = changes.pop("answer", None) or answer_here(engine, store, ID)
    return evaluate(
        evaluation,
        plan,
        {"digits": task},
        store,
        answer,  # type: ignore[arg-type]
        scorer_version=str(changes.pop("scorer_version", "1")),
    )


def test_a_second_run_owes_nothing(store: LakeStore) -> None:
    asked: list[str] = []

    def script(request: Request, _repeat: int) -> str:
        asked.append(request.request_id)
        return "3"

    first = run_small(store, script)
    second = run_small(store, script)
    assert len(asked) == len(set(asked)) == 20
    assert first == second
    assert store.load_evaluation(ID).evaluation.state is EvaluationState.COMPLETE


def test_another_scorer_version_scores_stored_responses_without_the_engine(
    store: LakeStore,
) -> None:
    run_small(store, lambda _request, _repeat: "3")

    def refuse(_requests: Sequence[Request]) -> Iterator[int]:
        pytest.fail("the engine was asked again")
        yield 0

    again = run_small(store, None, answer=refuse, scorer_version="2")
    assert len(again) == 20


def test_outcomes_are_kept_apart() -> None:
    task = DigitTask(1)
    item = task.items()[0]

    def scored(text: str | None, reason: FinishReason, error: str | None = None) -> Score:
        response = Response(
            request_id="q",
            repeat=0,
            text=text,
            token_ids=(),
            finish_reason=reason,
            prompt_tokens=1,
            output_tokens=1,
            error=error,
        )
        return score_response(task, item, response)

    right = scored("0", FinishReason.STOP)
    assert (right.outcome, right.value) == (Outcome.SCORED, 1.0)
    cut = scored("0", FinishReason.LENGTH)
    assert (cut.outcome, cut.value) == (Outcome.TRUNCATED, 1.0)
    unreadable = scored("none", FinishReason.STOP)
    assert (unreadable.outcome, unreadable.value) == (Outcome.UNPARSED, 0.0)
    lost = scored(None, FinishReason.ERROR, "engine: gone")
    assert (lost.outcome, lost.value, lost.detail) == (Outcome.ERRORED, None, "engine: gone")
    broken = scored("boom", FinishReason.STOP)
    assert (broken.outcome, broken.value) == (Outcome.ERRORED, None)


def test_a_score_that_is_no_score_is_an_error_and_not_a_number() -> None:
    class Odd(DigitTask):
        def judge(self, item, text):  # type: ignore[no-untyped-def]
            return replace(super().judge(item, text), value=float("nan"))

    response = Response(
        request_id="q",
        repeat=0,
        text="1",
        token_ids=(),
        finish_reason=FinishReason.STOP,
        prompt_tokens=1,
        output_tokens=1,
    )
    task = Odd(1)
    score = score_response(task, task.items()[0], response)
    assert score.outcome is Outcome.ERRORED
    assert score.value is None
    assert "out_of_range" in (score.detail or "")


def test_a_prompt_that_leaves_no_room_is_an_error_and_is_never_sent(store: LakeStore) -> None:
    task = DigitTask(20)
    plan = small_plan(task, context_tokens=16)
    evaluation = small_evaluation(task, plan)
    assert all(r.max_tokens == 0 for r in plan.requests)

    def refuse(_requests: Sequence[Request]) -> Iterator[int]:
        pytest.fail("a prompt that does not fit was sent")
        yield 0

    scores = evaluate(evaluation, plan, {"digits": task}, store, refuse, scorer_version="1")
    assert {score.outcome for score in scores} == {Outcome.ERRORED}
    assert all("does_not_fit" in (score.detail or "") for score in scores)


def test_the_budget_is_cut_to_what_the_context_leaves() -> None:
    task = DigitTask(1)
    prompt = len("last digit of 0:")
    plan = small_plan(task, context_tokens=prompt + 2)
    assert plan.requests[0].max_tokens == 2
    assert len(plan.requests[0].token_ids) == prompt


def test_owed_is_what_is_planned_and_not_stored() -> None:
    plan = small_plan(DigitTask(3), repeats=3)
    first, second, third = plan.requests
    stored = {(first.request_id, r) for r in range(3)} | {(second.request_id, 1)}
    owed = owed_requests(plan.requests, stored)
    assert [(r.request_id, r.repeats) for r in owed] == [
        (second.request_id, (0, 2)),
        (third.request_id, (0, 1, 2)),
    ]


def test_a_dead_worker_is_replaced_and_what_it_stored_stays(store: LakeStore) -> None:
    calls: list[int] = []

    def dying(requests: Sequence[Request]) -> Iterator[int]:
        calls.append(len(requests))
        done = answer_here(ScriptedEngine(lambda _r, _n: "3"), store, ID)(requests)
        for number, more in enumerate(done):
            yield more
            if number == 4 and len(calls) < 3:
                raise WorkerLost("killed")

    scores = run_small(store, None, answer=dying)
    assert calls == [20, 15, 10]
    assert len(scores) == 20


def test_a_worker_that_keeps_dying_is_given_up(store: LakeStore) -> None:
    def dying(_requests: Sequence[Request]) -> Iterator[int]:
        raise WorkerLost("killed")
        yield 0

    with pytest.raises(WorkerLost):
        run_small(store, None, answer=dying)


def test_a_checkpoint_that_vanished_marks_its_evaluation(store: LakeStore) -> None:
    def vanishing(requests: Sequence[Request]) -> Iterator[int]:
        answered = answer_here(ScriptedEngine(lambda _r, _n: "3"), store, ID)(requests[:5])
        yield from answered
        raise CheckpointVanished("gone")

    with pytest.raises(CheckpointVanished):
        run_small(store, None, answer=vanishing)
    assert store.load_evaluation(ID).evaluation.state is EvaluationState.VANISHED
    assert len(store.responses(ID)) == 5


def rows_of(folder: Path) -> str:
    """Every stored row of the evaluation as canonical text."""
    with open_project(folder) as store:
        responses = store.lake.rows("SELECT * FROM lake.responses ORDER BY request_id, repeat")
        scores = store.lake.rows("SELECT * FROM lake.scores ORDER BY task, item_id, repeat")
        assert not list((folder / ".pawl" / "spool").rglob("*.spool")), (
            "everything moved out of the spool"
        )
    return canonical_json([[str(cell) for cell in row] for row in (*responses, *scores)])


def start(folder: Path, delay_s: float) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(HERE / "run_small_job.py"), str(folder), str(delay_s)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(HERE)},
        start_new_session=True,
    )


def test_killed_at_any_moment_and_run_again_the_rows_are_byte_equal(tmp_path: Path) -> None:
    undisturbed = tmp_path / "undisturbed"
    assert start(undisturbed, 0.0).wait(60) == 0
    killed = tmp_path / "killed"
    killed.mkdir()
    kept: set[tuple[str, int, str]] = set()
    moments = 0
    for wait_s in (0.4, 0.9, 1.3, 1.7, 2.1, 2.5):
        job = start(killed, 0.02)
        time.sleep(wait_s)
        if job.poll() is None:
            moments += 1
            os.killpg(job.pid, signal.SIGKILL)
        job.wait()
        if find_project(killed).has_lake:
            with open_project(killed) as store:
                now = {(r.request_id, r.repeat, r.text or "") for r in store.responses(ID)}
            assert kept <= now, "a stored response changed or went"
            kept = now
    assert moments >= 3
    assert start(killed, 0.0).wait(60) == 0
    assert rows_of(killed) == rows_of(undisturbed)


def test_two_processes_with_one_evaluation_ask_each_request_once(tmp_path: Path) -> None:
    both = tmp_path / "both"
    jobs = [start(both, 0.01), start(both, 0.01)]
    assert [job.wait(90) for job in jobs] == [0, 0]
    alone = tmp_path / "alone"
    assert start(alone, 0.0).wait(60) == 0
    assert rows_of(both) == rows_of(alone)
