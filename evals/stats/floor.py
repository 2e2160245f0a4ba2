"""The chance that a loss was simply not drawn: what no p-value may go below."""

from __future__ import annotations


def unseen_loss_floor(n: int, value: float, bound: float, lowest: float = -1.0) -> float:
    """Return the least p-value that ``n`` items allow for the claim "mean > bound".

    If the mean were at the bound although ``value`` was observed, losses of the largest size
    would be frequent enough to make up the distance; this is the chance to see none in n draws.
    With no difference in any item it is the rule of three.

    Args:
        n: Items, at least 0.
        value: Observed mean, in [lowest, 1].
        bound: What the mean is claimed to lie above.
        lowest: The lowest value that one item can have (-1 for differences of scores).

    Returns:
        A probability: 1 without items, 0 where the observed mean does not lie above the bound,
        since such a claim needs no further limit.
    """
    if n == 0:
        return 1.0
    if value <= bound:
        return 0.0
    return float(max((bound - lowest) / (value - lowest), 0.0) ** n)


def floor_limit(n: int, value: float, alpha: float, lowest: float = -1.0) -> float:
    """Return the bound at which :func:`unseen_loss_floor` equals ``alpha``."""
    if n == 0:
        return lowest
    return float(lowest + (value - lowest) * alpha ** (1 / n))
