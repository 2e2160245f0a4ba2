"""What every reader returns: rows of values as logged, and what could not be read.

One bad line costs that line and nothing else. What a running writer has not finished yet is no
problem: it is read the next time.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

STEP = "step"
TIME = "time"
LARGEST_STEP = 2**63 - 1
UNREADABLE = "check that it is there and that you may read it"

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_NAMED = {"nan": math.nan, "inf": math.inf, "infinity": math.inf}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Values that were logged together."""

    step: int
    values: Mapping[str, float | None]
    """By name as logged; None: logged as none."""
    logged_at: str | None = None
    """UTC, ISO 8601; None: not told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What could not be read of a file; the rest was."""

    file: str
    line: int | None
    """From 1; None: the whole file, or one without lines."""
    what: str
    fix: str
    """What a user can do about it."""

    def __str__(self) -> str:
        """Return it on one line."""
        line = "" if self.line is None else f" line {self.line}"
        return f"{self.file}{line}: {self.what} — {self.fix}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What a reader found, in the order in which it was logged."""

    rows: tuple[Row, ...]
    problems: tuple[Problem, ...] = ()


class BadRow(ValueError):
    """A row can't be read; says why."""


def read_row(logged: object) -> Row:
    """Return one logged JSON object as a row.

    Numbers may be written as text, also those that JSON has no name for (``"NaN"``). Text, lists,
    objects and truth values are no scalars and are left out.

    Raises:
        BadRow: It is no object, or has no step that is one.
    """
    if not isinstance(logged, dict):
        raise BadRow("it is no JSON object")
    if STEP not in logged:
        raise BadRow("it has no step")
    values = {
        name: number
        for name, value in logged.items()
        if name not in (STEP, TIME)
        if (number := read_number(value)) is not None or value is None
    }
    return Row(step=read_step(logged[STEP]), values=values, logged_at=read_time(logged.get(TIME)))


def parse_json(text: str) -> Any:
    """Return JSON that may have bare ``NaN`` and ``Infinity``, and whole numbers of any length.

    Raises:
        BadRow: It is none.
    """
    try:
        return json.loads(text, parse_int=_read_int)
    except (ValueError, RecursionError) as bad:
        raise BadRow(f"it is no JSON: {bad}") from None


def read_number(value: object) -> float | None:
    """Return a number, or text that names one, as a float; None for anything else.

    >>> read_number("-Infinity"), read_number("0.5"), read_number("half"), read_number(True)
    (-inf, 0.5, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    if not isinstance(value, str):
        return float(value)
    text = value.strip()
    if _NUMBER.fullmatch(text):
        return float(text)
    named = _NAMED.get(text.lstrip("+-").lower())
    return -named if named is not None and text.startswith("-") else named


def read_step(value: object) -> int:
    """Return a step.

    Raises:
        BadRow: It is no whole number from 0 on.
    """
    number = read_number(value)
    if number is None or not number.is_integer() or not 0 <= number <= LARGEST_STEP:
        raise BadRow(f"its step is {str(value)[:40]!r}, not a whole number from 0 on")
    return value if isinstance(value, int) else int(number)


def read_time(value: object) -> str | None:
    """Return seconds since 1970 as UTC, ISO 8601; None where they are none."""
    number = read_number(value)
    if number is None or not math.isfinite(number):
        return None
    try:
        return datetime.fromtimestamp(number, UTC).isoformat(timespec="microseconds")
    except (OverflowError, OSError, ValueError):
        return None


def number_attempts(rows: Iterable[Row]) -> list[int]:
    """Return the attempt of each row, from 0.

    A name that is logged at a step it has already reached says that training went back: a
    restart, that replays the steps after the checkpoint it began from. Names are told apart,
    since an evaluation may log a step that training has left behind.
    """
    attempts: list[int] = []
    attempt = 0
    reached: dict[str, int] = {}
    for row in rows:
        if any(row.step <= reached.get(name, -1) for name in row.values):
            attempt += 1
            reached = {}
        reached.update(dict.fromkeys(row.values, row.step))
        attempts.append(attempt)
    return attempts


def read_text(path: Path) -> str:
    """Return a file's text; bytes that are no UTF-8 become U+FFFD.

    Raises:
        BadRow: It can't be read.
    """
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except OSError as bad:
        raise BadRow(f"it can't be read ({bad.strerror})") from None


def _read_int(digits: str) -> int | float:
    """Return a whole number, as a float where only that can hold it."""
    return int(digits) if len(digits) < len(str(LARGEST_STEP)) else float(digits)
