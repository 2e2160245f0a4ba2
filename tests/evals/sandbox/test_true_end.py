"""Only a program that ran to the end of its last statement has passed."""

from __future__ import annotations

import pytest
from sandbox_walls import needs_sandbox

from evals.sandbox import Execution, Limits, ProgramOutcome, run_program

pytestmark = needs_sandbox

BRIEF = Limits(wall_s=1, cpu_s=1)

HUMANEVAL_PROMPT = '''def add(a: int, b: int) -> int:
    """Return the sum.

    >>> add(1, 2)
    3
    """
'''
HUMANEVAL_TESTS = """

METADATA = {}

def check(candidate):
    assert candidate(1, 2) == 3
    assert candidate(-1, 1) == 0

check(add)
"""

TO_THE_END = {
    "nothing": "",
    "unicode": "größe = '😀'\nassert len(größe) == 1\nprint(größe)",
    "humaneval": HUMANEVAL_PROMPT + "    return a + b" + HUMANEVAL_TESTS,
    "doctest": HUMANEVAL_PROMPT + "    return a + b\nimport doctest\n"
    "assert doctest.testmod().attempted == 1",
    "unittest": "import unittest\nclass T(unittest.TestCase):\n    def test(self): pass\n"
    "unittest.main(exit=False)",
    "caught_exit": "import sys\ntry:\n    sys.exit(1)\nexcept SystemExit:\n    pass",
    "main_module": "import sys\nif __name__ == '__main__':\n    x = 1\n"
    "assert sys.modules['__main__'].x == 1",
    "threads": "import threading\nthreads = [threading.Thread(target=print) for _ in range(4)]\n"
    "for t in threads: t.start()\nfor t in threads: t.join()",
    "pool": "import multiprocessing\nwith multiprocessing.Pool(2) as pool:\n"
    "    assert pool.map(abs, [-1, 2]) == [1, 2]",
    "asyncio": "import asyncio\nasyncio.run(asyncio.sleep(0.01))",
    "subprocess": "import subprocess\nsubprocess.run(['echo', 'hi'], check=True)",
    "profile_left_on": "import sys\nsys.settrace(lambda *a: None)\nsys.setprofile(lambda *a: None)",
    "closed_descriptors": "import os\nos.closerange(0, 256)",
    "replaced_streams": "import io, sys\nsys.stdout = sys.stderr = io.StringIO()\nprint('x')",
    "deleted_files": "import os\nfor name in os.listdir('.'): os.remove(name)",
    "numpy": "import numpy\nassert numpy.allclose(numpy.ones((9, 9)) @ numpy.ones(9), 9)",
    "copy_that_ends_too": "import os\nif os.fork():\n    assert os.wait()[1] == 0",
    "interrupted": "import os, signal\ntry:\n    os.kill(os.getpid(), signal.SIGINT)\n"
    "except KeyboardInterrupt:\n    pass\nelse:\n    assert False",
    "no_future_of_ours": "def f(x: 1 + 1): pass\nassert f.__annotations__['x'] == 2",
}


@pytest.mark.parametrize("name", TO_THE_END)
def test_passes_what_runs_to_its_end(name: str) -> None:
    execution = run_program(TO_THE_END[name])
    assert (execution.outcome, execution.error) == (ProgramOutcome.PASSED, "")
    assert execution.exit_code == 0


def test_prints_and_times_are_reported(wall: object) -> None:
    execution = run_program(
        "import sys, time\nprint('out')\nsys.stderr.write('err')\ntime.sleep(0.2)"
    )
    assert execution.outcome is ProgramOutcome.PASSED
    assert execution.output == "out\nerr"
    assert 0.2 <= execution.wall_s < 5
    assert 0 < execution.cpu_s < 0.2


def test_threads_are_joined_before_the_end() -> None:
    late = "import threading, time\ndef late():\n    time.sleep(0.1)\n    print('late')\n"
    execution = run_program(late + "threading.Thread(target=late).start()")
    assert (execution.outcome, execution.output) == (ProgramOutcome.PASSED, "late\n")


FAILS = {
    "assertion": ("x = 1\nassert x == 2, 'no'", "AssertionError: no"),
    "humaneval": (HUMANEVAL_PROMPT + "    return a - b" + HUMANEVAL_TESTS, "AssertionError"),
    "syntax": ("def f(:\n    pass", "SyntaxError: invalid syntax"),
    "recursion": ("def f(): f()\nf()", "RecursionError: maximum recursion depth exceeded"),
    "no_packages": ("import pytest", "ModuleNotFoundError: No module named 'pytest'"),
    "stdin_is_empty": ("input()", "EOFError: EOF when reading a line"),
}


@pytest.mark.parametrize("name", FAILS)
def test_fails_what_raises(name: str) -> None:
    program, error = FAILS[name]
    execution = run_program(program)
    assert (execution.outcome, execution.error) == (ProgramOutcome.FAILED, error)
    assert execution.exit_code == 1
    assert "evals" not in execution.output


