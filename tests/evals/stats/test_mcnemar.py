from __future__ import annotations

import pytest
from scipy.stats import binomtest
from statsmodels.stats.contingency_tables import mcnemar

from evals.stats.mcnemar import mcnemar_exact


@pytest.mark.parametrize(("losses", "gains"), [(12, 2), (5, 0), (0, 5), (7, 7), (1, 0)])
def test_p_values_equal_the_references(losses: int, gains: int) -> None:
    found = mcnemar_exact(losses, gains)
    one_sided = binomtest(losses, losses + gains, 0.5, alternative="greater").pvalue
    assert found.p_two_sided == pytest.approx(mcnemar([[0, losses], [gains, 0]], exact=True).pvalue)
    assert found.p_regression_one_sided == pytest.approx(one_sided)
    assert found.p_regression_midp < found.p_regression_one_sided


def test_without_disagreement_nothing_is_proven() -> None:
    found = mcnemar_exact(0, 0)
    assert found.p_two_sided == found.p_regression_one_sided == 1.0
    assert found.p_regression_midp == 0.5
