"""The lab's model: Llama's shape at a million parameters, read and written as checkpoints."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evals.errors import CheckpointError

if TYPE_CHECKING:
    import torch

WARM = Path(__file__).parent / "warm"
"""The weights after the supervised warm-up, where every run starts."""

CONTEXT_TOKENS = 512
SHAPE: Mapping[str, Any] = {
    "hidden_size": 128,
    "intermediate_size": 384,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "head_dim": 32,
    "max_position_embeddings": CONTEXT_TOKENS,
    "tie_word_embeddings": True,
    "initializer_range": 0.05,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
}
LOOK_AT_BEFORE, LOOK_AT_LIKE = 1.5, 1.3
"""How sharp attention is at first, in units of random attention's."""
WEIGHTS = "model.safetensors"


def new_model(tokenizer: Any, seed: int) -> Any:
    """Return the model with random weights.

    Args:
        tokenizer: Whose vocabulary it speaks.
        seed: Of the weights.
    """
    import torch
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

    ids = {
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        architectures=["LlamaForCausalLM"],
        dtype="float32",
        **SHAPE,
        **ids,
    )
    model = LlamaForCausalLM(config)
    model.generation_config = GenerationConfig(**ids)
    let_it_look_back(model)
    return model


def let_it_look_back(model: Any) -> None:
    """Turn random attention into attention that can look things up from the start.

    In the first layer a token looks at the one before it: keys are the queries turned on by one
    position, and what all embeddings have in common makes them meet. In the others a token looks
    at its like: keys are the queries. What is seen is passed on as it is: output undoes value.
    From plain random weights a model this small needs millions of questions to come to that.

    Source of the idea: Trockman and Kolter (2023), mimetic initialization, arXiv:2305.09828.
    """
    import torch

    shape = model.config
    spread = shape.initializer_range
    half = shape.head_dim // 2
    turn = shape.rope_parameters["rope_theta"] ** (-torch.arange(half) / half)
    cos, sin = turn.cos()[:, None], turn.sin()[:, None]
    with torch.no_grad():
        model.model.embed_tokens.weight.add_(torch.randn(1, shape.hidden_size) * spread)
        for number, layer in enumerate(model.model.layers):
            attention = layer.self_attn
            query = attention.q_proj.weight
            query.mul_(LOOK_AT_BEFORE if number == 0 else LOOK_AT_LIKE)
            key = query.clone().view(-1, shape.head_dim, shape.hidden_size)
            if number == 0:
                first, second = key[:, :half].clone(), key[:, half:].clone()
                key[:, :half] = first * cos - second * sin
                key[:, half:] = second * cos + first * sin
            attention.k_proj.weight.copy_(key.view_as(query))
            attention.o_proj.weight.copy_(attention.v_proj.weight.T)


def write_configuration(folder: Path, model: Any) -> None:
    """Write all of a model but its weights into a checkpoint's folder."""
    model.config.save_pretrained(folder)
    model.generation_config.save_pretrained(folder)


def load_model(folder: Path) -> Any:
    """Return the model of one of the lab's checkpoints, in float32.

    Raises:
        CheckpointError: There is none.
    """
    import torch
    from safetensors.torch import load_file
    from transformers import LlamaConfig, LlamaForCausalLM

    if not (folder / WEIGHTS).exists():
        raise CheckpointError(
            "there are no weights to start from", str(folder), "run `pawl lab warm-up`"
        )
    model = LlamaForCausalLM(LlamaConfig.from_pretrained(folder, local_files_only=True))
    with torch.no_grad():
        weights = load_file(folder / WEIGHTS)
        for name, tensor in model.named_parameters():
            tensor.copy_(weights[name])
    return model.eval()


def copy_weights(model: Any) -> dict[str, torch.Tensor]:
    """Return the weights under the names that a checkpoint has, apart from the model's own."""
    named: dict[str, torch.Tensor] = {
        name: tensor.detach().clone() for name, tensor in model.named_parameters()
    }
    return named


def write_checkpoint(
    target: Path, weights: Mapping[str, torch.Tensor], source: Path = WARM
) -> None:
    """Write a checkpoint that appears whole under its name or not at all.

    Args:
        target: Folder to make.
        weights: By name.
        source: Checkpoint whose configuration and tokenizer it has.
    """
    with appearing_whole(target) as partial:
        for file in sorted(source.iterdir()):
            if file.name != WEIGHTS:
                shutil.copyfile(file, partial / file.name)
        write_weights(partial, weights)


def write_weights(folder: Path, weights: Mapping[str, torch.Tensor]) -> None:
    """Write the weights' file into a checkpoint's folder."""
    from safetensors.torch import save_file

    save_file(dict(weights), folder / WEIGHTS, metadata={"format": "pt"})
    (folder / WEIGHTS).chmod(0o644)  # the library writes for the owner alone


@contextmanager
def appearing_whole(target: Path) -> Iterator[Path]:
    """Yield ``tmp_NAME`` beside ``target``, which becomes ``target`` when the block ends well."""
    partial = target.with_name(f"tmp_{target.name}")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    yield partial
    if target.exists():
        shutil.rmtree(target)
    partial.rename(target)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute on one thread: sums of one order give the same bits every time."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
