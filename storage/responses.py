"""Responses in the lake: each key once, the first one stored for good."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from evals.plan import ResponseKey
from evals.response import FinishReason, LogLikelihood, Response
from storage.connection import Lake, Row, source, transaction
from storage.tables import RESPONSES
from storage.text import decode_json, decode_text, encode_json, encode_text


def put_responses(lake: Lake, evaluation_id: str, responses: Iterable[Response]) -> int:
    """Return how many responses were not stored; what is stored stays as it is.

    Of several with one key the first counts.
    """
    first: dict[ResponseKey, Response] = {}
    for response in responses:
        first.setdefault((response.request_id, response.repeat), response)
    if not first:
        return 0
    rows = _rows(evaluation_id, tuple(first.values()))
    return transaction(lake, lambda tx: tx.insert_missing(RESPONSES, rows))


def load_responses(
    lake: Lake, evaluation_id: str, *, snapshot: int | None = None
) -> tuple[Response, ...]:
    """Return an evaluation's responses by request id and repeat."""
    found = lake.table(
        "SELECT request_id, repeat, text, token_ids, finish_reason, prompt_tokens, output_tokens, "
        f"error, log_likelihoods FROM {source(RESPONSES, snapshot)} WHERE evaluation_id = ? "
        "ORDER BY request_id, repeat",
        [evaluation_id],
    )
    columns = (column.to_pylist() for column in found.columns)
    return tuple(response_of(row) for row in zip(*columns, strict=True))


def response_of(row: Row) -> Response:
    """Return a row of ``load_responses``' columns as a response."""
    request_id, repeat, text, token_ids, finish_reason, prompt_tokens, output_tokens = row[:7]
    error, log_likelihoods = row[7:]
    return Response(
        request_id=request_id,
        repeat=repeat,
        text=decode_text(text),
        token_ids=tuple(token_ids),
        finish_reason=FinishReason(finish_reason),
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        error=decode_text(error),
        log_likelihoods=decode_log_likelihoods(log_likelihoods),
    )


def encode_log_likelihoods(found: Sequence[LogLikelihood] | None) -> str | None:
    """Return log-likelihoods as JSON; None where a text was asked for."""
    return None if found is None else encode_json([[one.log_prob, one.greedy] for one in found])


def decode_log_likelihoods(text: str | None) -> tuple[LogLikelihood, ...] | None:
    """Return the log-likelihoods that ``encode_log_likelihoods`` wrote."""
    if text is None:
        return None
    return tuple(
        LogLikelihood(log_prob=value, greedy=greedy) for value, greedy in decode_json(text)
    )


def load_response_keys(lake: Lake, evaluation_id: str) -> frozenset[ResponseKey]:
    """Return the keys of an evaluation's responses."""
    found = lake.table(
        "SELECT request_id, repeat FROM lake.responses WHERE evaluation_id = ?", [evaluation_id]
    )
    return frozenset(
        zip(found.column("request_id").to_pylist(), found.column("repeat").to_pylist(), strict=True)
    )


def _rows(evaluation_id: str, responses: tuple[Response, ...]) -> pa.Table:
    columns = {
        "evaluation_id": [evaluation_id] * len(responses),
        "request_id": [response.request_id for response in responses],
        "repeat": [response.repeat for response in responses],
        "text": [encode_text(response.text) for response in responses],
        "token_ids": [response.token_ids for response in responses],
        "finish_reason": [response.finish_reason.value for response in responses],
        "prompt_tokens": [response.prompt_tokens for response in responses],
        "output_tokens": [response.output_tokens for response in responses],
        "error": [encode_text(response.error) for response in responses],
        "log_likelihoods": [encode_log_likelihoods(r.log_likelihoods) for r in responses],
    }
    return pa.table(columns, schema=RESPONSES.schema)
