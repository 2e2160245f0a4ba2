"""The supervised warm-up: from random weights to a model that does each task fairly well.

It stops early on purpose, and one answer in a few dozen is another task's: what is left to gain,
and to lose, is what a run is about.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evals.adapters.tokenizer import load_tokenizer
from evals.job import Progress, silent
from evals.tasks.drafts import Draft
from evals.tasks.draws import Draws
from evals.tasks.lab import GRAMMARS, RECALL, LabTask, recall_question
from pipelines.lab.language import write_tokenizer
from pipelines.lab.model import (
    CONTEXT_TOKENS,
    appearing_whole,
    copy_weights,
    new_model,
    one_thread,
    write_configuration,
    write_weights,
)
from pipelines.lab.packing import Branch, Packed, Row, Tokens, answer_logits, pack
from pipelines.lab.questions import draw_unseen, evaluated_questions
from pipelines.lab.teacher import teach

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUp:
    """How the warm-up is trained."""

    seed: int = 0
    steps: int = 750
    learning_rate: float = 3e-3
    rising_steps: int = 50
    rows: tuple[int, ...] = (24, 3, 10, 5, 2)
    """Questions of each task and step, in the order of ``GRAMMARS``; of recall, lists."""
    first_rows: tuple[int, ...] = (0, 0, 0, 24, 0)
    """The same of the first steps: looking up is learned alone, or hardly at all."""
    first_steps: int = 110
    asked_of_a_list: int = 8
    """Questions about one list."""
    short_list: int = 6
    """Pairs of the first lists."""
    whole_lists_from: int = 700
    """Step from which lists have their whole length."""
    mixed_up: float = 0.06
    """Share of answers that belong to another task's question."""
    gradient_limit: float = 1.0


def warm_up(target: Path, settings: WarmUp, progress: Progress = silent) -> None:
    """Train from random weights and write the checkpoint to ``target``.

    Args:
        target: Folder to make.
        settings: How.
        progress: Told the stage ``steps`` and how far it is.
    """
    import torch

    with one_thread(), appearing_whole(target) as folder:
        write_tokenizer(folder, CONTEXT_TOKENS)
        tokenizer = load_tokenizer(folder)
        model = new_model(tokenizer, settings.seed)
        write_configuration(folder, model)
        lessons = Lessons(tokenizer, settings)
        optimizer = torch.optim.AdamW(
            model.parameters(), betas=(0.9, 0.98), weight_decay=0.05, lr=settings.learning_rate
        )
        for step in range(settings.steps):
            progress("steps", step, settings.steps)
            for packed in lessons.of_step(step):
                loss_of(model, packed).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), settings.gradient_limit)
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(step, settings)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        progress("steps", settings.steps, settings.steps)
        write_weights(folder, copy_weights(model))


def learning_rate(step: int, settings: WarmUp) -> float:
    """Return the rate of a step: it rises, and falls along a cosine to a tenth of its height."""
    rise = min(1.0, (step + 1) / settings.rising_steps)
    fall = 0.55 + 0.45 * math.cos(math.pi * step / settings.steps)
    return settings.learning_rate * rise * fall


def loss_of(model: Any, packed: Packed) -> torch.Tensor:
    """Return the mean cross-entropy of the answers' tokens."""
    import torch

    loss: torch.Tensor = torch.nn.functional.cross_entropy(
        answer_logits(model, packed), packed.targets
    )
    return loss


class Lessons:
    """Questions with their answers, task by task, and never an item of the suite.

    Args:
        tokenizer: That encodes them.
        settings: How many, and how.
    """

    def __init__(self, tokenizer: Any, settings: WarmUp) -> None:
        self._tokenizer = tokenizer
        self._settings = settings
        self._excluded = evaluated_questions()

    def of_step(self, step: int) -> Iterator[Packed]:
        """Yield a batch of each task."""
        first = step < self._settings.first_steps
        rows = self._settings.first_rows if first else self._settings.rows
        for grammar, count in zip(GRAMMARS, rows, strict=True):
            if count == 0:
                continue
            draws = Draws("lab warm-up", grammar.name, self._settings.seed, step)
            unseen = draw_unseen(LabTask(grammar=grammar), draws, self._excluded[grammar.name])
            drafts = [next(unseen) for _ in range(count)]
            if grammar is RECALL:
                yield pack([self._list_row(draft.doc["pairs"], draws, step) for draft in drafts])
            else:
                yield pack([self._row([draft], draws) for draft in drafts])

    def _list_row(self, pairs: Sequence[Sequence[str]], draws: Draws, step: int) -> Row:
        """Return a list with several questions about it; early in training lists are cut short."""
        first, whole = self._settings.first_steps, self._settings.whole_lists_from
        grown = min(1.0, max(0.0, (step - first) / (whole - first)))
        few = round(self._settings.short_list * (1 - grown) + len(pairs) * grown)
        asked = draws.pick(range(few), min(few, self._settings.asked_of_a_list))
        return self._row([recall_question(pairs[:few], number) for number in asked], draws)

    def _row(self, drafts: Sequence[Draft], draws: Draws) -> Row:
        """Return questions that begin alike in one row, each with its answer."""
        prompts = [self._prompt(draft) for draft in drafts]
        shared = count_shared(prompts)
        return Row(
            prompt=prompts[0][:shared],
            branches=tuple(
                Branch(given=prompt[shared:], answer=self._answer(draft, draws))
                for prompt, draft in zip(prompts, drafts, strict=True)
            ),
        )

    def _prompt(self, draft: Draft) -> Tokens:
        ids = self._tokenizer.apply_chat_template(
            [{"role": "user", "content": draft.doc["question"]}],
            add_generation_prompt=True,
            tokenize=True,
            return_dict=False,
        )
        return tuple(ids)

    def _answer(self, draft: Draft, draws: Draws) -> Tokens:
        """Return the tokens of a right answer, or sometimes of one to something else."""
        text = teach(draft, draws)
        if draws.below(1000) < 1000 * self._settings.mixed_up:
            text = teach(draws.choice(GRAMMARS).draw(draws), draws)
        ids = self._tokenizer(text, add_special_tokens=False).input_ids
        return (*ids, self._tokenizer.eos_token_id)


def count_shared(prompts: Sequence[Tokens]) -> int:
    """Return how many tokens all prompts begin with, short of the whole of the shortest.

    >>> count_shared([(1, 4, 7, 9), (1, 4, 8)]), count_shared([(1, 4), (1, 4)])
    (2, 1)
    """
    most = min(len(prompt) for prompt in prompts) - 1
    return next((n for n in range(most) if len({prompt[n] for prompt in prompts}) > 1), most)
