"""What a worker does: build the engine, answer requests, make each answer durable at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from evals.adapters.vllm_engine import EngineSettings, VllmEngine
from evals.checkpoint import CheckpointFolder, still_there, unchanged, vanishing
from evals.engine import Engine, EngineFingerprint
from evals.errors import CheckpointError, CheckpointVanished, EngineError
from evals.plan import Request
from storage.spool import Spool


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildVllm:
    """Makes vLLM on a checkpoint, when called on the worker."""

    folder: CheckpointFolder
    settings: EngineSettings
    chosen: EngineFingerprint

    def __call__(self) -> Engine:
        """Return the engine once it is proved that the folder did not change while it loaded.

        Raises:
            CheckpointVanished: The folder was deleted meanwhile.
            CheckpointError: A file was written anew meanwhile.
        """
        with vanishing(self.folder.path):
            try:
                engine = VllmEngine(self.folder, self.settings, self.chosen)
            except EngineError as bad:
                if not still_there(self.folder):
                    raise CheckpointVanished(
                        "deleted while the engine loaded it",
                        str(self.folder.path),
                        "keep more checkpoints in the trainer's settings",
                    ) from bad
                raise
            if not unchanged(self.folder):
                raise CheckpointError(
                    "its files changed while the engine loaded them",
                    str(self.folder.path),
                    "run the command again when the trainer has finished it",
                )
        return engine


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerIntoSpool:
    """Lets an engine answer requests and appends each answer to this worker's spool file."""

    spool_folder: Path
    evaluation_id: str

    def __call__(self, engine: Engine, requests: Sequence[Request]) -> Iterator[int]:
        """Yield 1 for each answer that was appended."""
        with Spool(self.spool_folder).writer(self.evaluation_id) as writer:
            for response in engine.generate(requests):
                writer.append(response)
                yield 1
