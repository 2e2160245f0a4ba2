"""Run the small job on a project's lake with the scripted engine; a test kills this process.

Usage: run_small_job.py PROJECT_FOLDER DELAY_S [STEP]
"""

from __future__ import annotations

import sys
from pathlib import Path

from small_task import DigitTask, small_evaluation, small_plan

from evals.adapters.scripted import ScriptedEngine
from evals.job import answer_here, evaluate
from evals.plan import Request
from storage.project import find_project


def script(request: Request, repeat: int) -> str:
    number = int(request.item_id[:6], 16) + repeat
    return ["1", "22222", "no digit", str(number % 10)][number % 4]


def main() -> None:
    folder, delay_s = Path(sys.argv[1]), float(sys.argv[2])
    step = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    folder.mkdir(exist_ok=True)
    task = DigitTask(60)
    plan = small_plan(task, repeats=2)
    evaluation = small_evaluation(task, plan, step)
    with find_project(folder).open_store(create=True) as store:
        store.register_checkpoint(evaluation.checkpoint, {})
        answer = answer_here(ScriptedEngine(script, delay_s), store, evaluation.evaluation_id)
        evaluate(evaluation, plan, {"digits": task}, store, answer, scorer_version="1")
    print("done", flush=True)


if __name__ == "__main__":
    main()
