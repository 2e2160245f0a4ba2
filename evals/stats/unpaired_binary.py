"""Right or wrong items that the sides do not share: a fallback that has to be declared.

Source: Farrington & Manning 1990; the constrained likelihood is solved in closed form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.stats import norm

ROUNDING = 1e-12
"""Distance below which estimate and hypothesis agree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpairedBinary:
    """Counts of two sides on different items, each with at least one."""

    candidate_right: int
    candidate_n: int
    baseline_right: int
    baseline_n: int

    def __post_init__(self) -> None:
        """Hold that the counts fit each other."""
        if min(self.candidate_n, self.baseline_n) < 1:
            raise ValueError("each side needs an item")
        if not (
            0 <= self.candidate_right <= self.candidate_n
            and 0 <= self.baseline_right <= self.baseline_n
        ):
            raise ValueError("right answers lie between 0 and the number of items")

    @property
    def value(self) -> float:
        """Return candidate - baseline."""
        return self.candidate_right / self.candidate_n - self.baseline_right / self.baseline_n

    def z(self, bound: float) -> float:
        """Return the score statistic of "difference = bound"; 0 where nothing can vary."""
        baseline = _constrained_baseline(self, bound)
        candidate = min(max(baseline + bound, 0.0), 1.0)
        variance = (
            candidate * (1 - candidate) / self.candidate_n
            + baseline * (1 - baseline) / self.baseline_n
        )
        distance = self.value - bound
        if abs(distance) < ROUNDING:
            return 0.0
        if variance <= 0:
            return math.copysign(math.inf, distance)
        return distance / math.sqrt(variance)

    def p_above(self, bound: float) -> float:
        """Return the p-value of the claim "difference > bound"."""
        return float(norm.sf(self.z(bound)))

    def p_below(self, bound: float) -> float:
        """Return the p-value of the claim "difference < bound"."""
        return float(norm.cdf(self.z(bound)))


def _constrained_baseline(counts: UnpairedBinary, bound: float) -> float:
    """Return the baseline's most likely rate where the candidate's is ``bound`` more.

    It is a root of the cubic that the likelihood equation of the two binomials gives
    (Miettinen & Nurminen 1985, appendix).
    """
    n = counts.candidate_n + counts.baseline_n
    right = counts.candidate_right + counts.baseline_right
    baseline_n, baseline_right = counts.baseline_n, counts.baseline_right
    b = ((counts.candidate_n + 2 * baseline_n) * bound - n - right) / (3 * n)
    c = ((baseline_n * bound - n - 2 * baseline_right) * bound + right) / (3 * n)
    d = baseline_right * bound * (1 - bound) / (2 * n)
    v = b**3 - 1.5 * b * c + d
    u = math.copysign(math.sqrt(max(b * b - c, 0.0)), v)
    cosine = min(max(v / u**3, -1.0), 1.0) if u else 0.0
    rate = 2 * u * math.cos((math.pi + math.acos(cosine)) / 3) - b
    return min(max(rate, 0.0, -bound), 1.0, 1 - bound)
