"""Where model-written Python runs, and nowhere else: `run_program`, `run_many`, `check_sandbox`.

    execution   what goes in and comes out: `Limits`, `ProgramOutcome`, `Execution`
    syscalls    the system calls and socket families that a program is refused
    bubblewrap  the outer wall: finds ``bwrap``, lays out the few folders a program sees
    cage/       runs inside: starts the program, watches its limits, proves its true end
    program     the three functions above
    code_eval   `SandboxedCodeEval`, with the interface of Hugging Face's ``code_eval`` metric

Nothing here runs a program without the wall: where it can't be built, `SandboxUnavailable` is
raised and nothing is scored.

What it isolates
    A program sees the interpreter's own standard library, numpy, the system's programs and
    shared libraries, all read-only, an empty ``/tmp`` of limited size and a ``/proc`` of its
    own. No network but its own loopback, no project folder, no home, no other packages, no
    environment of ours, a user id of its own, group 65534, no capabilities. Strings hash by a
    fixed seed, so that a program gives the same answer twice.

What "passed" proves
    ``cage`` explains it: the whole program ran to the end of its last statement, in the process
    that was started for it. Leaving early in any way, whatever the exit code, is not passing.

What it does not cover
    - A program and the tests in it share one interpreter. Code that changes what the tests see
      (an ``__eq__`` that is always true, a replaced ``len``, a trace function that jumps over
      lines) passes them without solving the task.
    - Native code (``ctypes``, a compiler at hand) can rewrite the interpreter it runs in and so
      pretend to have reached the end. It stays in the cage.
    - The kernel is shared: a kernel fault that neither the refused system calls nor the
      namespaces keep out of reach is a way out.
    - Memory that the kernel holds for sockets and pipes counts for no limit. It is bounded by
      open files × processes, some hundred MB at worst.
    - Loss of time to other virtual machines on the host is not told apart from the program's own.
"""

from evals.sandbox.code_eval import SandboxedCodeEval
from evals.sandbox.execution import Execution, Limits, ProgramOutcome
from evals.sandbox.program import check_sandbox, run_many, run_program

__all__ = [
    "Execution",
    "Limits",
    "ProgramOutcome",
    "SandboxedCodeEval",
    "check_sandbox",
    "run_many",
    "run_program",
]
