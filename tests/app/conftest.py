"""Small projects, each built once, and the app's pages on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page
from small_lake import ALL, ENGINE, FIRST, ITEMS, Made, build, open_project, put_telemetry
from streamlit.testing.v1 import AppTest

from evals.evaluation import EvaluationState

OpenPage = Callable[..., AppTest]


@pytest.fixture
def page() -> Iterator[Page]:
    """Return a page of a new browser."""
    from browsing import new_page

    with new_page() as page:
        yield page


def show_page(folder: str, first: str) -> None:
    """Run the app's entry; AppTest takes this function's source, so it imports for itself."""
    from pathlib import Path

    from app.main import run

    run(Path(folder), first)


@pytest.fixture
def open_page() -> OpenPage:
    """Return a function that runs a page of a project, with parameters in its URL."""

    def run(folder: Path, page: str, **query: str) -> AppTest:
        shown = AppTest.from_function(show_page, args=(str(folder), page), default_timeout=60)
        for name, value in query.items():
            shown.query_params[name] = value
        return shown.run()

    return run


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project with a checkpoint of each verdict, and the telemetry of their run."""
    folder = tmp_path_factory.mktemp("small")
    build(folder, ALL)
    with open_project(folder) as (_, store):
        put_telemetry(store, FIRST.run)
    return folder


@pytest.fixture(scope="session")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project with one checkpoint, whose evaluation is still running."""
    folder = tmp_path_factory.mktemp("single")
    build(folder, [Made(step=7, skill=0.8, answered=ITEMS // 3, state=EvaluationState.RUNNING)])
    return folder


@pytest.fixture(scope="session")
def unlike(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project whose two checkpoints were evaluated under different engines."""
    folder = tmp_path_factory.mktemp("unlike")
    other = replace(ENGINE, version="2", dtype="bfloat16")
    build(folder, [FIRST, Made(step=200, skill=0.78, engine=other)])
    return folder


@pytest.fixture(scope="session")
def newer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project whose lake a later Pawl has written."""
    folder = tmp_path_factory.mktemp("newer")
    with open_project(folder) as (_, store):
        store.lake.write(
            lambda tx: tx.change("INSERT INTO lake.migrations VALUES (99, 'later', '2030-01-01')")
        )
    return folder


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which nothing was ever done."""
    return tmp_path_factory.mktemp("empty")
