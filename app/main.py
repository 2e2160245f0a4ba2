"""The app's entry: pages, and what each of them reads before it is drawn.

    streamlit run app/main.py -- --project FOLDER

``pawl app`` runs this on loopback; options that hold for every page are in .streamlit/config.toml.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import streamlit as st

from app.choices import (
    common_suites,
    known,
    name_before,
    names_of,
    pinned_sides,
    suites_of,
    with_sides,
)
from app.frames import CHANGES, capability_scores, chosen_items, overview_table, task_scores
from app.links import Pages
from app.loading import (
    Catalog,
    Reader,
    find_pair,
    find_run,
    load_catalog,
    load_comparison,
    load_counts,
    load_decision,
    load_item,
    load_ledger,
    load_lines,
    load_moved,
    load_progress,
    load_questions,
    load_summaries,
    load_telemetry_names,
    open_reader,
)
from app.looks import PAGE_STYLE
from app.query import read_query, write_query
from app.series import (
    checkpoint_marks,
    chosen_series,
    in_order,
    read_window,
    split_names,
    step_range,
)
from app.views import compare, decision, item, moved, notices, overview
from app.views import run as run_view
from evals.errors import PawlError
from evals.scoring import Outcome
from storage.project import Project, find_project

LOGO = Path(__file__).with_name("logo.svg")
Show = Callable[[Project, Reader, Catalog, Pages], None]


def run(folder: Path | None, first: str = "overview") -> None:
    """Show the app on a project.

    Args:
        folder: Of ``pawl.yaml``; None: the nearest at or above the working folder.
        first: The page that the bare address opens.
    """

    def show_overview() -> None:
        _show(folder, overview_page, pages)

    def show_compare() -> None:
        _show(folder, compare_page, pages)

    def show_decisions() -> None:
        _show(folder, decisions_page, pages)

    def show_run() -> None:
        _show(folder, run_page, pages)

    pages = Pages(
        overview=st.Page(
            show_overview, title="Overview", url_path="overview", default=first == "overview"
        ),
        compare=st.Page(
            show_compare, title="Compare", url_path="compare", default=first == "compare"
        ),
        decisions=st.Page(
            show_decisions, title="Decisions", url_path="decisions", default=first == "decisions"
        ),
        run=st.Page(show_run, title="Run", url_path="run", default=first == "run"),
    )
    listed = [pages.overview, pages.run, pages.compare, pages.decisions]
    page = st.navigation(listed, position="top")
    st.set_page_config(page_title=f"{page.title} · Pawl", page_icon=str(LOGO), layout="wide")
    st.logo(str(LOGO), size="large")
    st.html(PAGE_STYLE)
    page.run()


def overview_page(project: Project, reader: Reader, catalog: Catalog, pages: Pages) -> None:
    """Show checkpoints by capability, and the row that is open."""
    st.title("Checkpoints", anchor=False)
    suites = suites_of(stored.evaluation for stored in reversed(catalog.evaluations))
    runs = sorted({one.ref.run for one in catalog.checkpoints})
    query = read_query()
    query = replace(query, run=known(query.run, runs))
    suite = known(query.suite, suites) or suites[0]
    overview.show_filters(runs, suites, query)
    checkpoints = [one for one in catalog.checkpoints if query.run in (None, one.ref.run)]
    evaluations = [
        stored
        for stored in catalog.evaluations
        if stored.evaluation.suite == suite
        and query.run in (None, stored.evaluation.checkpoint.run)
    ]
    counts = load_counts(reader, evaluations)
    progress = load_progress(reader, evaluations)
    scores = capability_scores(evaluations, counts)
    table = overview_table(checkpoints, evaluations, catalog.decisions, counts, progress)
    overview.show_table(table, scores, query)
    opened = table[table["evaluation"] == query.evaluation]
    for stored in evaluations:
        if stored.evaluation.evaluation_id == query.evaluation:
            before = name_before(stored.evaluation, [one.evaluation for one in evaluations])
            overview.show_row(opened.iloc[0], task_scores(stored, counts), before, pages, suite)
    overview.show_chart(scores)


def compare_page(project: Project, reader: Reader, catalog: Catalog, pages: Pages) -> None:
    """Show what changed between two checkpoints, and the item that is open."""
    st.title("Compare", anchor=False)
    evaluations = [stored.evaluation for stored in catalog.evaluations]
    query = with_sides(read_query(), evaluations)
    names = names_of(evaluations)
    if query.candidate is None or query.baseline is None:
        notices.show_need(
            f"Only {names[0]} has been evaluated; a comparison needs a second checkpoint.",
            project.folder,
            ["pawl eval PATH/TO/ANOTHER/CHECKPOINT"],
        )
        return
    sides = pinned_sides(query, evaluations)
    suites = common_suites(query.candidate, query.baseline, evaluations)
    write_query({"candidate": query.candidate, "baseline": query.baseline, "suite": query.suite})
    compare.show_choices(names, suites if sides is None else [sides.candidate.suite], query)
    if sides is None:
        sides = find_pair(reader, query.candidate, query.baseline, query.suite)
    comparison = load_comparison(reader, sides)
    query = replace(
        query,
        change=known(query.change, CHANGES),
        task=known(query.task, comparison.changed["task"]),
        outcome=known(query.outcome, Outcome),
    )
    compare.show_conditions(comparison)
    compare.show_tables(comparison)
    listed = chosen_items(comparison.changed, query.change, query.task, query.outcome)
    compare.show_items(comparison.changed, listed, load_questions(reader, sides, listed), query)
    if query.item is not None and query.item_task is not None:
        item.show_item(load_item(reader, sides, query.item_task, query.item), sides)


def decisions_page(project: Project, reader: Reader, catalog: Catalog, pages: Pages) -> None:
    """Show the ledger's decisions, and the one that is open."""
    st.title("Decisions", anchor=False)
    ledger = load_ledger(reader)
    decision.show_ledger(ledger)
    if not catalog.decisions:
        names = names_of(stored.evaluation for stored in catalog.evaluations)
        notices.show_need(
            "No decision has been made yet.",
            project.folder,
            [f"pawl gate {names[-1]} --against RUN@STEP --policy smoke"],
        )
        return
    opened = read_query().decision or catalog.decisions[-1].decision
    write_query({"decision": opened})
    decision.show_list(catalog.decisions, read_query())
    stored = load_decision(reader, opened)
    decision.show_verdict(stored)
    moved.show_moved(load_moved(reader, catalog, stored), project.folder, pages)
    decision.show_evidence(stored, ledger, pages)


