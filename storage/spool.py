"""The spool: responses on disk within a second of their arrival, before the lake has them.

One file per writer and evaluation, ``<folder>/<evaluation id>/<time>-<uuid>.spool``:

    header   magic ``PAWLSPOOL`` and version (1 byte)
    record   length (4 bytes, little-endian), CRC-32 of these 4 bytes, CRC-32 of the payload,
             payload: a response and its evaluation as canonical JSON, UTF-8 with lone
             surrogates kept

Both checksums tell a last record that was never written whole from bytes that changed. A writer
holds an exclusive lock on its file while it lives. A file whose lock is free is closed for good,
whether its writer ended in order or was killed, and can be moved.
"""

from __future__ import annotations

import json
import os
import re
import struct
import threading
import time
import uuid
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from evals.errors import LakeError
from evals.identity import canonical_json
from evals.plan import ResponseKey
from evals.response import FinishReason, LogLikelihood, Response
from storage.connection import Lake, sync_path
from storage.locks import file_lock, try_lock
from storage.responses import put_responses

_MAGIC = b"PAWLSPOOL"
_VERSION = 1
_HEADER = _MAGIC + bytes([_VERSION])
_FIELDS = tuple(field.name for field in fields(Response))
_PREFIX = struct.Struct("<III")
_SYNC_S = 0.5
_POLL_S = 0.2
_SAY_S = 1.0
_EVALUATION_ID = re.compile(r"[0-9A-Za-z_-]{1,128}")


class DamageKind(StrEnum):
    """Why bytes of a spool file could not be read."""

    TORN = "torn"
    """The last record was never written whole; its response is owed."""
    ALTERED = "altered"
    """Bytes changed after they were written."""
    UNKNOWN_VERSION = "unknown_version"
    """Written by another version of Pawl."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolDamage:
    """Bytes of a spool file that could not be read; whole records around them were."""

    path: str
    kind: DamageKind
    offset: int
    """Where they start, in bytes."""
    lost_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveReport:
    """What a move did."""

    moved: int
    """Responses that are in the lake because of it."""
    already_stored: int
    """Responses that the lake, or an earlier spool file, had before."""
    live_files: int
    """Files left alone because their writer lives."""
    damage: tuple[SpoolDamage, ...]
    """Of closed files. Torn ones are gone after the move, altered ones end in ``.damaged``."""


class SpoolWriter:
    """Appends responses to one spool file until it is sealed; one writer per worker.

    ``append`` hands the record to the operating system at once, so killing the process loses
    nothing that it returned from, and a record is on disk (fsync) at most a second later. A
    process that is forked while a writer is open keeps the file locked for as long as it lives.

    Args:
        folder: The spool's folder.
        evaluation_id: The evaluation whose responses are written.

    Raises:
        LakeError: The file can't be created.
    """

    def __init__(self, folder: Path, evaluation_id: str) -> None:
        self.evaluation_id = evaluation_id
        self._lock = threading.Lock()
        self._sealed = threading.Event()
        self._failure: OSError | None = None
        self._unsynced = False
        place = evaluation_folder(folder, evaluation_id)
        self.path = place / f"{time.time_ns():020d}-{uuid.uuid4().hex}.spool"
        with _steady(place):
            self._descriptor = _create(self.path)
        self._size = len(_HEADER)
        self._thread = threading.Thread(target=self._sync_in_time, name="spool", daemon=True)
        self._thread.start()

    def append(self, response: Response) -> None:
        """Write one response.

        Raises:
            LakeError: The disk is full or failing, or the writer is sealed. The file then ends
                before this response; with a full disk, the next ``append`` may succeed.
        """
        record = _record(self.evaluation_id, response)
        with self._lock:
            if self._sealed.is_set():
                raise LakeError("the spool file is sealed", str(self.path))
            self._raise_failure()
            self._unsynced = True
            try:
                _write_whole(self._descriptor, record)
            except OSError as error:
                self._cut()
                raise self._error(error) from error
            self._size += len(record)

    def seal(self) -> None:
        """Bring everything to disk and let go of the file; a second call does nothing.

        Raises:
            LakeError: The disk refused some of it.
        """
        with self._lock:
            if self._sealed.is_set():
                return
            self._sealed.set()
        self._thread.join()
        self._sync()
        os.close(self._descriptor)
        self._raise_failure()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.seal()

    def _cut(self) -> None:
        """Take away what a failed write left of its record."""
        try:
            os.ftruncate(self._descriptor, self._size)
        except OSError as error:
            self._failure = error

    def _sync_in_time(self) -> None:
        while not self._sealed.wait(_SYNC_S):
            self._sync()

    def _sync(self) -> None:
        if self._unsynced:
            self._unsynced = False
            try:
                os.fsync(self._descriptor)
            except OSError as error:
                self._failure = error

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._error(self._failure) from self._failure

    def _error(self, error: OSError) -> LakeError:
        return LakeError(
            f"can't write responses to disk ({error.strerror})",
            str(self.path),
            "free space or mend the disk, then run the same command again",
        )


class Spool:
    """The spool files under one folder, on a disk that all workers see."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def writer(self, evaluation_id: str) -> SpoolWriter:
        """Return the writer of a new file.

        Raises:
            LakeError: The file can't be created.
        """
        return SpoolWriter(self.folder, evaluation_id)

    def read(self, evaluation_id: str) -> Iterator[Response]:
        """Yield every whole response once, of closed and live files; the first file's counts.

        A move takes files away after the lake has them: who wants all responses reads the spool
        first and the lake second.
        """
        seen: set[ResponseKey] = set()
        for path in _files(evaluation_folder(self.folder, evaluation_id)):
            try:
                file = path.open("rb")
            except FileNotFoundError:
                continue
            with file:
                for response in _read(file, evaluation_id):
                    if (response.request_id, response.repeat) not in seen:
                        seen.add((response.request_id, response.repeat))
                        yield response

    def stored_keys(self, evaluation_id: str) -> frozenset[ResponseKey]:
        """Return the keys of what ``read`` yields."""
        return frozenset((each.request_id, each.repeat) for each in self.read(evaluation_id))

    def live_writers(self, evaluation_id: str) -> int:
        """Return how many files of the evaluation are still being written."""
        place = evaluation_folder(self.folder, evaluation_id)
        with _steady(place), ExitStack() as stack:
            return _claim(place, stack)[1]

    def move_to_lake(self, lake: Lake, evaluation_id: str) -> MoveReport:
        """Move all closed files of an evaluation into the lake in one transaction.

        Files go only after the commit, so a kill at any point is harmless. A response that the
        lake has stays as it is there; of two files the earlier one's counts.

        Raises:
            LakeError: The lake or the disk failed; the spool is as it was.
        """
        responses: list[Response] = []
        damage: list[SpoolDamage] = []
        place = evaluation_folder(self.folder, evaluation_id)
        with ExitStack() as stack:
            with _steady(place):
                closed, live = _claim(place, stack)
            for path, file in closed:
                damage += _collect(path, file, evaluation_id, responses)
            moved = put_responses(lake, evaluation_id, responses)
            for path, _ in closed:
                _put_away(path, {each.kind for each in damage if each.path == str(path)})
        return MoveReport(
            moved=moved,
            already_stored=len(responses) - moved,
            live_files=live,
            damage=tuple(damage),
        )


