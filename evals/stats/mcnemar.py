"""McNemar's exact conditional test; reported beside the gate's own tests, never used by them."""

from __future__ import annotations

from dataclasses import dataclass

from scipy.stats import binom


@dataclass(frozen=True, slots=True, kw_only=True)
class McNemar:
    """p-values given the number of items on which the sides disagree."""

    p_two_sided: float
    p_regression_one_sided: float
    """Of the claim that the candidate is worse."""
    p_regression_midp: float
    """The same, with half the probability of the observed table."""


def mcnemar_exact(baseline_only: int, candidate_only: int) -> McNemar:
    """Return McNemar's exact p-values; 1 and mid-p 0.5 where the sides never disagree."""
    discordant = baseline_only + candidate_only
    worse = float(binom.sf(baseline_only - 1, discordant, 0.5))
    better = float(binom.sf(candidate_only - 1, discordant, 0.5))
    here = float(binom.pmf(baseline_only, discordant, 0.5))
    return McNemar(
        p_two_sided=min(2 * min(worse, better), 1.0),
        p_regression_one_sided=min(worse, 1.0),
        p_regression_midp=worse - here / 2,
    )
