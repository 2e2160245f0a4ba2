from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.stats.verdict import Claim, Role, Tier, Verdict, judge

LEVEL = dict.fromkeys(Tier, 0.05)
P, F, O = Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE  # noqa: E741


def claim(
    p_pass: float,
    p_fail: float,
    role: Role = Role.MUST,
    tier: Tier = Tier.CAPABILITY,
    blocked: bool = False,
) -> Claim:
    return Claim(tier=tier, role=role, p_pass=p_pass, p_fail=p_fail, blocked=blocked)


@pytest.mark.parametrize(
    ("claims", "each", "overall"),
    [
        ([claim(0.01, 0.9), claim(0.05, 0.9)], [P, P], P),
        ([claim(0.01, 0.9), claim(0.9, 0.001)], [P, F], F),
        ([claim(0.01, 0.9), claim(0.2, 0.3)], [P, O], O),
        ([claim(0.01, 0.01)], [P], P),
        ([claim(0.2, 0.3, Role.GUARD)], [O], P),
        ([claim(0.2, 0.04, Role.GUARD), claim(0.2, 0.5, Role.GUARD)], [O, O], O),
        ([claim(0.2, 0.04, Role.VETO), claim(0.2, 0.5, Role.VETO)], [O, O], P),
        ([claim(0.9, 0.001, Role.REPORT), claim(0.01, 0.9)], [F, P], P),
        ([claim(0.01, 0.9, Role.REPORT)], [P], O),
        ([claim(0.9, 0.9, Role.REPORT), claim(0.9, 0.03)], [O, F], F),
        ([], [], O),
        ([claim(0.01, 0.001, blocked=True)], [O], O),
        ([claim(0.9, 0.001, Role.VETO, blocked=True), claim(0.01, 0.9)], [O, P], O),
        ([claim(0.9, 0.001, Role.REPORT, blocked=True), claim(0.01, 0.9)], [O, P], P),
        ([claim(0.2, 0.03), claim(0.2, 0.03, tier=Tier.SAFETY)], [F, F], F),
    ],
)
def test_rules_are_judged_one_by_one_and_together(
    claims: list[Claim], each: list[Verdict], overall: Verdict
) -> None:
    found = judge(claims, LEVEL, LEVEL)
    assert [rule.verdict for rule in found.rules] == each
    assert found.overall is overall


def test_a_proven_drop_within_the_margin_is_told() -> None:
    assert judge([claim(0.01, 0.01)], LEVEL, LEVEL).rules[0].both_proven


def test_each_tier_has_its_own_levels() -> None:
    levels = {Tier.SAFETY: 0.01, Tier.CAPABILITY: 0.05}
    claims = [claim(0.02, 0.9, tier=tier) for tier in Tier]
    assert [rule.verdict for rule in judge(claims, levels, levels).rules] == [O, P]


probabilities = st.floats(0, 1)


@settings(deadline=None)
@given(
    st.lists(
        st.builds(claim, probabilities, probabilities, st.sampled_from(Role), st.sampled_from(Tier))
    ),
    st.randoms(use_true_random=False),
)
def test_the_order_of_rules_does_not_matter(claims: list[Claim], rng: object) -> None:
    found = judge(claims, LEVEL, LEVEL)
    back = judge(claims[::-1], LEVEL, LEVEL)
    assert back.overall is found.overall
    assert back.rules[::-1] == found.rules


@settings(deadline=None)
@given(st.lists(st.builds(claim, probabilities, probabilities, st.sampled_from(Role)), min_size=1))
def test_no_must_is_passed_over(claims: list[Claim]) -> None:
    found = judge(claims, LEVEL, LEVEL)
    if found.overall is Verdict.PASS:
        assert all(c.p_pass <= 0.05 for c in claims if c.role is Role.MUST)


def test_thirty_harmless_rules_fail_at_most_at_the_level() -> None:
    rng = np.random.default_rng(0)
    runs = 2000
    failed = sum(
        judge([claim(1.0, p, Role.GUARD) for p in rng.random(30)], LEVEL, LEVEL).overall
        is Verdict.FAIL
        for _ in range(runs)
    )
    assert failed / runs <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / runs)
