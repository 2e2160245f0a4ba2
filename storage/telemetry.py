"""Telemetry in the lake: every value of every attempt once; readers get the latest attempt's.

A restart replays steps, so a step may have a value of each attempt. A file that is read again
gives the same points, and one that began anew (a history that goes back to a checkpoint) gives
other values at steps that are stored: those are of a later attempt.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import count

import numpy as np
import pyarrow as pa

from evals.telemetry import Point, SeriesValues
from storage.connection import Lake, Row, Transaction, source, transaction
from storage.tables import TELEMETRY
from storage.text import decode_text, encode_text

_COLUMNS = tuple(TELEMETRY.schema.names)
_SAME = 1e-6
"""Relative difference of one value in two files: TensorBoard keeps it in single precision."""

_LATEST = (
    "QUALIFY row_number() OVER (PARTITION BY series, step ORDER BY attempt DESC, raw_name) = 1"
)

_Key = tuple[str, str, int]
"""Series, raw name and step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesSummary:
    """One series of a run in numbers, of the latest attempt at each step."""

    series: str
    raw_names: tuple[str, ...]
    n: int
    """Values, those that are not finite or none among them."""
    first_step: int
    last_step: int
    first: float | None
    """As logged; None: logged as none."""
    last: float | None
    least: float | None
    """Of the finite values; None where there is none."""
    most: float | None
    non_finite: int
    """NaN and infinite ones."""
    none: int
    """Logged as none."""
    attempts: int
    """Attempts that logged it."""


def put_points(lake: Lake, points: Iterable[Point]) -> int:
    """Return how many points of a run were not stored; what is stored stays as it is.

    Attempts count from what the lake has: where points contradict stored values of their
    attempts, they are stored under later ones.

    Args:
        lake: The lake.
        points: Of one run; of several with one key the last counts.

    Raises:
        ValueError: They are of several runs.
    """
    given = tuple(points)
    runs = {point.run for point in given}
    if len(runs) > 1:
        raise ValueError(f"points of several runs: {', '.join(sorted(runs))}")
    if not given:
        return 0
    run = encode_text(given[0].run)

    def write(tx: Transaction) -> int:
        stored = _stored_values(tx, run)
        later = _later_attempts(given, stored)
        new = {
            (point.attempt + later, *_key(point)): replace(point, attempt=point.attempt + later)
            for point in given
            if point.attempt + later not in stored.get(_key(point), {})
        }
        return tx.insert_missing(TELEMETRY, _rows(tuple(new.values())))

    return transaction(lake, write)


def load_points(
    lake: Lake,
    run: str,
    *,
    series: Sequence[str] | None = None,
    first_step: int | None = None,
    last_step: int | None = None,
    every_attempt: bool = False,
    snapshot: int | None = None,
) -> tuple[Point, ...]:
    """Return a run's points by series and step.

    Args:
        lake: The lake.
        run: The run's name.
        series: These only; None: all.
        first_step: From this step on; None: from the beginning.
        last_step: Up to this step; None: to the end.
        every_attempt: Also what a restart replayed; else the latest attempt at each step.
        snapshot: The lake as it was then.
    """
    where, parameters = _where(run, series, first_step, last_step)
    found = lake.table(
        f"SELECT {', '.join(_COLUMNS)} FROM {source(TELEMETRY, snapshot)} WHERE {where} "
        f"{'' if every_attempt else _LATEST} ORDER BY series, step, attempt, raw_name",
        parameters,
    )
    columns = (found.column(name).to_pylist() for name in _COLUMNS)
    return tuple(
        Point(
            run=decode_text(run_name),
            attempt=attempt,
            series=decode_text(name),
            raw_name=decode_text(raw_name),
            step=step,
            value=value,
            logged_at=logged_at,
        )
        for run_name, attempt, name, raw_name, step, value, logged_at in zip(*columns, strict=True)
    )


def load_series(
    lake: Lake,
    run: str,
    *,
    series: Sequence[str] | None = None,
    last_step: int | None = None,
    snapshot: int | None = None,
) -> dict[str, SeriesValues]:
    """Return a run's series as arrays, without an object for each value; see ``load_points``."""
    where, parameters = _where(run, series, None, last_step)
    found = lake.table(
        f"SELECT series, step, value FROM {source(TELEMETRY, snapshot)} WHERE {where} {_LATEST} "
        "ORDER BY series, step",
        parameters,
    )
    names = found.column("series").to_numpy()
    steps = found.column("step").to_numpy()
    values = found.column("value").to_numpy().astype(np.float64)
    begins = np.ones(len(names), dtype=bool)
    begins[1:] = names[1:] != names[:-1]
    starts = np.flatnonzero(begins)
    ends = np.append(starts, len(names))[1:]
    return {
        decode_text(names[start]): SeriesValues(steps=steps[start:end], values=values[start:end])
        for start, end in zip(starts, ends, strict=True)
    }


