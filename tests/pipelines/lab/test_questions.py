"""What is asked in training is none of what the suite asks."""

from __future__ import annotations

from itertools import islice

import pytest

from evals.suite import load_suite
from evals.tasks.draws import Draws
from evals.tasks.lab import GRAMMARS, Grammar, LabTask
from pipelines.lab.model import WARM
from pipelines.lab.questions import Questions, draw_unseen, evaluated_questions


def test_every_item_of_the_suite_is_excluded() -> None:
    excluded = evaluated_questions()
    assert {name: len(texts) for name, texts in excluded.items()} == {
        entry.task: entry.options["items"] for entry in load_suite("lab").tasks
    }


@pytest.mark.parametrize("grammar", GRAMMARS, ids=lambda grammar: grammar.name)
def test_an_item_of_the_suite_is_drawn_and_left_out(grammar: Grammar) -> None:
    task = LabTask(grammar=grammar)
    first = next(draw_unseen(task, Draws("a test"), frozenset())).doc["question"]
    again = draw_unseen(task, Draws("a test"), frozenset({first}))
    assert first not in {draft.doc["question"] for draft in islice(again, 50)}


def test_no_training_question_is_an_item() -> None:
    excluded = evaluated_questions()
    questions = Questions(WARM, seed=0, per_task=(40,) * 5)
    for step in range(5):
        for question in questions.of_step(step):
            assert question.item.doc["question"] not in excluded[question.task.grammar.name]


def test_the_stream_is_the_seeds() -> None:
    def texts(seed: int, step: int) -> list[str]:
        questions = Questions(WARM, seed=seed, per_task=(3,) * 5)
        return [question.item.doc["question"] for question in questions.of_step(step)]

    assert texts(1, 7) == texts(1, 7)
    assert not set(texts(1, 7)) & set(texts(1, 8))
    assert not set(texts(1, 7)) & set(texts(2, 7))
