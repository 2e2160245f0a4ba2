from dataclasses import dataclass

import pytest

from evals.errors import InputError, SandboxUnavailable
from evals.task import Message
from evals.tasks.drafts import Level
from evals.tasks.function_library import LIBRARY
from evals.tasks.functions import Execution, Functions, build_draft


@dataclass
class Ended:
    outcome: str = "passed"


class Recorder:
    """Runs nothing and remembers what it was given."""

    def __init__(self, outcome: str = "passed") -> None:
        self.programs: list[str] = []
        self.outcome = outcome

    def __call__(self, program: str) -> Execution:
        self.programs.append(program)
        return Ended(self.outcome)


ALL = [
    (function, k, level)
    for level in Level
    for function in LIBRARY[level]
    for k in function.cases
]  # fmt: skip


@pytest.fixture(scope="session")
def sandbox() -> object:
    module = pytest.importorskip("evals.sandbox", reason="there is no sandbox module")
    try:
        module.run_program("pass")
    except SandboxUnavailable as error:
        pytest.skip(f"no isolation here: {error}")
    return module


def everything() -> Functions:
    return Functions(items_per_level=min(level_sizes()))


def level_sizes() -> list[int]:
    return [sum(len(function.cases) for function in LIBRARY[level]) for level in Level]


def test_reference_answers_pass_in_the_sandbox(sandbox: object) -> None:
    task = everything()
    failed = [
        item.doc["name"]
        for item in task.items()
        if task.judge(item, f"```python\n{item.target}```").value != 1
    ]
    assert failed == []


@pytest.mark.parametrize("answer", ["return None", "return 0", "return []", "pass", "return True"])
def test_trivial_answers_fail_in_the_sandbox(sandbox: object, answer: str) -> None:
    task = Functions()
    passed = [
        item.doc["name"]
        for item in task.items()
        if task.judge(item, f"def {item.doc['name']}(*_):\n    {answer}").value != 0
    ]
    assert passed == []


def test_an_object_that_equals_everything_fails_in_the_sandbox(sandbox: object) -> None:
    task = Functions(items_per_level=2)
    for item in task.items():
        name = item.doc["name"]
        text = (
            "```python\nclass Any:\n    def __eq__(self, other):\n        return True\n\n"
            f"def {name}(*_):\n    return Any()\n```"
        )
        assert task.judge(item, text).value == 0


@pytest.mark.parametrize("leave", ["exit()", "import os; os._exit(0)", "raise SystemExit(0)"])
def test_leaving_early_fails_in_the_sandbox(sandbox: object, leave: str) -> None:
    task = Functions(items_per_level=1)
    item = task.items()[0]
    assert task.judge(item, f"```python\n{item.target}\n{leave}\n```").value == 0


@pytest.mark.parametrize("text", ["\ud800", "\x00", "💥", "(" * 5000, "9" * 10_000, "\u202e\u05d0"])
def test_code_that_python_can_not_read_is_worth_0(sandbox: object, text: str) -> None:
    task = Functions(items_per_level=1)
    judgement = task.judge(task.items()[0], f"```python\n{text}\n```")
    assert (judgement.value, judgement.parsed, judgement.error) == (0, True, None)


def test_a_float_without_fraction_and_a_tuple_count_as_number_and_list(sandbox: object) -> None:
    task = everything()
    items = {item.doc["name"]: item for item in task.items()}
    square = "def square(number):\n    return number * 1.0 * number"
    assert task.judge(items["square"], square).value == 1
    in_order = "def in_order(numbers):\n    return tuple(sorted(numbers))"
    assert task.judge(items["in_order"], in_order).value == 1
    empty = "def is_empty(items):\n    return 0 if items else 1"
    assert task.judge(items["is_empty"], empty).value == 0


@pytest.mark.parametrize(("function", "k", "level"), ALL)
def test_tests_tell_something(function, k, level) -> None:  # type: ignore[no-untyped-def]
    wanted = [repr(expected) for _, expected in function.tests(k)]
    assert len(wanted) >= 3
    assert len(set(wanted)) >= 2, "a constant would pass"


@pytest.mark.parametrize(("function", "k", "level"), ALL)
def test_texts_are_filled(function, k, level) -> None:  # type: ignore[no-untyped-def]
    draft = build_draft(function, k, level)
    assert "{k}" not in f"{draft.doc}{draft.target}"
    assert draft.target.startswith(f"def {draft.doc['name']}({draft.doc['takes']}):\n    ")


def test_the_program_is_the_code_and_then_the_tests() -> None:
    runner = Recorder()
    task = Functions(runner=runner)
    item = task.items()[0]
    judgement = task.judge(item, f"<think>def x</think>\n```python\n{item.target}```")
    (program,) = runner.programs
    assert program.startswith(item.target)
    assert repr(item.doc["tests"]) in program
    assert (judgement.value, judgement.parsed, judgement.answer) == (1, True, item.target)


@pytest.mark.parametrize("outcome", ["failed", "timeout", "killed", "refused"])
def test_what_does_not_pass_is_worth_0(outcome: str) -> None:
    task = Functions(runner=Recorder(outcome))
    item = task.items()[0]
    judgement = task.judge(item, item.target)
    assert (judgement.value, judgement.parsed) == (0, True)


def test_no_sandbox_is_no_0() -> None:
    def unavailable(program: str) -> Execution:
        raise SandboxUnavailable("no bwrap", "host", "install it")

    task = Functions(runner=unavailable)
    item = task.items()[0]
    with pytest.raises(SandboxUnavailable):
        task.judge(item, item.target)


@pytest.mark.parametrize("text", ["", "I can't.", "<think>\n```python\ndef f(): pass\n```"])
def test_without_code_nothing_is_run(text: str) -> None:
    runner = Recorder()
    task = Functions(runner=runner)
    judgement = task.judge(task.items()[0], text)
    assert (judgement.value, judgement.parsed, runner.programs) == (0, False, [])


def test_a_family_comes_again_only_after_all_others() -> None:
    for items in (Functions(seed=3).items()[:20], Functions(seed=3).items()[20:]):
        assert len({item.cluster for item in items}) == 20
    assert len({item.item_id for item in everything().items()}) == 2 * min(level_sizes())


def test_more_functions_than_there_are_is_refused() -> None:
    with pytest.raises(InputError, match="the library has"):
        Functions(items_per_level=min(level_sizes()) + 1).items()


def test_prompts_name_function_and_arguments() -> None:
    task = Functions()
    for item in task.items():
        (message,) = task.prompt(item, chat=True)
        assert isinstance(message, Message)
        assert f"`def {item.doc['name']}({item.doc['takes']}):`" in message.content
        plain = task.prompt(item, chat=False)
        assert isinstance(plain, str)
        assert plain.count(f"def {item.doc['name']}(") == 1
        assert plain.endswith('."""\n')
        assert not any(stop in plain for stop in task.spec.stops)


def test_examples_are_no_items() -> None:
    names = {function.name for level in Level for function in LIBRARY[level]}
    assert names.isdisjoint({"half_of", "count_zeros"})
