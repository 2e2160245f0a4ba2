"""Advantages and AIPO against numbers worked by hand and numpy's own arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.lab.objective import group_advantages, importance_weights, policy_loss

torch = pytest.importorskip("torch")


def test_advantages_by_hand() -> None:
    rewards = np.array([[1.0, 0.0, 0.0, 0.0], [0.5, 0.5, 0.5, 0.5], [1.0, 1.0, 0.0, 0.0]])
    spread = np.sqrt(3) / 4
    expected = [[0.75 / spread, *[-0.25 / spread] * 3], [0.0] * 4, [1.0, 1.0, -1.0, -1.0]]
    assert group_advantages(rewards) == pytest.approx(np.array(expected))


def test_ratios_by_hand() -> None:
    new, old = np.array([0.5, 0.2, 0.09, 0.9]), np.array([0.25, 0.4, 0.01, 0.9])
    ratios, weights = importance_weights(
        torch.tensor(new).log(), torch.tensor(old).log(), limit=4.0
    )
    assert ratios.numpy() == pytest.approx([2.0, 0.5, 9.0, 1.0])
    assert weights.numpy() == pytest.approx([2.0, 0.5, 4.0, 1.0]), "limited on one side only"


def test_the_gradient_is_the_papers() -> None:
    """d loss / d log pi is -min(pi / mu, rho) A: the ratio itself is not differentiated."""
    logits = torch.tensor([[0.3, -0.2, 1.0], [0.0, 2.0, -1.0]], dtype=torch.float64)
    logits.requires_grad_()
    tokens = torch.tensor([2, 0])
    log_probs = logits.log_softmax(-1).gather(1, tokens[:, None])[:, 0]
    sampled = torch.tensor([-2.5, -2.0], dtype=torch.float64)
    advantages = torch.tensor([1.5, -0.5], dtype=torch.float64)
    _, weights = importance_weights(log_probs, sampled, limit=2.0)
    policy_loss(log_probs, weights, advantages).backward()

    values = logits.detach().numpy()
    shares = np.exp(values) / np.exp(values).sum(axis=1, keepdims=True)
    expected = np.zeros_like(values)
    for row, token in enumerate(tokens.tolist()):
        ratio = min(shares[row, token] / np.exp(float(sampled[row])), 2.0)
        one_hot = np.eye(3)[token]
        expected[row] = -ratio * float(advantages[row]) * (one_hot - shares[row])
    assert logits.grad is not None
    assert logits.grad.numpy() == pytest.approx(expected)
