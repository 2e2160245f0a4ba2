"""``pawl lab run``, ``pawl lab warm-up`` and ``pawl lab table``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from pipelines.comparing import who
from pipelines.console import (
    AsJson,
    ProjectFolder,
    note,
    print_json,
    print_text,
    progress_bars,
)
from pipelines.evaluating import set_library_environment
from pipelines.lab.controller import run_lab
from pipelines.lab.model import WARM
from pipelines.lab.settings import Fault, Settings
from pipelines.lab.table import TablePlan, as_markdown, fill_table, summarize_table
from pipelines.lab.warm_up import WarmUp, warm_up
from storage.project import find_project

app = typer.Typer(help="Small, real RL runs to try Pawl on.", no_args_is_help=True)


@app.command("run")
def train(
    folder: Annotated[Path, typer.Argument(help="Run folder to write; empty or not there.")],
    seed: Annotated[int, typer.Option(help="Of questions and answers.")] = 0,
    steps: Annotated[int, typer.Option(help="Updates of the weights.")] = 120,
    every: Annotated[int, typer.Option(help="Steps between two checkpoints.")] = 30,
    fault: Annotated[Fault | None, typer.Option(help="What goes wrong.")] = None,
    from_step: Annotated[
        int | None, typer.Option(help="The last checkpoint that the fault has not touched.")
    ] = None,
    json: AsJson = False,
) -> int:
    """Train a small model by reinforcement learning; writes checkpoints and telemetry."""
    settings = Settings(seed=seed, steps=steps, every=every, fault=fault, from_step=from_step)
    set_library_environment(find_project(None))
    with progress_bars() as progress:
        run_lab(folder, settings, owner=who(), progress=progress)
    if json:
        print_json({"run": str(folder), "settings": asdict(settings)})
    else:
        print_text(f"wrote {folder}; next: pawl eval {folder}/checkpoints/step_{steps} --suite lab")
    return 0


@app.command("warm-up")
def write_warm_up(
    target: Annotated[Path, typer.Argument(help="Checkpoint to write.")] = WARM,
    json: AsJson = False,
) -> int:
    """Make the weights anew that every run of the lab starts from."""
    set_library_environment(find_project(None))
    settings = WarmUp()
    with progress_bars() as progress:
        warm_up(target, settings, progress)
    if json:
        print_json({"written": str(target), "settings": asdict(settings)})
    else:
        print_text(f"wrote {target}")
    return 0


@app.command()
def table(
    seeds: Annotated[int, typer.Option(min=1, help="Each is a sound and a faulty run.")] = 10,
    out: Annotated[Path | None, typer.Option(help="Markdown file to write.")] = None,
    json: AsJson = False,
    project: ProjectFolder = None,
) -> int:
    """Take many runs through the gate; the same command goes on where it was interrupted."""
    where = find_project(project)
    set_library_environment(where)
    plan = TablePlan(seeds=seeds)
    with progress_bars() as progress:
        rows = fill_table(plan, where, note, progress)
    page = as_markdown(rows, plan)
    if out is not None:
        out.write_text(page, encoding="utf-8")
    if json:
        print_json({"rows": [asdict(row) for row in rows], "summary": summarize_table(rows, plan)})
    else:
        print_text(page)
    return 0
