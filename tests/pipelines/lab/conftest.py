"""What the lab's tests need of the machine."""

from __future__ import annotations

import pytest

from evals.errors import SandboxUnavailable


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Skips where written functions can't be run."""
    from evals.sandbox import check_sandbox

    try:
        check_sandbox()
    except SandboxUnavailable as error:
        pytest.skip(f"no isolation here: {error}")
