"""A project with a channel and stored evaluations, as promotion finds one; no engine.

python tests/pipelines/promotion_lake.py FOLDER CANDIDATE      decides on it for the channel, says
the decision and waits to be killed
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from small_task import DigitTask, small_evaluation, small_plan

from evals.evaluation import Evaluation, EvaluationState, suite_fingerprint
from evals.identity import fingerprint
from evals.scoring import Outcome, Score
from evals.suite import load_suite
from pipelines.deciding import decide_for_channel
from storage.ledger import LedgerEntry
from storage.project import Project, find_project
from storage.store import LakeStore

PROJECT = """\
channels:
  production:
    policy: policy.yaml
    suite: suite.yaml
    first: {checkpoint: r@1, who: Ada, why: where the run starts}
"""
POLICY = """\
name: small
version: "1"
rules:
  - {name: digits-hold, task: digits, role: must, margin: 0.05}
  - {name: digits-floor, task: digits, role: must, floor: 0.5}
"""
SUITE = """\
name: small
version: "1"
tasks: [{task: digits}]
"""
ITEMS = 80
FAILS, OPEN, PASSES = 20, 3, 0
"""Wrong answers of 80: a drop against a perfect holder, too few to tell, none."""


def write_project(folder: Path, policy: str = POLICY, suite: str = SUITE) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pawl.yaml").write_text(PROJECT)
    (folder / "policy.yaml").write_text(policy)
    (folder / "suite.yaml").write_text(suite)


@contextmanager
def open_project(folder: Path) -> Iterator[tuple[Project, LakeStore]]:
    project = find_project(folder)
    with project.open_store(create=True) as store:
        yield project, store


def evaluation_of(
    project: Project, step: int, *, items: int = ITEMS, engine: str = "1", attempt: int = 0
) -> Evaluation:
    task = DigitTask(items)
    suite = load_suite(str(project.folder / "suite.yaml")).limited(
        None if items == ITEMS else items, None
    )
    made = small_evaluation(task, small_plan(task), step)
    return replace(
        made,
        evaluation_id=fingerprint([step, items, engine, attempt, suite.fingerprint])[:32],
        suite=suite.name,
        suite_fingerprint=suite_fingerprint(suite.fingerprint, (task.spec,)),
        engine=replace(made.engine, version=engine),
        attempt=attempt,
    )


def put(
    store: LakeStore,
    evaluation: Evaluation,
    wrong: int = PASSES,
    *,
    complete: bool = True,
    answered: bool = True,
) -> None:
    """Store an evaluation whose first ``wrong`` items are answered wrong."""
    task = DigitTask(evaluation.planned_items)
    plan = small_plan(task)
    store.register_checkpoint(evaluation.checkpoint, {})
    store.put_evaluation(evaluation)
    store.put_plan(evaluation, plan.items, plan.requests)
    if answered:
        score(store, evaluation, wrong)
    if complete:
        store.finish_evaluation(evaluation.evaluation_id, EvaluationState.COMPLETE)


def score(store: LakeStore, evaluation: Evaluation, wrong: int, version: str = "1") -> None:
    (spec,) = evaluation.tasks
    scores = [
        Score(
            task=spec.name,
            item_id=item.item_id,
            repeat=0,
            metric=spec.metric_key,
            outcome=Outcome.SCORED,
            value=float(number >= wrong),
        )
        for number, item in enumerate(DigitTask(evaluation.planned_items).items())
    ]
    store.put_scores(evaluation.evaluation_id, version, scores)


def kinds(store: LakeStore) -> list[str]:
    return [entry.kind for entry in store.ledger()]


def last(store: LakeStore) -> LedgerEntry:
    return store.ledger()[-1]


def main() -> None:
    with open_project(Path(sys.argv[1])) as (project, store):
        decision = decide_for_channel("production", sys.argv[2], project, store, who="schedule")
        print(decision.decision, flush=True)
        time.sleep(600)


if __name__ == "__main__":
    main()
