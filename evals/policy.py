"""A policy: the rules that decide on a candidate, written as YAML before it is evaluated.

Each rule is about one task or one capability, and is one of three kinds:

    margin   a drop against the baseline this large must not get through (with ``tolerate``: a
             drop up to this must not be blocked)
    ceiling  the candidate's mean score, as the task reports it, must lie below this; for tasks
             where a lower score is better, such as the share of attacks that succeed
    floor    the mean score must lie above this; for tasks where a higher score is better

Ceilings and floors need no baseline.
"""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from evals.compare import CONDITIONS, Reading, Readings
from evals.errors import InputError
from evals.identity import canonical_json, fingerprint
from evals.stats.verdict import Role, Tier
from evals.task import Capability, TaskSpec
from evals.yaml_file import load_yaml

ALPHA = 0.05
"""One-sided level where a policy names none; blocking shares it between the tiers there are."""


class PolicyKind(StrEnum):
    """What a policy may conclude."""

    PROMOTION = "promotion"
    """PASS promotes."""
    SCREENING = "screening"
    """It can FAIL or stay open, and never promotes."""


class OnInconclusive(StrEnum):
    """What follows from an open verdict; no part of the statistics."""

    BLOCK = "block"
    ASK = "ask"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One condition on a candidate."""

    name: str
    task: str | None
    """The task it is about, or None where it is about a capability."""
    capability: Capability | None
    """All tasks of it, their items pooled with the same weight."""
    tier: Tier
    role: Role
    margin: float | None
    """A drop this large must not pass, in (0, 1); None for ceilings and floors."""
    tolerate: float
    """A drop up to this must not be blocked, from 0 to the margin."""
    ceiling: float | None
    """The mean score must lie below this, in (0, 1)."""
    floor: float | None
    """The mean score must lie above this, in (0, 1)."""
    min_items: int
    """With fewer items the rule is INCONCLUSIVE."""
    max_missing: float
    """With a larger share of items without a score the rule is INCONCLUSIVE."""
    max_loss: float
    """The most that one item can lose under the metric, in (0, 1]."""

    @property
    def subject(self) -> str:
        """Return the name of the task or capability it is about."""
        return self.task or str(self.capability)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeRule:
    """How one kind of unwhole response is read, and how many there may be."""

    read_as: Reading
    max_share: float
    """Over this share of either side's responses a rule is INCONCLUSIVE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """All that decides on a candidate, complete: no default is left to be filled in later."""

    name: str
    version: str
    kind: PolicyKind
    rules: tuple[Rule, ...]
    alpha_pass_safety: float
    alpha_pass_capability: float
    alpha_fail_safety: float
    alpha_fail_capability: float
    allow_differences: tuple[str, ...]
    """Conditions besides the weights that may differ, of ``compare.CONDITIONS``."""
    on_inconclusive: OnInconclusive
    truncated: OutcomeRule
    unparsed: OutcomeRule

    @property
    def digest(self) -> str:
        """Return what a channel names the policy by, 64 hex digits."""
        return fingerprint(asdict(self))

    def to_json(self) -> dict[str, Any]:
        """Return the policy as JSON types; the digest is this document's fingerprint."""
        content: dict[str, Any] = json.loads(canonical_json(asdict(self)))
        return content

    @property
    def label(self) -> str:
        """Return ``name@version``."""
        return f"{self.name}@{self.version}"

    @property
    def alpha_pass(self) -> dict[Tier, float]:
        """Return the one-sided level of PASS by tier."""
        return {Tier.SAFETY: self.alpha_pass_safety, Tier.CAPABILITY: self.alpha_pass_capability}

    @property
    def alpha_fail(self) -> dict[Tier, float]:
        """Return the level of blocking by tier, shared by the tier's rules."""
        return {Tier.SAFETY: self.alpha_fail_safety, Tier.CAPABILITY: self.alpha_fail_capability}

    @property
    def readings(self) -> Readings:
        """Return how truncated and unparsed responses count when scores are paired."""
        return Readings(truncated=self.truncated.read_as, unparsed=self.unparsed.read_as)


