"""What runs inside the cage: starts one program, watches its limits, proves its true end.

The host hands the code of these modules to a bare interpreter that is process 1 of fresh
namespaces. That is the keeper (``keeper``). It forks once; the child (``child``) runs the program
and is all that the program can touch: the keeper can't be signalled, traced or read by it, and
the report goes out through a pipe that only the keeper has. ``job`` is what the host orders,
``kernel`` what the kernel is asked.

The proof of the true end
    Whatever the program can reach it can use: a secret can be found through frames, a file
    descriptor can be written to, an exit code can be chosen. So the end is not reported by a
    secret but seen by the kernel. The child's loop runs the program behind a C function and then
    stops itself with a signal. The keeper reads from ``/proc/PID/syscall`` which system call the
    stopped child is in, from which address, and how deep its stack is. All that the program
    runs, its threads, handlers and finalizers included, runs deeper than the loop's own call or
    in another thread, because the loop waits beneath it for the C function to return. An
    exception that comes out of the program, SystemExit included, leads to ``_exit`` without
    running any of the program's code on the way. The two depths, of the loop and of the
    shallowest place a program could get to, are measured in the child itself before the program
    starts; nothing depends on how the interpreter was compiled.

    Execing another program keeps the process but not its addresses, which are random. A forked
    copy that reaches the end is another process and proves nothing. Threads that are no daemons
    are joined before the end, functions registered with ``atexit`` are not run.

    Not covered: native code that moves the stack pointer, and trace functions that make a frame
    jump over lines. Neither gets out of the cage.

Modules that take long to load (os, signal, dataclasses, typing) are not imported here: start-up
is most of the time that an execution takes.
"""
