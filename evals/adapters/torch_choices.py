"""The log-likelihoods of a request's branches under a model of transformers: one pass a branch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from evals.engine import error_response
from evals.plan import Request
from evals.response import FinishReason, LogLikelihood, Response


def choice_responses(model: Any, request: Request) -> Iterator[Response]:
    """Yield a response for each repeat of a request that asks for log-likelihoods."""
    found = [
        read_branch(model, request.token_ids + branch.given, branch.asked)
        for branch in request.branches
    ]
    finite = all(abs(one.log_prob) < float("inf") for one in found)
    for repeat in request.repeats:
        if not finite:
            yield error_response(request, repeat, "engine: a log-probability is not finite")
            continue
        yield Response(
            request_id=request.request_id,
            repeat=repeat,
            text=None,
            token_ids=(),
            finish_reason=FinishReason.STOP,
            prompt_tokens=request.prompt_tokens,
            output_tokens=0,
            log_likelihoods=tuple(found),
        )


def read_branch(model: Any, prompt: Sequence[int], asked: Sequence[int]) -> LogLikelihood:
    """Return how probable a text is after a prompt."""
    import torch

    ids = torch.tensor([[*prompt, *asked]], device=model.device)
    with torch.inference_mode():
        logits = model(input_ids=ids).logits[0, len(prompt) - 1 : -1].float()
    targets = ids[0, len(prompt) :]
    log_probs = logits.log_softmax(-1).gather(1, targets[:, None])
    return LogLikelihood(
        log_prob=float(log_probs.double().sum()),
        greedy=bool((logits.argmax(-1) == targets).all()),
    )
