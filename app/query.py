"""What stands in the URL: the only state of the app, so that a link opens the same view again.

Widgets are shown with the value of the URL and write theirs back before the page runs again;
``st.session_state`` is touched here only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import streamlit as st

from app.plain import plain
from evals.identity import fingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class AppQuery:
    """The URL's parameters; None: not given."""

    run: str | None = None
    suite: str | None = None
    evaluation: str | None = None
    """Id of the row that is open in the overview."""
    candidate: str | None = None
    """``RUN@STEP``."""
    baseline: str | None = None
    """``RUN@STEP``."""
    candidate_evaluation: str | None = None
    """Id, where not the best pair of evaluations is meant but this one."""
    baseline_evaluation: str | None = None
    change: str | None = None
    task: str | None = None
    outcome: str | None = None
    item: str | None = None
    """Id of the item that is open."""
    item_task: str | None = None
    """The item's task."""
    decision: str | None = None
    series: str | None = None
    """Names of series, as ``app.series.join_names`` writes them."""
    window: str | None = None
    """Steps that are shaded, as ``app.series.Window`` writes them."""


NAMES = tuple(field.name for field in fields(AppQuery))


def read_query() -> AppQuery:
    """Return what the URL says; parameters that are none of the app's are ignored."""
    return AppQuery(**{name: st.query_params[name] for name in NAMES if name in st.query_params})


def write_query(values: Mapping[str, str | None]) -> None:
    """Set parameters of the URL, or remove those that are None."""
    for name, value in values.items():
        if value is not None:
            st.query_params[name] = value
        elif name in st.query_params:
            del st.query_params[name]


def choose(
    label: str,
    options: Sequence[str],
    current: str | None,
    *,
    name: str,
    everything: str | None = None,
    clears: Sequence[str] = (),
) -> None:
    """Show a choice whose value stands in the URL.

    Args:
        label: What is chosen.
        options: Distinct values.
        current: What the URL says; the first option where it is none of them.
        name: The parameter.
        everything: Label of the choice that removes the parameter; None: there is no such choice.
        clears: Parameters that another value makes meaningless.
    """
    values: list[str | None] = [*([None] if everything is not None else []), *options]
    if not values:
        return
    labels = [everything or "" if value is None else plain(value) for value in values]
    key = f"choice-{name}"
    st.session_state[key] = values.index(current) if current in values else 0

    def chosen() -> None:
        write_query({**dict.fromkeys(clears), name: values[st.session_state[key]]})

    st.selectbox(
        label,
        range(len(values)),
        format_func=lambda number: labels[number],
        key=key,
        on_change=chosen,
    )


def choose_several(
    label: str,
    options: Sequence[str],
    current: Sequence[str],
    *,
    name: str,
    join: Callable[[Sequence[str]], str],
) -> None:
    """Show a choice of several whose values stand in the URL as one parameter.

    Args:
        label: What is chosen.
        options: Distinct values.
        current: Those that are chosen.
        name: The parameter.
        join: Makes its text; none chosen removes it.
    """
    key = f"choice-{name}"
    st.session_state[key] = list(current)

    def chosen() -> None:
        write_query({name: join(st.session_state[key]) or None})

    st.multiselect(label, options, format_func=plain, key=key, on_change=chosen)


def choose_row(
    table: Any,
    rows: Sequence[Mapping[str, str]],
    current: Mapping[str, str | None],
    *,
    name: str,
    **looks: Any,
) -> None:
    """Show a table whose selected row stands in the URL.

    Args:
        table: A data frame, or one with a style.
        rows: For each of its rows the parameters that name it.
        current: The same parameters as the URL has them.
        name: Of the table, distinct on its page.
        looks: Handed on to ``st.dataframe``.
    """
    key = f"table-{name}-{fingerprint([dict(row) for row in rows])[:16]}"
    selected = [number for number, row in enumerate(rows) if dict(row) == dict(current)]

    def chosen() -> None:
        numbers = st.session_state[key]["selection"]["rows"]
        write_query(rows[numbers[0]] if numbers else dict.fromkeys(current))

    st.dataframe(
        table,
        key=key,
        on_select=chosen,
        selection_mode="single-row",
        selection_default={"selection": {"rows": selected}},
        hide_index=True,
        **looks,
    )
