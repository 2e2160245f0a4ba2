"""The gate: a policy's verdict on a candidate, with all its evidence.

``decide`` fails closed. A rule whose data are absent, too few, not comparable or incomplete beyond
what the policy allows is INCONCLUSIVE whatever the numbers say, and keeps the whole from PASS.
PASS has to hold with every missing score at its worst, FAIL with every one at its best.

It reads no clock and no lake: the same pairs and policy give the same decision, so that one can
be replayed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np

from evals.compare import (
    ItemValues,
    PairedEvaluations,
    PairedScores,
    candidate_levels,
    differences,
    flips,
    total_outcomes,
)
from evals.identity import fingerprint
from evals.policy import Policy, PolicyKind, Rule
from evals.scoring import Outcome
from evals.stats.arrays import FloatArray
from evals.stats.clustered_mean import FEW_DEGREES, MIN_CLUSTERS, ClusteredMean
from evals.stats.planning import min_items, min_items_to_fail
from evals.stats.rate import min_attempts
from evals.stats.sample import Sample, difference_sample, level_sample
from evals.stats.verdict import Claim, Role, RuleVerdict, Tier, Verdict, judge

SHOWN_FLIPS = 100
"""Item ids that a decision keeps of each direction; the counts are whole."""

SPOKEN_RULES = 2
"""Rules that the sentence tells of; the rest it counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flips:
    """Items whose score changed between the sides."""

    lost: int
    gained: int
    lost_items: tuple[str, ...]
    """The largest losses first, at most :data:`SHOWN_FLIPS`."""
    gained_items: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleDecision:
    """One rule with its verdict and what it rests on."""

    name: str
    subject: str
    """Task or capability."""
    tasks: tuple[str, ...]
    tier: Tier
    role: Role
    verdict: Verdict
    margin: float | None
    tolerate: float | None
    ceiling: float | None
    floor: float | None
    n: int
    """Items with a score on every side that the rule needs."""
    value: float | None
    """Difference in goodness, or the candidate's mean score for a ceiling or floor."""
    low: float
    """Missing scores are at their worst in ``low`` and ``high``."""
    high: float
    level: float
    """1 - alpha_pass - alpha_fail: the limits are those of the two one-sided claims."""
    p_pass: float
    p_fail: float
    p_fail_adjusted: float
    """Holm within the tier."""
    suspect: bool
    missing: int
    """Items without a full score on a side that the rule needs."""
    reasons: tuple[str, ...]
    """Codes of why it is INCONCLUSIVE."""
    warnings: tuple[str, ...]
    """Codes of what is worth knowing beside the verdict."""
    method: str
    outcomes: dict[str, int]
    """The candidate's responses by outcome."""
    flips: Flips


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A policy's verdict on a candidate with all its evidence."""

    decision: str
    """Id by content, 32 hex digits."""
    verdict: Verdict
    sentence: str
    """For reading aloud."""
    candidate: str
    """``RUN@STEP``."""
    baseline: str | None
    candidate_evaluation: str
    baseline_evaluation: str | None
    candidate_digest: str
    """Of the checkpoint's files."""
    policy: str
    """``name@version``."""
    policy_digest: str
    on_inconclusive: str
    snapshot: int
    """The lake's snapshot that the scores were read from."""
    reasons: tuple[str, ...]
    """Codes of what keeps the whole from a verdict."""
    differences: tuple[dict[str, Any], ...]
    """Conditions besides the weights that are not the same, and whether the policy allows each."""
    rules: tuple[RuleDecision, ...]
    versions: dict[str, str]
    """Of what computed it; a replay under the same versions gives the same evidence."""

    @property
    def limits_hold(self) -> bool:
        """Return whether all deciding ceilings and floors PASS, as a first promotion needs."""
        return all(
            rule.verdict is Verdict.PASS
            for rule in self.rules
            if rule.margin is None and rule.role is not Role.REPORT
        )

    def to_json(self) -> dict[str, Any]:
        """Return the decision as JSON types."""
        content: dict[str, Any] = _plain(asdict(self))
        return content

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Decision:
        """Return the decision that :meth:`to_json` wrote."""
        typed = {
            "verdict": Verdict(document["verdict"]),
            "reasons": tuple(document["reasons"]),
            "differences": tuple(document["differences"]),
            "rules": tuple(_rule_from_json(rule) for rule in document["rules"]),
        }
        return cls(**{**document, **typed})


