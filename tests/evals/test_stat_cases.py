from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import Any

import pytest

from evals.errors import InputError
from evals.stat_cases import KINDS, run_cases

EXAMPLES = Path(__file__).parents[3] / "shared" / "reference" / "gate_cases_examples.json"
LATER = {
    "group_sequential_levels",
    "e_process",
    "stream_alpha_spending",
    "stream_e_lond",
}

NOT_THE_MAXIMUM = {"L1"}
"""Its value is statsmodels', whose constrained rate (0.79264) is not the most likely one (0.79386):
`test_unpaired_binary.py` maximises the likelihood numerically."""


def _examples() -> list[dict[str, Any]]:
    if not EXAMPLES.exists():
        return []
    cases: list[dict[str, Any]] = json.loads(EXAMPLES.read_text())["cases"]
    return [case for case in cases if case["kind"] in KINDS and case["id"] not in NOT_THE_MAXIMUM]


def _agrees(found: Any, wanted: Any, tolerance: float) -> bool:
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(
            _agrees(f, w, tolerance) for f, w in zip(found, wanted, strict=True)
        )
    if isinstance(wanted, float | int) and not isinstance(wanted, bool):
        return math.isclose(found, wanted, rel_tol=0, abs_tol=tolerance)
    return bool(found == wanted)


@pytest.mark.skipif(not EXAMPLES.exists(), reason=f"the worked cases are not at {EXAMPLES}")
@pytest.mark.parametrize("case", _examples(), ids=lambda case: case["id"])
def test_worked_cases_come_out_within_their_tolerance(case: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = run_cases({"cases": [case]}).results[case["id"]]
    for key, wanted in case["expected"].items():
        assert _agrees(found[key], wanted, case["tol"] or 1e-12), key


@pytest.mark.skipif(not EXAMPLES.exists(), reason=f"the worked cases are not at {EXAMPLES}")
def test_only_later_kinds_are_unsupported() -> None:
    found = run_cases(json.loads(EXAMPLES.read_text()))
    assert set(found.unsupported) == LATER
    json.dumps(found.to_json(), allow_nan=False)


def _run(kind: str, given: dict[str, Any], **config: Any) -> dict[str, Any]:
    case = {"id": "x", "kind": kind, "input": given, "config": config}
    return run_cases({"cases": [case]}).results["x"]


def test_an_unknown_kind_is_named_and_not_guessed_at() -> None:
    found = run_cases({"cases": [{"id": "a", "kind": "tarot"}, {"id": "b", "kind": "tarot"}]})
    assert found.to_json() == {"results": {}, "unsupported": ["tarot"]}


@pytest.mark.parametrize(
    ("given", "where", "what"),
    [
        ({"candidate_only": 1, "n": 5}, "case x: baseline_only", "missing"),
        ({"baseline_only": "1", "candidate_only": 1, "n": 5}, "case x: baseline_only", "number"),
        ({"baseline_only": True, "candidate_only": 1, "n": 5}, "case x: baseline_only", "number"),
        ({"baseline_only": 1.5, "candidate_only": 1, "n": 5}, "case x: baseline_only", "count"),
        ({"baseline_only": -1, "candidate_only": 1, "n": 5}, "case x: baseline_only", "count"),
        ({"baseline_only": 4, "candidate_only": 3, "n": 5}, "case x: input", "discordant"),
        ({"baseline_only": 1, "candidate_only": 1, "n": math.nan}, "case x: n", "number"),
    ],
)
def test_bad_input_names_case_and_field(given: dict[str, Any], where: str, what: str) -> None:
    with pytest.raises(InputError) as caught:
        _run("paired_binary_score", given, margin=0.02)
    assert caught.value.where == where
    assert what in caught.value.what


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"cases": {}},
        {"cases": [3]},
        {"cases": [{"id": 1, "kind": "x"}]},
        {"cases": [{"id": "a", "kind": "mcnemar_exact", "input": []}]},
        {"cases": [{"id": "a", "kind": "mcnemar_exact", "input": {}}]},
        {"cases": [{"id": "a", "kind": "stratified_macro", "input": {"strata": [1]}}]},
        {"cases": [{"id": "a", "kind": "paired_scores", "input": {"d": [1.2]}}]},
        {"cases": [{"id": "a", "kind": "paired_scores", "input": {"d": ["a"]}}]},
        {"cases": [{"id": "a", "kind": "paired_scores", "input": {"d": [0.1]}}]},
        {"cases": [{"id": "a", "kind": "overall_verdict", "input": {"rules": [{"tier": "x"}]}}]},
        {"cases": [{"id": "a", "kind": "multiplicity", "input": {"p": [0.1], "method": "no"}}]},
    ],
)
def test_a_broken_document_is_an_input_error(document: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        run_cases(document)


def test_two_cases_with_one_id_are_refused() -> None:
    case = {
        "id": "a",
        "kind": "mcnemar_exact",
        "input": {"baseline_only": 1, "candidate_only": 0},
    }
    with pytest.raises(InputError, match="two cases"):
        run_cases({"cases": [case, case]})


@pytest.mark.parametrize(
    ("given", "config", "wanted"),
    [
        ({"baseline_ids": ["a"], "candidate_ids": []}, {}, "no_common_items"),
        ({"baseline_ids": [], "candidate_ids": []}, {}, "no_common_items"),
        ({"baseline_ids": list("abcdef"), "candidate_ids": list("abc")}, {}, "too_many_missing"),
        ({"scores": [0.2, None, 0.5]}, {}, "too_many_missing"),
        ({"scores": []}, {}, "nothing_evaluated"),
        ({"n": 0}, {}, "nothing_evaluated"),
        ({"n": 100, "n_missing": 3}, {"max_missing": 0.02}, "too_many_missing"),
        ({"clusters": [1, 1, 2, 3]}, {}, "too_few_clusters"),
        ({"n": 10}, {"min_items": 20}, "too_few_items"),
        ({"rules": [{"role": "report"}]}, {}, "no_gating_rule"),
        ({"task": "a", "candidate_tasks": ["b"]}, {}, "task_absent"),
        (
            {"baseline_fingerprint": {"dtype": "a"}, "candidate_fingerprint": {"dtype": "b"}},
            {},
            "fingerprint_differs",
        ),
        (
            {"baseline_fingerprint": {"dtype": "a"}, "candidate_fingerprint": {"dtype": "b"}},
            {"allow_differences": ["dtype"]},
            None,
        ),
        ({"n": 100, "n_missing": 2}, {"max_missing": 0.02}, None),
    ],
)
def test_guards_leave_the_verdict_open(
    given: dict[str, Any], config: dict[str, Any], wanted: str | None
) -> None:
    found = _run("data_guard", given, **config)
    assert found["reason"] == wanted
    assert found["verdict"] == (wanted and "INCONCLUSIVE")


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"scores": [-0.1]}, "score_out_of_range"),
        ({"candidate_ids": ["a", "a"]}, "duplicate_item"),
        ({"baseline_metric": "acc", "candidate_metric": "f1"}, "metric_differs"),
        (
            {"baseline_prompt_version": "1", "candidate_prompt_version": "2"},
            "prompt_version_differs",
        ),
    ],
)
def test_guards_refuse_what_must_not_be_paired(given: dict[str, Any], wanted: str) -> None:
    assert _run("data_guard", given) == {"error": wanted}


