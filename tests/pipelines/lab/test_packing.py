"""Packed answers are computed as if each stood alone behind its prompt."""

from __future__ import annotations

import pytest

from pipelines.lab.model import WARM, load_model
from pipelines.lab.packing import Branch, Row, answer_logits, pack

torch = pytest.importorskip("torch")

ROWS = [
    Row(
        prompt=(1, 4, 40, 41, 42, 2, 5),
        branches=(
            Branch(answer=(50, 51, 2)),
            Branch(given=(60, 61), answer=(52, 2)),
            Branch(answer=(53,)),
        ),
    ),
    Row(prompt=(1, 4, 70), branches=(Branch(answer=(54, 55)),)),
]


def test_packed_answers_are_those_of_each_alone() -> None:
    model = load_model(WARM)
    with torch.no_grad():
        packed = answer_logits(model, pack(ROWS))
        alone = []
        for row in ROWS:
            for branch in row.branches:
                before = (*row.prompt, *branch.given)
                ids = torch.tensor([[*before, *branch.answer]])
                logits = model(input_ids=ids).logits[0]
                alone.append(logits[len(before) - 1 : -1])
    torch.testing.assert_close(packed, torch.cat(alone), rtol=1e-4, atol=1e-4)


def test_targets_are_the_answers_tokens_in_order() -> None:
    assert pack(ROWS).targets.tolist() == [50, 51, 2, 52, 2, 53, 54, 55]


def test_a_branch_does_not_see_the_others() -> None:
    mask = pack(ROWS[:1]).mask[0, 0]
    assert mask[7].nonzero()[:, 0].tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    assert mask[11].nonzero()[:, 0].tolist() == [0, 1, 2, 3, 4, 5, 6, 10, 11]
    assert pack(ROWS[:1]).positions[0].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 7, 8, 9, 10, 7]
