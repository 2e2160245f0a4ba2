from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from evals.compare import Reading
from evals.errors import InputError
from evals.identity import fingerprint
from evals.policy import (
    OnInconclusive,
    Policy,
    PolicyKind,
    check_policy,
    find_policy,
    load_policy,
)
from evals.stats.verdict import Role, Tier
from evals.task import Capability, TaskSpec

RULE = {"name": "r", "task": "gsm", "role": "must", "margin": 0.02}


def _task(name: str = "gsm", **fields: Any) -> TaskSpec:
    return TaskSpec(
        **{"name": name, "version": "1", "capability": Capability.REASONING, "metric": "acc"}
        | fields
    )


def _load(tmp_path: Path, *rules: dict[str, Any], **fields: Any) -> Policy:
    path = tmp_path / "p.yaml"
    content = {"name": "p", "version": "1", **fields, "rules": list(rules) or [RULE]}
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return load_policy(path)


def _refused(tmp_path: Path, *rules: dict[str, Any], **fields: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        _load(tmp_path, *rules, **fields)
    return caught.value


def test_a_minimal_policy_gets_every_default(tmp_path: Path) -> None:
    policy = _load(tmp_path)
    rule = policy.rules[0]
    assert policy.kind is PolicyKind.PROMOTION
    assert policy.on_inconclusive is OnInconclusive.BLOCK
    assert policy.truncated.read_as is Reading.TASK_SCORE
    assert policy.alpha_pass == dict.fromkeys(Tier, 0.05)
    assert policy.alpha_fail == dict.fromkeys(Tier, 0.05)
    assert (rule.tier, rule.tolerate, rule.max_missing, rule.max_loss) == (
        Tier.CAPABILITY,
        0.0,
        0.02,
        1.0,
    )
    assert policy.label == "p@1"


def test_blocking_error_is_shared_where_both_tiers_decide(tmp_path: Path) -> None:
    safety = {"name": "s", "capability": "safety", "role": "must", "margin": 0.02}
    policy = _load(tmp_path, RULE, safety)
    assert policy.rules[1].tier is Tier.SAFETY
    assert policy.alpha_fail == dict.fromkeys(Tier, 0.025)
    assert policy.alpha_pass == dict.fromkeys(Tier, 0.05)
    reported = _load(tmp_path, RULE, {**safety, "role": "report"})
    assert reported.alpha_fail == dict.fromkeys(Tier, 0.05)


def test_levels_are_one_number_or_one_for_each_tier(tmp_path: Path) -> None:
    policy = _load(tmp_path, alpha_pass=0.01, alpha_fail={"safety": 0.001})
    assert policy.alpha_pass == dict.fromkeys(Tier, 0.01)
    assert policy.alpha_fail == {Tier.SAFETY: 0.001, Tier.CAPABILITY: 0.05}


def test_the_digest_names_the_content(tmp_path: Path) -> None:
    policy = _load(tmp_path)
    assert policy.digest == _load(tmp_path, max_missing=0.02).digest
    assert policy.digest != _load(tmp_path, {**RULE, "margin": 0.021}).digest


@pytest.mark.parametrize(
    ("fields", "where", "what"),
    [
        ({"margn": 0.02}, "rules[0].margn", "did you mean `margin`"),
        ({"role": "most"}, "rules[0].role", "did you mean `must`"),
        ({"tier": "saftey"}, "rules[0].tier", "did you mean `safety`"),
        ({"margin": 2}, "rules[0].margin", "less than 1"),
        ({"margin": "2%"}, "rules[0].margin", "write 0.02"),
        ({"margin": True}, "rules[0].margin", "valid number"),
        ({"tolerate": 0.03}, "rules[0]", "above the margin"),
        ({"capability": "code"}, "rules[0]", "either `task` or `capability`"),
        ({"ceiling": 0.1}, "rules[0]", "one of `margin`"),
        ({"margin": None}, "rules[0]", "one of `margin`"),
        ({"margin": None, "floor": 0.5, "tolerate": 0.1}, "rules[0]", "belong to a `margin`"),
        ({"max_loss": 0.01}, "rules[0]", "not below `max_loss`"),
        ({"min_items": 0}, "rules[0].min_items", "greater than or equal to 1"),
        ({"task": None, "capability": "reasonning"}, "rules[0].capability", "`reasoning`"),
    ],
)
def test_a_wrong_rule_is_named_by_line_and_field(
    tmp_path: Path, fields: dict[str, Any], where: str, what: str
) -> None:
    error = _refused(tmp_path, {**RULE, **fields})
    assert error.where.split(": ")[1] == where
    assert error.where.split(":")[1].isdigit()
    assert what in f"{error.what} {error.fix}"


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"allow_differences": ["dtyp"]}, "did you mean `dtype`"),
        ({"on_inconclusive": "pass"}, "Allowed: block, ask"),
        ({"kind": "promote"}, "did you mean `promotion`"),
        ({"alpha_fail": {"safty": 0.01}}, "did you mean `safety`"),
        ({"alpha_pass": 0.6}, "less than or equal to 0.5"),
        ({"truncated": {"read_as": "zero"}}, "Allowed: task_score, worst"),
        ({"max_missing": ".nan"}, "valid number"),
        ({"version": 1}, "in quotes"),
    ],
)
def test_a_wrong_field_of_the_policy_is_named(
    tmp_path: Path, fields: dict[str, Any], what: str
) -> None:
    error = _refused(tmp_path, **fields)
    assert what in f"{error.what} {error.fix}"


