"""``pawl demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipelines.commands.services import ended_by_signal, status_json
from pipelines.console import AsJson, note, print_json, print_table, print_text
from pipelines.demo import Finished, do_main_job, make_project
from pipelines.services.supervisor import Services, keep_running
from storage.ledger import LedgerEntry


def demo(
    folder: Annotated[Path, typer.Argument(help="Where to; a new or an empty folder.")] = Path(
        "pawl-demo"
    ),
    no_app: Annotated[bool, typer.Option("--no-app", help="Return at the end.")] = False,
    json: AsJson = False,
) -> None:
    """Do the main job from start to end on a small real RL run; then serve the app."""
    project = make_project(folder.absolute())

    def at_end(finished: Finished, running: Services) -> None:
        if json:
            print_json({**status_json(finished.status), "seconds": finished.seconds})
        else:
            tell(finished)
        ports = project.file.services
        if not no_app:
            note(f"the app: http://127.0.0.1:{ports.app_port}")
            note(f"Dagster: http://127.0.0.1:{ports.dagster_port}; Ctrl-C ends all")
            keep_running(running)

    with ended_by_signal():
        do_main_job(project, note, at_end)
    note(
        f"all of it stays in {project.folder}; `pawl up --project {project.folder}` shows it again"
    )


def tell(finished: Finished) -> None:
    """Print decisions and promotions as the ledger has them, and what each stage took."""
    print_table(
        ["#", "what", "checkpoint", "against", "verdict"],
        [ledger_row(entry) for entry in finished.ledger if entry.kind != "policy"],
    )
    for stage, seconds in finished.seconds.items():
        print_text(f"{stage}: {seconds:.0f} s")


def ledger_row(entry: LedgerEntry) -> list[str]:
    """Return a ledger entry as a table's row."""
    told = entry.payload
    against = told.get("baseline") or told.get("channel") or "–"
    return [str(entry.seq), entry.kind, told["candidate"], against, told.get("verdict", "–")]
