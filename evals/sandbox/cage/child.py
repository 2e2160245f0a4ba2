"""The process that is the program: set up, run to its end, and stopped there."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # no stub; ``signal`` costs 4 ms for its enums
import posix
import resource
import sys

from evals.sandbox.cage.job import Job
from evals.sandbox.cage.kernel import PR_SET_DUMPABLE, prctl, write_file

PROGRAM_FILE = "/tmp/program.py"
PACKAGE_FOLDER = "/packages"
CALIBRATIONS = 4
"""Ends of the loop before the program: the interpreter's call path settles within two."""
DESCRIPTORS_USED = 64
"""More than the keeper has open when it forks."""


def become_program(job: Job, program_output: int) -> None:
    """Turn the forked child into the program's process; never returns."""
    posix.setsid()
    posix.dup2(program_output, 1)
    posix.dup2(program_output, 2)
    _signal.set_wakeup_fd(-1)
    for number in (_signal.SIGCHLD, _signal.SIGALRM):
        _signal.signal(number, _signal.SIG_DFL)
    _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    posix.closerange(3, DESCRIPTORS_USED)
    prctl(PR_SET_DUMPABLE, 1)  # the keeper has to see where it stops
    _set_limits(job)
    _lay_out(job.program)
    _run_to_end((None, *[""] * (CALIBRATIONS - 1), job.program))


def _set_limits(job: Job) -> None:
    """Set the kernel's own limits on this process and all that it starts."""
    cpu_s = int(job.cpu_s) + 1
    for kind, soft, hard in (
        (resource.RLIMIT_CPU, cpu_s, cpu_s + 1),
        (resource.RLIMIT_AS, job.memory_bytes, job.memory_bytes),
        (resource.RLIMIT_NPROC, job.process_ceiling, job.process_ceiling),
        (resource.RLIMIT_NOFILE, job.files, job.files),
        (resource.RLIMIT_FSIZE, job.tmpfs_bytes, job.tmpfs_bytes),
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_MEMLOCK, 0, 0),
    ):
        resource.setrlimit(kind, (soft, hard))
    write_file("/proc/self/oom_score_adj", b"1000")  # a machine out of memory ends this first


def _lay_out(program: str) -> None:
    """Make the program the main module, as if the interpreter had been called with its file."""
    write_file(PROGRAM_FILE, program.encode())
    main = type(sys)("__main__")
    main.__file__ = PROGRAM_FILE
    sys.modules["__main__"] = main
    for name in [name for name in sys.modules if name.startswith("evals.")]:
        del sys.modules[name]
    sys.argv = [PROGRAM_FILE]
    sys.path[:] = [PROGRAM_FILE.rpartition("/")[0], *sys.path, PACKAGE_FOLDER]


def _run_to_end(sources: tuple[str | None, ...]) -> None:
    """Run one source after the other, and stop this process each time one has ended; never return.

    What runs after a program must be this function's own: its names are bound before, and
    nothing is called from here that a program could have replaced. ``sorted`` is the barrier, a
    C function that passes on any exception of its key function; calls from Python to Python
    would take no stack.
    """
    stop, leave, who, barrier = posix.kill, posix._exit, posix.getpid, sorted
    me, signal = who(), int(_signal.SIGSTOP)
    try:
        for source in sources:
            barrier((source,), key=_run_source)
            if who() != me:
                leave(0)  # a copy that the program forked and that came to its end as well
            stop(me, signal)
    finally:
        leave(1)


def _run_source(source: str | None) -> int:
    """Run a source as the main module, within the barrier; without one, stop right here.

    Returns:
        0, because the barrier sorts by it.
    """
    if source is None:
        posix.kill(posix.getpid(), int(_signal.SIGSTOP))
        return 0
    try:
        exec(  # the sandbox's one purpose
            compile(source, PROGRAM_FILE, "exec", 0, dont_inherit=True),
            sys.modules["__main__"].__dict__,
        )
    except BaseException as error:
        posix._exit(_print_end(error))
        raise  # should the program have replaced that
    if "threading" in sys.modules:
        sys.modules["threading"]._shutdown()  # joins its threads, as the interpreter does
    _flush()
    return 0


def _print_end(error: BaseException) -> int:
    """Print what the interpreter would print of an uncaught exception; return the exit code."""
    try:
        code = error.code if isinstance(error, SystemExit) else 1
        if isinstance(error, SystemExit):
            if code is not None and not isinstance(code, int):
                print(code, file=sys.stderr)
                code = 1
        else:
            where = error.__traceback__
            error.__traceback__ = where.tb_next if where else None  # without the cage's own line
            _flush()
            sys.__excepthook__(type(error), error, error.__traceback__)
        _flush()
        return int(code or 0) & 0xFF
    except BaseException:  # noqa: BLE001 -- the program's own streams and exceptions may do anything
        return 1


def _flush() -> None:
    """Write out what the program printed."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:  # noqa: BLE001 -- the program may have put anything there
            continue
