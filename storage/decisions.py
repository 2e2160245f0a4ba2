"""Decisions: a verdict with all its evidence, stored together with its ledger entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from evals.errors import LakeError
from evals.identity import fingerprint
from storage.connection import Lake, Row, Transaction, source
from storage.ledger import (
    LedgerEntry,
    LedgerFault,
    LedgerProblem,
    append_entry,
    read_ledger,
    write_ledger,
)
from storage.tables import DECISIONS
from storage.text import decode_json, decode_text, encode_json, encode_text

_COLUMNS = "decision, verdict, candidate, baseline, policy, snapshot, recorded_at, document"
_KIND = "decision"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A policy's verdict on a candidate."""

    decision: str
    """The decision's id."""
    verdict: str
    """PASS, FAIL or INCONCLUSIVE."""
    candidate: str
    """``RUN@STEP``."""
    baseline: str
    """``RUN@STEP``."""
    policy: str
    """The policy's digest."""
    snapshot: int
    """The lake's snapshot that was judged."""
    document: Mapping[str, Any]
    """All of it with its evidence: JSON types only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDecision:
    """A decision and when it was stored."""

    decision: Decision
    at: str
    """UTC, ISO 8601."""


def put_decision(
    lake: Lake, head_file: Path, decision: Decision, who: str, *, channel: str | None = None
) -> LedgerEntry:
    """Return the ledger entry of a decision, stored with it in one transaction.

    A decision that is stored already gets no second entry.

    Args:
        lake: The lake.
        head_file: The ledger's head outside the lake.
        decision: The decision.
        who: Who asked for it.
        channel: The channel that it was made for, under its policy against its holder.

    Raises:
        LakeError: Another decision has its id, or the ledger was changed from outside.
    """
    payload = {**_payload(decision), "channel": channel}

    def write(tx: Transaction) -> LedgerEntry | None:
        stored = tx.rows(
            "SELECT document FROM lake.decisions WHERE decision = ?", [decision.decision]
        )
        if stored:
            if stored[0][0] != encode_json(dict(decision.document)):
                raise LakeError("another decision has this id", decision.decision)
            return None
        entry = append_entry(tx, kind=_KIND, payload=payload, who=who)
        tx.insert_missing(DECISIONS, _rows(decision, entry.at))
        return entry

    return write_ledger(lake, head_file, write) or load_decision_entry(lake, decision.decision)


def load_decision_entry(lake: Lake, decision: str) -> LedgerEntry:
    """Return the ledger entry of a stored decision.

    Raises:
        LakeError: There is none.
    """
    for entry in read_ledger(lake, kind=_KIND):
        if entry.payload["decision"] == decision:
            return entry
    raise LakeError("the ledger has no such decision", decision, "run pawl ledger verify")


def load_decision(lake: Lake, decision: str, *, snapshot: int | None = None) -> StoredDecision:
    """Return one decision.

    Raises:
        LakeError: There is none of that id.
    """
    found = lake.rows(
        f"SELECT {_COLUMNS} FROM {source(DECISIONS, snapshot)} WHERE decision = ?", [decision]
    )
    if not found:
        raise LakeError("there is no such decision", decision)
    return _stored(found[0])


def find_decisions(
    lake: Lake,
    *,
    candidate: str | None = None,
    policy: str | None = None,
    snapshot: int | None = None,
) -> tuple[StoredDecision, ...]:
    """Return the decisions that fit all that is given, oldest first."""
    wanted = {"candidate": encode_text(candidate), "policy": policy}
    given = {name: value for name, value in wanted.items() if value is not None}
    where = " AND ".join(f"{name} = ?" for name in given) or "true"
    found = lake.rows(
        f"SELECT {_COLUMNS} FROM {source(DECISIONS, snapshot)} WHERE {where} "
        "ORDER BY recorded_at, decision",
        list(given.values()),
    )
    return tuple(_stored(row) for row in found)


def verify_decisions(lake: Lake) -> tuple[LedgerProblem, ...]:
    """Return where a stored decision is not what its ledger entry says, or one lacks the other."""
    payloads = {
        entry.payload["decision"]: (entry.seq, entry.payload)
        for entry in read_ledger(lake, kind=_KIND)
    }
    stored = {each.decision.decision: each.decision for each in find_decisions(lake)}
    problems = []
    for name in sorted(payloads.keys() | stored.keys()):
        seq, payload = payloads.get(name, (0, {}))
        told = {field: value for field, value in payload.items() if field != "channel"}
        if name not in stored or _payload(stored[name]) != told:
            text = f"decision {name} is not the one of its ledger entry"
            problems.append(LedgerProblem(fault=LedgerFault.DECISION, seq=seq, text=text))
    return tuple(problems)


def _payload(decision: Decision) -> dict[str, Any]:
    return {
        "decision": decision.decision,
        "verdict": decision.verdict,
        "candidate": decision.candidate,
        "baseline": decision.baseline,
        "policy": decision.policy,
        "snapshot": decision.snapshot,
        "document": fingerprint(dict(decision.document)),
    }


def _rows(decision: Decision, at: str) -> pa.Table:
    row = {
        "decision": decision.decision,
        "verdict": decision.verdict,
        "candidate": encode_text(decision.candidate),
        "baseline": encode_text(decision.baseline),
        "policy": decision.policy,
        "snapshot": decision.snapshot,
        "recorded_at": at,
        "document": encode_json(dict(decision.document)),
    }
    return pa.Table.from_pylist([row], schema=DECISIONS.schema)


def _stored(row: Row) -> StoredDecision:
    name, verdict, candidate, baseline, policy, snapshot, at, document = row
    return StoredDecision(
        decision=Decision(
            decision=name,
            verdict=verdict,
            candidate=decode_text(candidate),
            baseline=decode_text(baseline),
            policy=policy,
            snapshot=snapshot,
            document=decode_json(document),
        ),
        at=at,
    )
