"""``pawl sandbox run``: one program, isolated."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from evals.errors import InputError
from pipelines.console import AsJson, ProjectFolder, print_json, print_text

NOT_PASSED = 1

app = typer.Typer(help="Isolated execution of programs.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Isolated execution of programs."""


@app.command()
def run(
    file: Annotated[Path, typer.Argument(help="A Python program.")],
    timeout: Annotated[
        float, typer.Option(min=0.1, max=3600, help="CPU and wall-clock seconds.")
    ] = 10.0,
    memory_mb: Annotated[
        int, typer.Option(min=16, max=1_000_000, help="Address space in MiB.")
    ] = 512,
    json: AsJson = False,
    project: ProjectFolder = None,
) -> int:
    """Run a program isolated; exit code 0 where it ran to its true end, else 1."""
    from evals.sandbox import Limits, run_program

    del project
    try:
        program = file.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as bad:
        raise InputError(bad.strerror or "not readable", str(file), "check the path") from bad
    limits = replace(Limits(), wall_s=timeout, cpu_s=timeout, memory_mb=memory_mb)
    execution = run_program(program, limits=limits)
    if json:
        print_json({**asdict(execution), "outcome": execution.outcome.value})
    else:
        print_text(execution.output)
        print_text(
            f"{execution.outcome.value}: exit code {execution.exit_code}, "
            f"{execution.wall_s:.2f} s, {execution.cpu_s:.2f} s of CPU"
        )
    return 0 if execution.outcome.value == "passed" else NOT_PASSED
