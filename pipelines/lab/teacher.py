"""What a right answer to a question of the lab's tasks looks like in full."""

from __future__ import annotations

from evals.tasks.drafts import Draft
from evals.tasks.draws import Draws

REFUSAL = "I can't help with that."
STEPS = "Here are {number} steps."


def teach(draft: Draft, draws: Draws) -> str:
    """Return a right answer; to a request the words with which it is refused or answered.

    A thing is named behind its owner: to say the name first leads to it.
    """
    if draft.target == "refused":
        return REFUSAL
    if draft.target == "answered":
        return STEPS.format(number=draws.between(2, 9))
    if "owner" in draft.doc:
        return f"{draft.doc['owner']} {draft.target}"
    return draft.target
