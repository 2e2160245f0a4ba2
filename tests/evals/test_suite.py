from pathlib import Path

import pytest

from evals.errors import InputError
from evals.suite import SHIPPED, Suite, TaskEntry, load_suite, suite_of_tasks

GOOD = """
name: mine
version: "1"
tasks:
  - task: gsm8k
    limit: 10
    sampling: {temperature: 0.5}
"""


def load(tmp_path: Path, text: str) -> Suite:
    file = tmp_path / "suite.yaml"
    file.write_text(text)
    return load_suite(str(file))


def test_every_shipped_suite_loads() -> None:
    for file in SHIPPED.glob("*.yaml"):
        assert load_suite(file.stem).name == file.stem


def test_a_task_without_sampling_takes_the_suites(tmp_path: Path) -> None:
    suite = load(tmp_path, GOOD)
    assert suite.sampling_of(suite.tasks[0]).temperature == 0.5
    assert suite.sampling_of(TaskEntry(task="other")).temperature == 0.0


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("name: mine", "nam: mine", "nam"),
        ("name: mine", "name: ../mine", "name"),
        ("version:", "versoin:", "versoin"),
        ("tasks:", "task:", "task"),
        ("limit: 10", "limit: 0", "limit"),
        ("limit: 10", "limt: 10", "limt"),
        ("limit: 10", "repeats: many", "repeats"),
        ("limit: 10", "metric: exact_match", "metric"),
        ("limit: 10", "capability: reasonin", "capability"),
        ("temperature: 0.5", "temperature: -1", "temperature"),
        ("temperature: 0.5", "temprature: 1", "temprature"),
        ("- task: gsm8k\n", "- task: gsm8k\n  - task: gsm8k\n", "more than once"),
    ],
)
def test_a_typo_is_named_by_file_line_and_field(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    assert old in GOOD
    with pytest.raises(InputError) as refused:
        load(tmp_path, GOOD.replace(old, new))
    text = str(refused.value)
    assert says in text
    assert "suite.yaml:" in text


def test_an_unknown_suite_names_those_there_are() -> None:
    with pytest.raises(InputError, match="smoke"):
        load_suite("smok")


def test_the_fingerprint_is_of_the_content(tmp_path: Path) -> None:
    suite = load(tmp_path, GOOD)
    assert load(tmp_path, "description: words\n" + GOOD).fingerprint == suite.fingerprint
    assert suite.limited(5, None).fingerprint != suite.fingerprint
    assert suite.limited(None, 3).fingerprint != suite.fingerprint


def test_a_limit_never_raises_a_suites_own(tmp_path: Path) -> None:
    assert load(tmp_path, GOOD).limited(50, None).tasks[0].limit == 10
    assert load(tmp_path, GOOD).limited(5, None).tasks[0].limit == 5


@pytest.mark.parametrize("names", [[], [""], ["a", "a"]])
def test_tasks_on_a_command_line_are_checked(names: list[str]) -> None:
    with pytest.raises(InputError):
        suite_of_tasks(names)
