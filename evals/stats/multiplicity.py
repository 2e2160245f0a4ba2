"""p-values adjusted for their number.

``holm`` holds under any dependence and is what the gate uses; ``hochberg`` needs positive
dependence; ``bh`` controls the share of false alarms, not the chance of one. Sources: Holm 1979,
Hochberg 1988, Benjamini & Hochberg 1995.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
import numpy.typing as npt

from evals.stats.arrays import FloatArray


class Correction(StrEnum):
    """How p-values are adjusted."""

    HOLM = "holm"
    HOCHBERG = "hochberg"
    BH = "bh"


def adjust(p: npt.ArrayLike, correction: Correction = Correction.HOLM) -> FloatArray:
    """Return adjusted p-values in the given order; each is rejected where it is at most alpha.

    Args:
        p: ``[k]`` p-values in [0, 1]; k may be 0.
        correction: Which adjustment.
    """
    raw = np.asarray(p, dtype=np.float64)
    order = np.argsort(raw, kind="stable")
    adjusted = np.empty(len(raw))
    adjusted[order] = np.minimum(_stepped(raw[order], correction), 1.0)
    return adjusted


def _stepped(rising: FloatArray, correction: Correction) -> FloatArray:
    """Return adjusted values, not yet cut at 1, of p-values in rising order."""
    count = len(rising)
    rank = np.arange(count) + 1
    match correction:
        case Correction.HOLM:
            return np.maximum.accumulate(rising * (count + 1 - rank))
        case Correction.HOCHBERG:
            return _least_from_here(rising * (count + 1 - rank))
        case Correction.BH:
            return _least_from_here(rising * count / rank)


def _least_from_here(values: FloatArray) -> FloatArray:
    return np.minimum.accumulate(values[::-1])[::-1]
