from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from conftest import Start
from lake_builders import digest, make_response, make_score

from evals.errors import LakeError
from storage.connection import Lake, LakeConfig, Transaction, open_lake, transaction
from storage.migrate import apply_pending, load_migrations
from storage.responses import load_responses, put_responses
from storage.scores import load_scores, put_scores
from storage.tables import TABLES, column_docs


def test_tables_are_as_described(lake: Lake) -> None:
    found = lake.rows("SELECT table_name FROM duckdb_tables() WHERE database_name = 'lake'")
    assert {name for (name,) in found} == {table.name for table in TABLES}
    for table in TABLES:
        stored = lake.table(f"SELECT * FROM lake.{table.name} LIMIT 0")
        assert stored.schema.names == table.schema.names
        assert stored.schema.types == table.schema.types
        assert all(column_docs(table).values())


@pytest.mark.timeout(120)
def test_processes_that_make_one_lake_at_once_all_succeed(
    unmade: LakeConfig, tmp_path: Path, start: Start
) -> None:
    workers = [start("open_and_leave", unmade, tmp_path) for _ in range(3)]
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    (tmp_path / "go").touch()
    assert [worker.stdout.readline() for worker in workers] == [f"{len(load_migrations())}\n"] * 3
    assert [worker.wait() for worker in workers] == [0] * 3


def test_reads_see_a_snapshot(lake: Lake) -> None:
    put_scores(lake, "e", "1", [make_score(1)])
    before = lake.snapshot()
    put_scores(lake, "e", "1", [make_score(2)])
    assert lake.snapshot() > before
    assert len(load_scores(lake, "e", snapshot=before)) == 1
    assert len(load_scores(lake, "e")) == 2


def test_unknown_snapshot_is_an_error(lake: Lake) -> None:
    with pytest.raises(LakeError):
        load_scores(lake, "e", snapshot=10**6)


def test_newer_schema_is_refused(config: LakeConfig) -> None:
    with open_lake(config) as lake:
        transaction(lake, lambda tx: tx.change("INSERT INTO lake.migrations VALUES (99, 'x', '')"))
    for read_only in (False, True):
        with (
            pytest.raises(LakeError, match=r"schema is 99.*update Pawl"),
            open_lake(config, read_only=read_only),
        ):
            pass


def test_older_schema_is_not_read_as_if_it_were_new(sqlite_lake: LakeConfig) -> None:
    with open_lake(sqlite_lake) as lake:
        transaction(lake, lambda tx: tx.change("DELETE FROM lake.migrations"))
    with pytest.raises(LakeError, match="schema is 0"), open_lake(sqlite_lake, read_only=True):
        pass


def test_rows_of_an_older_schema_stay_when_it_is_brought_up(lake: Lake) -> None:
    responses = [make_response(number) for number in range(5)]
    put_responses(lake, "e", responses)
    older = (
        "ALTER TABLE lake.responses DROP COLUMN log_likelihoods; "
        "ALTER TABLE lake.requests DROP COLUMN branches; "
        "DELETE FROM lake.migrations WHERE version > 2"
    )
    transaction(lake, lambda tx: tx.run_script(older))
    apply_pending(lake)
    found = {response.request_id: response for response in load_responses(lake, "e")}
    assert found == {response.request_id: response for response in responses}
    assert put_responses(lake, "e", [make_response(9)]) == 1


def test_other_ducklake_format_is_refused(sqlite_lake: LakeConfig) -> None:
    with closing(sqlite3.connect(sqlite_lake.catalog)) as catalog, catalog:
        catalog.execute("UPDATE ducklake_metadata SET value = '9.0' WHERE key = 'version'")
    with pytest.raises(LakeError, match="update Pawl"), open_lake(sqlite_lake):
        pass


@pytest.mark.parametrize("keep", [0, 4096])
def test_damaged_catalogue_is_one_line(sqlite_lake: LakeConfig, keep: int) -> None:
    path = Path(sqlite_lake.catalog)
    content = path.read_bytes()
    path.write_bytes(content[:keep] + b"\7" * (len(content) - keep))
    with pytest.raises(LakeError, match="damaged") as caught, open_lake(sqlite_lake):
        pass
    assert "\n" not in str(caught.value)