def test_too_few_clusters_keep_a_clustered_case_open() -> None:
    found = _run(
        "paired_clustered", {"d": [0.5] * 400, "cluster": [i % 4 for i in range(400)]}, margin=0.05
    )
    assert (found["verdict"], found["reason"]) == ("INCONCLUSIVE", "too_few_clusters")


def test_missing_scores_over_the_cap_keep_a_case_open() -> None:
    given = {
        "baseline_only": 0,
        "candidate_only": 30,
        "n_complete": 970,
        "candidate_missing_baseline_wrong": 30,
    }
    assert _run("missing_bounds", given, margin=0.03)["verdict"] == "INCONCLUSIVE"
    assert _run("missing_bounds", given, margin=0.03, max_missing=0.03)["verdict"] == "PASS"


def test_missing_differences_are_bounded_at_their_worst() -> None:
    given = {"d": [0.0] * 990 + [None] * 10}
    found = _run("paired_scores", given, margin=0.02)
    plain = _run("paired_scores", {"d": [0.0] * 990 + [-1.0] * 10}, margin=0.02)
    assert found["p_pass"] == plain["p_pass"]
    assert (found["n"], found["diff"]) == (990, 0.0)


@pytest.mark.parametrize(
    ("kind", "given", "config"),
    [
        ("power_at_no_change", {"n": 0, "discordance": 0.1}, {"margin": 0.02, "alpha": 0.05}),
        ("stratified_macro", {"strata": []}, {"margin": 0.02}),
        ("mcnemar_exact", {"baseline_only": 1e30, "candidate_only": 1}, {}),
        ("power_at_no_change", {"n": 100, "discordance": 0.1}, {"margin": 0.02, "alpha": 0}),
    ],
)
def test_values_out_of_range_name_their_case(
    kind: str, given: dict[str, object], config: dict[str, object]
) -> None:
    case = {"id": "odd", "kind": kind, "input": given, "config": config}
    with pytest.raises(InputError, match="case odd"):
        run_cases({"cases": [case]})
