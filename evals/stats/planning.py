"""How many items a rule needs, before any token is spent."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom, norm

from evals.stats.paired_binary import PairedBinary

WINDOW = 8.0
"""Standard deviations of the discordant count that are summed; the rest is below 1e-14."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """What can be resolved with the items there are, at no true change."""

    exact_power: float
    """Chance that the score test passes a candidate without a drop, over all tables."""
    normal_approx: float
    mde80: float
    """Smallest margin that such a candidate passes with a chance of 80 %."""


def sample_size(
    *,
    margin: float,
    discordance: float,
    alpha: float,
    power: float,
    true_difference: float = 0.0,
    design_effect: float = 1.0,
) -> int:
    """Return the items with which a candidate at ``true_difference`` passes with ``power``.

    Args:
        margin: A drop this large must not pass, in (0, 1).
        discordance: Share of items on which the sides disagree.
        alpha: One-sided level of PASS.
        power: Wanted chance of PASS.
        true_difference: Candidate - baseline, above -margin.
        design_effect: Variance with clusters over variance without.

    Raises:
        ValueError: The true difference lies at or below -margin: no number of items passes it.
    """
    if true_difference <= -margin:
        raise ValueError("a drop of the margin or more is not to pass, whatever the items")
    z = float(norm.isf(alpha) + norm.ppf(power))
    variance = (discordance - true_difference**2) * design_effect
    return math.ceil(z * z * variance / (margin + true_difference) ** 2)


def power_at_no_change(n: int, discordance: float, margin: float, alpha: float) -> Power:
    """Return the chance of PASS where gains and losses are equally frequent.

    Args:
        n: Items, at least 1.
        discordance: Share of items on which the sides disagree.
        margin: A drop this large must not pass.
        alpha: One-sided level of PASS.
    """
    se = math.sqrt(discordance / n)
    centre, spread = n * discordance, math.sqrt(n * discordance * (1 - discordance))
    first = max(0, math.floor(centre - WINDOW * spread))
    last = min(n, math.ceil(centre + WINDOW * spread))
    counts = np.arange(first, last + 1)
    least = np.array([_least_gains(int(count), n, margin, alpha) for count in counts])
    passed = binom.sf(least - 1, counts, 0.5)
    z = float(norm.isf(alpha))
    return Power(
        exact_power=float((binom.pmf(counts, n, discordance) * passed).sum()),
        normal_approx=float(norm.cdf(margin / se - z)) if se else 1.0,
        mde80=(z + float(norm.ppf(0.8))) * se,
    )


def _least_gains(discordant: int, n: int, margin: float, alpha: float) -> int:
    """Return the fewest gains among the discordant items with which the rule passes."""
    low, high = -1, discordant + 1
    while high - low > 1:
        gains = (low + high) // 2
        table = PairedBinary(baseline_only=discordant - gains, candidate_only=gains, n=n)
        if table.p_above(-margin) <= alpha:
            high = gains
        else:
            low = gains
    return high


def min_items(margin: float, alpha: float, max_loss: float = 1.0) -> int:
    """Return the items below which no rule passes, not even with no answer changed.

    Args:
        margin: A drop this large must not pass.
        alpha: One-sided level of PASS.
        max_loss: The most that one item can lose.
    """
    return math.ceil(math.log(alpha) / math.log1p(-margin / max_loss) - 1e-9)


def min_items_to_fail(tolerate: float, alpha: float, max_loss: float = 1.0) -> int:
    """Return the items below which no rule fails, not even with all that can be lost lost.

    Args:
        tolerate: A drop up to this must not be blocked, below ``max_loss``.
        alpha: Level of FAIL.
        max_loss: The most that one item can lose.
    """
    unseen = (max_loss + tolerate) / (2 * max_loss)
    return math.ceil(math.log(alpha) / math.log(unseen) - 1e-9)


def standard_error(n: int, spread: float, population: int | None = None) -> float:
    """Return the standard error of a mean difference over ``n`` of ``population`` items.

    Args:
        n: Items asked, at least 1.
        spread: Standard deviation of the items' differences.
        population: All items of the benchmark where the claim is about these items only (then 0
            at n = population); None where it is about the questions that could have been asked.
    """
    correction = 1.0 if population is None else math.sqrt(1 - n / population)
    return spread / math.sqrt(n) * correction
