"""A run of TRL's own trainer: recognised by `pawl init`, evaluated and gated by `pawl up`."""

from __future__ import annotations

import subprocess
import sys

import pytest
import yaml
from up_project import POLICY, SUITE, UpProject, pawl_up, wait_until

from pipelines.services.parts import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TRAIN = """
import sys
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer
from evals.tasks.registry import build_task
from pipelines.lab.model import WARM

task = build_task("lab_sums", seed=7, items=32)
items = {item.doc["question"]: item for item in task.items()}

def reward(prompts, completions, **_):
    return [
        task.judge(items[prompt[-1]["content"]], completion[0]["content"]).value or 0.0
        for prompt, completion in zip(prompts, completions)
    ]

GRPOTrainer(
    model=str(WARM),
    reward_funcs=reward,
    train_dataset=Dataset.from_list(
        [{"prompt": [{"role": "user", "content": question}]} for question in items]
    ),
    args=GRPOConfig(
        output_dir=sys.argv[1],
        max_steps=4,
        save_steps=2,
        logging_steps=1,
        per_device_train_batch_size=8,
        num_generations=4,
        max_completion_length=16,
        learning_rate=1e-5,
        use_cpu=True,
        bf16=False,
        report_to=["tensorboard"],
        seed=0,
    ),
).train()
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> UpProject:
    project = UpProject(tmp_path_factory.mktemp("trl"))
    done = subprocess.run(
        [sys.executable, "-c", TRAIN, str(project.folder / "runs" / "grpo")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return project


def test_pawl_init_recognises_it_and_pawl_up_evaluates_and_gates_it(trained: UpProject) -> None:
    told = trained.read("init", "runs/grpo")
    assert told["run"]["layout"] == "trainer"
    (trained.folder / "suite.yaml").write_text(SUITE.format(items=120))
    (trained.folder / "policy.yaml").write_text(POLICY)
    file = trained.folder / "pawl.yaml"
    settings = yaml.safe_load(file.read_text())
    assert [run["folder"] for run in settings["runs"]] == ["runs/grpo"]
    settings["channels"]["production"] = {
        "policy": "policy.yaml",
        "suite": "suite.yaml",
        "first": {"checkpoint": "grpo@2", "who": "the test", "why": "the first there is"},
    }
    settings["services"] = {"dagster_port": free_port(), "app_port": free_port(), "poll_s": 1}
    settings["engine"] = {"name": "torch"}
    file.write_text(yaml.safe_dump(settings))
    with pawl_up(trained) as process:
        wait_until(
            lambda: trained.states() == {"grpo@2": "evaluated", "grpo@4": "evaluated"}, process
        )
    decisions = [entry for entry in trained.ledger() if entry[0] == "decision"]
    assert [name for _, name, _ in decisions] == ["grpo@2", "grpo@4"]
    assert decisions[1][2] in {"PASS", "INCONCLUSIVE"}
    series = trained.read("telemetry", "show", "grpo")["series"]
    assert {"reward/mean", "kl/reference"} & {one["series"] for one in series}
