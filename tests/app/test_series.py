from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from small_lake import FAILED, FIRST, OPEN, PASSED, Made, evaluation_of

from app.run_chart import run_chart
from app.series import (
    LINKED_SERIES,
    SHOWN_SERIES,
    Window,
    change_table,
    checkpoint_marks,
    chosen_series,
    in_order,
    join_names,
    line_table,
    moved_names,
    read_window,
    series_table,
    split_names,
    step_range,
    window_of,
)
from evals.telemetry import SeriesValues, rank_series
from storage.aggregates import DecisionHead
from storage.checkpoints import CheckpointState, StoredCheckpoint
from storage.telemetry import SeriesSummary
from storage.text import encode_text


def checkpoint(made: Made) -> StoredCheckpoint:
    return StoredCheckpoint(
        ref=evaluation_of(made).checkpoint,
        files={},
        state=CheckpointState.READY,
        registered_at="1",
    )


CHECKPOINTS = [checkpoint(one) for one in (FIRST, PASSED, OPEN, FAILED)]


def summary(series: str, **changes: Any) -> SeriesSummary:
    known = {
        "raw_names": (series,),
        "n": 5,
        "first_step": 10,
        "last_step": 90,
        "first": 1.0,
        "last": 2.0,
        "least": 0.5,
        "most": 3.0,
        "non_finite": 0,
        "none": 0,
        "attempts": 1,
    }
    return SeriesSummary(series=series, **{**known, **changes})


def decision(candidate: str, baseline: str | None, *verdicts: str) -> dict[str, Any]:
    rules = [{"verdict": one} for one in verdicts[1:]]
    return {
        "candidate": candidate,
        "baseline": baseline,
        "verdict": verdicts[0],
        "rules": rules,
    }


def test_a_window_stands_in_the_url() -> None:
    window = Window(run="r", before_step=40, at_step=60)
    assert read_window("r", window.text) == window
    for text in (None, "", "40", "40-", "-60", "a-b", "40-60-80", "4²-60"):
        assert read_window("r", text) is None


@pytest.mark.parametrize("names", [[], ["reward/mean", "a,b", "%2C", "x y", "näme\ud800", "&=#"]])
def test_names_stand_in_the_url(names: list[str]) -> None:
    assert split_names(join_names(names) or None) == names


def test_a_failed_candidates_window_begins_after_an_earlier_baseline_of_its_run() -> None:
    found = window_of(decision(FAILED.name, PASSED.name, "FAIL", "PASS"), CHECKPOINTS)
    assert found == Window(run=FAILED.run, before_step=PASSED.step, at_step=FAILED.step)


@pytest.mark.parametrize("baseline", [None, "other@5", f"{FAILED.run}@5000", FAILED.name])
def test_without_one_it_begins_after_the_checkpoint_before(baseline: str | None) -> None:
    found = window_of(decision(FAILED.name, baseline, "FAIL"), CHECKPOINTS)
    assert found == Window(run=FAILED.run, before_step=OPEN.step, at_step=FAILED.step)
    first = window_of(decision(FIRST.name, baseline, "FAIL"), CHECKPOINTS)
    assert first == Window(run=FIRST.run, before_step=0, at_step=FIRST.step)


def test_a_failed_rule_is_enough_and_nothing_failed_has_no_window() -> None:
    assert window_of(decision(FAILED.name, None, "INCONCLUSIVE", "FAIL"), CHECKPOINTS) is not None
    assert window_of(decision(FAILED.name, None, "PASS", "PASS"), CHECKPOINTS) is None
    assert window_of(decision(FAILED.name, None, "INCONCLUSIVE"), CHECKPOINTS) is None


def changes() -> Any:
    generator = np.random.default_rng(0)
    table = {
        f"s{number}": np.append(generator.normal(size=30), generator.normal(number, 1, 10))
        for number in range(9)
    }
    table["entropy"] = np.append(table["s0"][:30], table["s0"][30:] - 20)
    table["kl/reference"] = np.append(table["s0"][:30], np.full(10, math.nan))
    table["grad_norm"] = np.append(np.ones(30), np.full(10, 7.0))
    series = {
        name: SeriesValues(steps=np.arange(40), values=values) for name, values in table.items()
    }
    return rank_series(series, 29, 39)


def test_changes_are_a_table_in_their_order() -> None:
    table = change_table(changes())
    assert list(table["series"][:2]) == ["entropy", "s8"]
    first = table.iloc[0]
    assert (first["goes"], first["onset"], first["before_n"], first["window_n"]) == ("", 30, 30, 10)
    assert first["shift"] < -5
    constant = table.set_index("series").loc["grad_norm"]
    assert np.isnan(constant["shift"])
    assert (constant["before"], constant["window"]) == (1.0, 7.0)
    assert constant["note"] == "the past is constant"
    broken = table.set_index("series").loc["kl/reference"]
    assert np.isnan(broken["window"])
    assert pd.isna(broken["onset"])
    assert broken["note"].endswith("10 of 10 in the window NaN, infinite or none; first at step 30")
    assert change_table([]).empty


def test_a_link_leads_to_what_moved_and_to_what_broke() -> None:
    names = moved_names(changes())
    assert names[:2] == ["entropy", "s8"]
    assert names[-1] == "kl/reference"
    assert len(names) == LINKED_SERIES
    assert moved_names([]) == []


