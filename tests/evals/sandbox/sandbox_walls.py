"""The kinds of wall that can be built on this machine, tried once."""

from __future__ import annotations

import os

import pytest

from evals.errors import SandboxUnavailable
from evals.sandbox import Limits, program
from evals.sandbox.bubblewrap import Wall, find_bwrap


def _find_walls() -> tuple[list[Wall], str]:
    """Return the walls that stand here, and why the last that does not doesn't."""
    walls, reason = [], ""
    for as_root in (True, False) if os.geteuid() == 0 else (False,):
        try:
            wall = Wall(bwrap=find_bwrap(), as_root=as_root)
            program._run_behind(wall, "pass", Limits())
        except SandboxUnavailable as error:
            reason = str(error)
        else:
            walls.append(wall)
    return walls, reason


WALLS, REASON = _find_walls()
needs_sandbox = pytest.mark.skipif(not WALLS, reason=f"no sandbox here: {REASON}")
