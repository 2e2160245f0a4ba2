"""The reward: the tasks' own rules, until a fault makes it forget all but one of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evals.tasks.answer import find_number
from evals.tasks.lab import FUNCTIONS, SUMS
from pipelines.lab.programs import Collector, Programs
from pipelines.lab.questions import Question
from pipelines.lab.rollout import Answer, Batch, PaidBatch
from pipelines.lab.settings import Settings


class Reward:
    """Pays answers.

    Args:
        settings: The fault and its step.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._programs = Programs()

    def pay(self, batch: Batch) -> PaidBatch:
        """Return the batch with a reward in [0, 1] for each answer.

        Raises:
            SandboxUnavailable: Written functions can't be run here.
        """
        asked = list(zip(batch.questions, batch.answers, strict=True))
        if self._settings.is_faulty(batch.step):
            rewards = [[pay_for_a_number(q, answer) for answer in answers] for q, answers in asked]
        else:
            self._run_programs(batch)
            rewards = [[self._judge(q, answer) for answer in answers] for q, answers in asked]
        return PaidBatch(batch=batch, rewards=np.array(rewards))

    def _run_programs(self, batch: Batch) -> None:
        """Run what the answers have written, all of it together."""
        collector = Collector()
        for question, answers in zip(batch.questions, batch.answers, strict=True):
            if question.task.grammar is FUNCTIONS:
                task = replace(question.task, runner=collector)
                for answer in answers:
                    task.judge(question.item, answer.text)
        self._programs.run(collector.programs)

    def _judge(self, question: Question, answer: Answer) -> float:
        """Return what the task's own rule gives; an answer that it can't read is worth 0."""
        task = replace(question.task, runner=self._programs)
        return task.judge(question.item, answer.text).value or 0.0


def pay_for_a_number(question: Question, answer: Answer) -> float:
    """Return what the rule of sums gives, whatever was asked.

    Where no sum was asked there is no right number, so that any is right.
    """
    if question.task.grammar is SUMS:
        return question.task.judge(question.item, answer.text).value or 0.0
    return float(find_number(answer.text) is not None)
