"""A person's way through the app in a real Chromium."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import in_url, no_errors, select_row, serve, take_picture
from playwright.sync_api import Page, expect
from small_lake import ALL, FAILED, OPEN


@pytest.fixture(scope="module")
def address(small: Path) -> Iterator[str]:
    """Return where the app runs on the small project."""
    with serve(small) as served:
        yield served


def test_from_the_overview_to_an_item_and_the_decision(page: Page, address: str) -> None:
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
