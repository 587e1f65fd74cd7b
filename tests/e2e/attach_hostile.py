"""Attaches to programs that try to make root's `attach` or `detach` change something that the program itself may not change. The tests hold
the command's tracer at its system calls, and let the program act in between."""
import ctypes
import os
import pathlib
import signal
import subprocess
import sys

from attach_test import Attach, await_leave
from cudatrace_test import DEADLINE_S, Session, by_tier, check, equal, needs, wait_for

SYSCALL, CONT, SEIZE = 24, 7, 0x4206
SYSCALL_GOOD, TRACE_FORK, EXIT_KILL = 0x1, 0x2, 0x100000
WALL = 0x40000000

ptrace = ctypes.CDLL(None, use_errno=True).ptrace
ptrace.restype, ptrace.argtypes = ctypes.c_long, [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

# A child that shares the process's descriptors executes the lines of its input. `attach` does not stop the child.
TARGET = """
import ctypes, os, signal, sys
driver, c = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(None)
own, number = os.open(sys.argv[1], os.O_RDONLY), ctypes.c_int()
signal.signal(signal.SIGUSR1, lambda *_: print(driver.cuDriverGetVersion(ctypes.byref(number)), flush=True))
CLONE, CLONE_FILES = 56, 0x400
if c.syscall(CLONE, CLONE_FILES | signal.SIGCHLD, 0, 0, 0, 0) == 0:
    print("ready", flush=True)
    for line in sys.stdin:
        print(eval(line), flush=True)
    os._exit(0)
os.wait()
"""


class Target:
    def __init__(self, s, *arguments):
        self.child = s.start(sys.executable, "-c", TARGET, *arguments, preload=False, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.child.pid
        equal(self.child.stdout.readline(), "ready\n", "the program")

    def do(self, line):
        self.child.stdin.write(f"{line}\n")
        self.child.stdin.flush()
        return self.child.stdout.readline().strip()

    def end(self):
        self.child.communicate(timeout=DEADLINE_S)
        equal(self.child.returncode, 0, "its exit status")

    def files(self):
        """Returns {descriptor: what it refers to}."""
        folder = pathlib.Path(f"/proc/{self.pid}/fd")
        return {int(file.name): os.readlink(file) for file in folder.iterdir()}


def at_each_call(command, act):
    """Traces the command and the processes that it forks. Calls act() at the entry and the exit of each of their system calls, until the
    command exits. Returns the command's status."""
    check(ptrace(SEIZE, command, None, SYSCALL_GOOD | TRACE_FORK | EXIT_KILL) == 0, "ptrace:", os.strerror(ctypes.get_errno()))
    ptrace(0x4207, command, None, None)  # PTRACE_INTERRUPT
    while True:
        pid, status = os.waitpid(-1, WALL)
        if not os.WIFSTOPPED(status):
            if pid == command:
                return os.waitstatus_to_exitcode(status)
            continue
        number = os.WSTOPSIG(status)
        if number == 5 | 0x80:
            act()
        is_signal = status >> 16 == 0 and number != 5 | 0x80
        ptrace(SYSCALL, pid, None, number if is_signal else None)


def replaced_descriptor(s, which, delay):
    """Replaces the descriptor of a file that attach makes in the process (the first is for the area, the second for the library), a few system
    calls later. The file that replaces it must not be written."""
    own = s.dir / "own"
    own.write_bytes(b"A" * 300000)
    own.chmod(0o444)
    p = Target(s, own)
    seen, waited = set(), 0

    def act():
        nonlocal waited
        seen.update((number, name) for number, name in p.files().items() if name.startswith("/memfd:"))
        if len(seen) < which:
            return
        if waited == delay:
            number = next(number for number, name in p.files().items() if (number, name) in seen) if seen & set(p.files().items()) else -1
            if number >= 0:
                p.do(f"os.dup2(own, {number})")
        waited += 1

    a = Attach(s, p.pid, "--wait", "1s")
    at_each_call(a.child.pid, act)
    said = a.child.stderr.read().decode()
    a.child.returncode = 1
    check(own.read_bytes() == b"A" * 300000, "the file was written:", said)
    p.child.send_signal(signal.SIGUSR1)
    equal(p.child.stdout.readline(), "0\n", "the result of a call")
    p.end()
    return said


needs("ptrace")
for which in 1, 2:
    for delay in by_tier((0, 20), range(0, 60, 4)):
        with Session() as session:
            session.start_daemon()
            said = replaced_descriptor(session, which, delay)
            print(which, delay, said.strip())
            session.stop_daemon()
            await_leave(session)
