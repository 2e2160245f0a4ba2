"""What the trainer maximises: AIPO, policy gradient on slightly stale answers.

Source: Wu et al. (2025), LlamaRL, arXiv:2505.24034: the gradient of an answer token's log
probability counts with min(pi / mu, rho) times the advantage, where mu is the policy that sampled
it; the ratio is limited on one side only. Advantages are normalised in the group of answers to one
question, as in GRPO (Shao et al., 2024, arXiv:2402.03300).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import torch

FloatArray = npt.NDArray[np.float64]


def group_advantages(rewards: FloatArray) -> FloatArray:
    """Return each answer's reward in standard deviations above the mean of its question's.

    Args:
        rewards: (questions, answers).

    A question whose answers are all paid alike says nothing: its advantages are 0.

    >>> group_advantages(np.array([[1.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0]])).tolist()
    [[1.0, -1.0, -1.0, 1.0], [0.0, 0.0, 0.0, 0.0]]
    """
    above = rewards - rewards.mean(axis=1, keepdims=True)
    spread = rewards.std(axis=1, keepdims=True)
    advantages: FloatArray = np.divide(above, spread, out=np.zeros_like(above), where=spread > 0)
    return advantages


def importance_weights(
    log_probs: torch.Tensor, sampled_log_probs: torch.Tensor, limit: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the importance ratio of each token, and what of it counts.

    Args:
        log_probs: Of the tokens under the policy that is trained.
        sampled_log_probs: Under the policy that sampled them.
        limit: The most that a ratio counts for.

    Neither is differentiated through.
    """
    ratios = (log_probs.detach() - sampled_log_probs).exp()
    return ratios, ratios.clamp(max=limit)


def policy_loss(
    log_probs: torch.Tensor, weights: torch.Tensor, advantages: torch.Tensor
) -> torch.Tensor:
    """Return the sum over tokens whose gradient is AIPO's, with the sign of a loss."""
    loss: torch.Tensor = -(weights * advantages * log_probs).sum()
    return loss
