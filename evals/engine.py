"""What Pawl needs of an inference engine, and what of it can move an answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Protocol

from evals.identity import fingerprint

if TYPE_CHECKING:
    from evals.plan import Request
    from evals.response import Response


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFingerprint:
    """All that can move an answer besides the weights; the number of replicas is not in it."""

    engine: str
    version: str
    device: str
    """``cpu`` or the accelerator's name."""
    dtype: str
    compiled: bool = False
    """Whether the model was compiled or ran step by step."""
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    expert_parallel: bool = False
    context_tokens: int
    """Longest prompt plus answer."""
    chat_template: str
    """Hash of the template in use; ``none`` where prompts are plain text."""
    tokenizer: str
    """Hash of the tokenizer's files."""
    batch_invariant: bool = False

    @property
    def digest(self) -> str:
        """Return the fingerprint as 64 hex digits."""
        return fingerprint(asdict(self))


class Engine(Protocol):
    """Answers requests in any order, each repeat once, as soon as it is ready.

    One request's failure is a response with an error; an exception means that the engine died.
    """

    def generate(self, requests: Sequence[Request]) -> Iterator[Response]:
        """Yield one response for each repeat of each request."""
        ...

    def close(self) -> None:
        """Release what the engine holds."""
        ...