def test_two_rules_of_one_name_are_refused(tmp_path: Path) -> None:
    assert "two rules are named `r`" in _refused(tmp_path, RULE, RULE).what


def test_a_policy_without_rules_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text('name: p\nversion: "1"\nrules: []\n')
    with pytest.raises(InputError, match="at least 1 item"):
        load_policy(path)


def test_a_policy_that_fits_the_suite_is_accepted(tmp_path: Path) -> None:
    check_policy(_load(tmp_path), [_task()])


@pytest.mark.parametrize(
    ("rule", "task", "what"),
    [
        ({"task": "gms"}, _task(), "no task `gms` — did you mean `gsm`"),
        ({"task": None, "capability": "code"}, _task(), "no capability `code` — There are: reas"),
        ({"role": "report"}, _task(), "no rule decides"),
        ({"margin": None, "ceiling": 0.1}, _task(), "a higher score is better"),
        ({"margin": None, "floor": 0.1}, _task(higher_is_better=False), "a lower score is better"),
        ({"max_loss": 0.5}, _task(), "is 0 or 1"),
    ],
)
def test_a_policy_that_does_not_fit_the_suite_is_refused(
    tmp_path: Path, rule: dict[str, Any], task: TaskSpec, what: str
) -> None:
    with pytest.raises(InputError) as caught:
        check_policy(_load(tmp_path, {**RULE, **rule}), [task])
    assert what in str(caught.value)


def test_the_digest_is_that_of_the_document(tmp_path: Path) -> None:
    policy = _load(tmp_path, allow_differences=["version", "dtype"])
    document = json.loads(json.dumps(policy.to_json()))
    assert fingerprint(document) == policy.digest
    assert (document["name"], document["rules"][0]["margin"]) == ("p", 0.02)


@pytest.mark.parametrize("name", ["smoke", "release"])
def test_shipped_policies_load(name: str) -> None:
    policy = find_policy(name)
    assert policy.name == name
    assert any(rule.role is not Role.REPORT for rule in policy.rules)


def test_a_policy_is_found_by_path_and_a_wrong_name_is_answered(tmp_path: Path) -> None:
    policy = _load(tmp_path)
    assert find_policy(str(tmp_path / "p.yaml")) == policy
    with pytest.raises(InputError, match="one of: lab, release, smoke"):
        find_policy("relase")
