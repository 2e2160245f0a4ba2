"""The interval of one checkpoint's mean score on one task, for tables."""

from __future__ import annotations

from evals.stats.arrays import FloatArray, IntArray
from evals.stats.bounded_mean import BoundedMean
from evals.stats.clustered_mean import ClusteredMean
from evals.stats.interval import Interval, wilson


def mean_interval(
    values: FloatArray, *, binary: bool, clusters: IntArray | None = None, level: float = 0.95
) -> Interval:
    """Return the mean of item scores with its interval, within [0, 1].

    Right or wrong items get Wilson's interval; other scores Student's t with one more value at
    the far end; clustered items a CR2 standard error. None of them has zero width on few items,
    also where all scores are alike: the unseen-loss floor keeps it open.

    Args:
        values: ``[n]`` item scores in [0, 1], without missing ones; n = 0 gives [0, 1].
        binary: True where every value is 0 or 1.
        clusters: ``[n]``, where items share content.
        level: Two-sided, in (0, 1).
    """
    n = len(values)
    alpha = (1 - level) / 2
    if clusters is not None:
        sample = ClusteredMean(
            values=values, clusters=clusters, lowest=0.0, highest=1.0, cluster_floor=True
        )
        low, high = sample.lower(alpha), sample.upper(alpha)
    elif binary:
        return wilson(float(values.sum()), n, level)
    else:
        mean = BoundedMean(values=values, lowest=0.0, highest=1.0)
        low, high = mean.lower(alpha), mean.upper(alpha)
    value = float(values.mean()) if n else 0.0
    return Interval(
        n=n,
        value=value,
        low=min(max(low, 0.0), value),
        high=max(min(high, 1.0), value),
        level=level,
    )
