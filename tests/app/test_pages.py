from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from conftest import OpenPage
from small_lake import (
    ARITHMETIC,
    FAILED,
    FIRST,
    HOSTILE,
    OPEN,
    PASSED,
    build,
    open_project,
    put_telemetry,
)
from streamlit.testing.v1 import AppTest

from app.plain import plain
from evals.identity import fingerprint
from storage.connection import open_lake
from storage.project import find_project

PAGES = ("overview", "run", "compare", "decisions")
LOST = fingerprint([ARITHMETIC.name, 14])
"""An item that the failed checkpoint lost."""


def texts(page: AppTest) -> str:
    """Return all that a page says outside of tables and charts."""
    parts = [
        *page.title,
        *page.subheader,
        *page.markdown,
        *page.caption,
        *page.text,
        *page.code,
        *page.error,
        *page.warning,
        *page.info,
    ]
    return "\n".join(str(part.value) for part in parts)


def in_url(page: AppTest, name: str) -> str:
    """Return a parameter; one that the page wrote is text, one that a test gave is a list."""
    value = page.query_params[name]
    return value if isinstance(value, str) else value[0]


def links(page: AppTest) -> list[str]:
    return [f"{one.proto.page}?{one.proto.query_string}" for one in page.get("page_link")]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_a_whole_lake_has_no_error(page: str, small: Path, open_page: OpenPage) -> None:
    shown = open_page(small, page)
    assert not shown.exception
    assert not shown.error
    assert shown.dataframe


@pytest.mark.parametrize("page", PAGES)
def test_a_project_without_a_lake_says_what_to_do(
    page: str, empty: Path, open_page: OpenPage
) -> None:
    shown = open_page(empty, page)
    assert not shown.exception
    assert not shown.error
    said = texts(shown)
    assert "No checkpoint has been evaluated yet" in said
    assert f"pawl eval PATH/TO/checkpoint-100 --suite smoke --project {empty}" in said
    assert not (empty / ".pawl").exists(), "looking made a lake"


@pytest.mark.parametrize("page", PAGES)
def test_a_newer_lake_is_one_line(page: str, newer: Path, open_page: OpenPage) -> None:
    shown = open_page(newer, page)
    assert not shown.exception
    assert [str(one.value).count("\n") for one in shown.error] == [0]
    assert "newer" in str(shown.error[0].value)


def test_a_lake_that_is_no_lake_is_one_line(tmp_path: Path, open_page: OpenPage) -> None:
    (tmp_path / ".pawl").mkdir()
    (tmp_path / ".pawl" / "lake.sqlite").write_bytes(b"no database, whatever its name says" * 99)
    shown = open_page(tmp_path, "overview")
    assert not shown.exception
    assert len(shown.error) == 1


def test_a_lost_catalogue_is_not_an_empty_project(tmp_path: Path, open_page: OpenPage) -> None:
    data = tmp_path / ".pawl" / "lake" / "main"
    data.mkdir(parents=True)
    (data / "scores.parquet").touch()
    shown = open_page(tmp_path, "overview")
    assert "catalogue is gone" in str(shown.error[0].value)


def test_the_overview_has_checkpoints_in_order_with_verdicts(
    small: Path, open_page: OpenPage
) -> None:
    table = open_page(small, "overview").dataframe[0].value
    assert list(table["step"]) == [100, 200, 500, 1000]
    assert list(table["verdict"]) == ["none", "PASS", "INCONCLUSIVE", "FAIL"]
    assert list(table["truncated"]) == [0, 0, 0, 3]
    assert list(table["missing"]) == [0, 0, 0, 3]
    assert table["reasoning"].iloc[0].startswith("78.3 (")


def test_an_open_row_leads_to_comparison_and_decision(small: Path, open_page: OpenPage) -> None:
    shown = open_page(small, "overview", evaluation=FAILED.evaluation_id)
    tasks = shown.dataframe[1].value
    assert list(tasks["task"]) == ["toy_arithmetic", "toy_translation", "toy_attacks"]
    assert list(tasks["missing"]) == [1, 1, 1]
    compare, decision, run = links(shown)
    assert "candidate=grpo-tiny%401000" in compare
    assert "baseline=grpo-tiny%40500" in compare
    assert "decision=" in decision
    assert run == "run?run=grpo-tiny&suite=small"


def test_filters_stand_in_the_url(small: Path, open_page: OpenPage) -> None:
    shown = open_page(small, "overview")
    shown.selectbox[0].select_index(1).run()
    assert in_url(shown, "run") == "grpo-tiny"
    assert not shown.exception


def test_a_running_evaluation_says_how_far_it_is(single: Path, open_page: OpenPage) -> None:
    shown = open_page(single, "overview")
    table = shown.dataframe[0].value
    assert list(table["state"]) == ["running, 33%"]
    assert table["missing"].isna().all(), "what is owed is not missing"
    assert "load the page again" in texts(shown)


