from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import ttest_ind

from evals.stats.stratified_mean import StratifiedMean


def test_two_strata_are_welchs_test_of_their_halves() -> None:
    rng = np.random.default_rng(1)
    one, other = rng.normal(0, 0.1, 30), rng.normal(0, 0.3, 50)
    sample = StratifiedMean(strata=[one, other], weights=np.array([0.5, 0.5]))
    welch = ttest_ind(one, -other, equal_var=False, alternative="greater")
    assert sample.error()[1] == pytest.approx(welch.df)
    assert sample.p_above(0.0) == pytest.approx(welch.pvalue)


def test_a_stratum_without_variance_borrows_the_pooled_one() -> None:
    rng = np.random.default_rng(1)
    wide = rng.normal(0, 0.1, 31)
    se, df = StratifiedMean(strata=[wide, np.array([0.1])], weights=np.array([0.5, 0.5])).error()
    variance = wide.var(ddof=1)
    assert se == pytest.approx(0.5 * math.sqrt(variance / 31 + variance))
    assert df > 29


def test_equal_differences_everywhere_stay_at_the_floor() -> None:
    sample = StratifiedMean(strata=[np.zeros(20), np.zeros(30)], weights=np.array([0.5, 0.5]))
    assert sample.p_above(-0.02) == pytest.approx(0.98**50)
    assert sample.lower(0.05) == pytest.approx(0.05 ** (1 / 50) - 1)
    assert sample.upper(0.05) == -sample.lower(0.05)
    assert sample.p_above(0.0) == 1.0


def test_limits_are_where_the_p_value_reaches_alpha() -> None:
    rng = np.random.default_rng(3)
    sample = StratifiedMean(
        strata=[rng.normal(0, 0.2, 40), rng.normal(0.1, 0.2, 60)], weights=np.array([0.3, 0.7])
    )
    assert sample.p_above(sample.lower(0.05)) == pytest.approx(0.05)
    assert sample.p_below(sample.upper(0.05)) == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("strata", "weights"), [([], []), ([[0.1]], [0.5, 0.5]), ([[]], [1.0]), ([[0.1]], [0.9])]
)
def test_strata_that_have_no_mean_are_refused(
    strata: list[list[float]], weights: list[float]
) -> None:
    with pytest.raises(ValueError, match=r"strat|weights"):
        StratifiedMean(strata=[np.array(s) for s in strata], weights=np.array(weights))
