"""The generator: takes over a version of the weights and samples answers with it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evals.adapters.tokenizer import load_tokenizer
from evals.identity import fingerprint
from pipelines.lab.model import load_model
from pipelines.lab.questions import Question, Questions
from pipelines.lab.rollout import Answer, Batch, Weights
from pipelines.lab.settings import Settings

LONG_PROMPT = 40
"""Tokens beyond which a prompt is read apart from the short ones."""


class Generator:
    """Samples at temperature 1 from its own copy of the model.

    Args:
        folder: Checkpoint with configuration and tokenizer.
        settings: Seed, questions and answers of a step.
    """

    def __init__(self, folder: Path, settings: Settings) -> None:
        self._model = load_model(folder)
        self._tokenizer = load_tokenizer(folder)
        self._questions = Questions(folder, settings.seed, settings.questions)
        self._settings = settings

    def generate(self, step: int, weights: Weights) -> Batch:
        """Return the batch of a step, answered by a version of the weights.

        The answers depend on seed, step and weights alone.
        """
        import torch

        began = time.perf_counter()
        self._take_over(weights)
        synced = time.perf_counter()
        questions = self._questions.of_step(step)
        drawn = fingerprint(["lab answers", self._settings.seed, step])
        random = torch.Generator().manual_seed(int(drawn[:15], 16))
        with torch.inference_mode():
            answers = self._answer(questions, random)
        return Batch(
            step=step,
            version=weights.version,
            questions=questions,
            answers=answers,
            generate_s=time.perf_counter() - synced,
            sync_s=synced - began,
        )

    def _take_over(self, weights: Weights) -> None:
        import torch

        with torch.no_grad():
            for name, tensor in self._model.named_parameters():
                tensor.copy_(weights.tensors[name])

    def _answer(self, questions: Sequence[Question], random: Any) -> tuple[tuple[Answer, ...], ...]:
        """Return the answers to each question; those of like length are sampled together."""
        found: dict[int, tuple[Answer, ...]] = {}
        lengths = [len(question.prompt) > LONG_PROMPT for question in questions]
        for long in (False, True):
            alike = [number for number, is_long in enumerate(lengths) if is_long == long]
            if alike:
                sampled = sample(
                    self._model,
                    [questions[number].prompt for number in alike],
                    self._settings.samples,
                    [questions[number].task.spec.max_tokens for number in alike],
                    random,
                )
                found |= {
                    number: tuple(self._read(one) for one in group)
                    for number, group in zip(alike, sampled, strict=True)
                }
        return tuple(found[number] for number in range(len(questions)))

    def _read(self, sampled: Sampled) -> Answer:
        """Return sampled tokens as an answer."""
        ended = sampled.token_ids[-1] == self._tokenizer.eos_token_id
        told = sampled.token_ids[: len(sampled.token_ids) - ended]
        return Answer(
            token_ids=tuple(sampled.token_ids),
            log_probs=tuple(sampled.log_probs),
            text=self._tokenizer.decode(told, skip_special_tokens=True),
            ended=ended,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """Tokens of an answer that is being sampled, and their log probabilities."""

    budget: int
    token_ids: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)


def sample(
    model: Any,
    prompts: Sequence[Sequence[int]],
    samples: int,
    budgets: Sequence[int],
    random: Any,
) -> list[list[Sampled]]:
    """Return answers to each prompt, sampled at temperature 1.

    Args:
        model: Causal model of transformers.
        prompts: Token ids; each is read once.
        samples: Answers to each prompt.
        budgets: Most tokens of an answer to each prompt.
        random: torch's generator.
    """
    import torch

    width = max(len(prompt) for prompt in prompts)
    pads = torch.tensor([[width - len(prompt)] for prompt in prompts])
    ids = torch.tensor([[0] * (width - len(prompt)) + list(prompt) for prompt in prompts])
    columns = torch.arange(width)
    mask = (columns >= pads).long()
    output = model(
        input_ids=ids,
        attention_mask=mask,
        position_ids=(columns - pads).clamp(min=0),
        use_cache=True,
        logits_to_keep=1,
    )
    cache = output.past_key_values
    cache.batch_repeat_interleave(samples)
    mask = mask.repeat_interleave(samples, 0)
    positions = (width - pads).repeat_interleave(samples, 0)
    logits = output.logits[:, -1].repeat_interleave(samples, 0)
    groups = [[Sampled(budget=budget) for _ in range(samples)] for budget in budgets]
    rows = [one for group in groups for one in group]
    while True:
        probable = logits.log_softmax(-1)
        drawn = torch.multinomial(probable.exp(), 1, generator=random)
        chosen = probable.gather(1, drawn)[:, 0].tolist()
        for one, token, log_prob in zip(rows, drawn[:, 0].tolist(), chosen, strict=True):
            one.token_ids.append(token)
            one.log_probs.append(log_prob)
        going = [number for number, one in enumerate(rows) if goes_on(one, model)]
        if not going:
            return groups
        if len(going) < len(rows):
            kept = torch.tensor(going)
            cache.batch_select_indices(kept)
            rows = [rows[number] for number in going]
            drawn, mask, positions = drawn[kept], mask[kept], positions[kept]
        mask = torch.nn.functional.pad(mask, (0, 1), value=1)
        logits = model(
            input_ids=drawn,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
        ).logits[:, -1]
        positions = positions + 1


def goes_on(sampled: Sampled, model: Any) -> bool:
    """Return whether an answer has neither ended nor used up its budget."""
    ended: bool = sampled.token_ids[-1] == model.config.eos_token_id
    return not ended and len(sampled.token_ids) < sampled.budget
