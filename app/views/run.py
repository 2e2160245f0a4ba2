"""Run: its scores, its series and the verdicts on its checkpoints, over the same steps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from app.looks import value_text
from app.plain import literal, plain
from app.query import AppQuery, choose, choose_several
from app.run_chart import run_chart
from app.series import FINITE, Window, join_names, series_table
from app.views.notices import show_need
from storage.runs import StoredRun
from storage.telemetry import SeriesSummary

_ABOUT = ("model_line", "owner", "tags", "framework")


def show_choices(
    runs: Sequence[str],
    suites: Sequence[str],
    names: Sequence[str],
    query: AppQuery,
    series: Sequence[str],
) -> None:
    """Show the choice of run, suite and series."""
    left, right, _ = st.columns([3, 3, 4])
    with left:
        choose("Run", runs, query.run, name="run", clears=["suite", "series", "window"])
    with right:
        choose("Suite", suites, query.suite, name="suite")
    if names:
        choose_several("Series", names, series, name="series", join=join_names)


def show_about(stored: StoredRun | None) -> None:
    """Show on one line what is known of a run that was registered."""
    if stored is None:
        return
    facts = [(name.replace("_", " "), stored.config.get(name)) for name in _ABOUT]
    said = [f"{name} {_fact(value)}" for name, value in facts if value]
    st.caption(literal(" · ".join([*said, f"folder {stored.folder}"])))


def show_panels(
    scores: pd.DataFrame,
    lines: pd.DataFrame,
    marks: pd.DataFrame,
    series: Sequence[str],
    steps: tuple[int, int],
    window: Window | None,
) -> None:
    """Show scores and series as panels on one axis; see ``run_chart.run_chart``."""
    scored = bool(scores["value"].notna().any())
    if not scored:
        st.caption("No checkpoint of this run has a score on a suite yet.")
    if scored or series:
        st.altair_chart(run_chart(scores, lines, marks, series, steps, window), width="content")
    said = (
        "Checkpoints are dots and upright lines: :green[PASS], :red[FAIL], "
        ":orange[INCONCLUSIVE], :gray[no decision]. Scores have 95 % intervals."
    )
    if window is not None:
        said += f" Shaded: steps {window.before_step} to {window.at_step}."
    if (lines["kind"] != FINITE).any():
        said += " Crosses: values that are NaN, infinite or none."
    st.caption(said)


def show_series(summaries: Sequence[SeriesSummary], run: str, folder: Path) -> None:
    """Show all of a run's series in numbers."""
    st.subheader("Series", anchor=False)
    if not summaries:
        show_need(
            f"There is no telemetry of {run} in the lake.",
            folder,
            [f"pawl telemetry import PATH/TO/RUN --run {run}"],
        )
        return
    table = series_table(summaries)
    shown = table.assign(
        series=table["series"].map(plain),
        logged_as=table["logged_as"].map(plain),
        **{name: table[name].map(value_text) for name in ("first", "last")},
        **{name: table[name].map(_limit_text) for name in ("min", "max")},
    )
    if table["attempts"].max() == 1:
        shown = shown.drop(columns=["attempts"])
    st.dataframe(shown, hide_index=True, column_config=_columns())
    st.caption(
        "Of the latest attempt at each step, where training was restarted. First and last as "
        "logged, min and max of the finite values."
    )


def _fact(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _limit_text(value: float | None) -> str:
    return "–" if value is None else value_text(value)


def _columns() -> dict[str, Any]:
    text, number = st.column_config.TextColumn, st.column_config.NumberColumn
    return {
        "series": text("Series", pinned=True, width=180),
        "meaning": text("Meaning", width=260),
        "unit": text("Unit", width=105),
        "n": number("Values", width=65),
        "first": text("First", width=80, alignment="right"),
        "last": text("Last", width=80, alignment="right"),
        "min": text("Min", width=80, alignment="right"),
        "max": text("Max", width=80, alignment="right"),
        "non_finite": number("Not finite", width=80),
        "none": number("None", width=60, help="Logged as none"),
        "attempts": number("Attempts", width=80, help="Starts of training that logged it"),
        "logged_as": text("Logged as", width=200),
    }
