"""The lab model's language: a byte-level BPE tokenizer with single digits, and a chat template."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from evals.tasks.draws import Draws
from evals.tasks.lab import GRAMMARS
from pipelines.lab.teacher import teach

PAD, BEGIN, END = "<|pad|>", "<|begin|>", "<|end|>"
ROLES = ("system", "user", "assistant")
SPECIAL_TOKENS = (PAD, BEGIN, END, *(f"<|{role}|>" for role in ROLES))

VOCABULARY = 1536
"""Tokens at most: the special ones, 256 bytes, and what the lab's words merge into."""

PIECES = r" ?\p{L}+| ?\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?=\s)|\s+"
"""What no token reaches across: a word, one digit, white space, a run of signs."""

CHAT_TEMPLATE = (
    "{{- bos_token -}}"
    "{%- for message in messages -%}"
    "{%- if message['role'] not in ['system', 'user', 'assistant'] -%}"
    "{{- raise_exception('unknown role ' ~ message['role']) -}}"
    "{%- endif -%}"
    "{{- '<|' ~ message['role'] ~ '|>' ~ message['content'] ~ '<|end|>' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}"
)
"""Turns between a token of the role and one end token, as in ChatML; one BOS in front."""

CONVERSATIONS = 1000
"""Of each task that the merges are learned from."""


def write_tokenizer(folder: Path, context_tokens: int) -> None:
    """Write the tokenizer into ``folder`` in Hugging Face layout.

    Every text can be encoded, since a byte that no merge covers is a token of its own.

    Args:
        folder: Of the checkpoint.
        context_tokens: Longest text of the model.
    """
    from tokenizers import Regex, Tokenizer
    from tokenizers.decoders import ByteLevel as Bytes
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split
    from tokenizers.trainers import BpeTrainer
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = Sequence(
        [
            Split(Regex(PIECES), "isolated"),
            ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = Bytes()
    trainer = BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=sorted(ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(conversation_texts(), trainer)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=BEGIN,
        eos_token=END,
        pad_token=PAD,
        chat_template=CHAT_TEMPLATE,
        model_max_length=context_tokens,
        padding_side="left",
        clean_up_tokenization_spaces=False,
    ).save_pretrained(folder)


def conversation_texts() -> Iterator[str]:
    """Yield questions and answers of all tasks."""
    for grammar in GRAMMARS:
        draws = Draws("lab tokenizer", grammar.name)
        for _ in range(CONVERSATIONS):
            draft = grammar.draw(draws)
            yield draft.doc["question"]
            yield teach(draft, draws)
