"""Outcomes and scores: what a response is worth, and when that is not known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


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
