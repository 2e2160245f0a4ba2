"""The ``pawl`` command as tests run it, and where real data would be."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
MODELS = ROOT / ".pawl" / "models"
SHARED = ROOT.parent / "shared"
MIRROR = SHARED / "data" / "mirror.json"

RunPawl = Callable[..., "subprocess.CompletedProcess[str]"]


def read_json(done: subprocess.CompletedProcess[str]) -> Any:
    """The one JSON document that a command printed."""
    assert done.stdout, done.stderr
    return json.loads(done.stdout)