def run_page(project: Project, reader: Reader, catalog: Catalog, pages: Pages) -> None:
    """Show a run over its steps: scores, series and the verdicts on its checkpoints."""
    st.title("Run", anchor=False)
    logged = load_telemetry_names(reader)
    evaluated = [stored.evaluation for stored in catalog.evaluations]
    runs = sorted({*logged, *(one.ref.run for one in catalog.checkpoints)})
    if not runs:
        notices.show_welcome(project.folder)
        return
    query = read_query()
    latest = evaluated[-1].checkpoint.run if evaluated else logged[0]
    name = known(query.run, runs) or latest
    suites = suites_of(one for one in reversed(evaluated) if one.checkpoint.run == name)
    suite = known(query.suite, suites) or next(iter(suites), None)
    summaries = load_summaries(reader, name)
    names = in_order(one.series for one in summaries)
    series = chosen_series(names, split_names(query.series))
    run_view.show_choices(runs, suites, names, replace(query, run=name, suite=suite), series)
    run_view.show_about(find_run(reader, name))
    evaluations = [
        stored
        for stored in catalog.evaluations
        if stored.evaluation.checkpoint.run == name and stored.evaluation.suite == suite
    ]
    scores = capability_scores(evaluations, load_counts(reader, evaluations))
    marks = checkpoint_marks(name, catalog.checkpoints, catalog.decisions)
    run_view.show_panels(
        scores,
        load_lines(reader, name, series),
        marks,
        series,
        step_range(marks, summaries),
        read_window(name, query.window),
    )
    run_view.show_series(summaries, name, project.folder)


def _show(folder: Path | None, page: Show, pages: Pages) -> None:
    """Show a page on the lake as it is now; what can't be done is one line on it."""
    try:
        project = find_project(folder)
        if not project.has_lake:
            notices.show_welcome(project.folder)
            return
        reader = open_reader(project)
        catalog = load_catalog(reader)
        if not catalog.evaluations and page is not run_page:
            notices.show_welcome(project.folder)
            return
        page(project, reader, catalog, pages)
    except PawlError as error:
        notices.show_problem(error)


def _parse(arguments: Sequence[str]) -> Path | None:
    parser = argparse.ArgumentParser(prog="streamlit run app/main.py --")
    parser.add_argument("--project", type=Path, help="folder of pawl.yaml")
    folder: Path | None = parser.parse_args(arguments).project
    return folder


if __name__ == "__main__":
    run(_parse(sys.argv[1:]))
