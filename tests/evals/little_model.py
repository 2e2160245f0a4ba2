"""A Llama of 80 thousand random parameters that speaks bytes, as a checkpoint folder."""

from __future__ import annotations

import json
from pathlib import Path

END = 256
"""Id of the end token; ids below it are bytes."""


def write_little(target: Path) -> Path:
    """Write it to ``target``, the same each time, and return ``target``."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|end|>"])
    config = LlamaConfig(
        vocab_size=END + 1,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
        max_position_embeddings=1024,
        initializer_range=0.3,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=END,
    )
    torch.manual_seed(0)
    LlamaForCausalLM(config).save_pretrained(target)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>").save_pretrained(target)
    return target


def edited(source: Path, target: Path, **changes: object) -> Path:
    """A copy of a checkpoint with other fields in config.json and no generation_config.json."""
    target.mkdir()
    for file in source.iterdir():
        if file.name not in {"config.json", "generation_config.json"}:
            (target / file.name).symlink_to(file)
    config = json.loads((source / "config.json").read_text())
    (target / "config.json").write_text(json.dumps(config | changes))
    return target
