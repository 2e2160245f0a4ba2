"""Paired right-or-wrong items, few of them: all tables enumerated, no approximation.

The p-value is the largest probability, over the unknown rate of disagreement, of a table at
least as extreme as the observed one by the score statistic.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import betainc, gammaln, xlog1py, xlogy

from evals.stats.arrays import FloatArray, IntArray
from evals.stats.paired_binary import PairedBinary, score_z

MAX_ITEMS = 200
"""Up to here the exact test is used; above it, its cost buys nothing."""

GRID = 400
"""Rates of disagreement tried before the best is refined."""

TIES = 1e-9
"""Score statistics that differ by less are equally extreme."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedBinaryExact(PairedBinary):
    """Counts of few items; p-values are exact, limits those of the score test."""

    def p_above(self, bound: float) -> float:
        """Return the exact p-value of the claim "difference > bound"."""
        if self.n == 0:
            return 1.0
        return _exact_p(self.baseline_only, self.candidate_only, self.n, bound)


@lru_cache(maxsize=4096)
def _exact_p(losses: int, gains: int, n: int, bound: float) -> float:
    """Return sup over q of P(z at least as large), with P(loss) = q and P(gain) = q + bound."""
    observed = PairedBinary(baseline_only=losses, candidate_only=gains, n=n).z(bound)
    least_gains = _least_extreme_gains(observed, n, bound)
    low, high = max(0.0, -bound), (1 - bound) / 2
    steps = np.linspace(0.0, 1.0, GRID)
    rates = low + (high - low) * steps * steps
    found = _tail(least_gains, n, rates, bound)
    best = int(np.argmax(found))
    around = (rates[max(best - 1, 0)], rates[min(best + 1, GRID - 1)])
    refined = minimize_scalar(
        lambda rate: -_tail(least_gains, n, np.array([rate]), bound)[0],
        bounds=around,
        method="bounded",
        options={"xatol": 1e-9},
    )
    return float(min(max(found[best], -refined.fun), 1.0))


def _least_extreme_gains(observed: float, n: int, bound: float) -> IntArray:
    """Return, for each count of losses 0..n, the least gains that are as extreme as ``observed``.

    The score statistic rises with the gains, so all greater counts are extreme as well; n + 1
    minus the losses says that none is.
    """
    table_losses, table_gains = np.meshgrid(
        np.arange(n + 1, dtype=np.float64), np.arange(n + 1, dtype=np.float64), indexing="ij"
    )
    possible = table_losses + table_gains <= n
    z = score_z(table_losses, np.where(possible, table_gains, 0.0), n, bound)
    extreme = possible & (z >= observed - TIES)
    room = n + 1 - np.arange(n + 1)
    return np.where(extreme.any(axis=1), extreme.argmax(axis=1), room).astype(np.int64)


def _tail(least_gains: IntArray, n: int, rates: FloatArray, bound: float) -> FloatArray:
    """Return the probability of the extreme tables for each rate of losses, shape of ``rates``."""
    losses = np.arange(n + 1)
    rate = rates[:, None]
    log_choose = gammaln(n + 1) - gammaln(losses + 1) - gammaln(n - losses + 1)
    share = np.exp(log_choose + xlogy(losses, rate) + xlog1py(n - losses, -rate))
    rest = np.maximum(1 - rate, np.finfo(np.float64).tiny)
    gain = np.clip((rate + bound) / rest, 0.0, 1.0)
    probability: FloatArray = (share * _binomial_tail(least_gains, n - losses, gain)).sum(axis=1)
    return probability


def _binomial_tail(least: IntArray, n: IntArray, rate: FloatArray) -> FloatArray:
    """Return P(Bin(n, rate) >= least)."""
    some = (least > 0) & (least <= n)
    tail = betainc(np.where(some, least, 1), np.where(some, n - least + 1, 1), rate)
    return np.where(least <= 0, 1.0, np.where(some, tail, 0.0))
