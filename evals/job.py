"""The job: from a plan to stored scores, over an engine and a store, without any scheduler.

``run_owed`` makes every response durable exactly once; ``score_all`` turns responses into scores;
``answer_owed`` and ``score_answers`` do so for a whole evaluation under its lock, ``evaluate`` is
one after the other. Killed at any moment and called again, each does
what is still owed and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from evals.engine import Engine, error_response
from evals.errors import CheckpointVanished, WorkerLost
from evals.evaluation import Evaluation, EvaluationState
from evals.judging import score_response
from evals.plan import Plan, Request, ResponseKey, owed_requests
from evals.response import Response
from evals.scoring import Score
from evals.task import AnyTask, Item

SCORE_BATCH = 500
"""Scores that are stored at a time."""

WORKER_DEATHS = 2
"""How many deaths of a worker a call outlives; the next one is raised."""


class ResponseWriter(Protocol):
    """Where responses become durable."""

    def append(self, response: Response) -> None:
        """Keep a response; durable within a second."""
        ...


class Store(Protocol):
    """What the job needs of storage; every write may be repeated without harm."""

    def evaluation_lock(
        self, evaluation_id: str, on_wait: Callable[[str], None] | None = None
    ) -> AbstractContextManager[None]:
        """Hold the right to run an evaluation."""
        ...

    def put_evaluation(self, evaluation: Evaluation) -> Any:
        """Keep what is asked; the first writing stays."""
        ...

    def put_plan(
        self,
        evaluation: Evaluation,
        items: Mapping[str, Sequence[Item]],
        requests: Sequence[Request],
    ) -> None:
        """Keep items and requests."""
        ...

    def stored_keys(self, evaluation_id: str) -> frozenset[ResponseKey]:
        """Return which responses are durable."""
        ...

    def spool_writer(self, evaluation_id: str) -> AbstractContextManager[ResponseWriter]:
        """Return where one worker's responses become durable."""
        ...

    def settle(self, evaluation_id: str) -> Any:
        """Move durable responses to where they are read."""
        ...

    def responses(self, evaluation_id: str) -> tuple[Response, ...]:
        """Return all responses by request id and repeat."""
        ...

    def scores(self, evaluation_id: str, *, scorer_version: str | None = None) -> tuple[Score, ...]:
        """Return the scores of one scoring."""
        ...

    def put_scores(
        self, evaluation_id: str, scorer_version: str, new_scores: Iterable[Score]
    ) -> int:
        """Keep scores; the first writing stays."""
        ...

    def finish_evaluation(self, evaluation_id: str, state: EvaluationState) -> None:
        """Set how far the evaluation has come."""
        ...


AnswerRequests = Callable[[Sequence[Request]], Iterator[int]]
"""Makes the responses to requests durable; yields how many more are."""

Progress = Callable[[str, int, int], None]
"""Told the stage (``answers``, ``scores``), how many are done and how many there are."""


def silent(_stage: str, _done: int, _total: int) -> None:
    """Tell nobody."""


def answer_here(engine: Engine, store: Store, evaluation_id: str) -> AnswerRequests:
    """Return a function that answers requests in this process."""

    def answer(requests: Sequence[Request]) -> Iterator[int]:
        with store.spool_writer(evaluation_id) as writer:
            for response in engine.generate(requests):
                writer.append(response)
                yield 1

    return answer


def evaluate(
    evaluation: Evaluation,
    plan: Plan,
    tasks: Mapping[str, AnyTask],
    store: Store,
    answer: AnswerRequests,
    *,
    scorer_version: str,
    progress: Progress = silent,
    on_wait: Callable[[str], None] | None = None,
) -> tuple[Score, ...]:
    """Run or resume an evaluation and return its scores.

    Args:
        evaluation: What is asked, named by content.
        plan: Its items and requests.
        tasks: By name; their rules score the answers.
        store: Where everything is kept.
        answer: Makes responses durable, here or on workers elsewhere.
        scorer_version: Names the rules; another version scores the stored responses anew.
        progress: Told how far it is.
        on_wait: Told who else is running this evaluation while waiting for them.

    Raises:
        CheckpointVanished: The checkpoint was deleted before all was answered; what was
            answered is kept and the evaluation marked ``vanished``.
    """
    answer_owed(evaluation, plan, store, answer, progress=progress, on_wait=on_wait)
    return score_answers(
        evaluation,
        plan,
        tasks,
        store,
        scorer_version=scorer_version,
        progress=progress,
        on_wait=on_wait,
    )


