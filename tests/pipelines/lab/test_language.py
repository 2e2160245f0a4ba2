"""The lab model's tokenizer and chat template."""

from __future__ import annotations

from typing import Any

import pytest

from evals.adapters.tokenizer import PromptEncoder, load_tokenizer
from evals.checkpoint import inspect_checkpoint
from evals.task import Message
from evals.tasks.draws import Draws
from evals.tasks.lab import GRAMMARS
from pipelines.lab.model import WARM

TEXTS = [
    "def f(x):\n    return (x + 3) * 6",
    "What is red table in Spanish?",
    "\n\n\t  two  spaces \n",
    "größer, 你好, 🎈, \u202e, \x00",
    "1234567890",
    "",
]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return load_tokenizer(WARM)


@pytest.mark.parametrize("text", TEXTS)
def test_every_text_comes_back(tokenizer: Any, text: str) -> None:
    ids = tokenizer(text, add_special_tokens=False).input_ids
    assert tokenizer.decode(ids) == text
    assert tokenizer.unk_token_id not in ids


def test_what_is_drawn_comes_back(tokenizer: Any) -> None:
    for grammar in GRAMMARS:
        draws = Draws("a test", grammar.name)
        for _ in range(50):
            text = grammar.draw(draws).doc["question"]
            assert tokenizer.decode(tokenizer(text).input_ids) == text


def test_digits_are_single(tokenizer: Any) -> None:
    pieces = tokenizer.tokenize("12 345x6")
    assert [piece.lstrip("Ġ") for piece in pieces] == ["1", "2", "3", "4", "5", "x", "6"]


def test_a_conversation_is_written_out_as_the_template_says(tokenizer: Any) -> None:
    turns = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Hi 5"}]
    text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    assert text == "<|begin|><|system|>Be short.<|end|><|user|>Hi 5<|end|><|assistant|>"


def test_a_prompt_has_one_begin_and_ends_where_the_answer_begins(tokenizer: Any) -> None:
    encoder = PromptEncoder(inspect_checkpoint(WARM), chat=True)
    ids = encoder.encode((Message(role="user", content="What is 3 plus 4?"),))
    assert ids[0] == tokenizer.bos_token_id
    assert ids.count(tokenizer.bos_token_id) == 1
    assert tokenizer.convert_ids_to_tokens(ids)[1] == "<|user|>"
    assert tokenizer.convert_ids_to_tokens(ids)[-2:] == ["<|end|>", "<|assistant|>"]


def test_the_end_of_a_turn_is_the_end_token_everywhere(tokenizer: Any) -> None:
    folder = inspect_checkpoint(WARM)
    assert tokenizer.eos_token == "<|end|>"
    assert folder.config["eos_token_id"] == tokenizer.eos_token_id
    assert folder.generation_config["eos_token_id"] == tokenizer.eos_token_id
    assert folder.config["vocab_size"] == len(tokenizer)


def test_words_of_the_tasks_are_few_tokens(tokenizer: Any) -> None:
    assert len(tokenizer("Ana ladder\nBen whistle").input_ids) == 5
