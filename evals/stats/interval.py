"""Intervals of one proportion."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import betaincinv
from scipy.stats import norm


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An estimate with what is known of it."""

    n: int
    value: float
    low: float
    high: float
    level: float
    """Two-sided coverage, in (0, 1)."""


def wilson(events: float, n: float, level: float) -> Interval:
    """Return Wilson's interval of a proportion; [0, 1] where n is 0.

    Source: Wilson 1927.
    """
    if n == 0:
        return Interval(n=0, value=0.0, low=0.0, high=1.0, level=level)
    z = float(norm.isf((1 - level) / 2))
    p, spread = events / n, z * z / n
    centre = (p + spread / 2) / (1 + spread)
    half = z * math.sqrt(p * (1 - p) / n + spread / (4 * n)) / (1 + spread)
    low = 0.0 if events == 0 else max(centre - half, 0.0)
    high = 1.0 if events == n else min(centre + half, 1.0)
    return Interval(n=int(n), value=p, low=low, high=high, level=level)


def clopper_pearson_lower(events: float, n: float, alpha: float) -> float:
    """Return the exact one-sided lower limit of a proportion; counts may be fractional.

    Source: Clopper & Pearson 1934.
    """
    return 0.0 if events <= 0 else float(betaincinv(events, n - events + 1, alpha))


def clopper_pearson_upper(events: float, n: float, alpha: float) -> float:
    """Return the exact one-sided upper limit of a proportion; counts may be fractional."""
    return 1.0 if events >= n else float(betaincinv(events + 1, n - events, 1 - alpha))
