"""``pawl ledger show`` and ``pawl ledger verify``."""

from __future__ import annotations

from typing import Any

import typer

from pipelines.console import AsJson, ProjectFolder, print_json, print_table, print_text
from storage.ledger import LedgerEntry
from storage.project import find_project

DAMAGED = 3

app = typer.Typer(
    help="The append-only record of decisions, promotions and policies.", no_args_is_help=True
)


@app.command()
def show(json: AsJson = False, project: ProjectFolder = None) -> int:
    """List all entries in order."""
    where = find_project(project)
    with where.open_store() as store:
        entries = store.ledger()
    if json:
        print_json({"entries": [entry_json(entry) for entry in entries]})
        return 0
    columns = ["seq", "kind", "verdict", "candidate", "baseline", "channel", "who", "at", "hash"]
    rows = [entry_json(entry) for entry in entries]
    print_table(columns, [[str(row[c] or "–")[:40] for c in columns] for row in rows], "ledger")
    return 0


def entry_json(entry: LedgerEntry) -> dict[str, Any]:
    """Return an entry under the names of the JSON contract; null for what its kind lacks."""
    return {
        "seq": entry.seq,
        "kind": entry.kind,
        "verdict": entry.payload.get("verdict"),
        "candidate": entry.payload.get("candidate"),
        "baseline": entry.payload.get("baseline") or None,
        "channel": entry.payload.get("channel"),
        "who": entry.who,
        "at": entry.at,
        "hash": entry.hash,
        "previous": entry.previous,
    }


@app.command()
def verify(json: AsJson = False, project: ProjectFolder = None) -> int:
    """Check that no entry was changed, removed or moved."""
    where = find_project(project)
    with where.open_store() as store:
        report = store.verify_ledger()
    problems = [{"seq": p.seq, "fault": p.fault.value, "detail": p.text} for p in report.problems]
    if json:
        print_json({"sound": report.sound, "entries": report.entries, "problems": problems})
    elif report.sound:
        print_text(f"{report.entries} entries, all as they were written")
    else:
        for problem in problems:
            print_text(f"entry {problem['seq']}: {problem['fault']}: {problem['detail']}")
    return 0 if report.sound else DAMAGED
