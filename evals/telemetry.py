"""Telemetry: the canonical series, and which of them changed before a checkpoint.

A change is an association: it says that a series moved, not that it made anything better or
worse. It is judged against the same run's own past only, since levels of different runs, and of
one series under different estimators, can't be compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from evals.stats.arrays import FloatArray, IntArray

NORMAL = 1.4826
"""Median absolute deviation to standard deviation, for normal noise."""

NORMAL_MEAN = 1.2533
"""Mean absolute deviation to standard deviation, for normal noise."""

LARGEST = 1e150
"""Values beyond it can't be reckoned with and count as not finite."""

SAME = 1e-9
"""Values that differ by less, relative to the largest, or by 1 / LARGEST, are the same."""

BAND = 3.0
"""Half the width of the past's band, in scales."""

STAYS = 0.5
"""A series has left the band where more than this share of what follows is outside too."""

TELLS = 1.0
"""Least shift that is said to be for the worse or the better."""

MIN_PAST = 10
"""Fewest values of the past that tell how much a series moves by itself."""

MIN_WINDOW = 3
"""Fewest values of a window whose median is more than one of them."""

MAX_UNKNOWN = 0.1
"""Largest share of values that are not finite or none, with which a median is still taken."""


class Worse(StrEnum):
    """Which way a series goes when something is wrong."""

    UP = "up"
    DOWN = "down"
    NEITHER = "neither"
    """Both ways, or none: its level has to be read beside others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CanonicalSeries:
    """What one canonical name stands for, whoever logged it."""

    name: str
    meaning: str
    unit: str
    worse: Worse
    note: str
    """Estimator, aggregation, and what the value does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One logged value."""

    run: str
    attempt: int
    """0, or the number of the restart that logged it."""
    series: str
    """Canonical name; the raw name where it has none."""
    raw_name: str
    """As logged."""
    step: int
    value: float | None
    """As logged, NaN and infinities too; None: logged as none."""
    logged_at: str | None
    """UTC, ISO 8601; None: not told."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SeriesValues:
    """One series of a run, of the latest attempt at each step."""

    steps: IntArray
    """``[n]``, ascending, each once."""
    values: FloatArray
    """``[n]``; what was logged as none is NaN here."""


class Untestable(StrEnum):
    """Why a change can't be told."""

    NOT_FINITE = "not_finite"
    """Too many values are NaN, infinite or none."""
    PAST_CONSTANT = "past_constant"
    PAST_TOO_SHORT = "past_too_short"
    WINDOW_TOO_SHORT = "window_too_short"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """How one series of a run moved in a window, against the steps up to it."""

    series: str
    shift: float | None
    """Median of the window − median of the past, in robust standard deviations of the past; None:
    not testable."""
    untestable: Untestable | None
    """Why it is not testable; None: it is."""
    past_median: float | None
    """Of the finite values; None where there is none."""
    window_median: float | None
    past_n: int
    """Finite values."""
    window_n: int
    past_unknown: int
    """Values that are not finite, or none."""
    window_unknown: int
    first_unknown: int | None
    """First such step of the window."""
    onset: int | None
    """First step of the window from which on most values lie outside the past's band; None: there
    is none."""


REASONS = {
    Untestable.NOT_FINITE: "too many values are NaN, infinite or none",
    Untestable.PAST_CONSTANT: "the past is constant",
    Untestable.PAST_TOO_SHORT: f"the past has fewer than {MIN_PAST} values",
    Untestable.WINDOW_TOO_SHORT: f"the window has fewer than {MIN_WINDOW} values",
}


def _series(name: str, meaning: str, unit: str, worse: Worse, note: str) -> CanonicalSeries:
    return CanonicalSeries(name=name, meaning=meaning, unit=unit, worse=worse, note=note)


_REWARD_PART = "reward/"
_PER_STEP = "over the responses of a step"

