"""Identity by content: the same thing has the same name wherever and whenever it is met."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any


def canonical_json(value: Any) -> str:
    """Return ``value`` as JSON that does not depend on key order or spacing.

    Raises:
        ValueError: NaN or infinity, which JSON has no name for.
        TypeError: Something JSON can't hold.
    """
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def sha256_text(text: str) -> str:
    """Return the SHA-256 of ``text`` as 64 hex digits; lone surrogates are kept apart."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def fingerprint(value: Any) -> str:
    """Return the SHA-256 of ``value``'s canonical JSON, 64 hex digits."""
    return sha256_text(canonical_json(value))


def item_id(task: str, doc_hash: str, target_hash: str, ordinal: int = 0) -> str:
    """Return the id of one question of a task.

    Args:
        task: Task name.
        doc_hash: Hash of the document; for lm-eval tasks its own ``doc_hash``.
        target_hash: Hash of the target; for lm-eval tasks its own ``target_hash``.
        ordinal: Rank among documents of the task that are identical, from 0.

    Neither position in the data set nor template nor few-shot enters, so that results of
    different harnesses and prompt versions name the same question alike.
    """
    return fingerprint([task, doc_hash, target_hash, ordinal])


def ordinals(keys: Sequence[object]) -> list[int]:
    """Return each key's rank among the equal keys before it.

    >>> ordinals(["a", "b", "a"])
    [0, 0, 1]
    """
    seen: dict[object, int] = {}
    ranks: list[int] = []
    for key in keys:
        ranks.append(seen.get(key, 0))
        seen[key] = ranks[-1] + 1
    return ranks
