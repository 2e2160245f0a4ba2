"""A run of Dagster's is alive while its process holds its lock."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from pipelines.services.dagster_runs import START_S, is_dead

HOLD = """
import sys, time
from pathlib import Path
from pipelines.services.dagster_runs import hold_run_lock
hold_run_lock(Path(sys.argv[1]), "run")
hold_run_lock(Path(sys.argv[1]), "run")
print("held", flush=True)
time.sleep(600)
"""


def test_a_run_is_dead_once_its_process_is_killed(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    assert not is_dead(tmp_path, "run", 0.0)
    holder.kill()
    holder.wait()
    assert is_dead(tmp_path, "run", time.time())


def test_a_run_that_has_just_been_launched_is_not_dead_yet(tmp_path: Path) -> None:
    assert not is_dead(tmp_path, "run", time.time())
    assert is_dead(tmp_path, "run", time.time() - START_S - 1)
