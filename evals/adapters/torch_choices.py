"""The log-likelihoods of a request's branches under a model of transformers.

Branches that differ in their last token only are one pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from evals.engine import choices_response, first_line
from evals.errors import EngineError
from evals.plan import Request
from evals.response import LogLikelihood, Response


def choice_responses(model: Any, request: Request) -> Iterator[Response]:
    """Yield a response for each repeat of a request that asks for log-likelihoods.

    Raises:
        EngineError: The model failed, as where memory runs out.
    """
    read: dict[tuple[tuple[int, ...], int], Any] = {}
    found = []
    for branch in request.branches:
        ids = (*request.token_ids, *branch.given, *branch.asked[:-1])
        key = (ids, len(branch.asked))
        if key not in read:
            read[key] = last_log_probs(model, ids, len(branch.asked))
        found.append(read_branch(read[key], branch.asked))
    for repeat in request.repeats:
        yield choices_response(request, repeat, found)


def last_log_probs(model: Any, ids: Sequence[int], count: int) -> Any:
    """Return the log-probabilities after each of a text's last tokens (count, vocabulary)."""
    import torch

    try:
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([ids], device=model.device)).logits
    except RuntimeError as bad:
        raise EngineError(
            f"the model failed: {first_line(bad)}",
            "engine",
            "lower engine.context_tokens in pawl.yaml if memory ran out",
        ) from bad
    return logits[0, -count:].float().log_softmax(-1)


def read_branch(log_probs: Any, asked: Sequence[int]) -> LogLikelihood:
    """Return the log-likelihood of a text; ``log_probs`` (tokens, vocabulary) are before each."""
    import torch

    targets = torch.tensor(asked, device=log_probs.device)[:, None]
    values = log_probs.gather(1, targets)
    return LogLikelihood(
        log_prob=float(values.double().sum()),
        greedy=bool(((log_probs >= values).sum(-1) == 1).all()),
    )
