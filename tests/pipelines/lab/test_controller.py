"""A run as a whole: what it writes, and that it writes the same again."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from evals.checkpoint import digest_checkpoint, inspect_checkpoint, name_of
from evals.errors import InputError
from pipelines.lab.controller import run_lab
from pipelines.lab.model import WARM, copy_weights, load_model, write_checkpoint
from pipelines.lab.rollout import Weights
from pipelines.lab.run_folder import RunFolder
from pipelines.lab.settings import Fault, Settings

SHORT = Settings(seed=3, steps=3, every=2, questions=(2, 2, 2, 2, 2), samples=4)

SERIES = {
    "reward/mean", "reward/std", "reward/reasoning", "reward/code", "reward/multilingual",
    "reward/long_context", "reward/safety", "kl/reference", "entropy", "importance_ratio/mean",
    "importance_ratio/p99", "importance_ratio/max", "logprob_difference/mean",
    "logprob_difference/max", "staleness/mean", "staleness/max", "response_length/mean",
    "response_length/max", "truncated_share", "grad_norm", "learning_rate", "loss",
    "zero_variance_share", "time/step_s", "time/generate_s", "time/train_s", "time/weight_sync_s",
}  # fmt: skip


@pytest.fixture(scope="module")
def short_run(sandbox: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lab") / "short"
    run_lab(folder, SHORT, owner="a test")
    return folder


def digests(run: Path) -> dict[str, str]:
    return {
        folder.name: digest_checkpoint(inspect_checkpoint(folder))
        for folder in sorted((run / "checkpoints").iterdir())
    }


def metrics(run: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_the_folder_of_a_run(short_run: Path) -> None:
    assert sorted(path.name for path in short_run.iterdir()) == [
        "checkpoints", "metrics.jsonl", "run.json", "tensorboard",
    ]  # fmt: skip
    told = json.loads((short_run / "run.json").read_text())
    assert {key: told[key] for key in ("framework", "model_line", "owner", "tags")} == {
        "framework": "pawl-lab",
        "model_line": "pawl-lab-1m",
        "owner": "a test",
        "tags": ["lab"],
    }
    assert told["config"]["seed"] == SHORT.seed
    assert sorted(digests(short_run)) == ["step_0", "step_2", "step_3"]


def test_step_0_is_the_warm_up(short_run: Path) -> None:
    assert digests(short_run)["step_0"] == digest_checkpoint(inspect_checkpoint(WARM))
    assert len(set(digests(short_run).values())) == 3


def test_every_series_is_there_and_finite(short_run: Path) -> None:
    rows = metrics(short_run)
    assert [row.pop("step") for row in rows] == [1, 2, 3]
    assert all(row.pop("time") > 1e9 for row in rows)
    for row in rows:
        assert set(row) == SERIES
        assert all(math.isfinite(value) for value in row.values())


def test_staleness_is_the_lag_once_there_are_that_many_versions(short_run: Path) -> None:
    assert [row["staleness/mean"] for row in metrics(short_run)] == [0, 1, 2]
    ratios = [row["importance_ratio/max"] for row in metrics(short_run)]
    assert ratios[0] == pytest.approx(1.0, abs=1e-2), "fresh answers: only the arithmetic differs"
    assert ratios[2] > 1.01


def test_events_say_the_same(short_run: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(short_run / "tensorboard"))
    events.Reload()
    assert set(events.Tags()["scalars"]) == SERIES
    for name in SERIES:
        assert [(e.step, e.value) for e in events.Scalars(name)] == [
            (row["step"], pytest.approx(row[name])) for row in metrics(short_run)
        ]


def test_the_same_seed_gives_the_same_bytes(short_run: Path, tmp_path: Path) -> None:
    run_lab(tmp_path / "again", SHORT, owner="somebody else")
    assert digests(tmp_path / "again") == digests(short_run)


def test_another_seed_gives_others(short_run: Path, tmp_path: Path) -> None:
    run_lab(tmp_path / "other", replace(SHORT, seed=4), owner="a test")
    ours, others = digests(short_run), digests(tmp_path / "other")
    assert ours["step_0"] == others["step_0"]
    assert ours["step_2"] != others["step_2"]


def test_a_faulty_run_is_the_sound_one_up_to_its_step(short_run: Path, tmp_path: Path) -> None:
    faulty = replace(SHORT, fault=Fault.FORGET, from_step=2)
    run_lab(tmp_path / "faulty", faulty, owner="a test")
    sound, forgetful = digests(short_run), digests(tmp_path / "faulty")
    assert forgetful["step_2"] == sound["step_2"]
    assert forgetful["step_3"] != sound["step_3"]
    assert json.loads((tmp_path / "faulty" / "run.json").read_text())["tags"] == ["lab", "forget"]


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="something here already"):
        run_lab(tmp_path, SHORT, owner="a test")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_checkpoint_appears_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def fail(*_arguments: object, **_options: object) -> None:
        seen.append([path.name for path in (tmp_path / "run").iterdir()])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("safetensors.torch.save_file", fail)
    with pytest.raises(OSError, match="No space"):
        write_checkpoint(tmp_path / "run" / "step_1", copy_weights(load_model(WARM)))
    assert seen == [["tmp_step_1"]]
    assert not (tmp_path / "run" / "step_1").exists()


def test_numbers_that_are_none_are_named_and_harm_nothing(tmp_path: Path) -> None:
    written = RunFolder(tmp_path / "run", SHORT, "a test")
    written.log(1, {"loss": math.nan, "grad_norm": math.inf, "entropy": -math.inf, "kl": 0.5})
    written.close()
    (row,) = metrics(tmp_path / "run")
    assert {name: row[name] for name in ("loss", "grad_norm", "entropy", "kl")} == {
        "loss": "NaN",
        "grad_norm": "Infinity",
        "entropy": "-Infinity",
        "kl": 0.5,
    }


def test_a_checkpoint_is_called_by_its_step(short_run: Path) -> None:
    assert name_of(short_run / "checkpoints" / "step_2")[1] == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": 0},
        {"every": 0},
        {"seed": -1},
        {"fault": Fault.FORGET},
        {"from_step": 3},
        {"fault": Fault.FORGET, "from_step": 120},
    ],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        Settings(**wrong)  # type: ignore[arg-type]


def test_weights_are_published_apart_from_those_that_are_trained() -> None:
    model = load_model(WARM)
    weights = Weights(version=0, tensors=copy_weights(model))
    name, tensor = next(iter(weights.tensors.items()))
    tensor.add_(1.0)
    assert not (dict(model.named_parameters())[name] == tensor).all()
