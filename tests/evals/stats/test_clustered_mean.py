from __future__ import annotations

import math

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student

from evals.stats.arrays import FloatArray, IntArray
from evals.stats.clustered_mean import ClusteredMean


def _made(sizes: list[int], seed: int = 0) -> tuple[FloatArray, IntArray]:
    rng = np.random.default_rng(seed)
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    values = rng.normal(0, 0.1, len(clusters)) + rng.normal(0, 0.1, len(sizes))[clusters]
    return np.clip(values, -1, 1), clusters


def _matrix_definition(values: FloatArray, clusters: IntArray) -> tuple[float, float, float]:
    """Return CR2 and both degrees of freedom from the general matrix definitions."""
    n = len(values)
    ones = np.ones((n, 1))
    hat = ones @ ones.T / n
    members = [np.flatnonzero(clusters == c) for c in np.unique(clusters)]
    residual = values - values.mean()
    variance = 0.0
    rows = []
    for index in members:
        block = np.eye(n)[np.ix_(index, index)] - hat[np.ix_(index, index)]
        eigenvalue, vector = np.linalg.eigh(block)
        root = vector @ np.diag(eigenvalue**-0.5) @ vector.T
        adjusted = np.ones(len(index)) @ root / n
        variance += float(adjusted @ residual[index]) ** 2
        rows.append(adjusted @ (np.eye(n) - hat)[index])
    contrast = np.array(rows)
    degrees = []
    for alike in (False, True):
        working = np.eye(n)
        if alike:
            working = (clusters[:, None] == clusters[None, :]).astype(float)
        eigenvalues = np.linalg.eigvalsh(contrast @ working @ contrast.T)
        degrees.append(eigenvalues.sum() ** 2 / (eigenvalues**2).sum())
    return math.sqrt(variance), degrees[0], degrees[1]


@pytest.mark.parametrize("sizes", [[5] * 30, [1, 2, 3, 10, 20, 40], [1] * 12, [30, 1, 1, 1, 1, 1]])
def test_closed_forms_equal_the_matrix_definitions(sizes: list[int]) -> None:
    values, clusters = _made(sizes)
    error = ClusteredMean(values=values, clusters=clusters).error()
    se, df_iid, df_cluster = _matrix_definition(values, clusters)
    assert (error.se, error.df_iid, error.df_cluster) == pytest.approx((se, df_iid, df_cluster))
    assert error.df == min(error.df_iid, error.df_cluster)


def test_cr1_equals_statsmodels() -> None:
    values, clusters = _made([3, 5, 7, 11, 2, 8])
    fit = sm.OLS(values, np.ones(len(values))).fit(
        cov_type="cluster", cov_kwds={"groups": clusters, "use_correction": True}
    )
    assert ClusteredMean(values=values, clusters=clusters).error().se_cr1 == pytest.approx(
        fit.bse[0]
    )


def test_items_alone_give_the_ordinary_standard_error() -> None:
    values, clusters = _made([1] * 40)
    error = ClusteredMean(values=values, clusters=clusters).error()
    assert error.se == pytest.approx(values.std(ddof=1) / math.sqrt(40))
    assert error.df == pytest.approx(39)


def test_p_value_is_students_t_with_the_smaller_degrees_of_freedom() -> None:
    values, clusters = _made([4, 8, 15, 16, 23, 42])
    sample = ClusteredMean(values=values, clusters=clusters)
    error = sample.error()
    expected = student.sf((sample.value + 0.05) / error.se, error.df)
    assert sample.p_above(-0.05) == pytest.approx(expected)


@pytest.mark.parametrize("clusters", [[], [3] * 5])
def test_one_cluster_or_none_proves_nothing(clusters: list[int]) -> None:
    sample = ClusteredMean(
        values=np.ones(len(clusters)), clusters=np.array(clusters, dtype=np.int64)
    )
    assert (sample.p_above(-0.9), sample.lower(0.05), sample.upper(0.05)) == (1.0, -1.0, 1.0)


def test_without_any_loss_clusters_are_the_draws_where_asked() -> None:
    values, clusters = np.zeros(200), np.repeat(np.arange(20), 10)
    by_item = ClusteredMean(values=values, clusters=clusters)
    by_cluster = ClusteredMean(values=values, clusters=clusters, cluster_floor=True)
    assert by_item.p_above(-0.02) == pytest.approx(0.98**200)
    assert by_cluster.p_above(-0.02) == pytest.approx(0.98**20)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.floats(-1, 1), st.integers(0, 6)), min_size=1, max_size=60),
    st.floats(-0.9, 0.9),
    st.floats(0.01, 0.3),
)
def test_p_values_limits_and_mirror_images_agree(
    rows: list[tuple[float, int]], bound: float, alpha: float
) -> None:
    values = np.array([value for value, _ in rows])
    clusters = np.array([cluster for _, cluster in rows])
    sample = ClusteredMean(values=values, clusters=clusters)
    low, high = sample.lower(alpha), sample.upper(alpha)
    assert 0 <= sample.p_above(bound) <= 1
    assert sample.p_above(bound) == ClusteredMean(values=-values, clusters=clusters).p_below(-bound)
    assert -1 <= low <= sample.value + 1e-9
    assert sample.value - 1e-9 <= high <= 1
    if abs(bound - low) > 1e-6 and abs(bound - sample.value) > 1e-9:
        assert (sample.p_above(bound) <= alpha) == (bound < low)


@pytest.mark.parametrize(
    ("sizes", "correlation"),
    [([10] * 60, 0.2), ([25] * 20, 0.2), ([150, 80, 60, 50, 40, 40, 30, 20, 20, 10], 0.2)],
)
def test_error_rates_hold_with_clusters(sizes: list[int], correlation: float) -> None:
    """At most 5.5 % of 2,000 runs, with three standard errors of the simulation."""
    runs = 2000
    rng = np.random.default_rng(len(sizes))
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    passed = 0
    naive = 0
    for _ in range(runs):
        shared = rng.normal(0, math.sqrt(correlation), len(sizes))[clusters]
        z = shared + rng.normal(0, math.sqrt(1 - correlation), len(clusters))
        values = np.where(z < -1.2816, -1.0, np.where(z > 1.4758, 1.0, 0.0))
        sample = ClusteredMean(values=values, clusters=clusters)
        passed += sample.p_above(-0.03) <= 0.05
        se = values.std(ddof=1) / math.sqrt(len(values))
        naive += (values.mean() + 0.03) / se > 1.645
    assert passed / runs <= 0.055 + 3 * math.sqrt(0.05 * 0.95 / runs)
    assert naive / runs > 0.07
