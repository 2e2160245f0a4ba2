"""Outcomes and scores: what a response is worth, and when that is not known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from evals.response import FinishReason, Response

if TYPE_CHECKING:
    from evals.task import Item, Task


class Outcome(StrEnum):
    """What became of one question; unknown never becomes 0."""

    SCORED = "scored"
    TRUNCATED = "truncated"
    """Cut off by the budget; keeps the score that the task's rule gives the text."""
    UNPARSED = "unparsed"
    """No answer could be extracted; keeps the score that the task's rule gives the text."""
    ERRORED = "errored"
    """No answer for a reason that is not the model's; has no score."""
    MISSING = "missing"
    """Planned and never answered; has no score."""


WITH_SCORE = frozenset({Outcome.SCORED, Outcome.TRUNCATED, Outcome.UNPARSED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a task's own rule says of one text."""

    value: float | None
    """The primary metric in [0, 1]; None where the scorer itself failed."""
    parsed: bool = True
    """False where no answer could be extracted from the text."""
    answer: str | None = None
    """What was extracted, as text."""
    error: str | None = None
    """Why the scorer failed (sandbox, time limit of the scorer): an outcome, not a 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One response's score under a task's primary metric."""

    task: str
    item_id: str
    repeat: int
    metric: str
    """Metric and filter as ``metric,filter``, lm-eval's spelling."""
    outcome: Outcome
    value: float | None
    """In [0, 1], or None where the outcome has no score."""
    answer: str | None = None
    detail: str | None = None
    """Why a score is absent, or what the scorer wants to add."""

    def __post_init__(self) -> None:
        """Hold that a finite score in [0, 1] is there if and only if the outcome has one."""
        if (self.value is not None) != (self.outcome in WITH_SCORE):
            raise ValueError(f"{self.task} {self.item_id}: {self.outcome} and score disagree")
        if self.value is not None and not (math.isfinite(self.value) and 0 <= self.value <= 1):
            raise ValueError(f"{self.task} {self.item_id}: score {self.value} is not in [0, 1]")


def score_response(task: Task, item: Item, response: Response) -> Score:
    """Return the score of one response: the outcome first, the task's own rule beside it.

    A response that is an error, and one whose scorer failed, is errored and has no score. A cut
    off or unparsed answer keeps the score that the task's rule gives its text.
    """
    spec = task.spec
    judgement = Judgement(value=None, error=response.error)
    if response.text is not None:
        judgement = task.judge(item, response.text)
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
