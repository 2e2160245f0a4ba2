"""The whole path on torch: one small model, no vLLM and no Ray."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from command_line import RunPawl, read_json
from little_model import write_little

from pipelines.evaluating import Prepared, prepare, run
from storage.project import Project, find_project

SUITE = """
name: tiny
version: "1"
tasks:
  - {task: pawl_arithmetic, limit: 12, repeats: 2, sampling: {temperature: 1.0, seed: 7}}
  - {task: pawl_harmless, limit: 12, max_tokens: 8}
"""


@pytest.fixture(scope="module")
def little(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_little(tmp_path_factory.mktemp("run") / "checkpoint-7")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "tiny.yaml").write_text(SUITE)
    (tmp_path / "pawl.yaml").write_text("engine: {name: torch, dtype: float32}\n")
    return find_project(tmp_path)


def prepared(little: Path, project: Project) -> Prepared:
    from evals.suite import load_suite

    return prepare(little, ("run", 7), load_suite(project.named_file("tiny.yaml")), project)


def test_a_command_answers_by_the_engine_that_the_project_chose(
    little: Path, project: Project, run_pawl: RunPawl
) -> None:
    done = run_pawl(
        *("eval", str(little), "--suite", "tiny.yaml", "--as", "run@7", "--json"),
        cwd=project.folder,
    )
    document = read_json(done)
    assert document["state"] == "complete"
    assert [sum(task["outcomes"].values()) for task in document["tasks"]] == [24, 12]
    assert [task["outcomes"]["errored"] for task in document["tasks"]] == [0, 0]
    with project.open_store() as store:
        engine = store.load_evaluation(document["evaluation"]).evaluation.engine
    assert (engine.engine, engine.dtype, engine.compiled) == ("torch", "float32", False)
    checks = read_json(run_pawl("doctor", "--json", cwd=project.folder))["checks"]
    (told,) = [check["detail"] for check in checks if check["name"] == "engine"]
    assert told.startswith(f"torch {engine.version} on {engine.device}")


def test_what_is_owed_is_answered_as_it_would_have_been_at_once(
    little: Path, project: Project, tmp_path: Path
) -> None:
    asked = prepared(little, project)
    key = asked.evaluation.evaluation_id
    with project.open_store(create=True) as store:
        run(asked, store, project)
        at_once = store.responses(key)
    assert len(at_once) == 36

    (tmp_path / "killed").mkdir()
    shutil.copy(project.folder / "pawl.yaml", tmp_path / "killed")
    killed = find_project(tmp_path / "killed")
    with killed.open_store(create=True) as store:
        with store.spool_writer(key) as writer:
            for response in at_once[::3]:
                writer.append(response)
        told: list[tuple[str, int]] = []
        run(asked, store, killed, progress=lambda stage, done, _: told.append((stage, done)))
        assert store.responses(key) == at_once
    answered = [done for stage, done in told if stage == "answers"]
    assert answered == list(range(12, 37)), "what was stored was asked again"
