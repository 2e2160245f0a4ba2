from __future__ import annotations

import math
import uuid
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from evals.telemetry import Point, rank_changes, rank_series
from storage.connection import Lake
from storage.runs import load_runs, register_run
from storage.store import LakeStore
from storage.telemetry import (
    load_points,
    load_series,
    load_series_summaries,
    load_telemetry_runs,
    load_thinned,
    put_points,
)

ANY_TEXT = st.text(st.characters(exclude_categories=()), min_size=1, max_size=8)
ROUND_TRIP = settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.generate],
)


def point(
    step: int, value: float | None, series: str = "x", attempt: int = 0, run: str = "r"
) -> Point:
    return Point(
        run=run,
        attempt=attempt,
        series=series,
        raw_name=f"raw/{series}",
        step=step,
        value=value,
        logged_at="2026-11-30T10:00:00.000000+00:00",
    )


def values(lake: Lake, run: str = "r", *, every_attempt: bool = False) -> list[tuple[int, object]]:
    found = load_points(lake, run, every_attempt=every_attempt)
    return [(one.step, one.value) for one in found]


@ROUND_TRIP
@given(st.data())
def test_points_come_back(lake: Lake, data: st.DataObject) -> None:
    count = data.draw(st.sampled_from([1, 10, 11, 30]))
    run = data.draw(ANY_TEXT) + uuid.uuid4().hex
    name, raw_name = data.draw(ANY_TEXT), data.draw(ANY_TEXT)
    logged = st.none() | st.floats(allow_nan=False)
    points = [
        Point(
            run=run,
            attempt=0,
            series=name,
            raw_name=raw_name,
            step=step * data.draw(st.sampled_from([1, 2**40])),
            value=data.draw(logged),
            logged_at=None,
        )
        for step in range(count)
    ]
    unique = {one.step: one for one in points}
    assert put_points(lake, points) == len(unique)
    assert put_points(lake, points) == 0
    assert load_points(lake, run) == tuple(unique[step] for step in sorted(unique))


def test_values_that_are_no_number_keep_what_they_are(lake: Lake) -> None:
    wanted = [math.nan, math.inf, -math.inf, None, -0.0, 5e-324]
    for many in (1, 5):
        run = f"run {many}"
        points = [
            point(step, value, run=run, series=f"s{number}")
            for number in range(many)
            for step, value in enumerate(wanted)
        ]
        assert put_points(lake, points) == len(points)
        assert put_points(lake, points) == 0, "NaN is the same NaN the second time"
        found = [one.value for one in load_points(lake, run, series=["s0"])]
        assert [repr(one) for one in found] == [repr(one) for one in wanted]


def test_only_what_is_new_is_stored(lake: Lake) -> None:
    put_points(lake, [point(step, step) for step in range(20)])
    before = lake.snapshot()
    assert put_points(lake, [point(step, step) for step in range(20)]) == 0
    assert lake.snapshot() == before, "nothing new makes no snapshot"
    assert put_points(lake, [point(step, step) for step in range(25)]) == 5
    assert put_points(lake, []) == 0
    assert len(load_points(lake, "r")) == 25


def test_runs_and_series_do_not_mix(lake: Lake) -> None:
    put_points(lake, [point(1, 1.0), point(1, 2.0, series="y")])
    put_points(lake, [point(1, 3.0, run="s")])
    assert values(lake, "s") == [(1, 3.0)]
    assert [one.series for one in load_points(lake, "r", series=["y", "gone"])] == ["y"]
    assert load_telemetry_runs(lake) == ("r", "s")
    with pytest.raises(ValueError, match="several runs: r, s"):
        put_points(lake, [point(1, 1.0), point(1, 1.0, run="s")])


