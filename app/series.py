"""From telemetry to tidy tables and from the URL to what is chosen of it; nothing knows Streamlit.

A shift is in robust standard deviations of the run's own past; see ``evals.telemetry``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

import pandas as pd
import pyarrow as pa

from app.frames import latest_decisions
from app.looks import NO_VERDICT
from evals.stats.verdict import Verdict
from evals.telemetry import CANONICAL, Change, Untestable, describe, find_canonical, goes
from storage.aggregates import DecisionHead
from storage.checkpoints import StoredCheckpoint
from storage.naming import parse_name
from storage.telemetry import SeriesSummary
from storage.text import decode_text

SHOWN_SERIES = 9
"""Series that are drawn where none is chosen."""

LINKED_SERIES = 6
"""Moved series that a link leads to."""

FINITE = "finite"

_FIRST_LOOK = (
    *("reward/mean", "entropy", "kl/reference", "logprob_difference/mean"),
    *("importance_ratio/mean", "staleness/mean", "response_length/mean", "truncated_share"),
    "grad_norm",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Steps of a run that are looked at, against all before them."""

    run: str
    before_step: int
    """Last step of the past."""
    at_step: int
    """Last step of the window."""

    @property
    def text(self) -> str:
        """Return its steps as they stand in the URL."""
        return f"{self.before_step}-{self.at_step}"


def read_window(run: str, text: str | None) -> Window | None:
    """Return the window that the URL names; None where it names none."""
    before, _, at = (text or "").partition("-")
    if not (before.isascii() and before.isdigit() and at.isascii() and at.isdigit()):
        return None
    return Window(run=run, before_step=int(before), at_step=int(at))


def join_names(names: Iterable[str]) -> str:
    """Return names as one parameter of the URL.

    >>> join_names(["reward/mean", "a,b"])
    'reward/mean,a%2Cb'
    """
    return ",".join(quote(name, safe="/", errors="surrogatepass") for name in names)


def split_names(text: str | None) -> list[str]:
    """Return the names that ``join_names`` was given."""
    return [unquote(name, errors="surrogatepass") for name in (text or "").split(",") if name]


def window_of(
    document: Mapping[str, Any], checkpoints: Sequence[StoredCheckpoint]
) -> Window | None:
    """Return the steps that lie between a decision's candidate and what it fell behind.

    They begin after the baseline where it is an earlier checkpoint of the run, else after the
    checkpoint before the candidate, else with the run.

    Returns:
        None where nothing failed.
    """
    verdicts = [document["verdict"], *(rule["verdict"] for rule in document["rules"])]
    if Verdict.FAIL.value not in verdicts:
        return None
    run, at_step = parse_name(str(document["candidate"]))
    of, step = parse_name(document["baseline"]) if document["baseline"] else ("", at_step)
    if of != run or step >= at_step:
        earlier = [one.ref.step for one in checkpoints if one.ref.run == run]
        step = max((one for one in earlier if one < at_step), default=0)
    return Window(run=run, before_step=step, at_step=at_step)


def change_table(changes: Sequence[Change]) -> pd.DataFrame:
    """Return one row for each series, in the order given.

    Columns: ``series``, ``meaning`` (empty: not canonical), ``shift`` (NaN: not testable),
    ``goes`` (worse, better or empty), ``onset`` (NA: none), ``before``, ``window`` (medians),
    ``before_n``, ``window_n`` (finite values) and ``note``.
    """
    rows = [
        {
            "series": one.series,
            "meaning": _meaning(one.series),
            "shift": one.shift,
            "goes": goes(one),
            "onset": one.onset,
            "before": one.past_median,
            "window": one.window_median,
            "before_n": one.past_n,
            "window_n": one.window_n,
            "note": describe(one),
        }
        for one in changes
    ]
    columns = ["series", "meaning", "shift", "goes", "onset", "before", "window"]
    table = pd.DataFrame(rows, columns=[*columns, "before_n", "window_n", "note"])
    numbers = dict.fromkeys(["shift", "before", "window"], "float64")
    return table.astype({**numbers, "onset": "Int64"})


