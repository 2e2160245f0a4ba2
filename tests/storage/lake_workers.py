"""Processes that the tests of storage start and kill."""

from __future__ import annotations

import os
import sys
import time
import uuid
from pathlib import Path

from lake_builders import digest, make_request, make_response, make_score

from evals.errors import PromotionRefused
from evals.plan import owed_requests
from evals.response import FinishReason, Response
from storage.channels import Channel, Ground, Holder, Move, load_channel, move_channel
from storage.connection import Lake, LakeConfig, open_lake
from storage.ledger import append_entry, write_ledger
from storage.scores import load_scores, put_scores
from storage.spool import Spool
from storage.store import LakeStore


def say(text: str) -> None:
    print(text, flush=True)


def wait_for_go(folder: Path) -> None:
    say("ready")
    while not (folder / "go").exists():
        time.sleep(0.001)


def open_and_leave(config: LakeConfig, folder: Path) -> None:
    """Open the lake when the file ``go`` is there."""
    wait_for_go(folder)
    with open_lake(config) as lake:
        say(str(lake.rows("SELECT count(*) FROM lake.migrations")[0][0]))


def run_job(config: LakeConfig, folder: Path, evaluation_id: str, count: str, batch: str) -> None:
    """Answer what is owed, in batches, each answer with a text of its own; say every step."""
    requests = [make_request(number, repeats=2) for number in range(int(count))]
    with open_lake(config) as lake:
        store = LakeStore(lake, folder)
        with store.evaluation_lock(evaluation_id):
            while owed := owed_requests(requests, store.stored_keys(evaluation_id))[: int(batch)]:
                with store.spool_writer(evaluation_id) as writer:
                    for request in owed:
                        for repeat in request.repeats:
                            writer.append(
                                Response(
                                    request_id=request.request_id,
                                    repeat=repeat,
                                    text=uuid.uuid4().hex,
                                    token_ids=request.token_ids,
                                    finish_reason=FinishReason.STOP,
                                    prompt_tokens=1,
                                    output_tokens=1,
                                )
                            )
                            say("written")
                            time.sleep(0.001)
                say("settling")
                store.settle(evaluation_id)
                say("settled")
            store.settle(evaluation_id)
    say("done")


def write_spool(_: LakeConfig, folder: Path, evaluation_id: str) -> None:
    """Write responses for ever, saying the number of each when it is written."""
    with Spool(folder).writer(evaluation_id) as writer:
        for number in range(10**9):
            writer.append(make_response(number))
            os.write(1, f"{number}\n".encode())


def write_scores(config: LakeConfig, _: Path, evaluation_id: str, batches: str) -> None:
    with open_lake(config) as lake:
        for batch in range(int(batches)):
            rows = [make_score(100 * batch + number) for number in range(100)]
            put_scores(lake, evaluation_id, "1", rows)
    say("done")


def write_same_scores(config: LakeConfig, folder: Path, evaluation_id: str) -> None:
    """Race others for the same keys when the file ``go`` is there."""
    with open_lake(config) as lake:
        say("ready")
        while not (folder / "go").exists():
            time.sleep(0.001)
        value = os.getpid() % 1000 / 1000
        rows = [make_score(number, value) for number in range(500)]
        say(str(put_scores(lake, evaluation_id, "1", rows)))


def read_scores(config: LakeConfig, folder: Path, evaluation_id: str) -> None:
    """Read until the file ``stop`` is there; whole batches only may be seen."""
    with open_lake(config, read_only=True) as lake:
        reads = 0
        while not (folder / "stop").exists():
            count = len(load_scores(lake, evaluation_id))
            if count % 100:
                sys.exit(f"saw {count} scores")
            reads += 1
            time.sleep(0.05)
        say(str(reads))


def write_entries(config: LakeConfig, folder: Path, name: str, count: str) -> None:
    with open_lake(config) as lake:
        for number in range(int(count)):
            write_ledger(
                lake,
                folder / name,
                lambda tx, number=number: append_entry(
                    tx, kind="waiver", payload={"number": number, "of": os.getpid()}, who="me"
                ),
            )
    say("done")


def try_move(lake: Lake, head_file: Path, channel: Channel, run: str, step: int) -> bool:
    """Return whether this process won the move."""
    to = Holder(run=run, step=step, digest=digest((run, step)))
    move = Move(channel=channel, to=to, ground=Ground.PASS, decision="d")
    try:
        move_channel(lake, head_file, move, run)
    except PromotionRefused:
        return False
    return True


def move_once(config: LakeConfig, folder: Path, head: str, run: str) -> None:
    """Move the channel from where it was seen before any of the processes moved it."""
    with open_lake(config) as lake:
        seen = load_channel(lake, "production")
        wait_for_go(folder)
        say(str(int(try_move(lake, folder / head, seen, run, 1))))


def move_often(config: LakeConfig, folder: Path, head: str, run: str, count: str) -> None:
    """Try as often as told to move the channel from where it is; say how often that was won."""
    with open_lake(config) as lake:
        wait_for_go(folder)
        won = 0
        for step in range(int(count)):
            seen = load_channel(lake, "production")
            won += try_move(lake, folder / head, seen, run, step)
        say(str(won))


WORKERS = {
    function.__name__: function
    for function in (
        open_and_leave,
        run_job,
        write_spool,
        write_scores,
        write_same_scores,
        read_scores,
        write_entries,
        move_once,
        move_often,
    )
}

if __name__ == "__main__":
    NAME, CATALOG, DATA_PATH, FOLDER, *ARGUMENTS = sys.argv[1:]
    WORKERS[NAME](LakeConfig(catalog=CATALOG, data_path=Path(DATA_PATH)), Path(FOLDER), *ARGUMENTS)
