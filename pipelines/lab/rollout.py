"""What passes between the executors: weights, sampled answers, and answers with rewards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipelines.lab.objective import FloatArray
from pipelines.lab.questions import Question

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The policy after a number of updates."""

    version: int
    tensors: Mapping[str, torch.Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One sampled answer."""

    token_ids: tuple[int, ...]
    """With the end token, where there is one."""
    log_probs: tuple[float, ...]
    """Of each token, as the sampler computed it."""
    text: str
    ended: bool
    """False where the budget was used up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The answers of one step; a tuple of them to each question."""

    step: int
    """Updates of the weights before this batch is trained on."""
    version: int
    """Of the weights that answered."""
    questions: tuple[Question, ...]
    answers: tuple[tuple[Answer, ...], ...]
    generate_s: float
    sync_s: float
    """Seconds that taking over the weights took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaidBatch:
    """A batch with its rewards."""

    batch: Batch
    rewards: FloatArray
    """(questions, answers), each in [0, 1]."""
