"""Dialects: what each framework calls the canonical series.

Names are exact. A name that no dialect knows is a series under the name it was logged by.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from evals.telemetry import CANONICAL, Point, find_canonical
from pipelines.telemetry.rows import Row, number_attempts


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What one logged name stands for."""

    raw_name: str
    """As logged; one ``*`` stands for any text without a slash."""
    series: str
    """Canonical; a ``*`` is the text that the raw name has there."""
    note: str = ""
    """What is not as the canonical series has it."""
    unless: str | None = None
    """Name that, where the run logs it too, says that this one means something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The names of one framework."""

    name: str
    known: tuple[Known, ...] = ()
    """Where several are of one series, the first that a run logs is it, and the others keep their
    names. Canonical names need no entry."""
    ignored: frozenset[str] = frozenset()
    """Names that say where a row lies, not what was measured."""
    prefixes: tuple[tuple[str, str], ...] = ()
    """What TensorBoard's tags begin with, and what the same names begin with elsewhere."""


LAB = Dialect(name="lab")

TRAINER = Dialect(
    name="trainer",
    known=(
        Known(raw_name="reward", series="reward/mean"),
        Known(raw_name="reward_std", series="reward/std"),
        Known(raw_name="rewards/*/mean", series="reward/*"),
        Known(raw_name="rewards/*", series="reward/*", note="before TRL 0.17"),
        Known(
            raw_name="kl",
            series="kl/reference",
            note="k3; absent where beta is 0; the asynchronous trainer's is to the sampler",
            unless="ratio",
        ),
        Known(
            raw_name="sampling/importance_sampling_ratio/mean",
            series="importance_ratio/mean",
            note="after truncation or masking: near 0 where everything was masked",
        ),
        Known(raw_name="ratio", series="importance_ratio/mean", note="of the asynchronous trainer"),
        Known(
            raw_name="sampling/importance_sampling_ratio/max",
            series="importance_ratio/max",
            note="after truncation or masking: capped",
        ),
        Known(
            raw_name="sampling/sampling_logp_difference/mean",
            series="logprob_difference/mean",
            note="mean over processes of their means; tokens that vLLM did not score are left out",
        ),
        Known(raw_name="sampling/sampling_logp_difference/max", series="logprob_difference/max"),
        Known(raw_name="sample/staleness_mean", series="staleness/mean"),
        Known(raw_name="sample/staleness_max", series="staleness/max"),
        Known(raw_name="completions/mean_length", series="response_length/mean"),
        Known(raw_name="completion_length", series="response_length/mean", note="before TRL 0.17"),
        Known(raw_name="completions/max_length", series="response_length/max"),
        Known(raw_name="completions/clipped_ratio", series="truncated_share"),
        Known(raw_name="frac_reward_zero_std", series="zero_variance_share"),
        Known(raw_name="step_time", series="time/step_s"),
        Known(raw_name="perf/step_s", series="time/step_s"),
        Known(raw_name="perf/weight_sync_s", series="time/weight_sync_s"),
        Known(raw_name="weight_sync_time_s", series="time/weight_sync_s"),
    ),
    ignored=frozenset({"epoch", "num_tokens", "num_input_tokens_seen", "total_flos"}),
    prefixes=(("train/", ""), ("eval/", "eval_"), ("test/", "test_")),
)

DIALECTS = (LAB, TRAINER)

_WHOLE = frozenset(one.name for one in CANONICAL)
"""Canonical names that no part's may turn into."""


def find_dialect(names: Iterable[str]) -> Dialect:
    """Return the dialect that knows the most of some names; the first of several."""
    given = list(names)
    return max(DIALECTS, key=lambda dialect: sum(_is_known(name, dialect) for name in given))


def name_series(names: Iterable[str], dialect: Dialect) -> dict[str, str]:
    """Return the series of each name that a run logs, no canonical one twice."""
    given = dict.fromkeys(names)
    series = {name: name for name in given}
    taken = {name for name in given if find_canonical(name) is not None}
    for known in dialect.known:
        if known.unless in given:
            continue
        for name in given:
            found = _canonical_name(known, name)
            if found is not None and found not in taken and series[name] == name:
                series[name] = found
                taken.add(found)
    return series


def build_points(run: str, rows: Sequence[Row], dialect: Dialect) -> tuple[Point, ...]:
    """Return the rows of a run, in the order in which they were logged, as points."""
    logged = [_as_elsewhere(row, dialect) for row in rows]
    series = name_series((name for row in logged for name in row.values), dialect)
    return tuple(
        Point(
            run=run,
            attempt=attempt,
            series=series[name],
            raw_name=name,
            step=row.step,
            value=value,
            logged_at=row.logged_at,
        )
        for row, attempt in zip(logged, number_attempts(logged), strict=True)
        for name, value in row.values.items()
    )


def _is_known(name: str, dialect: Dialect) -> bool:
    return find_canonical(name) is not None or any(
        _canonical_name(known, name) is not None for known in dialect.known
    )


def _canonical_name(known: Known, name: str) -> str | None:
    """Return the canonical name that an entry gives a logged one; None where it is about others."""
    if "*" not in known.raw_name:
        return known.series if name == known.raw_name else None
    found = re.fullmatch(re.escape(known.raw_name).replace(r"\*", "([^/]+)"), name)
    if found is None:
        return None
    series = known.series.replace("*", found[1])
    return None if series in _WHOLE else series


def _as_elsewhere(row: Row, dialect: Dialect) -> Row:
    """Return a row under the names that do not depend on where it was logged to."""
    values: Mapping[str, float | None] = {
        elsewhere: value
        for name, value in row.values.items()
        if (elsewhere := _elsewhere(name, dialect)) not in dialect.ignored
    }
    return replace(row, values=values)


def _elsewhere(name: str, dialect: Dialect) -> str:
    for prefix, elsewhere in dialect.prefixes:
        if name.startswith(prefix):
            return elsewhere + name.removeprefix(prefix)
    return name
