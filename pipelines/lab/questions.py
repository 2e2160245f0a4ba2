"""What is asked in training: drawn by the tasks' own grammars, and never an item of the suite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evals.adapters.tokenizer import PromptEncoder
from evals.checkpoint import inspect_checkpoint
from evals.suite import load_suite
from evals.task import Item
from evals.tasks.drafts import Draft, build_items
from evals.tasks.draws import Draws
from evals.tasks.lab import GRAMMARS, LabTask
from evals.tasks.registry import build_task

SUITE = "lab"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question of a task as it is put to the model."""

    task: LabTask
    item: Item
    prompt: tuple[int, ...]
    """Token ids, as an evaluation would send them."""


def evaluated_questions() -> dict[str, frozenset[str]]:
    """Return the texts of the suite's questions by task: what training must not see."""
    suite = load_suite(SUITE)
    return {
        entry.task: frozenset(
            item.doc["question"]
            for item in build_task(entry.task, seed=suite.seed, **entry.options).items()
        )
        for entry in suite.tasks
    }


def draw_unseen(task: LabTask, draws: Draws, excluded: frozenset[str]) -> Iterator[Draft]:
    """Yield questions of the task's grammar without end, none of those excluded."""
    while True:
        draft = task.grammar.draw(draws)
        if draft.doc["question"] not in excluded:
            yield draft


class Questions:
    """The stream of training questions of one run.

    Args:
        folder: Checkpoint whose tokenizer and chat template encode them.
        seed: Of the stream.
        per_task: Questions of each task and step, in the order of ``GRAMMARS``.
    """

    def __init__(self, folder: Path, seed: int, per_task: Sequence[int]) -> None:
        self._encoder = PromptEncoder(inspect_checkpoint(folder), chat=True)
        self._excluded: Mapping[str, frozenset[str]] = evaluated_questions()
        self._tasks = tuple(LabTask(grammar=grammar) for grammar in GRAMMARS)
        self._seed = seed
        self._per_task = per_task

    def of_step(self, step: int) -> tuple[Question, ...]:
        """Return the questions of one step, task by task; the same for the same seed and step."""
        asked: list[Question] = []
        for task, count in zip(self._tasks, self._per_task, strict=True):
            name = task.grammar.name
            stream = draw_unseen(
                task, Draws("lab run", name, self._seed, step), self._excluded[name]
            )
            drafts = [next(stream) for _ in range(count)]
            for item in build_items(name, drafts):
                prompt = self._encoder.encode(task.prompt(item, chat=True))
                asked.append(Question(task=task, item=item, prompt=prompt))
        return tuple(asked)
