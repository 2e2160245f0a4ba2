"""The first process of the cage: starts the program, watches it, reports how it ended."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # no stub; ``signal`` costs 4 ms for its enums
import posix
import select
import time

from evals.sandbox.cage.child import CALIBRATIONS, become_program
from evals.sandbox.cage.job import Broken, Job, Verdict
from evals.sandbox.cage.kernel import (
    PR_SET_DUMPABLE,
    Stop,
    children_cpu_s,
    find_stop,
    list_processes,
    prctl,
    read_ready,
    scheduled_s,
    sum_usage,
    write_all,
)

NO_GROUP = 65534
LOOK_EVERY_S = 0.02
TAIL_BYTES = 2048
LEAST_GAP = 128
"""Bytes of stack between the loop and what it runs, under which they can't be told apart."""
STOP_POLL_S = 0.0001
READS_AT_ONCE = 16
END_TAKES_AT_MOST_S = 30
"""Beyond the program's own time: less than the host waits."""


def serve(job: Job) -> None:
    """Run the job's program, write the report to standard output and leave the process."""
    report = posix.dup(1)
    output, program_output = posix.pipe()
    posix.dup2(posix.open("/dev/null", posix.O_RDONLY), 0)
    _drop_privileges(job.user)
    wake, child_changed = posix.pipe()
    for descriptor in (output, wake, child_changed):
        posix.set_blocking(descriptor, False)
    _set_handlers(child_changed, time.monotonic() + job.ceiling_s + END_TAKES_AT_MOST_S)
    child = posix.fork()
    if child == 0:
        become_program(job, program_output)
    # program_output stays open here: a program that closes its output must not keep poll() awake
    watch = Watch(job, child, output=output, wake=wake, report=report)
    try:
        watch.calibrate()
        verdict = watch.follow()
    except Broken as broken:
        verdict = Verdict("broken", None, str(broken))
    wall_s = time.monotonic() - watch.started
    watch.end_all()
    write_all(report, watch.build_report(verdict, wall_s))
    posix._exit(0)


def _set_handlers(child_changed: int, overdue: float) -> None:
    """Wake at the child's changes, end when overdue, and take no other signal from the program.

    The kernel keeps all signals without a handler from the first process of a namespace. The end
    by alarm is for a host that is gone: bwrap has no right to end a keeper that changed its user.
    """

    def end_if_overdue(*_: object) -> None:
        if time.monotonic() >= overdue:
            posix._exit(1)

    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    _signal.signal(_signal.SIGCHLD, lambda *_: None)
    _signal.set_wakeup_fd(child_changed, warn_on_full_buffer=False)
    _signal.signal(_signal.SIGALRM, end_if_overdue)
    _signal.alarm(int(overdue - time.monotonic()) + 1)


def _drop_privileges(user: int) -> None:
    """Cease to be root for good, and get out of reach of processes of the same user."""
    if posix.getuid() == 0:
        posix.setgroups([])
        posix.setresgid(NO_GROUP, NO_GROUP, NO_GROUP)
        posix.setresuid(user, user, user)
    prctl(PR_SET_DUMPABLE, 0)


