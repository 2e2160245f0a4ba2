"""Solved examples in plain text, for models without a chat template."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainPrompt:
    """A numbered list of solved questions that ends with an open one.

    The numbers make a stop string that a model writes only when it goes on to invent the next
    question: the word alone ("Problem:") occurs in ordinary answers, which it would cut.
    """

    asks: str
    """Word before a question's number, such as ``Problem``."""
    answers: str
    """Word before an answer, such as ``Solution``."""
    shots: tuple[tuple[str, str], ...]
    """Questions and answers; none of them is an item."""

    def fill(self, question: str, preamble: str = "") -> str:
        """Return the examples and ``question``, up to where the answer begins."""
        parts = [preamble] if preamble else []
        for number, (shot, answer) in enumerate(self.shots, 1):
            parts.append(f"{self.asks} {number}: {shot}\n{self.answers}: {answer}")
        parts.append(f"{self.asks} {len(self.shots) + 1}: {question}\n{self.answers}:")
        return "\n\n".join(parts)

    @property
    def stop(self) -> str:
        """Return how the question after the open one would begin."""
        return f"\n{self.asks} {len(self.shots) + 2}:"
