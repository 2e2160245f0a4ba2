"""From two checkpoints as the user names them to a comparison, and to a stored decision."""

from __future__ import annotations

import getpass
from pathlib import Path

from evals.checkpoint import digest_checkpoint, inspect_checkpoint
from evals.errors import InputError
from evals.evaluation import Evaluation
from evals.gate import Decision, decide
from evals.policy import Policy, check_policy
from storage.checkpoints import StoredCheckpoint
from storage.decisions import Decision as DecisionRow
from storage.ledger import LedgerEntry
from storage.naming import CHANNEL, Named, load_checkpoint, load_named
from storage.pairing import Sides, find_sides, join
from storage.store import LakeStore


def named(target: str, store: LakeStore) -> Named:
    """Return a checkpoint given by path, as ``RUN@STEP`` or as ``channel:NAME``.

    Raises:
        InputError: The lake does not know it.
        CheckpointError: The folder is no whole checkpoint.
    """
    if is_folder(target):
        return Named(name=target, digest=digest_of(target))
    return load_named(target, store)


def registered(target: str, store: LakeStore) -> StoredCheckpoint:
    """Return a checkpoint given by path, as ``RUN@STEP`` or as ``channel:NAME``, as it is stored.

    Raises:
        InputError: The lake does not know it.
        CheckpointError: The folder is no whole checkpoint.
    """
    if not is_folder(target):
        return load_checkpoint(target, store)
    digest = digest_of(target)
    known = [stored for stored in store.checkpoints() if stored.ref.digest == digest]
    if not known:
        raise InputError(
            f"the lake does not know these weights ({digest[:12]})",
            target,
            f"run `pawl eval {target}` first",
        )
    here = str(Path(target).resolve())
    return next((stored for stored in known if stored.ref.path == here), known[-1])


def is_folder(target: str) -> bool:
    """Return whether a checkpoint is given by path."""
    return not target.startswith(CHANNEL) and Path(target).is_dir()


def digest_of(folder: str) -> str:
    """Return the digest of the checkpoint in a folder.

    Raises:
        CheckpointError: It is no whole checkpoint.
    """
    return digest_checkpoint(inspect_checkpoint(Path(folder)))


def choose_sides(candidate: str, baseline: str, suite: str | None, store: LakeStore) -> Sides:
    """Return the evaluations of two checkpoints, each a path or a name, to be compared.

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
    decision = judge_stored(policy, sides.candidate, sides.baseline, store)
    return decision, store_decision(decision, store, who())


def judge_stored(
    policy: Policy, candidate: Evaluation, baseline: Evaluation | None, store: LakeStore
) -> Decision:
    """Return a policy's decision on what the lake holds now, without storing it.

    Args:
        policy: The rules.
        candidate: The evaluation in question.
        baseline: What it is compared with; None for a first promotion.
        store: The lake.

    Raises:
        InputError: The policy does not fit the suite.
        ComparisonRefused: The evaluations must not be paired.
    """
    check_policy(policy, candidate.tasks)
    snapshot = store.snapshot()
    paired = join(candidate, baseline, store, snapshot, policy.readings)
    return decide(policy, paired, snapshot=snapshot)


def store_decision(
    decision: Decision, store: LakeStore, by: str, *, channel: str | None = None
) -> LedgerEntry:
    """Return a decision's ledger entry, stored with it.

    Args:
        decision: The decision.
        store: The lake.
        by: Who asked for it.
        channel: The channel that it was made for.
    """
    row = DecisionRow(
        decision=decision.decision,
        verdict=decision.verdict.value,
        candidate=decision.candidate,
        baseline=decision.baseline or "",
        policy=decision.policy_digest,
        snapshot=decision.snapshot,
        document=decision.to_json(),
    )
    return store.put_decision(row, by, channel=channel)


def who() -> str:
    """Return who runs this process, for the ledger."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