CANONICAL: tuple[CanonicalSeries, ...] = (
    _series(
        "reward/mean", "mean reward", "reward", Worse.DOWN, f"{_PER_STEP}, without a KL penalty"
    ),
    _series(
        "reward/std",
        "spread of the reward",
        "reward",
        Worse.NEITHER,
        f"standard deviation {_PER_STEP}; near 0 there is nothing to learn from",
    ),
    _series(
        "kl/reference",
        "KL divergence from the reference policy",
        "nats per token",
        Worse.UP,
        "mean over tokens, never below 0; over the whole vocabulary, or estimated by k3 (TRL)",
    ),
    _series(
        "entropy",
        "entropy of the next token",
        "nats per token",
        Worse.NEITHER,
        "mean over tokens, whole vocabulary; near 0 it has collapsed, rising by nats it explodes",
    ),
    _series(
        "importance_ratio/mean",
        "trained policy's probability over the sampler's",
        "ratio",
        Worse.NEITHER,
        "mean over tokens, about 1 without top-p or top-k sampling; holds mismatch and staleness",
    ),
    _series(
        "importance_ratio/p99",
        "99th percentile of that ratio",
        "ratio",
        Worse.UP,
        "over the tokens of a step, before any truncation",
    ),
    _series(
        "importance_ratio/max",
        "largest such ratio",
        "ratio",
        Worse.UP,
        "over the tokens of a step; capped where the framework truncates first",
    ),
    _series(
        "logprob_difference/mean",
        "log-probability difference of sampler and trainer",
        "nats",
        Worse.UP,
        "mean over tokens of its absolute value, on the same tokens",
    ),
    _series(
        "logprob_difference/max",
        "largest such difference",
        "nats",
        Worse.UP,
        "over the tokens of a step",
    ),
    _series(
        "staleness/mean",
        "age of the weights that sampled",
        "weight versions",
        Worse.UP,
        f"mean {_PER_STEP}; 0: sampled with the weights that were trained",
    ),
    _series("staleness/max", "largest such age", "weight versions", Worse.UP, _PER_STEP),
    _series(
        "response_length/mean", "length of a response", "tokens", Worse.NEITHER, f"mean {_PER_STEP}"
    ),
    _series("response_length/max", "longest response", "tokens", Worse.NEITHER, _PER_STEP),
    _series(
        "truncated_share",
        "share of responses cut off by the budget",
        "share of 1",
        Worse.UP,
        _PER_STEP,
    ),
    _series(
        "grad_norm",
        "norm of the gradient",
        "norm",
        Worse.UP,
        "over all parameters, before clipping; near 0 nothing is learnt",
    ),
    _series("learning_rate", "learning rate", "rate", Worse.NEITHER, "as set for the step"),
    _series(
        "loss",
        "loss of the update",
        "loss",
        Worse.NEITHER,
        "of a policy gradient: no level of it is good; some trainers replace NaN by an average",
    ),
    _series(
        "zero_variance_share",
        "share of prompts whose responses are all rewarded alike",
        "share of 1",
        Worse.UP,
        "over the prompts of a step; they teach nothing",
    ),
    _series("time/step_s", "time of a step", "seconds", Worse.UP, "wall clock"),
    _series("time/generate_s", "time of generation", "seconds", Worse.UP, "wall clock"),
    _series("time/train_s", "time of the update", "seconds", Worse.UP, "wall clock"),
    _series(
        "time/weight_sync_s",
        "time of handing weights to the sampler",
        "seconds",
        Worse.UP,
        "wall clock; near 0 nothing was handed over",
    ),
)
"""All but the rewards of single parts, which ``find_canonical`` knows."""

_BY_NAME = {one.name: one for one in CANONICAL}


def find_canonical(name: str) -> CanonicalSeries | None:
    """Return what a series' name stands for; None where it is no canonical name."""
    found = _BY_NAME.get(name)
    part = name.removeprefix(_REWARD_PART)
    if found is not None or part in ("", name) or "/" in part:
        return found
    return _series(
        name,
        f"mean reward on {part.replace('_', ' ')}",
        "reward",
        Worse.DOWN,
        "over the responses of a step that belong to this capability or reward function",
    )


def rank_changes(points: Iterable[Point], before_step: int, at_step: int) -> tuple[Change, ...]:
    """Return how each series moved in a window of steps; see ``rank_series``.

    Args:
        points: Of one run, in any order; of several attempts at a step the latest counts.
        before_step: Last step of the past.
        at_step: Last step of the window.
    """
    latest: dict[str, dict[int, Point]] = {}
    for point in points:
        steps = latest.setdefault(point.series, {})
        known = steps.get(point.step)
        if known is None or point.attempt >= known.attempt:
            steps[point.step] = point
    series = {name: _values(steps) for name, steps in latest.items()}
    return rank_series(series, before_step, at_step)


def rank_series(
    series: Mapping[str, SeriesValues], before_step: int, at_step: int
) -> tuple[Change, ...]:
    """Return how each series moved in a window of steps, the largest shift first.

    The past is all steps up to ``before_step``, the window those after it up to ``at_step``. A
    shift is measured in the past's own robust standard deviations: 1.4826 MAD, or, where most of
    the past is the same value, 1.2533 mean absolute deviations. Values that are not finite, or
    none, are left out of medians; with more than :data:`MAX_UNKNOWN` of them a series is not
    testable. Those that are not testable come last, the ones with unknown values in the window
    first.

    The order says what moved most, not what caused anything; a series with a trend moves by its
    trend, and with many series the largest of some noise is never 0.
    """
    changes = [_change(name, one, before_step, at_step) for name, one in series.items()]
    return tuple(sorted(changes, key=_order))


