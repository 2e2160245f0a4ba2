"""`pawl bench`: what a result says, and a whole run with both sides' engines."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import RunPawl, read_json

from pipelines.bench.result import BenchResult, versions_of
from pipelines.bench.shots import draw_questions

FOUND = BenchResult(
    name="loglikelihood",
    unit="items/s",
    ours=42.0,
    against=2.0,
    goal=20.0,
    holds=True,
    versions={},
    figures={},
)


def test_a_goal_is_met_by_the_ratio_with_the_same_answers() -> None:
    assert (FOUND.ratio, FOUND.met) == (21.0, True)
    assert not replace(FOUND, ours=39.0).met
    assert not replace(FOUND, holds=False).met


def test_a_result_is_json() -> None:
    told = json.loads(json.dumps(FOUND.to_json()))
    assert {"name", "ours", "against", "ratio", "goal", "met", "versions"} < told.keys()


def test_versions_are_of_what_is_installed() -> None:
    assert versions_of("pytest", "no-such-package-as-this") == {"pytest": pytest.__version__}


def test_questions_share_their_shots_and_are_drawn_by_seed() -> None:
    questions = draw_questions(5, 8)
    contexts = [str(choices[0].context) for choices in questions]
    assert draw_questions(5, 8) == questions != draw_questions(5, 8, seed=1)
    assert len(set(contexts)) == 5
    assert {text.rsplit("\n\n", 1)[0] for text in contexts} == {contexts[0].rsplit("\n\n", 1)[0]}
    assert all(text.count("Answer:") == 9 for text in contexts)
    assert [choice.continuation for choice in questions[0]] == [" A", " B", " C", " D"]


def test_a_checkpoint_that_is_not_there_is_said(tmp_path: Path, run_pawl: RunPawl) -> None:
    done = run_pawl("bench", "loglikelihood", "--checkpoint", "nothing", cwd=tmp_path)
    assert done.returncode == 3
    assert "no such folder" in done.stderr


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_both_sides_give_the_same_log_likelihoods(
    smollm2: Path, tmp_path: Path, run_pawl: RunPawl
) -> None:
    options = ("--checkpoint", str(smollm2), "--items", "2", "--json")
    told = read_json(run_pawl("bench", "loglikelihood", *options, cwd=tmp_path))
    assert told["holds"]
    assert told["ratio"] > 1
    assert len(told["figures"]["seconds"]["pawl"]) == 3