def load_policy(path: Path) -> Policy:
    """Return the policy in a YAML file.

    Raises:
        InputError: The file can't be read or a field is wrong; names line, field and remedy.
    """
    return _policy(load_yaml(path, PolicyFile))


def find_policy(name_or_path: str) -> Policy:
    """Return a shipped policy by name, or the one in the file at a path.

    Raises:
        InputError: There is neither.
    """
    folder = resources.files("evals") / "policies"
    shipped = sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".yaml"))
    if name_or_path in shipped:
        with resources.as_file(folder / f"{name_or_path}.yaml") as path:
            return load_policy(path)
    if not Path(name_or_path).exists():
        raise InputError(
            f"there is no policy `{name_or_path}`",
            "policy",
            f"give the path of a YAML file or one of: {', '.join(shipped)}",
        )
    return load_policy(Path(name_or_path))


def check_policy(policy: Policy, tasks: Sequence[TaskSpec]) -> None:
    """Hold that a policy can decide on a suite with these tasks.

    Raises:
        InputError: No rule decides, a rule is about nothing in the suite, or a ceiling, floor or
            ``max_loss`` does not fit the metric; all such problems at once.
    """
    problems = [problem for rule in policy.rules for problem in _problems(rule, tasks)]
    if all(rule.role is Role.REPORT for rule in policy.rules):
        problems.append("no rule decides, all are `report` — make one a must, guard or veto")
    if problems:
        raise InputError(
            "\n  ".join(["the policy does not fit the suite:", *problems]), policy.label
        )


def _problems(rule: Rule, tasks: Sequence[TaskSpec]) -> list[str]:
    """Return what keeps a rule from being decided on these tasks, one line each."""
    about = [task for task in tasks if task.name == rule.task or task.capability == rule.capability]
    if not about:
        names = sorted({t.name for t in tasks} if rule.task else {t.capability for t in tasks})
        close = difflib.get_close_matches(rule.subject, names, n=1)
        hint = f"did you mean `{close[0]}`? " if close else ""
        return [
            f"rule {rule.name}: the suite has no {'task' if rule.task else 'capability'} "
            f"`{rule.subject}` — {hint}There are: {', '.join(names) or 'none'}"
        ]
    found = []
    for task in about:
        if rule.ceiling is not None and task.higher_is_better:
            found.append(
                f"rule {rule.name}: `ceiling`, but in {task.name} a higher score is better"
            )
        if rule.floor is not None and not task.higher_is_better:
            found.append(f"rule {rule.name}: `floor`, but in {task.name} a lower score is better")
        if rule.max_loss < 1 and task.binary:
            found.append(f"rule {rule.name}: `max_loss`, but an item of {task.name} is 0 or 1")
    return [f"{problem} — use the other, or mend the task" for problem in found]


