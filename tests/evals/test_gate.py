from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evals.compare import Difference, PairedEvaluations, PairedScores, Reading, paired_arrays
from evals.engine import EngineFingerprint
from evals.evaluation import CheckpointRef, Evaluation
from evals.gate import REASONS, Decision, decide, deciding_rules
from evals.policy import (
    OnInconclusive,
    OutcomeRule,
    Policy,
    PolicyKind,
    Rule,
    check_policy,
    find_policy,
)
from evals.scoring import Outcome
from evals.stats.verdict import Role, Tier, Verdict
from evals.suite import load_suite
from evals.task import Capability, TaskSpec
from evals.tasks.registry import build_task


def spec(name: str = "gsm", **fields: Any) -> TaskSpec:
    return TaskSpec(
        **{"name": name, "version": "1", "capability": Capability.REASONING, "metric": "acc"}
        | fields
    )


def rule(name: str = "r", **fields: Any) -> Rule:
    return Rule(
        **{
            "name": name,
            "task": "gsm",
            "capability": None,
            "tier": Tier.CAPABILITY,
            "role": Role.MUST,
            "margin": 0.02,
            "tolerate": 0.0,
            "ceiling": None,
            "floor": None,
            "min_items": 1,
            "max_missing": 0.02,
            "max_loss": 1.0,
        }
        | fields
    )


AS_THEY_ARE = OutcomeRule(read_as=Reading.TASK_SCORE, max_share=0.1)
ONE_RULE = Policy(
    name="p",
    version="1",
    kind=PolicyKind.PROMOTION,
    rules=(rule(),),
    alpha_pass_safety=0.05,
    alpha_pass_capability=0.05,
    alpha_fail_safety=0.05,
    alpha_fail_capability=0.05,
    allow_differences=(),
    on_inconclusive=OnInconclusive.BLOCK,
    truncated=AS_THEY_ARE,
    unparsed=AS_THEY_ARE,
)


def policy(*rules: Rule, **fields: Any) -> Policy:
    return replace(ONE_RULE, rules=rules or ONE_RULE.rules, **fields)


def evaluation(run: str, specs: Sequence[TaskSpec]) -> Evaluation:
    return Evaluation(
        evaluation_id=f"eval-{run}",
        checkpoint=CheckpointRef(run=run, step=7, digest="0" * 64, path="/"),
        suite="s",
        suite_version="1",
        suite_fingerprint="f",
        tasks=tuple(specs),
        engine=EngineFingerprint(
            engine="e",
            version="1",
            device="cpu",
            dtype="f",
            context_tokens=1,
            chat_template="none",
            tokenizer="t",
        ),
        sampling="{}",
    )


def paired(*pairs: PairedScores, **fields: Any) -> PairedEvaluations:
    specs = [pair.spec for pair in pairs]
    both = PairedEvaluations(
        candidate=evaluation("new", specs), baseline=evaluation("old", specs), tasks=pairs
    )
    return replace(both, **fields)


