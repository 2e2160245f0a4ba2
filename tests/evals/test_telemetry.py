from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import median_abs_deviation
from statsmodels.robust import mad

from evals.stats.arrays import FloatArray
from evals.telemetry import (
    CANONICAL,
    MIN_PAST,
    MIN_WINDOW,
    Change,
    Point,
    SeriesValues,
    Untestable,
    Worse,
    describe,
    find_canonical,
    goes,
    rank_changes,
    rank_series,
)

PLANNED = (
    *("reward/mean", "reward/std", "kl/reference", "entropy", "importance_ratio/mean"),
    *("importance_ratio/p99", "importance_ratio/max", "logprob_difference/mean"),
    *("logprob_difference/max", "staleness/mean", "staleness/max", "response_length/mean"),
    *("response_length/max", "truncated_share", "grad_norm", "learning_rate", "loss"),
    *("zero_variance_share", "time/step_s", "time/generate_s", "time/train_s"),
    "time/weight_sync_s",
)


def point(step: int, value: float | None, series: str = "x", attempt: int = 0) -> Point:
    return Point(
        run="r",
        attempt=attempt,
        series=series,
        raw_name=series,
        step=step,
        value=value,
        logged_at=None,
    )


def change_of(values: list[float | None], before: int, series: str = "x") -> Change:
    """Return the only change of a series that has a value at each step from 1 on."""
    points = [point(step, value, series) for step, value in enumerate(values, start=1)]
    (change,) = rank_changes(points, before, len(values))
    return change


def noise(seed: int, count: int, scale: float = 1.0) -> list[float | None]:
    return [float(one) for one in np.random.default_rng(seed).normal(0.0, scale, count)]


def test_every_planned_series_has_a_meaning() -> None:
    assert tuple(one.name for one in CANONICAL) == PLANNED
    for one in CANONICAL:
        assert find_canonical(one.name) == one
        assert one.meaning
        assert one.unit
        assert one.note
    assert len({one.meaning for one in CANONICAL}) == len(CANONICAL)


def test_a_reward_of_a_part_is_canonical_and_nothing_else_is() -> None:
    part = find_canonical("reward/long_context")
    assert part is not None
    assert (part.meaning, part.worse) == ("mean reward on long context", Worse.DOWN)
    for name in ("reward/", "reward", "reward/all/mean", "rewards/x", "grad_norm2", ""):
        assert find_canonical(name) is None


@pytest.mark.parametrize("seed", range(5))
def test_a_shift_is_in_the_robust_standard_deviations_of_independent_libraries(seed: int) -> None:
    values = [*noise(seed, 40, 3.0), *[one + 5 for one in noise(seed + 100, 15)]]
    change = change_of(values, 40)
    past, window = np.array(values[:40]), np.array(values[40:])
    for scale in (mad(past), median_abs_deviation(past, scale="normal")):
        expected = (np.median(window) - np.median(past)) / scale
        assert change.shift == pytest.approx(expected, rel=1e-5)
    assert change.past_median == pytest.approx(np.median(past))
    assert change.window_median == pytest.approx(np.median(window))
    assert (change.past_n, change.window_n) == (40, 15)


def test_a_past_of_mostly_equal_values_still_has_a_scale() -> None:
    values: list[float | None] = [0.0] * 18 + [0.1, 0.2] + [0.1] * 5
    change = change_of(values, 20)
    past = np.array(values[:20], dtype=np.float64)
    assert median_abs_deviation(past) == 0.0
    expected = 0.1 / np.mean(np.abs(past - past.mean() * 0))
    assert change.shift == pytest.approx(expected / math.sqrt(math.pi / 2), rel=1e-4)
    almost = [(one or 0.0) + 1e-17 * (step % 3) for step, one in enumerate(values)]
    assert change_of(almost, 20).shift == pytest.approx(change.shift)


def test_one_wild_value_of_the_past_does_not_hide_a_shift() -> None:
    calm, wild = noise(1, 40), noise(1, 40)
    wild[7] = 1e6
    window = [one + 6 for one in noise(2, 10)]
    shifts = [change_of([*past, *window], 40).shift for past in (calm, wild)]
    assert shifts[1] == pytest.approx(shifts[0], rel=0.25)


def test_the_onset_is_the_step_from_which_on_most_values_stay_away() -> None:
    assert change_of([*noise(3, 40), *noise(4, 10), *[8.0] * 10], 40).onset == 51
    flicker: list[float | None] = [0.0, 9.0, 0.0, 0.0, 0.0, 0.0]
    assert change_of([*noise(3, 40), *flicker, *[8.0, 0.0, 8.0, 8.0, 8.0, 8.0]], 40).onset == 47
    assert change_of([*noise(3, 40), *noise(4, 20)], 40).onset is None


def test_one_wild_last_value_is_no_onset() -> None:
    assert change_of([*noise(3, 40), *noise(4, 19), 50.0], 40).onset is None
    assert change_of([*noise(3, 40), *noise(4, 17), 50.0, 50.0, 50.0], 40).onset == 58


def test_an_onset_is_on_the_side_of_the_shift() -> None:
    values = [*noise(3, 40), *[9.0] * 3, *[-9.0] * 9]
    change = change_of(values, 40)
    assert change.shift is not None
    assert change.shift < 0
    assert change.onset == 44


def test_the_window_begins_after_the_past_and_ends_with_the_candidate() -> None:
    points = [point(step, float(step % 3)) for step in range(1, 41)]
    points += [point(step, 100.0) for step in range(41, 60)]
    (change,) = rank_changes(points, 30, 40)
    assert (change.past_n, change.window_n) == (30, 10)
    assert change.window_median == 1.0


