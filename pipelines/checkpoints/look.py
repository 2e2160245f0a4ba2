"""One look at a run's folder: how far each checkpoint in it is.

What decides, in this order: marks that a folder is still being written; the framework's own mark
that it is whole; the structure of what is in it. Where a framework has no such mark, nothing may
have changed since the look before. A look writes nothing and knows of the looks before it only
what it is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

from evals.checkpoint import inspect_checkpoint, read_json, vanishing
from evals.errors import CheckpointError, CheckpointVanished
from pipelines.checkpoints.contents import Contents, measure_folder, measure_model, read_contents
from pipelines.checkpoints.layout import Layout
from pipelines.checkpoints.run_folder import Run, StepFolder, find_final, find_steps
from storage.clock import utc_now
from storage.sightings import OURS, Sighting, SightingState

Finding: TypeAlias = tuple[SightingState, str]
"""State and detail."""

GONE = "its folder is gone"
NOT_READY = frozenset({SightingState.WRITING, SightingState.ABANDONED})


def look(run: Run, known: Iterable[Sighting]) -> tuple[Sighting, ...]:
    """Return how far each checkpoint of a run is, by step; what is as it was is as it was given.

    A folder that is bad in any way is a sighting too. One that goes while it is looked at is told
    as it was before: the next look sees it gone.

    Args:
        run: From ``find_run``.
        known: What the look before returned, of this run or of several.

    Raises:
        InputError: The run's own folder is gone or can't be read, which tells nothing about its
            checkpoints.
    """
    before = {old.step: old for old in known if old.run == run.name}
    found = find_steps(run.folder, run.layout)
    final = find_final(run, found)
    if final is not None:
        found[final.step] = final
    seen: dict[int, Sighting] = {}
    for step, old in before.items():
        gone = step not in found and old.state not in OURS
        seen[step] = old.turned(SightingState.VANISHED, GONE) if gone else old
    for step, at in found.items():
        told = sight(run, at, before.get(step))
        if told is not None:
            seen[step] = told
    return set_aside(seen, before)


def sight(run: Run, at: StepFolder, old: Sighting | None) -> Sighting | None:
    """Return a checkpoint's sighting; None where it is new and went while it was looked at."""
    if old is not None and old.state in OURS:
        return old
    finding = judge(run, at, old)
    if finding is None:
        return old
    new = Sighting(
        run=run.name,
        step=at.step,
        path=str(at.path),
        state=finding[0],
        detail=finding[1],
        changed_at=utc_now(),
    )
    return old if old is not None and new.same_as(old) else new


def judge(run: Run, at: StepFolder, old: Sighting | None) -> Finding | None:
    """Return how far a checkpoint is; None where it went while it was looked at."""
    marked = run.layout.marked and not at.final
    try:
        contents = (measure_folder if marked else measure_model)(at.path, run.folder)
        sign = writing_sign(at, run.layout)
        if sign is not None:
            return SightingState.WRITING, f"{sign}; {contents}"
        if marked:
            return judge_marked(run, at, old, contents)
        return judge_unmarked(at, old, contents)
    except CheckpointVanished:
        return None
    except CheckpointError as bad:
        return None if is_gone(at.path) else (SightingState.CORRUPT, reason(bad, at))
    except OSError as bad:
        return SightingState.CORRUPT, f"can't be read: {bad.strerror}"


def judge_marked(
    run: Run, at: StepFolder, old: Sighting | None, contents: Contents
) -> Finding | None:
    """Return how far a checkpoint is whose framework says when it is whole; None as for ``judge``.

    One that was complete and has lost a file is being deleted. It has vanished, and stays so until
    something comes back or it proves to be whole without that file: a deletion that takes its time
    is no damage.
    """
    last = run.layout.last_file
    model = measure_model(at.path, run.folder)
    seen = seen_whole(at, old)
    going = SightingState.VANISHED, f"files of it are gone; {model}"
    if seen is not None and (model.files < seen.files or has_lost(at, last, old)):
        return going
    unfit = None if last is None else judge_last_file(at, last, old, contents)
    if unfit is None:
        try:
            inspect_checkpoint(at.path)
        except CheckpointVanished:
            raise
        except CheckpointError as bad:
            if measure_model(at.path, run.folder) != model:
                return None
            unfit = SightingState.CORRUPT, reason(bad, at)
    left = old is not None and old.state is SightingState.VANISHED and model == seen
    if unfit is not None:
        return going if left else unfit
    return SightingState.COMPLETE, str(model)


