"""Small run folders of both layouts, and processes that write and delete in them."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from evals.checkpoint import CheckpointFolder
from pipelines.checkpoints.layout import Layout
from pipelines.checkpoints.look import look
from pipelines.checkpoints.run_folder import Run, find_run
from storage.project import Project, ProjectFile, RunSection
from storage.sightings import Sighting

REPOSITORY = Path(__file__).parents[3]
LAST = "trainer_state.json"


def safetensors_bytes(values: bytes) -> bytes:
    """A safetensors file with one tensor of these bytes."""
    tensor = {"dtype": "U8", "shape": [len(values)], "data_offsets": [0, len(values)]}
    header = json.dumps({"w": tensor}).encode()
    return struct.pack("<Q", len(header)) + header + values


def checkpoint_files(seed: int = 0, shards: int = 2) -> dict[str, bytes]:
    """A whole checkpoint's files that can move an answer, in the order in which they are saved."""
    names = [f"model-{i:05d}-of-{shards:05d}.safetensors" for i in range(1, shards + 1)]
    weights = {name: safetensors_bytes(bytes([seed % 256, i]) * 32) for i, name in enumerate(names)}
    index = {"metadata": {"total_size": 64 * shards}, "weight_map": {n: n for n in names}}
    return {
        "config.json": b'{"model_type": "llama", "max_position_embeddings": 64}',
        "generation_config.json": b"{}",
        **weights,
        "model.safetensors.index.json": json.dumps(index).encode(),
        "chat_template.jinja": b"{{ messages }}",
        "tokenizer_config.json": b"{}",
        "tokenizer.json": b"{}",
    }


def trainer_files(step: int, seed: int = 0, shards: int = 2) -> dict[str, bytes]:
    """All files of a ``checkpoint-N`` in the order in which the HF Trainer writes them."""
    state = {"global_step": step, "max_steps": 100, "log_history": [{"step": step, "loss": 0.5}]}
    return {
        **checkpoint_files(seed, shards),
        "optimizer.pt": b"optimizer" * 20,
        "rng_state.pth": b"rng",
        LAST: json.dumps(state).encode(),
    }


def write_files(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def add_step(run: Path, step: int) -> Path:
    """Write a whole checkpoint into a run of either layout; returns its folder."""
    if (run / "run.json").exists():
        return write_files(run / "checkpoints" / f"step_{step}", checkpoint_files(step))
    return write_files(run / f"checkpoint-{step}", trainer_files(step, step))


def lab_run(folder: Path, *steps: int) -> Path:
    folder.mkdir(parents=True)
    config = {"framework": "pawl-lab", "model_line": "lab-1m", "config": {"seed": 1}}
    (folder / "run.json").write_text(json.dumps(config))
    for step in steps:
        add_step(folder, step)
    return folder


def trainer_run(folder: Path, *steps: int) -> Path:
    folder.mkdir(parents=True)
    for step in steps:
        add_step(folder, step)
    return folder


def project_in(folder: Path) -> Project:
    folder.mkdir(parents=True, exist_ok=True)
    return Project(folder=folder, file=ProjectFile())


def run_in(folder: Path, layout: str | None = None) -> Run:
    section = RunSection(folder=str(folder), layout=layout)
    return find_run(section, project_in(folder.parent / "project"))


def run_of(folder: Path, layout: Layout) -> Run:
    """A run of a layout that Pawl does not ship."""
    return Run(name=folder.name, folder=folder.resolve(), layout=layout, config={})


def told(seen: Iterable[Sighting]) -> dict[int, str]:
    """State by step, in the order in which they were returned."""
    return {each.step: each.state.value for each in seen}


def looks(run: Run, times: int, known: Iterable[Sighting] = ()) -> tuple[Sighting, ...]:
    """What the last of several looks returned."""
    seen = tuple(known)
    for _ in range(times):
        seen = look(run, seen)
    return seen


def start(name: str, *arguments: object) -> subprocess.Popen[str]:
    """One of the functions below in a process of its own."""
    return subprocess.Popen(
        [sys.executable, __file__, name, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )


def say(text: str) -> None:
    print(text, flush=True)


def write_slowly(folder: str, step: str) -> None:
    """Write a checkpoint of the HF Trainer file by file, each file in pieces."""
    path = Path(folder)
    path.mkdir(parents=True)
    for name, content in trainer_files(int(step)).items():
        with (path / name).open("wb") as file:
            for start_at in range(0, len(content), 40):
                file.write(content[start_at : start_at + 40])
                file.flush()
                time.sleep(0.002)
    say("written")


def write_and_rename(folder: str, step: str) -> None:
    """Write a checkpoint of the lab file by file, then give it its name."""
    path = Path(folder)
    draft = path.with_name(f"tmp_{path.name}")
    draft.mkdir(parents=True)
    for name, content in checkpoint_files(int(step)).items():
        (draft / name).write_bytes(content)
        time.sleep(0.02)
    draft.rename(path)
    say("written")


def come_and_go(folder: str) -> None:
    """Write a checkpoint and delete it, again and again, until killed."""
    path = Path(folder)
    say("started")
    while True:
        write_files(path, trainer_files(1))
        shutil.rmtree(path)


def pin_stepwise(project: str, folder: str, *forget: str) -> None:
    """Pin a checkpoint; wait for a line on stdin before it is inspected and before each file.

    With one more argument it is pinned as if nothing were known of what was in it.
    """
    from evals.errors import PawlError
    from pipelines.checkpoints import pin

    inspect, link = pin.inspect_checkpoint, pin.link
    run = run_in(Path(folder))
    (seen,) = look(run, ())
    if forget:
        seen = replace(seen, detail=None)

    def wait(word: str) -> None:
        say(word)
        sys.stdin.readline()

    def waiting_inspect(path: Path) -> CheckpointFolder:
        if path == Path(seen.path):
            wait("inspect")
        return inspect(path)

    def waiting_link(source: Path, target: Path) -> bool:
        wait("link")
        return link(source, target)

    pin.inspect_checkpoint, pin.link = waiting_inspect, waiting_link
    wait("seen")
    try:
        say(f"pinned {pin.pin(seen, project_in(Path(project)))}")
    except PawlError as failed:
        say(f"{type(failed).__name__}")


if __name__ == "__main__":
    FUNCTION, *ARGUMENTS = sys.argv[1:]
    globals()[FUNCTION](*ARGUMENTS)