def load_thinned(
    lake: Lake,
    run: str,
    series: Sequence[str],
    *,
    buckets: int,
    snapshot: int | None = None,
) -> pa.Table:
    """Return what a chart needs of some series, at most a few rows for each of its columns.

    The steps of all these series are cut into equal buckets. Of each, a series keeps its least
    and its most finite value, so that no peak is lost, and the first of each kind of the others.

    Returns:
        ``series`` (as stored), ``step``, ``value`` and ``kind`` (``finite``, ``NaN``, ``infinite``
        or ``none``), by series and step.
    """
    where, parameters = _where(run, series, None, None)
    return lake.table(
        f"""
        WITH latest AS (
            SELECT series, step, value FROM {source(TELEMETRY, snapshot)} WHERE {where} {_LATEST}
        ),
        placed AS (
            SELECT series, step, value,
                CASE WHEN value IS NULL THEN 'none' WHEN isnan(value) THEN 'NaN'
                    WHEN isinf(value) THEN 'infinite' ELSE 'finite' END AS kind,
                floor((step - min(step) OVER ())::DOUBLE * ?
                    / ((max(step) OVER ())::DOUBLE - min(step) OVER () + 1)) AS bucket
            FROM latest
        )
        SELECT DISTINCT series, unnest([arg_min(step, value), arg_max(step, value)]) AS step,
            unnest([min(value), max(value)]) AS value, kind
        FROM placed WHERE kind = 'finite' GROUP BY series, bucket, kind
        UNION ALL
        SELECT series, min(step) AS step, NULL AS value, kind
        FROM placed WHERE kind <> 'finite' GROUP BY series, bucket, kind
        ORDER BY series, step, kind
        """,
        [*parameters, buckets],
    )


def load_series_summaries(
    lake: Lake, run: str, *, snapshot: int | None = None
) -> tuple[SeriesSummary, ...]:
    """Return each series of a run in numbers, by name; none where the run has no telemetry."""
    where, parameters = _where(run, None, None, None)
    found = lake.rows(
        f"""
        WITH logged AS (SELECT * FROM {source(TELEMETRY, snapshot)} WHERE {where}),
        latest AS (SELECT * FROM logged {_LATEST}),
        attempts AS (
            SELECT series, count(DISTINCT attempt) AS attempts,
                list(DISTINCT raw_name ORDER BY raw_name) AS raw_names
            FROM logged GROUP BY series
        )
        SELECT series, any_value(raw_names), count(*), min(step), max(step),
            first(value ORDER BY step), last(value ORDER BY step),
            min(value) FILTER (isfinite(value)), max(value) FILTER (isfinite(value)),
            count(*) FILTER (NOT isfinite(value)), count(*) FILTER (value IS NULL),
            any_value(attempts)
        FROM latest JOIN attempts USING (series) GROUP BY series ORDER BY series
        """,
        parameters,
    )
    return tuple(_summary(row) for row in found)


def load_telemetry_runs(lake: Lake, *, snapshot: int | None = None) -> tuple[str, ...]:
    """Return the names of the runs that have telemetry."""
    found = lake.rows(f"SELECT DISTINCT run FROM {source(TELEMETRY, snapshot)} ORDER BY run")
    return tuple(decode_text(run) for (run,) in found)


def _where(
    run: str, series: Sequence[str] | None, first_step: int | None, last_step: int | None
) -> tuple[str, list[object]]:
    """Return the condition on what is asked for, and its parameters."""
    conditions: dict[str, object] = {"run = ?": encode_text(run)}
    if series is not None:
        names = [encode_text(name) for name in series]
        conditions["series IN (SELECT unnest(?::VARCHAR[]))"] = names
    if first_step is not None:
        conditions["step >= ?"] = first_step
    if last_step is not None:
        conditions["step <= ?"] = last_step
    return " AND ".join(conditions), list(conditions.values())


def _summary(row: Row) -> SeriesSummary:
    """Return a row whose columns are the record's fields."""
    values = dict(zip((field.name for field in fields(SeriesSummary)), row, strict=True))
    names = {
        "series": decode_text(values["series"]),
        "raw_names": tuple(decode_text(name) for name in values["raw_names"]),
    }
    return SeriesSummary(**{**values, **names})


def _key(point: Point) -> _Key:
    return encode_text(point.series), encode_text(point.raw_name), point.step


def _stored_values(tx: Transaction, run: str) -> dict[_Key, dict[int, float | None]]:
    """Return what is stored of a run: by key the values of each attempt."""
    values: dict[_Key, dict[int, float | None]] = {}
    for attempt, series, raw_name, step, value in tx.rows(
        "SELECT attempt, series, raw_name, step, value FROM lake.telemetry WHERE run = ?", [run]
    ):
        values.setdefault((series, raw_name, step), {})[attempt] = value
    return values


def _later_attempts(points: Sequence[Point], stored: dict[_Key, dict[int, float | None]]) -> int:
    """Return by how much the points' attempts have to be raised so that none contradicts."""
    contradicted = {
        attempt - point.attempt
        for point in points
        for attempt, value in stored.get(_key(point), {}).items()
        if not _same(point.value, value)
    }
    return next(later for later in count() if later not in contradicted)


def _same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=_SAME) or (math.isnan(one) and math.isnan(other))


def _rows(points: Sequence[Point]) -> pa.Table:
    columns = {
        "run": [encode_text(point.run) for point in points],
        "attempt": [point.attempt for point in points],
        "series": [encode_text(point.series) for point in points],
        "raw_name": [encode_text(point.raw_name) for point in points],
        "step": [point.step for point in points],
        "value": [point.value for point in points],
        "logged_at": [point.logged_at for point in points],
    }
    return pa.table(columns, schema=TELEMETRY.schema)