def moved_names(changes: Sequence[Change]) -> list[str]:
    """Return the series worth looking at first: what moved most, and what stopped being finite."""
    lost = [one.series for one in no_longer_finite(changes)]
    moved = [one.series for one in changes if one.shift is not None]
    return [*moved[: LINKED_SERIES - min(len(lost), 2)], *lost[:2]]


def no_longer_finite(changes: Sequence[Change]) -> list[Change]:
    """Return the series that have no shift because of what was logged in the window."""
    return [
        one
        for one in changes
        if one.untestable is Untestable.NOT_FINITE and one.first_unknown is not None
    ]


def series_table(summaries: Sequence[SeriesSummary]) -> pd.DataFrame:
    """Return one row for each series, canonical ones first.

    Columns: ``series``, ``meaning``, ``unit`` (empty: not canonical), ``n``, ``first``, ``last``
    (as logged, None too), ``min``, ``max`` (None: no finite value), ``non_finite``, ``none``,
    ``attempts`` and ``logged_as``.
    """
    by_name = {one.series: one for one in summaries}
    rows = []
    for name in in_order(by_name):
        one, canonical = by_name[name], find_canonical(name)
        rows.append(
            {
                "series": name,
                "meaning": _meaning(name),
                "unit": canonical.unit if canonical else "",
                "n": one.n,
                "first": one.first,
                "last": one.last,
                "min": one.least,
                "max": one.most,
                "non_finite": one.non_finite,
                "none": one.none,
                "attempts": one.attempts,
                "logged_as": ", ".join(one.raw_names),
            }
        )
    counts = dict.fromkeys(["n", "non_finite", "none", "attempts"], "int64")
    return pd.DataFrame(rows, dtype=object).astype(counts)


def in_order(names: Iterable[str]) -> list[str]:
    """Return series by what they mean: the canonical ones in their order, then the others."""
    given = set(names)
    canonical = [one.name for one in CANONICAL if one.name in given]
    parts = sorted(name for name in given - set(canonical) if find_canonical(name) is not None)
    after = canonical.index("reward/std") + 1 if "reward/std" in canonical else 0
    after = after or int("reward/mean" in canonical)
    known = [*canonical[:after], *parts, *canonical[after:]]
    return [*known, *sorted(given - set(known))]


def chosen_series(names: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """Return which series to draw: those of the URL that there are, else a first look.

    Args:
        names: All there are, in order.
        wanted: What the URL names.
    """
    chosen = [name for name in dict.fromkeys(wanted) if name in names]
    first_look = [name for name in _FIRST_LOOK if name in names]
    rest = [name for name in names if name not in first_look]
    return chosen or [*first_look, *rest][:SHOWN_SERIES]


def line_table(thinned: pa.Table) -> pd.DataFrame:
    """Return what ``storage.telemetry.load_thinned`` read, with names as they are."""
    table: pd.DataFrame = thinned.to_pandas()
    return table.assign(series=table["series"].map(decode_text))


def checkpoint_marks(
    run: str, checkpoints: Sequence[StoredCheckpoint], heads: Sequence[DecisionHead]
) -> pd.DataFrame:
    """Return a run's checkpoints with the verdict of the latest decision on each.

    Columns: ``step``, ``checkpoint`` and ``verdict``; by step.
    """
    latest = latest_decisions(heads)
    rows = {
        one.ref.step: {
            "step": one.ref.step,
            "checkpoint": one.ref.name,
            "verdict": head.verdict if head else NO_VERDICT,
        }
        for one in checkpoints
        if one.ref.run == run
        for head in [latest.get((one.ref.name, one.ref.digest))]
    }
    columns = ["step", "checkpoint", "verdict"]
    return pd.DataFrame([rows[step] for step in sorted(rows)], columns=columns)


def step_range(marks: pd.DataFrame, summaries: Sequence[SeriesSummary]) -> tuple[int, int]:
    """Return the first and the last step of checkpoints and telemetry; (0, 1) of nothing."""
    steps = [int(step) for step in marks["step"]]
    steps += [step for one in summaries for step in (one.first_step, one.last_step)]
    first, last = (min(steps), max(steps)) if steps else (0, 1)
    return first, max(last, first + 1)


def _meaning(name: str) -> str:
    canonical = find_canonical(name)
    return canonical.meaning if canonical else ""
