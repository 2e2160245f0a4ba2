"""The time of day, as the lake and the ledger write it."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> str:
    """Return the time in UTC as ISO 8601 with microseconds; such strings sort by time."""
    return datetime.now(UTC).isoformat(timespec="microseconds")
