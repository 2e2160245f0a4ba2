from __future__ import annotations

import errno
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Start
from hypothesis import given
from hypothesis import strategies as st
from lake_builders import digest, make_evaluation, make_request, make_response
from test_lake_rows import any_response

from evals.errors import LakeError
from evals.response import Response
from storage import spool as spool_module
from storage.connection import Lake, LakeConfig, open_lake
from storage.responses import load_responses, put_responses
from storage.spool import DamageKind, Spool, SpoolWriter, evaluation_lock
from storage.store import LakeStore

E = make_evaluation().evaluation_id


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "spool")


@pytest.fixture
def lake(sqlite_lake: LakeConfig) -> Iterator[Lake]:
    with open_lake(sqlite_lake) as opened:
        yield opened


def fill(spool: Spool, *numbers: int, text: str | None = None) -> Path:
    """Return a closed file with these responses."""
    with spool.writer(E) as writer:
        for number in numbers:
            writer.append(make_response(number, text=text))
    return writer.path


def numbers_of(responses: Iterator[Response]) -> list[int]:
    return [response.token_ids[0] for response in responses]


@given(st.lists(st.integers(0, 9), max_size=5).flatmap(lambda n: st.tuples(*map(any_response, n))))
def test_responses_come_back(tmp_path_factory: pytest.TempPathFactory, responses: tuple) -> None:
    spool = Spool(tmp_path_factory.mktemp("spool"))
    with spool.writer(E) as writer:
        for response in responses:
            writer.append(response)
    first = {(each.request_id, each.repeat): each for each in reversed(responses)}
    assert {(each.request_id, each.repeat): each for each in spool.read(E)} == first
    assert spool.stored_keys(E) == first.keys()


def test_nothing_is_there_before_the_first_writer(spool: Spool, lake: Lake) -> None:
    assert list(spool.read(E)) == []
    assert spool.stored_keys(E) == frozenset()
    assert spool.live_writers(E) == 0
    assert spool.move_to_lake(lake, E).moved == 0


@pytest.mark.parametrize("name", ["", "..", "a/b", ".hidden", "a\0"])
def test_names_never_become_paths(spool: Spool, name: str) -> None:
    with pytest.raises(ValueError, match="not an evaluation id"):
        spool.writer(name)


def test_live_files_are_read_and_left_alone(spool: Spool, lake: Lake) -> None:
    with spool.writer(E) as writer:
        writer.append(make_response(1))
        assert numbers_of(spool.read(E)) == [1]
        assert spool.live_writers(E) == 1
        report = spool.move_to_lake(lake, E)
        assert (report.moved, report.live_files) == (0, 1)
        writer.append(make_response(2))
    assert spool.live_writers(E) == 0
    assert spool.move_to_lake(lake, E).moved == 2
    assert list(spool.read(E)) == []
    assert numbers_of(iter(load_responses(lake, E))) in ([1, 2], [2, 1])


def test_moving_twice_is_harmless_and_the_first_answer_stays(spool: Spool, lake: Lake) -> None:
    put_responses(lake, E, [make_response(1, text="lake")])
    fill(spool, 1, 2, text="first")
    fill(spool, 2, 3, text="second")
    report = spool.move_to_lake(lake, E)
    assert (report.moved, report.already_stored) == (2, 2)
    fill(spool, 1, 2, 3, text="third")
    assert spool.move_to_lake(lake, E).moved == 0
    found = {each.token_ids[0]: each.text for each in load_responses(lake, E)}
    assert found == {1: "lake", 2: "first", 3: "second"}


