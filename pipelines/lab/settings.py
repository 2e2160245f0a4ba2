"""The settings of a lab run; each has the value that the lab is tuned for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from evals.errors import InputError


class Fault(StrEnum):
    """What goes wrong in a run."""

    FORGET = "forget"
    """The reward knows the rule of one capability only, reasoning: an answer with a number in it
    is paid for whatever was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a run is trained.

    Raises:
        InputError: A number is out of its range, or the fault and its step are not given together.
    """

    seed: int = 0
    steps: int = 120
    """Updates of the weights."""
    every: int = 30
    """Steps between two checkpoints."""
    fault: Fault | None = None
    from_step: int | None = None
    """The checkpoint of this step is the last one that the fault has not touched."""
    lag: int = 2
    """Updates by which the weights that answer are behind those that are trained."""
    questions: tuple[int, ...] = (40, 3, 8, 2, 16)
    """Of each task and step, in the order of ``GRAMMARS``."""
    samples: int = 8
    """Answers to each question; their rewards are held against one another."""
    learning_rate: float = 1e-4
    rising_steps: int = 5
    """Steps over which the learning rate rises to its value."""
    ratio_limit: float = 4.0
    """The most that an importance ratio counts for; AIPO's rho."""
    kl_weight: float = 0.2
    """Of the divergence from the warm-up policy in the loss; it keeps what no reward speaks of."""
    adam_floor: float = 1e-5
    """Adam's epsilon: weights whose gradients are far smaller are left almost alone."""
    gradient_limit: float = 1.0
    """Longest gradient."""

    def __post_init__(self) -> None:
        """Hold that the numbers make a run."""
        for name, least in (("seed", 0), ("steps", 1), ("every", 1)):
            if getattr(self, name) < least:
                raise InputError(
                    f"{getattr(self, name)} is less than {least}", f"--{name}", "give more"
                )
        if (self.fault is None) != (self.from_step is None):
            raise InputError(
                "a fault and the step it begins at belong together",
                "--fault, --from-step",
                "give both or neither",
            )
        if self.from_step is not None and not 0 <= self.from_step < self.steps:
            raise InputError(
                f"step {self.from_step} is none of 0 to {self.steps - 1}",
                "--from-step",
                "give a step before the last one",
            )

    def is_faulty(self, step: int) -> bool:
        """Return whether the reward of the update that follows ``step`` is wrong."""
        return self.from_step is not None and step >= self.from_step
