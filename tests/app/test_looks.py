from __future__ import annotations

import math

import pytest

from app.looks import percent, points, range_text, score_text, time_text, verdict_style


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (math.nan, "–"), (0.0, "0.0 %"), (0.12345, "12.3 %"), (1.0, "100.0 %")],
)
def test_percent(value: float | None, text: str) -> None:
    assert percent(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (math.nan, "–"), (-0.0004, "0.0"), (0.0, "0.0"), (-0.1, "−10.0"), (0.1, "+10.0")],
)
def test_points(value: float | None, text: str) -> None:
    assert points(value) == text


def test_a_score_that_is_not_known_is_no_number() -> None:
    assert score_text(math.nan, math.nan, math.nan) == "–"
    assert score_text(0.5, 0.25, 0.75) == "50.0 (25.0–75.0)"


def test_ranges_are_in_points_or_percent() -> None:
    assert range_text(-0.05, 0.01, signed=True) == "−5.0 to +1.0"
    assert range_text(0.05, 0.1, signed=False) == "5.0 to 10.0"


def test_times_are_to_the_minute() -> None:
    assert time_text("2026-11-30T21:47:29.534123+00:00") == "2026-11-30 21:47 UTC"


def test_only_verdicts_have_a_colour() -> None:
    styles = {verdict_style(one) for one in ("PASS", "FAIL", "INCONCLUSIVE", "none")}
    assert len(styles) == 4
    assert "background" not in verdict_style("none")
