"""What the host orders of the cage, and what the cage finds."""

from __future__ import annotations


class Broken(Exception):
    """The cage itself does not work here; says nothing of the program."""


class Job:
    """A program and its limits, in the units that the kernel takes."""

    __slots__ = (
        "ceiling_s",
        "cpu_s",
        "files",
        "inodes",
        "memory_bytes",
        "output_bytes",
        "process_ceiling",
        "processes",
        "program",
        "tmpfs_bytes",
        "user",
        "wall_s",
    )

    def __init__(
        self,
        *,
        program: str,
        user: int,
        wall_s: float,
        ceiling_s: float,
        cpu_s: float,
        memory_bytes: int,
        processes: int,
        process_ceiling: int,
        files: int,
        inodes: int,
        tmpfs_bytes: int,
        output_bytes: int,
    ) -> None:
        self.program = program
        self.user = user
        self.wall_s = wall_s
        self.ceiling_s = ceiling_s
        self.cpu_s = cpu_s
        self.memory_bytes = memory_bytes
        self.processes = processes
        self.process_ceiling = process_ceiling
        self.files = files
        self.inodes = inodes
        self.tmpfs_bytes = tmpfs_bytes
        self.output_bytes = output_bytes


class Verdict:
    """How the program ended, and why if it did not pass."""

    __slots__ = ("error", "exit_code", "outcome")

    def __init__(self, outcome: str, exit_code: int | None, error: str) -> None:
        self.outcome = outcome
        self.exit_code = exit_code
        self.error = error
