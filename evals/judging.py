"""From a response to its score: the outcome first, the task's own rule beside it."""

from __future__ import annotations

import math

from evals.response import FinishReason, Response
from evals.scoring import Judgement, Outcome, Score
from evals.task import AnyTask, ChoiceTask, Item


def judge(task: AnyTask, item: Item, response: Response) -> Judgement:
    """Return what a task's own rule says of a response; of an error, the error."""
    if isinstance(task, ChoiceTask):
        if response.log_likelihoods is not None:
            return task.judge_choices(item, response.log_likelihoods)
    elif response.text is not None:
        return task.judge(item, response.text)
    return Judgement(value=None, error=response.error or "answer_of_another_kind than was asked")


def score_response(task: AnyTask, item: Item, response: Response) -> Score:
    """Return the score of one response: the outcome first, the task's own rule beside it.

    A response that is an error, and one whose scorer failed, is errored and has no score. A cut
    off or unparsed answer keeps the score that the task's rule gives its text.
    """
    spec = task.spec
    judgement = judge(task, item, response)
    value, detail = judgement.value, judgement.error
    if value is not None and not (math.isfinite(value) and 0 <= value <= 1):
        value, detail = None, f"score_out_of_range: {spec.metric_key} gave {judgement.value}"
    if value is None:
        outcome, detail = Outcome.ERRORED, detail or f"no_score: {spec.metric_key} gave none"
    elif response.finish_reason is FinishReason.LENGTH:
        outcome = Outcome.TRUNCATED
    else:
        outcome = Outcome.SCORED if judgement.parsed else Outcome.UNPARSED
    return Score(
        task=spec.name,
        item_id=item.item_id,
        repeat=response.repeat,
        metric=spec.metric_key,
        outcome=outcome,
        value=value,
        answer=judgement.answer,
        detail=detail,
    )
