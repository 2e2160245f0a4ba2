"""The ledger: append-only, each entry bound to the one before by its hash.

The last entry's number and hash are kept twice: in ``ledger_head``, one row that every append
changes in its own transaction, and in a small file outside the lake, so that a removed last
entry is found. The file is written after the commit. A kill between the two leaves it one entry
behind, which is harmless and mended by the next append; a file that is ahead of the lake, or
names another hash, means that the lake was changed from outside, and nothing is appended then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from evals.errors import LakeError
from evals.identity import canonical_json, fingerprint
from storage.clock import utc_now
from storage.connection import Lake, Row, Transaction, source, sync_path, transaction
from storage.locks import file_lock
from storage.tables import LEDGER
from storage.text import decode_json, decode_text, encode_json, encode_text

T = TypeVar("T")

GENESIS = "0" * 64
"""What the first entry names as its previous hash."""

_HASHED = ("seq", "kind", "payload", "who", "at", "previous")
_COLUMNS = "seq, kind, payload, who, recorded_at, previous, hash"
_WAIT_S = 600.0
_REMEDY = "run pawl ledger verify; restore the lake or the head file from a backup"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """One entry: a decision, waiver, promotion or policy change."""

    seq: int
    """From 1, without gaps."""
    kind: str
    payload: Mapping[str, Any]
    """JSON types only."""
    who: str
    at: str
    """UTC, ISO 8601."""
    previous: str
    """Hash of the entry before, 64 hex digits."""
    hash: str
    """SHA-256 over the canonical JSON of all other fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerHead:
    """The last entry's number and hash; 0 and ``GENESIS`` where there is none."""

    seq: int
    hash: str


_EMPTY = LedgerHead(seq=0, hash=GENESIS)


class LedgerFault(StrEnum):
    """What can be wrong with a ledger."""

    ALTERED = "altered"
    """An entry's hash is not that of its fields."""
    UNCHAINED = "unchained"
    """An entry does not name the hash of the one before."""
    GAP = "gap"
    """A number is missing."""
    DUPLICATE = "duplicate"
    """A number is there more than once."""
    HEAD_ROW = "head_row"
    """The lake's own head is not the last entry."""
    HEAD_FILE = "head_file"
    """The head outside the lake is missing, unreadable, or names an entry the lake has not."""
    DECISION = "decision"
    """A stored decision is not the one that its entry names."""
    CHANNEL = "channel"
    """A channel is not what its entries made it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerProblem:
    """One thing that is wrong."""

    fault: LedgerFault
    seq: int
    """The entry it concerns."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerReport:
    """The outcome of a verification."""

    entries: int
    head: LedgerHead
    """The last entry that is there."""
    behind: int
    """Entries that the head file lacks: 1 after a kill, more where other machines write too."""
    problems: tuple[LedgerProblem, ...]

    @property
    def sound(self) -> bool:
        """Return whether nothing is wrong."""
        return not self.problems


def write_ledger(lake: Lake, head_file: Path, write: Callable[[Transaction], T]) -> T:
    """Return what ``write`` returns, its entries and all else it wrote in one transaction.

    Args:
        lake: The lake.
        head_file: The head outside the lake; created with the first entry.
        write: Calls ``append_entry`` and writes what belongs to the entry. May run more than
            once; what it raises undoes everything.

    Raises:
        LakeError: The lake and the head file disagree, so the ledger was changed from outside.
    """
    with file_lock(head_file.with_name(f"{head_file.name}.lock"), timeout_s=_WAIT_S):
        _catch_up(lake, head_file)
        result, head = transaction(lake, lambda tx: (write(tx), _head_row(tx)))
        if head.seq:
            _write_head_file(head_file, head)
    return result


