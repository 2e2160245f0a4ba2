"""Compare: what changed between two checkpoints, by task and capability, and on which items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from app.charts import difference_chart
from app.frames import CHANGES, comparison_table, question_text
from app.loading import SHOWN_ITEMS, Comparison
from app.looks import change_style, percent, points, range_text
from app.plain import literal, plain
from app.query import AppQuery, choose, choose_row
from evals.evaluation import EvaluationState
from evals.scoring import Outcome

SHOWN_ID = 12
"""Characters of an item's id in a list; `pawl show` takes them for the whole."""

_PINNED = ("candidate_evaluation", "baseline_evaluation", "item", "item_task")


def show_choices(names: Sequence[str], suites: Sequence[str], query: AppQuery) -> None:
    """Show the choice of both sides and of the suite."""
    left, middle, right = st.columns([4, 4, 2])
    with left:
        choose("Candidate", names, query.candidate, name="candidate", clears=_PINNED)
    with middle:
        choose("Baseline", names, query.baseline, name="baseline", clears=_PINNED)
    with right:
        choose("Suite", suites, query.suite, name="suite", clears=_PINNED)


def show_conditions(comparison: Comparison) -> None:
    """Show what besides the weights is not the same on both sides, and what is not whole."""
    sides = comparison.sides
    for side in (sides.candidate, sides.baseline):
        if side.state is not EvaluationState.COMPLETE:
            st.warning(
                f"The evaluation of {literal(side.checkpoint.name)} is {side.state.value}: "
                "what it lacks counts as missing."
            )
    if comparison.differences:
        st.warning("Besides the weights, these conditions are not the same on both sides:")
        rows = [
            {
                "condition": one.name,
                "task": one.task or "all",
                "baseline": plain(one.baseline),
                "candidate": plain(one.candidate),
            }
            for one in comparison.differences
        ]
        st.dataframe(pd.DataFrame(rows), hide_index=True)
    else:
        st.caption("Engine, sampling and templates are the same on both sides.")
    for names, side_name in (
        (comparison.only_candidate, "baseline"),
        (comparison.only_baseline, "candidate"),
    ):
        if names:
            st.warning(f"The {side_name} lacks: {literal(', '.join(names))}")


def show_tables(comparison: Comparison) -> None:
    """Show the differences by capability and by task."""
    capabilities = comparison_table(comparison.capabilities)
    tasks = comparison_table(comparison.tasks)
    st.subheader("By capability", anchor=False)
    st.altair_chart(difference_chart(capabilities), width="stretch")
    _show_comparisons(capabilities.drop(columns=["capability"]), "Capability")
    st.subheader("By task", anchor=False)
    _show_comparisons(tasks, "Task")
    st.caption(
        "Difference: candidate − baseline in percentage points, paired item by item, so that + is "
        "better for every task; interval at 95 %, with missing scores at their worst and their "
        "best. Baseline and candidate: mean scores in percent, as the tasks report them."
    )


def show_items(
    changed: pd.DataFrame,
    chosen: pd.DataFrame,
    questions: Mapping[tuple[str, str], Mapping[str, Any]],
    query: AppQuery,
) -> None:
    """Show the items whose score is not the same, with their filters.

    Args:
        changed: Of ``frames.changed_items``.
        chosen: Those of them that fit the filters.
        questions: Documents by task and item id.
        query: The filters, and which item is open.
    """
    st.subheader("Items that changed", anchor=False)
    columns = st.columns([3, 3, 3, 3])
    with columns[0]:
        choose("Change", CHANGES, query.change, name="change", everything="All changes")
    with columns[1]:
        tasks = sorted(set(changed["task"]))
        choose("Task", tasks, query.task, name="task", everything="All tasks")
    with columns[2]:
        outcomes = [outcome.value for outcome in Outcome]
        choose("Outcome", outcomes, query.outcome, name="outcome", everything="All outcomes")
    if chosen.empty:
        st.caption("No item changed." if changed.empty else "No item fits these filters.")
        return
    listed = chosen.head(SHOWN_ITEMS)
    counts = chosen["change"].value_counts()
    said = ", ".join(f"{counts[change]} {change}" for change in CHANGES if change in counts)
    more = f"; the first {SHOWN_ITEMS} are listed" if len(chosen) > SHOWN_ITEMS else ""
    st.caption(f"{said}{more}. Select a row to read both answers.")
    keys = list(zip(listed["task"], listed["item"], strict=True))
    shown = pd.DataFrame(
        {
            "change": listed["change"],
            "task": listed["task"].map(plain),
            "question": [question_text(questions.get(key)) for key in keys],
            "baseline": listed["baseline"].map(percent),
            "candidate": listed["candidate"].map(percent),
            "baseline_outcome": listed["baseline_outcome"],
            "candidate_outcome": listed["candidate_outcome"],
            "item": listed["item"].str[:SHOWN_ID],
        }
    )
    choose_row(
        shown.style.map(change_style, subset=["change"]),
        [{"item_task": task, "item": item} for task, item in keys],
        {"item_task": query.item_task, "item": query.item},
        name="items",
        column_config=_item_columns(),
    )


def _show_comparisons(table: pd.DataFrame, what: str) -> None:
    shown = table.assign(
        name=table["name"].map(plain),
        baseline=table["baseline"].map(percent),
        candidate=table["candidate"].map(percent),
        value=table["value"].map(points),
        interval=[
            range_text(low, high, signed=True)
            for low, high in zip(table["low"], table["high"], strict=True)
        ],
        missing=[
            f"{theirs} / {ours}"
            for theirs, ours in zip(
                table["baseline_missing"], table["candidate_missing"], strict=True
            )
        ],
    )
    order = [name for name in _comparison_columns(what) if name in shown.columns]
    st.dataframe(shown[order], hide_index=True, column_config=_comparison_columns(what))


def _comparison_columns(what: str) -> dict[str, object]:
    text, number = st.column_config.TextColumn, st.column_config.NumberColumn
    return {
        "name": text(what, pinned=True, width=190),
        "capability": text("Capability", width=120),
        "n": number("Items", width=65, help="Items that have a score on both sides"),
        "baseline": text("Baseline", width=85, alignment="right"),
        "candidate": text("Candidate", width=85, alignment="right"),
        "value": text("Difference", width=90, alignment="right"),
        "interval": text("95 % interval", width=130, alignment="right"),
        "lost": number("Lost", width=60, help="Items that got worse"),
        "gained": number("Gained", width=70, help="Items that got better"),
        "missing": text(
            "Missing",
            width=85,
            alignment="right",
            help="Items without a full score: baseline / candidate",
        ),
    }


def _item_columns() -> dict[str, object]:
    text = st.column_config.TextColumn
    return {
        "change": text("Change", width=80),
        "task": text("Task", width=150),
        "question": text("Question", width=360),
        "baseline": text("Baseline", width=80, alignment="right"),
        "candidate": text("Candidate", width=85, alignment="right"),
        "baseline_outcome": text("Outcome, baseline", width=130),
        "candidate_outcome": text("Outcome, candidate", width=130),
        "item": text("Item", width=110),
    }
