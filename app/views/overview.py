"""The overview: every checkpoint with its scores, outcomes and verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from app.charts import score_chart
from app.frames import UNWHOLE
from app.links import Pages, show_link
from app.looks import NO_VERDICT, percent, score_text, verdict_style
from app.plain import literal, plain
from app.query import AppQuery, choose, choose_row
from evals.scoring import Outcome


def show_filters(runs: Sequence[str], suites: Sequence[str], query: AppQuery) -> None:
    """Show the choice of run and suite."""
    left, right, _ = st.columns([3, 3, 4])
    with left:
        choose("Run", runs, query.run, name="run", everything="All runs", clears=["evaluation"])
    with right:
        choose("Suite", suites, query.suite, name="suite", clears=["evaluation"])


def show_table(table: pd.DataFrame, scores: pd.DataFrame, query: AppQuery) -> None:
    """Show the checkpoints.

    Args:
        table: Of ``frames.overview_table``.
        scores: Of ``frames.capability_scores``.
        query: Says which row is open.
    """
    capabilities = list(dict.fromkeys(scores["capability"]))
    shown = table[["run", "step", "verdict", "state"]].copy()
    shown["run"] = shown["run"].map(plain)
    if table["run"].nunique() == 1:
        st.caption(f"Run {literal(table['run'].iloc[0])}")
        shown = shown.drop(columns=["run"])
    texts = {
        (row["evaluation"], row["capability"]): score_text(row["value"], row["low"], row["high"])
        for row in scores.to_dict("records")
    }
    for capability in capabilities:
        shown[capability] = [texts.get((key, capability), "–") for key in table["evaluation"]]
    for outcome in UNWHOLE:
        shown[outcome.value] = table[outcome.value]
    several = table[table["evaluation"] != ""]["engine"].nunique() > 1
    if several:
        shown["engine"] = table["engine"].map(plain)
    choose_row(
        shown.style.map(verdict_style, subset=["verdict"]),
        [{"evaluation": key} for key in table["evaluation"]],
        {"evaluation": query.evaluation},
        name="overview",
        placeholder="–",
        column_config=_columns(capabilities),
    )
    if table["state"].str.startswith("running").any():
        st.caption("An evaluation is running; load the page again to see how far it has come.")
    st.caption(
        "Scores in percent with 95 % intervals, the mean over a capability's items; higher is "
        "better (where a task counts failures, 100 − its score). Outcomes count responses. "
        "Select a row for its tasks, its comparison and its decision."
    )


def show_chart(scores: pd.DataFrame) -> None:
    """Show each capability's score by step."""
    if scores["value"].notna().any():
        st.subheader("Score by step", anchor=False)
        st.altair_chart(score_chart(scores), width="content")


def show_row(
    row: pd.Series[Any], tasks: pd.DataFrame, before: str | None, pages: Pages, suite: str
) -> None:
    """Show one evaluation's tasks, and where to go from it.

    Args:
        row: Of ``frames.overview_table``.
        tasks: Of ``frames.task_scores``.
        before: ``RUN@STEP`` of the step before it in its run; None: it is the first.
        pages: Where links lead.
        suite: The suite shown.
    """
    name = str(row["checkpoint"])
    st.subheader(literal(name), anchor=False)
    links = st.container(horizontal=True)
    with links:
        if before is not None:
            show_link(
                pages.compare,
                f"Compare with {literal(before)}",
                candidate=name,
                baseline=before,
                suite=suite,
            )
        if row["decision"]:
            label = f"Decision: {row['verdict']}"
            show_link(pages.decisions, label, decision=str(row["decision"]))
        show_link(pages.run, f"Run {literal(str(row['run']))}", run=str(row["run"]), suite=suite)
    if row["verdict"] == NO_VERDICT:
        st.caption("No decision on this checkpoint yet.")
    shown = tasks[["task", "capability", "metric", "better", "n"]].copy()
    shown["score"] = tasks["value"].map(percent)
    shown["interval"] = [
        "–" if pd.isna(low) else f"{100 * low:.1f} to {100 * high:.1f}"
        for low, high in zip(tasks["low"], tasks["high"], strict=True)
    ]
    for outcome in Outcome:
        shown[outcome.value] = tasks[outcome.value]
    if str(row["state"]).startswith("running"):
        shown = shown.drop(columns=[Outcome.MISSING.value])
    st.dataframe(shown, hide_index=True, column_config=_task_columns())


def _columns(capabilities: Sequence[str]) -> dict[str, object]:
    text, number = st.column_config.TextColumn, st.column_config.NumberColumn
    return {
        "run": text("Run", pinned=True, width=150),
        "step": number("Step", format="%d", pinned=True, width=60),
        "verdict": text("Verdict", width=112, help="Of the latest decision on the checkpoint"),
        "state": text("Evaluation", width=98),
        **{one: text(one.capitalize(), width=118) for one in capabilities},
        **{one.value: number(one.value.capitalize(), width=76) for one in UNWHOLE},
        "engine": text("Engine", width=200),
    }


def _task_columns() -> dict[str, object]:
    text, number = st.column_config.TextColumn, st.column_config.NumberColumn
    return {
        "task": text("Task", pinned=True),
        "capability": text("Capability"),
        "metric": text("Metric"),
        "better": text("Better", width=75, help="Whether a higher or a lower score is better"),
        "n": number("Items", width=70, help="Items that have a score"),
        "score": text("Score", width=80, alignment="right"),
        "interval": text("95 % interval", width=110, alignment="right"),
        **{one.value: number(one.value.capitalize(), width=85) for one in Outcome},
    }
