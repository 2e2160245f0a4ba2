"""What a run writes: ``run.json``, checkpoints, ``metrics.jsonl`` and TensorBoard events."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evals.errors import InputError
from pipelines.lab.model import SHAPE, write_checkpoint
from pipelines.lab.rollout import Weights
from pipelines.lab.settings import Settings

FRAMEWORK = "pawl-lab"
MODEL_LINE = "pawl-lab-1m"
RUN_FILE, METRICS_FILE = "run.json", "metrics.jsonl"
CHECKPOINTS, TENSORBOARD = "checkpoints", "tensorboard"


class RunFolder:
    """A run's folder while the run writes it.

    Args:
        folder: Made where it is not there.
        settings: Of the run; they stand in ``run.json``.
        owner: Whose run it is.

    Raises:
        InputError: There is something in the folder.
    """

    def __init__(self, folder: Path, settings: Settings, owner: str) -> None:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(
                "there is something here already", str(folder), "give an empty or a new folder"
            )
        from torch.utils.tensorboard import SummaryWriter

        (folder / CHECKPOINTS).mkdir(parents=True)
        (folder / RUN_FILE).write_text(json.dumps(describe(settings, owner), indent=2) + "\n")
        self._folder = folder
        self._metrics = (folder / METRICS_FILE).open("a", encoding="utf-8")
        self._events = SummaryWriter(str(folder / TENSORBOARD))

    def checkpoint(self, step: int, weights: Weights) -> None:
        """Write a checkpoint, which appears whole."""
        write_checkpoint(self._folder / CHECKPOINTS / f"step_{step}", weights.tensors)

    def log(self, step: int, series: Mapping[str, float]) -> None:
        """Append a step's series to both files, for readers to see at once."""
        row = {"step": step, "time": time.time()} | {
            name: json_number(value) for name, value in series.items()
        }
        self._metrics.write(json.dumps(row, allow_nan=False) + "\n")
        self._metrics.flush()
        for name, value in series.items():
            self._events.add_scalar(name, value, step)
        self._events.flush()

    def close(self) -> None:
        """End both files."""
        self._metrics.close()
        self._events.close()


def describe(settings: Settings, owner: str) -> dict[str, Any]:
    """Return what ``run.json`` says of a run."""
    return {
        "framework": FRAMEWORK,
        "model_line": MODEL_LINE,
        "owner": owner,
        "tags": ["lab", *([settings.fault.value] if settings.fault else [])],
        "config": {**asdict(settings), "model": dict(SHAPE)},
    }


def json_number(value: float) -> float | str:
    """Return a number, or its name where JSON has none for it.

    >>> json_number(0.5), json_number(float("-inf")), json_number(float("nan"))
    (0.5, '-Infinity', 'NaN')
    """
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
