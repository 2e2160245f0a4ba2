"""What Dagster loads: light, complete, and blocking where it should."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

HEAVY = ("torch", "vllm", "ray", "transformers", "lm_eval", "datasets", "streamlit", "trl")

LOAD = """
import json, sys
from pipelines.orchestration.definitions import definitions as d
repository = d.get_repository_def()
print(json.dumps({
    "heavy": sorted(set(sys.argv[1:]) & set(sys.modules)),
    "assets": sorted(key.to_user_string() for key in repository.asset_graph.get_all_asset_keys()),
    "checks": sorted(key.name for key in repository.asset_graph.asset_check_keys),
    "blocking": sorted(
        spec.name
        for checks in d.asset_checks
        for spec in checks.check_specs
        if spec.blocking
    ),
    "sensors": [sensor.name for sensor in repository.sensor_defs],
    "schedules": [schedule.cron_schedule for schedule in repository.schedule_defs],
}))
"""


def test_definitions_load_without_heavy_libraries_and_hold_the_chain(tmp_path: Path) -> None:
    (tmp_path / "pawl.yaml").write_text("services: {poll_s: 7}\n")
    told = subprocess.run(
        [sys.executable, "-c", LOAD, *HEAVY],
        env={**os.environ, "PAWL_PROJECT": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(told.stdout)
    assert found["heavy"] == []
    chain = ["checkpoint", "comparison", "decision", "promotion", "responses", "scores"]
    assert set(chain) < set(found["assets"])
    assert found["blocking"] == ["all_answered", "all_scored"]
    assert found["sensors"] == ["checkpoints"]
    assert found["schedules"] == ["0 3 * * *"]
    assert found["checks"] == ["all_answered", "all_scored", "gate", "ledger_is_whole"]
