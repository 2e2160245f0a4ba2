"""``pawl gate`` where there is too little to decide on; it must not claim what it can't know."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import RunPawl, read_json
from small_task import DigitTask, small_evaluation, small_plan

from evals.adapters.scripted import ScriptedEngine
from evals.job import answer_here, evaluate
from storage.project import find_project

POLICY = """
name: small
version: "1"
kind: promotion
rules:
  - {name: digits-hold, task: digits, role: must, margin: 0.05}
"""


def build(folder: Path, *, items: int, answered: bool) -> None:
    """Store two evaluations of ``items`` items with equal answers, or with none at all."""
    (folder / "pawl.yaml").write_text("{}\n")
    (folder / "policy.yaml").write_text(POLICY)
    task = DigitTask(items)
    plan = small_plan(task)
    with find_project(folder).open_store(create=True) as store:
        for step in (1, 2):
            evaluation = small_evaluation(task, plan, step)
            store.register_checkpoint(evaluation.checkpoint, {})
            store.put_evaluation(evaluation)
            store.put_plan(evaluation, plan.items, plan.requests)
            if answered:
                engine = ScriptedEngine(lambda request, _: str(int(request.item_id[:4], 16) % 10))
                answer = answer_here(engine, store, evaluation.evaluation_id)
                evaluate(evaluation, plan, {"digits": task}, store, answer, scorer_version="1")


@pytest.mark.parametrize(("items", "answered"), [(5, True), (5, False), (0, True), (300, False)])
def test_too_little_is_inconclusive(
    run_pawl: RunPawl, tmp_path: Path, items: int, answered: bool
) -> None:
    build(tmp_path, items=items, answered=answered)
    done = run_pawl(
        "gate", "r@2", "--against", "r@1", "--policy", "policy.yaml", "--json", cwd=tmp_path
    )
    assert done.returncode == 2, done.stderr
    document = read_json(done)
    assert document["verdict"] == "INCONCLUSIVE"
    (rule,) = document["rules"]
    assert rule["reasons"]
    assert rule["low"] < -0.05 < rule["high"]
    assert rule["p_pass"] > 0.05


def test_equal_answers_on_enough_items_pass(run_pawl: RunPawl, tmp_path: Path) -> None:
    build(tmp_path, items=80, answered=True)
    done = run_pawl(
        "gate", "r@2", "--against", "r@1", "--policy", "policy.yaml", "--json", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
