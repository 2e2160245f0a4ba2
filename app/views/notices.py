"""What a page says where there is nothing to show, or something is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from app.plain import literal
from evals.errors import PawlError


def show_problem(error: PawlError) -> None:
    """Show what could not be done and how to mend it, on one line."""
    where = f"{literal(error.where)}: " if error.where else ""
    fix = f" — {literal(error.fix)}" if error.fix else ""
    st.error(f"{where}{literal(error.what)}{fix}", icon=":material/error:")


def show_welcome(folder: Path) -> None:
    """Show what to do in a project that has no evaluation yet."""
    st.title("No checkpoint has been evaluated yet", anchor=False)
    st.text(f"Project {folder}")
    st.text("1. See what works on this machine, and how to mend the rest:")
    _show_commands(folder, ["pawl doctor"])
    st.text("2. Evaluate two checkpoints of a run, the baseline and the candidate:")
    _show_commands(
        folder,
        [
            "pawl eval PATH/TO/checkpoint-100 --suite smoke",
            "pawl eval PATH/TO/checkpoint-200 --suite smoke",
        ],
    )
    st.text("3. Let a policy decide on the candidate (RUN is the name of the run's folder):")
    _show_commands(folder, ["pawl gate RUN@200 --against RUN@100 --policy smoke"])
    st.text("This page shows the evaluations as soon as it is loaded again.")


def show_need(what: str, folder: Path, commands: Sequence[str]) -> None:
    """Show what is missing and the commands that make it."""
    st.info(literal(what))
    _show_commands(folder, commands)


def _show_commands(folder: Path, commands: Sequence[str]) -> None:
    lines = [f"{command} --project {_quoted(str(folder))}" for command in commands]
    st.code("\n".join(lines), language=None)


def _quoted(text: str) -> str:
    safe = text.replace("'", "'\\''")
    return text if all(c.isalnum() or c in "/._-" for c in text) else f"'{safe}'"
