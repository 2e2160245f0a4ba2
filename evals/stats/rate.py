"""Events in attempts against a ceiling: exact, and with clusters by an effective count.

A floor under a score is a ceiling on 1 - score.
"""

from __future__ import annotations

from dataclasses import dataclass

from scipy.special import betainc

from evals.stats.arrays import FloatArray, IntArray
from evals.stats.clustered_mean import ClusteredMean
from evals.stats.interval import clopper_pearson_lower, clopper_pearson_upper


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """``events`` in ``n`` independent attempts; both may be fractional, as effective counts are."""

    events: float
    n: float

    def __post_init__(self) -> None:
        """Hold that the counts fit each other."""
        if not 0 <= self.events <= self.n:
            raise ValueError("events lie between 0 and the number of attempts")

    @property
    def value(self) -> float:
        """Return the observed rate; 0 where there was no attempt."""
        return self.events / self.n if self.n else 0.0

    def p_below(self, ceiling: float) -> float:
        """Return P(Bin(n, ceiling) <= events), the p-value of the claim "rate < ceiling"."""
        if self.events >= self.n:
            return 1.0
        return float(betainc(self.n - self.events, self.events + 1, 1 - ceiling))

    def p_above(self, ceiling: float) -> float:
        """Return P(Bin(n, ceiling) >= events), the p-value of the claim "rate > ceiling"."""
        if self.events <= 0:
            return 1.0
        return float(betainc(self.events, self.n - self.events + 1, ceiling))

    def lower(self, alpha: float) -> float:
        """Return the one-sided Clopper-Pearson lower limit."""
        return clopper_pearson_lower(self.events, self.n, alpha)

    def upper(self, alpha: float) -> float:
        """Return the one-sided Clopper-Pearson upper limit."""
        return clopper_pearson_upper(self.events, self.n, alpha)


def clustered_rate(values: FloatArray, clusters: IntArray) -> Rate:
    """Return events in attempts with the number of attempts that clusters leave of them.

    The effective number is that whose binomial variance equals the clustered variance of the
    rate, never more than there are items. Where nothing or everything is an event no variance
    can be seen, and the effective number is the number of clusters. Source: Korn & Graubard 1998.

    Args:
        values: ``[n]`` of 0 and 1, n at least 1.
        clusters: ``[n]``, which cluster each is in.
    """
    mean = ClusteredMean(values=values, clusters=clusters)
    error = mean.error()
    rate = mean.value
    if rate in (0.0, 1.0) or error.df <= 0:
        return Rate(events=rate * error.clusters, n=float(error.clusters))
    variance = error.se**2
    effective = float(mean.n) if variance == 0 else min(rate * (1 - rate) / variance, mean.n)
    return Rate(events=rate * effective, n=effective)


def min_attempts(ceiling: float, alpha: float, events: int) -> int:
    """Return the fewest attempts with which ``events`` events still prove "rate < ceiling".

    Args:
        ceiling: In (0, 1).
        alpha: One-sided level, in (0, 1).
        events: At least 0.
    """
    low, high = events, max(2 * events, 1)
    while Rate(events=events, n=high).p_below(ceiling) > alpha:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if Rate(events=events, n=middle).p_below(ceiling) > alpha:
            low = middle
        else:
            high = middle
    return high