def test_a_range_of_steps_and_a_snapshot(lake: Lake) -> None:
    put_points(lake, [point(step, step) for step in range(10)])
    then = lake.snapshot()
    put_points(lake, [point(step, step) for step in range(20)])
    found = load_points(lake, "r", first_step=3, last_step=5)
    assert [one.step for one in found] == [3, 4, 5]
    assert len(load_points(lake, "r", snapshot=then)) == 10
    assert load_series(lake, "r", snapshot=then)["x"].steps[-1] == 9


def test_the_latest_attempt_is_read_and_all_are_kept(lake: Lake) -> None:
    first = [point(step, 10.0 + step) for step in range(1, 5)]
    second = [point(step, 20.0 + step, attempt=1) for step in range(3, 7)]
    assert put_points(lake, first + second) == 8
    assert values(lake) == [(1, 11), (2, 12), (3, 23), (4, 24), (5, 25), (6, 26)]
    assert len(values(lake, every_attempt=True)) == 8
    assert list(load_series(lake, "r")["x"].values) == [11, 12, 23, 24, 25, 26]


def test_a_history_that_began_anew_is_a_later_attempt(lake: Lake) -> None:
    """Each checkpoint of the HF Trainer repeats a history; after a restart it is another one."""
    crashed = [point(step, 10.0 + step) for step in range(1, 7)]
    again = [point(step, (10.0 if step < 4 else 20.0) + step) for step in range(1, 6)]
    put_points(lake, crashed)
    put_points(lake, again)
    assert values(lake) == [(1, 11), (2, 12), (3, 13), (4, 24), (5, 25), (6, 16)]
    assert put_points(lake, again) == 0
    longer = [*again, point(6, 26.0), point(7, 27.0)]
    assert put_points(lake, longer) == 2
    assert values(lake)[-2:] == [(6, 26), (7, 27)]
    third = [replace(one, value=(one.value or 0) + 5) for one in longer]
    assert put_points(lake, third) == 7
    assert {one.attempt for one in load_points(lake, "r", every_attempt=True)} == {0, 1, 2}


def test_a_file_with_its_attempts_is_read_again_as_the_same(lake: Lake) -> None:
    first = [point(step, 10.0 + step) for step in range(1, 5)]
    second = [point(step, 20.0 + step, attempt=1) for step in range(3, 7)]
    third = [point(step, 30.0 + step, attempt=2) for step in range(5, 9)]
    grown: list[Point] = []
    for part in (first[:2], first[2:], second[:1], second[1:], third):
        grown += part
        assert put_points(lake, grown) == len(part)
    assert {one.attempt for one in load_points(lake, "r", every_attempt=True)} == {0, 1, 2}


def test_tensorboards_single_precision_is_the_same_value(lake: Lake) -> None:
    logged = [0.1, 1 / 3, 1e-9, 12345.678, -7.7, 1e30]
    single = [point(step, float(np.float32(one))) for step, one in enumerate(logged)]
    put_points(lake, single)
    double = [point(step, one) for step, one in enumerate(logged)]
    assert put_points(lake, double) == 0
    assert put_points(lake, [*double, point(9, 0.5)]) == 1


@pytest.mark.parametrize(
    ("one", "other"), [(math.inf, 1e300), (math.nan, 1.0), (None, 0.0), (0.0, 1e-30), (1.0, 1.001)]
)
def test_values_that_are_not_the_same(lake: Lake, one: float | None, other: float | None) -> None:
    for number, pair in enumerate([(one, other), (other, one)]):
        put_points(lake, [point(1, pair[0], run=f"n{number}")])
        assert put_points(lake, [point(1, pair[1], run=f"n{number}")]) == 1


def test_arrays_say_what_points_say(lake: Lake) -> None:
    generator = np.random.default_rng(1)
    points = [
        point(step, None if step % 17 == 3 else float(value), series=name)
        for name in ("a", "b\0", "c")
        for step, value in enumerate(generator.normal(size=60))
    ]
    put_points(lake, points)
    series = load_series(lake, "r")
    assert set(series) == {"a", "b\0", "c"}
    assert rank_series(series, 39, 59) == rank_changes(points, 39, 59)
    assert load_series(lake, "r", series=["a"], last_step=9)["a"].steps.tolist() == list(range(10))
    assert load_series(lake, "gone") == {}


