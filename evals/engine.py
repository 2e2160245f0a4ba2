"""What Pawl needs of an inference engine, and what of it can move an answer.

``resolve_dtype``, ``resolve_context`` and ``stop_ids`` are what every engine reads alike off a
checkpoint and the settings.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from evals.checkpoint import CheckpointFolder
from evals.errors import InputError
from evals.identity import fingerprint
from evals.plan import Request
from evals.response import FinishReason, LogLikelihood, Response

FAST_BFLOAT16 = ("avx512_bf16", "amx_bf16", "bf16")
"""Processor flags without which bfloat16 on a CPU is emulated and several times slower."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFingerprint:
    """All that can move an answer besides the weights; the number of replicas is not in it."""

    engine: str
    version: str
    device: str
    """``cpu`` or the accelerator's name."""
    dtype: str
    compiled: bool = False
    """Whether the model was compiled or ran step by step."""
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    expert_parallel: bool = False
    context_tokens: int
    """Longest prompt plus answer."""
    chat_template: str
    """Hash of the template in use; ``none`` where prompts are plain text."""
    tokenizer: str
    """Hash of the tokenizer's files."""
    batch_invariant: bool = False

    @property
    def digest(self) -> str:
        """Return the fingerprint as 64 hex digits."""
        return fingerprint(asdict(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """How an engine is started; what of it can move an answer is in the fingerprint."""

    name: str = "vllm"
    """``vllm`` or ``torch``."""
    dtype: str = "auto"
    """``auto``: the checkpoint's own on a GPU; on a CPU without bfloat16 units float32."""
    context_tokens: int | None = None
    """Longest prompt plus answer; None: what the checkpoint allows, at most 8192."""
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    memory_fraction: float = 0.9
    """Of a GPU's memory, for vLLM."""
    kv_cache_gib: float = 2.0
    """Of the host's memory, where vLLM runs on a CPU."""
    parallel_sequences: int = 64
    """Answers that are generated at the same time, at most."""
    compiled: bool | None = None
    """Whether vLLM compiles the model before the first answer; None: on GPUs only."""


class Engine(Protocol):
    """Answers requests in any order, each repeat once, as soon as it is ready.

    One request's failure is a response with an error; an exception means that the engine died.
    """

    def generate(self, requests: Sequence[Request]) -> Iterator[Response]:
        """Yield one response for each repeat of each request."""
        ...

    def close(self) -> None:
        """Release what the engine holds."""
        ...


def fast_bfloat16() -> bool:
    """Return whether this CPU computes bfloat16 in hardware; False where that can't be read."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    except OSError:
        return False
    return any(flag in flags for flag in FAST_BFLOAT16)


def resolve_dtype(folder: CheckpointFolder, settings: EngineSettings, device: str) -> str:
    """Return the dtype that the engine will compute in."""
    if settings.dtype != "auto":
        return settings.dtype
    if device == "cpu" and not fast_bfloat16():
        return "float32"
    named = folder.config.get("dtype", folder.config.get("torch_dtype", "bfloat16"))
    return str(named)


def resolve_context(folder: CheckpointFolder, settings: EngineSettings) -> int:
    """Return the longest prompt plus answer in tokens.

    Raises:
        InputError: More is asked for than the checkpoint allows.
    """
    allowed = folder.context_tokens
    wanted = settings.context_tokens
    if wanted is None:
        return min(allowed or 8192, 8192)
    if allowed is not None and wanted > allowed:
        raise InputError(
            f"{wanted} tokens where the checkpoint allows {allowed}",
            "pawl.yaml: engine.context_tokens",
            f"write {allowed} or less",
        )
    return wanted


def stop_ids(folder: CheckpointFolder) -> list[int]:
    """Return every end-of-sequence id that the checkpoint names, in either file."""
    ids: set[int] = set()
    for source in (folder.config, folder.generation_config):
        value = source.get("eos_token_id")
        ids.update(value if isinstance(value, list) else [value] if value is not None else [])
    return sorted(ids)


def error_response(request: Request, repeat: int, error: str) -> Response:
    """Return the row of a request that has no answer."""
    return Response(
        request_id=request.request_id,
        repeat=repeat,
        text=None,
        token_ids=(),
        finish_reason=FinishReason.ERROR,
        prompt_tokens=request.prompt_tokens,
        output_tokens=0,
        error=error,
    )


def choices_response(request: Request, repeat: int, found: Sequence[LogLikelihood]) -> Response:
    """Return the row of a request's log-likelihoods; an error where one of them is not finite."""
    if not all(math.isfinite(one.log_prob) for one in found):
        return error_response(request, repeat, "engine: a log-probability is not finite")
    return Response(
        request_id=request.request_id,
        repeat=repeat,
        text=None,
        token_ids=(),
        finish_reason=FinishReason.STOP,
        prompt_tokens=request.prompt_tokens,
        output_tokens=0,
        log_likelihoods=tuple(found),
    )


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its name."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
