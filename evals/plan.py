"""The plan of an evaluation: every request, named by its content, before the first is sent."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Protocol

from evals.identity import fingerprint
from evals.task import Item, Message, RequestKind, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How tokens are drawn; explicit always, never the checkpoint's own defaults."""

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    """0: no limit."""
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the engine is asked for one item; k repeats are rows of one request."""

    request_id: str
    task: str
    item_id: str
    kind: RequestKind
    token_ids: tuple[int, ...]
    """The prompt, exactly as sent."""
    stops: tuple[str, ...]
    max_tokens: int
    """Budget of the answer, cut to what the context leaves; 0 where the prompt does not fit."""
    sampling: Sampling
    repeats: tuple[int, ...] = (0,)
    """Which repeats are wanted: 0 to k - 1 in a plan, fewer where some are stored."""


def build_request(
    *,
    task: str,
    item_id: str,
    kind: RequestKind,
    token_ids: tuple[int, ...],
    stops: tuple[str, ...],
    max_tokens: int,
    sampling: Sampling,
    repeats: int = 1,
) -> Request:
    """Return a request named by its content: item, token ids, stops, budget and sampling."""
    request = Request(
        request_id="",
        task=task,
        item_id=item_id,
        kind=kind,
        token_ids=token_ids,
        stops=stops,
        max_tokens=max_tokens,
        sampling=sampling,
        repeats=tuple(range(repeats)),
    )
    content = asdict(request)
    del content["request_id"], content["repeats"]
    return replace(request, request_id=fingerprint(content))


class Encoder(Protocol):
    """The checkpoint's own tokenizer and chat template."""

    @property
    def chat(self) -> bool:
        """Return whether prompts are conversations."""
        ...

    def encode(self, prompt: Sequence[Message] | str) -> tuple[int, ...]:
        """Return a prompt's token ids, exactly as they will be sent."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlan:
    """What is asked of one task."""

    task: Task
    limit: int | None
    repeats: int
    sampling: Sampling
    max_tokens: int | None = None
    """Budget of an answer instead of the task's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Every item and request of an evaluation, in the order of the suite."""

    items: Mapping[str, tuple[Item, ...]]
    """By task name."""
    requests: tuple[Request, ...]

    @property
    def fingerprint(self) -> str:
        """Return the hash of all that is asked."""
        return fingerprint([[r.request_id, len(r.repeats)] for r in self.requests])

    @property
    def responses(self) -> int:
        """Return how many responses a complete evaluation has."""
        return sum(len(request.repeats) for request in self.requests)

    @property
    def prompt_tokens(self) -> int:
        """Return the tokens of all prompts, each counted once per repeat."""
        return sum(len(r.token_ids) * len(r.repeats) for r in self.requests)

    @property
    def output_tokens_at_most(self) -> int:
        """Return the tokens of all answers if each used its whole budget."""
        return sum(r.max_tokens * len(r.repeats) for r in self.requests)


def build_plan(tasks: Sequence[TaskPlan], encoder: Encoder, context_tokens: int) -> Plan:
    """Return the requests for all tasks.

    A limit takes the items with the smallest ids: as good as drawn at random, the same on every
    machine, and a larger limit keeps what a smaller one had. An answer's budget is cut to what
    the context leaves; a prompt that leaves nothing has budget 0 and is never sent.
    """
    items: dict[str, tuple[Item, ...]] = {}
    requests: list[Request] = []
    for planned in tasks:
        spec = planned.task.spec
        budget = planned.max_tokens or spec.max_tokens
        chosen = sorted(planned.task.items(), key=lambda item: item.item_id)[: planned.limit]
        items[spec.name] = tuple(chosen)
        for item in chosen:
            prompt = planned.task.prompt(item, chat=encoder.chat and not spec.completion)
            token_ids = encoder.encode(prompt)
            requests.append(
                build_request(
                    task=spec.name,
                    item_id=item.item_id,
                    kind=spec.kind,
                    token_ids=token_ids,
                    stops=spec.stops,
                    max_tokens=max(0, min(budget, context_tokens - len(token_ids))),
                    sampling=planned.sampling,
                    repeats=planned.repeats,
                )
            )
    return Plan(items=items, requests=tuple(requests))


ResponseKey = tuple[str, int]
"""Request id and repeat: what is stored exactly once."""


def owed_requests(
    requests: Iterable[Request], stored: Collection[ResponseKey]
) -> tuple[Request, ...]:
    """Return what is planned and not stored, in plan order, each with its missing repeats."""
    owed = []
    for request in requests:
        missing = tuple(r for r in request.repeats if (request.request_id, r) not in stored)
        if missing:
            owed.append(replace(request, repeats=missing))
    return tuple(owed)
