"""The folder of an RL run: which layout it has, what it says of the run, where checkpoints are."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from re import Match
from typing import Any

from evals.errors import InputError
from pipelines.checkpoints.contents import leads_out
from pipelines.checkpoints.layout import LAYOUTS, Layout
from storage.project import PROJECT_FILE, Project, RunSection

LARGEST_STEP = 10**15 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One RL run on disk."""

    name: str
    """What stands before the @ of its checkpoints' names."""
    folder: Path
    """Absolute, its links followed."""
    layout: Layout
    config: Mapping[str, Any]
    """What the run's own file says of it, JSON types only; empty where it says nothing yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFolder:
    """A folder that holds a checkpoint, or will."""

    step: int
    path: Path
    writing: bool = False
    """Whether its name says that it is still being written."""
    final: bool = False
    """Whether it is the run's own folder, with the final model in it."""


def find_run(section: RunSection, project: Project) -> Run:
    """Return the run that a section of ``pawl.yaml`` names, its layout recognised or as named.

    Raises:
        InputError: There is no such folder, no layout of that name, or nothing in the folder
            that a run is recognised by; says what was looked for.
    """
    folder = project.path(section.folder)
    if not folder.is_dir():
        raise InputError(
            "no such folder" if not folder.exists() else "not a folder",
            str(folder),
            "give the folder that the trainer writes into",
        )
    layout = recognise(folder) if section.layout is None else layout_named(section.layout)
    return Run(
        name=project.run_name(section),
        folder=folder,
        layout=layout,
        config=read_config(folder, layout),
    )


def layout_named(name: str) -> Layout:
    """Return the layout of this name.

    Raises:
        InputError: There is none.
    """
    for layout in LAYOUTS:
        if layout.name == name:
            return layout
    raise InputError(
        f"no layout `{name}`",
        f"{PROJECT_FILE}: runs: layout",
        f"write {' or '.join(layout.name for layout in LAYOUTS)}, or leave it out",
    )


def recognise(folder: Path) -> Layout:
    """Return the layout of a run folder.

    Raises:
        InputError: It has none that Pawl knows; says what was looked for.
    """
    layout = find_layout(folder)
    if layout is not None:
        return layout
    looked_for = "; ".join(f"{each.looked_for} (layout {each.name})" for each in LAYOUTS)
    above = None
    with suppress(InputError):
        above = find_layout(folder.parent)
    raise InputError(
        f"no RL run is recognised here; looked for {looked_for}",
        str(folder),
        f"give {folder.parent}, which has layout {above.name}"
        if above is not None
        else "give the folder that the trainer writes into; where it is empty as yet, name its "
        f"layout under runs in {PROJECT_FILE}",
    )


def find_layout(folder: Path) -> Layout | None:
    """Return the layout that a run folder is recognised to have, or None.

    Raises:
        InputError: The folder can't be read.
    """
    return next((layout for layout in LAYOUTS if has_layout(folder, layout)), None)


def has_layout(folder: Path, layout: Layout) -> bool:
    """Return whether a folder is recognised as a run of this layout; one of its steps is none."""
    said = read_object(folder / layout.run_file, folder)
    if layout.framework is not None:
        return said is not None and said.get("framework") == layout.framework
    is_step = layout.step_name.fullmatch(folder.name) is not None
    return (said is not None and not is_step) or bool(find_steps(folder, layout))


def find_steps(folder: Path, layout: Layout) -> dict[int, StepFolder]:
    """Return a run's step folders by step; where one is both whole and written anew, the whole.

    Raises:
        InputError: The run's folder is gone or can't be read.
    """
    found: dict[int, StepFolder] = {}
    for path in folders_in(folder / layout.steps_in, folder):
        whole = layout.step_name.fullmatch(path.name)
        hit: Match[str] | None = whole
        if whole is None and layout.writing_name is not None:
            hit = layout.writing_name.fullmatch(path.name)
        if hit is not None and (whole or int(hit[1]) not in found):
            step = int(hit[1])
            found[step] = StepFolder(step=step, path=path, writing=whole is None)
    return found


def folders_in(place: Path, run_folder: Path) -> list[Path]:
    """Return the folders in ``place``, links to folders among them, by name.

    Raises:
        InputError: ``run_folder`` is gone, or ``place`` can't be read.
    """
    try:
        with os.scandir(place) as listing:
            return sorted(Path(entry.path) for entry in listing if is_folder(entry))
    except OSError as bad:
        if isinstance(bad, FileNotFoundError) and run_folder.is_dir():
            return []
        raise InputError(
            f"the run's folder can't be read: {bad.strerror}",
            str(place),
            "nothing is concluded from that about its checkpoints; bring the folder back",
        ) from bad


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder, or a link to one; False where that can't be told."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def find_final(run: Run, steps: Iterable[int]) -> StepFolder | None:
    """Return the run's own folder as a checkpoint, if it holds a final model.

    Args:
        run: The run.
        steps: Steps that have a folder of their own: there the final model is not needed.
    """
    if not run.layout.final_model:
        return None
    said = read_object(run.folder / run.layout.run_file, run.folder)
    step = step_of(said)
    if step is None or step in steps:
        return None
    weights = [f for f in run.folder.glob("*.safetensors") if not f.name.startswith("adapter")]
    return StepFolder(step=step, path=run.folder, final=True) if weights else None


def read_config(folder: Path, layout: Layout) -> dict[str, Any]:
    """Return what a run's own file says of it, without the telemetry that is in it."""
    path = find_run_file(folder, layout)
    said = read_object(path, folder) if path is not None else None
    return {key: value for key, value in (said or {}).items() if key != "log_history"}


def find_run_file(folder: Path, layout: Layout) -> Path | None:
    """Return the file that says what the run is, or None: the newest where checkpoints have it."""
    own = folder / layout.run_file
    said = read_object(own, folder)
    if layout.last_file == layout.run_file:
        newest = -1 if said is None else step_of(said) or 0
        for step, at in sorted(find_steps(folder, layout).items(), reverse=True):
            file = at.path / layout.run_file
            if step > newest and read_object(file, folder) is not None:
                return file
    return own if said is not None else None


def telemetry_files(run: Run) -> tuple[Path, ...]:
    """Return the files in which the run's telemetry is, in their layout's order."""
    within = [find_run_file(run.folder, run.layout)] if run.layout.last_file else []
    named = [file for each in run.layout.telemetry for file in sorted(run.folder.glob(each))]
    return tuple(file for file in (*within, *named) if file is not None)


def step_of(said: Mapping[str, Any] | None) -> int | None:
    """Return the step that a trainer's state names, or None."""
    step = (said or {}).get("global_step")
    if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step <= LARGEST_STEP:
        return None
    return step


def read_object(path: Path, root: Path) -> dict[str, Any] | None:
    """Return the JSON object in a file below ``root``; None where there is no whole one.

    Numbers that JSON has no name for are read as text.
    """
    try:
        if not path.is_file() or leads_out(path, root):
            return None
        said = json.loads(path.read_bytes(), parse_constant=str, parse_float=_finite_or_text)
    except (OSError, ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _finite_or_text(digits: str) -> float | str:
    number = float(digits)
    return number if math.isfinite(number) else digits
