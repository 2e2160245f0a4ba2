"""Pass@k of generated code, with the interface of Hugging Face evaluate's ``code_eval`` metric.

Tasks written against that metric (HumanEval, MBPP) call ``compute`` on an object of this class
instead; their programs then run in the sandbox.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypedDict

from evals.errors import InputError
from evals.sandbox.execution import Execution, Limits, ProgramOutcome
from evals.sandbox.program import run_many

WALL_PER_CPU = 3.0
"""Wall-clock seconds per second of ``timeout``, so that waiting for a disk costs no score."""


class CompletionResult(TypedDict):
    """What became of one completion, under the names of the ``code_eval`` metric."""

    task_id: int
    passed: bool
    result: str
    """``passed``, ``timed out``, or ``failed: `` and why."""
    completion_id: int


class SandboxedCodeEval:
    """Scores completions by running each with its tests in a sandbox of its own."""

    def compute(
        self,
        *,
        references: Sequence[str],
        predictions: Sequence[Sequence[str]],
        k: Iterable[int] = (1, 10, 100),
        num_workers: int = 4,
        timeout: float = 3.0,
    ) -> tuple[dict[str, float], dict[int, list[tuple[int, CompletionResult]]]]:
        """Return pass@k over all tasks, and each task's results by completion.

        Args:
            references: The tests of each task.
            predictions: The completions of each task; a program is a completion, a line feed
                and the tests.
            k: Numbers of tries; left out of the answer where a task has fewer completions.
            num_workers: Programs that run at a time.
            timeout: CPU seconds of each program; three times as many by the clock.

        Raises:
            InputError: No tasks, or not as many references as predictions.
            SandboxUnavailable: The sandbox can't be had or broke; nothing is scored.
        """
        if not predictions or len(references) != len(predictions):
            raise InputError(
                f"{len(references)} references for {len(predictions)} predictions",
                "code_eval",
                "give one reference, and a list of completions, for each task",
            )
        owners = [
            (task, completion)
            for task, completions in enumerate(predictions)
            for completion in range(len(completions))
        ]
        executions = run_many(
            [f"{predictions[task][at]}\n{references[task]}" for task, at in owners],
            Limits(cpu_s=timeout, wall_s=WALL_PER_CPU * timeout),
            num_workers,
        )
        results: dict[int, list[tuple[int, CompletionResult]]] = {
            task: [] for task in range(len(predictions))
        }
        for (task, at), execution in zip(owners, executions, strict=True):
            results[task].append((at, _describe(task, at, execution)))
        passed = [sum(result["passed"] for _, result in results[task]) for task in results]
        return _average_pass_at_k([len(each) for each in predictions], passed, k), results


def estimate_pass_at_k(tries: int, passed: int, k: int) -> float:
    """Return the unbiased estimate that at least one of k tries passes.

    Args:
        tries: Completions drawn, at least k.
        passed: How many of them passed.
        k: Tries allowed.

    Source: Chen et al. (2021), arXiv:2107.03374, equation 1.
    """
    return 1.0 - math.comb(tries - passed, k) / math.comb(tries, k)


def _average_pass_at_k(
    tries: Sequence[int], passed: Sequence[int], k: Iterable[int]
) -> dict[str, float]:
    """Return the mean over tasks for each k that every task has enough completions for."""
    return {
        f"pass@{each}": math.fsum(
            estimate_pass_at_k(n, c, each) for n, c in zip(tries, passed, strict=True)
        )
        / len(tries)
        for each in k
        if min(tries) >= each
    }


def _describe(task: int, completion: int, execution: Execution) -> CompletionResult:
    """Return one completion's result in the metric's own words."""
    words = {ProgramOutcome.PASSED: "passed", ProgramOutcome.TIMEOUT: "timed out"}
    return CompletionResult(
        task_id=task,
        passed=execution.outcome is ProgramOutcome.PASSED,
        result=words.get(execution.outcome, f"failed: {execution.error}"),
        completion_id=completion,
    )
