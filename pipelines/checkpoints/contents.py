"""How much there is in a folder: what a look remembers of it until the next one.

The record is written out at the end of a sighting's detail, where a person reads it as progress
and the next look reads it back to tell whether anything happened between the two.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from evals.checkpoint import MODEL_FILES, vanishing
from evals.errors import CheckpointError

_AT_END = re.compile(r"([0-9]+) files, ([0-9]+) bytes, last change (\S+)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """Regular files below a folder; equal contents at two looks mean that nothing was written."""

    files: int
    size: int
    """Bytes of all of them."""
    changed: str
    """When the newest of them was written, UTC, ISO 8601."""

    def __str__(self) -> str:
        return f"{self.files} files, {self.size} bytes, last change {self.changed}"


def read_contents(detail: str | None) -> Contents | None:
    """Return the contents that a sighting's detail ends with, or None.

    >>> read_contents("no config.json yet; 3 files, 12 bytes, last change 2026-01-01").files
    3
    """
    found = _AT_END.search(detail or "")
    if found is None:
        return None
    return Contents(files=int(found[1]), size=int(found[2]), changed=found[3])


def measure_folder(path: Path, root: Path | None = None) -> Contents:
    """Return what is in a folder and all folders below it.

    Args:
        path: The folder.
        root: Folder that no link may lead out of; None: links may lead anywhere.

    Raises:
        CheckpointError: A link leads out of ``root``, something is neither file nor folder, or
            the folder can't be read.
        CheckpointVanished: The folder is gone.
    """
    with vanishing(path):
        refuse_way_out(path, root)
        own = path.stat().st_mtime_ns
        return _sum(_below(path), root, own)


def measure_model(path: Path, root: Path | None = None) -> Contents:
    """Return what is in a folder of what can move an answer; see ``measure_folder``."""
    with vanishing(path), os.scandir(path) as listing:
        refuse_way_out(path, root)
        return _sum((entry for entry in listing if is_model_file(entry.name)), root, 0)


def is_model_file(name: str) -> bool:
    """Return whether a file of this name can move an answer."""
    return MODEL_FILES.match(name) is not None or name.endswith(".safetensors")


def leads_out(path: Path, root: Path) -> bool:
    """Return whether a path, its links followed, is not below ``root``."""
    return not path.resolve().is_relative_to(root.resolve())


def refuse_way_out(path: Path, root: Path | None) -> None:
    """Raise ``CheckpointError`` where a path, its links followed, is not below ``root``."""
    if root is not None and leads_out(path, root):
        raise CheckpointError(
            "a link that leads out of the run folder", str(path), "put the files themselves there"
        )


def _below(path: Path) -> Iterator[os.DirEntry[str]]:
    """Yield all entries below a folder; a folder that goes meanwhile has none."""
    waiting = [path]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as listing:
                entries = list(listing)
        except FileNotFoundError:
            if folder == path:
                raise
            continue
        waiting += [Path(e.path) for e in entries if e.is_dir(follow_symlinks=False)]
        yield from entries


def _sum(entries: Iterator[os.DirEntry[str]], root: Path | None, changed_ns: int) -> Contents:
    files = size = 0
    for entry in entries:
        try:
            told = entry.stat()
        except FileNotFoundError:
            continue
        if entry.is_symlink():
            refuse_way_out(Path(entry.path), root)
        changed_ns = max(changed_ns, told.st_mtime_ns)
        if stat.S_ISREG(told.st_mode):
            files += 1
            size += told.st_size
        elif not stat.S_ISDIR(told.st_mode):
            raise CheckpointError(
                "neither a file nor a folder", entry.path, "do not load it; remove it"
            )
    return Contents(files=files, size=size, changed=moment_of(changed_ns))


def moment_of(nanoseconds: int) -> str:
    """Return a file's time as text; a time beyond the calendar as its number."""
    seconds, rest = divmod(nanoseconds, 10**9)
    try:
        whole = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return str(nanoseconds)
    return whole.replace(microsecond=rest // 1000).isoformat(timespec="microseconds")
