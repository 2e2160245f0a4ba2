"""No program takes more than its limits, and none goes on after its end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sandbox_walls import needs_sandbox

from evals.errors import InputError
from evals.sandbox import Limits, ProgramOutcome, run_many, run_program
from evals.sandbox.bubblewrap import Wall

pytestmark = needs_sandbox


def is_running(mark: str) -> bool:
    """Return whether any process of the machine has the mark in its command line."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "cmdline").read_bytes():
                return True
        except OSError:
            continue
    return False


def test_an_endless_loop_uses_its_cpu_time_and_no_more(wall: Wall) -> None:
    execution = run_program("while True: pass", limits=Limits(cpu_s=0.3))
    assert (execution.outcome, execution.exit_code) == (ProgramOutcome.TIMEOUT, None)
    assert execution.error == "over 0.3 s of CPU time"
    assert 0.3 <= execution.cpu_s < 1


def test_cpu_time_of_children_counts() -> None:
    program = """
import os, time
while True:
    if os.fork() == 0:
        while time.process_time() < 0.1: pass
        os._exit(0)
    os.wait()
"""
    execution = run_program(program, limits=Limits(cpu_s=0.4))
    assert execution.error == "over 0.4 s of CPU time"


def test_ignoring_the_cpu_signal_does_not_help() -> None:
    program = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
    assert run_program(program, limits=Limits(cpu_s=0.3)).outcome is ProgramOutcome.TIMEOUT


def test_sleep_ends_at_the_wall_clock_limit(wall: Wall) -> None:
    execution = run_program("import time\ntime.sleep(60)", limits=Limits(wall_s=0.3))
    assert (execution.outcome, execution.exit_code) == (ProgramOutcome.TIMEOUT, None)
    assert execution.error == "over 0.3 s of wall-clock time"
    assert 0.3 <= execution.wall_s < 3


def test_a_fork_bomb_is_put_out(wall: Wall) -> None:
    started = time.monotonic()
    # At most 2 ** 9 processes, so that a broken limit fails this test and not the machine.
    bomb = "import os, time\nfor _ in range(9): os.fork()\ntime.sleep(60)"
    execution = run_program(bomb, limits=Limits(cpu_s=3, wall_s=3))
    # Which of its processes gets no more, and so how the first one ends, is the kernel's choice.
    assert execution.outcome is not ProgramOutcome.PASSED
    assert time.monotonic() - started < 10


def test_the_kernel_counts_processes(wall: Wall) -> None:
    program = """
import os, time
made = 0
try:
    while made < 100:
        if os.fork() == 0:
            time.sleep(9)
            os._exit(0)
        made += 1
except BlockingIOError:
    print(made)
"""
    execution = run_program(program, limits=Limits(processes=8))
    assert (execution.error, execution.output) == ("", "7\n")


def test_a_memory_bomb_is_put_out(wall: Wall) -> None:
    execution = run_program(
        "blocks = []\nwhile True: blocks.append(bytearray(4_000_000))",
        limits=Limits(memory_mb=128),
    )
    assert (execution.outcome, execution.error) == (ProgramOutcome.KILLED, "over 128 MB of memory")


def test_memory_of_all_processes_is_summed(wall: Wall) -> None:
    program = (
        "import os, time\nfor _ in range(4):\n    if os.fork() == 0:\n"
        "        block = b'x' * 50_000_000\n        time.sleep(9)\ntime.sleep(9)"
    )
    execution = run_program(program, limits=Limits(memory_mb=128, wall_s=3))
    assert (execution.outcome, execution.error) == (ProgramOutcome.KILLED, "over 128 MB of memory")


def test_an_output_flood_is_capped(wall: Wall) -> None:
    limits = Limits(cpu_s=0.3, output_bytes=1000)
    execution = run_program("while True: print('x' * 1000)", limits=limits)
    assert execution.outcome is ProgramOutcome.TIMEOUT
    kept, _, note = execution.output.rpartition("\n")
    assert len(kept) == 1000
    assert note.endswith("more bytes of output dropped]")


