"""``pawl stat``: statistics cases through the product's own functions."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import Annotated, Any

import typer

from evals.errors import InputError
from evals.stat_cases import run_cases
from pipelines.console import AsJson, ProjectFolder, note, print_json

UNBUILT = 3


def stat(
    file: Annotated[Path, typer.Argument(help='{"cases": [{"id", "kind", "input", "config"}, …]}')],
    json: AsJson = True,
    project: ProjectFolder = None,
) -> int:
    """Work out the cases in a file and print the results as JSON."""
    del json, project
    results = run_cases(read_document(file))
    print_json(results.to_json())
    if results.unsupported:
        note(f"pawl: kinds that are not built: {', '.join(results.unsupported)}")
    return UNBUILT if results.unsupported else 0


def read_document(file: Path) -> dict[str, Any]:
    """Return the JSON object in ``file``.

    Raises:
        InputError: Absent, unreadable, or no JSON object.
    """
    try:
        document = json_format.loads(file.read_text(encoding="utf-8"))
    except OSError as bad:
        raise InputError(bad.strerror or "not readable", str(file), "check the path") from bad
    except (ValueError, RecursionError) as bad:
        raise InputError(f"not valid JSON ({bad})", str(file), "correct the file") from bad
    if not isinstance(document, dict):
        raise InputError("not a JSON object", str(file), 'write {"cases": […]}')
    return document
