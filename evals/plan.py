"""The plan of an evaluation: every request, named by its content, before the first is sent."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Protocol

from evals.errors import InputError
from evals.identity import fingerprint
from evals.task import AnyTask, Choice, ChoiceTask, Item, Message, RequestKind, TaskSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How tokens are drawn; explicit always, never the checkpoint's own defaults."""

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    """0: no limit."""
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A text whose probability is asked, after the prompt that the branches of a request share."""

    given: tuple[int, ...] = ()
    """Tokens between the shared prompt and the text."""
    asked: tuple[int, ...]
    """The text's tokens."""


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
    branches: tuple[Branch, ...] = ()
    """Texts whose probability is asked, where that is the kind."""

    @property
    def prompt_tokens(self) -> int:
        """Return the tokens that are read: the prompt's, and those of its branches."""
        of_branches = (len(branch.given) + len(branch.asked) for branch in self.branches)
        return len(self.token_ids) + sum(of_branches)

    @property
    def output_tokens_at_most(self) -> int:
        """Return the tokens of an answer that uses its whole budget; 0 where no text is asked."""
        return 0 if self.branches else self.max_tokens


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
    branches: tuple[Branch, ...] = (),
) -> Request:
    """Return a request named by its content: item, tokens, stops, budget and sampling."""
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
        branches=branches,
    )
    content = asdict(request)
    del content["request_id"], content["repeats"]
    if not branches:
        del content["branches"]
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

    def encode_choice(self, choice: Choice) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the token ids of a choice's context and of its continuation."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlan:
    """What is asked of one task."""

    task: AnyTask
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
        return sum(r.prompt_tokens * len(r.repeats) for r in self.requests)

    @property
    def output_tokens_at_most(self) -> int:
        """Return the tokens of all answers if each used its whole budget."""
        return sum(r.output_tokens_at_most * len(r.repeats) for r in self.requests)


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
            if isinstance(planned.task, ChoiceTask):
                asked = planned.task.choices(item, chat=encoder.chat)
                encoded = [encoder.encode_choice(choice) for choice in asked]
                requests.append(choice_request(spec, item, encoded, context_tokens))
                continue
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


def choice_request(
    spec: TaskSpec,
    item: Item,
    choices: Sequence[tuple[tuple[int, ...], tuple[int, ...]]],
    context_tokens: int,
) -> Request:
    """Return the request for the log-likelihoods of an item's choices.

    All its branches share one prompt: what their contexts begin with alike. Its budget is that of
    the longest choice, or 0 where one of them has no tokens or does not fit into the context: it is
    never sent then.

    Args:
        spec: Of the task.
        item: What is asked.
        choices: Token ids of each choice's context and of its continuation.
        context_tokens: Longest prompt plus answer.

    Raises:
        InputError: There is no choice.
    """
    if not choices:
        raise InputError(
            "there are no choices", f"task {spec.name}, item {item.item_id}", "correct the task"
        )
    shared = count_shared([context for context, _ in choices])
    fits = all(
        context and asked and len(context) + len(asked) <= context_tokens
        for context, asked in choices
    )
    return build_request(
        task=spec.name,
        item_id=item.item_id,
        kind=spec.kind,
        token_ids=choices[0][0][:shared],
        stops=(),
        max_tokens=max(len(asked) for _, asked in choices) if fits else 0,
        sampling=Sampling(),
        branches=tuple(Branch(given=context[shared:], asked=asked) for context, asked in choices),
    )


def count_shared(sequences: Sequence[Sequence[int]]) -> int:
    """Return how many elements all sequences begin with.

    >>> count_shared([(1, 4, 7, 9), (1, 4, 8)]), count_shared([(1, 4), (1, 4)])
    (2, 2)
    """
    columns = enumerate(zip(*sequences, strict=False))
    shortest = min(len(sequence) for sequence in sequences)
    return next((place for place, column in columns if len(set(column)) > 1), shortest)


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
