"""``pawl init`` and ``pawl app``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from evals.errors import InputError
from pipelines.console import AsJson, ProjectFolder, note, print_json, print_text
from storage.project import PROJECT_FILE, find_project

TEMPLATE = """\
# Pawl's project file. Everything has a default; paths are relative to this folder.

# Where results are kept. For a team: catalog "postgres:dbname=pawl host=db", data on a shared disk.
lake:
  catalog: .pawl/lake.sqlite
  data: .pawl/lake

# How vLLM is started.
engine:
  dtype: auto              # auto, float32, bfloat16, float16
  context_tokens: null     # longest prompt plus answer; null: what the checkpoint allows
  tensor_parallel: 1
  pipeline_parallel: 1
  memory_fraction: 0.9     # of a GPU's memory
  kv_cache_gib: 2.0        # of the host's memory, without a GPU
  parallel_sequences: 64   # answers generated at the same time
  compiled: null           # compile the model first; null: on GPUs only

# Where workers run; null: a Ray head of one's own on this machine.
ray:
  address: null

# mirror.json of data sets on disk, for machines without the hub.
data_mirror: null

# Folder with YAML tasks of your own, in lm-eval's format.
tasks_folder: null
"""


def init(json: AsJson = False, project: ProjectFolder = None) -> int:
    """Write a commented pawl.yaml with every default."""
    folder = project or Path.cwd()
    file = folder / PROJECT_FILE
    if not folder.is_dir():
        raise InputError("no such folder", f"--project {folder}", "make it first")
    try:
        with file.open("x", encoding="utf-8") as written:
            written.write(TEMPLATE)
    except FileExistsError:
        raise InputError("is there already", str(file), "edit it, or remove it first") from None
    if json:
        print_json({"written": str(file)})
    else:
        print_text(f"wrote {file}; next: pawl doctor, then pawl eval CHECKPOINT_FOLDER")
    return 0


def serve(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on loopback.")] = 8501,
    project: ProjectFolder = None,
) -> None:
    """Serve the app on loopback until Ctrl-C."""
    where = find_project(project)
    main = Path(__file__).parents[2] / "app" / "main.py"
    command = [sys.executable, "-m", "streamlit", "run", str(main)]
    command += ["--server.address", "127.0.0.1", "--server.port", str(port)]
    command += ["--server.headless", "true", "--browser.gatherUsageStats", "false"]
    command += ["--server.fileWatcherType", "none", "--", "--project", str(where.folder)]
    note(f"the app: http://127.0.0.1:{port}")
    os.execv(sys.executable, command)
