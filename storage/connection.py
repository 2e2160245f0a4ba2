"""The lake's connection: opening, reading, and writing in transactions that are tried again.

The lake is DuckLake: facts in Parquet under ``data_path``, a catalogue in SQLite (one machine)
or Postgres (a team). Reads are whole and end their transaction before they return. Writes go
through ``transaction``: DuckLake has no unique constraints, so whoever inserts what is not yet
there first calls ``Transaction.guard``, which makes two such writes conflict instead of both
succeeding; the loser runs again and sees the winner's rows.
"""

from __future__ import annotations

import importlib.util
import os
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from evals.errors import LakeError
from storage.locks import file_lock
from storage.migrate import apply_pending, check_version, refuse_newer
from storage.tables import Table

T = TypeVar("T")
Row = tuple[Any, ...]

_BUSY_MS = 5000
_RETRY_S = 60.0
_TURN_S = 600.0
_LONGEST_PAUSE_S = 2.0
_CONFLICT = re.compile(
    "database is locked|conflict|already exists|duplicate key|could not serialize|deadlock|"
    "tuple concurrently updated|database schema has changed",
    re.IGNORECASE,
)
_KNOWN = (
    (_CONFLICT, f"{_RETRY_S:.0f} s of conflicts", "try again when fewer processes write"),
    (re.compile("not a database|malformed|disk image"), "the catalogue is damaged", "restore it"),
    (re.compile("DuckLake version|catalog version"), "the format is another", "update Pawl"),
    (re.compile("No space left"), "the disk is full", "free space, then run the same again"),
    (re.compile("onnect"), "the catalogue can't be reached", "see that its server runs"),
)
"""What DuckDB says, what it means, and what to do about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeConfig:
    """Where a lake is."""

    catalog: str
    """Path of a SQLite file on a local disk, or ``postgres:`` and a libpq connection string."""
    data_path: Path
    """Folder of the Parquet files."""

    @property
    def shared(self) -> bool:
        """Return whether the catalogue is Postgres, which several machines may use."""
        return self.catalog.startswith("postgres:")

    @property
    def name(self) -> str:
        """Return the catalogue's place for messages, without a password."""
        return _without_password(self.catalog)


IdleKey = tuple[LakeConfig, bool, int, int, int]
"""Of an idle connection: configuration, read-only, process, and the catalogue's file."""

_idle: dict[IdleKey, duckdb.DuckDBPyConnection] = {}
"""Connections for the next ``open_lake``: to load the extensions takes longer than most reads."""

_idle_lock = threading.Lock()


class Transaction:
    """What a function may do inside ``transaction``."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._cursor = cursor

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        """Return a query's rows."""
        return self._cursor.execute(sql, list(parameters)).fetchall()

    def change(self, sql: str, parameters: Sequence[object] = ()) -> int:
        """Return how many rows an INSERT, UPDATE or DELETE touched."""
        return int(self.rows(sql, parameters)[0][0])

    def run_script(self, sql: str) -> None:
        """Run several statements."""
        self._cursor.execute(sql)

    def guard(self, table: Table) -> None:
        """Make this transaction conflict with every other one that guards the same table."""
        self.change("UPDATE lake.guards SET writes = writes + 1 WHERE name = ?", [table.name])

    def insert_missing(self, table: Table, rows: pa.Table) -> int:
        """Insert the rows whose key is not stored; what is stored stays as it is.

        Args:
            table: Where to; all ``rows`` agree on its scope columns.
            rows: Rows of ``table.schema`` with distinct keys.

        Returns:
            How many were inserted.
        """
        if rows.num_rows == 0:
            return 0
        self.guard(table)
        scope = [rows.column(name)[0].as_py() for name in table.scope]
        where = " AND ".join(f"{name} = ?" for name in table.scope) or "true"
        keys = ", ".join(table.key)
        self._cursor.register("incoming", rows)
        try:
            inserted = self.change(
                f"INSERT INTO lake.{table.name} BY NAME SELECT * FROM incoming "
                f"ANTI JOIN (SELECT {keys} FROM lake.{table.name} WHERE {where}) USING ({keys}) "
                f"ORDER BY {keys}",
                scope,
            )
        finally:
            self._cursor.unregister("incoming")
        if inserted:
            self._sync_files(table, where, scope)
        return inserted

    def _sync_files(self, table: Table, where: str, scope: list[object]) -> None:
        """Bring this transaction's Parquet files to disk; DuckDB leaves that to the system."""
        written = self.rows(
            f"SELECT DISTINCT filename FROM lake.{table.name} "
            f"WHERE snapshot_id IS NULL AND filename IS NOT NULL AND {where}",
            scope,
        )
        for (name,) in written:
            path = Path(name)
            if path.is_file():
                sync_path(path)
                sync_path(path.parent)


