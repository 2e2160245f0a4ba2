"""``pawl init`` and ``pawl app``."""

from __future__ import annotations

import json as json_text
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import indent, shorten
from typing import Annotated, Any

import typer
import yaml

from evals.errors import InputError
from pipelines.checkpoints.layout import LAB
from pipelines.checkpoints.look import look
from pipelines.checkpoints.run_folder import Run, find_run, telemetry_files
from pipelines.console import AsJson, ProjectFolder, note, print_json, print_text
from pipelines.services.parts import LOOPBACK, app_command
from storage.project import PROJECT_FILE, Project, ProjectFile, RunSection, find_project
from storage.sightings import Sighting, SightingState

TEMPLATE = """\
# Pawl's project file. Everything has a default; paths are relative to this folder.

# Where results are kept. For a team: catalog "postgres:dbname=pawl host=db", data on a shared disk.
lake:
  catalog: .pawl/lake.sqlite
  data: .pawl/lake

# Which engine answers, and how it is started.
engine:
  name: vllm               # or torch, for models of a few million parameters
  dtype: auto              # auto, float32, bfloat16, float16
  context_tokens: null     # longest prompt plus answer; null: what the checkpoint allows
  parallel_sequences: 64   # answers generated at the same time
  tensor_parallel: 1       # this and what follows: vLLM only
  pipeline_parallel: 1
  memory_fraction: 0.9     # of a GPU's memory
  kv_cache_gib: 2.0        # of the host's memory, without a GPU
  compiled: null           # compile the model first; null: on GPUs only

# Where workers run; null: a Ray head of one's own on this machine.
ray:
  address: null

# RL runs that `pawl up` watches: every checkpoint they write is evaluated and decided on.
{runs}
# Channels: each points to a promoted checkpoint, and only a PASS under its policy moves it.
{channels}
# What `pawl up` starts; all of it listens on loopback.
services:
  dagster_port: 3000
  app_port: 8501
  poll_s: 10               # seconds between two looks at the runs' folders

# mirror.json of data sets on disk, for machines without the hub.
data_mirror: null

# Folder with YAML tasks of your own, in lm-eval's format.
tasks_folder: null
"""


RUNS = """\
runs:
  - folder: {folder}   # what the trainer writes into
    name: {name}   # what its checkpoints are called by; null: the folder's name
    layout: {layout}   # lab or trainer; null: recognised
"""

CHANNELS = """\
channels:
  production:
    policy: {policy}   # shipped, or a .yaml file
    suite: {policy}   # shipped, or a .yaml file
"""

FIRST = """\
    # Whose word the first promotion is; without it, it waits for `pawl promote --first`.
    # first:
    #   checkpoint: {name}
    #   who: your name
    #   why: the model that the run starts from
"""

RunFolder = Annotated[
    Path | None, typer.Argument(help="Folder of an RL run, to be recognised and watched.")
]


def init(run_folder: RunFolder = None, json: AsJson = False, project: ProjectFolder = None) -> int:
    """Write a commented pawl.yaml, filled in for the RL run in RUN_FOLDER where one is given."""
    folder = project or Path.cwd()
    file = folder / PROJECT_FILE
    if not folder.is_dir():
        raise InputError("no such folder", f"--project {folder}", "make it first")
    run = None if run_folder is None else recognised_run(run_folder, folder)
    seen = () if run is None else look(run, ())
    fix = "edit it, or remove it first"
    if run is not None:
        fix = f"add to its runs: {{folder: {quoted(run.folder)}, layout: {run.layout.name}}}"
    try:
        with file.open("x", encoding="utf-8") as written:
            written.write(project_text(run, seen, folder.resolve()))
    except FileExistsError:
        raise InputError("is there already", str(file), fix) from None
    if json:
        found = {} if run is None else {"run": run_json(run, seen)}
        print_json({"written": str(file), **found})
    elif run is None:
        print_text(f"wrote {file}; next: pawl doctor, then pawl eval CHECKPOINT_FOLDER")
    else:
        tell_run(run, seen)
        print_text(f"wrote {file}; next: pawl doctor, then pawl up")
    return 0


