"""From drafts of questions to items with ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from evals.errors import InputError
from evals.identity import fingerprint, item_id, ordinals, sha256_text
from evals.task import Item

VERSION = "1"
"""Of the prompts and items of all generated tasks."""

PATIENCE = 500
"""Draws in a row without a new question after which there are held to be no more."""


class Level(StrEnum):
    """How hard a question is meant to be."""

    EASY = "easy"
    HARD = "hard"


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A question before it has an id; the fields are those of ``Item``."""

    doc: dict[str, Any]
    target: str
    cluster: str | None = None
    stratum: str | None = None


def build_items(task: str, drafts: Sequence[Draft]) -> tuple[Item, ...]:
    """Return the drafts as items of ``task``, in order, each with its id."""
    keys = [(fingerprint(draft.doc), sha256_text(draft.target)) for draft in drafts]
    return tuple(
        Item(
            item_id=item_id(task, doc_hash, target_hash, ordinal),
            doc=draft.doc,
            target=draft.target,
            cluster=draft.cluster,
            stratum=draft.stratum,
        )
        for draft, (doc_hash, target_hash), ordinal in zip(
            drafts, keys, ordinals(keys), strict=True
        )
    )


def draw_distinct(draw: Callable[[], Draft], count: int, what: str) -> list[Draft]:
    """Return ``count`` drafts with different documents.

    A larger ``count`` extends the list and changes nothing of its beginning.

    Raises:
        InputError: The grammar behind ``draw`` has no ``count`` different questions.
    """
    drafts: list[Draft] = []
    seen: set[str] = set()
    vain = 0
    while len(drafts) < count:
        draft = draw()
        key = fingerprint(draft.doc)
        if key not in seen:
            seen.add(key)
            drafts.append(draft)
            vain = 0
        elif (vain := vain + 1) >= PATIENCE:
            raise InputError(
                f"{count} different questions wanted, {len(drafts)} found",
                what,
                "ask for fewer items",
            )
    return drafts


def require_positive(where: str, **counts: object) -> None:
    """Hold that each option is a whole number of at least 1.

    Raises:
        InputError: One is not.
    """
    for name, count in counts.items():
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise InputError(
                f"{count!r} is not a whole number of at least 1", f"{where}.{name}", "mend it"
            )
