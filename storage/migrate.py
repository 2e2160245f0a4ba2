"""The lake's schema over time: numbered SQL files, applied forward only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from evals.errors import LakeError
from storage.clock import utc_now

if TYPE_CHECKING:
    from storage.connection import Lake, Transaction

_FOLDER = Path(__file__).parent / "migrations"
_RECORDED = "SELECT coalesce(max(version), 0) FROM lake.migrations"


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One step of the schema."""

    version: int
    """From 1, without gaps."""
    name: str
    sql: str


def load_migrations() -> tuple[Migration, ...]:
    """Return this Pawl's migrations, oldest first."""
    return tuple(
        Migration(version=int(path.stem[:4]), name=path.stem[5:], sql=path.read_text("utf-8"))
        for path in sorted(_FOLDER.glob("[0-9][0-9][0-9][0-9]_*.sql"))
    )


def apply_pending(lake: Lake) -> None:
    """Bring the lake to this Pawl's schema; processes that do so at once do it once.

    Raises:
        LakeError: The lake's schema is newer than this Pawl.
    """
    migrations = load_migrations()
    version = _version(lake)
    _refuse_newer(lake, version, migrations)
    for migration in migrations[version:]:
        lake.write(partial(_apply, migration))


def check_version(lake: Lake) -> None:
    """Hold that the lake has this Pawl's schema, without writing.

    Raises:
        LakeError: It is newer, or older and never opened for writing since.
    """
    migrations = load_migrations()
    version = _version(lake)
    _refuse_newer(lake, version, migrations)
    if version < len(migrations):
        raise LakeError(
            f"the lake's schema is {version}, this Pawl's is {len(migrations)}",
            lake.config.name,
            "run any command that writes (pawl status) once",
        )


def refuse_newer(lake: Lake) -> None:
    """Hold that a lake that had this Pawl's schema was not brought to a newer one since.

    Raises:
        LakeError: It was.
    """
    _refuse_newer(lake, int(lake.rows(_RECORDED)[0][0]), load_migrations())


def _apply(migration: Migration, tx: Transaction) -> None:
    recorded = tx.rows(_RECORDED)[0][0] if _is_made(tx) else 0
    if recorded >= migration.version:
        return
    tx.run_script(migration.sql)
    tx.change(
        "INSERT INTO lake.migrations VALUES (?, ?, ?)",
        [migration.version, migration.name, utc_now()],
    )


def _version(lake: Lake) -> int:
    return int(lake.rows(_RECORDED)[0][0]) if _is_made(lake) else 0


def _is_made(reader: Lake | Transaction) -> bool:
    """Return whether any migration was applied."""
    return bool(
        reader.rows(
            "SELECT 1 FROM duckdb_tables() "
            "WHERE database_name = 'lake' AND table_name = 'migrations'"
        )
    )


def _refuse_newer(lake: Lake, version: int, migrations: Sequence[Migration]) -> None:
    if version > len(migrations):
        raise LakeError(
            f"the lake's schema is {version}, this Pawl knows {len(migrations)}",
            lake.config.name,
            "update Pawl to the version that wrote it",
        )