def test_a_series_in_numbers(lake: Lake) -> None:
    logged = [math.nan, 3.0, -1.0, math.inf, None, 2.0, None]
    put_points(lake, [point(10 + step, one) for step, one in enumerate(logged)])
    put_points(lake, [point(12, 7.0, attempt=1), point(5, None, series="none")])
    none, x = load_series_summaries(lake, "r")
    assert (none.first, none.last, none.least, none.most) == (None, None, None, None)
    assert (none.n, none.none, none.non_finite, none.attempts) == (1, 1, 0, 1)
    assert math.isnan(x.first or 0.0)
    assert (x.last, x.least, x.most) == (None, 2.0, 7.0)
    assert (x.n, x.non_finite, x.none, x.attempts) == (7, 2, 2, 2)
    assert (x.first_step, x.last_step, x.raw_names) == (10, 16, ("raw/x",))
    assert load_series_summaries(lake, "gone") == ()


def test_a_long_series_is_thinned_and_keeps_its_peaks(lake: Lake) -> None:
    generator = np.random.default_rng(3)
    logged = generator.normal(size=20_000)
    logged[[777, 15_000]] = [50.0, -60.0]
    points = [point(step, float(one)) for step, one in enumerate(logged)]
    points[123] = replace(points[123], value=math.nan)
    points[124] = replace(points[124], value=None)
    put_points(lake, points)
    found = load_thinned(lake, "r", ["x"], buckets=100).to_pydict()
    assert len(found["step"]) <= 2 * 100 + 2
    rows = dict(zip(found["step"], found["value"], strict=True))
    assert rows[777] == 50.0
    assert rows[15_000] == -60.0
    kinds = dict(zip(found["step"], found["kind"], strict=True))
    assert (kinds[123], kinds[124]) == ("NaN", "none")
    assert found["step"] == sorted(found["step"])


def test_a_short_series_is_not_thinned(lake: Lake) -> None:
    put_points(lake, [point(2**61 + 7 * step, float(step)) for step in range(20)])
    put_points(lake, [point(2**61, math.inf, series="y")])
    found = load_thinned(lake, "r", ["x", "y"], buckets=300).to_pydict()
    assert found["value"] == [float(step) for step in range(20)] + [None]
    assert found["kind"] == ["finite"] * 20 + ["infinite"]
    assert load_thinned(lake, "r", [], buckets=300).num_rows == 0


def test_runs_come_back_and_are_brought_up_to_date(lake: Lake) -> None:
    config = {"model_line": "tiny", "tags": ["a", "\0"], "config": {"lr": 1e-5}}
    stored = register_run(lake, "r", "/runs/r", "lab", config)
    assert (stored.run, stored.folder, stored.layout, stored.config) == (
        "r",
        "/runs/r",
        "lab",
        config,
    )
    before = lake.snapshot()
    assert register_run(lake, "r", "/runs/r", "lab", config) == stored
    assert lake.snapshot() == before
    moved = register_run(lake, "r", "/else/r", "lab", {**config, "owner": "me"})
    assert moved == replace(stored, folder="/else/r", config={**config, "owner": "me"})
    register_run(lake, "a", "/runs/a", "trainer", {})
    assert [one.run for one in load_runs(lake)] == ["a", "r"]
    assert load_runs(lake)[1] == moved
    assert [one.folder for one in load_runs(lake, snapshot=before)] == ["/runs/r"]


def test_the_store_has_them(store: LakeStore) -> None:
    store.register_run("r", "/runs/r", "lab", {})
    assert [one.run for one in store.runs()] == ["r"]
    assert store.put_points([point(1, 1.0), point(2, 2.0)]) == 2
    assert [one.step for one in store.points("r", first_step=2)] == [2]
