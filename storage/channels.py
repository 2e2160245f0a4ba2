"""Channels: names that point to promoted checkpoints, each change written with its ledger entry.

A channel's row says where it stands, the ledger how it came there. Both are written in one
transaction, and a move names the number of changes that it saw: of two that saw the same, one
is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import pyarrow as pa

from evals.errors import InputError, PromotionRefused
from storage.connection import Lake, Row, Transaction, source
from storage.ledger import (
    LedgerEntry,
    LedgerFault,
    LedgerProblem,
    append_entry,
    read_ledger,
    write_ledger,
)
from storage.tables import CHANNELS
from storage.text import decode_json, decode_text, encode_json, encode_text

_COLUMNS = (
    "channel, policy, policy_document, suite, holder_run, holder_step, holder_digest, moves, "
    "changed_at"
)
_POLICY = "policy"
_PROMOTION = "promotion"


class Ground(StrEnum):
    """What a promotion rests on."""

    FIRST = "first"
    """A named person's word, and the policy's ceilings and floors."""
    PASS = "pass"
    """A PASS under the channel's policy against the holder before."""
    ROLLBACK = "rollback"
    """A named person's word that an earlier holder shall be it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The checkpoint that a channel points to."""

    run: str
    step: int
    digest: str

    @property
    def name(self) -> str:
        """Return ``RUN@STEP``."""
        return f"{self.run}@{self.step}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """A channel as it stands."""

    name: str
    policy: str
    """Its policy's digest."""
    policy_document: Mapping[str, Any]
    """The policy: JSON types only."""
    suite: str
    """Name of the suite that its policy decides on."""
    holder: Holder | None
    """None before the first promotion."""
    moves: int
    """Changes so far, of policy or holder."""
    changed_at: str
    """UTC, ISO 8601."""

    @property
    def policy_label(self) -> str:
        """Return the policy's ``name@version``."""
        return f"{self.policy_document['name']}@{self.policy_document['version']}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A promotion to be made."""

    channel: Channel
    """As it was when the move was decided on."""
    to: Holder
    ground: Ground
    decision: str
    """Id of the decision it rests on; for a rollback the one that first brought it there."""
    why: str = ""
    """The person's reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """A promotion as the ledger has it."""

    channel: str
    holder: Holder
    """Whom it moved the channel to."""
    ground: Ground
    decision: str
    why: str
    who: str
    at: str
    """UTC, ISO 8601."""
    seq: int
    """Its ledger entry."""


def set_policy(
    lake: Lake,
    head_file: Path,
    *,
    channel: str,
    policy: str,
    document: Mapping[str, Any],
    suite: str,
    who: str,
) -> LedgerEntry | None:
    """Make the channel, or give it another policy or suite; return the ledger entry.

    Returns:
        None where channel, policy and suite are so already; nothing is written then.
    """
    wanted = (policy, encode_json(dict(document)), encode_text(suite))
    if [row[1:4] for row in _rows(lake, channel)] == [wanted]:
        return None

    def write(tx: Transaction) -> LedgerEntry | None:
        found = tx.rows(f"SELECT {_COLUMNS} FROM lake.channels WHERE channel = ?", _key(channel))
        if [row[1:4] for row in found] == [wanted]:
            return None
        payload = {
            "channel": channel,
            "policy": policy,
            "policy_document": dict(document),
            "suite": suite,
            "policy_before": found[0][1] if found else None,
        }
        entry = append_entry(tx, kind=_POLICY, payload=payload, who=who)
        if found:
            tx.change(
                "UPDATE lake.channels SET policy = ?, policy_document = ?, suite = ?, "
                "moves = moves + 1, changed_at = ? WHERE channel = ?",
                [*wanted, entry.at, *_key(channel)],
            )
        else:
            tx.insert_missing(CHANNELS, _table(_set(None, entry)))
        return entry

    return write_ledger(lake, head_file, write)


def move_channel(lake: Lake, head_file: Path, move: Move, who: str) -> LedgerEntry:
    """Return the ledger entry of a promotion, made in one transaction with the channel's move.

    Raises:
        PromotionRefused: The channel changed since it was read.
        LakeError: The ledger was changed from outside.
    """
    channel, to = move.channel, move.to
    before = channel.holder
    payload = {
        "channel": channel.name,
        "candidate": to.name,
        "run": to.run,
        "step": to.step,
        "digest": to.digest,
        "holder_before": before.name if before else None,
        "digest_before": before.digest if before else None,
        "policy": channel.policy,
        "decision": move.decision,
        "how": move.ground.value,
        "why": move.why,
    }

    def write(tx: Transaction) -> LedgerEntry:
        entry = append_entry(tx, kind=_PROMOTION, payload=payload, who=who)
        moved = tx.change(
            "UPDATE lake.channels SET holder_run = ?, holder_step = ?, holder_digest = ?, "
            "moves = moves + 1, changed_at = ? WHERE channel = ? AND moves = ?",
            [encode_text(to.run), to.step, to.digest, entry.at, *_key(channel.name), channel.moves],
        )
        if moved != 1:
            raise PromotionRefused(
                "somebody else changed the channel meanwhile",
                f"channel {channel.name}",
                f"decide again: pawl gate {to.name} --channel {channel.name}",
            )
        return entry

    return write_ledger(lake, head_file, write)


def load_channel(lake: Lake, name: str, *, snapshot: int | None = None) -> Channel:
    """Return one channel.

    Raises:
        InputError: There is none of that name.
    """
    found = _rows(lake, name, snapshot)
    if not found:
        known = ", ".join(channel.name for channel in load_channels(lake, snapshot=snapshot))
        raise InputError(
            f"there is no channel {name[:80]!r}",
            "channel",
            f"there are {known or 'none'}; channels are named in pawl.yaml",
        )
    return _channel(found[0])


def load_channels(lake: Lake, *, snapshot: int | None = None) -> tuple[Channel, ...]:
    """Return all channels by name."""
    found = lake.rows(f"SELECT {_COLUMNS} FROM {source(CHANNELS, snapshot)} ORDER BY channel")
    return tuple(_channel(row) for row in found)


def load_promotions(
    lake: Lake, channel: str | None = None, *, snapshot: int | None = None
) -> tuple[Promotion, ...]:
    """Return the promotions to a channel, or to all, in order."""
    entries = read_ledger(lake, kind=_PROMOTION, snapshot=snapshot)
    return tuple(
        _promotion(entry)
        for entry in entries
        if channel is None or entry.payload["channel"] == channel
    )


def verify_channels(lake: Lake) -> tuple[LedgerProblem, ...]:
    """Return where a channel is not what its ledger entries made it."""
    told: dict[str, Channel] = {}
    last: dict[str, int] = {}
    for entry in read_ledger(lake):
        if entry.kind not in {_POLICY, _PROMOTION}:
            continue
        name = encode_text(entry.payload["channel"])
        last[name] = entry.seq
        if entry.kind == _POLICY:
            told[name] = _set(told.get(name), entry)
        elif name in told:
            told[name] = _moved(told[name], entry)
    stored: dict[str, list[Row]] = {}
    for row in lake.rows(f"SELECT {_COLUMNS} FROM lake.channels"):
        stored.setdefault(row[0], []).append(row)
    problems = []
    for name in sorted(told.keys() | stored.keys()):
        if name not in told or stored.get(name) != [_row(told[name])]:
            text = f"channel {decode_text(name)} is not what its ledger entries made it"
            problems.append(
                LedgerProblem(fault=LedgerFault.CHANNEL, seq=last.get(name, 0), text=text)
            )
    return tuple(problems)


def _set(before: Channel | None, entry: LedgerEntry) -> Channel:
    """Return a channel as an entry of its policy makes or leaves it."""
    payload = entry.payload
    return Channel(
        name=payload["channel"],
        policy=payload["policy"],
        policy_document=payload["policy_document"],
        suite=payload["suite"],
        holder=before.holder if before else None,
        moves=before.moves + 1 if before else 1,
        changed_at=entry.at,
    )


def _moved(before: Channel, entry: LedgerEntry) -> Channel:
    """Return a channel as a promotion leaves it."""
    holder = _promotion(entry).holder
    return replace(before, holder=holder, moves=before.moves + 1, changed_at=entry.at)


def _promotion(entry: LedgerEntry) -> Promotion:
    payload = entry.payload
    return Promotion(
        channel=payload["channel"],
        holder=Holder(run=payload["run"], step=payload["step"], digest=payload["digest"]),
        ground=Ground(payload["how"]),
        decision=payload["decision"],
        why=payload["why"],
        who=entry.who,
        at=entry.at,
        seq=entry.seq,
    )


def _key(name: str) -> list[str]:
    return [encode_text(name)]


def _rows(lake: Lake, name: str, snapshot: int | None = None) -> list[Row]:
    return lake.rows(
        f"SELECT {_COLUMNS} FROM {source(CHANNELS, snapshot)} WHERE channel = ?", _key(name)
    )


def _row(channel: Channel) -> Row:
    """Return the channel as the lake holds it."""
    holder = channel.holder
    return (
        encode_text(channel.name),
        channel.policy,
        encode_json(dict(channel.policy_document)),
        encode_text(channel.suite),
        encode_text(holder.run) if holder else None,
        holder.step if holder else None,
        holder.digest if holder else None,
        channel.moves,
        channel.changed_at,
    )


def _table(channel: Channel) -> pa.Table:
    row = dict(zip(_COLUMNS.split(", "), _row(channel), strict=True))
    return pa.Table.from_pylist([row], schema=CHANNELS.schema)


def _channel(row: Row) -> Channel:
    name, policy, document, suite, run, step, digest, moves, changed_at = row
    return Channel(
        name=decode_text(name),
        policy=policy,
        policy_document=decode_json(document),
        suite=decode_text(suite),
        holder=None if digest is None else Holder(run=decode_text(run), step=step, digest=digest),
        moves=moves,
        changed_at=changed_at,
    )
