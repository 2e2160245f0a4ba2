from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import multinomial

from evals.stats.paired_binary import PairedBinary
from evals.stats.paired_binary_exact import PairedBinaryExact
from evals.stats.planning import (
    min_items_to_fail,
    power_at_no_change,
    sample_size,
    standard_error,
)


@pytest.mark.parametrize(
    ("variance", "margin", "wanted"),
    [(0.24, 0.02, (3710, 6494)), (0.048, 0.01, (2968, 5195)), (0.054, 0.05, (134, 234))],
)
def test_sizes_equal_the_published_table(
    variance: float, margin: float, wanted: tuple[int, int]
) -> None:
    found = [
        sample_size(margin=margin, discordance=variance, alpha=0.05, power=power)
        for power in (0.8, 0.95)
    ]
    assert found == pytest.approx(wanted, abs=1)


def test_a_drop_of_the_margin_has_no_sample_size() -> None:
    with pytest.raises(ValueError, match="not to pass"):
        sample_size(margin=0.02, discordance=0.1, alpha=0.05, power=0.8, true_difference=-0.02)


def test_power_equals_the_sum_over_all_tables() -> None:
    n, discordance = 60, 0.3
    tables = [(b, c) for b in range(n + 1) for c in range(n + 1 - b)]
    passed = [
        (b, c, n - b - c)
        for b, c in tables
        if PairedBinary(baseline_only=b, candidate_only=c, n=n).p_above(-0.15) <= 0.05
    ]
    wanted = multinomial.pmf(np.array(passed), n, [discordance / 2, discordance / 2, 0.7]).sum()
    assert power_at_no_change(n, discordance, 0.15, 0.05).exact_power == pytest.approx(wanted)


@pytest.mark.parametrize("discordance", [0.0, 1e-6, 1.0])
def test_power_is_a_probability_at_the_ends(discordance: float) -> None:
    found = power_at_no_change(400, discordance, 0.02, 0.05)
    assert 0 <= found.exact_power <= 1
    assert math.isfinite(found.mde80)


def test_too_few_items_to_fail_are_those_on_which_losing_all_proves_nothing() -> None:
    least = min_items_to_fail(0.0, 0.05)
    assert PairedBinaryExact(baseline_only=least, candidate_only=0, n=least).p_below(0.0) <= 0.05
    fewer = least - 1
    assert PairedBinaryExact(baseline_only=fewer, candidate_only=0, n=fewer).p_below(0.0) > 0.05


def test_all_items_of_a_benchmark_leave_no_error_about_it() -> None:
    assert standard_error(100, 0.3, 100) == 0.0
    assert standard_error(100, 0.3) == pytest.approx(0.03)