def judge_last_file(
    at: StepFolder, name: str, old: Sighting | None, contents: Contents
) -> Finding | None:
    """Return how far a checkpoint is whose last file is not there or not whole; None: it is whole.

    A last file that is cut off may be being written: only one that was so at the look before
    makes its checkpoint corrupt.
    """
    if not (at.path / name).exists():
        return SightingState.WRITING, f"no {name} yet; {contents}"
    try:
        with vanishing(at.path):
            read_json(at.path / name, "the trainer writes it last; copy the folder again")
    except CheckpointVanished:
        raise
    except CheckpointError as bad:
        left = is_quiet(at, old, contents)
        state = SightingState.CORRUPT if left else SightingState.WRITING
        return state, f"{reason(bad, at)}; {contents}"
    return None


def judge_unmarked(at: StepFolder, old: Sighting | None, contents: Contents) -> Finding:
    """Return how far a checkpoint is of which only its being left alone says that it is whole."""
    if not is_quiet(at, old, contents):
        return SightingState.WRITING, f"nothing says that it is whole yet; {contents}"
    try:
        inspect_checkpoint(at.path)
    except CheckpointVanished:
        raise
    except CheckpointError as bad:
        return SightingState.WRITING, f"{reason(bad, at)}; {contents}"
    return SightingState.COMPLETE, str(contents)


def set_aside(seen: Mapping[int, Sighting], before: Mapping[int, Sighting]) -> tuple[Sighting, ...]:
    """Return the sightings by step, those that are written no more as abandoned."""
    whole = OURS | {SightingState.COMPLETE}
    newest = max((step for step, each in seen.items() if each.state in whole), default=-1)
    told = []
    for step, each in sorted(seen.items()):
        old = before.get(step)
        if each.state is SightingState.WRITING and old is not None and is_still(old, each):
            passed = step < newest
            told.append(old.turned(SightingState.ABANDONED, old.detail) if passed else old)
        else:
            told.append(each)
    return tuple(told)


def is_still(old: Sighting, new: Sighting) -> bool:
    """Return whether nothing happened between two looks at a folder that is not whole."""
    return old.state in NOT_READY and (old.path, old.detail) == (new.path, new.detail)


def is_quiet(at: StepFolder, old: Sighting | None, contents: Contents) -> bool:
    """Return whether the look before saw the same contents."""
    return old is not None and old.path == str(at.path) and read_contents(old.detail) == contents


def seen_whole(at: StepFolder, old: Sighting | None) -> Contents | None:
    """Return what was left at the look before of a checkpoint that is or was complete, or None."""
    if old is None or old.path != str(at.path):
        return None
    whole = old.state in {SightingState.COMPLETE, SightingState.VANISHED}
    return read_contents(old.detail) if whole else None


def has_lost(at: StepFolder, last: str | None, old: Sighting | None) -> bool:
    """Return whether a checkpoint was complete and has no longer what says so."""
    complete = old is not None and old.state is SightingState.COMPLETE
    return complete and last is not None and not (at.path / last).exists()


def writing_sign(at: StepFolder, layout: Layout) -> str | None:
    """Return the mark that says that a folder is still being written, or None."""
    if at.writing:
        return f"named {at.path.name}"
    for pattern in layout.writing_files:
        for file in at.path.glob(pattern):
            return f"{file.name} is there"
    return None


def is_gone(path: Path) -> bool:
    """Return whether there is nothing at a path; False where that can't be told."""
    try:
        path.lstat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def reason(bad: CheckpointError, at: StepFolder) -> str:
    """Return what is wrong with a checkpoint; files are named relative to its folder."""
    where = bad.where.removeprefix(str(at.path)).lstrip("/")
    return str(CheckpointError(bad.what, where, bad.fix))
