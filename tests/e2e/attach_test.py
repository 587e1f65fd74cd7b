"""Code shared by the tests that attach to and detach from a running program (attached.c)."""
import ctypes
import glob
import os
import pathlib
import re
import signal
import struct
import subprocess

from cudatrace_test import CUDATRACE, SHAPE, check, skip, wait_for
from untraced import Background

if not SHAPE:
    skip("a driver without a table of entry points is not attached to: the suite slots tests those with one")
# If the driver's table is unknown, every attach in the test uses --inline.
INLINE = ["--inline"] if SHAPE.endswith("-unknown") else []
if INLINE:
    REFUSED = subprocess.run([CUDATRACE, "attach", *INLINE, "1"], cwd="/", env=dict(os.environ, CUDATRACE_HOOK="/nowhere"), capture_output=True,
                             text=True, check=False).stderr
    if "has no instruction decoder" in REFUSED:
        skip(REFUSED.strip())


SYSCALL, SEIZE, INTERRUPT = 24, 0x4206, 0x4207
SYSCALL_GOOD, TRACE_FORK, EXIT_KILL = 0x1, 0x2, 0x100000
WALL = 0x40000000
SYSTEM_CALL_STOP = signal.SIGTRAP | 0x80

ptrace = ctypes.CDLL(None, use_errno=True).ptrace
ptrace.restype, ptrace.argtypes = ctypes.c_long, [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

AREA_DATA, STATE, ARMED = 0x5000, 8, 1  # tools/cli/attach/area_layout.h


def is_armed(pid):
    """Returns whether `cudatrace attach` is waiting for the process's next call. Reads this from the state word that attach keeps in the
    process's memory."""
    found = [line.split("-")[0] for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines() if "cudatrace-visit" in line]
    if not found:
        return False
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(int(found[0], 16) + AREA_DATA + STATE)
        return struct.unpack("I", memory.read(4))[0] == ARMED


class Attach(Background):
    """A `cudatrace attach` in the background."""

    def __init__(self, s, *arguments, **options):
        super().__init__(s, CUDATRACE, "attach", "--session", s.name, "--db", s.db, *INLINE, *arguments, **options)

    def await_armed(self, pid):
        """Waits until the command is waiting for the process's next call, which will load the hook. This is sooner than the command's
        message, which the command prints only after a second."""
        wait_for("attach to be done", lambda: is_armed(pid) or self.child.poll() is not None)
        if self.child.poll() is not None:
            check(False, "attach ended:", self.said, self.child.stderr.read())


def attach(s, *arguments, status=0):
    """Runs `cudatrace attach` in the foreground. Returns its standard error."""
    return s.run(CUDATRACE, "attach", "--session", s.name, "--db", s.db, *INLINE, *arguments, preload=False, status=status).stderr


def detach(s, pid, status=0):
    return s.run(CUDATRACE, "detach", pid, preload=False, status=status).stderr


def recorded(s, pid):
    """Returns how many of a process's calls are recorded."""
    return s.value("SELECT ifnull(sum(calls), 0) FROM totals JOIN processes USING (process_id) WHERE pid = ?", pid)


def mapped(pid):
    """Returns ([mappings that attach has created], [all open descriptors]) of the process. Neither list changes after the first attach."""
    maps = pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
    return [line for line in maps if "memfd:" in line or re.search(r" r-xp .* 0 *$", line)], sorted(os.listdir(f"/proc/{pid}/fd"))


def state_of(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def tracer_of(pid):
    try:
        return int(re.search(r"TracerPid:\t(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])
    except FileNotFoundError:
        return -1


def await_leave(s):
    """Waits until the session has no files in shared memory, and therefore no daemon. After --stay, a background process keeps the daemon
    running for a moment."""
    wait_for("the daemon to leave", lambda: not glob.glob(f"/dev/shm/cudatrace.{os.geteuid()}.{s.name}*"))


def at_each_call(a, act, send=None):
    """Traces a command and the tracers that it forks, until the command exits. Calls act(pid) at the entry and the exit of each of their
    system calls. `send` is a signal for the command."""
    command = a.child.pid
    for request, data in (SEIZE, SYSCALL_GOOD | TRACE_FORK | EXIT_KILL), (INTERRUPT, None):
        check(ptrace(request, command, None, data) == 0, "ptrace:", os.strerror(ctypes.get_errno()))
    if send:
        os.kill(command, send)  # Popen.send_signal() would wait for the command's stop
    while True:
        pid, status = os.waitpid(-1, WALL)
        if os.WIFSTOPPED(status):
            number = os.WSTOPSIG(status)
            if number == SYSTEM_CALL_STOP:
                act(pid)
            is_signal = status >> 16 == 0 and number != SYSTEM_CALL_STOP
            ptrace(SYSCALL, pid, None, number if is_signal else None)
        elif pid == command:
            a.child.returncode = os.waitstatus_to_exitcode(status)
            a.said += a.child.stderr.read().decode()
            return