def answer_owed(
    evaluation: Evaluation,
    plan: Plan,
    store: Store,
    answer: AnswerRequests,
    *,
    progress: Progress = silent,
    on_wait: Callable[[str], None] | None = None,
) -> None:
    """Store what is asked and every answer that is owed: the first half of ``evaluate``.

    Raises:
        CheckpointVanished: The checkpoint was deleted before all was answered; what was
            answered is kept and the evaluation marked ``vanished``.
    """
    key = evaluation.evaluation_id
    with store.evaluation_lock(key, on_wait):
        store.put_evaluation(evaluation)
        store.put_plan(evaluation, plan.items, plan.requests)
        try:
            run_owed(key, plan, store, answer, progress)
        except CheckpointVanished:
            store.settle(key)
            store.finish_evaluation(key, EvaluationState.VANISHED)
            raise


def score_answers(
    evaluation: Evaluation,
    plan: Plan,
    tasks: Mapping[str, AnyTask],
    store: Store,
    *,
    scorer_version: str,
    progress: Progress = silent,
    on_wait: Callable[[str], None] | None = None,
) -> tuple[Score, ...]:
    """Score what is answered and mark the evaluation complete: the second half of ``evaluate``."""
    key = evaluation.evaluation_id
    with store.evaluation_lock(key, on_wait):
        scores = score_all(key, plan, tasks, store, scorer_version, progress)
        store.finish_evaluation(key, EvaluationState.COMPLETE)
    return scores


def run_owed(
    evaluation_id: str,
    plan: Plan,
    store: Store,
    answer: AnswerRequests,
    progress: Progress = silent,
) -> None:
    """Make every response of the plan durable that is not, and move all to where they are read.

    Raises:
        WorkerLost: A worker died more than ``WORKER_DEATHS`` times; what is durable stays.
    """
    for deaths in range(WORKER_DEATHS + 1):
        owed = owed_requests(plan.requests, store.stored_keys(evaluation_id))
        done = plan.responses - sum(len(request.repeats) for request in owed)
        progress("answers", done, plan.responses)
        done += refuse_unfitting(evaluation_id, owed, store)
        fitting = [request for request in owed if request.max_tokens > 0]
        try:
            for more in answer(fitting) if fitting else ():
                done += more
                progress("answers", done, plan.responses)
            break
        except WorkerLost:
            if deaths == WORKER_DEATHS:
                raise
    store.settle(evaluation_id)


def refuse_unfitting(evaluation_id: str, owed: Sequence[Request], store: Store) -> int:
    """Store an error for each owed prompt that leaves no room for an answer; return how many."""
    refused = [(r, repeat) for r in owed if r.max_tokens == 0 for repeat in r.repeats]
    if refused:
        with store.spool_writer(evaluation_id) as writer:
            for request, repeat in refused:
                writer.append(does_not_fit(request, repeat))
    return len(refused)


def does_not_fit(request: Request, repeat: int) -> Response:
    """Return the response to a prompt that leaves no room for an answer: an error, not a cut."""
    shared, branches = len(request.token_ids), request.branches
    if any(not one.asked or shared + len(one.given) == 0 for one in branches):
        return error_response(
            request, repeat, "choice_without_tokens: the tokenizer gives none, or no context"
        )
    tokens = shared + max((len(one.given) + len(one.asked) for one in branches), default=0)
    return error_response(
        request, repeat, f"prompt_does_not_fit: {tokens} tokens leave no room for an answer"
    )


def score_all(
    evaluation_id: str,
    plan: Plan,
    tasks: Mapping[str, AnyTask],
    store: Store,
    scorer_version: str,
    progress: Progress = silent,
) -> tuple[Score, ...]:
    """Score every stored response that has no score of this scorer version; return all scores."""
    by_request = {request.request_id: request for request in plan.requests}
    items = {item.item_id: item for asked in plan.items.values() for item in asked}
    scored = {
        (score.item_id, score.repeat)
        for score in store.scores(evaluation_id, scorer_version=scorer_version)
    }
    responses = [r for r in store.responses(evaluation_id) if r.request_id in by_request]
    batch: list[Score] = []
    for number, response in enumerate(responses, 1):
        request = by_request[response.request_id]
        if (request.item_id, response.repeat) not in scored:
            batch.append(score_response(tasks[request.task], items[request.item_id], response))
        if len(batch) >= SCORE_BATCH:
            store.put_scores(evaluation_id, scorer_version, batch)
            batch = []
        progress("scores", number, len(responses))
    store.put_scores(evaluation_id, scorer_version, batch)
    return store.scores(evaluation_id, scorer_version=scorer_version)
