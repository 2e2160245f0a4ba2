"""The seccomp filter: system calls and socket families that a program in the sandbox is refused.

Namespaces leave three gaps that this closes. Socket families such as AF_VSOCK and AF_ALG pay no
heed to a network namespace, so only the listed ones exist. Memory that no limit counts (shared
memory segments, message queues, memory files, keys) can't be made. The parts of the kernel with
the richest history of ways out (new user namespaces, BPF, io_uring, userfaultfd, tracing) are
shut. ``clone3`` hides its flags in memory, where a filter can't look, so it is reported as
missing, and the C library falls back to ``clone``.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from evals.errors import SandboxUnavailable

ALLOWED_FAMILIES = (1, 2, 10)
"""AF_UNIX, AF_INET, AF_INET6."""

NEW_NAMESPACE_FLAGS = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""

SHARED_DENIED = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "pidfd_getfd": 438,
    "process_madvise": 440,
    "mount_setattr": 442,
    "memfd_secret": 447,
}
"""Numbers that are the same on every architecture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """The numbers of one architecture, from its kernel headers."""

    audit: int
    """AUDIT_ARCH_* of the native calling convention; any other kills the process."""
    other_numbers_from: int | None
    """First number of a second convention under the same audit value (x32), if there is one."""
    clone: int
    clone3: int
    socket: int
    socketpair: int
    denied: Mapping[str, int]


ARCHITECTURES: Mapping[str, Architecture] = {
    "x86_64": Architecture(
        audit=0xC000003E,
        other_numbers_from=0x40000000,
        clone=56,
        clone3=435,
        socket=41,
        socketpair=53,
        denied={
            "shmget": 29,
            "semget": 64,
            "msgget": 68,
            "ptrace": 101,
            "syslog": 103,
            "personality": 135,
            "modify_ldt": 154,
            "pivot_root": 155,
            "mount": 165,
            "umount2": 166,
            "init_module": 175,
            "delete_module": 176,
            "mq_open": 240,
            "kexec_load": 246,
            "add_key": 248,
            "request_key": 249,
            "keyctl": 250,
            "unshare": 272,
            "perf_event_open": 298,
            "fanotify_init": 300,
            "name_to_handle_at": 303,
            "open_by_handle_at": 304,
            "setns": 308,
            "process_vm_readv": 310,
            "process_vm_writev": 311,
            "kcmp": 312,
            "finit_module": 313,
            "memfd_create": 319,
            "kexec_file_load": 320,
            "bpf": 321,
            "userfaultfd": 323,
        },
    ),
    "aarch64": Architecture(
        audit=0xC00000B7,
        other_numbers_from=None,
        clone=220,
        clone3=435,
        socket=198,
        socketpair=199,
        denied={
            "umount2": 39,
            "mount": 40,
            "pivot_root": 41,
            "personality": 92,
            "unshare": 97,
            "kexec_load": 104,
            "init_module": 105,
            "delete_module": 106,
            "syslog": 116,
            "ptrace": 117,
            "mq_open": 180,
            "msgget": 186,
            "semget": 190,
            "shmget": 194,
            "add_key": 217,
            "request_key": 218,
            "keyctl": 219,
            "perf_event_open": 241,
            "fanotify_init": 262,
            "name_to_handle_at": 264,
            "open_by_handle_at": 265,
            "setns": 268,
            "process_vm_readv": 270,
            "process_vm_writev": 271,
            "kcmp": 272,
            "finit_module": 273,
            "memfd_create": 279,
            "bpf": 280,
            "userfaultfd": 282,
            "kexec_file_load": 294,
        },
    ),
}

_LOAD_WORD, _RETURN = 0x20, 0x06
_IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT = 0x15, 0x35, 0x45
_NUMBER_AT, _AUDIT_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000


def build_filter(machine: str) -> bytes:
    """Return the filter as the BPF program that ``bwrap --seccomp`` reads.

    Args:
        machine: Architecture as `os.uname` names it.

    Raises:
        SandboxUnavailable: The system call numbers of this architecture are not known here.
    """
    known = ARCHITECTURES.get(machine)
    if known is None:
        raise SandboxUnavailable(
            f"no list of system calls for {machine}",
            "sandbox",
            f"run code tasks on one of {', '.join(ARCHITECTURES)}",
        )
    program = [
        _step(_LOAD_WORD, _AUDIT_AT),
        _step(_IF_EQUAL, known.audit, then=1),
        _step(_RETURN, _KILL),
        _step(_LOAD_WORD, _NUMBER_AT),
    ]
    if known.other_numbers_from is not None:
        program += [
            _step(_IF_AT_LEAST, known.other_numbers_from, otherwise=1),
            _step(_RETURN, _KILL),
        ]
    program += [_step(_IF_EQUAL, known.clone3, otherwise=1), _refuse(errno.ENOSYS)]
    for number in sorted({**known.denied, **SHARED_DENIED}.values()):
        program += [_step(_IF_EQUAL, number, otherwise=1), _refuse(errno.EPERM)]
    program += [
        _step(_IF_EQUAL, known.clone, otherwise=4),
        _step(_LOAD_WORD, _FIRST_ARGUMENT_AT),
        _step(_IF_ANY_BIT, NEW_NAMESPACE_FLAGS, otherwise=1),
        _refuse(errno.EPERM),
        _step(_RETURN, _ALLOW),
        _step(_IF_EQUAL, known.socket, then=2),
        _step(_IF_EQUAL, known.socketpair, then=1),
        _step(_RETURN, _ALLOW),
        _step(_LOAD_WORD, _FIRST_ARGUMENT_AT),
    ]
    for family in ALLOWED_FAMILIES:
        program += [_step(_IF_EQUAL, family, otherwise=1), _step(_RETURN, _ALLOW)]
    return b"".join([*program, _refuse(errno.EAFNOSUPPORT)])


def _refuse(error: int) -> bytes:
    """Return the instruction that makes the call fail with this error number."""
    return _step(_RETURN, _ERRNO | error)


def _step(operation: int, value: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    """Return one instruction; ``then`` and ``otherwise`` count the instructions to skip."""
    return struct.pack("=HBBI", operation, then, otherwise, value)
