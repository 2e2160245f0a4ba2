"""A public engine without a model: answers come from a function. For tests of everything else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from evals.plan import Request
from evals.response import FinishReason, Response


class ScriptedEngine:
    """Answers each request with ``script(request, repeat)``.

    Args:
        script: Gives the text of an answer; the same request always gets the same one.
        delay_s: Seconds to wait before each answer, so that a test can kill in between.
    """

    def __init__(self, script: Callable[[Request, int], str], delay_s: float = 0.0) -> None:
        self._script = script
        self._delay_s = delay_s

    def generate(self, requests: Sequence[Request]) -> Iterator[Response]:
        """Yield one response for each repeat of each request, in order."""
        for request in requests:
            for repeat in request.repeats:
                if self._delay_s:
                    time.sleep(self._delay_s)
                text = self._script(request, repeat)
                ids = tuple(text.encode("utf-8", "surrogatepass"))
                cut = len(ids) > request.max_tokens
                yield Response(
                    request_id=request.request_id,
                    repeat=repeat,
                    text=text,
                    token_ids=ids,
                    finish_reason=FinishReason.LENGTH if cut else FinishReason.STOP,
                    prompt_tokens=len(request.token_ids),
                    output_tokens=len(ids),
                )

    def close(self) -> None:
        """Hold nothing, so release nothing."""
