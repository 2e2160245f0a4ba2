from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, skew, ttest_1samp

from evals.stats.arrays import FloatArray
from evals.stats.bounded_mean import BoundedMean


def _mean(values: FloatArray) -> BoundedMean:
    return BoundedMean(values=values)


def test_with_few_losses_it_is_students_t_with_one_more_value_at_its_worst() -> None:
    values = np.random.default_rng(3).uniform(-0.02, 0.4, 60)
    assert np.count_nonzero(values < 0) < 20
    reference = ttest_1samp(np.append(values, -1.0), 0.15, alternative="greater")
    assert _mean(values).p_above(0.15) == pytest.approx(reference.pvalue)


def test_with_many_losses_it_is_halls_transformation() -> None:
    values = np.random.default_rng(4).normal(0.0, 0.1, 300) ** 2 - 0.005
    n, spread = len(values), values.std(ddof=1)
    g = skew(values) * (values.std() / spread) ** 3
    bound = values.mean() - 0.001
    u = 0.001 / spread
    h = math.sqrt(n) * (u + g * u**2 / 3 + g**2 * u**3 / 27 + g / (6 * n))
    assert np.count_nonzero(values < 0) >= 20
    sample = BoundedMean(values=values, lowest=-0.005, highest=1.0)
    assert sample.p_above(bound) == pytest.approx(norm.sf(h))


def test_without_skewness_halls_transformation_is_the_normal_test() -> None:
    values = np.concatenate([np.full(50, -0.1), np.full(50, 0.1)])
    se = values.std(ddof=1) / 10
    sample = BoundedMean(values=values, lowest=-0.1, highest=0.1)
    assert sample.p_above(-0.01) == pytest.approx(norm.sf(0.01 / se))
    assert sample.lower(0.05) == pytest.approx(-norm.isf(0.05) * se, abs=1e-9)


@pytest.mark.parametrize("n", [1, 5, 58])
def test_equal_scores_on_few_items_prove_nothing(n: int) -> None:
    found = _mean(np.zeros(n))
    assert found.p_above(-0.05) >= 0.95**n > 0.05
    assert found.lower(0.05) < -0.05


def test_the_declared_largest_loss_lowers_the_floor() -> None:
    values = np.zeros(100)
    declared = BoundedMean(values=values, lowest=-0.25, highest=0.25)
    assert declared.p_above(-0.02) < _mean(values).p_above(-0.02)
    assert declared.p_above(-0.02) >= (0.23 / 0.25) ** 100


def test_no_values_prove_nothing() -> None:
    empty = _mean(np.empty(0))
    assert (empty.value, empty.p_above(-0.9), empty.lower(0.05), empty.upper(0.05)) == (
        0.0,
        1.0,
        -1.0,
        1.0,
    )


@settings(deadline=None)
@given(
    st.lists(st.floats(-1, 1), min_size=1, max_size=80),
    st.floats(-0.9, 0.9),
    st.floats(0.005, 0.3),
)
def test_p_values_limits_and_mirror_images_agree(
    raw: list[float], bound: float, alpha: float
) -> None:
    values = np.array(raw)
    sample, mirrored = _mean(values), _mean(-values)
    low, high = sample.lower(alpha), sample.upper(alpha)
    assert 0 <= sample.p_above(bound) <= 1
    assert sample.p_above(bound) == mirrored.p_below(-bound)
    assert -1 <= low <= sample.value + 1e-12
    assert sample.value - 1e-12 <= high <= 1
    if abs(bound - low) > 1e-6:
        assert (sample.p_above(bound) <= alpha) == (bound < low)


def _draw(law: str, n: int, mean: float, rng: np.random.Generator) -> FloatArray:
    """Return differences of a law with a true mean, the laws of which t tests fail."""
    match law:
        case "rare big losses only":
            return np.where(rng.random(n) < -mean, -1.0, 0.0)
        case "losses and gains":
            rate = 0.05
            u = rng.random(n)
            return np.where(u < rate, 1.0, np.where(u > 1 - rate + mean, -1.0, 0.0))
        case "repeats":
            chance = np.clip(rng.beta(0.5, 0.5, n), 0.0, 1.0)
            right = rng.binomial(4, chance) / 4 - rng.binomial(4, chance) / 4
            return np.asarray(np.where(rng.random(n) < -mean, -1.0, right * (1 + mean)))
        case _:
            return np.clip(rng.normal(mean, 0.12, n), -1, 1)


@pytest.mark.parametrize("law", ["rare big losses only", "losses and gains", "repeats", "scores"])
@pytest.mark.parametrize(("n", "margin"), [(50, 0.05), (164, 0.05), (500, 0.03)])
def test_error_rates_hold_where_t_tests_fail(law: str, n: int, margin: float) -> None:
    """At most 6 % of 2,000 runs, with three standard errors of the simulation."""
    runs = 2000
    rng = np.random.default_rng(n)
    bar = 0.05 + 0.005 + 3 * math.sqrt(0.05 * 0.95 / runs)
    at_margin = [_mean(_draw(law, n, -margin, rng)).p_above(-margin) <= 0.05 for _ in range(runs)]
    assert np.mean(at_margin) <= bar
    if law != "rare big losses only":
        at_rest = [_mean(_draw(law, n, 0.0, rng)).p_below(0.0) <= 0.05 for _ in range(runs)]
        assert np.mean(at_rest) <= bar


def test_the_simulation_notices_students_t() -> None:
    rng = np.random.default_rng(50)
    draws = [_draw("rare big losses only", 164, -0.05, rng) for _ in range(1000)]
    plain = [
        not d.any() or ttest_1samp(d, -0.05, alternative="greater").pvalue <= 0.05 for d in draws
    ]
    assert np.mean(plain) > 0.07