def append_entry(
    tx: Transaction, *, kind: str, payload: Mapping[str, Any], who: str
) -> LedgerEntry:
    """Return the entry as appended; inside ``write_ledger`` only.

    Args:
        tx: The transaction.
        kind: ``decision``, ``waiver``, ``promotion`` or ``policy``.
        payload: What happened: JSON types only.
        who: Who did it.
    """
    head = _head_row(tx)
    entry = _sealed(
        LedgerEntry(
            seq=head.seq + 1,
            kind=kind,
            payload=decode_json(encode_json(dict(payload))),
            who=who,
            at=utc_now(),
            previous=head.hash,
            hash="",
        )
    )
    moved = tx.change(
        "UPDATE lake.ledger_head SET seq = ?, hash = ? WHERE seq = ? AND hash = ?",
        [entry.seq, entry.hash, head.seq, head.hash],
    )
    if moved != 1:
        raise LakeError("the ledger has no single head", fix=_REMEDY)
    tx.change(f"INSERT INTO lake.ledger ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", _stored(entry))
    return entry


def read_ledger(
    lake: Lake, *, kind: str | None = None, snapshot: int | None = None
) -> tuple[LedgerEntry, ...]:
    """Return all entries by number, or those of one kind."""
    return tuple(_entry(row) for row in _rows(lake, snapshot, kind))


def verify(lake: Lake, head_file: Path) -> LedgerReport:
    """Return whether the ledger is whole and is what was written."""
    problems: list[LedgerProblem] = []
    last = _EMPTY
    hashes = {0: GENESIS}
    rows = _rows(lake)
    for row in rows:
        seq, stored_hash = row[0], row[-1]
        problems += _entry_problems(row, last)
        last = LedgerHead(seq=seq, hash=stored_hash)
        hashes[seq] = stored_hash
    heads = lake.rows("SELECT seq, hash FROM lake.ledger_head")
    if heads != [(last.seq, last.hash)]:
        text = f"the lake's head is {heads}, its last entry {last.seq}"
        problems.append(LedgerProblem(fault=LedgerFault.HEAD_ROW, seq=last.seq, text=text))
    behind, wrong = 0, ""
    try:
        kept = read_head_file(head_file)
        behind, wrong = _compare(kept, last, hashes, shared=lake.config.shared)
    except LakeError as error:
        wrong = str(error)
    if wrong:
        problems.append(LedgerProblem(fault=LedgerFault.HEAD_FILE, seq=last.seq, text=wrong))
    return LedgerReport(entries=len(rows), head=last, behind=behind, problems=tuple(problems))


def read_head_file(head_file: Path) -> LedgerHead:
    """Return the head kept outside the lake; where there is no file, that of an empty ledger.

    Raises:
        LakeError: It can't be read or is no head.
    """
    try:
        fields = json.loads(head_file.read_bytes())
        return LedgerHead(seq=int(fields["seq"]), hash=str(fields["hash"]))
    except FileNotFoundError:
        return _EMPTY
    except OSError as error:
        raise LakeError(f"can't be read ({error.strerror})", str(head_file)) from error
    except (ValueError, KeyError, TypeError) as error:
        raise LakeError("is not a ledger head", str(head_file), _REMEDY) from error


def _entry_problems(row: Row, before: LedgerHead) -> list[LedgerProblem]:
    seq, previous = row[0], row[-2]
    found: list[tuple[LedgerFault, str]] = []
    if seq == before.seq:
        found.append((LedgerFault.DUPLICATE, f"entry {seq} is there more than once"))
    elif seq != before.seq + 1:
        found.append((LedgerFault.GAP, f"entries {before.seq + 1} to {seq - 1} are missing"))
    if previous != before.hash:
        text = f"entry {seq} does not follow what is before it"
        found.append((LedgerFault.UNCHAINED, text))
    if not _is_intact(row):
        found.append((LedgerFault.ALTERED, f"entry {seq} is not what was written"))
    return [LedgerProblem(fault=fault, seq=seq, text=text) for fault, text in found]


def _is_intact(row: Row) -> bool:
    """Return whether a row is byte for byte what its hash was taken of."""
    try:
        entry = _entry(row)
        return entry == _sealed(entry) and _stored(entry) == row
    except (LakeError, TypeError):
        return False


