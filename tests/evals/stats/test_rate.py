from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from statsmodels.stats.proportion import proportion_confint

from evals.stats.interval import wilson
from evals.stats.rate import Rate, clustered_rate, min_attempts


@settings(deadline=None)
@given(
    st.integers(1, 3000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    st.floats(0.001, 0.999),
)
def test_p_values_are_binomial_tails(counts: tuple[int, int], ceiling: float) -> None:
    events, n = counts
    rate = Rate(events=events, n=n)
    assert rate.p_below(ceiling) == pytest.approx(binom.cdf(events, n, ceiling), abs=1e-10)
    assert rate.p_above(ceiling) == pytest.approx(binom.sf(events - 1, n, ceiling), abs=1e-10)


@pytest.mark.parametrize(("events", "n"), [(0, 20), (3, 20), (20, 20), (16, 500)])
def test_limits_are_clopper_pearson(events: int, n: int) -> None:
    low, high = proportion_confint(events, n, alpha=0.1, method="beta")
    rate = Rate(events=events, n=n)
    assert rate.lower(0.05) == pytest.approx(low)
    assert rate.upper(0.05) == pytest.approx(high)


@pytest.mark.parametrize(("events", "n"), [(0, 20), (3, 20), (20, 20), (16, 500)])
def test_wilson_equals_statsmodels(events: int, n: int) -> None:
    found = wilson(events, n, 0.9)
    low, high = proportion_confint(events, n, alpha=0.1, method="wilson")
    assert (found.low, found.high) == pytest.approx((max(low, 0.0), min(high, 1.0)))
    assert found.low <= found.value <= found.high


def test_no_attempts_prove_nothing() -> None:
    rate = Rate(events=0, n=0)
    assert (rate.value, rate.p_below(0.5), rate.p_above(0.5)) == (0.0, 1.0, 1.0)
    assert (rate.lower(0.05), rate.upper(0.05)) == (0.0, 1.0)
    assert wilson(0, 0, 0.9).high == 1.0


@pytest.mark.parametrize(
    ("ceiling", "wanted"),
    [(0.01, [299, 473, 628, 773, 913, 1049]), (0.05, [59, 93, 124, 153, 181, 208])],
)
def test_fewest_attempts_for_a_ceiling(ceiling: float, wanted: list[int]) -> None:
    assert [min_attempts(ceiling, 0.05, events) for events in range(6)] == wanted


def test_more_events_than_attempts_are_refused() -> None:
    with pytest.raises(ValueError, match="between 0"):
        Rate(events=3, n=2)


def test_clusters_of_one_leave_the_count_as_it_is() -> None:
    values = np.array([1.0] * 7 + [0.0] * 43)
    found = clustered_rate(values, np.arange(50))
    assert found.value == pytest.approx(7 / 50)
    assert found.n == pytest.approx(49)


def test_clusters_all_alike_count_once() -> None:
    values = np.repeat([1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0], 25)
    found = clustered_rate(values, np.repeat(np.arange(8), 25))
    assert found.n == pytest.approx(7)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_without_an_event_clusters_are_the_attempts(value: float) -> None:
    found = clustered_rate(np.full(200, value), np.repeat(np.arange(20), 10))
    assert (found.events, found.n) == (20 * value, 20)


@pytest.mark.parametrize("alike", [0.0, 0.3])
def test_clustered_ceilings_hold_their_error_rate(alike: float) -> None:
    """Attack templates of 10 prompts each, true rate at a ceiling of 10 %; 2,000 runs."""
    rng = np.random.default_rng(11)
    clusters = np.repeat(np.arange(40), 10)
    runs, passed, naive = 2000, 0, 0
    for _ in range(runs):
        size = (1 - alike) / alike if alike else math.inf
        chance = rng.beta(0.1 * size, 0.9 * size, 40) if alike else np.full(40, 0.1)
        values = (rng.random(400) < chance[clusters]).astype(float)
        passed += clustered_rate(values, clusters).p_below(0.1) <= 0.05
        naive += Rate(events=values.sum(), n=400).p_below(0.1) <= 0.05
    assert passed / runs <= 0.05 + 0.01 + 3 * math.sqrt(0.05 * 0.95 / runs)
    if alike:
        assert naive / runs > 0.15
