"""Programs of a whole batch of answers, run in one cage of the sandbox.

An evaluation gives each program a cage of its own. In training there are dozens a step, and a cage
costs more than most of them: they share one, each in a process of its own. A program that ends its
process itself with success is believed, which costs a wrong reward and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from evals.sandbox import Limits, ProgramOutcome, run_many, run_program

SECONDS_EACH = 2
"""After which a program of the batch is ended."""

DRIVER = """
import os
import signal

ended_well = []
for program in {programs!r}:
    child = os.fork()
    if child == 0:
        signal.alarm({seconds})
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        try:
            exec(compile(program, "answer", "exec"), {{"__name__": "__main__"}})
        except BaseException:
            os._exit(1)
        os._exit(0)
    ended_well.append(os.waitpid(child, 0)[1] == 0)
print("".join("01"[well] for well in ended_well))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a program ended."""

    outcome: str


class Programs:
    """Runs programs, each different one once; small models write the same again and again."""

    def __init__(self) -> None:
        self._outcomes: dict[str, str] = {}

    def run(self, programs: Iterable[str]) -> None:
        """Run those that are new.

        Raises:
            SandboxUnavailable: There is no isolation to be had here.
        """
        new = sorted(set(programs) - self._outcomes.keys())
        if not new:
            return
        limits = Limits(wall_s=10.0 + SECONDS_EACH * len(new), cpu_s=10.0 + SECONDS_EACH * len(new))
        done = run_program(DRIVER.format(programs=new, seconds=SECONDS_EACH), limits=limits)
        marks = done.output.strip()
        if done.outcome is ProgramOutcome.PASSED and len(marks) == len(new):
            passed, failed = ProgramOutcome.PASSED.value, ProgramOutcome.FAILED.value
            ends = [passed if mark == "1" else failed for mark in marks]
        else:
            ends = [one.outcome.value for one in run_many(new)]
        self._outcomes |= dict(zip(new, ends, strict=True))

    def __call__(self, program: str) -> Ended:
        """Return how a program ended that was run."""
        return Ended(outcome=self._outcomes[program])


class Collector:
    """Runs nothing and keeps what it is given."""

    def __init__(self) -> None:
        self.programs: list[str] = []

    def __call__(self, program: str) -> Ended:
        """Keep ``program``."""
        self.programs.append(program)
        return Ended(outcome="kept")
