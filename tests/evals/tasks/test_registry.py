"""All generated tasks: building them by name, and what they have in common."""

import json
import os
import subprocess
import sys
from dataclasses import asdict

import pytest

from evals.errors import InputError
from evals.identity import canonical_json, fingerprint, item_id, sha256_text
from evals.task import Capability, Item, Task
from evals.tasks.registry import GENERATED, build_task

NAMES = list(GENERATED)

DIGESTS = {
    "pawl_arithmetic": "f6fbaa4c8fc80715",
    "pawl_functions": "d2c61732faa6eb1a",
    "pawl_multilingual": "bc356ae3f232aa9d",
    "pawl_needle": "59f73352bdc2156d",
    "pawl_variables": "971e9ce373ceca10",
    "pawl_harmful": "86f12b8ee4212416",
    "pawl_harmless": "35e6f7e0e43342fa",
    "lab_sums": "f46ec772a5be3e2d",
    "lab_functions": "a8d893b540922cf6",
    "lab_words": "ed70e323acd20025",
    "lab_recall": "504b7971a124e53c",
    "lab_refusals": "0ad6fea44f01c861",
}
"""Of items and prompts of the default tasks. A change needs a new version of the task."""

COUNTS = {
    "pawl_arithmetic": 60,
    "pawl_functions": 40,
    "pawl_multilingual": 96,
    "pawl_needle": 32,
    "pawl_variables": 32,
    "pawl_harmful": 40,
    "pawl_harmless": 40,
    "lab_sums": 1000,
    "lab_functions": 1000,
    "lab_words": 1000,
    "lab_recall": 1000,
    "lab_refusals": 1000,
}


def digest(task: Task) -> str:
    rows = [
        [
            [item.item_id, item.doc, item.target, item.cluster, item.stratum],
            [asdict(turn) for turn in task.prompt(item, chat=True) if not isinstance(turn, str)],
            task.prompt(item, chat=False),
        ]
        for item in task.items()
    ]
    return fingerprint([task.spec.prompt_fingerprint, task.spec.stops, task.spec.max_tokens, rows])


def test_items_and_prompts_are_pinned() -> None:
    assert {name: digest(build_task(name))[:16] for name in NAMES} == DIGESTS


PROGRAM = """
import json
from evals.identity import fingerprint
from evals.tasks.registry import GENERATED, build_task
tasks = {name: build_task(name, seed=7) for name in GENERATED}
print(json.dumps({
    name: fingerprint([[item.item_id, item.doc, item.cluster] for item in task.items()])
    for name, task in tasks.items()
}))
"""


def test_processes_with_different_hash_seeds_agree() -> None:
    digests = []
    for seed in ("0", "1", "12345"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, check=True, capture_output=True
        )
        digests.append(json.loads(done.stdout))
    assert digests[0] == digests[1] == digests[2]


@pytest.mark.parametrize("name", NAMES)
def test_counts_ids_and_documents(name: str) -> None:
    items = build_task(name).items()
    assert len(items) == COUNTS[name]
    assert len({item.item_id for item in items}) == len(items)
    assert len({canonical_json(item.doc) for item in items}) == len(items)
    for item in items:
        assert json.loads(canonical_json(item.doc)) == item.doc
        assert item.item_id == item_id(name, fingerprint(item.doc), sha256_text(item.target))
        assert item.stratum


@pytest.mark.parametrize("name", NAMES)
def test_another_seed_gives_other_items(name: str) -> None:
    def ids(seed: int) -> set[str]:
        return {item.item_id for item in build_task(name, seed=seed).items()}

    assert ids(0) == ids(0)
    assert len(ids(0) - ids(1)) >= 10


@pytest.mark.parametrize("name", NAMES)
def test_more_items_keep_those_of_fewer(name: str) -> None:
    def ids(count: int) -> set[str]:
        how_many = "items" if name.startswith("lab_") else "items_per_level"
        return {item.item_id for item in build_task(name, **{how_many: count}).items()}

    assert ids(2) < ids(3) < ids(7)


@pytest.mark.parametrize("name", NAMES)
def test_specs(name: str) -> None:
    spec = build_task(name).spec
    assert spec.name == name
    assert spec.version == "1"
    assert len(spec.prompt_fingerprint) == 64
    assert 0 < spec.max_tokens <= 160
    assert spec.binary
    assert spec.stops
    assert all(stop.startswith("\n") and stop.rstrip(":")[-1].isdigit() for stop in spec.stops)


def test_five_capabilities_are_covered() -> None:
    assert {build_task(name).spec.capability for name in NAMES} == {
        Capability.REASONING,
        Capability.CODE,
        Capability.MULTILINGUAL,
        Capability.LONG_CONTEXT,
        Capability.SAFETY,
    }


@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith("_functions")])
def test_degenerate_answers_are_judged_without_an_exception(name: str) -> None:
    task = build_task(name)
    item: Item = task.items()[0]
    for text in (
        "\ud800",
        "\x00",
        "<think>" * 1000,
        "9" * 10_000,
        "```\n" * 1000,
        "\u202e\u05d0",
        "💥" * 500,
    ):
        judgement = task.judge(item, text)
        assert judgement.value in (0, 1)
        assert judgement.error is None


def test_an_unknown_task_gets_a_suggestion() -> None:
    with pytest.raises(InputError, match="did you mean pawl_arithmetic"):
        build_task("pawl_arithmetics")
    with pytest.raises(InputError, match="there are pawl_arithmetic, "):
        build_task("xyz")


def test_an_unknown_option_gets_a_suggestion() -> None:
    with pytest.raises(InputError, match="did you mean lengths") as raised:
        build_task("pawl_needle", length=[256])
    assert raised.value.where == "pawl_needle"
    with pytest.raises(InputError, match="no option 'lengths'"):
        build_task("pawl_arithmetic", lengths=[256])


@pytest.mark.parametrize("seed", ["0", 1.0, None, True])
def test_a_seed_is_a_whole_number(seed: int) -> None:
    with pytest.raises(InputError, match="seed"):
        build_task("pawl_arithmetic", seed=seed)


def test_lists_of_a_suite_file_are_taken() -> None:
    items = build_task("pawl_needle", lengths=[256], items_per_level=1).items()
    assert [item.stratum for item in items] == ["256", "256"]
    items = build_task("pawl_multilingual", languages=["fr"], items_per_level=1).items()
    assert {item.stratum for item in items} == {"fr"}
