"""The trainer: one update of the weights from a paid batch, and what there is to tell of it."""

from __future__ import annotations

import math
import time
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.lab.model import copy_weights, load_model
from pipelines.lab.objective import (
    FloatArray,
    group_advantages,
    importance_weights,
    policy_loss,
)
from pipelines.lab.packing import Branch, Row, answer_logits, pack
from pipelines.lab.rollout import PaidBatch, Weights
from pipelines.lab.settings import Settings

if TYPE_CHECKING:
    import torch

SERIES_OF_TOKENS = ("kl", "entropy", "ratio", "difference")


class Trainer:
    """Holds the weights that are trained, and the warm-up policy they are held against.

    Args:
        folder: Checkpoint to start from.
        settings: Learning rate and limits.
    """

    def __init__(self, folder: Path, settings: Settings) -> None:
        import torch

        self._model = load_model(folder)
        self._reference = load_model(folder).requires_grad_(requires_grad=False)
        self._optimizer = torch.optim.Adam(
            self._model.parameters(), betas=(0.9, 0.99), eps=settings.adam_floor
        )
        self._settings = settings
        self._version = 0

    def publish(self) -> Weights:
        """Return the weights as they are, apart from those that are trained on."""
        return Weights(version=self._version, tensors=copy_weights(self._model))

    def train(self, paid: PaidBatch) -> dict[str, float]:
        """Update the weights once and return the step's series.

        An update whose gradient is not finite is left out and told of.
        """
        import torch

        began = time.perf_counter()
        staleness = self._version - paid.batch.version
        rate = self._learning_rate()
        loss, told = self._add_gradients(paid)
        norm = float(
            torch.nn.utils.clip_grad_norm_(self._model.parameters(), self._settings.gradient_limit)
        )
        if math.isfinite(norm):
            for group in self._optimizer.param_groups:
                group["lr"] = rate
            self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        self._version += 1
        return {
            **series_of_answers(paid),
            **series_of_tokens(told),
            "staleness/mean": float(staleness),
            "staleness/max": float(staleness),
            "grad_norm": norm,
            "learning_rate": rate,
            "loss": loss,
            "time/train_s": time.perf_counter() - began,
            "time/generate_s": paid.batch.generate_s,
            "time/weight_sync_s": paid.batch.sync_s,
        }

    def _learning_rate(self) -> float:
        """Return the rate of the next update: it rises over the first ones."""
        share = min(1.0, (self._version + 1) / self._settings.rising_steps)
        return self._settings.learning_rate * share

    def _add_gradients(self, paid: PaidBatch) -> tuple[float, dict[str, FloatArray]]:
        """Add the gradient of the whole batch; return its loss and what was seen at each token."""
        advantages = group_advantages(paid.rewards)
        rows = zip(paid.batch.questions, paid.batch.answers, advantages, strict=True)
        total = sum(len(a.token_ids) for answers in paid.batch.answers for a in answers)
        losses: list[float] = []
        seen: list[tuple[torch.Tensor, ...]] = []
        for _, alike in groupby(rows, key=lambda row: row[0].task.grammar.name):
            loss, told = self._loss(list(alike), total)
            loss.backward()
            losses.append(float(loss.detach()))
            seen.append(told)
        arrays = [
            np.concatenate([part.double().numpy() for part in parts])
            for parts in zip(*seen, strict=True)
        ]
        return math.fsum(losses), dict(zip(SERIES_OF_TOKENS, arrays, strict=True))

    def _loss(self, rows: list[Any], total: int) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        """Return the loss of questions of one task, and what there is to tell of each token.

        Args:
            rows: Question, its answers, their advantages.
            total: Answer tokens of the whole batch.
        """
        import torch

        answers = [answer for _, group, _ in rows for answer in group]
        packed = pack(
            [
                Row(
                    prompt=question.prompt,
                    branches=tuple(Branch(answer=answer.token_ids) for answer in group),
                )
                for question, group, _ in rows
            ]
        )
        sampled = torch.tensor([value for answer in answers for value in answer.log_probs])
        lengths = torch.tensor([len(answer.token_ids) for answer in answers])
        advantages = torch.tensor(
            np.concatenate([values for _, _, values in rows]), dtype=torch.float32
        ).repeat_interleave(lengths)
        all_log_probs = answer_logits(self._model, packed).log_softmax(-1)
        with torch.no_grad():
            reference = answer_logits(self._reference, packed).log_softmax(-1)
        log_probs = all_log_probs.gather(1, packed.targets[:, None])[:, 0]
        ratios, weights = importance_weights(log_probs, sampled, self._settings.ratio_limit)
        divergence = (all_log_probs.exp() * (all_log_probs - reference)).sum(-1)
        entropy = -(all_log_probs.exp() * all_log_probs).sum(-1)
        loss = policy_loss(log_probs, weights, advantages)
        loss = (loss + self._settings.kl_weight * divergence.sum()) / total
        difference = (log_probs - sampled).abs()
        told = (divergence.detach(), entropy.detach(), ratios, difference.detach())
        return loss, told


def series_of_answers(paid: PaidBatch) -> dict[str, float]:
    """Return what rewards and answers of a batch come to."""
    rewards = paid.rewards
    answers = [answer for group in paid.batch.answers for answer in group]
    lengths = np.array([len(answer.token_ids) for answer in answers])
    capabilities = np.array(
        [question.task.grammar.capability.value for question in paid.batch.questions]
    )
    return {
        "reward/mean": float(rewards.mean()),
        "reward/std": float(rewards.std()),
        **{
            f"reward/{name}": float(rewards[capabilities == name].mean())
            for name in dict.fromkeys(capabilities.tolist())
        },
        "response_length/mean": float(lengths.mean()),
        "response_length/max": float(lengths.max()),
        "truncated_share": float(np.mean([not answer.ended for answer in answers])),
        "zero_variance_share": float(np.mean(rewards.std(axis=1) == 0)),
    }


def series_of_tokens(told: dict[str, FloatArray]) -> dict[str, float]:
    """Return what was seen at the answers' tokens, over all tokens of a batch."""
    return {
        "kl/reference": float(told["kl"].mean()),
        "entropy": float(told["entropy"].mean()),
        "importance_ratio/mean": float(told["ratio"].mean()),
        "importance_ratio/p99": float(np.quantile(told["ratio"], 0.99)),
        "importance_ratio/max": float(told["ratio"].max()),
        "logprob_difference/mean": float(told["difference"].mean()),
        "logprob_difference/max": float(told["difference"].max()),
    }
