"""What a bench found: a ratio against the alternative, with the figures behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchResult:
    """One bench's result."""

    name: str
    unit: str
    """Of both sides."""
    ours: float
    """Median over the runs."""
    against: float
    """The same of the alternative."""
    goal: float
    """The ratio that was set out for."""
    holds: bool
    """Whether both sides gave the same answers."""
    versions: Mapping[str, str]
    figures: Mapping[str, object]
    """What is behind it: JSON types only."""

    @property
    def ratio(self) -> float:
        """Return how many times the alternative's figure is ours."""
        return self.ours / self.against

    @property
    def met(self) -> bool:
        """Return whether the goal was met, with the same answers."""
        return self.holds and self.ratio >= self.goal

    def to_json(self) -> dict[str, object]:
        """Return it as JSON types."""
        return {
            "name": self.name,
            "unit": self.unit,
            "ours": self.ours,
            "against": self.against,
            "ratio": self.ratio,
            "goal": self.goal,
            "holds": self.holds,
            "met": self.met,
            "versions": dict(self.versions),
            "figures": dict(self.figures),
        }


def versions_of(*packages: str) -> dict[str, str]:
    """Return the versions of those packages that are installed."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
