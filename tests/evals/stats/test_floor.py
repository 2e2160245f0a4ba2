from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.stats.floor import floor_limit, unseen_loss_floor


def test_without_differences_it_is_the_rule_of_three() -> None:
    assert unseen_loss_floor(149, 0.0, -0.02) == pytest.approx(0.98**149)
    assert floor_limit(149, 0.0, 0.05) == pytest.approx(0.05 ** (1 / 149) - 1)


def test_no_items_prove_nothing() -> None:
    assert unseen_loss_floor(0, 0.0, -0.5) == 1.0
    assert floor_limit(0, 0.0, 0.05) == -1.0


def test_a_claim_that_the_mean_contradicts_has_no_floor() -> None:
    assert unseen_loss_floor(10, -0.3, -0.2) == 0.0


@settings(deadline=None)
@given(st.integers(1, 5000), st.floats(-0.99, 1), st.floats(1e-6, 0.5), st.floats(-1, -0.05))
def test_the_limit_is_where_the_floor_equals_alpha(
    n: int, value: float, alpha: float, lowest: float
) -> None:
    if value <= lowest + 1e-3:
        return
    limit = floor_limit(n, value, alpha, lowest)
    assert lowest <= limit < value
    assert unseen_loss_floor(n, value, limit, lowest) == pytest.approx(alpha, rel=1e-6)