Share = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]
Inside = Annotated[float, Field(strict=True, gt=0, lt=1, allow_inf_nan=False)]
"""Strictly between 0 and 1."""
Level = Annotated[float, Field(strict=True, gt=0, le=0.5, allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1, max_length=200)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TierLevels(_Strict):
    """A level for each tier."""

    safety: Level | None = None
    capability: Level | None = None


def _both_tiers(value: object) -> object:
    """Let one number stand for both tiers."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"safety": float(value), "capability": float(value)}
    return value


Levels = Annotated[TierLevels, BeforeValidator(_both_tiers)]


class OutcomeEntry(_Strict):
    """``truncated:`` and ``unparsed:`` of a policy file."""

    read_as: Literal["task_score", "worst"] = "task_score"
    max_share: Share = 1.0


class RuleEntry(_Strict):
    """One entry under ``rules:`` of a policy file."""

    name: Name
    task: Name | None = None
    capability: Capability | None = None
    tier: Tier | None = None
    role: Role
    margin: Inside | None = None
    tolerate: Share = 0.0
    ceiling: Inside | None = None
    floor: Inside | None = None
    min_items: Annotated[int, Field(strict=True, ge=1)] = 1
    max_missing: Share | None = None
    max_loss: Annotated[float, Field(strict=True, gt=0, le=1, allow_inf_nan=False)] = 1.0

    @model_validator(mode="after")
    def _is_about_one_thing(self) -> Self:
        if (self.task is None) == (self.capability is None):
            raise ValueError(
                f"rule `{self.name}` has to be about one thing — give either `task` or `capability`"
            )
        kinds = [self.margin, self.ceiling, self.floor]
        if sum(kind is not None for kind in kinds) != 1:
            raise ValueError(
                f"rule `{self.name}` has to say one thing — "
                "give one of `margin`, `ceiling` and `floor`"
            )
        if self.margin is None and (self.tolerate or self.max_loss < 1):
            raise ValueError(
                f"rule `{self.name}`: `tolerate` and `max_loss` belong to a `margin` — "
                "leave them out"
            )
        if self.margin is not None and self.tolerate > self.margin:
            raise ValueError(
                f"rule `{self.name}`: `tolerate` {self.tolerate:g} is above the margin "
                f"{self.margin:g} — it lies between 0 and the margin"
            )
        if self.margin is not None and self.margin >= self.max_loss:
            raise ValueError(
                f"rule `{self.name}`: the margin {self.margin:g} is not below `max_loss` "
                f"{self.max_loss:g} — no item could lose that much"
            )
        return self


class PolicyFile(_Strict):
    """A policy file."""

    name: Name
    version: Name
    kind: PolicyKind = PolicyKind.PROMOTION
    alpha_pass: Levels = TierLevels()
    alpha_fail: Levels = TierLevels()
    max_missing: Share = 0.02
    allow_differences: list[Literal[CONDITIONS]] = []  # type: ignore[valid-type]
    on_inconclusive: OnInconclusive = OnInconclusive.BLOCK
    truncated: OutcomeEntry = OutcomeEntry()
    unparsed: OutcomeEntry = OutcomeEntry()
    rules: Annotated[list[RuleEntry], Field(min_length=1)]

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        counts = Counter(rule.name for rule in self.rules)
        twice = [name for name, count in counts.items() if count > 1]
        if twice:
            raise ValueError(f"two rules are named `{twice[0]}` — waivers need a name each")
        return self


def _policy(written: PolicyFile) -> Policy:
    """Return a policy file as a policy, every default filled in."""
    rules = tuple(_rule(entry, written.max_missing) for entry in written.rules)
    tiers = {rule.tier for rule in rules if rule.role is not Role.REPORT}
    fail = ALPHA / max(len(tiers), 1)
    return Policy(
        name=written.name,
        version=written.version,
        kind=written.kind,
        rules=rules,
        alpha_pass_safety=written.alpha_pass.safety or ALPHA,
        alpha_pass_capability=written.alpha_pass.capability or ALPHA,
        alpha_fail_safety=written.alpha_fail.safety or fail,
        alpha_fail_capability=written.alpha_fail.capability or fail,
        allow_differences=tuple(sorted(written.allow_differences)),
        on_inconclusive=written.on_inconclusive,
        truncated=_outcome_rule(written.truncated),
        unparsed=_outcome_rule(written.unparsed),
    )


def _outcome_rule(entry: OutcomeEntry) -> OutcomeRule:
    return OutcomeRule(read_as=Reading(entry.read_as), max_share=entry.max_share)


def _rule(entry: RuleEntry, max_missing: float) -> Rule:
    content: dict[str, Any] = dict(entry)
    if entry.max_missing is None:
        content["max_missing"] = max_missing
    if entry.tier is None:
        is_safety = entry.capability is Capability.SAFETY
        content["tier"] = Tier.SAFETY if is_safety else Tier.CAPABILITY
    return Rule(**content)
