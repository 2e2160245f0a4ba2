"""The app as it is served, and a page of it in a real Chromium.

PAWL_SCREENSHOTS=docs/pictures pytest tests/app -k "browser or demo"     takes docs' pictures
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from pipelines.services.parts import LOOPBACK, app_command, free_port
from storage.project import find_project

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


@contextmanager
def serve(project: Path) -> Iterator[str]:
    """Yield where the app runs on a project, started as a user starts it."""
    port = free_port()
    address = f"http://{LOOPBACK}:{port}"
    with subprocess.Popen(app_command(find_project(project), port), cwd=project) as server:
        try:
            wait_for(f"{address}/_stcore/health")
            yield address
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


@contextmanager
def new_page() -> Iterator[Page]:
    """Yield a page of a new browser; it may reach nothing but this machine."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no browser: there is no `chromium` on this machine (Debian: apt-get install)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(SLOW_MS)
        expect.set_options(timeout=SLOW_MS)
        outside: list[str] = []
        page.on("request", lambda request: outside.append(request.url))
        yield page
        browser.close()
    allowed = ("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:")
    assert [url for url in outside if not url.startswith(allowed)] == []


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
