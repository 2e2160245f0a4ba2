"""What an engine answers: one row per repeat of a request."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FinishReason(StrEnum):
    """Why a generation ended."""

    STOP = "stop"
    """A stop string or an end-of-sequence token."""
    LENGTH = "length"
    """The budget or the context was used up: the answer is cut off."""
    ERROR = "error"
    """There is no answer; ``Response.error`` says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLikelihood:
    """How probable a given text is after its context."""

    log_prob: float
    """Sum over the text's tokens, nats."""
    greedy: bool
    """Whether each of its tokens is the most probable one there; of equals at most one is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """One answer of the engine, or the reason why there is none."""

    request_id: str
    repeat: int
    """0 to k - 1 for a request with k repeats."""
    text: str | None
    """The answer without the stop string; None when there is none, or no text was asked for."""
    token_ids: tuple[int, ...]
    """The answer's tokens as sampled."""
    finish_reason: FinishReason
    prompt_tokens: int
    output_tokens: int
    error: str | None = None
    """``code: detail`` of a failure that is not the model's: engine, host, or no room."""
    log_likelihoods: tuple[LogLikelihood, ...] | None = None
    """Of the request's branches, in their order; None where a text was asked for."""

    def __post_init__(self) -> None:
        """Hold that a response has exactly one of text, log-likelihoods and error."""
        there = [part is not None for part in (self.text, self.log_likelihoods, self.error)]
        if sum(there) != 1:
            raise ValueError(
                f"response {self.request_id}: exactly one of text, log-likelihoods and error"
            )
        if (self.error is None) == (self.finish_reason is FinishReason.ERROR):
            raise ValueError(f"response {self.request_id}: error and finish_reason disagree")
