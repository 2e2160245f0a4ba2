"""`pawl demo`: what it came to, and a person's way through it in a real Chromium."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import in_url, no_errors, select_row, serve, settle, take_picture
from command_line import RunPawl
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]

PROMOTED, BLOCKED = "lab@60", "lab@90"
ROW_OF_BLOCKED = 3


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, run_pawl: RunPawl) -> Path:
    """Return the project of a demo that has ended."""
    above = tmp_path_factory.mktemp("demo")
    done = run_pawl("demo", "project", "--no-app", cwd=above, timeout=1800)
    assert done.returncode == 0, done.stderr
    return above / "project"


@pytest.fixture(scope="module")
def address(demo: Path) -> Iterator[str]:
    with serve(demo) as served:
        yield served


def read(run_pawl: RunPawl, demo: Path, *arguments: str) -> Any:
    done = run_pawl(*arguments, "--json", cwd=demo)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_sound_checkpoints_are_promoted_and_the_faulty_ones_blocked(
    demo: Path, run_pawl: RunPawl
) -> None:
    entries = read(run_pawl, demo, "ledger", "show")["entries"]
    told = [(e["kind"], e["candidate"], e["verdict"]) for e in entries if e["candidate"]]
    assert told == [
        ("decision", "lab@0", "INCONCLUSIVE"),
        ("promotion", "lab@0", None),
        ("decision", "lab@30", "PASS"),
        ("promotion", "lab@30", None),
        ("decision", "lab@60", "PASS"),
        ("promotion", "lab@60", None),
        ("decision", "lab@90", "FAIL"),
        ("decision", "lab@120", "FAIL"),
    ]
    (channel,) = read(run_pawl, demo, "status")["channels"]
    assert (channel["channel"], channel["holder"]) == ("production", PROMOTED)
    assert run_pawl("ledger", "verify", cwd=demo).returncode == 0


def test_from_the_overview_to_the_blocked_checkpoint_and_what_moved(
    page: Page, address: str
) -> None:
    page.goto(address)
    expect(page.get_by_role("heading", name="Checkpoints")).to_be_visible()
    take_picture(page, "demo_overview")
    select_row(page, 0, ROW_OF_BLOCKED)
    expect(page.get_by_role("heading", name=BLOCKED)).to_be_visible()
    page.get_by_role("link", name="Decision: FAIL").click()
    expect(page.get_by_text("must not be promoted")).to_be_visible()
    expect(page.get_by_text("safety fell by")).to_be_visible()
    expect(page.get_by_role("heading", name="What moved in training before it")).to_be_visible()
    take_picture(page, "demo_decision")
    decision = page.url

    page.get_by_role("link", name="Compare on safety").first.click()
    expect(page.get_by_role("heading", name="Items that changed")).to_be_visible()
    seen = set()
    for row in range(3):
        select_row(page, 2, row)
        expect(page.get_by_text(f"Baseline {PROMOTED}")).to_be_visible()
        settle(page)
        assert in_url(page, "item_task") == "lab_refusals"
        seen.add(in_url(page, "item"))
        assert different_answers(page)
    assert len(seen) == 3
    take_picture(page, "demo_items")

    page.goto(decision)
    page.get_by_role("link", name="See these series over lab").click()
    expect(page.get_by_role("heading", name="Run", exact=True)).to_be_visible()
    expect(page).to_have_url(re.compile("window="))
    expect(page.get_by_text("Shaded: steps 60 to 90")).to_be_visible()
    expect(page.get_by_test_id("stVegaLiteChart").locator("canvas, svg").first).to_be_visible()
    assert in_url(page, "series")
    take_picture(page, "demo_run")
    no_errors(page)


def different_answers(page: Page) -> bool:
    """Return whether the sides' answers, each with what is extracted from it, differ."""
    texts = page.locator("code").all_inner_texts()
    return texts[-4:-2] != texts[-2:]