def recognised_run(run_folder: Path, project_folder: Path) -> Run:
    """Return the run in a folder.

    Raises:
        InputError: It is none that Pawl recognises, or has a name that YAML can't hold.
    """
    where = str(run_folder.resolve())
    try:
        where.encode()
    except UnicodeEncodeError:
        raise InputError("its name is no UTF-8 text", ascii(where), "rename the folder") from None
    project = Project(folder=project_folder, file=ProjectFile())
    return find_run(RunSection(folder=where), project)


def project_text(run: Run | None, seen: Sequence[Sighting], folder: Path) -> str:
    """Return the text of ``pawl.yaml``.

    Args:
        run: The run to watch; None: the sections for it are examples, commented out.
        seen: Its checkpoints.
        folder: Where the file is to be.
    """
    if run is None:
        runs = RUNS.format(folder="runs/grpo-7b", name="null", layout="null")
        channels = CHANNELS.format(policy="smoke") + FIRST.format(name="grpo-7b@0")
        return TEMPLATE.format(runs=indent(runs, "# "), channels=indent(channels, "# "))
    near = run.folder.is_relative_to(folder)
    runs = RUNS.format(
        folder=quoted(run.folder.relative_to(folder) if near else run.folder),
        name=quoted(run.name) if run.name.isascii() else "null",
        layout=run.layout.name,
    )
    policy = "lab" if run.layout is LAB else "smoke"
    first = seen[0].name if seen else f"{run.name}@0"
    channels = CHANNELS.format(policy=policy) + FIRST.format(name=first)
    return TEMPLATE.format(runs=runs, channels=channels)


def quoted(value: object) -> str:
    """Return text as one line of YAML."""
    text = yaml.safe_dump(str(value), default_style='"', allow_unicode=True, width=sys.maxsize)
    return str(text).strip()


def run_json(run: Run, seen: Sequence[Sighting]) -> dict[str, Any]:
    """Return what was found of a run as JSON types that can be printed."""
    found = {
        "name": run.name,
        "folder": str(run.folder),
        "layout": run.layout.name,
        "checkpoints": [
            {
                "checkpoint": each.name,
                "step": each.step,
                "state": each.state.value,
                "path": each.path,
                "detail": each.detail,
            }
            for each in seen
        ],
        "telemetry": [str(file) for file in telemetry_files(run)],
        "config": dict(run.config),
    }
    text = json_text.dumps(found, ensure_ascii=False).encode("utf-8", "replace")
    return dict(json_text.loads(text))


def tell_run(run: Run, seen: Sequence[Sighting]) -> None:
    """Print what was found of a run."""
    print_text(f"{run.name}: layout {run.layout.name} ({run.layout.frameworks}) in {run.folder}")
    if not seen:
        print_text("checkpoints: none yet")
    for state in SightingState:
        steps = [str(each.step) for each in seen if each.state is state]
        if steps:
            print_text(f"{state.value}: {len(steps)}, at step {', '.join(steps)}")
    for each in seen:
        if each.state is SightingState.CORRUPT:
            print_text(f"{each.name} is corrupt: {each.detail}")
    files = [str(file.relative_to(run.folder)) for file in telemetry_files(run)]
    print_text(f"telemetry: {', '.join(files) or 'none yet'}")
    for key, value in run.config.items():
        text = shorten(json_text.dumps(value, ensure_ascii=False), 160, placeholder=" …")
        print_text(f"{key}: {text}")


def serve(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on loopback.")] = 8501,
    project: ProjectFolder = None,
) -> None:
    """Serve the app on loopback until Ctrl-C."""
    where = find_project(project)
    note(f"the app: http://{LOOPBACK}:{port}")
    os.execv(sys.executable, app_command(where, port))
