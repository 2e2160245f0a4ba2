from __future__ import annotations

from dataclasses import replace

from small_lake import FAILED, FIRST, OPEN, Made, evaluation_of

from app.choices import common_suites, known, name_before, names_of, pinned_sides, with_sides
from app.query import AppQuery

EVALUATIONS = [evaluation_of(one) for one in (FAILED, FIRST, OPEN)]
OTHER_RUN = evaluation_of(Made(run="a", step=3, skill=0.5))


def test_names_are_by_run_and_by_step_as_a_number() -> None:
    assert names_of([*EVALUATIONS, OTHER_RUN, EVALUATIONS[0]]) == [
        "a@3",
        "grpo-tiny@100",
        "grpo-tiny@500",
        "grpo-tiny@1000",
    ]


def test_the_step_before_is_of_the_same_run_and_suite() -> None:
    assert name_before(EVALUATIONS[0], [*EVALUATIONS, OTHER_RUN]) == OPEN.name
    assert name_before(EVALUATIONS[1], [*EVALUATIONS, OTHER_RUN]) is None
    elsewhere = [replace(one, suite="other") for one in EVALUATIONS]
    assert name_before(EVALUATIONS[0], elsewhere) is None


def test_sides_default_to_the_last_evaluation_and_the_step_before_it() -> None:
    query = with_sides(AppQuery(), [EVALUATIONS[1], EVALUATIONS[2], EVALUATIONS[0]])
    assert (query.candidate, query.baseline, query.suite) == (FAILED.name, OPEN.name, "small")


def test_what_the_url_names_stays() -> None:
    query = with_sides(AppQuery(candidate="gone@1", baseline=FIRST.name), EVALUATIONS)
    assert (query.candidate, query.baseline) == ("gone@1", FIRST.name)


def test_a_suite_that_is_not_common_is_replaced() -> None:
    query = with_sides(AppQuery(candidate=FAILED.name, suite="other"), EVALUATIONS)
    assert query.suite == "small"


def test_a_lone_checkpoint_has_no_baseline_unless_it_has_repeats() -> None:
    lone = EVALUATIONS[1]
    assert with_sides(AppQuery(), [lone]).baseline is None
    again = replace(lone, evaluation_id="again", attempt=1)
    assert with_sides(AppQuery(), [lone, again]).baseline == FIRST.name


def test_a_filter_that_is_none_of_the_options_filters_nothing() -> None:
    assert known("b", ["a", "b"]) == "b"
    assert known("c", ["a", "b"]) is None
    assert known(None, []) is None


def test_common_suites_are_those_of_both() -> None:
    extra = replace(EVALUATIONS[0], suite="extra", evaluation_id="extra")
    assert common_suites(FAILED.name, FIRST.name, [*EVALUATIONS, extra]) == ["small"]


def test_pinned_evaluations_have_to_be_of_the_sides() -> None:
    query = AppQuery(
        candidate=FAILED.name,
        baseline=FIRST.name,
        candidate_evaluation=FAILED.evaluation_id,
        baseline_evaluation=FIRST.evaluation_id,
    )
    sides = pinned_sides(query, EVALUATIONS)
    assert sides is not None
    assert sides.candidate.checkpoint.step == FAILED.step
    assert pinned_sides(replace(query, baseline=OPEN.name), EVALUATIONS) is None
    assert pinned_sides(replace(query, baseline_evaluation="gone"), EVALUATIONS) is None
