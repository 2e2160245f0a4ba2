"""Lakes on both catalogues. Postgres comes from the server programs of this machine, if any."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from postgres_server import PostgresServer

from storage.connection import Lake, LakeConfig, open_lake
from storage.store import LakeStore

_NUMBERS = count()
_REPOSITORY = Path(__file__).parents[2]
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(scope="session")
def made_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an empty lake, to be copied: creating one takes a second."""
    folder = tmp_path_factory.mktemp("made")
    with open_lake(sqlite_config(folder)):
        pass
    return folder


@pytest.fixture(scope="session")
def made_postgres(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    with open_lake(LakeConfig(catalog=postgres.create("made"), data_path=folder)):
        pass
    return folder


def sqlite_config(folder: Path) -> LakeConfig:
    return LakeConfig(catalog=str(folder / "lake.sqlite"), data_path=folder / "data")


@pytest.fixture(params=["sqlite", "postgres"])
def config(request: pytest.FixtureRequest, tmp_path: Path) -> LakeConfig:
    """Return an empty lake of the test's own, on each catalogue."""
    folder = tmp_path / "lake"
    if request.param == "sqlite":
        shutil.copytree(request.getfixturevalue("made_sqlite"), folder)
        return sqlite_config(folder)
    shutil.copytree(request.getfixturevalue("made_postgres"), folder / "data")
    server = request.getfixturevalue("postgres")
    catalog = server.create(f"lake{next(_NUMBERS)}", "made")
    return LakeConfig(catalog=catalog, data_path=folder / "data")


@pytest.fixture(params=["sqlite", "postgres"])
def unmade(request: pytest.FixtureRequest, tmp_path: Path) -> LakeConfig:
    """Return where a lake may be made, on each catalogue."""
    if request.param == "sqlite":
        return sqlite_config(tmp_path / "lake")
    catalog = request.getfixturevalue("postgres").create(f"lake{next(_NUMBERS)}")
    return LakeConfig(catalog=catalog, data_path=tmp_path / "lake" / "data")


@pytest.fixture
def sqlite_lake(made_sqlite: Path, tmp_path: Path) -> LakeConfig:
    """Return an empty lake on SQLite, where the catalogue makes no difference."""
    shutil.copytree(made_sqlite, tmp_path / "lake")
    return sqlite_config(tmp_path / "lake")


@pytest.fixture
def lake(config: LakeConfig) -> Iterator[Lake]:
    with open_lake(config) as opened:
        yield opened


@pytest.fixture
def store(lake: Lake, tmp_path: Path) -> LakeStore:
    return LakeStore(lake, tmp_path)


@pytest.fixture
def start() -> Iterator[Start]:
    """Return a function that starts a worker of ``lake_workers.py``; none outlives the test."""
    started: list[subprocess.Popen[str]] = []

    def run(name: str, config: LakeConfig, folder: Path, *arguments: object) -> object:
        process = subprocess.Popen(
            [
                sys.executable,
                Path(__file__).with_name("lake_workers.py"),
                name,
                config.catalog,
                config.data_path,
                folder,
                *map(str, arguments),
            ],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(_REPOSITORY)},
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()
