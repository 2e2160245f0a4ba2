"""From tidy tables to Altair charts; nothing here knows Streamlit."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from app.looks import GRID, INK, LIGHT, MUTED, RUN_COLOURS, VERDICT_COLOURS
from app.plain import plain

PANEL_WIDTH = 322
PANEL_HEIGHT = 150
PANELS_IN_A_ROW = 3
ROW_HEIGHT = 34
AXIS_PX = 66
LEGEND_PX = 64
NAME_WIDTH = 280

DIFFERENCE_TITLE = "difference, percentage points (right: better)"

_LIMIT_COLOURS = {"margin": INK, "tolerate": LIGHT, "ceiling": INK, "floor": INK}
_FEW_STEPS = 8
_FEW_TICKS = alt.Axis(tickCount=10)


def score_chart(scores: pd.DataFrame) -> alt.FacetChart:
    """Return each capability's score by step, a line for each run, with its intervals.

    Args:
        scores: A table of ``frames.capability_scores``; rows without a score are left out.
    """
    shown = scores.dropna(subset=["value"]).sort_values(["run", "step"])
    percent = in_points(shown, ["value", "low", "high"])
    percent["capability"] = percent["capability"].str.capitalize()
    runs = sorted(percent["run"].unique())
    base = alt.Chart(percent).encode(
        x=alt.X(
            "step:Q",
            title="step",
            axis=_step_axis(percent),
            scale=alt.Scale(zero=False, padding=14),
        ),
        color=alt.Color(
            "run:N",
            title="run",
            scale=alt.Scale(domain=runs, range=_cycled(len(runs))),
            legend=alt.Legend(orient="top", labelLimit=300) if len(runs) > 1 else None,
        ),
        tooltip=[
            alt.Tooltip("run:N"),
            alt.Tooltip("step:Q", format="d"),
            alt.Tooltip("value:Q", title="score, %", format=".1f"),
            alt.Tooltip("low:Q", title="95 % interval from", format=".1f"),
            alt.Tooltip("high:Q", title="to", format=".1f"),
            alt.Tooltip("n:Q", title="items", format="d"),
        ],
    )
    scale = alt.Scale(zero=False, nice=False, padding=8)
    score = alt.Y("value:Q", title="score, %", scale=scale)
    layers = alt.layer(
        base.mark_line(strokeWidth=1.5, opacity=0.6).encode(y=score),
        base.mark_rule(strokeWidth=1.5).encode(
            y=alt.Y("low:Q", title="score, %", scale=scale), y2="high:Q"
        ),
        base.mark_point(filled=True, size=46, opacity=1).encode(y=score),
    ).properties(width=PANEL_WIDTH, height=PANEL_HEIGHT)
    facets = layers.facet(
        facet=alt.Facet(
            "capability:N",
            title=None,
            sort=list(dict.fromkeys(percent["capability"])),
            header=alt.Header(labelFontSize=13, labelFontWeight=600, labelColor=INK),
        ),
        columns=PANELS_IN_A_ROW,
    )
    drawn: alt.FacetChart = calm(facets.resolve_scale(y="independent", x="independent"))
    return drawn


def difference_chart(comparisons: pd.DataFrame) -> alt.LayerChart:
    """Return each difference with its interval; what lies wholly below 0 is a proven loss.

    Args:
        comparisons: A table of ``frames.comparison_table``.
    """
    table = in_points(comparisons, ["value", "low", "high"])
    names = list(table["name"])
    base = alt.Chart(table).encode(y=_names("name", names))
    tooltip = [
        alt.Tooltip("name:N", title="what"),
        alt.Tooltip("value:Q", title="difference, points", format="+.1f"),
        alt.Tooltip("low:Q", title="95 % interval from", format="+.1f"),
        alt.Tooltip("high:Q", title="to", format="+.1f"),
    ]
    x = alt.X("low:Q", title=DIFFERENCE_TITLE, axis=_FEW_TICKS)
    chart = alt.layer(
        _zero_line(),
        base.mark_rule(strokeWidth=2, color=RUN_COLOURS[0]).encode(
            x=x, x2="high:Q", tooltip=tooltip
        ),
        base.mark_point(filled=True, size=70, opacity=1, color=RUN_COLOURS[0]).encode(
            x="value:Q", tooltip=tooltip
        ),
    )
    drawn: alt.LayerChart = calm(chart.properties(height=_height(len(names), AXIS_PX)))
    return drawn


def rule_chart(rules: pd.DataFrame, limits: pd.DataFrame, *, signed: bool) -> alt.LayerChart:
    """Return each rule's interval coloured by verdict, with its limits as ticks.

    Args:
        rules: Rows of ``frames.rule_table`` on one scale.
        limits: Their limits, of ``frames.limit_table``.
        signed: True for differences, False for scores.
    """
    table = in_points(rules, ["value", "low", "high"])
    table["label"] = table["rule"].map(plain) + "  " + table["verdict"]
    labels = dict(zip(table["rule"], table["label"], strict=True))
    marks = in_points(limits[limits["rule"].isin(table["rule"])], ["at"])
    marks["label"] = marks["rule"].map(labels)
    names = list(table["label"])
    form = "+.1f" if signed else ".1f"
    verdicts = [verdict for verdict in VERDICT_COLOURS if verdict in set(table["verdict"])]
    base = alt.Chart(table).encode(
        y=_names("label", names),
        color=alt.Color(
            "verdict:N",
            legend=None,
            scale=alt.Scale(domain=verdicts, range=[VERDICT_COLOURS[one] for one in verdicts]),
        ),
        tooltip=[
            alt.Tooltip("rule:N"),
            alt.Tooltip("verdict:N"),
            alt.Tooltip("value:Q", title="estimate", format=form),
            alt.Tooltip("low:Q", title="interval from", format=form),
            alt.Tooltip("high:Q", title="to", format=form),
        ],
    )
    title = DIFFERENCE_TITLE if signed else "score, %"
    layers: list[Any] = [
        base.mark_rule(strokeWidth=3).encode(
            x=alt.X("low:Q", title=title, axis=_FEW_TICKS), x2="high:Q"
        ),
        base.mark_point(filled=True, size=80, opacity=1).encode(x="value:Q"),
        _limit_ticks(marks, names, title, form),
    ]
    if signed:
        layers.insert(0, _zero_line())
    chart = alt.layer(*layers).resolve_scale(color="independent")
    drawn: alt.LayerChart = calm(chart.properties(height=_height(len(names), AXIS_PX + LEGEND_PX)))
    return drawn


def _limit_ticks(marks: pd.DataFrame, names: list[str], title: str, form: str) -> alt.Chart:
    kinds = [kind for kind in _LIMIT_COLOURS if kind in set(marks["limit"])]
    color = alt.Color(
        "limit:N",
        title="limit",
        scale=alt.Scale(domain=kinds, range=[_LIMIT_COLOURS[one] for one in kinds]),
        legend=alt.Legend(orient="top", symbolType="square"),
    )
    ticks = alt.Chart(marks).mark_tick(thickness=3, size=ROW_HEIGHT * 0.62, orient="vertical")
    drawn: alt.Chart = ticks.encode(
        x=alt.X("at:Q", title=title),
        y=_names("label", names),
        color=color,
        tooltip=[alt.Tooltip("limit:N"), alt.Tooltip("at:Q", format=form)],
    )
    return drawn


def _zero_line() -> alt.Chart:
    line = alt.Chart(pd.DataFrame({"at": [0.0]})).mark_rule(color=MUTED, strokeWidth=1)
    drawn: alt.Chart = line.encode(x="at:Q")
    return drawn


def _step_axis(scores: pd.DataFrame) -> alt.Axis:
    steps = sorted(int(step) for step in scores["step"].unique())
    if len(steps) <= _FEW_STEPS:
        return alt.Axis(values=steps, format="d", labelOverlap="greedy", grid=False)
    return alt.Axis(format="d", tickMinStep=1, tickCount=_FEW_STEPS, grid=False)


def _names(column: str, names: list[str]) -> alt.Y:
    return alt.Y(
        f"{column}:N", title=None, sort=names, axis=alt.Axis(labelLimit=NAME_WIDTH, ticks=False)
    )


def in_points(table: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Return a table with some columns of shares in percent."""
    return table.assign(**{name: 100 * table[name] for name in columns})


def _height(rows: int, around: int) -> int:
    """Return a chart's height with what is around its rows, since both have to fit in it."""
    return ROW_HEIGHT * rows + around


def _cycled(count: int) -> list[str]:
    return [RUN_COLOURS[number % len(RUN_COLOURS)] for number in range(count)]


def calm(chart: Any) -> Any:
    """Return the chart with a quiet grid and readable labels."""
    return (
        chart.configure_axis(
            gridColor=GRID,
            domainColor=GRID,
            tickColor=GRID,
            labelColor=INK,
            titleColor=MUTED,
            labelFontSize=12,
            titleFontSize=12,
            titleFontWeight="normal",
        )
        .configure_view(stroke=None)
        .configure_legend(labelColor=INK, titleColor=MUTED, titleFontWeight="normal")
    )
