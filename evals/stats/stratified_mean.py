"""Macro average over fixed categories (languages, subjects) that a replication would have again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtr, stdtrit

from evals.stats.arrays import FloatArray
from evals.stats.floor import floor_limit, unseen_loss_floor


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StratifiedMean:
    """Differences in [-1, 1] by stratum, each stratum with its own weight."""

    strata: Sequence[FloatArray]
    """At least one; each holds at least one item."""
    weights: FloatArray
    """One per stratum, sum 1."""

    def __post_init__(self) -> None:
        """Hold that strata and weights fit each other."""
        if len(self.strata) != len(self.weights) or not len(self.weights):
            raise ValueError("as many weights as strata, and at least one")
        if any(len(stratum) == 0 for stratum in self.strata):
            raise ValueError("a stratum without items has no mean")
        if not math.isclose(float(self.weights.sum()), 1.0, abs_tol=1e-9):
            raise ValueError("the weights of strata add up to 1")

    @property
    def n(self) -> int:
        """Return the number of items over all strata."""
        return sum(len(stratum) for stratum in self.strata)

    @property
    def value(self) -> float:
        """Return the weighted mean of the strata's means."""
        return float(sum(w * s.mean() for w, s in zip(self.weights, self.strata, strict=True)))

    def error(self) -> tuple[float, float]:
        """Return standard error and Welch-Satterthwaite degrees of freedom.

        A stratum with one item or without variance borrows variance and degrees of freedom
        pooled over all strata.
        """
        free = np.array([len(stratum) - 1.0 for stratum in self.strata])
        own = np.array([s.var(ddof=1) if len(s) > 1 else 0.0 for s in self.strata])
        pooled_free = float(free.sum())
        pooled = float((free * own).sum()) / pooled_free if pooled_free else 0.0
        variance = np.where(own > 0, own, pooled)
        degrees = np.where(own > 0, free, max(pooled_free, 1.0))
        sizes = np.array([len(stratum) for stratum in self.strata])
        terms = self.weights**2 * variance / sizes
        total = float(terms.sum())
        if total == 0:
            return 0.0, pooled_free
        return math.sqrt(total), total**2 / float((terms**2 / degrees).sum())

    def p_above(self, bound: float) -> float:
        """Return the p-value of the claim "macro average > bound"."""
        return self._p(self.value - bound, unseen_loss_floor(self.n, self.value, bound))

    def p_below(self, bound: float) -> float:
        """Return the p-value of the claim "macro average < bound"."""
        return self._p(bound - self.value, unseen_loss_floor(self.n, -self.value, -bound))

    def lower(self, alpha: float) -> float:
        """Return the bound above which the macro average lies at one-sided level ``alpha``."""
        se, df = self.error()
        limit = self.value - (float(stdtrit(df, 1 - alpha)) * se if se else 0.0)
        return max(min(limit, floor_limit(self.n, self.value, alpha)), -1.0)

    def upper(self, alpha: float) -> float:
        """Return the bound below which the macro average lies at one-sided level ``alpha``."""
        return -replace(self, strata=[-stratum for stratum in self.strata]).lower(alpha)

    def _p(self, distance: float, floor: float) -> float:
        se, df = self.error()
        if se == 0:
            return floor if distance > 0 else 1.0
        return max(float(stdtr(df, -distance / se)), floor)
