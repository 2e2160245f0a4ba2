"""Paired right-or-wrong items: the score test of a difference of two proportions.

Sources: Tango 1998 (score test and interval of a paired difference), Newcombe 1998 (method 10).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from evals.stats.arrays import FloatArray
from evals.stats.floor import floor_limit, unseen_loss_floor
from evals.stats.interval import wilson

BISECTIONS = 60
"""Halvings of [-1, 1]: the limit is then exact to the last bit that matters."""

ROUNDING = 1e-12
"""Share of n below which a variance or a distance is nothing but rounding."""


class Limits(NamedTuple):
    """A two-sided interval."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedBinary:
    """Counts of ``n`` items that each side got right or wrong once."""

    baseline_only: int
    """Items that only the baseline got right."""
    candidate_only: int
    """Items that only the candidate got right."""
    n: int
    """All items, those on which both sides agree included."""

    def __post_init__(self) -> None:
        """Hold that the counts fit into each other."""
        if min(self.baseline_only, self.candidate_only) < 0:
            raise ValueError("counts of items can't be negative")
        if self.baseline_only + self.candidate_only > self.n:
            raise ValueError("more discordant items than items")

    @property
    def value(self) -> float:
        """Return candidate - baseline; 0 where there is no item."""
        return (self.candidate_only - self.baseline_only) / self.n if self.n else 0.0

    def z(self, bound: float) -> float:
        """Return the score statistic of "difference = bound"; it falls as the bound rises."""
        if self.n == 0:
            return 0.0
        return float(
            score_z(
                np.asarray(self.baseline_only, dtype=np.float64),
                np.asarray(self.candidate_only, dtype=np.float64),
                self.n,
                bound,
            )
        )

    def p_above(self, bound: float) -> float:
        """Return the p-value of the claim "difference > bound", at least the unseen-loss floor."""
        p = float(ndtr(-self.z(bound)))
        return max(p, unseen_loss_floor(self.n, self.value, bound))

    def p_below(self, bound: float) -> float:
        """Return the p-value of the claim "difference < bound"."""
        return self._mirrored().p_above(-bound)

    def lower(self, alpha: float) -> float:
        """Return the bound above which the difference lies at one-sided level ``alpha``."""
        if self.n == 0:
            return -1.0
        return min(self.score_limits(1 - 2 * alpha).low, floor_limit(self.n, self.value, alpha))

    def upper(self, alpha: float) -> float:
        """Return the bound below which the difference lies at one-sided level ``alpha``."""
        return -self._mirrored().lower(alpha)

    def score_limits(self, level: float) -> Limits:
        """Return the score interval of two-sided ``level``: all differences that z leaves open."""
        if self.n == 0:
            return Limits(-1.0, 1.0)
        z = float(ndtri((1 + level) / 2))
        return Limits(_lower_score_limit(self, z), -_lower_score_limit(self._mirrored(), z))

    def _mirrored(self) -> PairedBinary:
        """Return the same items with the sides exchanged, of the same kind of test."""
        return type(self)(
            baseline_only=self.candidate_only, candidate_only=self.baseline_only, n=self.n
        )


def score_z(losses: FloatArray, gains: FloatArray, n: int, bound: float) -> FloatArray:
    """Return the score statistic of "difference = bound" for each table.

    Args:
        losses: Items that only the baseline got right, any shape.
        gains: Items that only the candidate got right, same shape.
        n: Items of each table, at least 1.
        bound: Difference under the hypothesis, in [-1, 1].

    Returns:
        Same shape; 0 where the hypothesis leaves no variance and the table agrees with it, and
        infinite where it leaves none and the table does not.
    """
    a = 2.0 * n
    b = -((losses + gains) + (gains - losses - 2 * n) * bound)
    c = -losses * bound * (1 - bound)
    q = (np.sqrt(np.maximum(b * b - 4 * a * c, 0.0)) - b) / (2 * a)
    variance = np.maximum(n * (2 * q + bound - bound * bound), 0.0)
    distance = gains - losses - n * bound
    known = variance > ROUNDING * n
    limit = np.where(np.abs(distance) < ROUNDING * n, 0.0, np.copysign(np.inf, distance))
    return np.where(known, distance / np.sqrt(np.where(known, variance, 1.0)), limit)


def newcombe_interval(
    *, both: int, baseline_only: int, candidate_only: int, neither: int, level: float
) -> Limits:
    """Return Newcombe's interval (method 10) of candidate - baseline, for display.

    Args:
        both: Items that both sides got right.
        baseline_only: Items that only the baseline got right.
        candidate_only: Items that only the candidate got right.
        neither: Items that both sides got wrong.
        level: Two-sided, in (0, 1).
    """
    n = both + baseline_only + candidate_only + neither
    if n == 0:
        return Limits(-1.0, 1.0)
    right_candidate, right_baseline = both + candidate_only, both + baseline_only
    p, q = right_candidate / n, right_baseline / n
    of_candidate, of_baseline = wilson(right_candidate, n, level), wilson(right_baseline, n, level)
    product = right_candidate * (n - right_candidate) * right_baseline * (n - right_baseline)
    covariance = both * neither - baseline_only * candidate_only
    if covariance > 0:
        covariance = max(covariance - n / 2, 0.0)  # type: ignore[assignment]
    phi = covariance / math.sqrt(product) if product else 0.0
    below = (p - of_candidate.low, of_baseline.high - q)
    above = (of_candidate.high - p, q - of_baseline.low)
    return Limits(p - q - _length(*below, phi), p - q + _length(*above, phi))


def _length(one: float, other: float, phi: float) -> float:
    return math.sqrt(max(one * one - 2 * phi * one * other + other * other, 0.0))


def _lower_score_limit(counts: PairedBinary, z: float) -> float:
    """Return the least difference whose score statistic does not exceed ``z``."""
    low, high = -1.0, counts.value
    if counts.z(low) <= z:
        return low
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if counts.z(middle) > z:
            low = middle
        else:
            high = middle
    return high