def _rule_from_json(document: Mapping[str, Any]) -> RuleDecision:
    flips = document["flips"]
    typed = {
        "tasks": tuple(document["tasks"]),
        "tier": Tier(document["tier"]),
        "role": Role(document["role"]),
        "verdict": Verdict(document["verdict"]),
        "reasons": tuple(document["reasons"]),
        "warnings": tuple(document["warnings"]),
        "flips": Flips(
            lost=flips["lost"],
            gained=flips["gained"],
            lost_items=tuple(flips["lost_items"]),
            gained_items=tuple(flips["gained_items"]),
        ),
    }
    return RuleDecision(**{**document, **typed})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evidence:
    """What the data say of one rule before the rules are judged together."""

    tasks: tuple[str, ...] = ()
    n: int = 0
    value: float | None = None
    low: float
    high: float
    p_pass: float = 1.0
    p_fail: float = 1.0
    missing: int = 0
    blocks: tuple[str, ...] = ()
    """Reasons that keep it from any verdict."""
    unresolvable: bool = False
    """True where not even an unchanged candidate could pass."""
    warnings: tuple[str, ...] = ()
    method: str = "none"
    outcomes: dict[str, int]
    lost: tuple[str, ...] = ()
    gained: tuple[str, ...] = ()


def decide(policy: Policy, paired: PairedEvaluations, *, snapshot: int) -> Decision:
    """Return the policy's verdict on the candidate.

    Args:
        policy: The rules.
        paired: The candidate joined with the baseline, or alone for a first promotion: rules with
            a margin are then INCONCLUSIVE (``no_baseline``).
        snapshot: The lake's snapshot that the scores were read from; recorded, not read.
    """
    evidence = [_evidence(rule, policy, paired) for rule in policy.rules]
    verdicts = judge(
        [
            Claim(
                tier=rule.tier,
                role=rule.role,
                p_pass=found.p_pass,
                p_fail=found.p_fail,
                blocked=bool(found.blocks),
            )
            for rule, found in zip(policy.rules, evidence, strict=True)
        ],
        policy.alpha_pass,
        policy.alpha_fail,
    )
    rules = tuple(
        _rule_decision(rule, policy, found, verdict)
        for rule, found, verdict in zip(policy.rules, evidence, verdicts.rules, strict=True)
    )
    reasons = _overall_reasons(policy, rules, verdicts.overall)
    overall = verdicts.overall
    if overall is Verdict.PASS and reasons:
        overall = Verdict.INCONCLUSIVE
    baseline = paired.baseline
    decision = Decision(
        decision="",
        verdict=overall,
        sentence="",
        candidate=paired.candidate.checkpoint.name,
        baseline=baseline.checkpoint.name if baseline else None,
        candidate_evaluation=paired.candidate.evaluation_id,
        baseline_evaluation=baseline.evaluation_id if baseline else None,
        candidate_digest=paired.candidate.checkpoint.digest,
        policy=policy.label,
        policy_digest=policy.digest,
        on_inconclusive=policy.on_inconclusive.value,
        snapshot=snapshot,
        reasons=reasons,
        differences=tuple(
            {**asdict(one), "allowed": one.name in policy.allow_differences}
            for one in paired.differences
        ),
        rules=rules,
        versions={name: version(name) for name in ("pawl", "numpy", "scipy")},
    )
    decision = replace(decision, sentence=_sentence(decision))
    return replace(decision, decision=fingerprint(decision.to_json())[:32])


def _evidence(rule: Rule, policy: Policy, paired: PairedEvaluations) -> _Evidence:
    """Return what the data say of one rule."""
    pairs = tuple(pair for pair in paired.tasks if _is_about(rule, pair))
    blocks = _comparability(rule, policy, paired, pairs)
    if rule.margin is None:
        items = candidate_levels(pairs)
        found = _level_evidence(rule, policy, items)
        lost, gained = flips(differences(pairs))
    else:
        items = differences(pairs)
        found = _margin_evidence(rule, policy, items)
        lost, gained = flips(items)
    if "no_baseline" not in blocks:  # else every difference is missing, whatever was answered
        blocks += _data_blocks(rule, policy, pairs, items)
    return replace(
        found,
        tasks=tuple(pair.spec.name for pair in pairs),
        n=items.n,
        value=items.value,
        missing=items.missing,
        blocks=blocks,
        outcomes=total_outcomes([pair.candidate_outcomes for pair in pairs]),
        lost=lost,
        gained=gained,
    )


def _is_about(rule: Rule, pair: PairedScores) -> bool:
    return pair.spec.name == rule.task or pair.spec.capability is rule.capability


