from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from statsmodels.stats.proportion import proportions_ztest

from evals.stats.unpaired_binary import UnpairedBinary


def _reference_z(counts: UnpairedBinary, bound: float) -> float:
    """Return the statistic with the constrained likelihood maximised numerically."""

    def minus_log_likelihood(rate: float) -> float:
        cells = (
            (counts.candidate_right, rate + bound),
            (counts.candidate_n - counts.candidate_right, 1 - rate - bound),
            (counts.baseline_right, rate),
            (counts.baseline_n - counts.baseline_right, 1 - rate),
        )
        return -sum(count * math.log(p) for count, p in cells if count)

    low, high = max(0.0, -bound), min(1.0, 1 - bound)
    rate = minimize_scalar(
        minus_log_likelihood,
        bounds=(low + 1e-12, high - 1e-12),
        method="bounded",
        options={"xatol": 1e-13},
    ).x
    variance = (rate + bound) * (1 - rate - bound) / counts.candidate_n
    variance += rate * (1 - rate) / counts.baseline_n
    return (counts.value - bound) / math.sqrt(variance)


@pytest.mark.parametrize("bound", [-0.05, -0.2, 0.03])
@pytest.mark.parametrize("counts", [(380, 500, 390, 500), (30, 100, 80, 220), (9, 10, 3, 40)])
def test_statistic_equals_the_one_of_the_numerical_likelihood(
    counts: tuple[int, int, int, int], bound: float
) -> None:
    names = ("candidate_right", "candidate_n", "baseline_right", "baseline_n")
    found = UnpairedBinary(**dict(zip(names, counts, strict=True)))
    assert found.z(bound) == pytest.approx(_reference_z(found, bound), abs=1e-5)


def test_at_no_difference_it_is_the_pooled_z_test() -> None:
    found = UnpairedBinary(candidate_right=30, candidate_n=100, baseline_right=80, baseline_n=220)
    reference, _ = proportions_ztest([30, 80], [100, 220])
    assert found.z(0.0) == pytest.approx(reference)


def test_all_right_on_both_sides_is_known_no_better_than_the_items_allow() -> None:
    found = UnpairedBinary(candidate_right=50, candidate_n=50, baseline_right=50, baseline_n=50)
    assert found.p_below(0.0) == 0.5
    assert found.p_above(-0.05) == pytest.approx(0.05237874492485999)


sides = st.integers(1, 50).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@settings(deadline=None)
@given(sides, sides, st.floats(-0.99, 0.99))
def test_p_values_are_probabilities(
    one: tuple[int, int], other: tuple[int, int], bound: float
) -> None:
    found = UnpairedBinary(
        candidate_right=one[0], candidate_n=one[1], baseline_right=other[0], baseline_n=other[1]
    )
    assert 0 <= found.p_above(bound) <= 1
    assert found.p_above(bound) + found.p_below(bound) == pytest.approx(1.0)


@pytest.mark.parametrize("counts", [(0, 0, 1, 2), (3, 2, 1, 2)])
def test_counts_that_do_not_fit_are_refused(counts: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match=r"needs an item|between 0"):
        UnpairedBinary(
            candidate_right=counts[0],
            candidate_n=counts[1],
            baseline_right=counts[2],
            baseline_n=counts[3],
        )
