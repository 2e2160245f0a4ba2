"""Statistics of the gate: numbers in, frozen records out.

Every test has the same two questions. A *claim* is that a mean lies above a bound (or below
it); ``p_above(bound)`` is the p-value of the hypothesis that it does not, and ``lower(alpha)``
the bound down to which the claim would just be proven. What differs is the sample:

    PairedBinary         right or wrong, one run per item: score test
    PairedBinaryExact    the same, 200 items or fewer: all tables enumerated
    BoundedMean          scores in [0, 1] or means of repeats
    ClusteredMean        items that share content
    StratifiedMean       macro average over fixed categories
    Rate                 events in attempts, for ceilings and floors

The sign is that of the whole product: difference = candidate - baseline, a drop is negative.
No function returns NaN and none is certain from nothing: with few items or no variance a p-value
stays at the chance that the loss was simply not drawn (``floor``).
"""