def _comparability(
    rule: Rule, policy: Policy, paired: PairedEvaluations, pairs: Sequence[PairedScores]
) -> tuple[str, ...]:
    """Return the reasons why a rule has nothing to stand on, or no right to compare."""
    reasons = []
    lacking = any(
        spec.name == rule.task or spec.capability is rule.capability
        for spec in paired.only_baseline
    )
    if rule.margin is not None and paired.baseline is None:
        reasons.append("no_baseline")
    elif rule.margin is not None:
        lacking |= any(pair.spec.name in paired.only_candidate for pair in pairs)
    if lacking or not pairs:
        reasons.append("task_absent")
    names = {pair.spec.name for pair in pairs}
    forbidden = any(
        one.name not in policy.allow_differences and (one.task is None or one.task in names)
        for one in paired.differences
    )
    if rule.margin is not None and forbidden:
        reasons.append("fingerprint_differs")
    return tuple(reasons)


def _data_blocks(
    rule: Rule, policy: Policy, pairs: Sequence[PairedScores], items: ItemValues
) -> tuple[str, ...]:
    """Return the reasons why a rule's data are not fit for a verdict."""
    if not pairs:
        return ()
    reasons = []
    total = len(items.item_ids)
    if items.n == 0:
        answered = not all(bool(np.isnan(pair.candidate).all()) for pair in pairs)
        against = not all(bool(np.isnan(pair.baseline).all()) for pair in pairs)
        reasons.append("no_common_items" if answered and against else "nothing_evaluated")
    elif items.n < max(rule.min_items, _fewest_to_fail(rule, policy)):
        reasons.append("too_few_items")
    if items.missing > rule.max_missing * total:
        reasons.append("too_many_missing")
    if items.clusters is not None and _units(items) < MIN_CLUSTERS:
        reasons.append("too_few_clusters")
    for outcome, cap in (
        (Outcome.TRUNCATED, policy.truncated.max_share),
        (Outcome.UNPARSED, policy.unparsed.max_share),
    ):
        if _share(outcome, pairs, both=rule.margin is not None) > cap:
            reasons.append(f"too_many_{outcome.value}")
    return tuple(reasons)


def _fewest_to_fail(rule: Rule, policy: Policy) -> int:
    """Return the items below which a margin rule could not have failed whatever was answered."""
    if rule.margin is None:
        return 1
    return min_items_to_fail(rule.tolerate, policy.alpha_fail[rule.tier], rule.max_loss)


def _share(outcome: Outcome, pairs: Sequence[PairedScores], *, both: bool) -> float:
    """Return the larger share of responses with this outcome among the sides that count."""
    sides = [[pair.candidate_outcomes for pair in pairs]]
    if both:
        sides.append([pair.baseline_outcomes for pair in pairs])
    shares = [0.0]
    for side in sides:
        counts = total_outcomes(side)
        total = sum(counts.values())
        shares.append(counts[outcome.value] / total if total else 0.0)
    return max(shares)


def _margin_evidence(rule: Rule, policy: Policy, items: ItemValues) -> _Evidence:
    """Return p-values and limits of a drop against the margin."""
    margin = rule.margin or 0.0
    alpha_pass, alpha_fail = policy.alpha_pass[rule.tier], policy.alpha_fail[rule.tier]
    worst, best = (
        difference_sample(
            values, binary=items.binary, clusters=items.clusters, max_loss=rule.max_loss
        )
        for values in (items.low, items.high)
    )
    p_pass, p_fail = worst.p_above(-margin), best.p_below(-rule.tolerate)
    low = _agreeing(worst.lower(alpha_pass), -margin, proven=p_pass <= alpha_pass)
    high = -_agreeing(-best.upper(alpha_fail), rule.tolerate, proven=p_fail <= alpha_fail)
    here = 0.0 if items.value is None else items.value
    return _Evidence(
        low=min(low, here),
        high=max(high, here),
        p_pass=p_pass,
        p_fail=p_fail,
        unresolvable=_units(items) < min_items(margin, alpha_pass, rule.max_loss),
        warnings=_cluster_warnings(items),
        method=_method(worst),
        outcomes={},
    )


def _level_evidence(rule: Rule, policy: Policy, items: ItemValues) -> _Evidence:
    """Return p-values and limits of the candidate's mean score against a ceiling or a floor."""
    alpha_pass, alpha_fail = policy.alpha_pass[rule.tier], policy.alpha_fail[rule.tier]
    low, high = (
        level_sample(values, binary=items.binary, clusters=items.clusters)
        for values in (items.low, items.high)
    )
    if rule.ceiling is not None:
        p_pass, p_fail = high.p_below(rule.ceiling), low.p_above(rule.ceiling)
        limits = (low.lower(alpha_fail), high.upper(alpha_pass))
        room = rule.ceiling
    else:
        floor = rule.floor or 0.0
        p_pass, p_fail = low.p_above(floor), high.p_below(floor)
        limits = (low.lower(alpha_pass), high.upper(alpha_fail))
        room = 1 - floor
    here = (limits[0] + limits[1]) / 2 if items.value is None else items.value
    return _Evidence(
        low=min(max(limits[0], 0.0), here),
        high=max(min(limits[1], 1.0), here),
        p_pass=p_pass,
        p_fail=p_fail,
        unresolvable=_units(items) < min_attempts(room, alpha_pass, 0),
        warnings=_cluster_warnings(items),
        method=_method(low),
        outcomes={},
    )


