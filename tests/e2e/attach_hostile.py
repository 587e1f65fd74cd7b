"""Attaches to programs that try to make root's `attach` or `detach` change something that the program itself may not change. The tests hold
the command's tracer at its system calls, and let the program act in between."""
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys

from attach_test import AREA_DATA, Attach, at_each_call, attach, detach, is_armed, recorded
from cudatrace_test import CUDATRACE, DEADLINE_S, Session, by_tier, check, equal, needs, wait_for
from untraced import Background, Program, lock

SESSION = 640 + 40  # of struct ct_area_data: the session of its struct ct_visit

# Executes the lines of the pipe argv[2]. A child, which shares the process's descriptors but is not stopped by `attach`, executes the lines
# of the standard input.
TARGET = """
import ctypes, os, signal, sys
driver, c = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(None)
own, number, stack = os.open(sys.argv[1], os.O_RDONLY), ctypes.c_int(), ctypes.create_string_buffer(1 << 20)
CLONE, CLONE_VM, CLONE_FILES = 56, 0x100, 0x400
def call():
    return driver.cuDriverGetVersion(ctypes.byref(number))
def keep_memory():
    return c.clone(c.pause, ctypes.c_void_p(ctypes.addressof(stack) + (1 << 20)), CLONE_VM | signal.SIGCHLD, None)
def obey(lines):
    for line in lines:
        print(eval(line), flush=True)
if c.syscall(CLONE, CLONE_FILES | signal.SIGCHLD, 0, 0, 0, 0) == 0:
    obey(sys.stdin)
    os._exit(0)
print("ready", flush=True)
obey(os.fdopen(int(sys.argv[2])))
"""


