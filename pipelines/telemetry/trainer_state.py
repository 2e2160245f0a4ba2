"""``trainer_state.json`` of the Hugging Face Trainer and all that is built on it.

Every checkpoint repeats the whole history, so only the newest one is read.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pipelines.telemetry.rows import BadRow, Problem, Row, Rows, parse_json, read_row, read_text

STATE_FILE = "trainer_state.json"

_CHECKPOINT = re.compile(r"checkpoint-([0-9]{1,15})")
_FIX = "wait until the trainer has written it; if it has ended, restore the file"


def has_state(folder: Path) -> bool:
    """Return whether a run's folder holds any history."""
    return (folder / STATE_FILE).is_file() or bool(_checkpoint_states(folder))


def read_newest_state(folder: Path) -> Rows:
    """Return the history of a run's newest checkpoint; the one before it where that is no JSON.

    The file in the run's own folder, written when training ends, counts as newer than a
    checkpoint of the same step.
    """
    problems: list[Problem] = []

    def load(path: Path) -> tuple[int, Path, dict[str, Any]] | None:
        try:
            state = _load_state(path)
        except BadRow as bad:
            problems.append(Problem(file=str(path), line=None, what=str(bad), fix=_FIX))
            return None
        step = state.get("global_step")
        return step if isinstance(step, int) else -1, path, state

    newest = next(filter(None, map(load, _checkpoint_states(folder))), None)
    own = load(folder / STATE_FILE) if (folder / STATE_FILE).is_file() else None
    if own is not None and (newest is None or own[0] >= newest[0]):
        newest = own
    found = Rows(rows=()) if newest is None else _read_history(newest[1], newest[2])
    return Rows(rows=found.rows, problems=(*problems, *found.problems))


def read_state(path: Path) -> Rows:
    """Return the history in one file."""
    try:
        return _read_history(path, _load_state(path))
    except BadRow as bad:
        problem = Problem(file=str(path), line=None, what=str(bad), fix=_FIX)
        return Rows(rows=(), problems=(problem,))


def _checkpoint_states(folder: Path) -> list[Path]:
    """Return the checkpoints' files, the newest by number first."""
    numbered = [
        (int(found[1]), path)
        for path in folder.glob(f"checkpoint-*/{STATE_FILE}")
        if (found := _CHECKPOINT.fullmatch(path.parent.name))
    ]
    return [path for _, path in sorted(numbered, reverse=True)]


def _load_state(path: Path) -> dict[str, Any]:
    state = parse_json(read_text(path))
    if not isinstance(state, dict) or not isinstance(state.get("log_history"), list):
        raise BadRow("it has no log_history")
    return state


def _read_history(path: Path, state: dict[str, Any]) -> Rows:
    rows: list[Row] = []
    problems = []
    for number, entry in enumerate(state["log_history"], start=1):
        try:
            rows.append(read_row(entry))
        except BadRow as bad:
            what = f"entry {number} of log_history: {bad}"
            fix = "correct or remove the entry; all others were read"
            problems.append(Problem(file=str(path), line=None, what=what, fix=fix))
    return Rows(rows=tuple(rows), problems=tuple(problems))
