"""What can go wrong, as one small tree.

    PawlError                 could not be done; the command line exits with 3
    ├── InputError            a file, field or argument is wrong: file, field, reason, remedy
    ├── CheckpointError       a checkpoint can't be evaluated as it is
    │   └── CheckpointVanished    it was there and is gone
    ├── ComparisonRefused     two evaluations that must not be paired (metric or prompt differs)
    ├── PromotionRefused      a channel must not be moved so: which condition failed
    ├── EngineError           the engine did not start or failed
    │   └── WorkerLost            its process died; what it made durable stays
    ├── SandboxUnavailable    no isolation to be had here, so no model-written code is run
    └── LakeError             the lake can't be opened, is newer than this Pawl, or is damaged

A verdict is never an exception, and an exception never a verdict.
"""

from __future__ import annotations


class PawlError(Exception):
    """Something could not be done; says what, where and how to mend it.

    Args:
        what: What was wrong, one line.
        where: File and field, checkpoint, table or host it concerns.
        fix: What the user can do about it.
    """

    def __init__(self, what: str, where: str = "", fix: str = "") -> None:
        super().__init__(what, where, fix)
        self.what = what
        self.where = where
        self.fix = fix

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        remedy = f" — {self.fix}" if self.fix else ""
        return f"{place}{self.what}{remedy}"


class InputError(PawlError):
    """A file, field or argument given by the user is wrong."""


class CheckpointError(PawlError):
    """A checkpoint can't be evaluated as it is."""


class CheckpointVanished(CheckpointError):
    """A checkpoint was deleted while it was read; its state is ``vanished``, not failed."""


class ComparisonRefused(PawlError):
    """Two evaluations must not be paired: metric or prompt version differs, or scores are unfit.

    ``code`` is one of ``metric_differs``, ``prompt_version_differs``, ``duplicate_item``,
    ``score_out_of_range``.
    """

    def __init__(self, what: str, where: str = "", fix: str = "", code: str = "") -> None:
        super().__init__(what, where, fix)
        self.args = (what, where, fix, code)
        self.code = code


class PromotionRefused(PawlError):
    """A channel must not be moved so; says which condition failed and what to do."""


class EngineError(PawlError):
    """The inference engine did not start, or died."""


class WorkerLost(EngineError):
    """A worker's process died (killed, out of memory); what it made durable stays."""


class SandboxUnavailable(PawlError):
    """No isolation to be had on this machine; model-written code is not run without it."""


class LakeError(PawlError):
    """The lake can't be opened, is newer than this Pawl, or is damaged."""