def test_one_checkpoint_has_nothing_to_compare_with(single: Path, open_page: OpenPage) -> None:
    shown = open_page(single, "compare")
    assert not shown.exception
    assert "needs a second checkpoint" in texts(shown)
    assert "pawl eval" in texts(shown)
    shown = open_page(single, "decisions")
    assert not shown.exception
    assert "No decision has been made yet" in texts(shown)


def test_compare_writes_its_choice_into_the_url(small: Path, open_page: OpenPage) -> None:
    shown = open_page(small, "compare")
    assert in_url(shown, "candidate") == FAILED.name
    assert in_url(shown, "baseline") == OPEN.name
    shown.selectbox[1].select_index(0).run()
    assert in_url(shown, "baseline") == FIRST.name


def test_compare_says_what_changed(small: Path, open_page: OpenPage) -> None:
    shown = open_page(small, "compare", candidate=FAILED.name, baseline=FIRST.name)
    capabilities, tasks, items = (one.value for one in shown.dataframe)
    assert list(capabilities["name"]) == ["reasoning", "multilingual", "safety"]
    assert tasks.set_index("name").loc["toy_arithmetic", "missing"] == "0 / 2"
    assert items["change"].iloc[0] == "lost"
    assert "the same on both sides" in texts(shown)


def test_compare_filters_items(small: Path, open_page: OpenPage) -> None:
    shown = open_page(
        small, "compare", candidate=FAILED.name, task="toy_arithmetic", outcome="errored"
    )
    items = shown.dataframe[2].value
    assert set(items["task"]) == {"toy_arithmetic"}
    assert set(items["candidate_outcome"]) == {"errored"}


def test_filters_that_the_lake_does_not_know_filter_nothing(
    small: Path, open_page: OpenPage
) -> None:
    shown = open_page(small, "compare", task="gone", change="odd", outcome="none")
    assert not shown.exception
    assert len(shown.dataframe) == 3
    assert len(open_page(small, "overview", run="gone", suite="gone").dataframe[0].value) == 4


def test_an_item_has_both_answers_as_text(small: Path, open_page: OpenPage) -> None:
    hostile = fingerprint([ARITHMETIC.name, 0])
    shown = open_page(small, "compare", item=hostile, item_task=ARITHMETIC.name)
    assert not shown.exception
    answers = [str(one.value) for one in shown.code]
    assert answers.count(plain(HOSTILE)) == 2, "a response is shown character by character"
    assert "script" not in "".join(str(one.value) for one in shown.markdown)
    said = texts(shown)
    assert "finish reason stop" in said
    assert "toy_arithmetic: question 0?" in said


def test_a_lost_item_shows_what_each_side_said(small: Path, open_page: OpenPage) -> None:
    shown = open_page(small, "compare", item=LOST, item_task=ARITHMETIC.name)
    answers = [str(one.value) for one in shown.code]
    assert answers.index("The answer is 14.") < answers.index("The answer is 15.")


def test_compare_names_conditions_that_differ(unlike: Path, open_page: OpenPage) -> None:
    shown = open_page(unlike, "compare")
    assert not shown.exception
    conditions = shown.dataframe[0].value
    assert set(conditions["condition"]) == {"version", "dtype"}


def test_an_unknown_checkpoint_is_one_line(small: Path, open_page: OpenPage) -> None:
    for name in ("other@5", "../../etc", "**x**@1"):
        shown = open_page(small, "compare", candidate=name)
        assert not shown.exception
        assert len(shown.error) == 1


def test_a_decision_is_whole(small: Path, open_page: OpenPage) -> None:
    shown = open_page(small, "decisions")
    heads, rules = (one.value for one in shown.dataframe[:2])
    assert list(heads["verdict"]) == ["FAIL", "INCONCLUSIVE", "PASS"]
    assert rules["rule"].iloc[0] == "arithmetic-holds"
    assert rules["limit"].iloc[0] == "margin 10, tolerate 2 points"
    said = texts(shown)
    assert "must not be promoted" in said
    assert "3 ledger entries; the chain is whole" in said
    assert any("task=toy_arithmetic" in link for link in links(shown))


def test_an_inconclusive_decision_says_why(small: Path, open_page: OpenPage) -> None:
    heads = open_page(small, "decisions").dataframe[0].value
    assert heads["candidate"].iloc[1] == OPEN.name
    project = find_project(small)
    with open_lake(project.lake, read_only=True) as lake:
        (key,) = lake.rows("SELECT decision FROM lake.decisions WHERE verdict = 'INCONCLUSIVE'")[0]
    said = texts(open_page(small, "decisions", decision=key))
    assert "languages-hold (INCONCLUSIVE): there are fewer items than the rule asks for." in said
    assert PASSED.name in said


