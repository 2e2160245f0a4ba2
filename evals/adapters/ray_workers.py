"""Ray actors, one engine each: the same code path on a laptop and on a cluster.

A lone command starts a private head on this machine and ends it; with an address the workers are
placed on that cluster. What an actor builds and does is given as picklable functions, so that Ray
knows nothing of vLLM and storage, and they nothing of Ray.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals.errors import EngineError, PawlError, WorkerLost
from evals.plan import Request

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS": "0",
    "DO_NOT_TRACK": "1",
}

ON_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Keeps a head of one's own, and who connects to it, on loopback: Ray else takes this machine's
address wherever it is told 127.0.0.1, and its servers then listen on every interface."""

BuildEngine = Callable[[], Any]
"""Makes an engine on the worker."""

WorkOn = Callable[[Any, Sequence[Request]], Iterator[int]]
"""Lets the engine answer requests and makes the answers durable; yields how many more are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerShape:
    """What one worker needs of a machine."""

    gpus: int = 0
    environment: Mapping[str, str]
    """Variables that its process starts with."""


def own_head_environment(token: Path) -> dict[str, str]:
    """Return the variables of a project's own head, and of who connects to it.

    Who connects has to have the head's token, which only this user can read: loopback is open to
    every user of a machine, and a head runs what it is told.

    Args:
        token: File of the token; made where it is not there.
    """
    write_once(token, secrets.token_hex(32))
    return {
        **QUIET,
        **ON_LOOPBACK,
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token),
    }


def write_once(file: Path, text: str) -> None:
    """Write a file that only this user can read, unless it is there; it is never seen half."""
    if file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(dir=file.parent, prefix=f"{file.name}.")
    try:
        with os.fdopen(descriptor, "w") as written:
            written.write(text)
        try:
            os.link(draft, file)
        except FileExistsError:
            return
        except OSError:
            # A file system without hard links: who writes at the same moment may be overwritten.
            Path(draft).replace(file)
    finally:
        Path(draft).unlink(missing_ok=True)


@contextmanager
def ray_head(address: str | None, project: Path, token: Path | None) -> Iterator[None]:
    """Connect to the cluster at ``address``, or own a private head until the block ends.

    Args:
        address: Of a running cluster; None: start a head of one's own.
        project: Folder of the project; heads of different projects and users stay apart.
        token: File of the token of the project's own head; None: a cluster of somebody else's.

    Raises:
        EngineError: Ray did not start or can't be reached.
    """
    os.environ.update(QUIET if token is None else own_head_environment(token))
    import ray

    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is None:
        options |= {
            "address": "local",
            "include_dashboard": False,
            "_node_ip_address": "127.0.0.1",
            "_temp_dir": str(ray_folder(project)),
            "object_store_memory": 128 * 1024 * 1024,
        }
    else:
        options["address"] = address
    try:
        ray.init(**options)
    except Exception as bad:
        raise EngineError(
            f"Ray did not start: {str(bad).splitlines()[0] if str(bad) else type(bad).__name__}",
            address or "private head",
            "correct ray.address in pawl.yaml, or remove it for a head of one's own",
        ) from bad
    try:
        yield
    finally:
        ray.shutdown()


def ray_folder(project: Path) -> Path:
    """Return Ray's folder for this user and project; short, since socket paths lie below it."""
    name = hashlib.sha256(str(project.resolve()).encode()).hexdigest()[:8]
    return Path(tempfile.gettempdir()) / f"pawl-{os.getuid()}-{name}"


class RayWorker:
    """One actor with one engine, from the engine's start to the worker's end.

    Args:
        build: Makes the engine on the worker.
        shape: What the worker needs.

    Raises:
        PawlError: What ``build`` raised.
        WorkerLost: The worker died while it started.
    """

    def __init__(self, build: BuildEngine, shape: WorkerShape) -> None:
        import ray

        remote = ray.remote(_Holder).options(
            num_cpus=0 if shape.gpus else 1,
            num_gpus=shape.gpus,
            runtime_env={"env_vars": dict(shape.environment)},
        )
        self._actor = remote.remote()
        with _named_errors():
            ray.get(self._actor.start.remote(build))

    def answer(self, work: WorkOn, requests: Sequence[Request]) -> Iterator[int]:
        """Yield how many more answers are durable, as the worker tells it.

        Raises:
            PawlError: What ``work`` raised.
            WorkerLost: The worker died; what it made durable stays.
        """
        import ray

        counts = self._actor.work.options(num_returns="streaming").remote(work, list(requests))
        with _named_errors():
            for count in counts:
                yield ray.get(count)

    def close(self) -> None:
        """End the actor and its process."""
        import ray

        ray.kill(self._actor)


class _Holder:
    """Lives in the worker's process and holds its engine."""

    def __init__(self) -> None:
        self._engine: Any = None

    def start(self, build: BuildEngine) -> None:
        """Make the engine; apart from ``__init__``, whose errors Ray gives back only as text."""
        self._engine = build()

    def work(self, work: WorkOn, requests: Sequence[Request]) -> Iterator[int]:
        """Yield what ``work`` yields."""
        yield from work(self._engine, requests)


@contextmanager
def _named_errors() -> Iterator[None]:
    """Give Ray's wrapped errors back as what they were on the worker."""
    from ray.exceptions import RayActorError, RayTaskError

    try:
        yield
    except RayTaskError as wrapped:
        raise _cause(wrapped) from wrapped
    except RayActorError as died:
        raise WorkerLost(
            f"a worker died: {str(died).strip().splitlines()[-1]}",
            "engine",
            "run the same command again: what is stored stays (dmesg tells of a memory kill)",
        ) from died


def _cause(wrapped: Any) -> BaseException:
    cause = getattr(wrapped, "cause", None)
    if isinstance(cause, PawlError | OSError):
        return cause
    return EngineError(
        f"a worker failed: {type(cause or wrapped).__name__}: {first_words(str(cause or wrapped))}",
        "engine",
        "run the same command again: what is stored stays",
    )


def first_words(text: str) -> str:
    """Return the last line of a message or traceback that says something, shortened."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no message"