@contextmanager
def evaluation_lock(
    folder: Path, evaluation_id: str, on_wait: Callable[[str], None] | None = None
) -> Iterator[None]:
    """Hold the right to run an evaluation, one process at a time.

    Waits for the process that has it, then for spool writers of the evaluation that outlived
    theirs.

    Args:
        folder: The spool's folder.
        evaluation_id: The evaluation.
        on_wait: Called about once a second with what is waited for; may raise to give up.
    """
    spool = Spool(folder)
    with file_lock(evaluation_folder(folder, evaluation_id) / "run.lock", on_wait=on_wait):
        said = time.monotonic() - _SAY_S
        while count := spool.live_writers(evaluation_id):
            if on_wait is not None and time.monotonic() - said >= _SAY_S:
                on_wait(f"{count} workers of an earlier process that still write")
                said = time.monotonic()
            time.sleep(_POLL_S)
        yield


def evaluation_folder(folder: Path, evaluation_id: str) -> Path:
    """Return where an evaluation's spool files are.

    Raises:
        ValueError: The id is no name of one folder.
    """
    if not _EVALUATION_ID.fullmatch(evaluation_id):
        raise ValueError(f"not an evaluation id: {evaluation_id!r}")
    return folder / evaluation_id


def _steady(place: Path) -> AbstractContextManager[None]:
    """Return a context in which no file of the folder is created or claimed by others."""
    return file_lock(place / "files.lock")


