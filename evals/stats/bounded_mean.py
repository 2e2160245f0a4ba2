"""The mean of bounded values: scores in [0, 1] and their differences, also with repeats.

Student's t test is badly wrong when losses are rare and large, so that a mean is called safe
because the losses were not drawn. Two cures, by how many values speak against the claim:

- at least 20: the studentised mean corrected for skewness (Hall 1992, cubic transformation);
- fewer: one further value at its worst is added, then Student's t with n degrees of freedom.

In both, p stays at or above the unseen-loss floor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from evals.stats.arrays import FloatArray
from evals.stats.floor import floor_limit, unseen_loss_floor

MIN_AGAINST = 20
"""Values against the claim from which their skewness is taken as known."""

NO_SPREAD = 1e-12
"""Standard deviation below which all values are the same."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BoundedMean:
    """Independent values in [lowest, highest], one per item."""

    values: FloatArray
    """``[n]``."""
    lowest: float = -1.0
    """The worst that a value can be for the claim that the mean is large."""
    highest: float = 1.0

    @property
    def n(self) -> int:
        """Return the number of values."""
        return len(self.values)

    @property
    def value(self) -> float:
        """Return the mean; 0 where there is no value."""
        return float(self.values.mean()) if self.n else 0.0

    def p_above(self, bound: float) -> float:
        """Return the p-value of the claim "mean > bound"."""
        if self.n == 0:
            return 1.0
        spread = _spread(self.values)
        if spread > NO_SPREAD and np.count_nonzero(self.values < 0) >= MIN_AGAINST:
            skewness = _skewness(self.values, spread)
            u = (self.value - bound) / spread
            p = float(ndtr(-_hall(u, skewness, self.n)))
        else:
            p = self._p_with_worst(bound)
        return max(p, unseen_loss_floor(self.n, self.value, bound, self.lowest))

    def p_below(self, bound: float) -> float:
        """Return the p-value of the claim "mean < bound"."""
        return self._mirrored().p_above(-bound)

    def lower(self, alpha: float) -> float:
        """Return the bound above which the mean lies at one-sided level ``alpha``."""
        if self.n == 0:
            return self.lowest
        spread = _spread(self.values)
        if spread > NO_SPREAD and np.count_nonzero(self.values < 0) >= MIN_AGAINST:
            u = _hall_inverse(float(ndtri(1 - alpha)), _skewness(self.values, spread), self.n)
            limit = self.value - u * spread
        else:
            padded = np.append(self.values, self.lowest)
            quantile = float(stdtrit(self.n, 1 - alpha))
            limit = float(padded.mean()) - quantile * _spread(padded) / math.sqrt(len(padded))
        return max(min(limit, floor_limit(self.n, self.value, alpha, self.lowest)), self.lowest)

    def upper(self, alpha: float) -> float:
        """Return the bound below which the mean lies at one-sided level ``alpha``."""
        return -self._mirrored().lower(alpha)

    def _p_with_worst(self, bound: float) -> float:
        padded = np.append(self.values, self.lowest)
        distance = float(padded.mean()) - bound
        error = _spread(padded) / math.sqrt(len(padded))
        if error <= NO_SPREAD:
            return 0.0 if distance > 0 else 1.0
        return float(stdtr(self.n, -distance / error))

    def _mirrored(self) -> BoundedMean:
        return replace(self, values=-self.values, lowest=-self.highest, highest=-self.lowest)


def _spread(values: FloatArray) -> float:
    """Return the standard deviation with n - 1, 0 for one value."""
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def _skewness(values: FloatArray, spread: float) -> float:
    centred = values - values.mean()
    return float((centred**3).mean()) / spread**3


def _hall(u: float, skewness: float, n: int) -> float:
    """Return Hall's cubic of the standardised distance ``u`` = (mean - bound) / spread."""
    g = skewness
    return math.sqrt(n) * (u + g * u * u / 3 + g * g * u**3 / 27 + g / (6 * n))


def _hall_inverse(h: float, skewness: float, n: int) -> float:
    """Return the ``u`` at which :func:`_hall` is ``h``; the cubic rises everywhere."""
    g = skewness
    wanted = h / math.sqrt(n) - g / (6 * n)
    if abs(g) < NO_SPREAD:
        return wanted
    return 3 * (float(np.cbrt(1 + g * wanted)) - 1) / g
