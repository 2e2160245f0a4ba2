"""Both long-context tasks: texts, lengths and hiding places."""

from itertools import pairwise

import pytest

from evals.errors import InputError
from evals.tasks.draws import Draws
from evals.tasks.haystack import CHARS_PER_TOKEN, SHORTEST, hay, hide
from evals.tasks.needle import Needle
from evals.tasks.variables import CHAIN, Variables

TASKS = [Needle(), Variables()]


def test_hay_has_no_sentence_twice_and_no_digits() -> None:
    straws = hay(Draws("hay"), 400_000)
    assert len(set(straws)) == len(straws)
    assert not any(letter.isdigit() for straw in straws for letter in straw)
    assert 399_800 < sum(len(straw) + 1 for straw in straws) <= 400_000


def test_hiding_keeps_the_order_and_loses_nothing() -> None:
    text = hide(["a.", "b.", "c."], ["X.", "Y.", "Z."], [0, 1, 3])
    assert text.split() == ["X.", "a.", "Y.", "b.", "c.", "Z."]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.spec.name)
def test_lengths_are_about_right(task: Needle | Variables) -> None:
    for item in task.items():
        (message,) = task.prompt(item, chat=True)
        assert not isinstance(message, str)
        length = len(message.content) / CHARS_PER_TOKEN
        assert 0.88 < length / int(item.stratum or 0) <= 1, item.stratum


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.spec.name)
def test_every_length_has_both_levels(task: Needle | Variables) -> None:
    items = task.items()
    kinds = [(item.stratum, item.doc["level"]) for item in items]
    assert all(kinds.count(kind) == 4 for kind in kinds)
    assert {item.stratum for item in items} == {"256", "512", "1024", "2048"}


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.spec.name)
def test_no_sentence_of_a_text_comes_twice(task: Needle | Variables) -> None:
    for item in task.items():
        sentences = item.doc["text"].replace("\n", " ").split(". ")
        assert len(set(sentences)) == len(sentences)


def test_the_needle_is_there_once() -> None:
    for item in Needle(items_per_level=9).items():
        door = item.doc["question"].removeprefix("What is the access code of the ").rstrip("?")
        needle = f"The access code of the {door} is {item.target}."
        assert item.doc["text"].count(needle) == 1
        assert item.doc["text"].count(item.target) == 1
        assert item.doc["text"].count(f"The access code of the {door} ") == 1


def test_hard_needles_have_an_outdated_code_and_other_doors() -> None:
    for item in Needle().items():
        expected = 5 if item.doc["level"] == "hard" else 1
        assert item.doc["text"].count("access code of the") == expected
        assert item.doc["text"].count("The old access code of") == (expected == 5)


def test_easy_needles_stand_at_many_depths() -> None:
    items = [item for item in Needle(items_per_level=8).items() if item.stratum == "2048"]
    depths = sorted(
        item.doc["text"].index(item.target) / len(item.doc["text"])
        for item in items
        if item.doc["level"] == "easy"
    )
    assert depths[0] < 0.15
    assert depths[-1] > 0.85
    assert all(right - left < 0.2 for left, right in pairwise(depths))


def test_following_the_assignments_leads_to_the_target() -> None:
    for item in Variables(items_per_level=9).items():
        values: dict[str, str] = {}
        for sentence in item.doc["text"].replace("\n", " ").split(". "):
            words = sentence.rstrip(".").split()
            if words[0] == "Let":
                values[words[1]] = values.get(words[-1], words[-1])
        asked = item.doc["question"].rstrip("?").split()[-1]
        assert values[asked] == item.target
        assert len(values) == 2 * CHAIN[item.doc["level"]]
        assert sorted(values.values()).count(item.target) == len(values) / 2
        assert item.doc["text"].count(item.target) == 1


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.spec.name)
def test_targets_are_right_and_the_other_codes_wrong(task: Needle | Variables) -> None:
    for item in task.items():
        other = str(110_000 - int(item.target))
        assert task.judge(item, item.target).value == 1
        assert task.judge(item, f"The number is {item.target}.").value == 1
        assert task.judge(item, f"<think>{other}</think> {item.target}").value == 1
        assert task.judge(item, other).value == 0
        assert task.judge(item, f"{item.target} {other}").value == 0
        assert task.judge(item, f"<think>{item.target}").parsed is False


def test_reciting_the_text_is_no_answer() -> None:
    task = Needle()
    hard = next(item for item in task.items() if item.doc["level"] == "hard")
    assert task.judge(hard, hard.doc["text"]).value == 0


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.spec.name)
def test_plain_prompts_end_open_and_hold_no_stop_string(task: Needle | Variables) -> None:
    for item in task.items():
        prompt = task.prompt(item, chat=False)
        assert isinstance(prompt, str)
        assert prompt.endswith(f"Question: {item.doc['question']}\nAnswer:")
        assert not any(stop in prompt for stop in task.spec.stops)
        assert "70315" not in item.doc["text"]


@pytest.mark.parametrize(
    "lengths", [(), (100,), (SHORTEST - 1,), (256, 256), ("256",), 256, (2.5e3,)]
)
@pytest.mark.parametrize("make", [Needle, Variables])
def test_senseless_lengths_are_refused(
    make: type[Needle | Variables], lengths: tuple[int, ...]
) -> None:
    with pytest.raises(InputError, match="lengths"):
        make(lengths=lengths)


@pytest.mark.parametrize("make", [Needle, Variables])
def test_the_shortest_length_works(make: type[Needle | Variables]) -> None:
    items = make(lengths=(SHORTEST,)).items()
    assert len(items) == 8
    assert all(len(item.doc["text"]) < SHORTEST * CHARS_PER_TOKEN for item in items)
