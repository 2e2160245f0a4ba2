"""Starts a project's parts, starts again what dies, and ends all of them together."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from evals.errors import EngineError, LakeError
from pipelines.services.dagster_runs import cancel_leftovers
from pipelines.services.leftovers import end_leftovers, note_parts
from pipelines.services.part import Part, RunningPart, end_groups, last_line, start_part
from pipelines.services.parts import dagster_home, project_parts
from storage.locks import file_lock
from storage.project import Project

RESTARTS = 3
"""How often a part is started again within ``RESTARTS_S``; the next death ends all."""

RESTARTS_S = 600.0
LOOK_S = 1.0

Note = Callable[[str], None]


class Services:
    """The running parts of one project; ``services`` makes one.

    Args:
        project: Whose parts they are.
        note: Told what happens.
    """

    def __init__(self, project: Project, note: Note) -> None:
        self.project = project
        self._note = note
        self._running: dict[str, RunningPart] = {}
        self._deaths: dict[str, list[float]] = {}

    @property
    def logs(self) -> Path:
        """Return the folder of the parts' logs."""
        return self.project.state / "logs"

    def start(self) -> None:
        """Start all parts and return once they answer.

        Raises:
            EngineError: One of them did not start.
        """
        waiting = []
        for part in project_parts(self.project):
            self._start(part)
            waiting.append(self._running[part.name])
            if part.name == "code":
                waiting[-1].wait_until_ready()
        for running in waiting:
            running.wait_until_ready()
            self._note(f"{running.part.name}: {running.part.address}")

    def _start(self, part: Part) -> None:
        self._running[part.name] = start_part(part, self.logs)
        note_parts(
            self.project.state,
            [(r.part.name, r.process.pid, r.part.address) for r in self._running.values()],
        )

    def check(self) -> None:
        """Start again what has died.

        Raises:
            EngineError: A part died again and again.
        """
        for name, running in list(self._running.items()):
            if running.alive:
                continue
            now = time.monotonic()
            deaths = [at for at in self._deaths.get(name, []) if now - at < RESTARTS_S]
            self._deaths[name] = [*deaths, now]
            told = last_line(running.log)
            running.end()
            if len(deaths) >= RESTARTS:
                raise EngineError(
                    f"died {len(deaths) + 1} times in {RESTARTS_S / 60:.0f} minutes: {told}",
                    name,
                    f"see {running.log}, then run the same command again",
                )
            self._note(f"{name} died ({told}); starting it again")
            self._start(running.part)
            self._running[name].wait_until_ready()

    def end(self) -> None:
        """End all parts together."""
        end_groups(running.process.pid for running in self._running.values())
        for running in self._running.values():
            running.reap()
        self._running.clear()
        end_leftovers(self.project.state)


@contextmanager
def services(project: Project, note: Note) -> Iterator[Services]:
    """Yield the project's parts, running; they end with the block.

    Raises:
        EngineError: Another `pawl up` runs on the project, or a part did not start.
    """
    project.state.mkdir(parents=True, exist_ok=True)
    with only_one(project):
        left = end_leftovers(project.state)
        if left:
            note(f"ended what an earlier `pawl up` left running: {', '.join(left)}")
        cancelled = cancel_leftovers(dagster_home(project))
        if cancelled:
            note(f"{cancelled} evaluations were under way; they go on from what is stored")
        running = Services(project, note)
        try:
            running.start()
            yield running
        finally:
            running.end()


@contextmanager
def only_one(project: Project) -> Iterator[None]:
    """Hold the right to run the project's parts.

    Raises:
        EngineError: Somebody else holds it.
    """
    with ExitStack() as held:
        try:
            held.enter_context(file_lock(project.state / "up.lock", timeout_s=0))
        except LakeError as taken:
            raise EngineError(
                "`pawl up` runs already on this project",
                str(project.folder),
                "use it (`pawl status` tells its addresses), or end it with Ctrl-C there",
            ) from taken
        yield


def keep_running(
    running: Services, until: Callable[[], bool] = lambda: False, *, every_s: float = LOOK_S
) -> None:
    """Look after the parts until ``until``, asked every ``every_s`` seconds, says it is enough."""
    while not until():
        running.check()
        time.sleep(every_s)
