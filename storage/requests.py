"""Requests: the plan of an evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import pyarrow as pa

from evals.plan import Branch, Request, Sampling
from evals.task import RequestKind
from storage.connection import Lake, Transaction, source
from storage.tables import REQUESTS
from storage.text import decode_json, decode_text, encode_json, encode_text


def insert_requests(tx: Transaction, evaluation_id: str, requests: Sequence[Request]) -> int:
    """Return how many requests were not stored; a request's position is that in ``requests``."""
    columns = {
        "evaluation_id": [evaluation_id] * len(requests),
        "request_id": [request.request_id for request in requests],
        "position": range(len(requests)),
        "task": [encode_text(request.task) for request in requests],
        "item_id": [request.item_id for request in requests],
        "kind": [request.kind.value for request in requests],
        "token_ids": [request.token_ids for request in requests],
        "stops": [[encode_text(stop) for stop in request.stops] for request in requests],
        "max_tokens": [request.max_tokens for request in requests],
        "sampling": [encode_json(asdict(request.sampling)) for request in requests],
        "repeats": [request.repeats for request in requests],
        "branches": [encode_branches(request.branches) for request in requests],
    }
    return tx.insert_missing(REQUESTS, pa.table(columns, schema=REQUESTS.schema))


def load_requests(
    lake: Lake, evaluation_id: str, *, snapshot: int | None = None
) -> tuple[Request, ...]:
    """Return an evaluation's plan, in plan order."""
    found = lake.table(
        "SELECT request_id, task, item_id, kind, token_ids, stops, max_tokens, sampling, repeats, "
        f"branches FROM {source(REQUESTS, snapshot)} WHERE evaluation_id = ? "
        "ORDER BY position, request_id",
        [evaluation_id],
    )
    samplings = {
        text: Sampling(**decode_json(text)) for text in set(found.column("sampling").to_pylist())
    }
    return tuple(
        Request(
            request_id=request_id,
            task=decode_text(task),
            item_id=item_id,
            kind=RequestKind(kind),
            token_ids=tuple(token_ids),
            stops=tuple(decode_text(stop) for stop in stops),
            max_tokens=max_tokens,
            sampling=samplings[sampling],
            repeats=tuple(repeats),
            branches=decode_branches(branches),
        )
        for (
            request_id,
            task,
            item_id,
            kind,
            token_ids,
            stops,
            max_tokens,
            sampling,
            repeats,
            branches,
        ) in zip(*(column.to_pylist() for column in found.columns), strict=True)
    )


def encode_branches(branches: Sequence[Branch]) -> str | None:
    """Return branches as JSON; None where there are none."""
    return encode_json([[one.given, one.asked] for one in branches]) if branches else None


def decode_branches(text: str | None) -> tuple[Branch, ...]:
    """Return the branches that ``encode_branches`` wrote."""
    found = decode_json(text) if text is not None else []
    return tuple(Branch(given=tuple(given), asked=tuple(asked)) for given, asked in found)
