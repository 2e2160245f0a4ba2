"""The app's pages, as views link to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """The pages by name; each is a ``streamlit.Page``."""

    overview: Any
    compare: Any
    decisions: Any
    run: Any


def show_link(page: Any, label: str, **values: str | None) -> None:
    """Show a link to a page that opens with these parameters in its URL."""
    given = {name: value for name, value in values.items() if value}
    st.page_link(page, label=label, query_params=given, icon=":material/arrow_forward:")