def _units(items: ItemValues) -> int:
    """Return the independent units: items, or clusters where items share content."""
    return items.n if items.clusters is None else len(np.unique(items.clusters))


def _agreeing(limit: float, bound: float, *, proven: bool) -> float:
    """Return a lower limit that says of the bound what the test says.

    The limits of the exact test are those of the score test, which may differ from it by a hair.
    """
    return max(limit, bound) if proven else min(limit, bound)


def _method(sample: Sample) -> str:
    """Return the name of the test: ``paired_binary``, ``bounded_mean``, … ."""
    name = type(sample).__name__
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


def _cluster_warnings(items: ItemValues) -> tuple[str, ...]:
    if items.clusters is None:
        return ()
    error = ClusteredMean(values=_filled(items), clusters=items.clusters).error()
    return ("few_degrees_of_freedom",) if error.df < FEW_DEGREES else ()


def _filled(items: ItemValues) -> FloatArray:
    return np.where(np.isnan(items.observed), items.low, items.observed)


def _rule_decision(
    rule: Rule, policy: Policy, found: _Evidence, judged: RuleVerdict
) -> RuleDecision:
    reasons, warnings = found.blocks, found.warnings
    if judged.verdict is Verdict.INCONCLUSIVE and found.unresolvable and not reasons:
        reasons += ("unresolvable",)
    if judged.both_proven:
        warnings += ("drop_within_margin",)
    return RuleDecision(
        name=rule.name,
        subject=rule.subject,
        tasks=found.tasks,
        tier=rule.tier,
        role=rule.role,
        verdict=judged.verdict,
        margin=rule.margin,
        tolerate=None if rule.margin is None else rule.tolerate,
        ceiling=rule.ceiling,
        floor=rule.floor,
        n=found.n,
        value=found.value,
        low=found.low,
        high=found.high,
        level=round(1 - policy.alpha_pass[rule.tier] - policy.alpha_fail[rule.tier], 12),
        p_pass=found.p_pass,
        p_fail=found.p_fail,
        p_fail_adjusted=judged.p_fail_adjusted,
        suspect=judged.suspect,
        missing=found.missing,
        reasons=reasons,
        warnings=warnings,
        method=found.method,
        outcomes=found.outcomes,
        flips=Flips(
            lost=len(found.lost),
            gained=len(found.gained),
            lost_items=found.lost[:SHOWN_FLIPS],
            gained_items=found.gained[:SHOWN_FLIPS],
        ),
    )


def _overall_reasons(
    policy: Policy, rules: Sequence[RuleDecision], overall: Verdict
) -> tuple[str, ...]:
    """Return the codes of what keeps the whole open; empty for PASS and FAIL that stand."""
    if overall is Verdict.FAIL:
        return ()
    reasons = []
    deciding = [rule for rule in rules if rule.role is not Role.REPORT]
    if not deciding:
        reasons.append("no_gating_rule")
    elif not any(rule.n or "no_baseline" in rule.reasons for rule in deciding):
        reasons.append("nothing_evaluated")
    if policy.kind is PolicyKind.SCREENING and overall is Verdict.PASS:
        reasons.append("screening_never_promotes")
    for rule in deciding:
        if holds_open(rule):
            reasons += [reason for reason in rule.reasons if reason not in reasons]
    return tuple(reasons)


def holds_open(rule: RuleDecision) -> bool:
    """Return whether this rule alone keeps the whole from PASS without failing it.

    A guard or a veto that its items could not have settled has not been tried.
    """
    if rule.role is Role.REPORT or rule.verdict is not Verdict.INCONCLUSIVE:
        return False
    return rule.role is Role.MUST or rule.suspect or bool(rule.reasons)


