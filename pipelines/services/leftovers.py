"""What a `pawl up` that was killed left running is found and ended by the next one.

Each part's process group is written down with the time its first process started, so that a
number that the system has given to another process since is never taken for it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from pipelines.services.part import end_groups, group_lives

FILE = "services.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """A part as it is written down."""

    name: str
    group: int
    """Process group; the first process has this number too."""
    started: int
    """When that process started, in the kernel's ticks since boot."""
    boot: str
    """Which boot of the machine."""
    address: str


def note_parts(state: Path, parts: Iterable[tuple[str, int, str]]) -> None:
    """Write down the parts that run: name, process group and address of each."""
    boot = boot_id()
    noted = [
        asdict(Noted(name=name, group=group, started=start_ticks(group), boot=boot, address=at))
        for name, group, at in parts
    ]
    draft = state / f"{FILE}.draft"
    draft.write_text(json.dumps(noted, indent=1), "utf-8")
    draft.replace(state / FILE)


def read_parts(state: Path) -> tuple[Noted, ...]:
    """Return the parts that were written down and still run."""
    with suppress(FileNotFoundError, ValueError, TypeError):
        noted = [Noted(**fields) for fields in json.loads((state / FILE).read_text("utf-8"))]
        return tuple(one for one in noted if is_same(one))
    return ()


def end_leftovers(state: Path) -> tuple[str, ...]:
    """End what an earlier `pawl up` left running; return the names."""
    left = read_parts(state)
    end_groups(one.group for one in left)
    (state / FILE).unlink(missing_ok=True)
    return tuple(one.name for one in left)


def is_same(noted: Noted) -> bool:
    """Return whether the group is still the one that was written down.

    A group whose first process is gone lives on under its number, which the system does not give
    away meanwhile.
    """
    if noted.boot != boot_id():
        return False
    ticks = start_ticks(noted.group)
    return ticks == noted.started if ticks else group_lives(noted.group)


def start_ticks(pid: int) -> int:
    """Return when a process started, in ticks since boot; 0 where there is none."""
    with suppress(OSError, IndexError, ValueError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    return 0


def boot_id() -> str:
    """Return the name of this boot of the machine."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return os.uname().nodename
