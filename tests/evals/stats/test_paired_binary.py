from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import norm
from statsmodels.stats.contingency_tables import mcnemar

from evals.stats.floor import unseen_loss_floor
from evals.stats.paired_binary import PairedBinary, newcombe_interval, score_z
from evals.stats.planning import min_items


def _table(losses: int, gains: int, n: int) -> PairedBinary:
    return PairedBinary(baseline_only=losses, candidate_only=gains, n=n)


def _reference_z(losses: int, gains: int, n: int, bound: float) -> float:
    """Return the score statistic with the constrained likelihood maximised numerically."""

    def minus_log_likelihood(q: float) -> float:
        cells = ((losses, q), (gains, q + bound), (n - losses - gains, 1 - 2 * q - bound))
        return -sum(count * math.log(p) for count, p in cells if count)

    low, high = max(0.0, -bound), (1 - bound) / 2
    q = minimize_scalar(
        minus_log_likelihood,
        bounds=(low + 1e-12, high - 1e-12),
        method="bounded",
        options={"xatol": 1e-13},
    ).x
    return (gains - losses - n * bound) / math.sqrt(n * (2 * q + bound - bound**2))


@pytest.mark.parametrize("bound", [-0.1, -0.02, 0.03])
@pytest.mark.parametrize(("losses", "gains", "n"), [(30, 28, 1319), (95, 60, 1319), (3, 9, 250)])
def test_statistic_equals_the_one_of_the_numerical_likelihood(
    losses: int, gains: int, n: int, bound: float
) -> None:
    assert _table(losses, gains, n).z(bound) == pytest.approx(
        _reference_z(losses, gains, n, bound), abs=1e-6
    )


def test_at_no_difference_it_is_mcnemar_without_continuity_correction() -> None:
    reference = mcnemar([[0, 30], [52, 0]], exact=False, correction=False)
    assert _table(30, 52, 900).z(0.0) ** 2 == pytest.approx(reference.statistic)


def test_limits_are_where_the_statistic_leaves_the_level() -> None:
    low, high = _table(7, 1, 21).score_limits(0.95)
    z = norm.isf(0.025)
    assert low == pytest.approx(brentq(lambda t: _reference_z(7, 1, 21, t) - z, -0.9, -0.3))
    assert high == pytest.approx(brentq(lambda t: _reference_z(7, 1, 21, t) + z, -0.28, 0.5))


def test_without_disagreement_only_the_number_of_items_counts() -> None:
    table = _table(0, 0, 400)
    assert table.z(0.0) == 0.0
    assert table.p_below(0.0) == 0.5
    assert table.score_limits(0.9).low == pytest.approx(-(1.6448536**2) / (400 + 1.6448536**2))
    assert table.lower(0.05) == pytest.approx(0.05 ** (1 / 400) - 1)


def test_no_items_prove_nothing() -> None:
    table = _table(0, 0, 0)
    assert (table.value, table.p_above(-0.5), table.p_below(0.5)) == (0.0, 1.0, 1.0)
    assert (table.lower(0.05), table.upper(0.05)) == (-1.0, 1.0)


@pytest.mark.parametrize(("losses", "gains", "n"), [(-1, 0, 5), (3, 3, 5)])
def test_counts_that_do_not_fit_are_refused(losses: int, gains: int, n: int) -> None:
    with pytest.raises(ValueError, match=r"negative|discordant"):
        _table(losses, gains, n)


@pytest.mark.parametrize("margin", [0.01, 0.02, 0.05, 0.3])
@pytest.mark.parametrize("alpha", [0.025, 0.05])
def test_not_even_an_unchanged_candidate_passes_on_fewer_than_the_least_items(
    margin: float, alpha: float
) -> None:
    least = min_items(margin, alpha)
    assert _table(0, 0, least - 1).p_above(-margin) > alpha
    assert unseen_loss_floor(least, 0.0, -margin) <= alpha


tables = st.integers(1, 2000).flatmap(
    lambda n: st.tuples(st.just(n), st.integers(0, n)).flatmap(
        lambda pair: st.tuples(
            st.integers(0, pair[0] - pair[1]), st.just(pair[1]), st.just(pair[0])
        )
    )
)


