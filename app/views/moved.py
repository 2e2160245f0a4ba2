"""What moved in training before a candidate that fell behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from app.links import Pages, show_link
from app.loading import Moved
from app.looks import direction_style, value_text
from app.plain import literal, plain
from app.series import change_table, join_names, moved_names, no_longer_finite
from app.views.notices import show_need


def show_moved(moved: Moved | None, folder: Path, pages: Pages) -> None:
    """Show which series changed in a window before a failed candidate, the largest shift first.

    Args:
        moved: None where the decision failed nothing.
        folder: Of the project.
        pages: Where links lead.
    """
    if moved is None:
        return
    window = moved.window
    st.subheader("What moved in training before it", anchor=False)
    if not moved.changes:
        show_need(
            f"There is no telemetry of {window.run} in the lake, so nothing is known of it.",
            folder,
            [f"pawl telemetry import PATH/TO/RUN --run {window.run}"],
        )
        return
    st.text(
        f"Steps {window.before_step + 1} to {window.at_step} of {plain(window.run)} against its "
        f"own steps up to {window.before_step}. This is an association, not a cause: it says what "
        "changed before this checkpoint, not that the change made the difference."
    )
    for one in no_longer_finite(moved.changes):
        st.text(
            f"• {plain(one.series)} has no shift: {one.window_unknown} of its "
            f"{one.window_unknown + one.window_n} values in these steps are NaN, infinite or none, "
            f"the first at step {one.first_unknown}."
        )
    _show_table(change_table(moved.changes))
    show_link(
        pages.run,
        f"See these series over {literal(window.run)}",
        run=window.run,
        window=window.text,
        series=join_names(moved_names(moved.changes)),
    )


def _show_table(table: pd.DataFrame) -> None:
    shown = pd.DataFrame(
        {
            "series": table["series"].map(plain),
            "shift": [_shift_text(shift) for shift in table["shift"]],
            "goes": table["goes"],
            "onset": table["onset"],
            "before": table["before"].map(_median_text),
            "window": table["window"].map(_median_text),
            "n": [f"{a} / {b}" for a, b in zip(table["before_n"], table["window_n"], strict=True)],
            "meaning": table["meaning"],
            "note": table["note"],
        }
    )
    st.dataframe(
        shown.style.map(direction_style, subset=["goes"]),
        hide_index=True,
        placeholder="–",
        column_config=_columns(),
    )
    st.caption(
        "Shift: median in the window − median before, in robust standard deviations (1.4826 MAD) "
        "of the steps before. Onset: the step from which on most values lie more than three of "
        "them away. A series with a trend moves by its trend, and of many series some always move."
    )


def _shift_text(shift: float) -> str:
    return "not testable" if pd.isna(shift) else f"{shift:+.1f}".replace("-", "−")


def _median_text(median: float) -> str:
    return "–" if pd.isna(median) else value_text(median)


def _columns() -> dict[str, Any]:
    text, number = st.column_config.TextColumn, st.column_config.NumberColumn
    return {
        "series": text("Series", pinned=True, width=180),
        "shift": text("Shift", width=90, alignment="right"),
        "goes": text(
            "For the", width=75, help="Where the series has a worse, from a shift of 1 on"
        ),
        "onset": number("Onset", width=70, format="%d", help="Step from which on it stays away"),
        "before": text("Median before", width=110, alignment="right"),
        "window": text("In the window", width=110, alignment="right"),
        "n": text(
            "Values", width=85, alignment="right", help="Finite values before / in the window"
        ),
        "meaning": text("Meaning", width=300),
        "note": text("Note", width=420),
    }