def test_kill_between_commit_and_removal_is_harmless(
    spool: Spool, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(spool, *range(30))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(spool_module, "_put_away", killed)
        with pytest.raises(KeyboardInterrupt):
            spool.move_to_lake(lake, E)
    before = load_responses(lake, E)
    assert len(before) == 30
    report = spool.move_to_lake(lake, E)
    assert (report.moved, report.already_stored) == (0, 30)
    assert load_responses(lake, E) == before
    assert list(spool.folder.glob("*/*.spool")) == []


def test_failed_move_leaves_the_spool(spool: Spool, sqlite_lake: LakeConfig) -> None:
    path = fill(spool, 1, 2)
    content = path.read_bytes()
    with open_lake(sqlite_lake, read_only=True) as lake, pytest.raises(LakeError):
        spool.move_to_lake(lake, E)
    assert path.read_bytes() == content


def test_torn_tail_at_every_byte_keeps_what_is_before(spool: Spool) -> None:
    path = fill(spool, 1, 2)
    content = path.read_bytes()
    header_end, first_end, _ = record_ends(content)
    for size in range(len(content)):
        path.write_bytes(content[:size])
        assert numbers_of(spool.read(E)) == ([1] if size >= first_end else [])
        with path.open("rb") as file:
            damage = spool_module._collect(path, file, E, [])
        whole = size in (header_end, first_end)
        assert [each.kind for each in damage] == ([] if whole else [DamageKind.TORN]), size


@pytest.mark.parametrize("cut", [1, 200, 1000])
def test_torn_file_is_moved_and_taken_away(spool: Spool, lake: Lake, cut: int) -> None:
    path = fill(spool, 1, 2)
    content = path.read_bytes()
    first_end = record_ends(content)[1]
    size = max(len(content) - cut, first_end + 1)
    path.write_bytes(content[:size])
    report = spool.move_to_lake(lake, E)
    assert report.moved == 1
    assert [(each.kind, each.offset, each.lost_bytes) for each in report.damage] == [
        (DamageKind.TORN, first_end, size - first_end)
    ]
    assert list(spool.folder.glob("*/*.spool")) == []


def test_every_flipped_byte_is_found_and_costs_one_record_or_the_rest(spool: Spool) -> None:
    path = fill(spool, 1, 2, 3)
    content = path.read_bytes()
    ends = record_ends(content)
    for place in range(len(content)):
        altered = bytearray(content)
        altered[place] ^= 0x20
        path.write_bytes(altered)
        hit = sum(place >= end for end in ends)  # 0: the header, then the number of the record
        found = numbers_of(spool.read(E))
        in_prefix = hit > 0 and place - ends[hit - 1] < 8
        if hit == 0:
            assert found == []
        elif in_prefix:
            assert found == list(range(1, hit))
        else:
            assert found == [number for number in (1, 2, 3) if number != hit]


def record_ends(content: bytes) -> list[int]:
    """Return where the header and each record end."""
    ends = [len(spool_module._HEADER)]
    while ends[-1] < len(content):
        (length,) = struct.unpack_from("<I", content, ends[-1])
        ends.append(ends[-1] + 12 + length)
    return ends


def test_altered_record_is_kept_beside_and_the_others_move(spool: Spool, lake: Lake) -> None:
    path = fill(spool, 1, 2, 3)
    content = bytearray(path.read_bytes())
    start, end = record_ends(content)[1:3]
    content[end - 3] ^= 1
    path.write_bytes(content)
    report = spool.move_to_lake(lake, E)
    assert report.moved == 2
    (damage,) = report.damage
    assert (damage.kind, damage.offset, damage.lost_bytes) == (
        DamageKind.ALTERED,
        start,
        end - start,
    )
    assert path.with_suffix(".damaged").read_bytes() == content
    assert spool.move_to_lake(lake, E).damage == ()
    fill(spool, 2)
    assert spool.move_to_lake(lake, E).moved == 1


def test_file_of_another_version_stays(spool: Spool, lake: Lake) -> None:
    path = fill(spool, 1)
    content = bytearray(path.read_bytes())
    content[len(spool_module._MAGIC)] += 1
    path.write_bytes(content)
    for _ in range(2):
        (damage,) = spool.move_to_lake(lake, E).damage
        assert damage.kind is DamageKind.UNKNOWN_VERSION
        assert path.read_bytes() == content


def test_file_of_another_evaluation_is_not_taken(spool: Spool, lake: Lake) -> None:
    path = fill(spool, 1)
    other = digest("other")[:32]
    (spool.folder / other).mkdir()
    path.rename(spool.folder / other / path.name)
    assert list(spool.read(other)) == []
    assert [each.kind for each in spool.move_to_lake(lake, other).damage] == [DamageKind.ALTERED]


class FailingDisk:
    """Stands for ``os`` in the spool: writes only ``room`` bytes more, then fails."""

    def __init__(self, room: int, code: int) -> None:
        self.room = room
        self.code = code

    def __getattr__(self, name: str) -> object:
        return getattr(os, name)

    def write(self, descriptor: int, data: memoryview) -> int:
        if not self.room:
            raise OSError(self.code, os.strerror(self.code))
        written = os.write(descriptor, data[: self.room])
        self.room -= written
        return written


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_failed_write_is_said_and_never_taken_as_whole(
    spool: Spool, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    with spool.writer(E) as writer:
        writer.append(make_response(1))
        for room in (0, 1, 15, 100):
            with monkeypatch.context() as patch:
                patch.setattr(spool_module, "os", FailingDisk(room, code))
                with pytest.raises(LakeError, match=os.strerror(code)):
                    writer.append(make_response(2))
            assert numbers_of(spool.read(E)) == [1]
        writer.append(make_response(3))
    assert numbers_of(spool.read(E)) == [1, 3]


def test_failed_sync_is_said(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    writer = spool.writer(E)
    writer.append(make_response(1))
    with monkeypatch.context() as patch:
        patch.setattr(spool_module.os, "fsync", fail)
        with pytest.raises(LakeError, match="output error"):
            writer.seal()
    assert spool.live_writers(E) == 0


def test_records_are_synced_within_a_second(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = threading.Event()
    with spool.writer(E) as writer:
        monkeypatch.setattr(spool_module.os, "fsync", lambda _: synced.set())
        writer.append(make_response(1))
        assert synced.wait(1.0)


FULL_FILE = """
import resource, signal, sys
from pathlib import Path
from lake_builders import make_response
from evals.errors import LakeError
from storage.spool import Spool
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
with Spool(Path(sys.argv[1])).writer(sys.argv[2]) as writer:
    for number in range(100):
        try:
            writer.append(make_response(number))
        except LakeError as error:
            print(number)
            break
"""


def test_a_file_that_can_not_grow_ends_with_a_whole_record(spool: Spool) -> None:
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] != 0
    done = subprocess.run(
        [sys.executable, "-c", FULL_FILE, spool.folder, E],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, Path(__file__).parents))},
        capture_output=True,
        text=True,
        check=True,
    )
    written = int(done.stdout)
    assert 0 < written < 100
    assert numbers_of(spool.read(E)) == list(range(written))
    (path,) = spool.folder.glob("*/*.spool")
    assert record_ends(path.read_bytes())[-1] == path.stat().st_size


