"""Runs programs in the sandbox: `run_program`, `run_many`, and `check_sandbox` before either."""

from __future__ import annotations

import functools
import marshal
import os
import platform
import secrets
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from types import CodeType

from evals.errors import SandboxUnavailable
from evals.sandbox.bubblewrap import NOBODY, Wall, build_command, find_bwrap
from evals.sandbox.execution import Execution, Limits, ProgramOutcome
from evals.sandbox.syscalls import build_filter

DEFAULT_LIMITS = Limits()
WALL_CEILING = 10
"""Times ``wall_s``: the longest that a program is let run on a machine without a free CPU."""
LARGEST_PROGRAM_BYTES = 1024 * 1024
START_TAKES_AT_MOST_S = 60.0
"""Beyond the program's own time: start and end of the cage on a machine that is busy."""
COUNTED_PER_NAMESPACE_SINCE = (5, 14)
"""Linux that counts the processes of a user in each user namespace apart."""
SHARED_PROCESS_CEILING = 4096
"""RLIMIT_NPROC where all processes of a user count together; the cage itself counts closer."""
FIRST_USER, USERS = 2_040_000_000, 1 << 20
"""User ids for programs that root runs: no distribution or directory service gives them out."""
CAGE_MODULES = ("job", "kernel", "child", "keeper")
"""The modules of ``cage`` that run inside, each after those it imports."""
BOOTSTRAP = """
import marshal, sys
codes, job = marshal.load(sys.stdin.buffer)
for name, code in codes:
    module = sys.modules[name] = type(sys)(name)
    exec(code, module.__dict__)
module.serve(module.Job(**job))
"""


def check_sandbox() -> None:
    """Prove that programs can be run in isolation here, by running one.

    Raises:
        SandboxUnavailable: They can't; says why and what to do.
    """
    _choose_wall.cache_clear()
    _choose_wall()


def run_program(program: str, *, limits: Limits = DEFAULT_LIMITS) -> Execution:
    """Run one Python program in a cage of its own and return how it ended.

    Args:
        program: The whole source: for a HumanEval-like task prompt, completion, tests and the
            call of the tests. The standard library and numpy are there to import.
        limits: What it may use.

    Raises:
        SandboxUnavailable: No isolation here, or the sandbox itself broke: no word on the program.
    """
    refusal = _find_refusal(program)
    if refusal:
        return Execution(
            outcome=ProgramOutcome.REFUSED,
            exit_code=None,
            output="",
            error=refusal,
            wall_s=0.0,
            cpu_s=0.0,
        )
    return _run_behind(_choose_wall(), program, limits)


def run_many(
    programs: Sequence[str], limits: Limits = DEFAULT_LIMITS, workers: int | None = None
) -> list[Execution]:
    """Run programs, several at a time, and return how they ended in the order given.

    Args:
        programs: Sources, as for `run_program`.
        limits: What each of them may use.
        workers: How many run at a time; as many as there are CPUs for this process by default.

    Raises:
        SandboxUnavailable: As `run_program`; the programs not yet started are not run.
    """
    with ThreadPoolExecutor(workers or len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(lambda program: run_program(program, limits=limits), programs))


def _find_refusal(program: str) -> str:
    """Return why a program is not started, or nothing."""
    try:
        size = len(program.encode())
    except UnicodeEncodeError as error:
        return f"half a surrogate pair at character {error.start} can't be in a source file"
    if size > LARGEST_PROGRAM_BYTES:
        return f"{size} bytes of source, the largest program is {LARGEST_PROGRAM_BYTES}"
    return ""


@functools.lru_cache(maxsize=1)
def _choose_wall() -> Wall:
    """Return the first way to build the wall that runs a program to its end."""
    bwrap = find_bwrap()
    failures = []
    for as_root in (True, False) if os.geteuid() == 0 else (False,):
        wall = Wall(bwrap=bwrap, as_root=as_root)
        try:
            trial = _run_behind(wall, "pass", DEFAULT_LIMITS)
        except SandboxUnavailable as error:
            failures.append(error)
            continue
        if trial.outcome is ProgramOutcome.PASSED:
            return wall
        said = f"an empty program did not pass: {trial.outcome}, {trial.error}"
        failures.append(SandboxUnavailable(said, str(bwrap), _advise(said)))
    raise failures[0]


