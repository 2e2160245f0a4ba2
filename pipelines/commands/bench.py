"""``pawl bench``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from evals.adapters.smollm2 import write_checkpoint
from pipelines.bench.loglikelihood import bench_loglikelihood
from pipelines.bench.result import BenchResult
from pipelines.console import (
    AsJson,
    ProjectFolder,
    print_json,
    print_table,
    print_text,
    progress_bars,
)
from storage.project import find_project


class Bench(StrEnum):
    """What can be measured."""

    LOGLIKELIHOOD = "loglikelihood"


def bench(
    name: Annotated[Bench, typer.Argument(help="What to measure.")],
    checkpoint: Annotated[
        Path | None, typer.Option(help="Checkpoint folder; default: SmolLM2-135M-Instruct.")
    ] = None,
    items: Annotated[int, typer.Option(min=1, help="Questions of each run.")] = 16,
    json: AsJson = False,
    project: ProjectFolder = None,
) -> int:
    """Measure speed against the alternative, on this machine in the same run."""
    where = find_project(project)
    path = checkpoint or write_checkpoint(where.state / "models" / "SmolLM2-135M-Instruct")
    measure = {Bench.LOGLIKELIHOOD: bench_loglikelihood}[name]
    with progress_bars() as progress:
        found = measure(path, items, progress)
    if json:
        print_json(found.to_json())
    else:
        tell(found)
    return 0


def tell(found: BenchResult) -> None:
    """Print a result."""
    print_table(
        ["bench", "unit", "ours", "against", "ratio", "goal", "same answers", "met"],
        [
            [
                found.name,
                found.unit,
                f"{found.ours:.2f}",
                f"{found.against:.2f}",
                f"{found.ratio:.1f}",
                f"{found.goal:g}",
                "yes" if found.holds else "no",
                "yes" if found.met else "no",
            ]
        ],
    )
    for figure, value in found.figures.items():
        print_text(f"{figure}: {value}")
    print_text(", ".join(f"{package} {number}" for package, number in found.versions.items()))