def test_much_output_does_not_fail_a_program() -> None:
    execution = run_program("print('x' * 5_000_000)", limits=Limits(output_bytes=10))
    assert execution.outcome is ProgramOutcome.PASSED
    assert execution.output == "x" * 10 + "\n[4999991 more bytes of output dropped]"


def test_the_end_of_a_traceback_is_kept_after_much_output() -> None:
    execution = run_program("print('x' * 100_000)\nassert False, 'end'")
    assert execution.error == "AssertionError: end"


@pytest.mark.parametrize(
    ("program", "error"),
    [
        ("f = open('big', 'wb')\nwhile True: f.write(b'x' * 100_000)", "OSError: [Errno"),
        (
            "for i in range(10):\n    with open(f'{i}', 'wb') as f: f.write(b'x' * 1_000_000)",
            "OSError: [Errno 28]",
        ),
        (
            "i = 0\nwhile True:\n    open(f'f{i}', 'w').close()\n    i += 1",
            "over 100 files in /tmp",
        ),
        ("files = [open('f', 'w') for _ in range(100)]", "OSError: [Errno 24]"),
        (
            "for i in range(10):\n    open(f'/dev/shm/{i}', 'wb').write(b'x' * 1_000_000)",
            "OSError: [Errno 28]",
        ),
    ],
)
def test_disk_and_files_are_limited(wall: Wall, program: str, error: str) -> None:
    execution = run_program(program, limits=Limits(tmpfs_mb=4, inodes=100))
    assert execution.outcome in {ProgramOutcome.FAILED, ProgramOutcome.KILLED}
    assert execution.error.startswith(error)


def test_a_machine_out_of_memory_ends_the_program_first(wall: Wall) -> None:
    execution = run_program("print(open('/proc/self/oom_score_adj').read().strip())")
    assert execution.output == "1000\n"


def test_a_crash_is_told_by_its_signal() -> None:
    execution = run_program("import ctypes\nctypes.string_at(0)")
    assert (execution.outcome, execution.exit_code) == (ProgramOutcome.KILLED, -11)


def test_nothing_is_left_running() -> None:
    program = (
        "import os, subprocess, time\nfor _ in range(3):\n    subprocess.Popen(['sleep', '987.1'],"
        " start_new_session=True)\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(60)\n"
    )
    assert run_program(program).outcome is ProgramOutcome.PASSED
    assert not is_running("987.1")
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_the_cage_ends_with_its_host(wall: Wall) -> None:
    code = (
        "from evals.sandbox import Limits, program\nfrom evals.sandbox.bubblewrap import Wall\n"
        "from pathlib import Path\n"
        f"wall = Wall(bwrap=Path({str(wall.bwrap)!r}), as_root={wall.as_root})\n"
        "program._choose_wall = lambda: wall\n"
        "program.run_program(\"import os; os.execv('/bin/sleep', ['sleep', '987.2'])\","
        " limits=Limits(wall_s=60))"
    )
    host = subprocess.Popen([sys.executable, "-c", code])
    try:
        until = time.monotonic() + 20
        while not is_running("sleep\x00987.2"):
            assert time.monotonic() < until
            time.sleep(0.02)
    finally:
        host.kill()
        host.wait()
    until = time.monotonic() + 5
    while is_running("sleep\x00987.2"):
        assert time.monotonic() < until
        time.sleep(0.02)


def test_order_is_kept_with_several_at_a_time() -> None:
    programs = [f"import time\ntime.sleep({0.02 * (8 - i)})\nprint({i})" for i in range(8)]
    executions = run_many(programs, Limits(), 8)
    assert [execution.output for execution in executions] == [f"{i}\n" for i in range(8)]


def test_waiting_for_a_busy_cpu_is_not_the_programs_time() -> None:
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    workers = 4 * len(os.sched_getaffinity(0))
    executions = run_many([burn] * workers, Limits(wall_s=0.8, cpu_s=1), workers)
    assert {execution.outcome for execution in executions} == {ProgramOutcome.PASSED}


@pytest.mark.parametrize("field", ["wall_s", "cpu_s", "memory_mb", "output_bytes"])
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")])
def test_a_limit_is_a_number_above_0(field: str, value: float) -> None:
    with pytest.raises(InputError, match=field):
        Limits(**{field: value})  # type: ignore[arg-type]