REASONS = {
    "no_baseline": "there is no baseline to compare with",
    "task_absent": "a task it is about was not evaluated on both sides",
    "fingerprint_differs": "engine, sampling or template differ between the sides",
    "nothing_evaluated": "nothing was evaluated",
    "no_common_items": "the sides share no item",
    "too_few_items": "there are fewer items than the rule asks for",
    "too_many_missing": "too many scores are missing",
    "too_few_clusters": f"the items share content in fewer than {MIN_CLUSTERS} clusters",
    "too_many_truncated": "too many responses were cut off",
    "too_many_unparsed": "no answer could be read from too many responses",
    "unresolvable": "even a candidate without a single changed answer could not pass on so few",
    "no_gating_rule": "the policy has no rule that decides",
    "screening_never_promotes": "nothing speaks against it, but a screening policy never promotes",
}
"""What the codes mean, as the middle of a sentence."""


def _sentence(decision: Decision) -> str:
    """Return the decision as one sentence that can be read aloud."""
    against = f" against {decision.baseline}" if decision.baseline else ""
    about = f"{decision.candidate}{against} under {decision.policy}"
    match decision.verdict:
        case Verdict.PASS:
            return f"PASS: {about} may be promoted: {_passed(decision)}."
        case Verdict.FAIL:
            failed = _listed(deciding_rules(decision))
            return f"FAIL: {about} must not be promoted: {failed}."
        case Verdict.INCONCLUSIVE:
            return f"INCONCLUSIVE: {about} is not decided: {_open(decision)}."


def deciding_rules(decision: Decision) -> tuple[RuleDecision, ...]:
    """Return the rules that the verdict hangs on.

    They are those that failed, those that hold it open, or of a PASS the one proven most narrowly.
    Empty where no rule decides, or where all that keeps it open is the policy's kind.
    """
    deciding = [rule for rule in decision.rules if rule.role is not Role.REPORT]
    match decision.verdict:
        case Verdict.PASS:
            passed = [rule for rule in deciding if rule.verdict is Verdict.PASS]
            return (_closest(passed),) if passed else ()
        case Verdict.FAIL:
            return tuple(rule for rule in deciding if rule.verdict is Verdict.FAIL)
        case Verdict.INCONCLUSIVE:
            return tuple(rule for rule in deciding if holds_open(rule))


def _passed(decision: Decision) -> str:
    deciding = [rule for rule in decision.rules if rule.role is not Role.REPORT]
    passed = sum(rule.verdict is Verdict.PASS for rule in deciding)
    text = f"{passed} of {len(deciding)} deciding rules are proven and none failed"
    closest = deciding_rules(decision)
    return f"{text}; the closest is {_listed(closest)}" if closest else text


def _closest(rules: Sequence[RuleDecision]) -> RuleDecision:
    return max(rules, key=lambda rule: rule.p_pass)


def _open(decision: Decision) -> str:
    whole = [r for r in ("no_gating_rule", "screening_never_promotes") if r in decision.reasons]
    if whole:
        return REASONS[whole[0]]
    return _listed(deciding_rules(decision))


def _listed(rules: Sequence[RuleDecision]) -> str:
    """Return the first rules in words and the number of the rest."""
    text = "; ".join(rule_in_words(rule) for rule in rules[:SPOKEN_RULES])
    rest = len(rules) - SPOKEN_RULES
    return f"{text}; and {rest} more" if rest > 0 else text


def rule_in_words(rule: RuleDecision) -> str:
    """Return a rule with its numbers as part of a sentence."""
    if rule.value is None:
        return f"{rule.name}: {_why(rule)}"
    if rule.margin is not None:
        what = f"{rule.subject} {_moved(rule.value)}"
        limits = f"from {_points(rule.low)} to {_points(rule.high)}"
        bound = f"margin {100 * rule.margin:.3g}"
    else:
        what = f"{rule.subject} scored {rule.value:.1%}"
        limits = f"from {rule.low:.1%} to {rule.high:.1%}"
        bound = f"floor {rule.floor:.3g}" if rule.ceiling is None else f"ceiling {rule.ceiling:.3g}"
    sure = f"{rule.level:.0%} interval {limits}, {bound}, {rule.n} items"
    why = f", {_why(rule)}" if rule.verdict is Verdict.INCONCLUSIVE else ""
    return f"{rule.name}: {what} ({sure}){why}"


def _why(rule: RuleDecision) -> str:
    if rule.reasons:
        return REASONS[rule.reasons[0]]
    return "which neither proves nor rules out too large a drop"


def _moved(value: float) -> str:
    if math.isclose(value, 0.0, abs_tol=5e-5):
        return "did not move"
    return f"{'fell' if value < 0 else 'rose'} by {abs(100 * value):.1f} points"


def _points(value: float) -> str:
    return f"{100 * value:+.1f}"


def _plain(value: Any) -> Any:
    """Return a record's content as JSON types: lists for tuples, text for names."""
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return str(value) if isinstance(value, str) else value
