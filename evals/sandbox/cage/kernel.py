"""What the kernel is asked and told inside the cage."""

from __future__ import annotations

import _ctypes
import posix
import resource

PR_SET_DUMPABLE = 4
CPU_TICK_S = 0.01
"""Unit of CPU times in ``/proc``: USER_HZ, which is 100 on every Linux."""
STAT_CPU, STAT_THREADS, STAT_RESIDENT = (11, 12, 13, 14), 17, 21
"""Places in ``/proc/PID/stat`` behind the name: times of the process and of its ended children."""
SYSCALL_FIELDS = 9
"""In ``/proc/PID/syscall`` of a waiting process: number, six arguments, stack, address."""
READ_BYTES = 65536


class _ProcessFunction(_ctypes.CFuncPtr):
    """A C function of the running process; ``ctypes`` itself takes 5 ms longer to import."""

    _flags_ = 1
    _restype_ = None


def prctl(option: int, value: int) -> None:
    """Set one of the kernel's properties of this process."""
    address = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]
    _ProcessFunction(address)(option, value, 0, 0, 0)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of the data, in as many parts as the pipe wants."""
    while data:
        data = data[posix.write(descriptor, data) :]


def write_file(path: str, data: bytes) -> None:
    """Write a file anew."""
    descriptor = posix.open(path, posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC, 0o644)
    write_all(descriptor, data)
    posix.close(descriptor)


def read_ready(descriptor: int) -> bytes:
    """Return what there is to read from a pipe without waiting; nothing, if nothing."""
    try:
        return posix.read(descriptor, READ_BYTES)
    except BlockingIOError:
        return b""


def _read(path: str) -> str:
    """Return the text of a small file under ``/proc``."""
    descriptor = posix.open(path, posix.O_RDONLY)
    try:
        return posix.read(descriptor, 65536).decode("utf-8", "replace")
    finally:
        posix.close(descriptor)


class Stop:
    """Where a stopped child stands: its system call and arguments, stack depth, code address."""

    __slots__ = ("address", "call", "stack")

    def __init__(self, call: tuple[str, ...], stack: int, address: str) -> None:
        self.call = call
        self.stack = stack
        self.address = address


def find_stop(pid: int) -> Stop | None:
    """Return where a stopped process stands, or None while it is on its way into the stop."""
    fields = _read(f"/proc/{pid}/syscall").split()
    if len(fields) < SYSCALL_FIELDS:
        return None
    return Stop((fields[0], fields[1], fields[2]), int(fields[7], 16), fields[8])


def list_processes() -> list[str]:
    """Return the process ids inside, without the keeper's own."""
    return [name for name in posix.listdir("/proc") if name.isdigit() and name != "1"]


def sum_usage(pids: list[str]) -> tuple[float, int, int]:
    """Return CPU seconds, ended processes' too, bytes of memory and number of threads."""
    ticks = memory = threads = 0
    for pid in pids:
        try:
            fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended since
        ticks += sum(int(fields[at]) for at in STAT_CPU)
        threads += int(fields[STAT_THREADS])
        memory += _memory_bytes(pid, fields)
    return ticks * CPU_TICK_S + children_cpu_s(), memory, threads


def _memory_bytes(pid: str, stat: list[str]) -> int:
    """Return a process's share of memory; what it shares with others is divided among them."""
    try:
        for line in _read(f"/proc/{pid}/smaps_rollup").split("\n"):
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:  # it has ended, or it hides itself: then all that it maps counts
        return int(stat[STAT_RESIDENT]) * resource.getpagesize()
    return 0


def children_cpu_s() -> float:
    """Return the CPU seconds of all that ended and was waited for, here or inside."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def scheduled_s(pid: int) -> tuple[float, float]:
    """Return how long a process has run and how long it has waited for a CPU."""
    try:
        ran, waited, _ = _read(f"/proc/{pid}/schedstat").split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0, 0.0  # a kernel without these figures: all waiting counts as wall time
    return int(ran) / 1e9, int(waited) / 1e9
