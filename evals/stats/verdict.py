"""From p-values to verdicts: of each rule, and of all together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from evals.stats.multiplicity import adjust


class Verdict(StrEnum):
    """What is known of a rule or of a candidate."""

    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"


class Tier(StrEnum):
    """A family of rules with its own share of the error of blocking; safety comes first."""

    SAFETY = "safety"
    CAPABILITY = "capability"


class Role(StrEnum):
    """What a rule's verdict does."""

    MUST = "must"
    """Has to PASS: the burden is on the candidate."""
    GUARD = "guard"
    """Must not FAIL and must not be an unresolved suspect."""
    VETO = "veto"
    """Must not FAIL: the burden is on the gate."""
    REPORT = "report"
    """Is shown and decides nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What the data say of one rule."""

    tier: Tier
    role: Role
    p_pass: float
    p_fail: float
    blocked: bool = False
    """True where the data are not fit for a verdict (absent, too few, not comparable)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleVerdict:
    """One rule's verdict."""

    verdict: Verdict
    p_fail_adjusted: float
    """Holm within the tier."""
    suspect: bool
    """Not settled, and it would have failed on its own."""
    both_proven: bool
    """PASS, although a drop beyond ``tolerate`` is proven: real, and smaller than the margin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """All rules' verdicts, in the order of the claims, and the overall one."""

    rules: tuple[RuleVerdict, ...]
    overall: Verdict


def verdict_of(p_pass: float, p_fail: float, alpha_pass: float, alpha_fail: float) -> Verdict:
    """Return one rule's verdict on its own; PASS where both claims are proven."""
    if p_pass <= alpha_pass:
        return Verdict.PASS
    return Verdict.FAIL if p_fail <= alpha_fail else Verdict.INCONCLUSIVE


def judge(
    claims: Sequence[Claim],
    alpha_pass: Mapping[Tier, float],
    alpha_fail: Mapping[Tier, float],
) -> Verdicts:
    """Return every rule's verdict and the overall one.

    A must that has a drop as large as its margin gets through with at most ``alpha_pass``; a
    candidate without a drop beyond ``tolerate`` is failed with at most the sum of ``alpha_fail``
    over the tiers, whatever the dependence of the rules. A blocked rule that is not a report
    keeps the whole from PASS, and so does the absence of any rule that decides.
    """
    adjusted = _adjusted(claims, alpha_pass)
    rules = tuple(
        _rule_verdict(claim, float(p), alpha_pass[claim.tier], alpha_fail[claim.tier])
        for claim, p in zip(claims, adjusted, strict=True)
    )
    return Verdicts(rules=rules, overall=_overall(claims, rules))


def _adjusted(claims: Sequence[Claim], alpha_pass: Mapping[Tier, float]) -> list[float]:
    """Return p_fail, 1 where the rule passed or is blocked, after Holm within each tier."""
    open_p = [
        1.0 if claim.blocked or claim.p_pass <= alpha_pass[claim.tier] else claim.p_fail
        for claim in claims
    ]
    adjusted = np.array(open_p)
    for tier in Tier:
        family = [i for i, c in enumerate(claims) if c.tier is tier and c.role is not Role.REPORT]
        adjusted[family] = adjust(adjusted[family])
    return [float(p) for p in adjusted]


def _rule_verdict(claim: Claim, adjusted: float, pass_at: float, fail_at: float) -> RuleVerdict:
    verdict = Verdict.INCONCLUSIVE
    if not claim.blocked:
        verdict = verdict_of(claim.p_pass, adjusted, pass_at, fail_at)
    proven = claim.p_fail <= fail_at and not claim.blocked
    return RuleVerdict(
        verdict=verdict,
        p_fail_adjusted=adjusted,
        suspect=verdict is Verdict.INCONCLUSIVE and proven,
        both_proven=verdict is Verdict.PASS and proven,
    )


def _overall(claims: Sequence[Claim], rules: Sequence[RuleVerdict]) -> Verdict:
    deciding = [
        (claim, rule)
        for claim, rule in zip(claims, rules, strict=True)
        if claim.role is not Role.REPORT
    ]
    if any(rule.verdict is Verdict.FAIL for _, rule in deciding):
        return Verdict.FAIL
    if not deciding or not all(_lets_through(claim, rule) for claim, rule in deciding):
        return Verdict.INCONCLUSIVE
    return Verdict.PASS


def _lets_through(claim: Claim, rule: RuleVerdict) -> bool:
    if claim.blocked:
        return False
    match claim.role:
        case Role.MUST:
            return rule.verdict is Verdict.PASS
        case Role.GUARD:
            return not rule.suspect
        case Role.VETO | Role.REPORT:
            return True
