"""lm-eval's tasks behind the protocol; values against lm-eval's own evaluator."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import MIRROR

from evals.adapters.lm_eval_tasks import LmEvalGeneration, Mirror, load_tasks
from evals.errors import InputError
from evals.suite import TaskEntry
from evals.task import Capability

needs_data = pytest.mark.skipif(
    not MIRROR.exists(), reason="no ../shared/data: the real benchmark items are not here"
)


Loaded = dict[str, LmEvalGeneration]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    patch = pytest.MonkeyPatch()
    patch.setenv("HF_HUB_OFFLINE", "1")
    patch.setenv("HF_DATASETS_CACHE", str(tmp_path_factory.mktemp("datasets")))
    names = ("gsm8k", "humaneval", "mgsm_direct_de")
    tasks = load_tasks([TaskEntry(task=name) for name in names], Mirror(MIRROR))
    patch.undo()
    return {
        name: task
        for name, task in zip(names, tasks, strict=True)
        if isinstance(task, LmEvalGeneration)
    }


@needs_data
def test_tasks_come_whole_from_the_mirror(loaded: Loaded) -> None:
    sizes = {name: len(task.items()) for name, task in loaded.items()}
    assert sizes == {"gsm8k": 1319, "humaneval": 164, "mgsm_direct_de": 250}
    for task in loaded.values():
        ids = [item.item_id for item in task.items()]
        assert len(set(ids)) == len(ids)
        json.dumps(task.items()[0].doc)
    assert loaded["humaneval"].spec.capability is Capability.CODE
    assert loaded["mgsm_direct_de"].spec.capability is Capability.MULTILINGUAL


@needs_data
def test_item_ids_are_made_of_lm_evals_own_hashes(loaded: Loaded) -> None:
    import hashlib

    from evals.identity import item_id

    item = loaded["gsm8k"].items()[0]
    text = json.dumps(item.doc, indent=2, ensure_ascii=False)
    hashes = [hashlib.sha256(part.encode()).hexdigest() for part in (text, item.target)]
    assert item.item_id == item_id("gsm8k", *hashes)


@needs_data
def test_prompts_do_not_depend_on_which_were_built_before(
    loaded: Loaded,
) -> None:
    task = loaded["gsm8k"]
    item = task.items()[7]
    first = task.prompt(item, chat=False)
    task.prompt(task.items()[3], chat=False)
    assert task.prompt(item, chat=False) == first
    assert str(first).count("Question:") == 6
    assert str(first).endswith("Answer:")


@needs_data
def test_few_shot_examples_are_turns_of_the_conversation(
    loaded: Loaded,
) -> None:
    turns = loaded["gsm8k"].prompt(loaded["gsm8k"].items()[0], chat=True)
    assert [turn.role for turn in turns][-3:] == ["user", "assistant", "user"]  # type: ignore[union-attr]
    assert len(turns) == 11


@needs_data
@pytest.mark.parametrize(
    ("text", "value", "parsed"),
    [
        ("She makes 9 * 2 = $18 every day.\n#### 18", 1.0, True),
        ("The answer is 18", 1.0, True),
        ("The answer is 19", 0.0, True),
        ("I do not know.", 0.0, False),
        ("", 0.0, False),
    ],
)
def test_gsm8k_answers_are_judged_by_lm_evals_rule(
    loaded: Loaded, text: str, value: float, parsed: bool
) -> None:
    task = loaded["gsm8k"]
    item = next(i for i in task.items() if i.target.endswith("#### 18"))
    judged = task.judge(item, text)
    assert (judged.value, judged.parsed) == (value, parsed)


@needs_data
def test_humaneval_runs_in_the_sandbox(loaded: Loaded) -> None:
    task = loaded["humaneval"]
    item = task.items()[0]
    marker = Path("/tmp/pawl-escaped")
    marker.unlink(missing_ok=True)
    solution = item.doc["canonical_solution"]
    escape = f"    open({str(marker)!r}, 'w').write('x')\n" + solution
    assert task.judge(item, solution).value == 1.0
    assert task.judge(item, "    return None\n").value == 0.0
    task.judge(item, escape)
    assert not marker.exists()


@needs_data
def test_without_isolation_no_program_is_run_and_no_score_is_given(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evals.errors import SandboxUnavailable
    from evals.sandbox import code_eval

    def unavailable(*_args: object, **_options: object) -> None:
        raise SandboxUnavailable("no bwrap")

    monkeypatch.setattr(code_eval, "run_many", unavailable)
    task = loaded["humaneval"]
    with pytest.raises(SandboxUnavailable):
        task.judge(task.items()[0], "    return None\n")


@pytest.mark.parametrize(
    ("name", "says"),
    [("gsm8", "gsm8k"), ("no_such_task_at_all", "lists|shows"), ("mmlu", "group")],
)
def test_a_name_that_is_no_task_is_refused_with_the_nearest(name: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        load_tasks([TaskEntry(task=name)], Mirror(None))


def test_a_data_set_that_is_nowhere_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.yaml").write_text(
        "task: mine\ndataset_path: nobody/has_this\noutput_type: generate_until\n"
        "test_split: test\ndoc_to_text: '{{q}}'\ndoc_to_target: '{{a}}'\n"
        "metric_list: [{metric: exact_match}]\n"
    )
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(InputError, match="task mine: does not load"):
        load_tasks([TaskEntry(task="mine")], Mirror(None), tmp_path)


def test_a_task_of_the_users_own_loads_from_its_folder(tmp_path: Path) -> None:
    (tmp_path / "items.jsonl").write_text(
        '{"q": "1 + 1 =", "a": "2"}\n{"q": "2 + 2 =", "a": "4"}\n'
    )
    (tmp_path / "sums.yaml").write_text(
        f"task: sums\ndataset_path: json\n"
        f"dataset_kwargs: {{data_files: {{test: {tmp_path / 'items.jsonl'}}}}}\n"
        "output_type: generate_until\ntest_split: test\n"
        "doc_to_text: '{{q}}'\ndoc_to_target: '{{a}}'\n"
        "generation_kwargs: {until: [STOP], max_gen_toks: 8}\n"
        "metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]\n"
    )
    (task,) = load_tasks([TaskEntry(task="sums")], Mirror(None), tmp_path)
    assert isinstance(task, LmEvalGeneration)
    assert task.spec.max_tokens == 8
    assert task.spec.stops == ("STOP",)
    assert [task.judge(item, item.target).value for item in task.items()] == [1.0, 1.0]


def test_a_mirror_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="data_mirror"):
        Mirror(tmp_path / "mirror.json")