class Lake:
    """An open lake; ``open_lake`` makes one. Its methods may be called from several threads."""

    def __init__(self, config: LakeConfig, connection: duckdb.DuckDBPyConnection) -> None:
        self.config = config
        self._connection = connection

    def close(self) -> None:
        """Let go of the catalogue."""
        self._connection.close()

    def snapshot(self) -> int:
        """Return the id of the lake's snapshot now."""
        return int(self.rows("SELECT id FROM lake.current_snapshot()")[0][0])

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        """Return a query's rows; meant for few."""
        return self._attempt(lambda cursor: cursor.execute(sql, list(parameters)).fetchall())

    def table(self, sql: str, parameters: Sequence[object] = ()) -> pa.Table:
        """Return a query's rows as an Arrow table; meant for many."""
        return self._attempt(lambda cursor: cursor.execute(sql, list(parameters)).to_arrow_table())

    def write(self, fn: Callable[[Transaction], T]) -> T:
        """Return what ``fn`` returns, its writes committed; see ``transaction``."""

        def run(cursor: duckdb.DuckDBPyConnection) -> T:
            cursor.execute("BEGIN")
            try:
                result = fn(Transaction(cursor))
                cursor.execute("COMMIT")
            except BaseException:
                with suppress(duckdb.Error):
                    cursor.execute("ROLLBACK")
                raise
            return result

        with self._turn():
            return self._attempt(run)

    def _attempt(self, run: Callable[[duckdb.DuckDBPyConnection], T]) -> T:
        """Return what ``run`` returns, on a cursor of its own, tried again on conflicts."""

        def once() -> T:
            with closing(self._connection.cursor()) as cursor:
                return run(cursor)

        return _retry(once, self.config)

    def _turn(self) -> Any:
        """Return a context in which no other process writes to a SQLite catalogue.

        SQLite refuses whoever commits second of two that overlap: without turns, short writes
        would let a long one start over again and again.
        """
        if self.config.shared:
            return nullcontext()
        return file_lock(Path(f"{self.config.catalog}.write-lock"), timeout_s=_TURN_S)


@contextmanager
def open_lake(config: LakeConfig, *, read_only: bool = False) -> Iterator[Lake]:
    """Open a lake; create it, or bring it to this Pawl's schema, where need be.

    Args:
        config: Where it is.
        read_only: Neither create nor migrate nor write.

    Raises:
        LakeError: It is missing, damaged, or newer than this Pawl, or can't be reached.
    """
    _refuse_lost_catalog(config, read_only=read_only)
    connection = _take_idle(config, read_only=read_only)
    known = connection is not None
    if connection is None:
        connection = _retry(lambda: _connect(config, read_only=read_only), config)
    try:
        lake = Lake(config, connection)
        if known:
            refuse_newer(lake)
        elif read_only:
            check_version(lake)
        else:
            apply_pending(lake)
        yield lake
    except BaseException:
        connection.close()
        raise
    _leave_idle(config, connection, read_only=read_only)


def _take_idle(config: LakeConfig, *, read_only: bool) -> duckdb.DuckDBPyConnection | None:
    """Return a connection that this process has used for this very catalogue before, or None."""
    key = _idle_key(config, read_only=read_only)
    with _idle_lock:
        return None if key is None else _idle.pop(key, None)


def _leave_idle(
    config: LakeConfig, connection: duckdb.DuckDBPyConnection, *, read_only: bool
) -> None:
    """Keep a connection for the next time, one a catalogue; close it where there is one already."""
    key = _idle_key(config, read_only=read_only)
    with _idle_lock:
        if key is not None and key not in _idle:
            _idle[key] = connection
            return
    connection.close()


def _idle_key(config: LakeConfig, *, read_only: bool) -> IdleKey | None:
    """Return what an idle connection is kept by; None for a shared lake, whose server may go."""
    if config.shared:
        return None
    try:
        told = Path(config.catalog).stat()
    except OSError:
        return None
    return config, read_only, os.getpid(), told.st_dev, told.st_ino