def test_sealed_writer_refuses(spool: Spool) -> None:
    writer = spool.writer(E)
    writer.seal()
    writer.seal()
    with pytest.raises(LakeError, match="sealed"):
        writer.append(make_response(1))


def test_threads_may_share_a_writer(spool: Spool) -> None:
    with spool.writer(E) as writer:
        threads = [
            threading.Thread(
                target=lambda base=base: [
                    writer.append(make_response(base * 100 + n)) for n in range(100)
                ]
            )
            for base in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(numbers_of(spool.read(E))) == list(range(400))


def test_killed_writer_loses_nothing_that_it_had_written(
    spool: Spool, sqlite_lake: LakeConfig, lake: Lake, start: Start
) -> None:
    rng = random.Random(5)
    for _ in range(3):
        worker = start("write_spool", sqlite_lake, spool.folder, E)
        first = worker.stdout.readline()
        assert first == "0\n"
        assert spool.live_writers(E) == 1
        time.sleep(rng.uniform(0, 0.1))
        os.kill(worker.pid, signal.SIGKILL)
        said = [0, *map(int, worker.stdout.read().split())]
        worker.wait()
        assert spool.live_writers(E) == 0
        found = numbers_of(spool.read(E))
        assert found[: len(said)] == said
        assert len(found) <= len(said) + 1
        spool.move_to_lake(lake, E)
        assert len(load_responses(lake, E)) >= len(found)
        lake.rows("DELETE FROM lake.responses")


def key_texts(store: LakeStore) -> dict[tuple[str, int], str | None]:
    rows = store.responses(E)
    texts = {(each.request_id, each.repeat): each.text for each in rows}
    assert len(texts) == len(rows)
    assert texts.keys() == store.stored_keys(E)
    return texts


@pytest.mark.timeout(180)
def test_job_killed_at_any_moment_ends_with_each_key_once_and_old_rows_unchanged(
    config: LakeConfig, tmp_path: Path, start: Start
) -> None:
    rng = random.Random(11)
    count = 240
    seen: dict[tuple[str, int], str | None] = {}
    with open_lake(config) as lake:
        store = LakeStore(lake, tmp_path)
        for last_step in (3, 41, 42, 60):  # within the first batch, around its move, in the next
            worker = start("run_job", config, tmp_path, E, count, 20)
            for _ in range(last_step):
                worker.stdout.readline()
            time.sleep(rng.uniform(0, 0.1))
            os.kill(worker.pid, signal.SIGKILL)
            assert worker.wait() == -signal.SIGKILL
            after = key_texts(store)
            assert seen.items() <= after.items()
            assert len(after) > len(seen)
            seen = after
        assert start("run_job", config, tmp_path, E, count, count).wait() == 0
        final = {(each.request_id, each.repeat): each.text for each in load_responses(lake, E)}
        assert seen.items() <= final.items()
        assert final.keys() == {
            (make_request(number, repeats=2).request_id, repeat)
            for number in range(count)
            for repeat in (0, 1)
        }
        assert lake.rows("SELECT count(*) FROM lake.responses") == [(2 * count,)]
        assert list(store.spool.folder.glob("*/*.spool")) == []


def test_one_process_at_a_time_runs_an_evaluation(spool: Spool) -> None:
    class GaveUp(Exception):
        pass

    said = []

    def on_wait(text: str) -> None:
        said.append(text)
        raise GaveUp

    with evaluation_lock(spool.folder, E):
        with pytest.raises(GaveUp), evaluation_lock(spool.folder, E, on_wait):
            pass
        with evaluation_lock(spool.folder, digest("other")[:32], on_wait):
            pass
    assert said == [f"process {os.getpid()} on {os.uname().nodename}"]
    with evaluation_lock(spool.folder, E, on_wait):
        pass


def test_lock_waits_for_writers_that_outlived_their_job(spool: Spool) -> None:
    writer: SpoolWriter = spool.writer(E)
    said = []

    def on_wait(text: str) -> None:
        said.append(text)
        writer.seal()

    with evaluation_lock(spool.folder, E, on_wait):
        assert spool.live_writers(E) == 0
    assert said == ["1 workers of an earlier process that still write"]


def test_store_sees_spool_and_lake_as_one(lake: Lake, tmp_path: Path) -> None:
    store = LakeStore(lake, tmp_path)
    with store.spool_writer(E) as writer:
        writer.append(make_response(1))
    store.settle(E)
    snapshot = store.snapshot()
    with store.spool_writer(E) as writer:
        writer.append(make_response(1, text="later"))
        writer.append(make_response(2))
    assert store.stored_keys(E) == {(digest(1), 0), (digest(2), 0)}
    assert set(store.responses(E)) == {make_response(1), make_response(2)}
    assert store.responses(E, snapshot=snapshot) == (make_response(1),)
    with store.evaluation_lock(E):
        assert store.settle(E).moved == 1
