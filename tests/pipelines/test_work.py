"""A worker answers with the weights that the evaluation was planned for, or not at all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from evals.checkpoint import digest_checkpoint, inspect_checkpoint, unchanged
from evals.errors import CheckpointError, CheckpointVanished
from evals.suite import load_suite
from pipelines.checkpoints.pin import pin
from pipelines.evaluating import Prepared, answer_by_engine, prepare, run
from pipelines.work import BuildEngine
from storage.project import EngineSection, Project, ProjectFile
from storage.sightings import Sighting, SightingState

SUITE = """
name: short
version: "1"
tasks:
  - {task: pawl_arithmetic, max_tokens: 4, limit: 3}
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "short.yaml").write_text(SUITE)
    engine = EngineSection(name="torch", dtype="float32", context_tokens=1024)
    return Project(folder=tmp_path, file=ProjectFile(engine=engine))


@pytest.fixture
def own_folder(tiny: Path, tmp_path: Path) -> Path:
    return shutil.copytree(tiny, tmp_path / "grpo" / "checkpoint-5")


@pytest.fixture
def pinned(own_folder: Path, project: Project) -> Path:
    seen = Sighting(
        run="grpo",
        step=5,
        path=str(own_folder),
        state=SightingState.COMPLETE,
        changed_at="2026-12-01T00:00:00.000000+00:00",
    )
    return pin(seen, project)


@pytest.fixture
def prepared(pinned: Path, own_folder: Path, project: Project) -> Prepared:
    suite = load_suite(str(project.folder / "short.yaml"))
    return prepare(pinned, ("grpo", 5), suite, project, own_folder=own_folder)


def rewrite_in_place(path: Path) -> None:
    """Change one byte of a file and leave inode, size and time of change as they were."""
    told = path.stat()
    with path.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last[0] ^ 1]))
    os.utime(path, ns=(told.st_atime_ns, told.st_mtime_ns))


def test_the_lake_names_the_runs_own_folder_and_not_the_pin(
    prepared: Prepared, pinned: Path, own_folder: Path, project: Project
) -> None:
    assert prepared.evaluation.checkpoint.path == str(own_folder)
    assert prepared.folder.path == pinned
    suite = load_suite(str(project.folder / "short.yaml"))
    direct = prepare(own_folder, ("grpo", 5), suite, project)
    assert direct.evaluation == prepared.evaluation


def test_a_pin_is_answered_from_when_its_source_is_gone(
    prepared: Prepared, own_folder: Path, project: Project
) -> None:
    shutil.rmtree(own_folder)
    with project.open_store(create=True) as store:
        assert len(run(prepared, store, project)) == 3


def test_a_trainer_that_writes_into_a_pinned_file_again_yields_no_answer(
    prepared: Prepared, own_folder: Path, project: Project
) -> None:
    rewrite_in_place(own_folder / "model.safetensors")
    assert unchanged(prepared.folder), "neither size nor time nor inode tells"
    assert digest_checkpoint(prepared.folder) != prepared.evaluation.checkpoint.digest
    with project.open_store(create=True) as store:
        with pytest.raises(CheckpointError, match="changed while it was loaded") as failed:
            run(prepared, store, project)
        assert not isinstance(failed.value, CheckpointVanished)
        assert store.stored_keys(prepared.evaluation.evaluation_id) == frozenset()


def test_a_file_written_anew_yields_no_answer(
    prepared: Prepared, pinned: Path, project: Project
) -> None:
    path = pinned / "model.safetensors"
    path.write_bytes(path.read_bytes())
    assert digest_checkpoint(inspect_checkpoint(pinned)) == prepared.evaluation.checkpoint.digest
    with project.open_store(create=True) as store:
        answer = answer_by_engine(prepared, store, project, lambda *_: None)
        with pytest.raises(CheckpointError, match="changed while it was loaded"):
            list(answer(prepared.plan.requests))


def test_a_loaded_model_keeps_its_weights_when_their_file_is_written_anew(
    own_folder: Path, project: Project
) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    settings = EngineSection(name="torch", dtype="bfloat16", context_tokens=1024)
    same_dtype = Project(folder=project.folder, file=ProjectFile(engine=settings))
    suite = load_suite(str(project.folder / "short.yaml"))
    prepared = prepare(own_folder, ("grpo", 5), suite, same_dtype)
    engine = BuildEngine(
        folder=prepared.folder,
        digest=prepared.evaluation.checkpoint.digest,
        settings=settings.settings(),
        chosen=prepared.evaluation.engine,
    )()
    before = [one.token_ids for one in engine.generate(prepared.plan.requests)]
    path = own_folder / "model.safetensors"
    changed = {name: torch.randn_like(t) for name, t in load_file(path).items()}
    other = path.with_suffix(".other")
    save_file(changed, other, metadata={"format": "pt"})
    assert other.stat().st_size == path.stat().st_size
    with path.open("r+b") as file:
        file.write(other.read_bytes())
    assert [one.token_ids for one in engine.generate(prepared.plan.requests)] == before
