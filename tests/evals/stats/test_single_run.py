from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from evals.stats.single_run import mean_interval


def test_right_or_wrong_items_get_wilsons_interval() -> None:
    found = mean_interval(np.array([1.0] * 7 + [0.0] * 13), binary=True)
    low, high = proportion_confint(7, 20, method="wilson")
    assert (found.n, found.value, found.level) == (20, 0.35, 0.95)
    assert (found.low, found.high) == pytest.approx((low, high))


def test_many_scores_get_almost_the_ordinary_interval() -> None:
    values = np.random.default_rng(0).beta(2, 3, 5000)
    found = mean_interval(values, binary=False)
    half = 1.96 * values.std(ddof=1) / math.sqrt(5000)
    assert found.low == pytest.approx(found.value - half, abs=5e-4)
    assert found.high == pytest.approx(found.value + half, abs=5e-4)


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize("n", [1, 2, 10])
def test_few_items_never_have_zero_width(n: int, value: float, binary: bool) -> None:
    for clusters in (None, np.arange(n)):
        found = mean_interval(np.full(n, value), binary=binary, clusters=clusters)
        assert found.high - found.low > 0.2
        assert found.low <= value <= found.high


def test_clusters_widen_the_interval() -> None:
    values = np.repeat(np.random.default_rng(2).integers(0, 2, 30), 10).astype(float)
    alone = mean_interval(values, binary=True)
    shared = mean_interval(values, binary=True, clusters=np.repeat(np.arange(30), 10))
    assert shared.high - shared.low > 2.5 * (alone.high - alone.low)


def test_nothing_says_nothing() -> None:
    for binary in (True, False):
        found = mean_interval(np.empty(0), binary=binary)
        assert (found.n, found.low, found.high) == (0, 0.0, 1.0)


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), max_size=40), st.booleans())
def test_the_interval_holds_the_mean_and_stays_in_range(raw: list[float], grouped: bool) -> None:
    values = np.array(raw)
    clusters = np.arange(len(values)) // 3 if grouped else None
    found = mean_interval(values, binary=False, clusters=clusters)
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_intervals_cover_the_truth() -> None:
    """2,000 draws of 30 scores from a U-shaped law, 95 % interval."""
    rng = np.random.default_rng(7)
    found = [mean_interval(rng.beta(0.3, 0.6, 30), binary=False) for _ in range(2000)]
    covered = np.mean([one.low <= 1 / 3 <= one.high for one in found])
    assert covered >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / 2000)


def test_clusters_all_alike_say_no_more_than_their_number() -> None:
    clusters = np.repeat(np.arange(6), 50)
    found = mean_interval(np.ones(300), binary=True, clusters=clusters)
    assert found.low == pytest.approx(0.025 ** (1 / 6))
