"""What tests of several planes share: real checkpoints, made once and kept in the project."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import MODELS, RunPawl
from postgres_server import PostgresServer, find_postgres


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """SmolLM2-135M-Instruct as a checkpoint folder."""
    from evals.adapters.smollm2 import write_checkpoint

    return write_checkpoint(MODELS / "SmolLM2-135M-Instruct")


@pytest.fixture(scope="session")
def perturbed(smollm2: Path) -> Path:
    """The same with noise on its weights, as large as the weights' own spread: it is broken."""
    from evals.adapters.smollm2 import write_perturbed

    return write_perturbed(smollm2, MODELS / "SmolLM2-135M-perturbed", noise=1.0)


@pytest.fixture(scope="session")
def tiny(smollm2: Path) -> Path:
    """A Llama-shaped model of under 2M parameters with random weights and SmolLM2's tokenizer."""
    target = MODELS / "tiny-random"
    if (target / "config.json").exists():
        return target
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    from evals.adapters.smollm2 import appearing_whole

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=49152,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=1,
        num_key_value_heads=1,
        head_dim=32,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
    )
    with appearing_whole(target) as partial:
        LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(partial)
        AutoTokenizer.from_pretrained(smollm2).save_pretrained(partial)
    return target


@pytest.fixture(scope="session")
def run_pawl() -> RunPawl:
    """The ``pawl`` command as a user runs it, in a process of its own."""

    def run(*arguments: str, cwd: Path, timeout: float = 900) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(Path(sys.executable).with_name("pawl")), *arguments],
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            env=os.environ | {"COLUMNS": "200"},
        )

    return run


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    programs = find_postgres()
    if programs is None:
        pytest.skip("no Postgres server on this machine (initdb and pg_ctl)")
    folder = Path(tempfile.mkdtemp(prefix="pawl-pg-"))
    server = PostgresServer(programs, folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
