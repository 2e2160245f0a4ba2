"""JSON lines: one object a step, appended by a trainer that may still be writing."""

from __future__ import annotations

from pathlib import Path

from pipelines.telemetry.rows import (
    UNREADABLE,
    BadRow,
    Problem,
    Row,
    Rows,
    parse_json,
    read_row,
    read_text,
)

_FIX = "correct or remove the line; all others were read"


def read_jsonl(path: Path) -> Rows:
    """Return the rows of a file.

    A last line without its end that is no JSON is being written: it is left for the next time.
    """
    try:
        text = read_text(path)
    except BadRow as bad:
        problem = Problem(file=str(path), line=None, what=str(bad), fix=UNREADABLE)
        return Rows(rows=(), problems=(problem,))
    *lines, last = text.split("\n")
    rows: list[Row] = []
    problems = []
    for number, line in enumerate([*lines, last], start=1):
        if not line.strip():
            continue
        try:
            rows.append(read_row(parse_json(line)))
        except BadRow as bad:
            if number <= len(lines):
                problem = Problem(file=str(path), line=number, what=str(bad), fix=_FIX)
                problems.append(problem)
    return Rows(rows=tuple(rows), problems=tuple(problems))