def test_missing_lake_is_not_made_by_a_reader(tmp_path: Path) -> None:
    config = LakeConfig(catalog=str(tmp_path / "no.sqlite"), data_path=tmp_path / "data")
    with pytest.raises(LakeError, match="no lake"), open_lake(config, read_only=True):
        pass
    assert list(tmp_path.iterdir()) == []


def test_lost_catalogue_is_not_replaced_by_an_empty_one(sqlite_lake: LakeConfig) -> None:
    with open_lake(sqlite_lake) as lake:
        put_scores(lake, "e", "1", [make_score(number) for number in range(50)])
    Path(sqlite_lake.catalog).unlink()
    with pytest.raises(LakeError, match="catalogue is gone"), open_lake(sqlite_lake):
        pass


def test_moved_lake_opens(sqlite_lake: LakeConfig, tmp_path: Path) -> None:
    with open_lake(sqlite_lake) as lake:
        put_scores(lake, "e", "1", [make_score(number) for number in range(50)])
    shutil.move(tmp_path / "lake", tmp_path / "it's elsewhere")
    place = tmp_path / "it's elsewhere"
    moved = LakeConfig(catalog=str(place / "lake.sqlite"), data_path=place / "data")
    with open_lake(moved) as lake:
        assert len(load_scores(lake, "e")) == 50


def test_password_is_in_no_message(tmp_path: Path) -> None:
    for catalog in (
        f"postgres:host={tmp_path} user=pawl password=hush",
        "postgres:postgresql://pawl:hush@localhost:1/lake",
    ):
        with (
            pytest.raises(LakeError, match="can't be reached") as caught,
            open_lake(LakeConfig(catalog=catalog, data_path=tmp_path)),
        ):
            pass
        assert "hush" not in str(caught.value)


def test_failed_function_leaves_nothing(lake: Lake) -> None:
    def fail(tx: Transaction) -> None:
        tx.change("INSERT INTO lake.ledger_head VALUES (5, 'x')")
        raise KeyError("stop")

    with pytest.raises(KeyError):
        transaction(lake, fail)
    assert lake.rows("SELECT seq FROM lake.ledger_head") == [(0,)]


def test_guarded_writes_that_overlap_run_one_after_the_other(config: LakeConfig) -> None:
    """Two transactions see the same state; the second to commit must run again."""
    runs = []
    with open_lake(config) as lake, open_lake(config) as other:

        def write(tx: Transaction) -> None:
            seen = tx.rows("SELECT seq FROM lake.ledger_head")[0][0]
            runs.append(seen)
            if len(runs) == 1:  # past the turn of `transaction`, as a foreign writer would be
                cursor = other._connection.cursor()
                cursor.execute("UPDATE lake.ledger_head SET seq = seq + 10")
            tx.change("UPDATE lake.ledger_head SET seq = ?", [seen + 1])

        transaction(lake, write)
        assert runs == [0, 10]
        assert lake.rows("SELECT seq FROM lake.ledger_head") == [(11,)]


@pytest.mark.timeout(120)
def test_racing_processes_store_each_key_once(
    config: LakeConfig, tmp_path: Path, start: Start
) -> None:
    workers = [start("write_same_scores", config, tmp_path, "e") for _ in range(2)]
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    (tmp_path / "go").touch()
    assert sorted(int(worker.stdout.readline()) for worker in workers) == [0, 500]
    with open_lake(config) as lake:
        scores = load_scores(lake, "e")
    assert len(scores) == 500
    assert len({score.value for score in scores}) == 1


@pytest.mark.timeout(120)
def test_writers_go_on_beside_readers_and_an_idle_open_reader(
    config: LakeConfig, tmp_path: Path, start: Start
) -> None:
    ids = [digest(number)[:32] for number in range(4)]
    with open_lake(config, read_only=True) as idle:
        cursor = idle._connection.cursor()
        cursor.execute("BEGIN")
        cursor.execute("SELECT count(*) FROM lake.scores").fetchall()
        reader = start("read_scores", config, tmp_path, ids[0])
        writers = [start("write_scores", config, tmp_path, each, 3) for each in ids]
        assert [writer.wait() for writer in writers] == [0] * 4
        (tmp_path / "stop").touch()
        assert reader.wait() == 0
        assert int(reader.stdout.read()) > 0
        assert cursor.execute("SELECT count(*) FROM lake.scores").fetchall() == [(0,)]
        cursor.close()
    with open_lake(config) as lake:
        assert [len(load_scores(lake, each)) for each in ids] == [300] * 4
