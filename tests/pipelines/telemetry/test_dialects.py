from __future__ import annotations

import pytest

from evals.telemetry import CANONICAL, find_canonical
from pipelines.telemetry.dialects import (
    DIALECTS,
    LAB,
    TRAINER,
    build_points,
    find_dialect,
    name_series,
)
from pipelines.telemetry.rows import Row

GRPO = {
    "loss": "loss",
    "grad_norm": "grad_norm",
    "learning_rate": "learning_rate",
    "entropy": "entropy",
    "kl": "kl/reference",
    "reward": "reward/mean",
    "reward_std": "reward/std",
    "rewards/accuracy_reward/mean": "reward/accuracy_reward",
    "rewards/accuracy_reward/std": "rewards/accuracy_reward/std",
    "frac_reward_zero_std": "zero_variance_share",
    "completions/mean_length": "response_length/mean",
    "completions/max_length": "response_length/max",
    "completions/min_length": "completions/min_length",
    "completions/clipped_ratio": "truncated_share",
    "clip_ratio/low_mean": "clip_ratio/low_mean",
    "sampling/sampling_logp_difference/mean": "logprob_difference/mean",
    "sampling/sampling_logp_difference/max": "logprob_difference/max",
    "sampling/importance_sampling_ratio/min": "sampling/importance_sampling_ratio/min",
    "sampling/importance_sampling_ratio/mean": "importance_ratio/mean",
    "sampling/importance_sampling_ratio/max": "importance_ratio/max",
    "step_time": "time/step_s",
}
"""As TRL 1.16's GRPO trainer logs them; read in trl/trainer/grpo_trainer.py."""


def test_what_trl_logs_is_found_under_canonical_names() -> None:
    assert name_series(GRPO, TRAINER) == GRPO


def test_old_names_of_trl() -> None:
    old = {"completion_length": "response_length/mean", "rewards/fmt": "reward/fmt"}
    assert name_series(old, TRAINER) == old


def test_the_asynchronous_trainers_kl_is_not_to_the_reference() -> None:
    logged = {"ratio": "importance_ratio/mean", "kl": "kl", "sample/staleness_max": "staleness/max"}
    assert name_series(logged, TRAINER) == logged


def test_no_canonical_series_has_two_names_of_one_run() -> None:
    both = ["step_time", "perf/step_s", "completion_length", "completions/mean_length"]
    assert name_series(both, TRAINER) == {
        "step_time": "time/step_s",
        "perf/step_s": "perf/step_s",
        "completion_length": "completion_length",
        "completions/mean_length": "response_length/mean",
    }
    assert name_series(["reward", "reward/mean"], TRAINER) == {
        "reward": "reward",
        "reward/mean": "reward/mean",
    }


def test_a_reward_function_never_takes_the_place_of_the_whole() -> None:
    odd = ["rewards/mean/mean", "rewards/std", "reward"]
    assert name_series(odd, TRAINER) == {
        "rewards/mean/mean": "rewards/mean/mean",
        "rewards/std": "rewards/std",
        "reward": "reward/mean",
    }


def test_the_labs_names_are_the_canonical_ones() -> None:
    names = [*(one.name for one in CANONICAL), "reward/code", "my/own"]
    assert name_series(names, LAB) == {name: name for name in names}


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda one: one.name)
def test_every_entry_leads_to_a_canonical_series(dialect: object) -> None:
    for known in TRAINER.known:
        assert find_canonical(known.series.replace("*", "x")) is not None
        assert known.raw_name.count("*") == known.series.count("*")
    assert dialect in DIALECTS


def test_a_dialect_is_told_by_its_names() -> None:
    assert find_dialect(GRPO) is TRAINER
    assert find_dialect(one.name for one in CANONICAL) is LAB
    assert find_dialect([]) is LAB


def test_tensorboards_tags_are_the_names_logged_elsewhere() -> None:
    rows = [Row(step=1, values={"train/reward": 1.0, "eval/reward": 2.0, "train/epoch": 0.5})]
    points = build_points("r", rows, TRAINER)
    assert [(one.raw_name, one.series, one.value) for one in points] == [
        ("reward", "reward/mean", 1.0),
        ("eval_reward", "eval_reward", 2.0),
    ]


def test_what_says_where_a_row_lies_makes_no_new_attempt() -> None:
    rows = [
        Row(step=1, values={"epoch": 0.1, "num_tokens": 5.0, "loss": 1.0}),
        Row(step=1, values={"epoch": 0.1, "eval_loss": 2.0}),
        Row(step=2, values={"epoch": 0.2, "num_tokens": 9.0, "loss": 0.5}),
        Row(step=2, values={"epoch": 0.2, "train_runtime": 9.0, "total_flos": 1.0}),
    ]
    points = build_points("r", rows, TRAINER)
    assert {one.attempt for one in points} == {0}
    assert [one.raw_name for one in points] == ["loss", "eval_loss", "loss", "train_runtime"]
