"""A task: its items, the prompt of each, and the rule that scores an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from evals.response import LogLikelihood
from evals.scoring import Judgement


class Capability(StrEnum):
    """What a task measures."""

    REASONING = "reasoning"
    CODE = "code"
    MULTILINGUAL = "multilingual"
    LONG_CONTEXT = "long_context"
    SAFETY = "safety"
    INSTRUCTION_FOLLOWING = "instruction_following"
    TOOL_USE = "tool_use"


class RequestKind(StrEnum):
    """What is asked of the engine."""

    GENERATE = "generate"
    """Text until a stop string, an end token or the budget."""
    LOG_LIKELIHOOD = "loglikelihood"
    """How probable each of several given texts is after its context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One turn of a conversation; text only."""

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One question of a task."""

    item_id: str
    doc: dict[str, Any]
    """The question as data: JSON types only."""
    target: str
    """The reference answer, as text."""
    cluster: str | None = None
    """Items that share content (one question in ten languages) share this; None: alone."""
    stratum: str | None = None
    """A fixed category that a replication would have again (language, length, subject)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    """What identifies a task and its primary metric."""

    name: str
    version: str
    """Of prompt and items; a change makes results incomparable."""
    capability: Capability
    metric: str
    """Primary metric."""
    filter: str = "none"
    """Primary filter (extraction rule), lm-eval's word."""
    higher_is_better: bool = True
    kind: RequestKind = RequestKind.GENERATE
    num_fewshot: int = 0
    max_tokens: int = 256
    """Budget of the answer."""
    stops: tuple[str, ...] = ()
    binary: bool = True
    """True where each score is 0 or 1."""
    completion: bool = False
    """True where the answer continues the prompt's own text: no chat template in between."""
    prompt_fingerprint: str = ""
    """Hash of all that makes the prompt besides the item: template text, few-shot, seed."""

    @property
    def metric_key(self) -> str:
        """Return ``metric,filter``, lm-eval's spelling."""
        return f"{self.metric},{self.filter}"


Prompt = tuple[Message, ...] | str
"""A conversation, or plain text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A text whose probability after a context is asked."""

    context: Prompt
    continuation: str


class Task(Protocol):
    """A task as the job sees it; lm-eval's and Pawl's own behave alike."""

    @property
    def spec(self) -> TaskSpec:
        """Return what identifies the task."""
        ...

    def items(self) -> Sequence[Item]:
        """Return all items; ids are unique, the order carries no meaning."""
        ...

    def prompt(self, item: Item, *, chat: bool) -> Prompt:
        """Return the conversation (``chat``) or the plain text that asks ``item``."""
        ...

    def judge(self, item: Item, text: str) -> Judgement:
        """Return what the task's own rule says of ``text`` as the answer to ``item``."""
        ...


@runtime_checkable
class ChoiceTask(Protocol):
    """A task that asks how probable given texts are; its kind is ``LOG_LIKELIHOOD``."""

    @property
    def spec(self) -> TaskSpec:
        """Return what identifies the task."""
        ...

    def items(self) -> Sequence[Item]:
        """Return all items; ids are unique, the order carries no meaning."""
        ...

    def choices(self, item: Item, *, chat: bool) -> tuple[Choice, ...]:
        """Return the texts of an item, each with its context."""
        ...

    def judge_choices(self, item: Item, found: Sequence[LogLikelihood]) -> Judgement:
        """Return what the task's own rule says of the choices' log-likelihoods, in order."""
        ...


AnyTask = Task | ChoiceTask
