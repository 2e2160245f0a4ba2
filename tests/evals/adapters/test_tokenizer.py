"""Token ids against Hugging Face's own tokenizer and template, which are the reference."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from evals.adapters.tokenizer import PromptEncoder, load_tokenizer, tokenizer_digest
from evals.checkpoint import inspect_checkpoint
from evals.errors import CheckpointError
from evals.task import Message

TALK = (Message(role="user", content="What is 2 + 2?"),)


def edited(source: Path, target: Path, *, bos: bool, template: str | None = None) -> Path:
    """A copy whose tokenizer puts BOS in front of plain text, or whose template does."""
    target.mkdir()
    for file in source.iterdir():
        (target / file.name).symlink_to(file)
    if bos:
        (target / "tokenizer.json").unlink()
        content = json.loads((source / "tokenizer.json").read_text())
        piece = {"SpecialToken": {"id": "<|im_start|>", "type_id": 0}}
        content["post_processor"] = {
            "type": "TemplateProcessing",
            "single": [piece, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [piece, {"Sequence": {"id": "A", "type_id": 0}}],
            "special_tokens": {
                "<|im_start|>": {"id": "<|im_start|>", "ids": [1], "tokens": ["<|im_start|>"]}
            },
        }
        (target / "tokenizer.json").write_text(json.dumps(content))
    if template is not None:
        (target / "chat_template.jinja").unlink()
        (target / "chat_template.jinja").write_text(template)
    return target


def test_a_conversation_gives_the_ids_of_the_checkpoints_own_template(smollm2: Path) -> None:
    reference = load_tokenizer(smollm2).apply_chat_template(
        [{"role": "user", "content": TALK[0].content}],
        tokenize=True,
        add_generation_prompt=True,
        return_dict=False,
    )
    encoder = PromptEncoder(inspect_checkpoint(smollm2), chat=True)
    assert encoder.encode(TALK) == tuple(reference)


def test_an_assistants_last_turn_is_continued(smollm2: Path) -> None:
    encoder = PromptEncoder(inspect_checkpoint(smollm2), chat=True)
    talk = (*TALK, Message(role="assistant", content="The answer is"))
    text = load_tokenizer(smollm2).decode(encoder.encode(talk))
    assert text.endswith("assistant\nThe answer is")


def test_exactly_one_bos_where_the_tokenizer_adds_it(smollm2: Path, tmp_path: Path) -> None:
    folder = edited(smollm2, tmp_path / "bos", bos=True)
    encoder = PromptEncoder(inspect_checkpoint(folder), chat=False)
    bos = load_tokenizer(folder).bos_token_id
    assert encoder.encode("hello")[:2].count(bos) == 1
    assert encoder.encode("<|im_start|>hello")[:2].count(bos) == 1


def test_no_bos_where_the_tokenizer_adds_none(smollm2: Path) -> None:
    encoder = PromptEncoder(inspect_checkpoint(smollm2), chat=False)
    assert encoder.encode("hello") == tuple(load_tokenizer(smollm2)("hello").input_ids)


def test_a_template_with_bos_and_a_tokenizer_with_bos_make_one(
    smollm2: Path, tmp_path: Path
) -> None:
    template = "{{ bos_token }}{% for m in messages %}{{ m['content'] }}{% endfor %}"
    folder = edited(smollm2, tmp_path / "both", bos=True, template=template)
    encoder = PromptEncoder(inspect_checkpoint(folder), chat=True)
    assert list(encoder.encode(TALK)).count(load_tokenizer(folder).bos_token_id) == 1


def test_only_the_separate_template_file_is_enough(smollm2: Path) -> None:
    assert "chat_template" not in json.loads((smollm2 / "tokenizer_config.json").read_text())
    assert PromptEncoder(inspect_checkpoint(smollm2), chat=True).template_digest != "none"


def test_a_template_that_refuses_is_named(smollm2: Path, tmp_path: Path) -> None:
    folder = edited(smollm2, tmp_path / "odd", bos=False, template="{{ raise_exception('no') }}")
    with pytest.raises(CheckpointError, match="chat template refused"):
        PromptEncoder(inspect_checkpoint(folder), chat=True).encode(TALK)


def test_a_missing_template_is_named(smollm2: Path, tmp_path: Path) -> None:
    folder = edited(smollm2, tmp_path / "none", bos=False)
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(CheckpointError, match="has none"):
        PromptEncoder(inspect_checkpoint(folder), chat=True)


def test_a_tokenizer_that_does_not_load_is_one_line(smollm2: Path, tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(smollm2, folder, symlinks=True)
    (folder / "tokenizer.json").write_text("{}")
    (folder / "tokenizer_config.json").unlink()
    with pytest.raises(CheckpointError, match="does not load") as refused:
        load_tokenizer(folder)
    assert "\n" not in str(refused.value)


def test_the_tokenizers_digest_changes_with_its_files(smollm2: Path, tmp_path: Path) -> None:
    folder = edited(smollm2, tmp_path / "bos", bos=True)
    assert tokenizer_digest(inspect_checkpoint(folder)) != tokenizer_digest(
        inspect_checkpoint(smollm2)
    )
