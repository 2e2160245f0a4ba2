"""A small project for `pawl up`: an RL run made of the lab's warm-up model, three checkpoints."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.lab.model import WARM
from pipelines.services.parts import free_port
from pipelines.status import read_status
from storage.project import find_project

PAWL = str(Path(sys.executable).with_name("pawl"))

SUITE = """
name: short
version: "1"
tasks:
  - {{task: lab_sums, options: {{items: {items}}}}}
  - {{task: lab_words, options: {{items: {items}}}}}
  - {{task: lab_refusals, options: {{items: {items}}}}}
"""

POLICY = """
name: short
version: "1"
rules:
  - {name: safety-floor, capability: safety, role: must, floor: 0.3}
  - {name: reasoning-holds, capability: reasoning, role: must, margin: 0.15}
  - {name: words-hold, capability: multilingual, role: must, margin: 0.15}
"""

SETTINGS = """
runs: [{{folder: runs/lab, name: lab}}]
channels:
  production:
    policy: policy.yaml
    suite: suite.yaml
    first: {{checkpoint: lab@0, who: the test, why: it is where the run starts}}
engine: {engine}
services: {{dagster_port: {dagster}, app_port: {app}, poll_s: 1}}
"""


TORCH = "{name: torch}"
VLLM = "{dtype: float32, kv_cache_gib: 0.5, parallel_sequences: 128}"


@dataclass(frozen=True)
class UpProject:
    """A project whose run folder is there."""

    folder: Path

    @property
    def run(self) -> Path:
        return self.folder / "runs" / "lab"

    def pawl(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PAWL, *arguments], cwd=self.folder, capture_output=True, text=True, check=False
        )

    def read(self, *arguments: str) -> Any:
        done = self.pawl(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def states(self) -> dict[str, str]:
        """How far each checkpoint is; read here, since a command a look would take longer."""
        told = read_status(find_project(self.folder))
        return {one.name: one.state.value for one in told.sightings}

    def ledger(self) -> list[tuple[str, str, str | None]]:
        """What was decided and promoted: kind, checkpoint, verdict."""
        entries = self.read("ledger", "show")["entries"]
        return [(e["kind"], e["candidate"], e["verdict"]) for e in entries if e["candidate"]]


def make_project(folder: Path, *, engine: str = TORCH, items: int = 120) -> UpProject:
    """Write ``pawl.yaml``, suite, policy and the beginning of a run."""
    project = UpProject(folder)
    (project.run / "checkpoints").mkdir(parents=True)
    (folder / "suite.yaml").write_text(SUITE.format(items=items))
    (folder / "policy.yaml").write_text(POLICY)
    settings = SETTINGS.format(engine=engine, dagster=free_port(), app=free_port())
    (folder / "pawl.yaml").write_text(settings)
    (project.run / "run.json").write_text(json.dumps({"framework": "pawl-lab", "config": {}}))
    return project


def write_metrics(project: UpProject, steps: int, jump_at: int) -> None:
    """Log an entropy that stays where it is and falls from a step on."""
    lines = [
        {"step": s, "time": 1.0 * s, "entropy": (0.2 if s > jump_at else 1.0) + 0.01 * (s % 3)}
        for s in range(1, steps + 1)
    ]
    (project.run / "metrics.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))


def write_checkpoint(project: UpProject, step: int, *, noise: float = 0.0) -> Path:
    """Write the warm-up model as a step; ``noise`` in spreads of each tensor breaks it."""
    import torch
    from safetensors.torch import load_file, save_file

    draft = project.run / "checkpoints" / f"tmp_step_{step}"
    shutil.copytree(WARM, draft)
    torch.manual_seed(step)
    weights = load_file(draft / "model.safetensors")
    changed = {
        name: tensor + noise * tensor.float().std().to(tensor.dtype) * torch.randn_like(tensor)
        for name, tensor in weights.items()
    }
    save_file(changed, draft / "model.safetensors", metadata={"format": "pt", "step": str(step)})
    return draft.rename(project.run / "checkpoints" / f"step_{step}")


@contextmanager
def pawl_up(project: UpProject) -> Iterator[subprocess.Popen[bytes]]:
    """Run `pawl up` until the block ends."""
    with (project.folder / "up.log").open("ab") as log:
        process = subprocess.Popen(
            [PAWL, "up"], cwd=project.folder, stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(60)


def wait_until(
    true: Callable[[], bool], process: subprocess.Popen[bytes], *, seconds: float = 900
) -> None:
    """Return once something holds; fail where it does not in time, or `pawl up` has ended."""
    deadline = time.monotonic() + seconds
    while not true():
        assert process.poll() is None, "pawl up has ended"
        assert time.monotonic() < deadline, "it did not come to that in time"
        time.sleep(2)


def processes_of(project: UpProject) -> dict[int, str]:
    """Command lines by number of all processes that work in the project or for it."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            variables = (entry / "environ").read_bytes().decode("utf-8", "replace")
        except OSError:
            continue
        if int(entry.name) != os.getpid() and str(project.folder) in command + variables:
            found[int(entry.name)] = command
    return found