def transaction(lake: Lake, fn: Callable[[Transaction], T]) -> T:
    """Return what ``fn`` returns, all its writes committed or none.

    ``fn`` runs again when another process committed something that conflicts, so it must not
    do anything that can't be repeated, nor write to the lake in any other way.

    Raises:
        LakeError: Conflicts went on for a minute, or the lake failed otherwise.
    """
    return lake.write(fn)


def source(table: Table, snapshot: int | None) -> str:
    """Return what stands after FROM to read ``table`` now, or as it was at a snapshot."""
    at = "" if snapshot is None else f" AT (VERSION => {snapshot:d})"
    return f"lake.{table.name}{at}"


def sync_path(path: Path) -> None:
    """Bring a file's content, or a folder's entries, to disk.

    Raises:
        LakeError: The disk refuses.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise LakeError(f"not brought to disk ({error.strerror})", str(path)) from error


def _connect(config: LakeConfig, *, read_only: bool) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(
        ":memory:",
        config={"autoinstall_known_extensions": False, "autoload_known_extensions": False},
    )
    try:
        for name in ("ducklake", "postgres_scanner" if config.shared else "sqlite_scanner"):
            connection.execute(f"LOAD {_quoted(str(_extension(name)))}")
        connection.execute(_attach(config, read_only=read_only))
    except BaseException:
        connection.close()
        raise
    return connection


def _attach(config: LakeConfig, *, read_only: bool) -> str:
    kind = "" if config.shared else "sqlite:"
    options = [
        f"DATA_PATH {_quoted(str(config.data_path.absolute()))}",
        "OVERRIDE_DATA_PATH true",  # so that a project's folder can be moved
    ]
    if not config.shared:
        options += ["META_JOURNAL_MODE 'WAL'", f"META_BUSY_TIMEOUT {_BUSY_MS}"]
    if read_only:
        options.append("READ_ONLY")
    return f"ATTACH {_quoted(f'ducklake:{kind}{config.catalog}')} AS lake ({', '.join(options)})"


def _extension(name: str) -> Path:
    """Return the extension's file in its wheel."""
    spec = importlib.util.find_spec(f"duckdb_extension_{name}")
    for place in (spec and spec.submodule_search_locations) or ():
        for path in Path(place).glob(f"extensions/v{duckdb.__version__}/{name}.duckdb_extension"):
            return path
    raise LakeError(
        f"DuckDB {duckdb.__version__} lacks its extension {name}",
        fix=f"pip install duckdb-extension-{name.replace('_', '-')}=={duckdb.__version__}",
    )


def _refuse_lost_catalog(config: LakeConfig, *, read_only: bool) -> None:
    """Raise where a new catalogue would hide that the old one is gone."""
    catalog = Path(config.catalog)
    if config.shared or (catalog.exists() and catalog.stat().st_size > 0):
        return
    if read_only:
        raise LakeError("there is no lake here", config.name, "any command that writes makes one")
    if next(config.data_path.rglob("*.parquet"), None) is not None:
        raise LakeError(
            f"the catalogue is gone or empty, while {config.data_path} holds its data",
            config.name,
            "restore the catalogue, or move the data away to start a new lake",
        )
    try:
        catalog.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LakeError(f"can't make its folder ({error.strerror})", config.name) from error


def _retry(once: Callable[[], T], config: LakeConfig) -> T:
    """Return what ``once`` returns, tried again on conflicts for a minute."""
    deadline = time.monotonic() + _RETRY_S
    pause_s = 0.02
    while True:
        try:
            return once()
        except RuntimeError as error:
            if "interrupted" not in str(error).lower():
                raise
            raise KeyboardInterrupt from error
        except duckdb.Error as error:
            if not _CONFLICT.search(str(error)) or time.monotonic() > deadline:
                raise _lake_error(error, config) from error
        time.sleep(random.uniform(0.5, 1.0) * pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _lake_error(error: duckdb.Error, config: LakeConfig) -> LakeError:
    text = _without_password(" ".join(str(error).split()))
    for pattern, what, fix in _KNOWN:
        if pattern.search(text):
            return LakeError(f"{what} ({text})", config.name, fix)
    return LakeError(text, config.name)


def _without_password(text: str) -> str:
    text = re.sub(r"(?i)(password\s*=\s*)('[^']*'|\S+)", r"\1***", text)
    return re.sub(r"(://[^:/@\s]*):[^@\s]*@", r"\1:***@", text)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
