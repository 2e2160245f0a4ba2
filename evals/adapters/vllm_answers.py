"""What vLLM is asked for one repeat of a request, and how its outputs become the response.

A text is one call. Of choices that are one token each after the same prompt all log-likelihoods
come from one call; else each choice is a call that generates it by force, or, where it is longer
than what stands before it, one that reads it as a prompt.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from evals.engine import error_response
from evals.identity import fingerprint
from evals.plan import Branch, Request
from evals.response import FinishReason, LogLikelihood, Response

FORCED = "pawl_forced_tokens"
"""Key of ``SamplingParams.extra_args``: what ``forced_tokens.ForcedTokens`` lets be generated."""

MOST_LABELS = 128
"""Token ids whose log-probabilities one call gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request to vLLM."""

    prompt: tuple[int, ...]
    parameters: Any
    """``SamplingParams``."""


class VllmAnswer(Protocol):
    """What comes of one repeat of a request."""

    request: Request
    repeat: int

    def calls(self) -> list[Call]:
        """Return what vLLM is asked."""
        ...

    def take(self, number: int, output: Any) -> Response | None:
        """Take the finished output of a call; return the response once it is whole."""
        ...


class TextAnswer:
    """A text.

    Args:
        request: What is asked.
        repeat: Which of its repeats.
        stop_ids: Tokens that end a text.
    """

    def __init__(self, request: Request, repeat: int, stop_ids: Sequence[int]) -> None:
        self.request = request
        self.repeat = repeat
        self._stop_ids = stop_ids

    def calls(self) -> list[Call]:
        """Return the one call."""
        drawn = self.request.sampling
        parameters = new_parameters(
            temperature=drawn.temperature,
            top_p=drawn.top_p,
            top_k=drawn.top_k,
            seed=int(fingerprint([self.request.request_id, self.repeat, drawn.seed])[:8], 16),
            max_tokens=self.request.max_tokens,
            stop=list(self.request.stops),
            stop_token_ids=list(self._stop_ids),
        )
        return [Call(prompt=self.request.token_ids, parameters=parameters)]

    def take(self, _number: int, output: Any) -> Response:
        """Return vLLM's finished output as the response."""
        done = output.outputs[0]
        if done.finish_reason not in {"stop", "length"}:
            return error_response(
                self.request, self.repeat, f"engine: ended with {done.finish_reason}"
            )
        return Response(
            request_id=self.request.request_id,
            repeat=self.repeat,
            text=done.text,
            token_ids=tuple(done.token_ids),
            finish_reason=FinishReason(done.finish_reason),
            prompt_tokens=len(self.request.token_ids),
            output_tokens=len(done.token_ids),
        )


class ChoicesAnswer:
    """The log-likelihoods of a request's branches.

    Args:
        request: What is asked.
        repeat: Which of its repeats.
    """

    def __init__(self, request: Request, repeat: int) -> None:
        self.request = request
        self.repeat = repeat
        self._labels = are_labels(request.branches)
        self._found: dict[int, LogLikelihood] = {}

    def calls(self) -> list[Call]:
        """Return one call for all branches, or one for each."""
        shared, branches = self.request.token_ids, self.request.branches
        if self._labels:
            labels = sorted({branch.asked[0] for branch in branches})
            return [
                Call(
                    prompt=shared + branches[0].given,
                    parameters=new_parameters(max_tokens=1, logprob_token_ids=labels),
                )
            ]
        return [branch_call(shared + branch.given, branch.asked) for branch in branches]

    def take(self, number: int, output: Any) -> Response | None:
        """Take a call's log-probabilities; return the response when all are there."""
        try:
            if self._labels:
                self._found = dict(enumerate(read_labels(self.request.branches, output)))
            else:
                self._found[number] = read_branch(self.request.branches[number], output)
        except (KeyError, IndexError, TypeError, ValueError) as bad:
            return error_response(
                self.request, self.repeat, f"engine: log-probabilities can't be read ({bad!r})"
            )
        if len(self._found) < len(self.request.branches):
            return None
        return Response(
            request_id=self.request.request_id,
            repeat=self.repeat,
            text=None,
            token_ids=(),
            finish_reason=FinishReason.STOP,
            prompt_tokens=self.request.prompt_tokens,
            output_tokens=0,
            log_likelihoods=tuple(one for _, one in sorted(self._found.items())),
        )


def new_parameters(**options: Any) -> Any:
    """Return vLLM's sampling parameters; greedy where nothing else is said."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    return SamplingParams(
        **{"temperature": 0.0, **options}, output_kind=RequestOutputKind.FINAL_ONLY
    )


def are_labels(branches: Sequence[Branch]) -> bool:
    """Return whether all texts are one token after the same prompt."""
    return (
        all(len(branch.asked) == 1 for branch in branches)
        and len({branch.given for branch in branches}) == 1
        and len({branch.asked for branch in branches}) <= MOST_LABELS
    )


def branch_call(prompt: tuple[int, ...], asked: tuple[int, ...]) -> Call:
    """Return the call that tells the log-likelihood of one text.

    Its tokens are generated by force; of a text that is longer than its prompt only the last one
    is, and the others are read as a prompt, which the prefix cache has no part in.
    """
    read = len(asked) - 1 if len(asked) > len(prompt) else 0
    return Call(
        prompt=prompt + asked[:read],
        parameters=new_parameters(
            max_tokens=len(asked) - read,
            logprobs=0,
            prompt_logprobs=0 if read else None,
            ignore_eos=True,
            detokenize=False,
            extra_args={FORCED: list(asked[read:])},
        ),
    )


def read_labels(branches: Sequence[Branch], output: Any) -> list[LogLikelihood]:
    """Return the log-likelihoods of one-token texts from their one call."""
    done = output.outputs[0]
    chosen = done.token_ids[0]
    table = done.logprobs[0]
    return [
        log_likelihood([table[branch.asked[0]].logprob], greedy=branch.asked[0] == chosen)
        for branch in branches
    ]


def read_branch(branch: Branch, output: Any) -> LogLikelihood:
    """Return the log-likelihood of one text from its call."""
    done = output.outputs[0]
    read = len(branch.asked) - len(done.token_ids)
    if tuple(done.token_ids) != branch.asked[read:]:
        raise ValueError("other tokens were generated")
    tables = [*(output.prompt_logprobs[-read:] if read else ()), *done.logprobs]
    rows = [table[token] for table, token in zip(tables, branch.asked, strict=True)]
    return log_likelihood([row.logprob for row in rows], greedy=all(row.rank == 1 for row in rows))


def log_likelihood(log_probs: Sequence[float], *, greedy: bool) -> LogLikelihood:
    """Return the sum of tokens' log-probabilities.

    Raises:
        ValueError: One of them is not finite.
    """
    total = math.fsum(log_probs)
    if not math.isfinite(total):
        raise ValueError("not finite")
    return LogLikelihood(log_prob=total, greedy=greedy)
