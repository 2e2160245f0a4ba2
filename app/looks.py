"""Colours and number formats that tables and charts share."""

from __future__ import annotations

import math

from evals.stats.verdict import Verdict

NO_VERDICT = "none"
"""Shown where a checkpoint has no decision."""

INK = "#1c2430"
MUTED = "#6b7480"
LIGHT = "#9aa3af"
GRID = "#e6e9ee"
LOSS = "#b3261e"
GAIN = "#1b7f4b"

VERDICT_COLOURS = {
    Verdict.PASS.value: "#1b7f4b",
    Verdict.FAIL.value: "#b3261e",
    Verdict.INCONCLUSIVE.value: "#a76300",
}
"""Dark enough on white to be read as text."""

PAGE_STYLE = """\
<style>
  [data-testid="stMainBlockContainer"] { padding: 4.5rem 2rem 2rem; }
</style>
"""
"""Streamlit leaves a sixth of a laptop's screen empty around a page."""

_SHADES = {
    Verdict.PASS.value: "#e3f3ea",
    Verdict.FAIL.value: "#fbe7e5",
    Verdict.INCONCLUSIVE.value: "#fdf1dc",
}

RUN_COLOURS = ("#1f5fa8", "#c2571a", "#2f7d5b", "#7b4ba0", "#946800", "#b1396b", "#4a6572")


def verdict_style(verdict: object) -> str:
    """Return the CSS of a cell that says a verdict."""
    name = str(verdict)
    if name not in _SHADES:
        return f"color: {MUTED}"
    return f"background-color: {_SHADES[name]}; color: {VERDICT_COLOURS[name]}; font-weight: 600"


def change_style(change: object) -> str:
    """Return the CSS of a cell that says what became of an item."""
    colours = {"lost": LOSS, "gained": GAIN}
    return f"color: {colours.get(str(change), MUTED)}; font-weight: 600"


def direction_style(direction: object) -> str:
    """Return the CSS of a cell that says where a series goes."""
    colours = {"worse": LOSS, "better": GAIN}
    return f"color: {colours.get(str(direction), MUTED)}; font-weight: 600"


def percent(value: float | None) -> str:
    """Return a share of 1 in percent; a dash where it is not known."""
    return "–" if value is None or math.isnan(value) else f"{100 * value:.1f} %"


def points(value: float | None) -> str:
    """Return a difference of shares in percentage points, with its sign."""
    if value is None or math.isnan(value):
        return "–"
    text = f"{100 * value:+.1f}"
    return "0.0" if float(text) == 0 else text.replace("-", "−")


def score_text(value: float | None, low: float | None, high: float | None) -> str:
    """Return a score in percent with its interval."""
    if value is None or math.isnan(value) or low is None or high is None:
        return "–"
    return f"{100 * value:.1f} ({100 * low:.1f}–{100 * high:.1f})"


def value_text(value: float | None) -> str:
    """Return a value of any size with four digits; NaN, infinities and none by name."""
    if value is None:
        return "none"
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else str(value).replace("-", "−")
    return f"{value:.4g}".replace("-", "−")


def range_text(low: float, high: float, *, signed: bool) -> str:
    """Return an interval: in percentage points where signed, else in percent."""
    if signed:
        return f"{points(low)} to {points(high)}"
    return f"{100 * low:.1f} to {100 * high:.1f}"


def time_text(at: str) -> str:
    """Return an ISO 8601 time in UTC to the minute."""
    return f"{at[:10]} {at[11:16]} UTC"
