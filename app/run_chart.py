"""A run over its steps: scores and series as panels on one axis; nothing here knows Streamlit."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from app.charts import PANELS_IN_A_ROW, calm, in_points
from app.looks import GRID, INK, LIGHT, LOSS, MUTED, NO_VERDICT, RUN_COLOURS, VERDICT_COLOURS
from app.plain import plain, shortened
from app.series import FINITE, Window
from evals.telemetry import find_canonical

WIDTH = 316
HEIGHT = 128
LABELS = 44
"""Room for the labels of every upright axis, so that panels stand below each other."""
SUBTITLE = 56
"""Characters of a series' meaning that fit above its panel."""

_EDGE = 0.02
"""Of the axis' length, free at both ends."""
_UNKNOWN_AT = HEIGHT - 6
_COLOURS = {**VERDICT_COLOURS, NO_VERDICT: LIGHT}
_SHADE = "#eef2f8"


def run_chart(
    scores: pd.DataFrame,
    lines: pd.DataFrame,
    marks: pd.DataFrame,
    series: Sequence[str],
    steps: tuple[int, int],
    window: Window | None,
) -> alt.VConcatChart:
    """Return a panel for each capability's score and, below, one for each series.

    Args:
        scores: A run's rows of ``frames.capability_scores``; those without a score are left out.
        lines: Of ``series.line_table``.
        marks: Of ``series.checkpoint_marks``.
        series: Which to draw, in order.
        steps: First and last step of the axis of all panels.
        window: Steps to shade.
    """
    shade = _shade(steps, window)
    behind = [*shade, *_checkpoints(marks, steps)]
    known = in_points(scores.dropna(subset=["value"]), ["value", "low", "high"])
    known = known.merge(marks[["step", "verdict"]], on="step", how="left")
    known["verdict"] = known["verdict"].fillna(NO_VERDICT)
    rows = _rows(
        [
            _panel(shade + _score_layers(part.sort_values("step"), steps), str(name).capitalize())
            for name, part in known.groupby("capability", sort=False)
        ]
    )
    rows += _rows(
        [
            _panel(behind + _line_layers(lines[lines["series"] == name], name, steps), name)
            for name in series
        ]
    )
    chart: alt.VConcatChart = calm(alt.vconcat(*rows, spacing=18))
    return chart


def _rows(panels: list[alt.LayerChart]) -> list[alt.HConcatChart]:
    cut = range(0, len(panels), PANELS_IN_A_ROW)
    return [alt.hconcat(*panels[start : start + PANELS_IN_A_ROW], spacing=22) for start in cut]


def _panel(layers: list[alt.Chart], name: str) -> alt.LayerChart:
    canonical = find_canonical(name)
    title = alt.Title(
        text=plain(name),
        subtitle=shortened(canonical.meaning, SUBTITLE) if canonical else "",
        anchor="start",
        fontSize=13,
        fontWeight=600,
        color=INK,
        subtitleColor=MUTED,
        subtitleFontSize=11,
    )
    layered: alt.LayerChart = alt.layer(*layers).resolve_scale(color="independent")
    return layered.properties(width=WIDTH, height=HEIGHT, title=title)


def _shade(steps: tuple[int, int], window: Window | None) -> list[alt.Chart]:
    if window is None:
        return []
    inside = {"from": max(window.before_step, steps[0]), "to": min(window.at_step, steps[1])}
    shade = alt.Chart(pd.DataFrame([inside])).mark_rect(color=_SHADE)
    return [shade.encode(x=_step("from", steps), x2="to:Q")]


def _checkpoints(marks: pd.DataFrame, steps: tuple[int, int]) -> list[alt.Chart]:
    """Return a line for each checkpoint."""
    if marks.empty:
        return []
    lines = alt.Chart(marks).mark_rule(strokeWidth=1.5, opacity=0.75)
    tooltip = [alt.Tooltip("checkpoint:N"), alt.Tooltip("verdict:N")]
    return [lines.encode(x=_step("step", steps), color=_verdict(), tooltip=tooltip)]


def _score_layers(scores: pd.DataFrame, steps: tuple[int, int]) -> list[alt.Chart]:
    base = alt.Chart(scores).encode(
        x=_step("step", steps),
        tooltip=[
            alt.Tooltip("step:Q", format="d"),
            alt.Tooltip("verdict:N"),
            alt.Tooltip("value:Q", title="score, %", format=".1f"),
            alt.Tooltip("low:Q", title="95 % interval from", format=".1f"),
            alt.Tooltip("high:Q", title="to", format=".1f"),
            alt.Tooltip("n:Q", title="items", format="d"),
        ],
    )
    score = _value("value", "score, %")
    return [
        base.mark_line(strokeWidth=1.5, color=MUTED, opacity=0.6).encode(y=score),
        base.mark_rule(strokeWidth=2).encode(
            y=_value("low", "score, %"), y2="high:Q", color=_verdict()
        ),
        base.mark_point(filled=True, size=56, opacity=1).encode(y=score, color=_verdict()),
    ]


def _line_layers(lines: pd.DataFrame, name: str, steps: tuple[int, int]) -> list[alt.Chart]:
    canonical = find_canonical(name)
    unit = canonical.unit if canonical else "as logged"
    step = alt.Tooltip("step:Q", format="d")
    base = alt.Chart(lines).encode(x=_step("step", steps))
    drawn = base.mark_line(strokeWidth=1.3, color=RUN_COLOURS[0], strokeJoin="round").encode(
        y=_value("value", unit),
        tooltip=[step, alt.Tooltip("value:Q", format=".4~g")],
    )
    unknown = lines[lines["kind"] != FINITE]
    if unknown.empty:
        return [drawn]
    crosses = alt.Chart(unknown).mark_point(shape="cross", size=34, color=LOSS, filled=True)
    return [
        drawn,
        crosses.encode(
            x=_step("step", steps),
            y=alt.value(_UNKNOWN_AT),
            tooltip=[step, alt.Tooltip("kind:N", title="logged")],
        ),
    ]


def _step(column: str, steps: tuple[int, int]) -> alt.X:
    free = _EDGE * (steps[1] - steps[0])
    return alt.X(
        f"{column}:Q",
        title="step",
        axis=alt.Axis(format="d", tickMinStep=1, tickCount=6, grid=False),
        scale=alt.Scale(domain=[steps[0] - free, steps[1] + free], nice=False, zero=False),
    )


def _value(column: str, title: str) -> alt.Y:
    return alt.Y(
        f"{column}:Q",
        title=title,
        axis=alt.Axis(
            tickCount=4, format=".6~g", gridColor=GRID, minExtent=LABELS, maxExtent=LABELS
        ),
        scale=alt.Scale(zero=False, nice=True, padding=6),
    )


def _verdict() -> alt.Color:
    return alt.Color(
        "verdict:N",
        legend=None,
        scale=alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values())),
    )
