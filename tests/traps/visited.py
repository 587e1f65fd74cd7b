"""Attaches to a program whose allocator or stack a visit could break (visited.c), or, with a driver that is not attached to, makes it begin
a recording of GPU work. The program's results must stay correct, and its calls must be recorded, unless attach must leave them alone.

    visited.py MODE
"""
import subprocess
import sys

from trap_test import BUILD, CUDATRACE, DEADLINE_S, DRIVER_PATH, LINKED, SHAPE, Session, check, compiled, equal, library, needs, wait_for

(mode,) = sys.argv[1:]
LEFT_ALONE = "was not changed: all its CUDA calls were made "
ALLOCATOR = LEFT_ALONE + "by the program's own allocator (malloc)"
# What attach prints because it could not visit a call of these modes.
WHY_NOT = {
    "split": LEFT_ALONE + "in signal handlers",
    "coroutine": LEFT_ALONE + "on stacks that are not their threads' own, such as coroutines'",
    "deeper": LEFT_ALONE + "by threads that use more than 4 MiB of their stacks",
    "within": ALLOCATOR,
    "library": ALLOCATOR,
    "unshared": "could not load the hook: the thread that made the call has file descriptors of its own (unshare(CLONE_FILES))",
}
ENDS = {"barrier": "faults 1\n", "pager": "faults 1\n"}


class Program:
    def __init__(self, s, preload):
        env = {"LD_LIBRARY_PATH": f"{DRIVER_PATH}:{BUILD / 'tests/simcupti/13'}"}
        flags = []
        if mode == "library":
            env["LD_PRELOAD"] = str(library(s, "visited_allocator.c", "liballocator.so", "-O2", *LINKED))
            flags.append("-DHAS_LIBRARY")
        self.child = s.start(compiled(s, "visited.c", *flags, *LINKED), mode, preload=preload, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.child.pid
        equal(self.child.stdout.readline(), "ready\n", mode)

    def call(self, plain=False):
        self.child.stdin.write("c\n" if plain else "\n")
        self.child.stdin.flush()
        equal(self.child.stdout.readline(), "0\n", f"the result of a call, status {self.child.poll()}")

    def end(self):
        equal(self.child.communicate(timeout=DEADLINE_S)[0], ENDS.get(mode, "faults 0\n"), "its end")
        equal(self.child.returncode, 0, "its exit status")


def visited(s):
    """Checks that the program is visited in a call, and that its further calls are recorded."""
    p = Program(s, preload=False)
    p.call()
    a = Attach(s, p.pid)
    a.await_armed(p.pid)
    p.call()
    a.await_line("is recorded")
    for _ in range(3):
        p.call()
    a.end()
    equal(recorded(s, p.pid), 4, "calls")
    p.end()


def left_alone(s):
    """Checks that no call is visited, but a call as in any other program is."""
    p = Program(s, preload=False)
    a = Attach(s, p.pid, "--wait", "3s", "--for", "1s")
    a.await_armed(p.pid)
    while a.child.poll() is None:
        p.call()
    said = a.end(status=1, number=None)
    check(f"{WHY_NOT[mode]}; try again" in said, said)
    a = Attach(s, p.pid)
    a.await_armed(p.pid)
    p.call(plain=True)
    a.await_line("is recorded")
    a.end()
    equal(recorded(s, p.pid), 1, "calls")
    p.end()


def told(s):
    """Checks that the program begins a recording of GPU work in a call."""
    s.start_daemon()
    p = Program(s, preload=True)
    p.call()
    setting = s.start(CUDATRACE, "set", "--session", s.name, "--gpu", "on", "--pid", p.pid, preload=False, stdout=subprocess.PIPE)
    wait_for("the answer", lambda: (p.call(), setting.poll() is not None)[1])
    equal(setting.communicate()[0], b"1 of 1 processes record GPU work\n", "the answer")
    p.end()
    s.flush()
    equal(s.value("SELECT gpu_recording FROM processes"), "recorded", "the recording")
    s.check_identity()


if SHAPE:
    from attach_test import Attach, recorded
    needs("ptrace")
with Session() as s:
    (left_alone if mode in WHY_NOT else visited if SHAPE else told)(s)
