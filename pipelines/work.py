"""What a worker does: build the engine, answer requests, make each answer durable at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from evals.adapters.engines import ENGINES
from evals.checkpoint import (
    CheckpointFolder,
    digest_checkpoint,
    still_there,
    unchanged,
    vanishing,
)
from evals.engine import Engine, EngineFingerprint, EngineSettings
from evals.errors import CheckpointError, CheckpointVanished, EngineError
from evals.plan import Request
from storage.spool import Spool


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildEngine:
    """Makes the engine of the settings on a checkpoint, when called where it is to run."""

    folder: CheckpointFolder
    digest: str
    """The checkpoint's, as the evaluation was planned for it."""
    settings: EngineSettings
    chosen: EngineFingerprint

    def __call__(self) -> Engine:
        """Return the engine once it is proved that it loaded what the evaluation was planned for.

        The files are hashed once more after they were loaded: size and time of change do not
        tell of every write, and a pin shares its bytes with the run's own folder.

        Raises:
            CheckpointVanished: The folder was deleted meanwhile.
            CheckpointError: A file was written anew meanwhile.
        """
        with vanishing(self.folder.path):
            try:
                engine = ENGINES[self.settings.name].start(self.folder, self.settings, self.chosen)
            except EngineError as bad:
                if not still_there(self.folder):
                    raise CheckpointVanished(
                        "deleted while the engine loaded it",
                        str(self.folder.path),
                        "keep more checkpoints in the trainer's settings",
                    ) from bad
                raise
            if not unchanged(self.folder) or digest_checkpoint(self.folder) != self.digest:
                raise CheckpointError(
                    "changed while it was loaded",
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