@settings(deadline=None)
@given(tables, st.floats(-0.99, 0.99), st.floats(0.001, 0.2))
def test_p_values_limits_and_mirror_images_agree(
    counts: tuple[int, int, int], bound: float, alpha: float
) -> None:
    table = _table(*counts)
    mirrored = _table(counts[1], counts[0], counts[2])
    assert 0 <= table.p_above(bound) <= 1
    assert table.p_above(bound) == mirrored.p_below(-bound)
    low, high = table.lower(alpha), table.upper(alpha)
    assert -1 <= low <= table.value <= high <= 1
    assert low == -mirrored.upper(alpha)
    if abs(bound - low) > 1e-6:
        assert (table.p_above(bound) <= alpha) == (bound < low)


@settings(deadline=None)
@given(tables, st.floats(-0.99, 0.99))
def test_a_gain_more_never_weakens_the_claim(counts: tuple[int, int, int], bound: float) -> None:
    losses, gains, n = counts
    if losses + gains < n:
        assert _table(losses, gains + 1, n).z(bound) >= _table(losses, gains, n).z(bound) - 1e-9


def test_statistic_takes_arrays_of_tables() -> None:
    losses, gains = np.array([30.0, 0.0]), np.array([28.0, 0.0])
    assert score_z(losses, gains, 1319, -0.02).tolist() == [
        _table(30, 28, 1319).z(-0.02),
        _table(0, 0, 1319).z(-0.02),
    ]


def test_newcombe_interval_of_published_tables() -> None:
    """Newcombe 1998, table III: 36, 12, 2, 0 of 50, method 10."""
    low, high = newcombe_interval(
        both=36, baseline_only=2, candidate_only=12, neither=0, level=0.95
    )
    assert (round(low, 4), round(high, 4)) == (0.0569, 0.3404)


@settings(deadline=None)
@given(*[st.integers(0, 60)] * 4, st.floats(0.5, 0.99))
def test_newcombe_interval_holds_the_estimate(
    both: int, baseline: int, candidate: int, neither: int, level: float
) -> None:
    low, high = newcombe_interval(
        both=both, baseline_only=baseline, candidate_only=candidate, neither=neither, level=level
    )
    n = both + baseline + candidate + neither
    assert -1 - 1e-9 <= low <= high <= 1 + 1e-9
    assert low - 1e-9 <= (candidate - baseline) / max(n, 1) <= high + 1e-9


CELLS = [(0.5, 0.5), (0.5, 0.9), (0.7, 0.7), (0.9, 0.5), (0.9, 0.9)]


def _rates(
    n: int, cell: tuple[float, float], *, drop: float, margin: float, runs: int
) -> np.ndarray:
    """Return the shares of PASS and of FAIL in simulated runs at a true drop."""
    p, phi = cell
    rng = np.random.default_rng([n, int(100 * p), int(100 * phi), int(1000 * drop)])
    candidate = p - drop
    spread = math.sqrt(p * (1 - p) * candidate * (1 - candidate))
    both = min(p * candidate + phi * spread, candidate, p)
    cells = [p - both, candidate - both, 1 - p - candidate + 2 * both]
    found, counts = np.unique(
        rng.multinomial(n, cells, size=runs)[:, :2], axis=0, return_counts=True
    )
    verdicts = np.array(
        [
            (table.p_above(-margin) <= 0.05, table.p_below(0.0) <= 0.05)
            for table in (_table(int(b), int(c), n) for b, c in found)
        ]
    )
    return np.asarray((verdicts * counts[:, None]).sum(axis=0) / runs)


@pytest.mark.parametrize(("n", "margin"), [(541, 0.03), (1319, 0.02)])
def test_error_rates_hold_at_the_margin_and_at_no_change(n: int, margin: float) -> None:
    """Mean over cells at most 5 %, worst at most 6 % with 4,000 runs each."""
    runs = 4000
    false_pass = [_rates(n, c, drop=margin, margin=margin, runs=runs)[0] for c in CELLS]
    false_fail = [_rates(n, c, drop=0.0, margin=margin, runs=runs)[1] for c in CELLS]
    for rates in (false_pass, false_fail):
        assert np.mean(rates) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / (runs * len(CELLS)))
        assert max(rates) <= 0.06


def test_simulated_rates_notice_a_test_without_a_margin() -> None:
    """The same simulation far inside the margin, so that it can tell a rate from none."""
    assert _rates(1319, (0.5, 0.7), drop=0.0, margin=0.05, runs=500)[0] > 0.95
    assert _rates(1319, (0.5, 0.7), drop=0.05, margin=0.05, runs=500)[1] > 0.9
