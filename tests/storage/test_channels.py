from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from conftest import Start
from lake_builders import digest

from evals.errors import InputError, PromotionRefused
from evals.identity import fingerprint
from storage import channels as channels_module
from storage import ledger as ledger_module
from storage.channels import Channel, Ground, Holder, Move
from storage.connection import LakeConfig, open_lake
from storage.ledger import LedgerEntry, LedgerFault, write_ledger
from storage.store import LakeStore

POLICY = {"name": "release\0 é", "version": "1", "rules": [{"margin": 0.02}]}


def set_policy(
    store: LakeStore, channel: str = "production", version: str = "1", suite: str = "lab"
) -> LedgerEntry | None:
    document = {**POLICY, "version": version}
    return store.set_policy(
        channel, policy=fingerprint(document), document=document, suite=suite, who="Ada"
    )


def holder(step: int, run: str = "run α") -> Holder:
    return Holder(run=run, step=step, digest=digest((run, step)))


def moving(channel: Channel, step: int, ground: Ground = Ground.PASS, why: str = "") -> Move:
    return Move(channel=channel, to=holder(step), ground=ground, decision=f"d{step}", why=why)


def test_a_channel_comes_back_as_it_was_set(store: LakeStore) -> None:
    assert store.channels() == ()
    entry = set_policy(store)
    assert entry is not None
    document = {**POLICY, "version": "1"}
    assert (entry.kind, entry.who, entry.payload["channel"]) == ("policy", "Ada", "production")
    assert entry.payload["policy_document"] == document
    made = Channel(
        name="production",
        policy=fingerprint(document),
        policy_document=document,
        suite="lab",
        holder=None,
        moves=1,
        changed_at=entry.at,
    )
    assert store.load_channel("production") == made
    assert made.policy_label == "release\0 é@1"
    set_policy(store, "alpha")
    assert [channel.name for channel in store.channels()] == ["alpha", "production"]
    assert store.verify_ledger().sound
    with pytest.raises(InputError, match=r"no channel 'prod'.*alpha, production"):
        store.load_channel("prod")


def test_what_does_not_change_a_channel_is_no_entry(store: LakeStore) -> None:
    assert set_policy(store) is not None
    assert set_policy(store) is None
    assert len(store.ledger()) == 1


