"""A person's way through the app in a real Chromium.

PAWL_SCREENSHOTS=docs/pictures pytest tests/app/test_browser.py     takes docs' pictures
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import pytest
from playwright.sync_api import Page, expect, sync_playwright
from small_lake import ALL, FAILED, OPEN

REPOSITORY = Path(__file__).parents[2]
SCREENSHOTS = "PAWL_SCREENSHOTS"
SLOW_MS = 60_000
ROW_PX = 33
"""Height of a table's row and of its header: the cells are drawn on a canvas."""

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def address(small: Path) -> Iterator[str]:
    """Return where the app runs on the small project, started as a user starts it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", str(REPOSITORY / "app" / "main.py")]
    command += ["--server.address", "127.0.0.1", "--server.port", str(port)]
    command += ["--server.headless", "true", "--server.fileWatcherType", "none"]
    with subprocess.Popen([*command, "--", "--project", str(small)], cwd=small) as server:
        try:
            wait_for(f"http://127.0.0.1:{port}/_stcore/health")
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


def wait_for(url: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


@pytest.fixture
def page() -> Iterator[Page]:
    """Return a page of a new browser; it may reach nothing but this machine."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no browser: there is no `chromium` on this machine (Debian: apt-get install)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(SLOW_MS)
        outside: list[str] = []
        page.on("request", lambda request: outside.append(request.url))
        yield page
        browser.close()
    allowed = ("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:")
    assert [url for url in outside if not url.startswith(allowed)] == []


def test_from_the_overview_to_an_item_and_the_decision(page: Page, address: str) -> None:
    expect.set_options(timeout=SLOW_MS)
    page.goto(address)
    expect(page.get_by_role("heading", name="Checkpoints")).to_be_visible()
    expect(page.locator("canvas").first).to_be_visible()
    take_picture(page, "overview")
    select_row(page, 0, len(ALL) - 1)
    expect(page.get_by_role("heading", name=FAILED.name)).to_be_visible()
    take_picture(page, "checkpoint")

    page.get_by_role("link", name=f"Compare with {OPEN.name}").click()
    expect(page.get_by_role("heading", name="Items that changed")).to_be_visible()
    expect(page).to_have_url(re.compile("candidate="))
    assert in_url(page, "candidate") == FAILED.name
    assert in_url(page, "baseline") == OPEN.name
    select_row(page, 2, 0)
    expect(page.get_by_text("Baseline grpo-tiny@500")).to_be_visible()
    answers = page.locator("code").filter(has_text="The answer is")
    expect(answers).to_have_count(2)
    expect(answers.first).not_to_have_text(answers.last.inner_text())
    take_picture(page, "compare")

    again = page.url
    page.goto("about:blank")
    page.goto(again)
    expect(page.get_by_text("Baseline grpo-tiny@500")).to_be_visible()

    page.get_by_role("link", name="Decisions").click()
    expect(page.get_by_text("must not be promoted")).to_be_visible()
    expect(page.get_by_text("the chain is whole")).to_be_visible()
    expect(page.get_by_role("heading", name="Record")).to_be_visible()
    take_picture(page, "decision")
    page.get_by_role("link", name="Compare on toy_arithmetic").click()
    expect(page).to_have_url(re.compile("task=toy_arithmetic"))
    expect(page.get_by_role("heading", name="Compare", exact=True)).to_be_visible()
    no_errors(page)


def test_from_a_blocked_checkpoint_to_the_series_that_moved(page: Page, address: str) -> None:
    expect.set_options(timeout=SLOW_MS)
    page.goto(f"{address}/decisions")
    expect(page.get_by_role("heading", name="What moved in training before it")).to_be_visible()
    expect(page.get_by_text("an association, not a cause")).to_be_visible()
    page.get_by_role("link", name=f"See these series over {FAILED.run}").click()
    expect(page.get_by_role("heading", name="Run", exact=True)).to_be_visible()
    expect(page).to_have_url(re.compile("window="))
    assert in_url(page, "run") == FAILED.run
    assert in_url(page, "window") == f"{OPEN.step}-{FAILED.step}"
    assert "entropy" in in_url(page, "series")
    expect(page.get_by_text(f"Shaded: steps {OPEN.step} to {FAILED.step}")).to_be_visible()
    expect(page.get_by_test_id("stVegaLiteChart").locator("canvas, svg").first).to_be_visible()
    chosen = page.get_by_test_id("stMultiSelect")
    expect(chosen.get_by_text("entropy", exact=True)).to_be_visible()
    expect(page.get_by_role("heading", name="Series")).to_be_visible()
    take_picture(page, "run")

    again = page.url
    page.goto("about:blank")
    page.goto(again)
    expect(page.get_by_text(f"Shaded: steps {OPEN.step} to {FAILED.step}")).to_be_visible()
    no_errors(page)


def select_row(page: Page, table: int, row: int) -> None:
    """Tick a row of one of the page's tables."""
    frame = page.get_by_test_id("stDataFrame").nth(table)
    expect(frame.locator("canvas").first).to_be_visible()
    frame.scroll_into_view_if_needed()
    settle(page)
    frame.click(position={"x": 16, "y": ROW_PX * (row + 1) + ROW_PX / 2})


def take_picture(page: Page, name: str) -> None:
    """Hold that the page has no error; keep a picture of all of it where a folder is named."""
    no_errors(page)
    if folder := os.environ.get(SCREENSHOTS):
        Path(folder).mkdir(parents=True, exist_ok=True)
        settle(page)
        height = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
        page.set_viewport_size({"width": 1280, "height": max(720, int(height))})
        page.mouse.move(0, 0)
        settle(page)
        page.screenshot(path=Path(folder) / f"{name}.png")
        page.set_viewport_size({"width": 1280, "height": 900})


def settle(page: Page) -> None:
    """Wait until the page has run and is drawn."""
    expect(page.get_by_test_id("stStatusWidget")).to_have_count(0)
    expect(page.locator("[data-stale=true]")).to_have_count(0)
    page.wait_for_timeout(1500)


def no_errors(page: Page) -> None:
    expect(page.get_by_test_id("stException")).to_have_count(0)
    expect(page.get_by_test_id("stAlert")).to_have_count(0)
    assert "Traceback" not in page.inner_text("body")


def in_url(page: Page, name: str) -> str:
    return parse_qs(urlparse(page.url).query)[name][0]
