from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from evals.stats.multiplicity import Correction, adjust


@pytest.mark.parametrize(
    ("correction", "name"),
    [
        (Correction.HOLM, "holm"),
        (Correction.HOCHBERG, "simes-hochberg"),
        (Correction.BH, "fdr_bh"),
    ],
)
@pytest.mark.parametrize("count", [1, 2, 5, 30])
def test_adjusted_values_equal_statsmodels(correction: Correction, name: str, count: int) -> None:
    rng = np.random.default_rng(count)
    for _ in range(2):
        p = np.round(rng.random(count) ** 3, 2)
        reference = multipletests(p, method=name)[1]
        np.testing.assert_allclose(adjust(p, correction), reference, atol=1e-12)


def test_no_p_values_stay_none() -> None:
    assert adjust([]).tolist() == []