def test_what_changes_nothing_waits_for_nobody(
    store: LakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("took the ledger's lock")

    set_policy(store)
    monkeypatch.setattr(channels_module, "write_ledger", refuse)
    assert set_policy(store) is None


def test_a_policy_that_somebody_else_set_meanwhile_is_no_second_entry(
    store: LakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def later(*arguments: Any) -> LedgerEntry | None:
        monkeypatch.undo()
        set_policy(store)
        return write_ledger(*arguments)

    monkeypatch.setattr(channels_module, "write_ledger", later)
    assert set_policy(store) is None
    assert len(store.ledger()) == 1


def test_another_policy_or_suite_is_an_entry_and_keeps_the_holder(store: LakeStore) -> None:
    set_policy(store)
    before = store.load_channel("production")
    store.move_channel(moving(before, 1, Ground.FIRST, "start"), "Ada")
    changed = set_policy(store, version="2")
    assert changed is not None
    assert changed.payload["policy_before"] == before.policy
    assert set_policy(store, version="2", suite="other") is not None
    after = store.load_channel("production")
    assert (after.moves, after.suite, after.holder) == (4, "other", holder(1))
    assert after.policy != before.policy
    assert [entry.kind for entry in store.ledger()] == ["policy", "promotion", "policy", "policy"]
    assert store.verify_ledger().sound


def test_a_move_and_its_entry_say_the_same(store: LakeStore) -> None:
    set_policy(store)
    first = store.load_channel("production")
    store.move_channel(moving(first, 1, Ground.FIRST, "start"), "Ada")
    second = store.load_channel("production")
    entry = store.move_channel(moving(second, 2), "Bo")
    assert (entry.kind, entry.who) == ("promotion", "Bo")
    assert entry.payload == {
        "channel": "production",
        "candidate": "run α@2",
        "run": "run α",
        "step": 2,
        "digest": holder(2).digest,
        "holder_before": "run α@1",
        "digest_before": holder(1).digest,
        "policy": first.policy,
        "decision": "d2",
        "how": "pass",
        "why": "",
    }
    now = store.load_channel("production")
    assert now == replace(first, holder=holder(2), moves=3, changed_at=entry.at)
    told = store.promotions("production")
    assert [(one.holder, one.ground, one.who) for one in told] == [
        (holder(1), Ground.FIRST, "Ada"),
        (holder(2), Ground.PASS, "Bo"),
    ]
    assert store.promotions("alpha") == ()
    assert store.verify_ledger().sound


def test_a_channel_is_read_as_it_was_at_a_snapshot(store: LakeStore) -> None:
    set_policy(store)
    then = store.snapshot()
    store.move_channel(moving(store.load_channel("production"), 1), "Ada")
    assert store.load_channel("production", snapshot=then).holder is None
    assert store.channels(snapshot=then)[0].moves == 1
    assert store.promotions(snapshot=then) == ()


@pytest.mark.parametrize("other", ["move", "policy"])
def test_a_channel_that_changed_meanwhile_is_not_moved(store: LakeStore, other: str) -> None:
    set_policy(store)
    seen = store.load_channel("production")
    if other == "move":
        store.move_channel(moving(seen, 1), "Ada")
    else:
        set_policy(store, version="2")
    there = store.load_channel("production")
    with pytest.raises(PromotionRefused, match="changed the channel meanwhile"):
        store.move_channel(moving(seen, 2), "Bo")
    assert store.load_channel("production") == there
    assert len(store.ledger()) == 2
    assert store.verify_ledger().sound


def heads(config: LakeConfig, names: list[str]) -> list[str]:
    """Name each process's head file: on SQLite one, on Postgres each machine has its own."""
    return [f"{name}.head" if config.shared else "ledger.head" for name in names]


@pytest.mark.timeout(120)
def test_of_processes_that_move_a_channel_at_once_one_wins(
    config: LakeConfig, tmp_path: Path, start: Start
) -> None:
    with open_lake(config) as lake:
        set_policy(LakeStore(lake, tmp_path))
    runs = ["a", "b", "c"]
    workers = [
        start("move_once", config, tmp_path, head, run)
        for head, run in zip(heads(config, runs), runs, strict=True)
    ]
    assert [worker.stdout.readline() for worker in workers] == ["ready\n"] * 3
    (tmp_path / "go").touch()
    won = [int(worker.stdout.readline()) for worker in workers]
    assert [worker.wait() for worker in workers] == [0, 0, 0]
    assert sum(won) == 1
    with open_lake(config) as lake:
        store = LakeStore(lake, tmp_path)
        assert store.load_channel("production").holder == holder(1, runs[won.index(1)])
        assert [entry.kind for entry in store.ledger()] == ["policy", "promotion"]
        assert store.verify_ledger().sound


@pytest.mark.timeout(180)
def test_moves_of_several_processes_follow_each_other_without_a_gap(
    config: LakeConfig, tmp_path: Path, start: Start
) -> None:
    with open_lake(config) as lake:
        set_policy(LakeStore(lake, tmp_path))
    runs = ["a", "b"]
    workers = [
        start("move_often", config, tmp_path, head, run, 15)
        for head, run in zip(heads(config, runs), runs, strict=True)
    ]
    assert [worker.stdout.readline() for worker in workers] == ["ready\n"] * 2
    (tmp_path / "go").touch()
    won = sum(int(worker.stdout.readline()) for worker in workers)
    assert [worker.wait() for worker in workers] == [0, 0]
    with open_lake(config) as lake:
        store = LakeStore(lake, tmp_path)
        moves = [entry.payload for entry in store.ledger() if entry.kind == "promotion"]
        assert len(moves) == won >= 15
        assert store.load_channel("production").moves == 1 + won
        assert all(new["digest_before"] == old["digest"] for old, new in pairwise(moves))
        assert store.verify_ledger().sound


def test_a_kill_before_the_head_file_leaves_the_channel_moved(
    sqlite_lake: LakeConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with open_lake(sqlite_lake) as lake:
        store = LakeStore(lake, tmp_path)
        set_policy(store)
        seen = store.load_channel("production")
        with monkeypatch.context() as patch:
            patch.setattr(ledger_module, "_write_head_file", killed)
            with pytest.raises(KeyboardInterrupt):
                store.move_channel(moving(seen, 1), "Ada")
        assert store.load_channel("production").holder == holder(1)
        assert store.verify_ledger().sound
        with pytest.raises(PromotionRefused):
            store.move_channel(moving(seen, 1), "Ada")


TAMPERED = (
    "UPDATE lake.channels SET holder_step = 3",
    "UPDATE lake.channels SET holder_run = 'other'",
    "UPDATE lake.channels SET holder_digest = repeat('0', 64)",
    "UPDATE lake.channels SET holder_run = NULL, holder_step = NULL, holder_digest = NULL",
    "UPDATE lake.channels SET policy = repeat('0', 64)",
    "UPDATE lake.channels SET policy_document = replace(policy_document, '0.02', '0.5')",
    "UPDATE lake.channels SET suite = 'smoke'",
    "UPDATE lake.channels SET moves = moves - 1",
    "UPDATE lake.channels SET changed_at = '2001'",
    "UPDATE lake.channels SET channel = 'staging'",
    "DELETE FROM lake.channels",
    "INSERT INTO lake.channels SELECT * FROM lake.channels",
    "INSERT INTO lake.channels SELECT * REPLACE ('extra' AS channel) FROM lake.channels",
)


def test_a_channel_changed_from_outside_is_found(sqlite_lake: LakeConfig, tmp_path: Path) -> None:
    with open_lake(sqlite_lake) as lake:
        store = LakeStore(lake, tmp_path)
        set_policy(store)
        store.move_channel(moving(store.load_channel("production"), 1), "Ada")
        whole = store.snapshot()
        for tamper in TAMPERED:
            assert store.verify_ledger().sound
            lake.rows(tamper)
            found = {problem.fault for problem in store.verify_ledger().problems}
            assert found == {LedgerFault.CHANNEL}, tamper
            lake.rows("DELETE FROM lake.channels")
            lake.rows(
                f"INSERT INTO lake.channels SELECT * FROM lake.channels AT (VERSION => {whole})"
            )
