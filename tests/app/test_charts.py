from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from app.charts import difference_chart, rule_chart, score_chart


def scores(runs: int = 1) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "evaluation": f"{run}-{step}-{capability}",
                "run": f"run{run}",
                "step": step,
                "capability": capability,
                "n": 10,
                "value": 0.5,
                "low": 0.25,
                "high": 0.75,
            }
            for run in range(runs)
            for step in (1000, 100, 20)
            for capability in ("reasoning", "long context")
        ]
    )


def rules() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "rule": ["b", "a"],
            "verdict": ["PASS", "FAIL"],
            "value": [-0.01, -0.2],
            "low": [-0.05, -0.3],
            "high": [0.03, -0.1],
        }
    )


LIMITS = pd.DataFrame({"rule": ["b", "a"], "limit": ["margin", "margin"], "at": [-0.1, -0.05]})


def rows(chart: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all rows of all of a chart's data."""
    return [row for part in chart["datasets"].values() for row in part]


def test_scores_are_in_percent_with_steps_as_numbers() -> None:
    spec = score_chart(scores()).to_dict()
    assert [row["step"] for row in rows(spec)][:6] == [20, 20, 100, 100, 1000, 1000]
    assert {row["value"] for row in rows(spec)} == {50.0}
    encoding = spec["spec"]["layer"][0]["encoding"]
    assert encoding["x"]["type"] == "quantitative"
    assert encoding["x"]["axis"]["values"] == [20, 100, 1000]
    assert encoding["y"]["title"] == "score, %"
    assert spec["facet"]["sort"] == ["Reasoning", "Long context"]


def test_a_legend_only_tells_runs_apart_where_there_are_several() -> None:
    alone, several = (score_chart(scores(count)).to_dict() for count in (1, 2))
    assert alone["spec"]["layer"][0]["encoding"]["color"]["legend"] is None
    assert several["spec"]["layer"][0]["encoding"]["color"]["legend"] is not None


def test_a_score_that_is_not_known_is_not_drawn() -> None:
    table = scores()
    table.loc[0, "value"] = float("nan")
    assert len(rows(score_chart(table).to_dict())) == len(table) - 1


def test_rules_keep_their_order_and_say_their_verdict() -> None:
    spec = rule_chart(rules(), LIMITS, signed=True).to_dict()
    interval = spec["layer"][1]
    assert interval["encoding"]["y"]["sort"] == ["b  PASS", "a  FAIL"]
    assert interval["encoding"]["x"]["title"].startswith("difference, percentage points")
    ticks = [row for row in rows(spec) if row.get("limit") == "margin"]
    assert [(row["label"], row["at"]) for row in ticks] == [("b  PASS", -10.0), ("a  FAIL", -5.0)]


def test_limits_of_other_rules_are_left_out() -> None:
    spec = rule_chart(rules().head(1), LIMITS, signed=False).to_dict()
    assert [row["rule"] for row in rows(spec) if "limit" in row] == ["b"]
    assert "zero" not in str(spec["layer"][0])


@pytest.mark.parametrize("names", [["only"], ["x", "y", "z"]])
def test_differences_have_room_for_every_name(names: list[str]) -> None:
    table = pd.DataFrame({"name": names, "value": 0.0, "low": -0.1, "high": 0.1})
    spec = difference_chart(table).to_dict()
    assert spec["height"] >= 30 * len(names) + 60
    assert spec["layer"][1]["encoding"]["y"]["sort"] == names