LEAVES_EARLY = {
    "sys_exit": "import sys\nprint('PASS')\nsys.exit(0)\nassert False",
    "sys_exit_last": "import sys\nsys.exit(0)",
    "os_exit": "import os\nprint('PASS', flush=True)\nos._exit(0)",
    "system_exit": "raise SystemExit",
    "quit_in_thread": "import os, threading, time\n"
    "threading.Thread(target=os._exit, args=(0,)).start()\ntime.sleep(9)",
    "atexit": "import atexit, os\natexit.register(os._exit, 0)\nassert False",
    "excepthook": "import os, sys\nsys.excepthook = sys.__excepthook__ = lambda *a: os._exit(0)\n"
    "assert False",
    "execv": "import os\nos.execv('/bin/true', ['true'])",
    "forked_copy_at_the_end": "import os\nif os.fork():\n    os.wait()\n    os._exit(0)",
    "stop_iteration": "raise StopIteration",
    "patched_exit": "import posix\nposix._exit = lambda code: None\nraise SystemExit(0)",
    "patched_runner": """
import builtins, posix, sys
frame = sys._getframe()
while frame:
    for name in list(frame.f_globals):
        if callable(frame.f_globals[name]) and name.startswith("_"):
            frame.f_globals[name] = lambda *a, **k: 0
    frame = frame.f_back
posix._exit = lambda code: None
builtins.sorted = builtins.exec = builtins.compile = lambda *a, **k: 0
raise SystemExit(0)
""",
    "killed_parent": "import os\nos.kill(os.getppid(), 9)\nos.kill(1, 9)\nassert False",
    "keeper_signalled": "import os\nfor number in range(1, 65):\n    os.kill(1, number)\n"
    "    os.kill(1, number)\nassert False",
    "report_forged": "import os\nfor fd in range(3, 256):\n"
    "    try: os.write(fd, b'passed 0 0 0 0 0\\n')\n    except OSError: pass\nos._exit(0)",
    "keeper_pipe": "open('/proc/1/fd/1', 'w').write('passed 0 0 0 0 0\\n')",
    "keeper_memory": "open('/proc/1/mem', 'r+b')",
}


@pytest.mark.parametrize("name", LEAVES_EARLY)
def test_leaving_early_is_not_passing(name: str) -> None:
    execution = run_program(LEAVES_EARLY[name], limits=BRIEF)
    assert execution.outcome is ProgramOutcome.FAILED
    assert execution.error


STOP = "import os\ndef stop(*args): os.kill(os.getpid(), 19)\n"
PRETENDS = {
    "stop": STOP + "stop()\nassert False",
    "stop_in_stream": STOP
    + "import sys\nclass S:\n    write = flush = stop\nsys.stdout = sys.stderr = S()\nassert False",
    "stop_in_excepthook": STOP + "import sys\nsys.__excepthook__ = stop\nassert False",
    "stop_in_str": STOP + "class E(BaseException):\n    __str__ = stop\nraise E",
    "stop_in_finalizer": STOP
    + "class E(BaseException):\n    __del__ = stop\nclass F:\n    __del__ = stop\nf = F()\nraise E",
    "stop_in_handler": STOP
    + "import signal, time\nsignal.signal(14, stop)\nsignal.setitimer(0, 0.01, 0.001)\n"
    "time.sleep(0.5)\nassert False",
    "stop_in_thread": STOP
    + "import threading, time\nthreading.Thread(target=stop).start()\ntime.sleep(9)",
    "stop_hidden": STOP + "import ctypes\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\nstop()",
    "stop_and_go": STOP + "import signal\nme = os.getpid()\nif os.fork() == 0:\n    while True:\n"
    "        os.kill(me, signal.SIGCONT)\nwhile True:\n    stop()",
}


@pytest.mark.parametrize("name", PRETENDS)
def test_stopping_elsewhere_is_not_the_end(name: str) -> None:
    execution = run_program(PRETENDS[name], limits=Limits(wall_s=0.4, cpu_s=1))
    assert execution.outcome in {ProgramOutcome.TIMEOUT, ProgramOutcome.FAILED}


def test_a_nul_fails() -> None:
    execution = run_program("x = 1\0")
    assert execution.outcome is ProgramOutcome.FAILED
    assert execution.error.endswith("source code string cannot contain null bytes")


def test_a_surrogate_half_is_refused() -> None:
    execution = run_program("x = '\ud800'")
    assert execution == Execution(
        outcome=ProgramOutcome.REFUSED,
        exit_code=None,
        output="",
        error="half a surrogate pair at character 5 can't be in a source file",
        wall_s=0.0,
        cpu_s=0.0,
    )


def test_a_huge_program_is_refused() -> None:
    assert run_program("#" * (1 << 20)).outcome is ProgramOutcome.PASSED
    assert run_program("#" * ((1 << 20) + 1)).outcome is ProgramOutcome.REFUSED
