"""``pawl telemetry import`` and ``pawl telemetry show``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from evals.errors import InputError
from evals.telemetry import find_canonical
from pipelines.console import AsJson, ProjectFolder, note, print_json, print_table, print_text
from pipelines.telemetry.rows import Problem
from pipelines.telemetry.run import find_format, read_run
from storage.naming import NAME
from storage.project import find_project
from storage.telemetry import SeriesSummary, load_series_summaries, load_telemetry_runs

SHOWN_PROBLEMS = 5
NON_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
COLUMNS = (
    *("series", "meaning", "unit", "n", "steps", "first", "last"),
    *("min", "max", "non-finite", "none"),
)

app = typer.Typer(help="What training logged, and what of it is stored.", no_args_is_help=True)


@app.command("import")
def import_telemetry(
    path: Annotated[Path, typer.Argument(help="A run's folder, or one file.")],
    run: Annotated[str, typer.Option(help="The run's name, as before the @ of its checkpoints.")],
    form: Annotated[
        str | None,
        typer.Option("--format", help="lab, trainer, jsonl, trainer_state or tensorboard."),
    ] = None,
    json: AsJson = False,
    project: ProjectFolder = None,
) -> int:
    """Store what a run has logged; only what is new, so that it can be run again."""
    where = find_project(project)
    if not NAME.fullmatch(f"{run}@0"):
        raise InputError(
            f"{run[:80]!r} is no run's name", "--run", "use letters, digits and . _ + - only"
        )
    chosen = form or find_format(path)
    if not path.exists():
        raise InputError("no such file or folder", str(path), "correct the path")
    reading = read_run(path, chosen, run)
    if not reading.points:
        raise nothing_read(path, chosen, reading.problems)
    with where.open_store(create=True) as store:
        new = store.put_points(reading.points)
    series = sorted({point.series for point in reading.points})
    if json:
        print_json(
            {
                "run": run,
                "format": chosen,
                "points": len(reading.points),
                "new": new,
                "series": series,
                "problems": [problem_json(problem) for problem in reading.problems],
            }
        )
        return 0
    print_text(f"{run}: {new} new of {len(reading.points)} points, {len(series)} series")
    for problem in reading.problems[:SHOWN_PROBLEMS]:
        note(str(problem))
    if len(reading.problems) > SHOWN_PROBLEMS:
        note(f"… and {len(reading.problems) - SHOWN_PROBLEMS} more; --json lists all")
    return 0


@app.command()
def show(
    run: Annotated[str, typer.Argument(help="The run's name.")],
    series: Annotated[str | None, typer.Option(help="One series only.")] = None,
    json: AsJson = False,
    project: ProjectFolder = None,
) -> int:
    """List a run's series: what each means, how many values, first, last, least and most."""
    where = find_project(project)
    with where.open_store() as store:
        summaries = load_series_summaries(store.lake, run)
        known = () if summaries else load_telemetry_runs(store.lake)
    if not summaries:
        there = f"there is some of {', '.join(known)}" if known else "there is none of any run"
        raise InputError(
            "no telemetry of this run", run, f"{there}; run `pawl telemetry import` on its folder"
        )
    chosen = [one for one in summaries if series in (None, one.series)]
    if not chosen:
        names = ", ".join(one.series for one in summaries)
        raise InputError(f"the run has no series {series!r}", "--series", f"it has {names}")
    if json:
        print_json({"run": run, "series": [summary_json(one) for one in chosen]})
    else:
        print_table(COLUMNS, [summary_row(one) for one in chosen], f"telemetry of {run}")
    return 0


def nothing_read(path: Path, form: str, problems: tuple[Problem, ...]) -> InputError:
    """Return why a path gave no points."""
    if not problems:
        return InputError(
            f"no values were logged there, read as {form}", str(path), "give --format, or wait"
        )
    first = problems[0]
    line = "" if first.line is None else f" line {first.line}"
    return InputError(first.what, f"{first.file}{line}", first.fix)


def problem_json(problem: Problem) -> dict[str, Any]:
    """Return a problem under the names of the JSON contract."""
    return {
        "file": problem.file,
        "line": problem.line,
        "what": problem.what,
        "fix": problem.fix,
    }


def summary_json(summary: SeriesSummary) -> dict[str, Any]:
    """Return a summary under the names of the JSON contract."""
    canonical = find_canonical(summary.series)
    return {
        "series": summary.series,
        "raw_names": list(summary.raw_names),
        "meaning": canonical.meaning if canonical else None,
        "unit": canonical.unit if canonical else None,
        "worse": canonical.worse.value if canonical else None,
        "note": canonical.note if canonical else None,
        "n": summary.n,
        "first_step": summary.first_step,
        "last_step": summary.last_step,
        "first": value_json(summary.first),
        "last": value_json(summary.last),
        "min": value_json(summary.least),
        "max": value_json(summary.most),
        "non_finite": summary.non_finite,
        "none": summary.none,
        "attempts": summary.attempts,
    }


def value_json(value: float | None) -> float | str | None:
    """Return a value as JSON can hold it: ``"NaN"``, ``"Infinity"`` and ``"-Infinity"`` as text."""
    return value if value is None or math.isfinite(value) else NON_FINITE[str(value)]


def summary_row(summary: SeriesSummary) -> list[str]:
    """Return a summary as a table's row."""
    canonical = find_canonical(summary.series)
    return [
        summary.series,
        canonical.meaning if canonical else "–",
        canonical.unit if canonical else "–",
        str(summary.n),
        f"{summary.first_step}–{summary.last_step}",
        *(
            value_text(value)
            for value in (summary.first, summary.last, summary.least, summary.most)
        ),
        str(summary.non_finite),
        str(summary.none),
    ]


def value_text(value: float | None) -> str:
    """Return a value with four digits; a dash where there is none."""
    return "–" if value is None else f"{value:.4g}"
