from __future__ import annotations

import math
from pathlib import Path

from pipelines.telemetry.trainer_state import has_state, read_newest_state, read_state

HISTORY = """\
{
  "best_metric": null,
  "epoch": 0.5,
  "global_step": %d,
  "log_history": [
    {"epoch": 0.1, "grad_norm": 0.5, "learning_rate": 1e-06, "loss": NaN, "reward": %s, "step": 1},
    {"epoch": 0.1, "eval_loss": 1.5, "step": 1},
    {"epoch": 0.2, "grad_norm": Infinity, "kl": null, "loss": 0.25, "reward": 0.5, "step": 2}
  ],
  "max_steps": 10
}
"""


def write(folder: Path, step: int, reward: str = "0.125") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "trainer_state.json"
    path.write_text(HISTORY % (step, reward))
    return path


def test_a_history_with_bare_nan_is_read(tmp_path: Path) -> None:
    found = read_state(write(tmp_path, 2))
    assert found.problems == ()
    assert [row.step for row in found.rows] == [1, 1, 2]
    assert math.isnan(found.rows[0].values["loss"] or 0.0)
    assert found.rows[2].values["grad_norm"] == math.inf
    assert found.rows[2].values["kl"] is None


def test_the_newest_checkpoint_by_number_has_the_history(tmp_path: Path) -> None:
    for step in (9, 10, 100):
        write(tmp_path / f"checkpoint-{step}", step, str(step))
    write(tmp_path / "checkpoint-last", 999, "999")
    assert has_state(tmp_path)
    assert read_newest_state(tmp_path).rows[0].values["reward"] == 100.0


def test_the_runs_own_file_counts_as_newer_at_the_same_step(tmp_path: Path) -> None:
    write(tmp_path / "checkpoint-10", 10, "1")
    write(tmp_path, 10, "2")
    assert read_newest_state(tmp_path).rows[0].values["reward"] == 2.0
    write(tmp_path / "checkpoint-20", 20, "3")
    assert read_newest_state(tmp_path).rows[0].values["reward"] == 3.0


def test_a_file_that_is_being_written_leaves_the_one_before(tmp_path: Path) -> None:
    write(tmp_path / "checkpoint-10", 10, "1")
    newest = write(tmp_path / "checkpoint-20", 20, "2")
    newest.write_text(newest.read_text()[:200])
    found = read_newest_state(tmp_path)
    assert found.rows[0].values["reward"] == 1.0
    (problem,) = found.problems
    assert problem.file == str(newest)
    assert "no JSON" in problem.what


def test_bad_entries_cost_themselves_alone(tmp_path: Path) -> None:
    path = tmp_path / "trainer_state.json"
    path.write_text('{"log_history": [{"loss": 1}, 7, {"step": 3, "loss": 2}]}')
    found = read_state(path)
    assert [row.step for row in found.rows] == [3]
    assert [one.what for one in found.problems] == [
        "entry 1 of log_history: it has no step",
        "entry 2 of log_history: it is no JSON object",
    ]


def test_a_file_without_a_history_is_a_problem(tmp_path: Path) -> None:
    for text in ("[]", "{}", '{"log_history": 3}', ""):
        path = tmp_path / "trainer_state.json"
        path.write_text(text)
        assert read_state(path).rows == ()
        assert len(read_state(path).problems) == 1
    assert not has_state(tmp_path / "empty")
    assert read_newest_state(tmp_path / "empty").rows == ()
