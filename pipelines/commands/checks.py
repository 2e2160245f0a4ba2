"""``pawl doctor``: what works on this machine, and how to mend the rest."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from evals.adapters.engines import ENGINES
from evals.errors import PawlError
from pipelines.console import AsJson, ProjectFolder, print_json, print_table
from storage.project import Project, find_project

NETWORK_DISKS = ("nfs", "nfs4", "lustre", "cifs", "smb3", "fuse.sshfs", "ceph", "gpfs")
BROKEN = 3
LOW_DISK_GIB = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at."""

    name: str
    works: bool
    detail: str
    fix: str = ""


def doctor(json: AsJson = False, project: ProjectFolder = None) -> int:
    """Check engine, Ray, sandbox, lake, data and disks."""
    where = find_project(project)
    checks = [
        attempt("engine", lambda: check_engine(where)),
        attempt("ray", check_ray),
        attempt("sandbox", check_isolation),
        attempt("lake", lambda: check_lake(where)),
        attempt("data", lambda: check_data(where)),
        attempt("disk", lambda: check_disk(where)),
    ]
    if json:
        print_json({"checks": [asdict(check) for check in checks]})
    else:
        print_table(
            ["part", "works", "what", "how to mend it"],
            [[c.name, "yes" if c.works else "no", c.detail, c.fix or "–"] for c in checks],
        )
    return 0 if all(check.works for check in checks) else BROKEN


def attempt(name: str, look: Callable[[], str]) -> Check:
    """Return what a look found, as a check that works or does not."""
    try:
        return Check(name=name, works=True, detail=look())
    except PawlError as bad:
        where = f"{bad.where}: " if bad.where else ""
        return Check(name=name, works=False, detail=f"{where}{bad.what}", fix=bad.fix)


def check_engine(project: Project) -> str:
    """Return which engine the project has chosen, and where it would run."""
    return ENGINES[project.file.engine.name].describe()


def check_ray() -> str:
    """Return which Ray is installed."""
    return f"ray {version('ray')}"


def check_isolation() -> str:
    """Return that programs can be isolated here."""
    from evals.sandbox import check_sandbox

    check_sandbox()
    return "bubblewrap isolates programs"


def check_lake(project: Project) -> str:
    """Return where the lake is, after opening it."""
    if not project.lake.shared:
        refuse_network_disk(Path(project.lake.catalog))
    if not project.has_lake:
        return f"none yet; the first evaluation makes {project.lake.name}"
    with project.open_store() as store:
        return f"{project.lake.name} opens, snapshot {store.snapshot()}"


def refuse_network_disk(catalog: Path) -> None:
    """Raise where a SQLite catalogue would lie on a network file system."""
    folder = next(p for p in (catalog.parent, *catalog.parents) if p.exists())
    told = subprocess.run(
        ["stat", "-f", "-c", "%T", str(folder)], capture_output=True, text=True, check=False
    )
    kind = told.stdout.strip()
    if kind in NETWORK_DISKS:
        raise PawlError(
            f"a SQLite catalogue on {kind} is not safe",
            str(catalog),
            "use a local disk, or lake.catalog: postgres:…",
        )


def check_data(project: Project) -> str:
    """Return where data sets come from."""
    from evals.adapters.lm_eval_tasks import Mirror

    if project.mirror is None:
        offline = os.environ.get("HF_HUB_OFFLINE") == "1"
        return "data sets from the hub" + (", which is switched off (HF_HUB_OFFLINE)" * offline)
    Mirror(project.mirror)
    return f"data sets from {project.mirror}"


def check_disk(project: Project) -> str:
    """Return how much room the project's disk has."""
    free = shutil.disk_usage(project.folder).free / 2**30
    if free < LOW_DISK_GIB:
        raise PawlError(f"{free:.1f} GiB free", str(project.folder), "free some space")
    return f"{free:.0f} GiB free"