def _compare(
    kept: LedgerHead, last: LedgerHead, hashes: Mapping[int, str], *, shared: bool
) -> tuple[int, str]:
    """Return how many entries the head file lacks, and what is wrong with it (empty: nothing).

    Args:
        kept: What the file says.
        last: The last entry of the lake.
        hashes: Hash of each entry; of 0 ``GENESIS``.
        shared: Other machines append too, and keep heads of their own.
    """
    behind = last.seq - kept.seq
    if behind < 0:
        return 0, f"entries {last.seq + 1} to {kept.seq} are gone from the lake"
    if hashes.get(kept.seq) != kept.hash:
        return 0, f"entry {kept.seq} is not the one that the head file names"
    if behind > 1 and not shared:
        return behind, f"the head file is missing or old: it lacks {behind} entries"
    return behind, ""


def _catch_up(lake: Lake, head_file: Path) -> None:
    """Bring the head file to the lake's last entry, where it may lack some.

    Raises:
        LakeError: The lake is not what the head file says.
    """
    kept = read_head_file(head_file)
    found = lake.rows(
        "SELECT seq, hash FROM lake.ledger "
        "WHERE seq >= ? OR seq = (SELECT max(seq) FROM lake.ledger) ORDER BY seq",
        [kept.seq],
    )
    last = LedgerHead(seq=found[-1][0], hash=found[-1][1]) if found else _EMPTY
    hashes = {0: GENESIS, **dict(found)}
    behind, wrong = _compare(kept, last, hashes, shared=lake.config.shared)
    if wrong:
        raise LakeError(f"the ledger was changed from outside: {wrong}", str(head_file), _REMEDY)
    if behind:
        _write_head_file(head_file, last)


def _write_head_file(head_file: Path, head: LedgerHead) -> None:
    text = canonical_json({"seq": head.seq, "hash": head.hash}) + "\n"
    draft = head_file.with_name(f"{head_file.name}.draft")
    try:
        draft.write_text(text, "utf-8")
        sync_path(draft)
        draft.replace(head_file)
    except OSError as error:
        raise LakeError(
            f"the entry is in the lake, its head can't be kept beside it ({error.strerror})",
            str(head_file),
            "mend the disk; the next entry brings the head up to date",
        ) from error
    sync_path(head_file.parent)


def _head_row(tx: Transaction) -> LedgerHead:
    rows = tx.rows("SELECT seq, hash FROM lake.ledger_head")
    if len(rows) != 1:
        raise LakeError(f"the ledger has {len(rows)} heads instead of one", fix=_REMEDY)
    return LedgerHead(seq=rows[0][0], hash=rows[0][1])


def _rows(lake: Lake, snapshot: int | None = None, kind: str | None = None) -> list[Row]:
    where, parameters = ("true", []) if kind is None else ("kind = ?", [encode_text(kind)])
    return lake.rows(
        f"SELECT {_COLUMNS} FROM {source(LEDGER, snapshot)} WHERE {where} ORDER BY seq, hash",
        parameters,
    )


def _entry(row: Row) -> LedgerEntry:
    seq, kind, payload, who, at, previous, own_hash = row
    try:
        fields = decode_json(payload)
    except ValueError as error:
        raise LakeError("the payload is no JSON", f"ledger entry {seq}", _REMEDY) from error
    return LedgerEntry(
        seq=seq,
        kind=decode_text(kind),
        payload=fields,
        who=decode_text(who),
        at=at,
        previous=previous,
        hash=own_hash,
    )


def _stored(entry: LedgerEntry) -> Row:
    """Return the entry as the lake holds it."""
    return (
        entry.seq,
        encode_text(entry.kind),
        encode_json(entry.payload),
        encode_text(entry.who),
        entry.at,
        entry.previous,
        entry.hash,
    )


def _sealed(entry: LedgerEntry) -> LedgerEntry:
    """Return the entry with its hash."""
    fields = {name: getattr(entry, name) for name in _HASHED}
    return replace(entry, hash=fingerprint(fields))
