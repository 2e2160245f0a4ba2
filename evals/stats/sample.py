"""Which test fits a sample; chosen by what the sample is, never by what it shows."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from evals.stats.arrays import FloatArray, IntArray
from evals.stats.bounded_mean import BoundedMean
from evals.stats.clustered_mean import ClusteredMean
from evals.stats.paired_binary import PairedBinary
from evals.stats.paired_binary_exact import MAX_ITEMS, PairedBinaryExact
from evals.stats.rate import Rate, clustered_rate


class Sample(Protocol):
    """One-sided claims about a mean, and the bounds they reach."""

    def p_above(self, bound: float) -> float:
        """Return the p-value of the claim "mean > bound"."""
        ...

    def p_below(self, bound: float) -> float:
        """Return the p-value of the claim "mean < bound"."""
        ...

    def lower(self, alpha: float) -> float:
        """Return the bound above which the mean lies at one-sided level ``alpha``."""
        ...

    def upper(self, alpha: float) -> float:
        """Return the bound below which the mean lies at one-sided level ``alpha``."""
        ...


def difference_sample(
    values: FloatArray, *, binary: bool, clusters: IntArray | None, max_loss: float = 1.0
) -> Sample:
    """Return the test for paired differences of item scores.

    Args:
        values: ``[n]``, candidate - baseline, in [-1, 1].
        binary: True where each side answered once and is right or wrong: values are -1, 0 or 1.
        clusters: ``[n]``, where items share content.
        max_loss: The most that one item can lose; raised to the largest loss there is, since a
            declaration that the data contradict protects nobody.
    """
    if clusters is None and binary:
        counts = {
            "baseline_only": int(np.count_nonzero(values < 0)),
            "candidate_only": int(np.count_nonzero(values > 0)),
            "n": len(values),
        }
        return PairedBinaryExact(**counts) if len(values) <= MAX_ITEMS else PairedBinary(**counts)
    largest = max(max_loss, float(np.abs(values).max(initial=0.0)))
    if clusters is None:
        return BoundedMean(values=values, lowest=-largest, highest=largest)
    return ClusteredMean(
        values=values, clusters=clusters, lowest=-largest, highest=largest, cluster_floor=True
    )


def level_sample(values: FloatArray, *, binary: bool, clusters: IntArray | None) -> Sample:
    """Return the test for one side's item scores in [0, 1] against a ceiling or a floor.

    Args:
        values: ``[n]`` item scores.
        binary: True where each item was answered once and is right or wrong.
        clusters: ``[n]``, where items share content.
    """
    if binary and clusters is None:
        return Rate(events=float(values.sum()), n=float(len(values)))
    if binary and clusters is not None:
        return clustered_rate(values, clusters)
    if clusters is None:
        return BoundedMean(values=values, lowest=0.0, highest=1.0)
    return ClusteredMean(
        values=values, clusters=clusters, lowest=0.0, highest=1.0, cluster_floor=True
    )
