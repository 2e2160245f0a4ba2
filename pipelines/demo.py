"""The main job from start to end: a small RL run, its checkpoints evaluated, gated and promoted.

The run is real and so are the verdicts. From a given step on its reward forgets all capabilities
but one, so that there is something to block.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from evals.errors import EngineError, InputError
from pipelines.services.part import end_groups, last_line, listens
from pipelines.services.parts import LOOPBACK, free_port
from pipelines.services.supervisor import Services, keep_running, services
from pipelines.status import ProjectStatus, read_status
from storage.ledger import LedgerEntry
from storage.project import PROJECT_FILE, Project, find_project
from storage.sightings import SightingState
from storage.store import LakeStore

RUN = "lab"
STEPS, EVERY, FAULT_STEP = 120, 30, 60
"""The run writes steps 0, 30, 60, 90 and 120; its reward is sound up to step 60."""

LOOK_S = 3.0
"""Between two looks at how the project stands; each opens the lake."""

UNDER_WAY = frozenset({SightingState.WRITING, SightingState.COMPLETE, SightingState.PINNED})
"""States after which something is still to come."""

Say = Callable[[str], None]

SETTINGS = """\
# The demo's project. `pawl init RUN_FOLDER` writes one for a run of your own.
runs:
  - {{folder: runs/{run}, name: {run}}}
channels:
  production:
    policy: lab
    suite: lab
    # Whose word the first promotion is, before there is anything to compare with.
    first: {{checkpoint: {run}@0, who: demo, why: the model that the RL run starts from}}
engine: {{dtype: float32, kv_cache_gib: 1.0, parallel_sequences: 256}}
services: {{dagster_port: {dagster}, app_port: {app}, poll_s: 2}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What the demo came to."""

    status: ProjectStatus
    ledger: tuple[LedgerEntry, ...]
    seconds: dict[str, float]
    """Wall-clock time of each stage."""


def make_project(folder: Path) -> Project:
    """Return the demo's project in ``folder``, new or as an earlier demo left it.

    Raises:
        InputError: The folder holds something else.
    """
    file = folder / PROJECT_FILE
    if folder.exists() and not file.exists() and any(folder.iterdir()):
        raise InputError("not empty, and no demo", str(folder), "give an empty or a new folder")
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        text = SETTINGS.format(run=RUN, dagster=port_near(3000), app=port_near(8501))
        file.write_text(text, "utf-8")
    return find_project(folder)


def port_near(wanted: int) -> int:
    """Return the port if nothing listens there, or another one."""
    return free_port() if listens((LOOPBACK, wanted)) else wanted


class Follower:
    """Says what happens to the run's checkpoints, each thing once.

    Args:
        project: The demo's.
        say: Told each thing.
    """

    def __init__(self, project: Project, say: Say) -> None:
        self._project = project
        self._say = say
        self._told: dict[str, str] = {}

    def look(self) -> bool:
        """Say what is new; return whether every checkpoint of the run came to its end."""
        told = read_status(self._project)
        for one in told.sightings:
            self._tell(one.name, f"{one.name} is {one.state.value}")
        for owing in told.owing:
            tenth = 10 * owing.stored // max(owing.planned, 1)
            self._tell(
                owing.evaluation,
                f"{owing.checkpoint}: {owing.stored} of {owing.planned} answers stored",
                mark=str(tenth),
            )
        for name, head in told.verdicts.items():
            self._tell(f"verdict {name}", f"{name}: {head.verdict}")
        for channel in told.channels:
            if channel.holder is not None:
                self._tell(f"channel {channel.name}", f"{channel.name} is {channel.holder.name}")
        ended = {one.step for one in told.sightings if one.state not in UNDER_WAY}
        return ended >= set(range(0, STEPS + 1, EVERY))

    def _tell(self, key: str, text: str, *, mark: str | None = None) -> None:
        if self._told.get(key) != (mark or text):
            self._told[key] = mark or text
            self._say(text)


class Training:
    """The lab's run as a process; one that an earlier demo finished is not run again.

    Args:
        project: The demo's.
    """

    def __init__(self, project: Project) -> None:
        self._folder = project.folder / "runs" / RUN
        self._log = project.state / "logs" / "lab.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._started = time.monotonic()
        self.seconds: float | None = None
        """How long it took; None: it goes on, or was finished before."""

    def start(self) -> None:
        """Start it anew where it is not whole; the same seed gives the same checkpoints again."""
        if (self._folder / "checkpoints" / f"step_{STEPS}").exists():
            return
        if self._folder.exists():
            shutil.rmtree(self._folder)
        self._log.parent.mkdir(parents=True, exist_ok=True)
        command = (
            *(str(Path(sys.executable).with_name("pawl")), "lab", "run", str(self._folder)),
            *("--steps", str(STEPS), "--every", str(EVERY)),
            *("--fault", "forget", "--from-step", str(FAULT_STEP)),
        )
        with self._log.open("ab") as out:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def check(self) -> None:
        """Note when it has ended.

        Raises:
            EngineError: It ended with an error.
        """
        if self._process is None or self._process.poll() is None or self.seconds is not None:
            return
        if self._process.returncode:
            raise EngineError(
                f"ended with exit code {self._process.returncode}: {last_line(self._log)}",
                "the RL run",
                f"see {self._log}",
            )
        self.seconds = time.monotonic() - self._started

    def end(self) -> None:
        """End it where it goes on."""
        if self._process is not None:
            end_groups([self._process.pid])
            self._process.wait()


def do_main_job(project: Project, say: Say, at_end: Callable[[Finished, Services], None]) -> None:
    """Train, evaluate, gate and promote.

    Args:
        project: From ``make_project``.
        say: Told what happens.
        at_end: Called with what it came to and with the services, which run until it returns.

    Raises:
        EngineError: A part did not start, or the run ended with an error.
    """
    seconds: dict[str, float] = {}
    training = Training(project)
    training.start()
    say(f"the RL run writes {STEPS} steps into {project.folder / 'runs' / RUN}")
    begun = time.monotonic()
    try:
        with services(project, say) as running:
            seconds["services"] = time.monotonic() - begun
            follower = Follower(project, say)
            keep_running(running, lambda: follow(follower, training, say), every_s=LOOK_S)
            if training.seconds is not None:
                seconds["training"] = training.seconds
            with project.open_store() as store:
                ledger = store.ledger()
                seconds |= evaluation_seconds(store)
            seconds["all"] = time.monotonic() - begun
            finished = Finished(status=read_status(project), ledger=ledger, seconds=seconds)
            at_end(finished, running)
    finally:
        training.end()


def evaluation_seconds(store: LakeStore) -> dict[str, float]:
    """Return how long each evaluation took, from its beginning to its last score."""
    return {
        f"evaluation of {one.evaluation.checkpoint.name}": (
            datetime.fromisoformat(one.completed_at) - datetime.fromisoformat(one.created_at)
        ).total_seconds()
        for one in store.find_evaluations()
        if one.completed_at is not None
    }


def follow(follower: Follower, training: Training, say: Say) -> bool:
    """Look once; return whether all is done."""
    was = training.seconds
    training.check()
    if training.seconds != was:
        say(f"the RL run has ended after {training.seconds:.0f} s")
    return follower.look()