def test_a_run_has_its_scores_series_and_verdicts(small: Path, open_page: OpenPage) -> None:
    shown = open_page(small, "run")
    assert not shown.exception
    table = shown.dataframe[0].value.set_index("series")
    assert table.index[0] == "reward/mean"
    assert (table.loc["kl/reference", "last"], table.loc["kl/reference", "non_finite"]) == (
        "NaN",
        25,
    )
    assert table.loc["staleness/mean", "none"] == 1
    assert table.loc["entropy", "attempts"] == 2
    said = texts(shown)
    assert "model line tiny · owner someone · tags small, sound" in said.replace("\\", "")
    assert "Shaded" not in said
    assert "Crosses: values that are NaN, infinite or none" in said
    assert len(shown.multiselect[0].value) == 9


def test_chosen_series_stand_in_the_url(small: Path, open_page: OpenPage) -> None:
    shown = open_page(small, "run", series="entropy,gone", window="500-1000")
    assert shown.multiselect[0].value == ["entropy"]
    assert "Shaded: steps 500 to 1000" in texts(shown)
    assert "Crosses" not in texts(shown)
    shown.multiselect[0].set_value(["entropy", "my/**own**"]).run()
    assert in_url(shown, "series") == "entropy,my/%2A%2Aown%2A%2A"
    assert in_url(shown, "window") == "500-1000"
    assert not shown.exception
    shown.multiselect[0].set_value([]).run()
    assert "series" not in shown.query_params
    assert not shown.exception


def test_a_run_without_telemetry_says_how_to_import_it(single: Path, open_page: OpenPage) -> None:
    shown = open_page(single, "run")
    assert not shown.exception
    assert "pawl telemetry import PATH/TO/RUN --run grpo-tiny" in texts(shown)


def test_telemetry_alone_is_shown_before_anything_was_evaluated(
    tmp_path: Path, open_page: OpenPage
) -> None:
    with open_project(tmp_path) as (_, store):
        put_telemetry(store, "young")
    shown = open_page(tmp_path, "run")
    assert not shown.exception
    assert "No checkpoint of this run has a score" in texts(shown)
    assert len(shown.dataframe[0].value) == 13
    assert "No checkpoint has been evaluated yet" in texts(open_page(tmp_path, "overview"))


def test_a_failed_decision_says_what_moved_in_training_before_it(
    small: Path, open_page: OpenPage
) -> None:
    shown = open_page(small, "decisions")
    said = texts(shown)
    assert "What moved in training before it" in said
    assert "Steps 501 to 1000 of grpo-tiny against its own steps up to 500" in said
    assert "an association, not a cause" in said
    assert "kl/reference has no shift: 25 of its 50 values" in said
    assert "the first at step 760" in said
    moved = shown.dataframe[2].value.set_index("series")
    first = moved.iloc[:5]
    assert set(first.index) == {
        "entropy",
        "truncated_share",
        "response_length/mean",
        "reward/reasoning",
        "grad_norm",
    }
    assert first["onset"].between(620, 640).all()
    assert moved.loc["reward/reasoning", "goes"] == "worse"
    assert moved.loc["kl/reference", "shift"] == "not testable"
    assert "25 of 50 in the window" in moved.loc["kl/reference", "note"]
    assert moved.loc["constant", "note"].startswith("the past is constant")
    (link,) = [one for one in links(shown) if one.startswith("run?")]
    assert "window=500-1000" in link
    assert "run=grpo-tiny" in link
    assert "entropy" in link


def test_nothing_moved_where_nothing_failed(small: Path, open_page: OpenPage) -> None:
    heads = open_page(small, "decisions").dataframe[0].value
    passed = list(heads["verdict"]).index("PASS")
    with open_lake(find_project(small).lake, read_only=True) as lake:
        (key,) = lake.rows("SELECT decision FROM lake.decisions WHERE verdict = 'PASS'")[0]
    shown = open_page(small, "decisions", decision=key)
    assert heads["candidate"].iloc[passed] in texts(shown)
    assert "What moved" not in texts(shown)


def test_a_failed_decision_without_telemetry_says_that_nothing_is_known(
    tmp_path: Path, open_page: OpenPage
) -> None:
    build(tmp_path, [FIRST, FAILED])
    shown = open_page(tmp_path, "decisions")
    assert not shown.exception
    said = texts(shown).replace("\\", "")
    assert "There is no telemetry of grpo-tiny in the lake, so nothing is known of it" in said


def test_a_damaged_ledger_is_said(tmp_path: Path, small: Path, open_page: OpenPage) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(small, folder)
    with open_lake(find_project(folder).lake) as lake:
        lake.write(lambda tx: tx.change("UPDATE lake.ledger SET who = 'nobody' WHERE seq = 2"))
    shown = open_page(folder, "decisions")
    assert not shown.exception
    assert "The ledger is damaged: entry 2" in str(shown.error[0].value).replace("\\", "")


def test_no_reader_keeps_a_writer_waiting(small: Path, open_page: OpenPage) -> None:
    open_page(small, "overview")
    with open_lake(find_project(small).lake) as lake:
        before = lake.snapshot()
        lake.write(lambda tx: tx.change("UPDATE lake.guards SET writes = writes + 1"))
        assert lake.snapshot() == before + 1
