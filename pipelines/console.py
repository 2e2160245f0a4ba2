"""What commands print: one JSON document or tables on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from evals.job import Progress as Report

AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
ProjectFolder = Annotated[
    Path | None,
    typer.Option("--project", help="Folder of pawl.yaml; default: the nearest above."),
]

STAGES = {
    "digest": "hashing the checkpoint",
    "engine": "starting the engine",
    "answers": "answers",
    "scores": "scores",
    "steps": "training steps",
    "runs": "runs of both sides",
}


def print_json(document: Any) -> None:
    """Print the command's one JSON document."""
    sys.stdout.write(json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2) + "\n")


def note(text: str) -> None:
    """Tell the user something that is not the result."""
    Console(stderr=True, highlight=False).print(text, markup=False, soft_wrap=True)


def print_text(text: str) -> None:
    """Print a line of the result without any markup; control characters are made visible."""
    shown = "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text)
    Console(highlight=False).print(shown, markup=False, soft_wrap=True)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Print a table; numbers are right-aligned and no cell is taken as markup."""
    table = Table(title=title or None, title_justify="left")
    for number, name in enumerate(columns):
        numeric = bool(rows) and all(is_number(row[number]) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(cell.replace("[", r"\[") for cell in row))
    wide = max(Console().width, 100) if sys.stdout.isatty() else 160
    Console(width=wide).print(table)


def is_number(cell: str) -> bool:
    """Return whether a cell holds a number, a percentage or nothing."""
    return cell.strip(" +-%.,–") == "" or cell.strip(" +-%").replace(".", "").isdigit()


def share(value: float | None, *, signed: bool = False) -> str:
    """Return a share of 1 as text in percent; a dash where it is not known."""
    if value is None:
        return "–"
    return f"{100 * value:+.1f}%" if signed else f"{100 * value:.1f}%"


def moment(at: str | None) -> str:
    """Return an ISO 8601 time in UTC to the second; a dash where there is none.

    >>> moment("2026-12-01T12:50:26.633219+00:00")
    '2026-12-01 12:50:26 UTC'
    """
    return f"{at[:10]} {at[11:19]} UTC" if at else "–"


@contextmanager
def progress_bars() -> Iterator[Report]:
    """Yield a function that shows each stage's progress on stderr."""
    console = Console(stderr=True)
    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    known: dict[str, Any] = {}
    told: dict[str, int] = {}

    def report(stage: str, done: int, total: int) -> None:
        if not console.is_terminal:
            tenth = 10 * done // max(total, 1)
            if told.get(stage) != tenth:
                told[stage] = tenth
                note(f"{STAGES[stage]}: {done}/{total}")
            return
        if stage not in known:
            known[stage] = bars.add_task(STAGES[stage], total=total)
        bars.update(known[stage], completed=done, total=total)

    with bars:
        yield report
