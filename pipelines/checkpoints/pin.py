"""Pins: a checkpoint's files kept in the project while they are evaluated.

A pin is hard links, so it takes no room beside the run's own folder; across file systems it is a
copy. It holds the files that can move an answer and nothing else. It is built beside its place
and renamed into it, so that what is there is whole whenever the process is killed.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evals.checkpoint import CheckpointFolder, inspect_checkpoint, unchanged
from evals.errors import CheckpointError, CheckpointVanished, InputError, LakeError
from evals.evaluation import CheckpointRef
from pipelines.checkpoints.contents import Contents, measure_model, read_contents
from storage.connection import sync_path
from storage.locks import file_lock
from storage.naming import NAME
from storage.project import Project
from storage.sightings import OURS, Sighting, SightingState

PINS = "pins"
PINNABLE = OURS | {SightingState.COMPLETE}

CANT_LINK = frozenset(
    {errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS}
)
"""Another file system, one without hard links, or files of another user."""


def pinned_folder(run: str, step: int, project: Project) -> Path:
    """Return where a checkpoint's pin is, or would be.

    Raises:
        InputError: The run's name is none, so that it could lead anywhere.
    """
    if NAME.fullmatch(f"{run}@{step}") is None:
        raise InputError(
            f"{f'{run}@{step}'[:80]!r} is not RUN@STEP",
            "checkpoint",
            "give the run a name of letters, digits and . _ + - in pawl.yaml: runs: name",
        )
    return project.state / PINS / run / str(step)


def kept_folder(checkpoint: CheckpointRef, project: Project) -> Path:
    """Return where a checkpoint's files are: its pin if that is whole, else where it was found."""
    pinned = pinned_folder(checkpoint.run, checkpoint.step, project)
    return pinned if is_whole(pinned) else Path(checkpoint.path)


def pin(sighting: Sighting, project: Project) -> Path:
    """Return the folder in which a checkpoint is kept, made if need be.

    A pin that is there and whole is returned as it is; what a kill left half made is made anew.
    The run's own folder and its files stay as they are, times of change included.

    Raises:
        CheckpointVanished: The checkpoint was deleted, or its deletion had begun.
        CheckpointError: It is not whole, or changed meanwhile.
        LakeError: The disk refuses, which says nothing about the checkpoint.
    """
    target = pinned_folder(sighting.run, sighting.step, project)
    if sighting.state not in PINNABLE:
        raise CheckpointError(
            f"is {sighting.state.value}; only what is complete is pinned",
            sighting.name,
            "look at its folder again",
        )
    with file_lock(lock_of(target)):
        if not is_whole(target):
            with making(target) as draft:
                fill(draft, sighting)
    return target


def unpin(sighting: Sighting, project: Project) -> None:
    """Remove a checkpoint's pin, if there is one; the run's own folder stays as it is.

    Raises:
        LakeError: It can't be removed.
    """
    target = pinned_folder(sighting.run, sighting.step, project)
    with file_lock(lock_of(target)):
        try:
            draft = emptied_draft(target)
            if target.exists():
                target.rename(draft)
                shutil.rmtree(draft)
        except OSError as bad:
            raise LakeError(
                f"the pin can't be removed: {bad.strerror}", str(target), "remove it by hand"
            ) from bad


def lock_of(target: Path) -> Path:
    """Return the lock of whoever makes or removes a pin."""
    return target.with_name(f"{target.name}.lock")


def is_whole(target: Path) -> bool:
    """Return whether a pin is there and whole."""
    try:
        inspect_checkpoint(target)
    except CheckpointError:
        return False
    return True


@contextmanager
def making(target: Path) -> Iterator[Path]:
    """Yield an empty folder that becomes ``target`` when the block ends without an error.

    Raises:
        LakeError: The disk refuses.
    """
    draft = emptied_draft(target)
    try:
        draft.mkdir()
        yield draft
        if target.exists():
            shutil.rmtree(target)
        draft.rename(target)
    except OSError as bad:
        raise LakeError(
            f"can't be pinned: {bad.strerror}",
            str(bad.filename or target),
            "free space on the disk, and see that you may write there",
        ) from bad
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def emptied_draft(target: Path) -> Path:
    """Return where a pin is built, with nothing there that a killed process left."""
    draft = target.with_name(f"{target.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    return draft


def fill(draft: Path, sighting: Sighting) -> None:
    """Put a checkpoint's files into ``draft``.

    Raises:
        CheckpointVanished: The checkpoint was deleted, or its deletion had begun.
        CheckpointError: It is not whole, or changed meanwhile.
    """
    source = Path(sighting.path)
    told = read_contents(sighting.detail)
    seen = told or measure_model(source)
    try:
        link_whole(source, draft, seen, known=told is not None)
    except FileNotFoundError as gone:
        raise vanished(source) from gone
    except CheckpointVanished:
        raise
    except CheckpointError as bad:
        if count_files(source) < seen.files:
            raise vanished(source) from bad
        raise


def link_whole(source: Path, draft: Path, seen: Contents, *, known: bool) -> None:
    """Put a whole checkpoint's files into ``draft``.

    What went before the first look at the files is missed by no later check. A folder that is as
    it was when it was seen complete has lost nothing; any other has to stay as it is meanwhile.

    Args:
        source: The checkpoint.
        draft: An empty folder.
        seen: What was in it.
        known: Whether that was when it was seen complete.

    Raises:
        FileNotFoundError: A file went meanwhile.
        CheckpointError: The checkpoint is not whole, or changed meanwhile.
    """
    folder = inspect_checkpoint(source)
    found = measure_model(source)
    if found.files < seen.files:
        raise vanished(source)
    linked = [link(source / name, draft / name) for name in folder.files]
    if not (known and found == seen and all(linked)) and not unchanged(folder):
        raise changed(source)
    if not holds(draft, folder):
        raise changed(source)


def count_files(source: Path) -> int:
    """Return how many files that can move an answer are in a folder; 0 where it is gone."""
    try:
        return measure_model(source).files
    except CheckpointVanished:
        return 0


def link(source: Path, target: Path) -> bool:
    """Return whether ``target`` is a link to the file; where there can be none, it is a copy."""
    file = source.resolve()
    try:
        target.hardlink_to(file)
    except OSError as bad:
        if bad.errno not in CANT_LINK:
            raise
        shutil.copyfile(file, target)
        sync_path(target)
        return False
    return True


def holds(draft: Path, folder: CheckpointFolder) -> bool:
    """Return whether ``draft`` is whole and has the checkpoint's files, by name and size."""
    try:
        found = inspect_checkpoint(draft)
    except CheckpointError:
        return False
    sizes = [[size for size, *_ in each.marks] for each in (found, folder)]
    return found.files == folder.files and sizes[0] == sizes[1]


def vanished(source: Path) -> CheckpointVanished:
    """Return the error of a checkpoint that was deleted before it was pinned."""
    return CheckpointVanished(
        "deleted before it was pinned",
        str(source),
        "keep more checkpoints in the trainer's settings",
    )


def changed(source: Path) -> CheckpointError:
    """Return the error of a checkpoint that was written while it was pinned."""
    return CheckpointError(
        "changed while it was pinned", str(source), "wait until the trainer has finished it"
    )