class Watch:
    """Follows one child from its first stop to its end, within the job's limits."""

    def __init__(self, job: Job, child: int, *, output: int, wake: int, report: int) -> None:
        self.job = job
        self.child = child
        self.output = output
        self.wake = wake
        self.report_to = report
        self.kept = bytearray()
        self.tail = b""
        self.dropped = 0
        self.started = time.monotonic()
        self.waited_before_s = 0.0
        self.cpu_before_s = 0.0
        self.end: Stop | None = None
        self.stack_slack = 0
        self.has_stopped = False
        self.over_cpu = Verdict("timeout", None, f"over {job.cpu_s:g} s of CPU time")
        self.over_memory = Verdict("killed", None, f"over {job.memory_bytes >> 20} MB of memory")
        self.poller = select.poll()
        self.poller.register(output, select.POLLIN)
        self.poller.register(wake, select.POLLIN)
        self.poller.register(report, 0)  # reports an error when the host is gone

    # -- the true end

    def calibrate(self) -> None:
        """Measure how deep the stack is within the barrier and at the loop's end; then let go.

        Raises:
            Broken: The child did not get that far, or the depths can't be told apart.
        """
        inside = self._next_stop()
        ends = []
        for _ in range(CALIBRATIONS):
            posix.kill(self.child, _signal.SIGCONT)
            ends.append(self._next_stop())
        gap = min(end.stack for end in ends) - inside.stack
        same_place = all((end.call, end.address) == (inside.call, inside.address) for end in ends)
        if gap < LEAST_GAP or not same_place:
            raise Broken(f"the program's end can't be told from its inside ({gap} bytes of stack)")
        self.end = ends[-1]
        self.stack_slack = gap // 2
        self.cpu_before_s, self.waited_before_s = scheduled_s(self.child)
        self.started = time.monotonic()
        posix.kill(self.child, _signal.SIGCONT)

    def _next_stop(self) -> Stop:
        """Wait for the child's next stop and return where it stands."""
        _, status = posix.waitpid(self.child, posix.WUNTRACED)
        if not posix.WIFSTOPPED(status):
            self._drain()
            said = self.tail.decode("utf-8", "replace")
            raise Broken(f"the child ended before the program began: {said or status}")
        try:
            while (stop := find_stop(self.child)) is None:
                time.sleep(STOP_POLL_S)
        except OSError as error:
            raise Broken(f"a stopped child can't be inspected: {error.strerror}") from None
        return stop

    def _judge_stop(self) -> Verdict | None:
        """Return that the program passed, if its child stands where only the loop's end can be."""
        try:
            stop = find_stop(self.child)
        except OSError:
            stop = Stop((), 0, "")  # it hides itself
        if stop is None or self.end is None:
            return None
        self.has_stopped = False
        same_place = (stop.call, stop.address) == (self.end.call, self.end.address)
        if same_place and abs(stop.stack - self.end.stack) < self.stack_slack:
            return Verdict("passed", 0, "")
        return None

    # -- the way there

    def follow(self) -> Verdict:
        """Wait for the program's end, at the latest until it is over a limit."""
        look_at = self.started + LOOK_EVERY_S
        verdict = None
        while verdict is None:
            events = self.poller.poll((STOP_POLL_S if self.has_stopped else LOOK_EVERY_S) * 1000)
            if any(descriptor == self.report_to for descriptor, _ in events):
                posix._exit(1)  # nobody waits for the report any more
            self._drain()
            verdict = self._collect_ended()
            if verdict is None and self.has_stopped:
                verdict = self._judge_stop()
            if verdict is None and time.monotonic() >= look_at:
                verdict = self._find_excess()
                look_at = time.monotonic() + LOOK_EVERY_S
        return verdict

    def _drain(self) -> None:
        """Read what the program has written; keep the beginning and the last few lines."""
        read_ready(self.wake)
        for _ in range(READS_AT_ONCE):
            data = read_ready(self.output)
            if not data:
                return
            room = self.job.output_bytes - len(self.kept)
            self.kept += data[:room]
            self.dropped += max(0, len(data) - room)
            self.tail = (self.tail + data)[-TAIL_BYTES:]

    def _collect_ended(self) -> Verdict | None:
        """Reap what has ended, orphans too; return a verdict when the child is among it."""
        while True:
            pid, status = posix.waitpid(-1, posix.WNOHANG | posix.WUNTRACED)
            if pid == 0:
                return None
            if pid != self.child:
                continue
            if posix.WIFEXITED(status):
                return self._judge_exit(posix.WEXITSTATUS(status))
            if posix.WIFSIGNALED(status):
                return self._judge_signal(posix.WTERMSIG(status))
            self.has_stopped = True

    def _judge_exit(self, code: int) -> Verdict:
        """Return the verdict on a program that left: whatever its code, not at its end."""
        self._drain()
        lines = self.tail.decode("utf-8", "replace").split("\n")
        said = next((line.strip() for line in reversed(lines) if line.strip()), "")
        if code != 1 or not said:
            return Verdict("failed", code, f"left before its end with exit code {code}")
        if said.startswith("MemoryError"):
            return self.over_memory
        return Verdict("failed", code, said)

    def _judge_signal(self, number: int) -> Verdict:
        """Return the verdict on a program that a signal ended."""
        cpu_s = children_cpu_s() - self.cpu_before_s
        if number == _signal.SIGXCPU or (number == _signal.SIGKILL and cpu_s >= self.job.cpu_s):
            return self.over_cpu
        return Verdict("killed", -number, f"ended by signal {number}")

    def _find_excess(self) -> Verdict | None:
        """Return a verdict if the program is over one of its limits."""
        job = self.job
        pids = list_processes()
        too_many = Verdict("killed", None, f"over {job.processes} processes and threads")
        if len(pids) > job.processes:  # looked at first: to add up very many takes long
            return too_many
        cpu_s, memory, threads = sum_usage(pids)
        elapsed_s = time.monotonic() - self.started
        idle_s = elapsed_s - (scheduled_s(self.child)[1] - self.waited_before_s)
        disk = posix.statvfs("/tmp")
        late = Verdict("timeout", None, f"over {job.wall_s:g} s of wall-clock time")
        crowded = Verdict("killed", None, f"over {job.inodes} files in /tmp")
        for excess, verdict in (
            (cpu_s - self.cpu_before_s > job.cpu_s, self.over_cpu),
            (idle_s > job.wall_s or elapsed_s > job.ceiling_s, late),
            (memory > job.memory_bytes, self.over_memory),
            (threads > job.processes, too_many),
            (disk.f_files - disk.f_ffree > job.inodes, crowded),
        ):
            if excess:
                return verdict
        return None

    # -- the end

    def end_all(self) -> None:
        """End every process inside but this one, and reap them."""
        try:
            posix.kill(-1, _signal.SIGKILL)  # all at once: none of them can fork any more
            while True:
                posix.waitpid(-1, 0)
        except (ProcessLookupError, ChildProcessError):
            self._drain()

    def build_report(self, verdict: Verdict, wall_s: float) -> bytes:
        """Return a line of outcome, exit code, times and sizes, then error and output."""
        error = verdict.error.encode("utf-8", "replace")
        cpu_s = max(0.0, children_cpu_s() - self.cpu_before_s)
        code = "-" if verdict.exit_code is None else verdict.exit_code
        head = f"{verdict.outcome} {code} {wall_s:.6f} {cpu_s:.6f} {len(error)} {self.dropped}\n"
        return head.encode() + error + bytes(self.kept)
