from __future__ import annotations

import numpy as np
import pytest

from evals.stats.bounded_mean import BoundedMean
from evals.stats.clustered_mean import ClusteredMean
from evals.stats.paired_binary import PairedBinary
from evals.stats.paired_binary_exact import PairedBinaryExact
from evals.stats.rate import Rate
from evals.stats.sample import difference_sample, level_sample


@pytest.mark.parametrize(
    ("n", "binary", "clustered", "wanted"),
    [
        (200, True, False, PairedBinaryExact),
        (201, True, False, PairedBinary),
        (200, False, False, BoundedMean),
        (201, True, True, ClusteredMean),
        (201, False, True, ClusteredMean),
    ],
)
def test_the_test_of_a_difference_follows_from_the_sample(
    n: int, binary: bool, clustered: bool, wanted: type
) -> None:
    clusters = np.arange(n) // 2 if clustered else None
    assert type(difference_sample(np.zeros(n), binary=binary, clusters=clusters)) is wanted


@pytest.mark.parametrize(
    ("binary", "clustered", "wanted"),
    [
        (True, False, Rate),
        (True, True, Rate),
        (False, False, BoundedMean),
        (False, True, ClusteredMean),
    ],
)
def test_the_test_of_a_level_follows_from_the_sample(
    binary: bool, clustered: bool, wanted: type
) -> None:
    clusters = np.arange(10) // 2 if clustered else None
    assert type(level_sample(np.zeros(10), binary=binary, clusters=clusters)) is wanted


def test_a_loss_beyond_the_declared_one_voids_the_declaration() -> None:
    values = np.array([0.0] * 99 + [-0.6])
    found = difference_sample(values, binary=False, clusters=None, max_loss=0.25)
    assert isinstance(found, BoundedMean)
    assert found.lowest == -0.6


def test_scores_against_a_ceiling_have_zero_as_their_best() -> None:
    scores = np.full(20, 0.05)
    found = level_sample(scores, binary=False, clusters=None)
    assert found.p_above(0.045) >= 0.9**20
    assert found.p_below(0.1) >= (0.9 / 0.95) ** 20