class Target:
    def __init__(self, s, own="/dev/null"):
        its, self.pipe = os.pipe()
        self.child = s.start(sys.executable, "-c", TARGET, own, its, preload=False, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                             pass_fds=[its])
        os.close(its)
        self.pid, self.keepers = self.child.pid, []
        equal(self.child.stdout.readline(), "ready\n", "the program")

    def order(self, line):
        os.write(self.pipe, f"{line}\n".encode())

    def do(self, line):
        self.order(line)
        return self.child.stdout.readline().strip()

    def do_beside(self, line):
        self.child.stdin.write(f"{line}\n")
        self.child.stdin.flush()
        return self.child.stdout.readline().strip()

    def keep_memory(self):
        """Starts a child that shares the memory, and keeps it alive when the process executes another program."""
        self.keepers.append(int(self.do("keep_memory()")))

    def execute(self):
        self.keep_memory()
        self.order("os.execv('/bin/sleep', ['sleep', '1000'])")
        wait_for("the program to execute another", lambda: pathlib.Path(f"/proc/{self.pid}/comm").read_text() == "sleep\n")

    def end(self, status=0):
        for keeper in self.keepers:
            os.kill(keeper, signal.SIGKILL)
        os.close(self.pipe)
        if status:
            self.child.send_signal(-status)
        self.child.communicate(timeout=DEADLINE_S)
        equal(self.child.returncode, status, "its exit status")

    def files(self):
        """Returns {descriptor: what it refers to}."""
        files = {}
        for file in pathlib.Path(f"/proc/{self.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # it has been closed meanwhile
                files[int(file.name)] = os.readlink(file)
        return files


def replaced_descriptor(s, which, delay, choose=max):
    """Replaces the descriptor of a file that attach makes in the process (the first is for the area, the second for the library), a few
    system calls later. The file that replaces it must not be written. While attach moves the file to a higher descriptor, there are two:
    attach notices if the higher one is replaced, and does not close the lower one if that is replaced."""
    own = s.dir / "own"
    own.write_bytes(b"A" * 300000)
    own.chmod(0o444)
    p = Target(s, own)
    seen, replaced, waited = {}, [], 0

    def act(_):
        nonlocal waited
        files = {number: name for number, name in p.files().items() if name.startswith("/memfd:")}
        for number, name in files.items():
            seen.setdefault(name, set()).add(number)
        if len(seen) >= which and waited >= delay and files and not replaced and (choose is max or len(files) > 1):
            replaced.append(choose(files))
            p.do_beside(f"os.dup2(own, {replaced[0]})")
        waited += len(seen) >= which

    a = Attach(s, p.pid, "--wait", "1s")
    at_each_call(a, act)
    check(own.read_bytes() == b"A" * 300000, "the file was written:", a.said)
    if choose is min or "made no CUDA call" in a.said:  # the process moves the file while the test looks
        check("made no CUDA call in this time and was not changed" in a.said, a.said)
        equal(p.files().get(replaced[0]), str(own), "the file that replaced a descriptor")
        check(max(list(seen.values())[which - 1]) > replaced[0], "the file was not moved:", seen, replaced)
    else:
        check("closed or replaced the descriptor" in a.said, a.said)
    equal(p.do("call()"), "0", "the result of a call")
    p.end()


def no_names(s):
    """Neither attach nor detach follows a path that the process controls, such as those of its descriptors or of its root directory."""
    harmless = re.compile(r"(task/\d+/)?(auxv|comm|fd|maps|mem|mountinfo|stat|status|syscall)|task|task/\d+|")
    p = Target(s)
    seen, is_called = set(), False

    def act(pid):
        nonlocal is_called
        arguments = pathlib.Path(f"/proc/{pid}/syscall").read_text().split()[1:3]
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            for at in arguments:
                with contextlib.suppress(OSError, ValueError, OverflowError):
                    memory.seek(int(at, 16))
                    seen.add(memory.read(64).split(b"\0")[0])
        if not is_called and is_armed(p.pid):
            is_called = True
            p.order("call()")  # the thread may still be stopped

    at_each_call(Attach(s, p.pid, "--for", "1s"), act)
    equal(p.child.stdout.readline(), "0\n", "the result of a call")
    a = Attach(s, p.pid, "--stay")
    a.await_armed(p.pid)
    p.do("call()")
    a.end(number=None)
    at_each_call(Background(s, CUDATRACE, "detach", p.pid), act)
    equal(recorded(s, p.pid), 2, "calls")
    p.end()
    names = {name.decode(errors="replace").removeprefix(f"/proc/{p.pid}").lstrip("/") for name in seen if
             name.startswith(f"/proc/{p.pid}".encode())}
    check(len(names) > 5, "hardly a path was seen:", names)
    equal({name for name in names if not harmless.fullmatch(name)}, set(), "paths that the process controls")


def executed_before(s):
    """The process executes another program just before a tracer stops it for the first time. A child keeps the old memory alive."""
    p = Target(s)
    a = Attach(s, p.pid)
    at_each_call(a, lambda pid: pid != a.child.pid and not p.keepers and p.execute())
    check("executes another program now, before it was recorded" in a.said, a.said)
    p.end(-signal.SIGTERM)


def executed_at_the_end(s):
    """The process executes another program just before a tracer stops it to end the recording."""
    p = Target(s)
    a = Attach(s, p.pid)
    a.await_armed(p.pid)
    p.do("call()")
    a.await_line("is recorded")
    p.do("call()")
    at_each_call(a, lambda pid: pid != a.child.pid and not p.keepers and p.execute(), signal.SIGINT)
    check("executes another program now: its earlier calls are recorded" in a.said, a.said)
    equal(recorded(s, p.pid), 2, "calls before it")
    p.end(-signal.SIGTERM)


def executed_meanwhile(s):
    """The process executes another program while it is recorded, and attach notices that although the old memory is still there."""
    p = Target(s)
    a = Attach(s, p.pid)
    a.await_armed(p.pid)
    p.do("call()")
    a.await_line("is recorded")
    p.execute()
    a.await_line("executes another program now: its earlier calls are recorded")
    a.end(number=None)
    p.end(-signal.SIGTERM)


def named_session(s):
    """The process names a session for detach that leads out of the session's folder."""
    p = Target(s)
    a = Attach(s, p.pid, "--stay")
    a.await_armed(p.pid)
    p.do("call()")
    a.end(number=None)
    area = next(line.split("-")[0] for line in pathlib.Path(f"/proc/{p.pid}/maps").read_text().splitlines() if "cudatrace-visit" in line)
    with open(f"/proc/{p.pid}/mem", "wb", buffering=0) as memory:
        memory.seek(int(area, 16) + AREA_DATA + SESSION)
        memory.write(b"../elsewhere\0")
    check("names session '../elsewhere'" in (said := detach(s, p.pid, status=1)), said)
    p.end()


def shared(s):
    """A process whose memory another process uses is refused."""
    p = Target(s)
    p.keep_memory()
    check(f"shares its memory with another process, {p.keepers[0]}, which is not one of its threads" in attach(s, p.pid, status=1), "a keeper")
    os.kill(p.keepers.pop(), signal.SIGKILL)
    p.do("os.wait()")
    a = Attach(s, p.pid)
    a.await_armed(p.pid)
    p.do("call()")
    a.await_line("is recorded")
    a.end()
    p.end()


def locked(s):
    """Other commands keep the locks on two recorded processes. At its end, attach waits for both of them together."""
    programs = [Program(s, "paced") for _ in range(2)]
    a = Attach(s, *(p.pid for p in programs))
    for _ in programs:
        a.await_line("is recorded")
    folders = [lock(p.pid) for p in programs]
    said = a.end(status=1)
    equal(said.count("keeps its lock"), 2, said)
    equal(said.count("waiting for another command that is busy with it"), 1, said)
    for p, folder in zip(programs, folders):
        os.close(folder)
        detach(s, p.pid)
        p.end(signal.SIGTERM)


TESTS = {f"replaced-{which}-{delay}": lambda s, which=which, delay=delay: replaced_descriptor(s, which, delay)
         for which in (1, 2) for delay in by_tier((0, 20), range(0, 36, 4))}
TESTS |= {f"replaced-low-{which}": lambda s, which=which: replaced_descriptor(s, which, 0, min) for which in (1, 2)}
TESTS |= {test.__name__: test for test in (no_names, executed_before, executed_at_the_end, executed_meanwhile, named_session, shared, locked)}

needs("ptrace")
for name in sys.argv[1:] or TESTS:
    with Session() as session:
        session.start_daemon()
        TESTS[name](session)
        session.stop_daemon()
    print(name, flush=True)
