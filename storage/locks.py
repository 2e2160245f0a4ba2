"""Locks between processes of one machine or one shared file system.

The operating system frees them when their holder ends, however it ends.
"""

from __future__ import annotations

import fcntl
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from evals.errors import LakeError

_POLL_S = 0.01
_SAY_S = 1.0


def try_lock(descriptor: int) -> bool:
    """Return whether the open file's exclusive lock is held from here on.

    Raises:
        LakeError: The file system has no locks.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise LakeError(
            f"the file system can't lock files ({error.strerror})",
            fix="keep the project on a local disk, or mount the shared one with locks (flock)",
        ) from error
    return True


@contextmanager
def file_lock(
    path: Path,
    *,
    timeout_s: float | None = None,
    on_wait: Callable[[str], None] | None = None,
) -> Iterator[None]:
    """Hold the lock of ``path``, whose content says who holds it; the file stays.

    Args:
        path: The lock file; its folder is created.
        timeout_s: How long to wait; None: for ever.
        on_wait: Called about once a second with who holds it.

    Raises:
        LakeError: The time is over, or the file can't be opened or locked.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise LakeError(f"can't open the lock file ({error.strerror})", str(path)) from error
    try:
        _wait(descriptor, path, timeout_s, on_wait)
        _sign(descriptor)
        yield
    finally:
        os.close(descriptor)


def _wait(
    descriptor: int, path: Path, timeout_s: float | None, on_wait: Callable[[str], None] | None
) -> None:
    started = time.monotonic()
    said = started - _SAY_S
    while not try_lock(descriptor):
        now = time.monotonic()
        if timeout_s is not None and now - started > timeout_s:
            raise LakeError(
                f"waited {timeout_s:.0f} s for {_holder(descriptor)}",
                str(path),
                "let it finish or end it, then try again",
            )
        if on_wait is not None and now - said >= _SAY_S:
            on_wait(_holder(descriptor))
            said = now
        time.sleep(_POLL_S)


def _sign(descriptor: int) -> None:
    """Write who holds the lock, for those who wait; a full disk is no reason not to hold it."""
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)


def _holder(descriptor: int) -> str:
    return os.pread(descriptor, 200, 0).decode("utf-8", "replace") or "another process"
