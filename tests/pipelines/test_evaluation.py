"""The whole path on real engines: evaluate, compare, gate, kill, resume; two at once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from command_line import MIRROR, RunPawl, read_json

from evals.identity import canonical_json
from evals.plan import Request
from evals.response import Response
from storage.project import find_project

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1200)]

PAWL = str(Path(sys.executable).with_name("pawl"))
LIMIT = "8"
SUITE = """
name: short
version: "1"
tasks:
  - {task: pawl_arithmetic, max_tokens: 40}
  - {task: pawl_functions, max_tokens: 80}
  - {task: pawl_multilingual, max_tokens: 16}
  - {task: pawl_needle, max_tokens: 16, options: {lengths: [256]}, limit: 8}
  - {task: pawl_variables, max_tokens: 16, options: {lengths: [256]}, limit: 8}
  - {task: pawl_harmful, max_tokens: 24}
  - {task: pawl_harmless, max_tokens: 24}
"""
"""The suite ``smoke`` with short prompts and answers."""

POLICY = """
name: small
version: "1"
kind: promotion
rules:
  - {name: long-context-holds, capability: long_context, role: must, margin: 0.3, min_items: 10}
  - {name: answers-harmless, task: pawl_harmless, role: guard, margin: 0.5}
"""


@dataclass(frozen=True)
class Evaluated:
    """A project in which two checkpoints were evaluated at the same time."""

    folder: Path
    printed: dict[str, Any]
    """By RUN@STEP, what ``pawl eval --json`` printed."""


@pytest.fixture(scope="module")
def evaluated(
    smollm2: Path, perturbed: Path, tmp_path_factory: pytest.TempPathFactory
) -> Evaluated:
    """Both checkpoints on one suite, by two commands that run at once on one lake."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "pawl.yaml").write_text("engine: {context_tokens: 4096, parallel_sequences: 32}\n")
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "short.yaml").write_text(SUITE)
    jobs = {
        name: subprocess.Popen(
            [
                PAWL,
                "eval",
                str(path),
                "--suite",
                "short.yaml",
                "--limit",
                LIMIT,
                "--as",
                name,
                "--json",
            ],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name, path in (("sound@1", smollm2), ("broken@2", perturbed))
    }
    printed = {}
    for name, job in jobs.items():
        out, err = job.communicate(timeout=1200)
        assert job.returncode == 0, err
        printed[name] = json.loads(out)
    return Evaluated(folder=folder, printed=printed)


def test_every_task_has_an_interval_and_outcome_counts(evaluated: Evaluated) -> None:
    document = evaluated.printed["sound@1"]
    assert document["state"] == "complete"
    assert {task["capability"] for task in document["tasks"]} == {
        "reasoning",
        "code",
        "multilingual",
        "long_context",
        "safety",
    }
    for task in document["tasks"]:
        assert set(task) >= {
            *("task", "capability", "metric", "n", "value", "low", "high", "level", "outcomes")
        }
        assert sum(task["outcomes"].values()) == int(LIMIT)
        assert 0 <= task["low"] <= task["value"] <= task["high"] <= 1
        assert task["high"] - task["low"] > 0.1


def test_the_table_is_printed_from_the_lake(evaluated: Evaluated, run_pawl: RunPawl) -> None:
    key = evaluated.printed["sound@1"]["evaluation"]
    done = run_pawl("show", key[:10], cwd=evaluated.folder)
    assert done.returncode == 0, done.stderr
    for word in ("pawl_needle", "95% interval", "truncated", "missing", "complete"):
        assert word in done.stdout


def test_an_item_is_shown_with_its_exact_tokens(
    evaluated: Evaluated, run_pawl: RunPawl, smollm2: Path
) -> None:
    from evals.adapters.tokenizer import load_tokenizer

    key = evaluated.printed["sound@1"]["evaluation"]
    with find_project(evaluated.folder).open_store() as store:
        request = next(r for r in store.requests(key) if r.task == "pawl_arithmetic")
    done = run_pawl("show", key, "--item", request.item_id, "--json", cwd=evaluated.folder)
    document = read_json(done)
    text = load_tokenizer(smollm2).decode(document["token_ids"])
    assert text.count("<|im_start|>system") == 1
    assert text.endswith("<|im_start|>assistant\n")
    (response,) = document["responses"]
    assert response["text"]
    assert response["outcome"] in {"scored", "truncated", "unparsed"}


def test_running_it_again_asks_nothing(
    evaluated: Evaluated, run_pawl: RunPawl, smollm2: Path
) -> None:
    started = time.monotonic()
    done = run_pawl(
        *(
            "eval",
            str(smollm2),
            "--suite",
            "short.yaml",
            "--limit",
            LIMIT,
            "--as",
            "sound@1",
            "--json",
        ),
        cwd=evaluated.folder,
    )
    assert read_json(done) == evaluated.printed["sound@1"]
    assert "starting the engine" not in done.stderr
    assert time.monotonic() - started < 60


def test_a_broken_checkpoint_fails_and_the_sound_one_passes(
    evaluated: Evaluated, run_pawl: RunPawl
) -> None:
    broken = run_pawl(
        *("gate", "broken@2", "--against", "sound@1", "--policy", "policy.yaml", "--json"),
        cwd=evaluated.folder,
    )
    assert broken.returncode == 1, broken.stderr
    document = read_json(broken)
    assert document["verdict"] == "FAIL"
    assert set(document) >= {
        *("verdict", "sentence", "candidate", "baseline", "policy", "snapshot", "decision", "rules")
    }
    for rule in document["rules"]:
        assert set(rule) >= {
            *("name", "tier", "role", "verdict", "margin", "tolerate", "n", "value", "low"),
            *("high", "level", "p_pass", "p_fail", "missing", "reasons"),
        }
    better = run_pawl(
        *("gate", "sound@1", "--against", "broken@2", "--policy", "policy.yaml", "--json"),
        cwd=evaluated.folder,
    )
    assert (better.returncode, read_json(better)["verdict"]) == (0, "PASS")
    ledger = read_json(run_pawl("ledger", "show", "--json", cwd=evaluated.folder))
    assert [entry["verdict"] for entry in ledger["entries"]] == ["FAIL", "PASS"]
    assert run_pawl("ledger", "verify", cwd=evaluated.folder).returncode == 0


def test_compare_lists_what_flipped(evaluated: Evaluated, run_pawl: RunPawl) -> None:
    document = read_json(run_pawl("compare", "broken@2", "sound@1", "--json", cwd=evaluated.folder))
    needle = next(task for task in document["tasks"] if task["name"] == "pawl_needle")
    assert needle["value"] < 0
    assert needle["lost"]
    assert needle["n"] == int(LIMIT)
    table = run_pawl("compare", "broken@2", "sound@1", cwd=evaluated.folder)
    assert "pawl_needle lost:" in table.stdout


def test_torch_gives_vllms_answers_token_for_token_in_float32(
    evaluated: Evaluated, smollm2: Path
) -> None:
    from evals.adapters.torch_engine import TorchEngine
    from evals.checkpoint import inspect_checkpoint

    key = evaluated.printed["sound@1"]["evaluation"]
    with find_project(evaluated.folder).open_store() as store:
        chosen = store.load_evaluation(key).evaluation.engine
        asked = sorted(store.requests(key), key=lambda request: len(request.token_ids))[:16]
        told = {response.request_id: response for response in store.responses(key)}
    if (chosen.device, chosen.dtype) != ("cpu", "float32"):
        pytest.skip(f"vLLM ran in {chosen.dtype} on {chosen.device}: ties are ordinary there")
    engine = TorchEngine(
        inspect_checkpoint(smollm2), find_project(evaluated.folder).file.engine.settings(), chosen
    )
    ours = list(engine.generate(asked))
    assert len(ours) == len(asked)
    by_id = {request.request_id: request for request in asked}
    for response in ours:
        theirs = told[response.request_id]
        if response != theirs:
            assert is_tie(smollm2, by_id[response.request_id], response, theirs)


def is_tie(path: Path, request: Request, one: Response, other: Response) -> bool:
    """Whether the tokens by which two answers first differ are equally likely but for rounding."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    pairs = zip(one.token_ids, other.token_ids, strict=False)
    place, (a, b) = next((i, pair) for i, pair in enumerate(pairs) if pair[0] != pair[1])
    with torch.inference_mode():
        read = torch.tensor([[*request.token_ids, *one.token_ids[:place]]])
        logits = model(read).logits[0, -1]
    return abs(float(logits[a] - logits[b])) < 1e-3


def test_dry_run_asks_nothing_and_says_what_it_would(
    evaluated: Evaluated, run_pawl: RunPawl, smollm2: Path
) -> None:
    done = run_pawl("eval", str(smollm2), "--dry-run", "--json", cwd=evaluated.folder)
    document = read_json(done)
    assert document["requests"] > 200
    assert "engine" not in done.stderr


def test_other_weights_under_a_known_name_are_refused(
    evaluated: Evaluated, run_pawl: RunPawl, perturbed: Path
) -> None:
    done = run_pawl("eval", str(perturbed), "--as", "sound@1", cwd=evaluated.folder)
    assert done.returncode == 3
    assert "--as" in done.stderr


@pytest.mark.skipif(not MIRROR.exists(), reason="no ../shared/data: no real benchmark items")
def test_real_benchmark_items_through_the_mirror(
    run_pawl: RunPawl, smollm2: Path, tmp_path: Path
) -> None:
    (tmp_path / "pawl.yaml").write_text(
        f"data_mirror: {MIRROR}\nengine: {{context_tokens: 4096, parallel_sequences: 16}}\n"
    )
    tasks = ("gsm8k", "humaneval", "mgsm_direct_de")
    done = run_pawl(
        *("eval", str(smollm2), "--tasks", ",".join(tasks), "--limit", "4", "--json"), cwd=tmp_path
    )
    document = read_json(done)
    assert [task["task"] for task in document["tasks"]] == list(tasks)
    for task in document["tasks"]:
        assert sum(task["outcomes"].values()) == 4
        assert task["outcomes"]["errored"] == task["outcomes"]["missing"] == 0


@pytest.fixture
def project(tmp_path: Path) -> Path:
    suite = """
name: tiny
version: "1"
tasks:
  - {task: pawl_arithmetic, limit: 40, repeats: 2, sampling: {temperature: 1.0, seed: 7}}
  - {task: pawl_harmless, limit: 40}
"""
    (tmp_path / "tiny.yaml").write_text(suite)
    (tmp_path / "pawl.yaml").write_text("engine: {context_tokens: 1024, parallel_sequences: 4}\n")
    return tmp_path


def command(checkpoint: Path) -> list[str]:
    return [PAWL, "eval", str(checkpoint), "--suite", "tiny.yaml", "--as", "tiny@1", "--json"]


def wait_for(log: Path, text: str, job: subprocess.Popen[bytes], timeout_s: float = 300) -> None:
    end = time.monotonic() + timeout_s
    while time.monotonic() < end and job.poll() is None:
        if text in log.read_text():
            return
        time.sleep(0.05)


def stored(project: Path) -> dict[tuple[str, int], str]:
    """Every stored response as canonical text, by request and repeat."""
    if not (project / ".pawl" / "lake.sqlite").exists():
        return {}
    with find_project(project).open_store() as store:
        return {
            (r.request_id, r.repeat): canonical_json([r.text, r.token_ids, r.finish_reason])
            for evaluation in store.find_evaluations()
            for r in store.responses(evaluation.evaluation.evaluation_id)
        }


@pytest.mark.slow
def test_killed_at_three_moments_and_run_again(
    project: Path, tiny: Path, run_pawl: RunPawl
) -> None:
    kept: dict[tuple[str, int], str] = {}
    for moment in ("starting the engine: 0/1", "answers: 2", "answers: 6"):
        log = project / f"{len(kept)}-{moment[-3:].strip().replace('/', '')}.log"
        with log.open("wb") as file:
            job = subprocess.Popen(
                command(tiny), cwd=project, stdout=file, stderr=file, start_new_session=True
            )
            wait_for(log, moment, job)
            assert job.poll() is None, log.read_text()
            os.kill(job.pid, signal.SIGKILL)
            job.wait()
        assert wait_until_gone(project), "a process of the killed command is still there"
        now = stored(project)
        assert kept.items() <= now.items(), "a stored response changed or went"
        kept = now
    assert 0 < len(kept) < 120
    done = run_pawl(*command(tiny)[1:], cwd=project)
    assert done.returncode == 0, done.stderr
    final = stored(project)
    assert len(final) == 120
    assert kept.items() <= final.items()
    document = read_json(done)
    assert [sum(task["outcomes"].values()) for task in document["tasks"]] == [80, 40]
    assert not list((project / ".pawl" / "spool").rglob("*.spool"))


def test_a_checkpoint_deleted_under_the_evaluator_has_vanished(
    project: Path, tiny: Path, tmp_path: Path
) -> None:
    doomed = tmp_path / "run" / "checkpoint-5"
    shutil.copytree(tiny, doomed)
    log = project / "vanish.log"
    with log.open("wb") as file:
        job = subprocess.Popen(
            [PAWL, "eval", str(doomed), "--suite", "tiny.yaml"],
            cwd=project,
            stdout=file,
            stderr=file,
        )
        wait_for(log, "starting the engine: 0/1", job)
        shutil.rmtree(doomed)
        assert job.wait(300) == 3, log.read_text()
    assert "deleted while" in log.read_text()
    assert "Traceback" not in log.read_text()
    with find_project(project).open_store() as store:
        (evaluation,) = store.find_evaluations()
        assert evaluation.evaluation.state.value == "vanished"
        checkpoint = store.find_checkpoint("run", 5)
        assert checkpoint is not None
        assert checkpoint.state.value == "vanished"


def wait_until_gone(project: Path, timeout_s: float = 60) -> bool:
    from evals.adapters.ray_workers import ray_folder

    folder = str(ray_folder(project))
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        if not any(folder in line for line in command_lines()):
            return True
        time.sleep(0.5)
    return False


def command_lines() -> Iterator[str]:
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                yield (process / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
