"""Several answers to one question in one row: the question is computed once for all of them.

A row is the prompt and behind it the branches. A branch sees the prompt and itself, and its
positions go on from the prompt's, so that it is computed as if it were alone behind the prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

Tokens = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One way on behind a prompt."""

    given: Tokens = ()
    """Tokens that are read only."""
    answer: Tokens
    """Tokens whose probabilities are wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A prompt and its branches."""

    prompt: Tokens
    branches: tuple[Branch, ...]

    @property
    def tokens(self) -> int:
        """Return the row's length."""
        return len(self.prompt) + sum(len(b.given) + len(b.answer) for b in self.branches)


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """Rows as the model reads them, and where in them the answers' tokens are foretold."""

    input_ids: torch.Tensor
    """(rows, tokens)."""
    positions: torch.Tensor
    """(rows, tokens)."""
    mask: torch.Tensor
    """(rows, 1, tokens, tokens); True where a token sees another."""
    sources: torch.Tensor
    """Of each answer token the place, counted through all rows, that foretells it."""
    targets: torch.Tensor
    """The answer tokens: branch after branch, row after row."""


def pack(rows: Sequence[Row]) -> Packed:
    """Return ``rows`` as one batch."""
    import torch

    width = max(row.tokens for row in rows)
    ids = np.zeros((len(rows), width), dtype=np.int64)
    positions = np.zeros((len(rows), width), dtype=np.int64)
    branch_of = np.full((len(rows), width), -1, dtype=np.int64)
    sources: list[int] = []
    targets: list[int] = []
    for number, row in enumerate(rows):
        start = len(row.prompt)
        ids[number, :start] = row.prompt
        positions[number, :start] = np.arange(start)
        branch_of[number, :start] = 0
        end = start
        for name, branch in enumerate(row.branches, 1):
            tokens = branch.given + branch.answer
            first = number * width + end - 1
            before = np.arange(first, first + len(tokens))
            before[0] = number * width + start - 1
            sources.extend(before[len(branch.given) :].tolist())
            targets.extend(branch.answer)
            ids[number, end : end + len(tokens)] = tokens
            positions[number, end : end + len(tokens)] = start + np.arange(len(tokens))
            branch_of[number, end : end + len(tokens)] = name
            end += len(tokens)
    seen, sees = branch_of[:, None, :], branch_of[:, :, None]
    mask = np.tri(width, dtype=bool)[None] & ((seen == 0) | (seen == sees))
    return Packed(
        input_ids=torch.from_numpy(ids),
        positions=torch.from_numpy(positions),
        mask=torch.from_numpy(mask[:, None]),
        sources=torch.tensor(sources),
        targets=torch.tensor(targets),
    )


def answer_logits(model: Any, packed: Packed) -> torch.Tensor:
    """Return the logits from which each answer token was to be foretold, (tokens, vocabulary)."""
    hidden = model.model(
        input_ids=packed.input_ids,
        attention_mask=packed.mask,
        position_ids=packed.positions,
        use_cache=False,
    ).last_hidden_state
    logits: torch.Tensor = model.lm_head(hidden.flatten(0, 1)[packed.sources])
    return logits