def _claim(place: Path, stack: ExitStack) -> tuple[list[tuple[Path, BinaryIO]], int]:
    """Return the closed files, locked and open until ``stack`` ends, and how many live."""
    closed: list[tuple[Path, BinaryIO]] = []
    live = 0
    for path in _files(place):
        try:
            file = stack.enter_context(path.open("rb"))
        except FileNotFoundError:
            continue
        if try_lock(file.fileno()):
            closed.append((path, file))
        else:
            live += 1
    return closed, live


def _create(path: Path) -> int:
    """Return the descriptor of a new, locked file with its header on disk."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC)
    except OSError as error:
        raise LakeError(f"can't create a spool file ({error.strerror})", str(path)) from error
    try:
        try_lock(descriptor)
        _write_whole(descriptor, _HEADER)
        os.fsync(descriptor)
        sync_path(path.parent)
    except OSError as error:
        os.close(descriptor)
        raise LakeError(f"can't write a spool file ({error.strerror})", str(path)) from error
    return descriptor


def _write_whole(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _record(evaluation_id: str, response: Response) -> bytes:
    content = {name: getattr(response, name) for name in _FIELDS}
    content["evaluation_id"] = evaluation_id
    found = response.log_likelihoods
    content["log_likelihoods"] = None if found is None else [asdict(one) for one in found]
    payload = canonical_json(content).encode("utf-8", "surrogatepass")
    length = struct.pack("<I", len(payload))
    return length + struct.pack("<II", zlib.crc32(length), zlib.crc32(payload)) + payload


def _files(place: Path) -> list[Path]:
    return sorted(place.glob("*.spool"))


def _read(
    file: BinaryIO, evaluation_id: str
) -> Generator[Response, None, list[tuple[DamageKind, int, int]]]:
    """Yield a file's whole responses; return what was unreadable: kind, offset and bytes."""
    size = os.fstat(file.fileno()).st_size
    header = file.read(len(_HEADER))
    if header != _HEADER:
        return [(_header_damage(header), 0, size)]
    damage: list[tuple[DamageKind, int, int]] = []
    offset = len(_HEADER)
    while offset < size:
        prefix = file.read(_PREFIX.size)
        if len(prefix) < _PREFIX.size:
            return [*damage, (DamageKind.TORN, offset, size - offset)]
        length, length_sum, payload_sum = _PREFIX.unpack(prefix)
        if zlib.crc32(prefix[:4]) != length_sum:
            return [*damage, (DamageKind.ALTERED, offset, size - offset)]
        payload = file.read(length)
        if len(payload) < length:
            return [*damage, (DamageKind.TORN, offset, size - offset)]
        response = _response(payload, payload_sum, evaluation_id)
        if response is None:
            damage.append((DamageKind.ALTERED, offset, _PREFIX.size + length))
        else:
            yield response
        offset += _PREFIX.size + length
    return damage


def _header_damage(header: bytes) -> DamageKind:
    if _HEADER.startswith(header):
        return DamageKind.TORN
    return DamageKind.UNKNOWN_VERSION if header.startswith(_MAGIC) else DamageKind.ALTERED


def _response(payload: bytes, checksum: int, evaluation_id: str) -> Response | None:
    """Return the response of a record, or None where its bytes are not what was written."""
    if zlib.crc32(payload) != checksum:
        return None
    content = json.loads(payload.decode("utf-8", "surrogatepass"))
    if content.pop("evaluation_id") != evaluation_id:
        return None
    content["token_ids"] = tuple(content["token_ids"])
    content["finish_reason"] = FinishReason(content["finish_reason"])
    found = content.get("log_likelihoods")
    if found is not None:
        content["log_likelihoods"] = tuple(LogLikelihood(**one) for one in found)
    return Response(**content)


def _collect(
    path: Path, file: BinaryIO, evaluation_id: str, responses: list[Response]
) -> list[SpoolDamage]:
    """Add a file's whole responses to ``responses`` and return what was unreadable."""
    records = _read(file, evaluation_id)
    while True:
        try:
            responses.append(next(records))
        except StopIteration as end:
            return [
                SpoolDamage(path=str(path), kind=kind, offset=offset, lost_bytes=lost)
                for kind, offset, lost in end.value
            ]


def _put_away(path: Path, damage: set[DamageKind]) -> None:
    """Remove a moved file; keep what a person may want to look at."""
    try:
        if DamageKind.UNKNOWN_VERSION in damage:
            return
        if DamageKind.ALTERED in damage:
            path.rename(path.with_suffix(".damaged"))
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise LakeError(f"can't be removed ({error.strerror})", str(path)) from error
