from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from conftest import Start, sqlite_config

from evals.errors import LakeError
from storage import ledger as ledger_module
from storage.connection import Lake, LakeConfig, Transaction, open_lake
from storage.decisions import Decision, find_decisions
from storage.ledger import (
    GENESIS,
    LedgerEntry,
    LedgerFault,
    append_entry,
    read_head_file,
    read_ledger,
    verify,
    write_ledger,
)
from storage.store import LakeStore

COLUMNS = ("seq", "kind", "payload", "who", "recorded_at", "previous", "hash")


def append(lake: Lake, head_file: Path, number: int = 0) -> LedgerEntry:
    payload = {"number": number, "text": "\0 é \ud800", "pair": (1.5, None)}
    return write_ledger(
        lake, head_file, lambda tx: append_entry(tx, kind="waiver", payload=payload, who="Ada")
    )


@pytest.fixture
def head_file(tmp_path: Path) -> Path:
    return tmp_path / "ledger.head"


@pytest.fixture(scope="module")
def made_ledger(made_sqlite: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a lake with four entries, and its head file, to be copied."""
    folder = tmp_path_factory.mktemp("ledger")
    shutil.copytree(made_sqlite, folder / "lake")
    with open_lake(sqlite_config(folder / "lake")) as lake:
        for number in range(4):
            append(lake, folder / "ledger.head", number)
    return folder


@pytest.fixture
def ledger(made_ledger: Path, tmp_path: Path) -> LakeConfig:
    shutil.copytree(made_ledger, tmp_path, dirs_exist_ok=True)
    return sqlite_config(tmp_path / "lake")


def faults(lake: Lake, head_file: Path) -> set[tuple[LedgerFault, int]]:
    return {(each.fault, each.seq) for each in verify(lake, head_file).problems}


def test_empty_ledger_is_sound(lake: Lake, head_file: Path) -> None:
    report = verify(lake, head_file)
    assert (report.sound, report.entries, report.head.hash) == (True, 0, GENESIS)


def test_entries_are_chained_and_come_back(lake: Lake, head_file: Path) -> None:
    entries = tuple(append(lake, head_file, number) for number in range(3))
    assert read_ledger(lake) == entries
    assert [entry.seq for entry in entries] == [1, 2, 3]
    assert all(later.previous == earlier.hash for earlier, later in pairwise(entries))
    assert entries[0].previous == GENESIS
    assert read_head_file(head_file).hash == entries[-1].hash
    assert verify(lake, head_file).sound


@pytest.mark.timeout(120)
def test_processes_that_append_at_once_leave_no_gap(
    config: LakeConfig, tmp_path: Path, start: Start
) -> None:
    """On SQLite they share a head file; on Postgres each machine has its own."""
    names = ["a.head", "b.head" if config.shared else "a.head"]
    workers = [start("write_entries", config, tmp_path, name, 25) for name in names]
    assert [worker.wait() for worker in workers] == [0, 0]
    with open_lake(config, read_only=True) as lake:
        assert [entry.seq for entry in read_ledger(lake)] == list(range(1, 51))
        for name in names:
            assert verify(lake, tmp_path / name).sound


def test_failed_write_leaves_no_entry(lake: Lake, head_file: Path) -> None:
    def fail(tx: Transaction) -> None:
        append_entry(tx, kind="waiver", payload={}, who="Ada")
        raise LookupError

    with pytest.raises(LookupError):
        write_ledger(lake, head_file, fail)
    assert read_ledger(lake) == ()
    assert append(lake, head_file).seq == 1
    assert verify(lake, head_file).sound


def flipped(value: object) -> object:
    if isinstance(value, int):
        return value ^ 64
    text = str(value)
    middle = len(text) // 2
    return text[:middle] + chr(ord(text[middle]) ^ 1) + text[middle + 1 :]


@pytest.mark.parametrize("column", COLUMNS)
def test_a_flipped_byte_in_any_field_is_found(
    ledger: LakeConfig, head_file: Path, column: str
) -> None:
    with open_lake(ledger) as lake:
        for seq in (2, 4):
            [(value,)] = lake.rows(f"SELECT {column} FROM lake.ledger WHERE seq = ?", [seq])
            change = f"UPDATE lake.ledger SET {column} = ? WHERE {column} = ?"
            lake.rows(f"{change} AND seq = ?", [flipped(value), value, seq])
            assert not verify(lake, head_file).sound
            back = f"UPDATE lake.ledger SET {column} = ? WHERE {column} = ?"
            lake.rows(back, [value, flipped(value)])
            assert verify(lake, head_file).sound


@pytest.mark.parametrize("payload", ["{", '{"a": 1}', "null", None, '{"number":1.0}'])
def test_a_payload_that_is_no_canonical_json_is_found(
    ledger: LakeConfig, head_file: Path, payload: str | None
) -> None:
    with open_lake(ledger) as lake:
        lake.rows("UPDATE lake.ledger SET payload = ? WHERE seq = 2", [payload])
        assert (LedgerFault.ALTERED, 2) in faults(lake, head_file)


def execute(*statements: str) -> Callable[[Lake], None]:
    def run(lake: Lake) -> None:
        for statement in statements:
            lake.rows(statement)

    return run


@pytest.mark.parametrize(
    ("tamper", "found"),
    [
        pytest.param(
            execute("DELETE FROM lake.ledger WHERE seq = 2"),
            {(LedgerFault.GAP, 3), (LedgerFault.UNCHAINED, 3)},
            id="removed",
        ),
        pytest.param(
            execute("DELETE FROM lake.ledger WHERE seq = 1"),
            {(LedgerFault.GAP, 2), (LedgerFault.UNCHAINED, 2)},
            id="first removed",
        ),
        pytest.param(
            execute("DELETE FROM lake.ledger WHERE seq = 4"),
            {(LedgerFault.HEAD_ROW, 3), (LedgerFault.HEAD_FILE, 3)},
            id="last removed",
        ),
        pytest.param(
            execute(
                "DELETE FROM lake.ledger WHERE seq = 4",
                "UPDATE lake.ledger_head SET seq = 3, "
                "hash = (SELECT hash FROM lake.ledger WHERE seq = 3)",
            ),
            {(LedgerFault.HEAD_FILE, 3)},
            id="last removed and the lake's head with it",
        ),
        pytest.param(
            execute(
                "DELETE FROM lake.ledger",
                "UPDATE lake.ledger_head SET seq = 0, hash = repeat('0', 64)",
            ),
            {(LedgerFault.HEAD_FILE, 0)},
            id="all removed",
        ),
        pytest.param(
            execute("UPDATE lake.ledger SET seq = 5 - seq WHERE seq IN (2, 3)"),
            {
                (LedgerFault.UNCHAINED, 2),
                (LedgerFault.ALTERED, 2),
                (LedgerFault.UNCHAINED, 3),
                (LedgerFault.ALTERED, 3),
                (LedgerFault.UNCHAINED, 4),
            },
            id="reordered",
        ),
        pytest.param(
            execute("INSERT INTO lake.ledger SELECT * FROM lake.ledger WHERE seq = 2"),
            {(LedgerFault.DUPLICATE, 2), (LedgerFault.UNCHAINED, 2)},
            id="doubled",
        ),
        pytest.param(
            execute("UPDATE lake.ledger_head SET seq = 3"), {(LedgerFault.HEAD_ROW, 4)}, id="head"
        ),
        pytest.param(
            execute("DELETE FROM lake.ledger_head"), {(LedgerFault.HEAD_ROW, 4)}, id="no head"
        ),
    ],
)
def test_each_kind_of_tampering_is_found(
    ledger: LakeConfig,
    head_file: Path,
    tamper: Callable[[Lake], None],
    found: set[tuple[LedgerFault, int]],
) -> None:
    with open_lake(ledger) as lake:
        assert verify(lake, head_file).sound
        tamper(lake)
        assert faults(lake, head_file) == found


def test_nothing_is_appended_to_a_ledger_that_lost_its_last_entry(
    ledger: LakeConfig, head_file: Path
) -> None:
    with open_lake(ledger) as lake:
        lake.rows("DELETE FROM lake.ledger WHERE seq = 4")
        lake.rows(
            "UPDATE lake.ledger_head SET seq = 3, "
            "hash = (SELECT hash FROM lake.ledger WHERE seq = 3)"
        )
        with pytest.raises(LakeError, match="entries 4 to 4 are gone"):
            append(lake, head_file)
        assert len(read_ledger(lake)) == 3


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\xff", b'{"seq": "x", "hash": "y"}'])
def test_unreadable_head_file_is_found(ledger: LakeConfig, head_file: Path, content: bytes) -> None:
    head_file.write_bytes(content)
    with open_lake(ledger) as lake:
        assert faults(lake, head_file) == {(LedgerFault.HEAD_FILE, 4)}
        with pytest.raises(LakeError, match="not a ledger head"):
            append(lake, head_file)


def test_missing_head_file_is_found(ledger: LakeConfig, head_file: Path) -> None:
    head_file.unlink()
    with open_lake(ledger) as lake:
        assert faults(lake, head_file) == {(LedgerFault.HEAD_FILE, 4)}
        with pytest.raises(LakeError, match="missing or old"):
            append(lake, head_file)


def test_kill_between_commit_and_head_file_is_harmless_and_mended(
    sqlite_lake: LakeConfig, head_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with open_lake(sqlite_lake) as lake:
        for number in range(3):  # from the first entry on, which leaves no file at all
            with monkeypatch.context() as patch:
                patch.setattr(ledger_module, "_write_head_file", killed)
                with pytest.raises(KeyboardInterrupt):
                    append(lake, head_file)
            report = verify(lake, head_file)
            assert (report.sound, report.behind, report.entries) == (True, 1, 2 * number + 1)
            append(lake, head_file)
            report = verify(lake, head_file)
            assert (report.sound, report.behind, report.entries) == (True, 0, 2 * number + 2)


def test_entries_past_the_head_file_are_found_where_one_machine_writes(
    ledger: LakeConfig, head_file: Path
) -> None:
    content = head_file.read_bytes()
    with open_lake(ledger) as lake:
        append(lake, head_file)
        append(lake, head_file)
        head_file.write_bytes(content)
        assert faults(lake, head_file) == {(LedgerFault.HEAD_FILE, 6)}


DECISION = Decision(
    decision="d1",
    verdict="PASS",
    candidate="run@2",
    baseline="run@1",
    policy="p",
    snapshot=3,
    document={"rules": [{"name": "arc", "value": 0.5, "note": "\0\ud800"}]},
)


def test_decision_and_entry_are_stored_together_and_once(store: LakeStore) -> None:
    entry = store.put_decision(DECISION, "ci")
    assert entry.payload["verdict"] == "PASS"
    stored = store.load_decision("d1")
    assert (stored.decision, stored.at) == (DECISION, entry.at)
    assert store.put_decision(DECISION, "someone else") == entry
    assert store.ledger() == (entry,)
    assert find_decisions(store.lake, candidate="run@2", policy="p") == (stored,)
    assert find_decisions(store.lake, candidate="run@3") == ()
    assert store.verify_ledger().sound
    other = dataclasses.replace(DECISION, document={})
    with pytest.raises(LakeError, match="another decision has this id"):
        store.put_decision(other, "ci")
    with pytest.raises(LakeError, match="no such decision"):
        store.load_decision("d2")


def test_large_documents_come_back(store: LakeStore) -> None:
    large = dataclasses.replace(DECISION, document={"items": [f"{n}é" for n in range(200_000)]})
    store.put_decision(large, "ci")
    assert store.load_decision("d1").decision == large


@pytest.mark.parametrize(
    "tamper",
    [
        "UPDATE lake.decisions SET verdict = 'FAIL'",
        "UPDATE lake.decisions SET document = replace(document, '0.5', '0.6')",
        "DELETE FROM lake.decisions",
        "INSERT INTO lake.decisions SELECT * REPLACE ('d9' AS decision) FROM lake.decisions",
    ],
)
def test_changed_decision_is_found(sqlite_lake: LakeConfig, tmp_path: Path, tamper: str) -> None:
    with open_lake(sqlite_lake) as lake:
        store = LakeStore(lake, tmp_path)
        store.put_decision(DECISION, "ci")
        lake.rows(tamper)
        assert [each.fault for each in store.verify_ledger().problems] == [LedgerFault.DECISION]
