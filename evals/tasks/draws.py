"""Randomness that is the same on every machine and under every Python version."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

WORD = 2**64
"""Each draw reads 64 bits."""


class Draws:
    """A stream of draws given by its key alone: SHA-256 of key and counter.

    Args:
        key: What the stream is for, such as task name, version, level and seed; streams with
            different keys are independent.
    """

    __slots__ = ("_count", "_key")

    def __init__(self, *key: str | int) -> None:
        self._key = "\x1f".join(str(part) for part in key)
        self._count = 0

    def below(self, limit: int) -> int:
        """Return a whole number from 0 to ``limit - 1``, each equally likely."""
        if not 0 < limit <= WORD:
            raise ValueError(f"limit {limit} is not in 1 to 2^64")
        fair = WORD - WORD % limit
        while True:
            word = hashlib.sha256(f"{self._key}\x1f{self._count}".encode()).digest()[:8]
            self._count += 1
            value = int.from_bytes(word, "big")
            if value < fair:
                return value % limit

    def between(self, low: int, high: int) -> int:
        """Return a whole number from ``low`` to ``high``, both included."""
        return low + self.below(high - low + 1)

    def choice(self, options: Sequence[T]) -> T:
        """Return one of ``options``."""
        return options[self.below(len(options))]

    def pick(self, options: Sequence[T], count: int) -> list[T]:
        """Return ``count`` of ``options``, no position twice, in random order."""
        rest = list(options)
        if count > len(rest):
            raise ValueError(f"{count} of {len(rest)} can't be picked")
        return [rest.pop(self.below(len(rest))) for _ in range(count)]

    def shuffled(self, options: Sequence[T]) -> list[T]:
        """Return ``options`` in random order."""
        return self.pick(options, len(options))