@pytest.mark.parametrize(
    ("values", "before", "why"),
    [
        ([1.0, 2.0] * 4 + [3.0] * 5, MIN_PAST - 2, Untestable.PAST_TOO_SHORT),
        ([1.0, 2.0] * 10 + [3.0] * (MIN_WINDOW - 1), 20, Untestable.WINDOW_TOO_SHORT),
        ([0.5] * 20 + [3.0] * 5, 20, Untestable.PAST_CONSTANT),
        ([1e-5, 1e-5 * (1 + 1e-12)] * 10 + [3e-5] * 5, 20, Untestable.PAST_CONSTANT),
        ([0.0] * 20 + [1.0] * 5, 20, Untestable.PAST_CONSTANT),
        ([1.0, 2.0] * 10 + [math.nan] * 5, 20, Untestable.NOT_FINITE),
        ([1.0, 2.0] * 10 + [3.0, math.inf, 3.0, -math.inf], 20, Untestable.NOT_FINITE),
        ([1.0, None] * 10 + [3.0] * 5, 20, Untestable.NOT_FINITE),
        ([1.0, 2.0] * 10 + [3.0, 3.0, 3.0, None], 20, Untestable.NOT_FINITE),
        ([1.0, 2.0] * 10 + [3.0, 3.0, 3.0, 1e200], 20, Untestable.NOT_FINITE),
    ],
)
def test_what_is_not_known_never_becomes_a_number(
    values: list[float | None], before: int, why: Untestable
) -> None:
    change = change_of(values, before)
    assert change.untestable is why
    assert change.shift is None
    assert change.onset is None
    assert describe(change)


def test_a_few_unknown_values_are_left_out_and_said() -> None:
    values = [*noise(5, 40), *[one + 4 for one in noise(6, 20)]]
    (whole,) = rank_changes([point(step, one) for step, one in enumerate(values)], 39, 60)
    holed: list[float | None] = list(values)
    holed[45] = math.nan
    holed[47] = None
    (change,) = rank_changes([point(step, one) for step, one in enumerate(holed)], 39, 60)
    assert (change.window_n, change.window_unknown, change.first_unknown) == (18, 2, 45)
    assert change.shift == pytest.approx(whole.shift, abs=0.5)
    assert describe(change) == "2 of 20 in the window NaN, infinite or none; first at step 45"
    assert describe(whole) == ""


def test_the_latest_attempt_at_a_step_counts_in_any_order() -> None:
    first = [point(step, 50.0) for step in range(30, 50)]
    second = [point(step, one, attempt=1) for step, one in enumerate(noise(1, 60))]
    changes = [rank_changes(points, 39, 59) for points in (first + second, second + first)]
    assert changes[0] == changes[1] == rank_changes(second, 39, 59)


def test_the_largest_shift_is_first_and_what_is_not_testable_last() -> None:
    values = {
        "small": [*noise(1, 30), *[one + 2 for one in noise(2, 10)]],
        "large": [*noise(3, 30), *[one - 9 for one in noise(4, 10)]],
        "a constant": [1.0] * 40,
        "broken": [*noise(5, 30), *[math.nan] * 10],
    }
    series = {
        name: SeriesValues(steps=np.arange(40), values=np.array(one, dtype=np.float64))
        for name, one in values.items()
    }
    ranked = [one.series for one in rank_series(series, 29, 39)]
    assert ranked == ["large", "small", "broken", "a constant"]
    assert rank_series({}, 1, 2) == ()


@pytest.mark.parametrize(
    ("series", "by", "way"),
    [
        ("kl/reference", 9.0, "worse"),
        ("kl/reference", -9.0, "better"),
        ("reward/code", -9.0, "worse"),
        ("reward/mean", 9.0, "better"),
        ("entropy", -9.0, ""),
        ("my/own", 9.0, ""),
        ("kl/reference", 0.0, ""),
    ],
)
def test_a_shift_goes_to_the_worse_only_where_the_series_has_a_worse(
    series: str, by: float, way: str
) -> None:
    moved = [one + by for one in noise(2, 20) if one is not None]
    assert goes(change_of([*noise(1, 40), *moved], 40, series)) == way


def overtaken(shift: float, trials: int = 400, others: int = 23) -> float:
    """Return how often the largest of many noisy series ranks above one that truly moved."""
    generator = np.random.default_rng(2026)
    lost = 0
    for _ in range(trials):
        table: FloatArray = generator.normal(size=(others + 1, 60))
        table[0, 40:] += shift
        series = {
            str(number): SeriesValues(steps=np.arange(60), values=row)
            for number, row in enumerate(table)
        }
        lost += rank_series(series, 39, 59)[0].series != "0"
    return lost / trials


@pytest.mark.parametrize(("shift", "at_most"), [(3.0, 0.0), (2.0, 0.01), (1.5, 0.05)])
def test_noise_seldom_ranks_above_a_true_shift(shift: float, at_most: float) -> None:
    """Of 24 series with 40 steps of past and 20 of window, shifts in standard deviations."""
    assert overtaken(shift) <= at_most


def test_noise_alone_ranks_any_series_first_alike() -> None:
    assert overtaken(0.0) == pytest.approx(23 / 24, abs=0.03)


def test_noise_has_an_onset_in_few_windows() -> None:
    generator = np.random.default_rng(7)
    series = {
        str(number): SeriesValues(steps=np.arange(60), values=generator.normal(size=60))
        for number in range(2000)
    }
    changes = rank_series(series, 39, 59)
    assert sum(one.onset is not None for one in changes) <= 0.005 * len(changes)
    shifts = [one.shift for one in changes if one.shift is not None]
    assert np.quantile(np.abs(shifts), 0.99) < 1.2
