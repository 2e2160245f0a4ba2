"""The checkpoint's own tokenizer and chat template, and nothing between them and the engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evals.checkpoint import CheckpointFolder
from evals.errors import CheckpointError
from evals.identity import fingerprint, sha256_text

if TYPE_CHECKING:
    from evals.task import Choice, Message

TOKENIZER_PARTS = (
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
)


class PromptEncoder:
    """Turns prompts into the token ids that the checkpoint was trained to see.

    Args:
        folder: The checkpoint.
        chat: Whether prompts are conversations; needs a chat template.

    Raises:
        CheckpointError: The tokenizer does not load, or there is no template to apply.
    """

    def __init__(self, folder: CheckpointFolder, *, chat: bool) -> None:
        if chat and folder.chat_template is None:
            raise CheckpointError(
                "the suite asks for a chat template and the checkpoint has none",
                str(folder.path),
                "set chat_template: false in the suite, or copy the template into the folder",
            )
        self.chat = chat
        self._template = folder.chat_template if chat else None
        self._tokenizer = load_tokenizer(folder.path)
        self._bos = self._tokenizer.bos_token_id
        self._adds_eos = self._ends_with_eos()

    def encode(self, prompt: Sequence[Message] | str) -> tuple[int, ...]:
        """Return the ids of a conversation or of plain text, with at most one BOS in front.

        A conversation that ends with an assistant's turn is continued, any other is answered.
        """
        if isinstance(prompt, str):
            return self._ids(prompt, special=True)
        return self._with_one_bos(self._render(prompt, tokenize=True))

    def encode_choice(self, choice: Choice) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the ids of a context and of its continuation as they are in one text.

        Spaces that end the context belong to the continuation, and where both together are cut
        into other tokens than the context alone, what is beyond the context's length is the
        continuation: as in lm-eval. An empty context is the token that begins or ends a text.
        """
        context, continuation = choice.context, choice.continuation
        if context == "":
            asked = self._ids(continuation, special=False)
            first = self._bos if self._bos is not None else self._tokenizer.eos_token_id
            if first is None:
                raise CheckpointError(
                    "the tokenizer names neither a BOS nor an end token to begin a text with",
                    "tokenizer_config.json",
                    "copy the tokenizer's files of the base model into the folder",
                )
            return (first,), asked[1:] if asked[:1] == (first,) else asked
        special = isinstance(context, str)
        text = context if isinstance(context, str) else str(self._render(context, tokenize=False))
        ids = self._ids(text.rstrip(), special=special)
        return ids, self._ids(text + continuation, special=special)[len(ids) :]

    def _ids(self, text: str, *, special: bool) -> tuple[int, ...]:
        """Return a text's ids, no end token; ``special``: the tokenizer adds its own before it."""
        ids = list(self._tokenizer(text, add_special_tokens=special, verbose=False).input_ids)
        if special and self._adds_eos and ids:
            ids.pop()
        return self._with_one_bos(ids)

    def _with_one_bos(self, ids: Sequence[int]) -> tuple[int, ...]:
        twice = self._bos is not None and list(ids[:2]) == [self._bos, self._bos]
        return tuple(ids[1:] if twice else ids)

    def _render(self, messages: Sequence[Message], *, tokenize: bool) -> Any:
        """Return what the chat template makes of a conversation: its ids or its text."""
        from jinja2 import TemplateError

        turns = [{"role": m.role, "content": m.content} for m in messages]
        continued = bool(turns) and turns[-1]["role"] == "assistant"
        try:
            return self._tokenizer.apply_chat_template(
                turns,
                chat_template=self._template,
                tokenize=tokenize,
                return_dict=False,
                add_generation_prompt=not continued,
                continue_final_message=continued,
            )
        except (TemplateError, ValueError) as bad:
            raise CheckpointError(
                f"the chat template refused a conversation of {[t['role'] for t in turns]}: {bad}",
                "chat template",
                "set chat_template: false in the suite, or mend the template",
            ) from bad

    def _ends_with_eos(self) -> bool:
        eos = self._tokenizer.eos_token_id
        ids = self._tokenizer("x").input_ids
        return eos is not None and len(ids) > 1 and ids[-1] == eos

    @property
    def template_digest(self) -> str:
        """Return the hash of the template in use, or ``none``."""
        return sha256_text(self._template) if self._template is not None else "none"


def load_tokenizer(path: Path) -> Any:
    """Return the tokenizer in a checkpoint folder; runs no code that the folder brings.

    Raises:
        CheckpointError: It does not load.
    """
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(
            str(path), trust_remote_code=False, local_files_only=True
        )
    except Exception as bad:
        raise CheckpointError(
            f"the tokenizer does not load: {' '.join(str(bad).split())[:200] or bad!r}",
            str(path),
            "copy the tokenizer's files of the base model into the folder",
        ) from bad


def tokenizer_digest(folder: CheckpointFolder) -> str:
    """Return the hash of all files that make up the tokenizer."""
    return fingerprint(
        {
            name: sha256_text((folder.path / name).read_bytes().decode("latin-1"))
            for name in TOKENIZER_PARTS
            if (folder.path / name).exists()
        }
    )
