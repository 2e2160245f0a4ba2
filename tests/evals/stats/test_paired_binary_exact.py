from __future__ import annotations

import time

import numpy as np
import pytest
from scipy.stats import multinomial

from evals.stats.paired_binary_exact import PairedBinaryExact


def _table(losses: int, gains: int, n: int) -> PairedBinaryExact:
    return PairedBinaryExact(baseline_only=losses, candidate_only=gains, n=n)


def _brute_force(losses: int, gains: int, n: int, bound: float) -> float:
    """Return the p-value by summing every table's probability on a fine grid."""
    observed = _table(losses, gains, n).z(bound)
    extreme = [
        (b, c)
        for b in range(n + 1)
        for c in range(n + 1 - b)
        if _table(b, c, n).z(bound) >= observed - 1e-9
    ]
    counts = np.array([(b, c, n - b - c) for b, c in extreme])
    low, high = max(0.0, -bound), (1 - bound) / 2
    rates = low + (high - low) * np.linspace(0, 1, 800) ** 2
    cells = np.clip([[q, q + bound, 1 - 2 * q - bound] for q in rates], 0.0, 1.0)
    return max(float(multinomial.pmf(counts, n, cell).sum()) for cell in cells)


@pytest.mark.parametrize("bound", [-0.1, -0.02, 0.05])
@pytest.mark.parametrize(("losses", "gains", "n"), [(1, 0, 7), (2, 3, 12), (0, 4, 9), (5, 1, 14)])
def test_p_value_equals_the_sum_over_all_tables(
    losses: int, gains: int, n: int, bound: float
) -> None:
    assert _table(losses, gains, n).p_above(bound) == pytest.approx(
        _brute_force(losses, gains, n, bound), abs=2e-4
    )


@pytest.mark.parametrize("n", [1, 58, 59, 148, 149])
def test_without_disagreement_p_is_the_chance_that_no_loss_was_drawn(n: int) -> None:
    assert _table(0, 0, n).p_above(-0.02) == pytest.approx(0.98**n)
    assert _table(0, 0, n).p_below(0.0) == 1.0


@pytest.mark.parametrize("n", [5, 20])
@pytest.mark.parametrize("margin", [0.05, 0.2])
def test_size_is_at_most_alpha_whatever_the_disagreement(n: int, margin: float) -> None:
    tables = [(b, c) for b in range(n + 1) for c in range(n + 1 - b)]
    for alpha in (0.05, 0.2):
        passed = [(b, c, n - b - c) for b, c in tables if _table(b, c, n).p_above(-margin) <= alpha]
        if not passed:
            continue
        for q in np.linspace(margin, (1 + margin) / 2, 60)[1:-1]:
            size = multinomial.pmf(np.array(passed), n, [q, q - margin, 1 - 2 * q + margin]).sum()
            assert size <= alpha + 1e-6


def test_no_items_prove_nothing() -> None:
    assert _table(0, 0, 0).p_above(-0.5) == 1.0


def test_two_hundred_items_take_a_fraction_of_a_second() -> None:
    started = time.perf_counter()
    _table(13, 11, 200).p_above(-0.0513)
    assert time.perf_counter() - started < 1.0
