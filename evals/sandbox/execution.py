"""What goes into the sandbox beside the program, and what comes out."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from enum import StrEnum

from evals.errors import InputError


class ProgramOutcome(StrEnum):
    """How a program ended."""

    PASSED = "passed"
    """It ran to the end of its last statement."""
    FAILED = "failed"
    """It raised, did not compile, or left before its end with whatever exit code."""
    TIMEOUT = "timeout"
    """It used up its CPU or wall-clock time."""
    KILLED = "killed"
    """It went over another limit, or a signal ended it."""
    REFUSED = "refused"
    """It was not started: too large, or not a text that Python could read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one program may use, itself and all the processes it starts together."""

    wall_s: float = 10.0
    """Wall-clock time, less the time that the program waited for a busy CPU."""
    cpu_s: float = 10.0
    memory_mb: int = 512
    """Resident memory of all processes, and address space of each."""
    processes: int = 32
    """Processes and threads."""
    files: int = 64
    """Open files of each process."""
    inodes: int = 4096
    """Files and folders in ``/tmp``."""
    tmpfs_mb: int = 64
    """Size of ``/tmp``, where the program also starts."""
    output_bytes: int = 64 * 1024
    """Standard output and error together; what comes after is read, counted and dropped."""

    def __post_init__(self) -> None:
        """Hold that every limit is a finite number above 0."""
        for field in fields(self):
            value = getattr(self, field.name)
            if not (math.isfinite(value) and value > 0):
                raise InputError(f"is {value}", field.name, "give a number above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One program's end and what it took."""

    outcome: ProgramOutcome
    exit_code: int | None
    """0 when passed; the program's own, -N after signal N; None where the sandbox ended it."""
    output: str
    """Standard output and error as they came; a last line tells of what was dropped."""
    error: str
    """Why it did not pass, one line; after an uncaught exception the end of its traceback."""
    wall_s: float
    """From the program's first instruction, without the start of the cage."""
    cpu_s: float
    """Of all its processes together."""
