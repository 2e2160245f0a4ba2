"""One answer while its tokens come: when it ends and what its text is, by vLLM's rules."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from evals.identity import fingerprint
from evals.plan import Request
from evals.response import FinishReason, Response

INVALID_PREFIX = "Invalid prefix encountered"
"""How the tokenizer's library begins to say that bytes before a token read otherwise with it."""


class GrowingAnswer:
    """An answer that a model is giving.

    An end token ends it and is no part of the text. A stop string ends it with the token that
    completes it, and the text is cut before the string. The text leaves out special tokens and
    bytes that are no whole character yet; the token ids leave out nothing.

    Args:
        request: What is asked.
        repeats: Which of its repeats this answers; a greedy answer is the same for each.
        budget: Most tokens it may have, at least 1.
        end_ids: Tokens that end it.
        tokenizer: The checkpoint's, as the ``tokenizers`` library has it.
    """

    def __init__(
        self,
        request: Request,
        repeats: Sequence[int],
        *,
        budget: int,
        end_ids: Collection[int],
        tokenizer: Any,
    ) -> None:
        from tokenizers.decoders import DecodeStream

        self.request = request
        self.budget = budget
        self.finish_reason: FinishReason | None = None
        drawn = [request.request_id, list(repeats), request.sampling.seed]
        self.random = random.Random(fingerprint(drawn))
        self._repeats = tuple(repeats)
        self._end_ids = end_ids
        self._tokenizer = tokenizer
        self._stream = DecodeStream(ids=list(request.token_ids), skip_special_tokens=True)
        self._ids: list[int] = []
        self._text = ""

    @property
    def prompt_tokens(self) -> int:
        """Return the tokens of the prompt."""
        return len(self.request.token_ids)

    @property
    def longest(self) -> int:
        """Return the tokens of prompt and answer, if the answer uses its whole budget."""
        return self.prompt_tokens + self.budget

    @property
    def last(self) -> int:
        """Return the token that came last."""
        return self._ids[-1]

    def take(self, token: int) -> None:
        """Append a token; afterwards ``finish_reason`` tells whether the answer has ended."""
        self._ids.append(token)
        if token in self._end_ids:
            self.finish_reason = FinishReason.STOP
            return
        more = self._decode(token)
        self._text += more
        cut = find_stop(self._text, len(more), self.request.stops)
        if cut is not None:
            self._text = self._text[:cut]
            self.finish_reason = FinishReason.STOP
        elif len(self._ids) >= self.budget:
            self.finish_reason = FinishReason.LENGTH

    def _decode(self, token: int) -> str:
        """Return the text that a token adds; empty while a character is incomplete."""
        from tokenizers.decoders import DecodeStream

        try:
            return self._stream.step(self._tokenizer, token) or ""
        except Exception as odd:
            if not str(odd).startswith(INVALID_PREFIX):
                raise
            self._stream = DecodeStream(skip_special_tokens=True)
            return self._stream.step(self._tokenizer, token) or ""

    def responses(self) -> Iterator[Response]:
        """Yield the answer, which has ended, for each of its repeats."""
        if self.finish_reason is None:
            raise ValueError(f"request {self.request.request_id}: the answer has not ended")
        for repeat in self._repeats:
            yield Response(
                request_id=self.request.request_id,
                repeat=repeat,
                text=self._text,
                token_ids=tuple(self._ids),
                finish_reason=self.finish_reason,
                prompt_tokens=self.prompt_tokens,
                output_tokens=len(self._ids),
            )


def find_stop(text: str, new: int, stops: Sequence[str]) -> int | None:
    r"""Return where the stop string begins that the last ``new`` characters complete first.

    Of two that end at the same place the one that is named first counts; None: there is none.

    >>> find_stop("4 apples\n\nQ", 3, ("Q", "\n\n"))
    8
    """
    found: tuple[int, int] | None = None
    for stop in stops if new else ():
        start = text.find(stop, max(0, len(text) - new - len(stop) + 1))
        if start != -1 and (found is None or start + len(stop) < found[0]):
            found = (start + len(stop), start)
    return None if found is None else found[1]
