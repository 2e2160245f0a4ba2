"""From two stored evaluations to a comparison, and from a policy to a stored decision."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evals.checkpoint import digest_checkpoint, inspect_checkpoint
from evals.compare import PairedEvaluations, Readings, pair_evaluations
from evals.errors import InputError
from evals.evaluation import Evaluation, EvaluationState
from evals.gate import Decision, decide
from evals.policy import Policy, check_policy
from evals.task import Item
from pipelines.evaluating import parse_name
from storage.decisions import Decision as DecisionRow
from storage.ledger import LedgerEntry
from storage.store import LakeStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """The two evaluations of a comparison."""

    candidate: Evaluation
    baseline: Evaluation


def digest_of(target: str, store: LakeStore) -> str:
    """Return the digest of a checkpoint given by path or as ``RUN@STEP``.

    Raises:
        InputError: The lake does not know it.
        CheckpointError: The folder is no whole checkpoint.
    """
    if Path(target).is_dir():
        return digest_checkpoint(inspect_checkpoint(Path(target)))
    run, step = parse_name(target)
    stored = store.find_checkpoint(run, step)
    if stored is None:
        raise InputError(
            f"no checkpoint {target} in the lake",
            "checkpoint",
            f"run `pawl eval` on {target} first",
        )
    return stored.ref.digest


def find_sides(candidate: str, baseline: str, suite: str | None, store: LakeStore) -> Sides:
    """Return the evaluations of both checkpoints that are best compared.

    Those that ask the same come first, then complete ones, then those under one engine, then the
    latest.

    Args:
        candidate: Path or ``RUN@STEP``.
        baseline: Path or ``RUN@STEP``.
        suite: Name of the suite; None: whatever both were evaluated on.
        store: The lake.

    Raises:
        InputError: One was never evaluated (on that suite), or never on the same suite.
    """
    ours = evaluations_of(candidate, suite, store)
    theirs = evaluations_of(baseline, suite, store)
    pairs = [
        Sides(candidate=a, baseline=b)
        for a in ours
        for b in theirs
        if a.suite == b.suite and a.evaluation_id != b.evaluation_id
    ]
    if not pairs:
        raise InputError(
            f"{candidate} and {baseline} were never evaluated on the same suite",
            "lake",
            "run `pawl eval` on both with the same --suite or --tasks",
        )
    return max(pairs, key=lambda sides: rank(sides, ours, theirs))


def rank(
    sides: Sides, ours: Sequence[Evaluation], theirs: Sequence[Evaluation]
) -> tuple[bool, bool, bool, int, int]:
    """Return what makes one pair the better choice."""
    a, b = sides.candidate, sides.baseline
    complete = all(side.state is EvaluationState.COMPLETE for side in (a, b))
    asked_alike = a.suite_fingerprint == b.suite_fingerprint
    return asked_alike, complete, a.engine == b.engine, ours.index(a), theirs.index(b)


def evaluations_of(target: str, suite: str | None, store: LakeStore) -> list[Evaluation]:
    """Return a checkpoint's evaluations, oldest first.

    Raises:
        InputError: There are none.
    """
    digest = digest_of(target, store)
    found = [
        stored.evaluation
        for stored in store.find_evaluations(checkpoint_digest=digest, suite=suite)
    ]
    if not found:
        on = f" on suite {suite}" if suite else ""
        raise InputError(
            f"{target} was not evaluated{on}", "lake", f"run `pawl eval {target}` first"
        )
    return found


def pair(
    sides: Sides, store: LakeStore, snapshot: int, readings: Readings | None = None
) -> PairedEvaluations:
    """Return both evaluations joined item by item, as the lake was at ``snapshot``.

    Raises:
        ComparisonRefused: Metric or prompt of a task differs.
    """
    planned: dict[str, list[Item]] = {}
    repeats: dict[str, int] = {}
    for side in (sides.baseline, sides.candidate):
        for spec in side.tasks:
            planned.setdefault(spec.name, []).extend(
                store.items(side, spec.name, snapshot=snapshot)
            )
        for request in store.requests(side.evaluation_id, snapshot=snapshot):
            repeats[request.task] = max(repeats.get(request.task, 1), len(request.repeats))
    return pair_evaluations(
        sides.candidate,
        sides.baseline,
        candidate_scores=store.scores(sides.candidate.evaluation_id, snapshot=snapshot),
        baseline_scores=store.scores(sides.baseline.evaluation_id, snapshot=snapshot),
        planned=planned,
        readings=readings,
        repeats=repeats,
    )


def decide_and_store(
    policy: Policy, sides: Sides, store: LakeStore
) -> tuple[Decision, LedgerEntry]:
    """Return a policy's decision, stored with its ledger entry.

    Raises:
        InputError: The policy does not fit the suite.
        ComparisonRefused: The evaluations must not be paired.
    """
    check_policy(policy, sides.candidate.tasks)
    snapshot = store.snapshot()
    decision = decide(policy, pair(sides, store, snapshot, policy.readings), snapshot=snapshot)
    row = DecisionRow(
        decision=decision.decision,
        verdict=decision.verdict.value,
        candidate=decision.candidate,
        baseline=decision.baseline or "",
        policy=decision.policy_digest,
        snapshot=snapshot,
        document=decision.to_json(),
    )
    return decision, store.put_decision(row, who())


def who() -> str:
    """Return who runs this process, for the ledger."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
