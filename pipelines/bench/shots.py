"""Multiple-choice questions with one-token labels after a shared few-shot prefix, by seed."""

from __future__ import annotations

from evals.task import Choice
from evals.tasks.draws import Draws

LABELS = "ABCD"


def draw_questions(count: int, shots: int, seed: int = 0) -> tuple[tuple[Choice, ...], ...]:
    """Return questions, each as its four choices.

    Args:
        count: Questions.
        shots: Solved examples in front of each, the same for all.
        seed: Of the draws.
    """
    draws = Draws("bench loglikelihood", seed)
    shown = "".join(
        f"{text} {label}\n\n" for text, label in (draw_question(draws) for _ in range(shots))
    )
    asked = [draw_question(draws)[0] for _ in range(count)]
    return tuple(
        tuple(Choice(context=shown + text, continuation=f" {label}") for label in LABELS)
        for text in asked
    )


def draw_question(draws: Draws) -> tuple[str, str]:
    """Return a question up to its answer, and the right label."""
    boxes, each, more = draws.between(3, 12), draws.between(4, 20), draws.between(2, 30)
    right = boxes * each + more
    offsets = draws.pick((-10, -3, -1, 1, 2, 5, 10), len(LABELS) - 1)
    options = draws.shuffled([right, *(right + offset for offset in offsets)])
    listed = "\n".join(f"{label}. {n}" for label, n in zip(LABELS, options, strict=True))
    text = (
        f"Question: A shop gets {boxes} boxes with {each} apples in each of them and had {more} "
        f"apples left from the day before. How many apples does it have now?\n{listed}\nAnswer:"
    )
    return text, LABELS[options.index(right)]
