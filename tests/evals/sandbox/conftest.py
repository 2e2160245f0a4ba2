"""The real sandbox, behind each kind of wall that can be built on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sandbox_walls import WALLS

from evals.sandbox import program
from evals.sandbox.bubblewrap import Wall


@pytest.fixture(params=WALLS, ids=lambda wall: "root" if wall.as_root else "user")
def wall(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Wall:
    """Run the test's programs behind one kind of wall."""
    chosen: Wall = request.param
    monkeypatch.setattr(program, "_choose_wall", lambda: chosen)
    return chosen


@pytest.fixture
def fresh_choice() -> Iterator[None]:
    """Forget which wall works, before and after."""
    program._choose_wall.cache_clear()
    yield
    program._choose_wall.cache_clear()
