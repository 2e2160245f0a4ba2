"""One part of `pawl up`: a process group of its own, with a log file."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from evals.errors import EngineError

END_S = 10.0
"""How long a part may take to end before it is killed."""

POLL_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """How a part is started and where it listens."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    listens: tuple[str, int] | Path | None
    """Loopback address and port, or a Unix socket; None: nowhere."""
    start_s: float = 120.0
    """How long it may take until it listens."""

    @property
    def address(self) -> str:
        """Return where it listens, for a person."""
        if isinstance(self.listens, tuple):
            return f"{self.listens[0]}:{self.listens[1]}"
        return str(self.listens or "–")


@dataclass(slots=True, kw_only=True)
class RunningPart:
    """A part that was started."""

    part: Part
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def alive(self) -> bool:
        """Return whether its process runs."""
        return self.process.poll() is None

    def wait_until_ready(self) -> None:
        """Return once it listens.

        Raises:
            EngineError: It ended, or does not listen in time; with the last line of its log.
        """
        deadline = time.monotonic() + self.part.start_s
        while not listens(self.part.listens):
            if not self.alive:
                raise EngineError(
                    f"ended with exit code {self.process.returncode}: {last_line(self.log)}",
                    self.part.name,
                    f"see {self.log}",
                )
            if time.monotonic() > deadline:
                raise EngineError(
                    f"does not answer after {self.part.start_s:.0f} s: {last_line(self.log)}",
                    self.part.name,
                    f"see {self.log}",
                )
            time.sleep(POLL_S)

    def end(self) -> None:
        """End its whole process group, by force where it does not end by itself."""
        end_groups([self.process.pid])
        self.reap()

    def reap(self) -> None:
        """Let the system forget its process, which was ended."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(END_S)


def start_part(part: Part, logs: Path) -> RunningPart:
    """Return the part, started; what it prints goes to ``logs/NAME.log``.

    Raises:
        EngineError: Something else listens there already.
    """
    if isinstance(part.listens, tuple) and listens(part.listens):
        raise EngineError(
            f"{part.address} is taken by another process",
            part.name,
            "end that process, or write another port under services: in pawl.yaml",
        )
    if isinstance(part.listens, Path):
        part.listens.unlink(missing_ok=True)
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / f"{part.name}.log"
    with log.open("ab") as out:
        process = subprocess.Popen(
            part.command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, **part.environment},
            start_new_session=True,
        )
    return RunningPart(part=part, process=process, log=log)


def listens(where: tuple[str, int] | Path | None) -> bool:
    """Return whether something accepts connections there; True for nowhere."""
    if where is None:
        return True
    family = socket.AF_INET if isinstance(where, tuple) else socket.AF_UNIX
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(where if isinstance(where, tuple) else str(where)) == 0


def end_groups(groups: Iterable[int]) -> None:
    """End all processes of some groups: asked first, killed where they are left after ``END_S``."""
    left = list(groups)
    for sign, patience in ((signal.SIGTERM, END_S), (signal.SIGKILL, 2.0)):
        for group in left:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, sign)
        deadline = time.monotonic() + patience
        while left and time.monotonic() < deadline:
            left = [group for group in left if group_lives(group)]
            time.sleep(POLL_S)


def group_lives(group: int) -> bool:
    """Return whether a process of the group still runs; zombies do not count."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, IndexError, ValueError):
            state, _, member = stat.read_text().rpartition(")")[2].split()[:3]
            if int(member) == group and state != "Z":
                return True
    return False


def last_line(log: Path) -> str:
    """Return the last line of a log that says something."""
    with suppress(OSError):
        lines = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
        if lines:
            return lines[-1].strip()[:300]
    return "it printed nothing"
