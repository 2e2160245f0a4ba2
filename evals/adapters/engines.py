"""The engines that Pawl has, under the names that ``engine.name`` in ``pawl.yaml`` gives them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from evals.adapters import torch_engine, vllm_engine
from evals.checkpoint import CheckpointFolder
from evals.engine import Engine, EngineFingerprint, EngineSettings


class FingerprintEngine(Protocol):
    """Tells what of an engine can move an answer."""

    def __call__(
        self,
        folder: CheckpointFolder,
        settings: EngineSettings,
        *,
        chat_template: str,
        tokenizer: str,
    ) -> EngineFingerprint:
        """Return the fingerprint of an engine that is not started yet."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineKind:
    """One of the engines: what there is to call before and when it is started."""

    start: Callable[[CheckpointFolder, EngineSettings, EngineFingerprint], Engine]
    fingerprint: FingerprintEngine
    environment: Callable[[EngineSettings], dict[str, str]]
    """Variables that its process starts with."""
    describe: Callable[[], str]
    """Which version would run where; raises ``EngineError`` where none would."""
    light: bool
    """Whether a process of its own would cost more than it is worth."""


ENGINES: Mapping[str, EngineKind] = {
    "vllm": EngineKind(
        start=vllm_engine.VllmEngine,
        fingerprint=vllm_engine.fingerprint_engine,
        environment=vllm_engine.worker_environment,
        describe=vllm_engine.describe,
        light=False,
    ),
    "torch": EngineKind(
        start=torch_engine.TorchEngine,
        fingerprint=torch_engine.fingerprint_engine,
        environment=torch_engine.worker_environment,
        describe=torch_engine.describe,
        light=True,
    ),
}
