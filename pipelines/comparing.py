"""From two checkpoints as the user names them to a comparison, and to a stored decision."""

from __future__ import annotations

import getpass
from pathlib import Path

from evals.checkpoint import digest_checkpoint, inspect_checkpoint
from evals.gate import Decision, decide
from evals.policy import Policy, check_policy
from storage.decisions import Decision as DecisionRow
from storage.ledger import LedgerEntry
from storage.naming import Named, load_named
from storage.pairing import Sides, find_sides, pair
from storage.store import LakeStore


def named(target: str, store: LakeStore) -> Named:
    """Return a checkpoint given by path or as ``RUN@STEP``.

    Raises:
        InputError: The lake does not know it.
        CheckpointError: The folder is no whole checkpoint.
    """
    if Path(target).is_dir():
        return Named(name=target, digest=digest_checkpoint(inspect_checkpoint(Path(target))))
    return load_named(target, store)


def choose_sides(candidate: str, baseline: str, suite: str | None, store: LakeStore) -> Sides:
    """Return the evaluations of two checkpoints, each a path or ``RUN@STEP``, to be compared.

    Raises:
        InputError: One is not known, or they were never evaluated on the same suite.
        CheckpointError: A folder is no whole checkpoint.
    """
    return find_sides(named(candidate, store), named(baseline, store), suite, store)


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
