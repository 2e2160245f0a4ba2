"""Imports a run's folder into a project's lake, saying when it begins and when it is done."""

from __future__ import annotations

import sys
from pathlib import Path

from pipelines.telemetry.run import import_run
from storage.project import find_project


def main(project: Path, folder: Path) -> None:
    with find_project(project).open_store(create=True) as store:
        print("begins", flush=True)
        new, _ = import_run(store, "r", folder, "lab")
        print(new, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
