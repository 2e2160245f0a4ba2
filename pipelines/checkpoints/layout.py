"""How a framework lays out the folder of a run, as data: another framework is another record."""

from __future__ import annotations

import re
from dataclasses import dataclass

from evals.checkpoint import WRITING_MARKS

STEP = "(0|[1-9][0-9]{0,14})"
"""A step as part of a folder's name; one spelling for each number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where a framework writes checkpoints, and how it says that one is whole."""

    name: str
    """What ``pawl.yaml`` calls it."""
    frameworks: str
    """Who writes it, for a person."""
    looked_for: str
    """What a run folder is recognised by, for a person."""
    run_file: str
    """JSON file of the run folder that says what the run is."""
    framework: str | None = None
    """What ``run_file`` has to say under ``framework`` for the run to be recognised; None: the
    file itself, or a step folder, is enough."""
    steps_in: str = "."
    """Folder of the step folders, relative to the run's."""
    step_name: re.Pattern[str]
    """Whole name of a step folder; group 1 is the step."""
    writing_name: re.Pattern[str] | None = None
    """Whole name of a step folder that is still being written; group 1 is the step."""
    writing_files: tuple[str, ...] = WRITING_MARKS
    """Patterns of files that say that their folder is still being written."""
    atomic: bool = False
    """Whether a step folder gets its name by a rename, once it is whole."""
    last_file: str | None = None
    """JSON file of a step folder that is written after all others; None: no file is the last."""
    final_model: bool = False
    """Whether the run folder itself may hold a last checkpoint, of ``run_file``'s global_step."""
    telemetry: tuple[str, ...] = ()
    """Patterns of telemetry files, relative to the run folder."""

    @property
    def marked(self) -> bool:
        """Return whether the framework says of a step folder that it is whole."""
        return self.atomic or self.last_file is not None


LAB = Layout(
    name="lab",
    frameworks="Pawl's RL lab",
    looked_for='run.json that says "framework": "pawl-lab"',
    run_file="run.json",
    framework="pawl-lab",
    steps_in="checkpoints",
    step_name=re.compile(f"step_{STEP}"),
    writing_name=re.compile(f"(?:tmp|old)_step_{STEP}"),
    atomic=True,
    telemetry=("metrics.jsonl", "tensorboard/events.out.tfevents.*"),
)

TRAINER = Layout(
    name="trainer",
    frameworks="Hugging Face Trainer, TRL, Unsloth",
    looked_for="folders checkpoint-N, or trainer_state.json",
    run_file="trainer_state.json",
    step_name=re.compile(f"checkpoint-{STEP}"),
    last_file="trainer_state.json",
    final_model=True,
    telemetry=("runs/*/events.out.tfevents.*",),
)

LAYOUTS = (LAB, TRAINER)
"""In the order in which they are tried."""
