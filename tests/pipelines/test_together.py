"""Two evaluations, the app and comparisons at once on one lake, on each catalogue."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import ROOT, RunPawl, read_json
from streamlit.testing.v1 import AppTest

from storage.project import find_project

JOB = ROOT / "tests" / "evals" / "run_small_job.py"


def show_overview(folder: str) -> None:
    """Run the app's entry; AppTest takes this function's source, so it imports for itself."""
    from pathlib import Path

    from app.main import run

    run(Path(folder), "overview")


@pytest.fixture(params=["sqlite", "postgres"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    catalog = ".pawl/lake.sqlite"
    if request.param == "postgres":
        catalog = request.getfixturevalue("postgres").create("together")
    (tmp_path / "pawl.yaml").write_text(f"lake: {{catalog: '{catalog}'}}\n")
    return tmp_path


def test_two_evaluations_the_app_and_comparisons_work_on_one_lake(
    project: Path, run_pawl: RunPawl
) -> None:
    with find_project(project).open_store(create=True):
        pass
    jobs = [
        subprocess.Popen(
            [sys.executable, str(JOB), str(project), "0.2", str(step)],
            env=os.environ | {"PYTHONPATH": str(JOB.parent)},
        )
        for step in (1, 2)
    ]
    looks = 0
    while any(job.poll() is None for job in jobs):
        page = AppTest.from_function(show_overview, args=(str(project),), default_timeout=60).run()
        assert not page.exception
        assert not page.error, [one.value for one in page.error]
        done = run_pawl("compare", "r@2", "r@1", "--json", cwd=project)
        assert done.returncode in {0, 3}, done.stderr
        assert "Traceback" not in done.stderr
        looks += 1
    assert [job.returncode for job in jobs] == [0, 0]
    assert looks >= 2
    document = read_json(run_pawl("compare", "r@2", "r@1", "--json", cwd=project))
    (task,) = document["tasks"]
    assert (task["n"], task["value"]) == (60, 0.0)
    page = AppTest.from_function(show_overview, args=(str(project),), default_timeout=60).run()
    assert not page.exception
