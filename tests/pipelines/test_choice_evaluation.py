"""`pawl eval` on choice tasks with vLLM: log-likelihoods against transformers' own forward pass."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import RunPawl, read_json

from evals.adapters.vllm_answers import group_branches
from evals.response import LogLikelihood
from storage.project import find_project

pytestmark = pytest.mark.timeout(600)

SHOTS = "".join(
    f"Question: {a} + {b}?\nA. {a + b}\nB. {a}\nAnswer: A\n\n" for a in range(1, 6) for b in (1, 2)
)
TEXT = "The quick brown fox jumps over the lazy dog and runs away into the dark forest. " * 3

TASKS: dict[str, tuple[list[dict[str, Any]], str]] = {
    "labels": (
        [{"q": f"Which is larger, {n} or {n + 5}?\nA. {n}\nB. {n + 5}\nAnswer:"} for n in range(6)],
        "output_type: multiple_choice\ndoc_to_text: '{{q}}'\n"
        "doc_to_choice: [A, B]\ndoc_to_target: 1\n",
    ),
    "endings": (
        [{"q": f"{SHOTS}My favourite colour is", "n": n} for n in range(4)],
        "output_type: multiple_choice\ndoc_to_text: '{{q}}'\n"
        "doc_to_choice: ['blue {{n}}', 'the green of the sea in the evening', red]\n"
        "doc_to_target: 0\n",
    ),
    "stems": (
        [{"q": f"Is {n} larger than 2? Say which, A for yes or B for no:"} for n in range(4)],
        "output_type: multiple_choice\ndoc_to_text: '{{q}}'\n"
        "doc_to_choice: [the answer is A, the answer is B]\ndoc_to_target: 0\n",
    ),
    "readings": (
        [{"q": "Once:", "a": TEXT + str(n)} for n in range(3)],
        "output_type: loglikelihood\ndoc_to_text: '{{q}}'\ndoc_to_target: ' {{a}}'\n",
    ),
}


@pytest.fixture(scope="module")
def evaluated(smollm2: Path, run_pawl: RunPawl, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which SmolLM2 was asked all three kinds of choices, in plain text."""
    folder = tmp_path_factory.mktemp("choices")
    for name, (items, lines) in TASKS.items():
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(item)}\n" for item in items))
        (folder / f"{name}.yaml").write_text(
            f"task: {name}\ndataset_path: json\ntest_split: test\n"
            f"dataset_kwargs: {{data_files: {{test: {folder / f'{name}.jsonl'}}}}}\n"
            f"{lines}metric_list: [{{metric: acc}}]\n"
        )
    tasks = "".join(f"  - {{task: {name}}}\n" for name in TASKS)
    (folder / "suite.yaml").write_text(
        f"name: choices\nversion: '1'\nchat_template: false\ntasks:\n{tasks}"
    )
    (folder / "pawl.yaml").write_text(
        f"tasks_folder: {folder}\nengine: {{dtype: float32, kv_cache_gib: 1.0}}\n"
    )
    done = run_pawl("eval", str(smollm2), "--suite", "suite.yaml", "--as", "smol@1", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def reference(model: Any, prompt: tuple[int, ...], asked: tuple[int, ...]) -> LogLikelihood:
    """The same from one forward pass over all tokens."""
    import torch

    ids = torch.tensor([[*prompt, *asked]])
    with torch.inference_mode():
        rows = model(input_ids=ids).logits[0].double().log_softmax(-1)[len(prompt) - 1 : -1]
    return LogLikelihood(
        log_prob=sum(float(row[token]) for row, token in zip(rows, asked, strict=True)),
        greedy=[int(row.argmax()) for row in rows] == list(asked),
    )


def test_log_likelihoods_are_those_of_a_forward_pass(evaluated: Path, smollm2: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(smollm2, dtype=torch.float32)
    compared = dict.fromkeys(TASKS, 0)
    with find_project(evaluated).open_store() as store:
        evaluation = store.find_evaluations()[0].evaluation
        requests = {one.request_id: one for one in store.requests(evaluation.evaluation_id)}
        for response in store.responses(evaluation.evaluation_id):
            request = requests[response.request_id]
            assert response.log_likelihoods is not None
            for branch, found in zip(request.branches, response.log_likelihoods, strict=True):
                expected = reference(model, request.token_ids + branch.given, branch.asked)
                assert found.log_prob == pytest.approx(
                    expected.log_prob, abs=1e-4 * len(branch.asked)
                )
                assert found.greedy == expected.greedy
                compared[request.task] += 1
    assert compared == {"labels": 12, "endings": 12, "stems": 8, "readings": 3}


def test_each_way_of_asking_was_taken(evaluated: Path) -> None:
    with find_project(evaluated).open_store() as store:
        evaluation = store.find_evaluations()[0].evaluation
        requests = store.requests(evaluation.evaluation_id)
    ways: dict[str, set[tuple[int, bool, bool]]] = {name: set() for name in TASKS}
    for request in requests:
        for group in group_branches(request, forces=True):
            way = (len(group.places), bool(group.stem), group.forced)
            ways[request.task].add(way)
    assert ways == {
        "labels": {(2, False, True)},
        "endings": {(1, True, True)},
        "stems": {(2, True, True)},
        "readings": {(1, True, False)},
    }


def test_an_item_shows_its_log_likelihoods(evaluated: Path, run_pawl: RunPawl) -> None:
    with find_project(evaluated).open_store() as store:
        evaluation = store.find_evaluations()[0].evaluation
        request = next(
            one for one in store.requests(evaluation.evaluation_id) if one.task == "labels"
        )
    told = read_json(
        run_pawl(
            "show", evaluation.evaluation_id, "--item", request.item_id, "--json", cwd=evaluated
        )
    )
    assert [len(one["asked"]) for one in told["branches"]] == [1, 1]
    (response,) = told["responses"]
    values = [one["log_prob"] for one in response["log_likelihoods"]]
    assert response["answer"] == str(values.index(max(values)))
    assert (response["text"], response["outcome"]) == (None, "scored")
