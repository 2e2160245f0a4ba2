"""Processes of `pawl up`: started, found ready, started again, ended with all they started."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evals.errors import EngineError
from pipelines.services.leftovers import end_leftovers, note_parts, read_parts
from pipelines.services.part import Part, end_groups, group_lives, listens, start_part
from pipelines.services.parts import free_port

SERVE = "import http.server as h; h.HTTPServer(('127.0.0.1', {port}), h.BaseHTTPRequestHandler)"
CHILD = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', '{child}']); {rest}"
SLEEP = "import time; time.sleep(600)"


def part(code: str, listens: tuple[str, int] | Path | None = None, start_s: float = 20) -> Part:
    return Part(
        name="part",
        command=(sys.executable, "-c", code),
        environment={"PART": "yes"},
        listens=listens,
        start_s=start_s,
    )


def test_a_part_is_ready_when_it_listens(tmp_path: Path) -> None:
    port = free_port()
    running = start_part(
        part(SERVE.format(port=port) + ".serve_forever()", ("127.0.0.1", port)), tmp_path
    )
    try:
        running.wait_until_ready()
        assert listens(("127.0.0.1", port))
    finally:
        running.end()
    assert not running.alive
    assert not listens(("127.0.0.1", port))


def test_a_part_that_ends_at_once_is_told_with_the_last_line_of_its_log(tmp_path: Path) -> None:
    code = "import sys; print('first'); print('no such option'); sys.exit(4)"
    running = start_part(part(code, ("127.0.0.1", free_port())), tmp_path)
    with pytest.raises(EngineError, match="exit code 4: no such option") as told:
        running.wait_until_ready()
    assert str(tmp_path / "part.log") in told.value.fix


def test_a_part_that_never_listens_is_given_up(tmp_path: Path) -> None:
    running = start_part(part(SLEEP, ("127.0.0.1", free_port()), start_s=0.5), tmp_path)
    try:
        with pytest.raises(EngineError, match="does not answer"):
            running.wait_until_ready()
    finally:
        running.end()


def test_a_taken_port_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(EngineError, match="taken by another process"),
    ):
        start_part(part(SLEEP, ("127.0.0.1", taken.getsockname()[1])), tmp_path)
    assert not (tmp_path / "part.log").exists()


def test_ending_a_part_ends_what_it_started_even_after_it_died(tmp_path: Path) -> None:
    child = SLEEP.replace("'", "")
    running = start_part(part(CHILD.format(child=child, rest="sys.exit(0)")), tmp_path)
    running.process.wait(20)
    assert group_lives(running.process.pid)
    running.end()
    assert not group_lives(running.process.pid)


def test_a_process_that_ignores_the_asking_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.services.part.END_S", 0.5)
    deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); "
    running = start_part(part(deaf + "time.sleep(600)"), tmp_path)
    while "deaf" not in running.log.read_text():
        time.sleep(0.02)
    end_groups([running.process.pid])
    running.process.wait(20)
    assert running.process.returncode == -9


def test_leftovers_of_a_killed_pawl_up_are_found_and_ended(tmp_path: Path) -> None:
    left = subprocess.Popen([sys.executable, "-c", SLEEP], start_new_session=True)
    note_parts(tmp_path, [("daemon", left.pid, "–")])
    assert [one.name for one in read_parts(tmp_path)] == ["daemon"]
    assert end_leftovers(tmp_path) == ("daemon",)
    assert left.wait(20) == -15
    assert read_parts(tmp_path) == ()


def test_a_number_that_another_process_has_now_is_not_ended(tmp_path: Path) -> None:
    other = subprocess.Popen([sys.executable, "-c", SLEEP], start_new_session=True)
    try:
        note_parts(tmp_path, [("daemon", other.pid, "–")])
        file = tmp_path / "services.json"
        started = read_parts(tmp_path)[0].started
        file.write_text(file.read_text().replace(str(started), str(started - 1)))
        assert end_leftovers(tmp_path) == ()
        assert other.poll() is None
    finally:
        os.killpg(other.pid, 9)
        other.wait()


@pytest.mark.parametrize("text", ["", "[", '[{"name": 1}]', "null"])
def test_an_unreadable_note_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "services.json").write_text(text)
    assert read_parts(tmp_path) == ()