def test_series_are_in_the_order_of_their_meaning() -> None:
    names = ["zz", "aa", "entropy", "reward/code", "reward/std", "reward/mean", "loss"]
    ordered = ["reward/mean", "reward/std", "reward/code", "entropy", "loss", "aa", "zz"]
    assert in_order(names) == ordered
    assert in_order(["entropy", "reward/code", "reward/mean"]) == [
        "reward/mean",
        "reward/code",
        "entropy",
    ]
    assert in_order(["entropy", "reward/code"]) == ["reward/code", "entropy"]


def test_a_first_look_where_none_is_chosen() -> None:
    names = [*(f"x{number}" for number in range(20)), "grad_norm", "entropy"]
    assert chosen_series(names, ["x3", "gone", "x3"]) == ["x3"]
    first_look = chosen_series(names, ["gone"])
    assert first_look[:2] == ["entropy", "grad_norm"]
    assert len(first_look) == SHOWN_SERIES
    assert chosen_series([], ["x"]) == []


def test_series_in_numbers_keep_what_is_none_and_what_is_not_finite() -> None:
    summaries = [
        summary("zz", first=None, last=math.nan, least=None, most=None, none=1, non_finite=4),
        summary("entropy", attempts=2, raw_names=("a", "b")),
    ]
    table = series_table(summaries)
    assert list(table["series"]) == ["entropy", "zz"]
    odd = table.iloc[1]
    assert (odd["first"], odd["min"], odd["meaning"]) == (None, None, "")
    assert math.isnan(odd["last"])
    assert table["logged_as"].iloc[0] == "a, b"
    assert table["unit"].iloc[0] == "nats per token"


def test_checkpoints_carry_the_verdict_of_the_latest_decision() -> None:
    def head(made: Made, verdict: str) -> DecisionHead:
        return DecisionHead(
            decision=verdict,
            verdict=verdict,
            candidate=made.name,
            baseline="",
            at="1",
            candidate_digest=evaluation_of(made).checkpoint.digest,
            candidate_evaluation="",
            baseline_evaluation="",
            policy="p",
        )

    heads = [head(FAILED, "PASS"), head(FAILED, "FAIL"), head(OPEN, "INCONCLUSIVE")]
    marks = checkpoint_marks(
        FAILED.run, [*CHECKPOINTS, checkpoint(Made(run="b", step=7, skill=1))], heads
    )
    assert list(marks["step"]) == [100, 200, 500, 1000]
    assert list(marks["verdict"]) == ["none", "none", "INCONCLUSIVE", "FAIL"]
    assert checkpoint_marks("gone", CHECKPOINTS, heads).empty


def test_all_panels_have_one_range_of_steps() -> None:
    marks = checkpoint_marks(FAILED.run, CHECKPOINTS, [])
    assert step_range(marks, [summary("a"), summary("b", last_step=2000)]) == (10, 2000)
    assert step_range(marks.head(0), []) == (0, 1)
    assert step_range(marks.head(0), [summary("a", first_step=5, last_step=5)]) == (5, 6)


def scores() -> pd.DataFrame:
    rows = [
        {"capability": name, "step": step, "n": 9, "value": 0.5, "low": 0.4, "high": 0.6}
        for name in ("reasoning", "safety")
        for step in (1000, 100)
    ]
    return pd.DataFrame([*rows, {**rows[0], "capability": "code", "value": math.nan}])


def lines() -> pd.DataFrame:
    return line_table(
        pa.table(
            {
                "series": [encode_text(name) for name in ("entropy", "entropy", "a\0b")],
                "step": [10, 20, 10],
                "value": [1.0, None, 3.0],
                "kind": ["finite", "NaN", "finite"],
            }
        )
    )


def panels(chart: dict[str, Any]) -> list[dict[str, Any]]:
    return [panel for row in chart["vconcat"] for panel in row["hconcat"]]


def test_scores_and_series_are_panels_on_the_same_axis() -> None:
    marks = checkpoint_marks(FAILED.run, CHECKPOINTS, [])
    window = Window(run=FAILED.run, before_step=500, at_step=4000)
    chart = run_chart(scores(), lines(), marks, ["entropy", "a\0b"], (10, 1010), window).to_dict()
    drawn = panels(chart)
    assert [one["title"]["text"] for one in drawn] == [
        "Reasoning",
        "Safety",
        "entropy",
        "a\\x00b",
    ]
    domains = {
        tuple(layer["encoding"]["x"]["scale"]["domain"]) for one in drawn for layer in one["layer"]
    }
    assert domains == {(-10.0, 1030.0)}
    shade = chart["datasets"][drawn[0]["layer"][0]["data"]["name"]]
    assert shade == [{"from": 500, "to": 1010}]
    assert [len(one["layer"]) for one in drawn] == [4, 4, 4, 3]


def test_what_is_not_finite_breaks_the_line_and_is_marked() -> None:
    marks = checkpoint_marks(FAILED.run, CHECKPOINTS, []).head(0)
    chart = run_chart(scores().head(0), lines(), marks, ["entropy"], (0, 30), None).to_dict()
    (panel,) = panels(chart)
    line, crosses = panel["layer"]
    assert [row["value"] for row in chart["datasets"][line["data"]["name"]]] == [1.0, None]
    (unknown,) = chart["datasets"][crosses["data"]["name"]]
    assert (unknown["step"], unknown["kind"]) == (20, "NaN")
