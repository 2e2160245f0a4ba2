"""The plan of an evaluation: every request, named by its content, before the first is sent."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, replace

from evals.identity import fingerprint
from evals.task import RequestKind


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
