"""The mean of items that share content: variance and degrees of freedom by clusters.

CR2 ("bias-reduced linearisation") in the closed form that it has for a mean, with Satterthwaite
degrees of freedom under two working models; the smaller is used. Sources: Bell & McCaffrey 2002;
Pustejovsky & Tipton 2018.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtr, stdtrit

from evals.stats.arrays import FloatArray, IntArray
from evals.stats.floor import floor_limit, unseen_loss_floor

MIN_CLUSTERS = 5
"""Below this nothing is concluded."""

FEW_DEGREES = 5.0
"""Degrees of freedom below which a result is worth a warning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterError:
    """Standard error of a clustered mean."""

    clusters: int
    se: float
    """CR2."""
    se_cr1: float
    """The usual small-sample correction, for comparison with other tools."""
    df_iid: float
    """Degrees of freedom if items of a cluster were independent."""
    df_cluster: float
    """Degrees of freedom if items of a cluster were all alike."""

    @property
    def df(self) -> float:
        """Return the smaller of both."""
        return min(self.df_iid, self.df_cluster)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusteredMean:
    """Values in [lowest, highest] of items in clusters; every item has the same weight."""

    values: FloatArray
    """``[n]``."""
    clusters: IntArray
    """``[n]``: which cluster each item is in, any integers."""
    lowest: float = -1.0
    highest: float = 1.0
    cluster_floor: bool = False
    """True: where no value speaks against a claim, the unseen-loss floor counts clusters as its
    draws, since a loss may strike whole clusters. False: it counts items always."""

    @property
    def n(self) -> int:
        """Return the number of items."""
        return len(self.values)

    @property
    def value(self) -> float:
        """Return the mean over items; 0 where there is none."""
        return float(self.values.mean()) if self.n else 0.0

    def error(self) -> ClusterError:
        """Return standard error and degrees of freedom; with one cluster, infinite and 0."""
        _, codes = np.unique(self.clusters, return_inverse=True)
        count = int(codes.max()) + 1 if self.n else 0
        if count <= 1:
            return ClusterError(
                clusters=count, se=math.inf, se_cr1=math.inf, df_iid=0.0, df_cluster=0.0
            )
        share = np.bincount(codes, minlength=count) / self.n
        residual = np.bincount(codes, self.values - self.value, minlength=count) / self.n
        squares = residual * residual
        return ClusterError(
            clusters=count,
            se=math.sqrt(float((squares / (1 - share)).sum())),
            se_cr1=math.sqrt(float(squares.sum()) * count / (count - 1)),
            df_iid=_satterthwaite(share, share / self.n),
            df_cluster=_satterthwaite(share, share * share),
        )

    def p_above(self, bound: float) -> float:
        """Return the p-value of the claim "mean > bound"; 1 with fewer than two clusters."""
        error = self.error()
        if error.df <= 0:
            return 1.0
        distance = self.value - bound
        if error.se > 0:
            p = float(stdtr(error.df, -distance / error.se))
        else:
            p = 0.0 if distance > 0 else 1.0
        return max(p, unseen_loss_floor(self._draws(), self.value, bound, self.lowest))

    def p_below(self, bound: float) -> float:
        """Return the p-value of the claim "mean < bound"."""
        return self._mirrored().p_above(-bound)

    def lower(self, alpha: float) -> float:
        """Return the bound above which the mean lies at one-sided level ``alpha``."""
        error = self.error()
        if error.df <= 0:
            return self.lowest
        limit = self.value - float(stdtrit(error.df, 1 - alpha)) * error.se
        floor = floor_limit(self._draws(), self.value, alpha, self.lowest)
        return max(min(limit, floor), self.lowest)

    def upper(self, alpha: float) -> float:
        """Return the bound below which the mean lies at one-sided level ``alpha``."""
        return -self._mirrored().lower(alpha)

    def _draws(self) -> int:
        if self.cluster_floor and not (self.values < 0).any():
            return len(np.unique(self.clusters))
        return self.n

    def _mirrored(self) -> ClusteredMean:
        return replace(self, values=-self.values, lowest=-self.highest, highest=-self.lowest)


def _satterthwaite(share: FloatArray, variance: FloatArray) -> float:
    """Return the degrees of freedom of CR2 under a working variance of each cluster's sum.

    With a = 1 / (1 - W) and Ω_gh = v_g [g = h] - W_g v_h - W_h v_g + W_g W_h Σv this is
    (Σ a_g Ω_gg)² / Σ_gh a_g a_h Ω_gh², expanded so that no G × G matrix is built.

    Args:
        share: ``[G]``, weight of each cluster, sum 1.
        variance: ``[G]``, working variance v of each cluster's weighted sum.
    """
    scale = 1 / (1 - share)
    total = float(variance.sum())
    off = share * share * total - 2 * share * variance
    trace = float((scale * (variance + off)).sum())
    shares = float((scale * share * share).sum())
    variances = float((scale * variance * variance).sum())
    mixed = float((scale * share * variance).sum())
    everywhere = (
        2 * shares * variances + (total * shares) ** 2 + 2 * mixed**2 - 4 * total * shares * mixed
    )
    diagonal = float((scale * scale * ((variance + off) ** 2 - off**2)).sum())
    return trace * trace / (everywhere + diagonal)