def _run_behind(wall: Wall, program: str, limits: Limits) -> Execution:
    """Run one program behind the wall; no trace of it is left when this returns."""
    job = marshal.dumps((_load_cage(), _describe_job(wall, program, limits)))
    time_s = WALL_CEILING * limits.wall_s + START_TAKES_AT_MOST_S
    with _start(wall, limits) as process:
        try:
            report, complaint = process.communicate(job, timeout=time_s)
        except subprocess.TimeoutExpired:
            report, complaint = b"", f"no report within {time_s:g} s".encode()
        finally:
            process.kill()
    return _read_report(report, complaint, wall)


def _start(wall: Wall, limits: Limits) -> subprocess.Popen[bytes]:
    """Start the cage, which waits for its job.

    Raises:
        SandboxUnavailable: bwrap can't be executed.
    """
    filter_read, filter_write = os.pipe()
    command = build_command(wall, tmpfs_bytes=limits.tmpfs_mb << 20, filter_descriptor=filter_read)
    give_up = None if wall.as_root or os.geteuid() else NOBODY
    try:
        os.write(filter_write, _load_filter())  # fits into the pipe without a reader
        return subprocess.Popen(
            [*command, "-c", BOOTSTRAP],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={},
            user=give_up,
            group=give_up,
            extra_groups=None if give_up is None else [],
            pass_fds=(filter_read,),
        )
    except OSError as error:
        raise SandboxUnavailable(f"does not start: {error.strerror}", str(wall.bwrap)) from error
    finally:
        os.close(filter_read)
        os.close(filter_write)


@functools.lru_cache(maxsize=1)
def _load_filter() -> bytes:
    """Return the seccomp filter of this machine."""
    return build_filter(platform.machine())


@functools.lru_cache(maxsize=1)
def _load_cage() -> list[tuple[str, CodeType]]:
    """Return the names and the code of what runs inside, compiled once for all programs."""
    codes = []
    for module in CAGE_MODULES:
        source = (resources.files("evals.sandbox.cage") / f"{module}.py").read_text("utf-8")
        name = f"evals.sandbox.cage.{module}"
        codes.append((name, compile(source, name, "exec", dont_inherit=True)))
    return codes


def _describe_job(wall: Wall, program: str, limits: Limits) -> dict[str, str | float | int]:
    """Return the arguments of the cage's `Job`, in the units that the kernel takes."""
    release = tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2])
    alone = wall.as_root or release >= COUNTED_PER_NAMESPACE_SINCE
    return {
        "program": program,
        "user": FIRST_USER + secrets.randbelow(USERS),
        "wall_s": limits.wall_s,
        "ceiling_s": WALL_CEILING * limits.wall_s,
        "cpu_s": limits.cpu_s,
        "memory_bytes": limits.memory_mb << 20,
        "processes": limits.processes,
        "process_ceiling": limits.processes + 1 if alone else SHARED_PROCESS_CEILING,
        "files": limits.files,
        "inodes": limits.inodes,
        "tmpfs_bytes": limits.tmpfs_mb << 20,
        "output_bytes": limits.output_bytes,
    }


def _read_report(report: bytes, complaint: bytes, wall: Wall) -> Execution:
    """Return the execution that the cage reports.

    Raises:
        SandboxUnavailable: There is no report, or it says that the cage does not work here.
    """
    head, _, body = report.partition(b"\n")
    fields = head.decode("ascii", "replace").split()
    if len(fields) != len(("outcome", "code", "wall", "cpu", "error", "dropped")):
        said = complaint.decode("utf-8", "replace").strip() or "it ended without a word"
        raise SandboxUnavailable(said.splitlines()[-1], str(wall.bwrap), _advise(said))
    outcome, code, wall_s, cpu_s, error_bytes, dropped = fields
    error = body[: int(error_bytes)].decode("utf-8", "replace")
    if outcome == "broken":
        raise SandboxUnavailable(error, str(wall.bwrap), _advise(error))
    output = body[int(error_bytes) :].decode("utf-8", "replace")
    if int(dropped):
        output += f"\n[{dropped} more bytes of output dropped]"
    return Execution(
        outcome=ProgramOutcome(outcome),
        exit_code=None if code == "-" else int(code),
        output=output,
        error=error,
        wall_s=float(wall_s),
        cpu_s=float(cpu_s),
    )


def _advise(complaint: str) -> str:
    """Return what the user can do about a sandbox that can't be built."""
    if "can't be inspected" in complaint:
        return "set kernel.yama.ptrace_scope to 0 or 1"
    if "amespace" in complaint or "ermission" in complaint or "ermitted" in complaint:
        return (
            "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1 and "
            "kernel.apparmor_restrict_unprivileged_userns=0; in a container run it with "
            "--security-opt seccomp=unconfined --security-opt systempaths=unconfined"
        )
    return "run pawl doctor; if it is well, report this with the program"
