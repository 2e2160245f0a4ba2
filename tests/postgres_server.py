"""A Postgres server for tests, from the server programs of this machine."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from pathlib import Path


class PostgresServer:
    """A server of its own, on a socket in a folder of its own."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self.programs = programs
        self.folder = folder
        self._as = None
        if os.geteuid() == 0:
            self._as = (
                "postgres"
                if "postgres" in {each.pw_name for each in pwd.getpwall()}
                else ("nobody")
            )
            shutil.chown(folder, self._as)

    def call(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [self.programs / program, *arguments],
            check=True,
            capture_output=True,
            cwd=self.folder,
            user=self._as,
            extra_groups=None if self._as is None else [],
            env={**os.environ, "HOME": str(self.folder), "PGHOST": str(self.folder)},
        )

    def start(self) -> None:
        self.call("initdb", "-D", "data", "-A", "trust", "-U", "pawl", "-N", "-E", "UTF8")
        options = f"-c listen_addresses= -c unix_socket_directories={self.folder} -c fsync=off"
        self.call("pg_ctl", "-D", "data", "-w", "-l", "log", "-o", options, "start")

    def stop(self) -> None:
        self.call("pg_ctl", "-D", "data", "-m", "immediate", "stop")

    def create(self, name: str, template: str = "template1") -> str:
        self.call("createdb", "-U", "pawl", "-T", template, name)
        return f"postgres:dbname={name} host={self.folder} user=pawl"


def find_postgres() -> Path | None:
    """Return the folder of the server programs."""
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "pg_ctl").exists()), None)