def pair(
    lost: int = 0, gained: int = 0, n: int = 1000, missing: int = 0, **fields: Any
) -> PairedScores:
    """Return a task on which the candidate lost and gained some of n items, half of them right.

    Of the missing scores of the candidate half are on items that the baseline got right.
    """
    baseline = np.zeros(n)
    baseline[: lost + (n - lost - gained) // 2] = 1
    candidate = baseline.copy()
    candidate[:lost] = 0
    candidate[n - gained :] = 1
    candidate[lost : lost + missing // 2] = np.nan
    candidate[n - gained - (missing + 1) // 2 : n - gained] = np.nan
    name = fields.get("name", "gsm")
    return paired_arrays(spec(**fields), [f"{name}{i:06d}" for i in range(n)], baseline, candidate)


def run(*pairs: PairedScores, using: Policy | None = None, **fields: Any) -> Decision:
    return decide(using or policy(), paired(*pairs, **fields), snapshot=3)


def test_a_candidate_without_a_drop_passes() -> None:
    found = run(pair(lost=10, gained=12))
    only = found.rules[0]
    assert found.verdict is only.verdict is Verdict.PASS
    assert (only.n, only.missing, only.method, only.level) == (1000, 0, "paired_binary", 0.9)
    assert only.low > -0.02
    assert (only.flips.lost, only.flips.gained) == (10, 12)
    assert found.reasons == ()
    assert found.sentence == (
        "PASS: new@7 against old@7 under p@1 may be promoted: 1 of 1 deciding rules are proven "
        "and none failed; the closest is r: gsm rose by 0.2 points "
        "(90% interval from -0.6 to +1.0, margin 2, 1000 items)."
    )


def test_a_candidate_that_dropped_fails() -> None:
    found = run(pair(lost=80, gained=20))
    assert found.verdict is found.rules[0].verdict is Verdict.FAIL
    assert found.rules[0].high < 0
    assert found.sentence.startswith(
        "FAIL: new@7 against old@7 under p@1 must not be promoted: r: gsm fell by 6.0 points"
    )
    assert len(found.rules[0].flips.lost_items) == 80


def test_what_is_not_proven_stays_open() -> None:
    found = run(pair(lost=40, gained=30))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.rules[0].reasons == ()
    assert "neither proves nor rules out" in found.sentence


def test_a_small_real_drop_passes_with_a_warning() -> None:
    found = run(pair(lost=6, n=2000))
    assert found.verdict is Verdict.PASS
    assert found.rules[0].warnings == ("drop_within_margin",)


def test_where_lower_is_better_a_rise_of_the_score_fails() -> None:
    found = run(pair(gained=80, lost=10, higher_is_better=False))
    assert found.verdict is Verdict.FAIL
    assert found.rules[0].value == pytest.approx(-0.07)


def test_a_decision_is_json_and_the_same_every_time() -> None:
    decisions = [run(pair(lost=40, gained=30, missing=3)) for _ in range(2)]
    one, other = (json.dumps(decision.to_json(), allow_nan=False) for decision in decisions)
    assert one == other
    content = json.loads(one)
    assert content.keys() >= {
        "verdict",
        "sentence",
        "candidate",
        "baseline",
        "policy",
        "snapshot",
        "decision",
        "rules",
    }
    assert content["rules"][0].keys() >= {
        "name",
        "tier",
        "role",
        "verdict",
        "margin",
        "tolerate",
        "n",
        "value",
        "low",
        "high",
        "level",
        "p_pass",
        "p_fail",
        "missing",
        "reasons",
    }
    assert (content["candidate"], content["snapshot"]) == ("new@7", 3)
    assert decisions[0].decision != run(pair(lost=40, gained=31, missing=3)).decision


@pytest.mark.parametrize("role", [Role.MUST, Role.GUARD, Role.VETO])
def test_five_identical_items_prove_nothing(role: Role) -> None:
    found = run(pair(n=5), using=policy(rule(role=role)))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.rules[0].reasons == ("unresolvable",)
    assert found.rules[0].low < -0.4


def test_a_guard_that_could_not_have_passed_has_not_been_tried() -> None:
    found = run(pair(n=148), using=policy(rule(role=Role.GUARD)))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.reasons == ("unresolvable",)
    assert run(pair(n=149), using=policy(rule(role=Role.GUARD))).verdict is Verdict.PASS


def test_fewer_items_than_the_rule_asks_for_stay_open() -> None:
    found = run(pair(n=999), using=policy(rule(min_items=1000)))
    assert found.rules[0].reasons == ("too_few_items",)
    assert run(pair(n=1000), using=policy(rule(min_items=1000))).verdict is Verdict.PASS


def test_missing_scores_count_at_their_worst() -> None:
    complete = run(pair(lost=8, gained=3))
    open_ = run(pair(lost=8, gained=3, missing=20))
    assert complete.verdict is Verdict.PASS
    assert open_.verdict is Verdict.INCONCLUSIVE
    assert open_.rules[0].missing == 20
    assert open_.rules[0].low < -0.02
    assert open_.rules[0].p_pass > 0.05


def test_missing_scores_do_not_make_a_failure() -> None:
    complete = run(pair(lost=30, gained=15))
    open_ = run(pair(lost=30, gained=15, missing=20))
    assert complete.verdict is Verdict.FAIL
    assert open_.verdict is Verdict.INCONCLUSIVE
    assert open_.rules[0].high > 0


def test_more_missing_than_allowed_stays_open_whatever_the_numbers() -> None:
    for found in (run(pair(gained=300, missing=21)), run(pair(lost=500, missing=21))):
        assert found.verdict is Verdict.INCONCLUSIVE
        assert found.rules[0].reasons == ("too_many_missing",)


def _with_outcome(outcome: Outcome, share: int, side: str) -> PairedScores:
    base = {Outcome.SCORED: 1000}
    odd = {Outcome.SCORED: 1000 - share, outcome: share}
    one = pair()
    if side == "candidate":
        return replace(one, baseline_outcomes=base, candidate_outcomes=odd)
    return replace(one, baseline_outcomes=odd, candidate_outcomes=base)


@pytest.mark.parametrize("side", ["candidate", "baseline"])
@pytest.mark.parametrize("outcome", [Outcome.TRUNCATED, Outcome.UNPARSED])
def test_too_many_unwhole_answers_on_either_side_stay_open(outcome: Outcome, side: str) -> None:
    assert run(_with_outcome(outcome, 100, side)).verdict is Verdict.PASS
    found = run(_with_outcome(outcome, 101, side))
    assert found.rules[0].reasons == (f"too_many_{outcome.value}",)
    assert found.verdict is Verdict.INCONCLUSIVE


def test_a_task_that_was_not_evaluated_stays_open() -> None:
    found = run(pair(name="other"))
    assert found.rules[0].reasons == ("task_absent",)
    assert found.reasons == ("nothing_evaluated", "task_absent")
    assert found.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    "fields", [{"only_candidate": frozenset({"gsm"})}, {"only_baseline": (spec("arc"),)}]
)
def test_a_task_that_one_side_lacks_stays_open(fields: dict[str, Any]) -> None:
    about = rule(task=None, capability=Capability.REASONING)
    found = run(pair(), using=policy(about), **fields)
    assert found.rules[0].reasons == ("task_absent",)
    assert found.verdict is Verdict.INCONCLUSIVE


def test_nothing_evaluated_stays_open() -> None:
    found = run(paired_arrays(spec(), [], np.empty(0), np.empty(0)))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "nothing_evaluated" in found.reasons
    assert "nothing was evaluated" in found.sentence


def test_no_common_items_stay_open() -> None:
    nan = np.nan
    found = run(
        paired_arrays(spec(), ["a", "b"], np.array([1.0, nan]), np.array([nan, 1.0])),
    )
    assert found.rules[0].reasons[0] == "no_common_items"


def test_only_report_rules_never_pass() -> None:
    found = run(pair(), using=policy(rule(role=Role.REPORT)))
    assert found.rules[0].verdict is Verdict.PASS
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.reasons == ("no_gating_rule",)


def test_a_report_rule_does_not_hold_the_rest_up() -> None:
    found = run(pair(), using=policy(rule(), rule("x", task="absent", role=Role.REPORT)))
    assert found.verdict is Verdict.PASS


def test_a_screening_policy_never_promotes_but_fails() -> None:
    screening = policy(kind=PolicyKind.SCREENING)
    found = run(pair(), using=screening)
    assert (found.verdict, found.reasons) == (Verdict.INCONCLUSIVE, ("screening_never_promotes",))
    assert run(pair(lost=200), using=screening).verdict is Verdict.FAIL


def test_another_engine_stays_open_unless_the_policy_allows_it() -> None:
    other = Difference(name="dtype", baseline="a", candidate="b")
    found = run(pair(lost=200), differences=(other,))
    assert found.rules[0].reasons == ("fingerprint_differs",)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.to_json()["differences"][0]["allowed"] is False
    allowed = run(pair(), using=policy(allow_differences=("dtype",)), differences=(other,))
    assert allowed.verdict is Verdict.PASS


def test_a_difference_of_one_task_concerns_its_rules_only() -> None:
    other = Difference(name="max_tokens", baseline="1", candidate="2", task="arc")
    found = run(
        pair(), pair(name="arc"), using=policy(rule(), rule("a", task="arc")), differences=(other,)
    )
    assert [one.verdict for one in found.rules] == [Verdict.PASS, Verdict.INCONCLUSIVE]


@pytest.mark.parametrize("changed", [(0, 0), (80, 20), (40, 30)])
def test_a_decision_comes_back_from_its_json(changed: tuple[int, int]) -> None:
    lost, gained = changed
    other = Difference(name="dtype", baseline="float32", candidate="bfloat16")
    found = run(pair(lost=lost, gained=gained, missing=3), differences=(other,))
    document = json.loads(json.dumps(found.to_json()))
    assert Decision.from_json(document) == found
    assert Decision.from_json(document).to_json() == document


def test_the_deciding_rules_are_those_that_the_sentence_tells() -> None:
    about = policy(rule("a", role=Role.REPORT), rule("b"), rule("c", margin=0.5))
    for lost, names in ((0, ("b",)), (300, ("b",)), (17, ("b",))):
        found = run(pair(lost=lost), using=about)
        told = tuple(one.name for one in deciding_rules(found))
        assert told == names, found.sentence
        assert f"{names[0]}: gsm" in found.sentence


def test_a_lone_candidate_lacks_a_baseline_and_nothing_else() -> None:
    alone = replace(pair(), baseline=np.full(1000, np.nan), baseline_missing=np.ones(1000))
    found = run(alone, baseline=None)
    assert found.rules[0].reasons == found.reasons == ("no_baseline",)
    assert found.limits_hold
    assert found.rules[0].outcomes.keys() == {outcome.value for outcome in Outcome}


def test_a_ceiling_needs_no_baseline() -> None:
    attacks = pair(n=149, name="attacks", higher_is_better=False)
    attacks = replace(
        attacks,
        candidate=np.zeros(149),
        baseline=np.full(149, np.nan),
        baseline_missing=np.ones(149),
    )
    about = policy(rule(task="attacks", margin=None, ceiling=0.02), rule())
    found = run(attacks, using=about, baseline=None)
    assert found.rules[0].verdict is Verdict.PASS
    assert found.rules[0].method == "rate"
    assert found.rules[1].reasons == ("no_baseline", "task_absent")
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.limits_hold


@pytest.mark.parametrize(
    ("events", "n", "missing", "verdict"),
    [
        (0, 148, 0, Verdict.INCONCLUSIVE),
        (0, 149, 0, Verdict.PASS),
        (0, 152, 3, Verdict.INCONCLUSIVE),
        (16, 500, 0, Verdict.FAIL),
    ],
)
def test_ceilings_hold_at_the_worst_of_what_is_missing(
    events: int, n: int, missing: int, verdict: Verdict
) -> None:
    values = np.zeros(n)
    values[:events] = 1
    values[n - missing :] = np.nan
    one = paired_arrays(spec(higher_is_better=False), [str(i) for i in range(n)], values, values)
    found = run(one, using=policy(rule(margin=None, ceiling=0.02)))
    assert found.rules[0].verdict is verdict
    assert found.verdict is verdict


def test_a_floor_is_a_ceiling_on_what_is_lost() -> None:
    values = np.ones(149)
    one = paired_arrays(spec(), [str(i) for i in range(149)], values, values)
    found = run(one, using=policy(rule(margin=None, floor=0.98)))
    assert found.verdict is Verdict.PASS
    assert found.rules[0].low == pytest.approx(0.05 ** (1 / 149))
    assert "scored 100.0%" in found.sentence
    one = paired_arrays(spec(), [str(i) for i in range(148)], values[:148], values[:148])
    found = run(one, using=policy(rule(margin=None, floor=0.98)))
    assert found.rules[0].reasons == ("unresolvable",)


def test_scores_and_ceilings_on_scores_use_the_mean_test() -> None:
    rng = np.random.default_rng(2)
    baseline = rng.uniform(0.3, 0.6, 400)
    candidate = np.clip(baseline + rng.normal(0, 0.05, 400), 0, 1)
    one = paired_arrays(spec(binary=False), [str(i) for i in range(400)], baseline, candidate)
    using = policy(rule(), rule("f", margin=None, floor=0.4))
    found = run(one, using=using)
    assert [one.method for one in found.rules] == ["bounded_mean", "bounded_mean"]
    assert found.verdict is Verdict.PASS


def test_small_binary_tasks_use_the_exact_test_and_its_limits_agree_with_it() -> None:
    found = run(pair(n=164, lost=5, gained=5), using=policy(rule(margin=0.05)))
    only = found.rules[0]
    assert only.method == "paired_binary_exact"
    assert only.p_pass == pytest.approx(0.016758, abs=1e-4)
    assert only.low >= -0.05


def test_limits_of_an_open_rule_reach_its_margin() -> None:
    found = run(pair(n=40, lost=2, gained=2), using=policy(rule(margin=0.1))).rules[0]
    assert found.p_pass > 0.05
    assert found.low <= -0.1


def test_clusters_are_respected_within_and_across_tasks() -> None:
    n = 400
    rng = np.random.default_rng(5)
    flip = np.repeat(rng.choice([-1.0, 0.0, 1.0], n // 10, p=[0.05, 0.9, 0.05]), 10)
    baseline = np.where(flip < 0, 1.0, 0.0)
    clusters = [f"c{i // 10}" for i in range(n)]
    pairs = [
        paired_arrays(
            spec(name),
            [f"{name}{i}" for i in range(n)],
            baseline,
            baseline + flip,
            clusters=clusters,
        )
        for name in ("en", "de")
    ]
    about = rule(task=None, capability=Capability.REASONING, margin=0.05)
    clustered = run(*pairs, using=policy(about)).rules[0]
    alone = run(*[replace(one, clusters=None) for one in pairs], using=policy(about)).rules[0]
    assert clustered.method == "clustered_mean"
    assert clustered.n == alone.n == 2 * n
    assert clustered.value == alone.value
    assert clustered.high - clustered.low > 3 * (alone.high - alone.low)


def test_fewer_than_five_clusters_stay_open() -> None:
    n = 400
    one = paired_arrays(
        spec(),
        [str(i) for i in range(n)],
        np.zeros(n),
        np.ones(n),
        clusters=[str(i % 4) for i in range(n)],
    )
    found = run(one)
    assert "too_few_clusters" in found.rules[0].reasons
    assert found.verdict is Verdict.INCONCLUSIVE


def test_identical_clusters_count_once_where_no_loss_was_seen() -> None:
    n = 400
    one = paired_arrays(
        spec(),
        [str(i) for i in range(n)],
        np.ones(n),
        np.ones(n),
        clusters=[str(i // 20) for i in range(n)],
    )
    found = run(one)
    assert found.rules[0].p_pass == pytest.approx(0.98**20)
    assert found.rules[0].reasons == ("unresolvable",)


def test_holm_shares_the_error_within_a_tier() -> None:
    suspicious = pair(lost=40, gained=24, name="a")
    alone = run(suspicious, using=policy(rule(task="a")))
    assert alone.verdict is Verdict.FAIL
    others = [pair(lost=40, gained=35, name=name) for name in "bc"]
    using = policy(*(rule(name, task=name) for name in "abc"))
    together = run(suspicious, *others, using=using)
    assert together.rules[0].verdict is Verdict.INCONCLUSIVE
    assert together.rules[0].suspect
    assert together.rules[0].p_fail_adjusted == pytest.approx(3 * together.rules[0].p_fail)


def test_every_reason_is_put_in_words() -> None:
    assert all(text and not text.endswith(".") for text in REASONS.values())


@pytest.mark.parametrize("binary", [True, False])
def test_swapping_the_sides_mirrors_the_evidence(binary: bool) -> None:
    rng = np.random.default_rng(8)
    values = rng.integers(0, 2, (2, 300)).astype(float) if binary else rng.random((2, 300))
    names = [str(i) for i in range(300)]
    using = policy(rule(margin=0.05, tolerate=0.05))
    there = run(paired_arrays(spec(binary=binary), names, values[0], values[1]), using=using)
    back = run(paired_arrays(spec(binary=binary), names, values[1], values[0]), using=using)
    assert there.rules[0].value == pytest.approx(-(back.rules[0].value or 0))
    assert there.rules[0].low == pytest.approx(-back.rules[0].high, abs=1e-9)


def _verdict(baseline: Any, candidate: Any, binary: bool, margin: float) -> Verdict:
    names = [f"{i:05d}" for i in range(len(baseline))]
    one = paired_arrays(spec(binary=binary), names, np.asarray(baseline), np.asarray(candidate))
    return run(one, using=policy(rule(margin=margin))).verdict


sizes = st.one_of(st.integers(10, 60), st.integers(201, 500))
seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=40, deadline=None)
@given(n=sizes, margin=st.sampled_from([0.02, 0.1, 0.4]), sure=st.floats(1.7, 5), seed=seeds)
def test_lowering_right_or_wrong_scores_never_turns_a_failure_into_a_pass(
    n: int, margin: float, sure: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    discordant = int(rng.integers(min(9, n), n + 1))
    lost = min(discordant, int(np.ceil((discordant + sure * np.sqrt(discordant)) / 2)))
    baseline = (np.arange(n) < lost + (n - discordant) // 2).astype(float)
    candidate = baseline.copy()
    candidate[:lost] = 0
    candidate[n - discordant + lost :] = 1
    assume(_verdict(baseline, candidate, True, margin) is Verdict.FAIL)
    lowered = np.where(rng.random(n) < rng.random(), 0.0, candidate)
    assert _verdict(baseline, lowered, True, margin) is not Verdict.PASS


@settings(max_examples=40, deadline=None)
@given(n=sizes, margin=st.sampled_from([0.02, 0.05, 0.1]), sure=st.floats(2, 6), seed=seeds)
def test_lowering_scores_never_turns_a_failure_into_a_pass(
    n: int, margin: float, sure: float, seed: int
) -> None:
    """A studentised mean has this only where the margin is small beside the range of scores."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(0, 0.2 * rng.random(), n)
    baseline = rng.uniform(0.4, 1, n)
    drop = sure * noise.std() / np.sqrt(n) + 0.1 * rng.random()
    candidate = np.clip(baseline - drop + noise, 0, 1)
    assume(_verdict(baseline, candidate, False, margin) is Verdict.FAIL)
    fall = rng.choice([0.01, 0.1, 1.0]) * rng.random(n) * (rng.random(n) < rng.random())
    constant = np.minimum(candidate, baseline - margin * rng.random())
    for lowered in (np.maximum(candidate - fall, 0), np.maximum(constant, 0)):
        assert _verdict(baseline, lowered, False, margin) is not Verdict.PASS


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_no_input_gives_nan_or_a_value_outside_its_limits(data: st.DataObject) -> None:
    n = data.draw(st.integers(0, 40))
    cell = st.one_of(st.just(float("nan")), st.sampled_from([0.0, 1.0]), st.floats(0, 1))
    column = st.lists(cell, min_size=n, max_size=n)
    clusters = data.draw(st.none() | st.lists(st.sampled_from("abcdefg"), min_size=n, max_size=n))
    one = paired_arrays(
        spec(binary=False, higher_is_better=data.draw(st.booleans())),
        [str(i) for i in range(n)],
        np.array(data.draw(column), dtype=float),
        np.array(data.draw(column), dtype=float),
        clusters=clusters,
    )
    kinds = (
        rule("m"),
        rule("c", margin=None, ceiling=0.3),
        rule("f", margin=None, floor=0.3),
        rule("l", max_loss=0.5),
    )
    found = run(one, using=policy(*(replace(kind, max_missing=1.0) for kind in kinds)))
    json.dumps(found.to_json(), allow_nan=False)
    for each in found.rules:
        assert 0 <= each.p_pass <= 1
        assert 0 <= each.p_fail <= 1
        assert each.low <= each.high
        assert each.value is None or each.low <= each.value <= each.high


def test_the_smoke_policy_passes_what_did_not_change_on_the_smoke_suite() -> None:
    pairs = []
    for entry in load_suite("smoke").tasks:
        task = build_task(entry.task)
        asked = task.items()
        right = np.random.default_rng(0).integers(0, 2, len(asked)).astype(float)
        pairs.append(
            paired_arrays(
                task.spec,
                [item.item_id for item in asked],
                right,
                right,
                clusters=[item.cluster for item in asked],
            )
        )
    using = find_policy("smoke")
    check_policy(using, [one.spec for one in pairs])
    found = run(*pairs, using=using)
    assert [each.reasons for each in found.rules] == [()] * len(using.rules)
    assert found.verdict is Verdict.PASS
    worse = [replace(one, candidate=one.candidate * 0.0) for one in pairs]
    assert run(*worse, using=using).verdict is Verdict.FAIL