def describe(change: Change) -> str:
    """Return in words why a change is not testable, or which of its values are not known.

    Empty where there is nothing to say.
    """
    said = []
    if change.untestable is not None:
        said.append(REASONS[change.untestable])
    for unknown, known, where in (
        (change.past_unknown, change.past_n, "before"),
        (change.window_unknown, change.window_n, "in the window"),
    ):
        if unknown:
            said.append(f"{unknown} of {unknown + known} {where} NaN, infinite or none")
    if change.first_unknown is not None:
        said.append(f"first at step {change.first_unknown}")
    return "; ".join(said)


def goes(change: Change) -> str:
    """Return ``worse`` or ``better`` where a shift is large enough, and the series has a worse."""
    canonical = find_canonical(change.series)
    if canonical is None or canonical.worse is Worse.NEITHER:
        return ""
    if change.shift is None or abs(change.shift) < TELLS:
        return ""
    return "worse" if (change.shift > 0) == (canonical.worse is Worse.UP) else "better"


def _values(steps: Mapping[int, Point]) -> SeriesValues:
    ordered = sorted(steps)
    values = [steps[step].value for step in ordered]
    return SeriesValues(
        steps=np.array(ordered, dtype=np.int64),
        values=np.array([np.nan if one is None else one for one in values], dtype=np.float64),
    )


def _change(name: str, series: SeriesValues, before_step: int, at_step: int) -> Change:
    in_past = series.steps <= before_step
    in_window = ~in_past & (series.steps <= at_step)
    known = np.abs(series.values) <= LARGEST
    past, window = series.values[in_past & known], series.values[in_window & known]
    steps, unknown = series.steps[in_window & known], series.steps[in_window & ~known]
    past_unknown = int(np.sum(in_past & ~known))
    untestable = _untestable(past, past_unknown, window, len(unknown))
    shift = onset = None
    if untestable is None:
        distances = (window - np.median(past)) / _scale(past)
        shift = float(np.median(distances))
        onset = _onset(steps, distances, upwards=shift > 0)
    return Change(
        series=name,
        shift=shift,
        untestable=untestable,
        past_median=float(np.median(past)) if len(past) else None,
        window_median=float(np.median(window)) if len(window) else None,
        past_n=len(past),
        window_n=len(window),
        past_unknown=past_unknown,
        window_unknown=len(unknown),
        first_unknown=int(unknown[0]) if len(unknown) else None,
        onset=onset,
    )


def _untestable(
    past: FloatArray, past_unknown: int, window: FloatArray, window_unknown: int
) -> Untestable | None:
    for known, unknown in ((past, past_unknown), (window, window_unknown)):
        if unknown > MAX_UNKNOWN * (len(known) + unknown):
            return Untestable.NOT_FINITE
    if len(past) < MIN_PAST:
        return Untestable.PAST_TOO_SHORT
    if len(window) < MIN_WINDOW:
        return Untestable.WINDOW_TOO_SHORT
    if np.ptp(past) <= _same(past):
        return Untestable.PAST_CONSTANT
    return None


def _scale(past: FloatArray) -> float:
    """Return the standard deviation that the past would have if it were normal noise, above 0."""
    distances = np.abs(past - np.median(past))
    middle = float(np.median(distances))
    return NORMAL * middle if middle > _same(past) else NORMAL_MEAN * float(np.mean(distances))


def _same(values: FloatArray) -> float:
    """Return the difference up to which values are the same."""
    return max(SAME * float(np.max(np.abs(values))), 1 / LARGEST)


def _onset(steps: IntArray, distances: FloatArray, *, upwards: bool) -> int | None:
    """Return the first step outside the band, on the shift's side, as most of what follows is.

    Both of the next few values, so that a lone spike before a change is not taken for it, and of
    all the rest of the window.

    Args:
        steps: ``[n]``, of the window; at least :data:`MIN_WINDOW`.
        distances: ``[n]`` from the past's median, in scales.
        upwards: The shift's side.
    """
    outside = distances > BAND if upwards else distances < -BAND
    starts = len(outside) - MIN_WINDOW + 1
    soon = np.mean(np.lib.stride_tricks.sliding_window_view(outside, MIN_WINDOW), axis=1)
    rest = np.cumsum(outside[::-1])[::-1] / np.arange(len(outside), 0, -1)
    begins = outside[:starts] & (soon > STAYS) & (rest[:starts] > STAYS)
    return int(steps[np.argmax(begins)]) if begins.any() else None


def _order(change: Change) -> tuple[bool, float, bool, str]:
    size = 0.0 if change.shift is None else abs(change.shift)
    return change.shift is None, -size, change.window_unknown == 0, change.series
