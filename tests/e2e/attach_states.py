"""Attaches to processes in unusual states: their first thread has exited, a thread belongs to the kernel, their control group is frozen,
they fork, wait for a child of vfork(), may not write files, may not read the processor's counter, use Syscall User Dispatch, confine
themselves, may be cancelled at any instruction, open and close files, or are in the middle of a transfer."""
import os
import pathlib
import platform
import re
import resource
import select
import signal
import socket
import subprocess
import sys

from attach_test import INLINE, Attach, at_each_call, attach, await_leave, detach, recorded, state_of, tracer_of
from cudatrace_test import BUILD, CUDATRACE, DEADLINE_S, Session, can, check, equal, needs, wait_for
from untraced import Program


def is_blocked(pid, number):
    mask = re.search(r"^SigBlk:\s+(\w+)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return int(mask[1], 16) >> (number - 1) & 1


# Its first thread exits, and its second makes a call for each line.
WITHOUT_FIRST = """
import ctypes, os, sys, threading
driver, number, EXIT = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), 60
def work():
    for line in sys.stdin:
        print(driver.cuDriverGetVersion(ctypes.byref(number)), flush=True)
    os._exit(0)
threading.Thread(target=work).start()
ctypes.CDLL(None).syscall(EXIT, 0)
"""


def without_first(s):
    """Checks that a process whose first thread has exited is recorded, and can be detached."""
    child = s.start(sys.executable, "-c", WITHOUT_FIRST, preload=False, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    wait_for("the first thread to exit", lambda: state_of(child.pid) == "Z")
    thread = max(int(name) for name in os.listdir(f"/proc/{child.pid}/task"))

    def call():
        child.stdin.write("\n")
        child.stdin.flush()
        equal(child.stdout.readline(), "0\n", "the result of a call")

    for turn in 1, 2:
        a = Attach(s, child.pid, "--stay")
        a.await_armed(thread)
        call()
        a.end(number=None)
        call()
        detach(s, child.pid)
        equal(recorded(s, child.pid), 2 * turn, "calls")
    child.communicate(timeout=DEADLINE_S)
    equal(child.returncode, 0, "its exit status")


# Starts a thread of the kernel, which polls an io_uring for the process.
POLLED = """
import ctypes, sys
driver, number, IO_URING_SETUP, IORING_SETUP_SQPOLL = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), 425, 2
parameters = (ctypes.c_uint32 * 30)(0, 0, IORING_SETUP_SQPOLL, 0, 60000)
print(ctypes.CDLL(None).syscall(IO_URING_SETUP, 8, parameters), flush=True)
for line in sys.stdin:
    print(driver.cuDriverGetVersion(ctypes.byref(number)), flush=True)
"""


def with_kernels_thread(s):
    """Checks that a process is recorded although one of its threads belongs to the kernel, and cannot be examined like others."""
    child = s.start(sys.executable, "-c", POLLED, preload=False, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if int(child.stdout.readline()) < 0:
        print("not tried: a thread of the kernel: no io_uring here")
    a = Attach(s, child.pid)
    a.await_armed(child.pid)
    child.stdin.write("\n")
    child.stdin.flush()
    equal(child.stdout.readline(), "0\n", "the result of a call")
    a.await_line("is recorded")
    a.end()
    child.communicate(timeout=DEADLINE_S)
    equal((child.returncode, recorded(s, child.pid)), (0, 1), "its exit status, and calls")


def frozen_groups():
    """Returns {version: (folder of control groups, file, words for frozen and thawed)} of the mounted control groups that can be frozen."""
    found = {}
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        _, folder, kind, options = line.split()[:4]
        if kind == "cgroup" and "freezer" in options.split(","):
            found[1] = pathlib.Path(folder), "freezer.state", "FROZEN", "THAWED"
        elif kind == "cgroup2":
            found[2] = pathlib.Path(folder), "cgroup.freeze", "1", "0"
    return {version: group for version, group in found.items() if os.access(group[0], os.W_OK)}


def frozen(s):
    """Checks that a process that a signal has stopped, and that is in a frozen control group, is refused and continues unchanged."""
    groups = frozen_groups()
    if not groups:
        print("not tried: a frozen process: no control groups here")
    for version, (folder, file, is_frozen, is_thawed) in groups.items():
        p = Program(s, "steps")
        p.child.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, p.pid, os.WSTOPPED | os.WNOWAIT)
        group = folder / s.name
        group.mkdir()
        try:
            (group / "cgroup.procs").write_text(str(p.pid))
            (group / file).write_text(is_frozen)
            said = attach(s, p.pid, status=1)
            check("has no thread that stops: all are blocked in the kernel or frozen" in said, version, said)
            wait_for("the tracer to end", lambda: tracer_of(p.pid) == 0)
        finally:
            (group / file).write_text(is_thawed)
        p.child.send_signal(signal.SIGCONT)
        p.step(5)
        p.end()
        wait_for("the group to be empty", lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


# For each line, either makes a call, or starts or ends a fork. The fork waits at a test point of the hook, and its child is not used.
FORKING = """
import ctypes, os, signal, sys, threading
driver, c, number = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(None), ctypes.c_int()
def fork():
    child = c.fork()
    if child == 0:
        c._exit(0)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
forker = threading.Thread(target=fork)
print("ready", flush=True)
for line in sys.stdin:
    if line == "fork\\n":
        print(forker.start(), flush=True)
    elif line == "end\\n":
        os.environ.pop("CUDATRACE_TEST_POINT")
        print(forker.join(), flush=True)
    else:
        print(driver.cuDriverGetVersion(ctypes.byref(number)), flush=True)
"""


def forking(s):
    """Attaches while another thread forks. That thread then exchanges the driver's slots, after its fork."""
    hook = BUILD / "tests/faults/libcudatrace.so"
    if not hook.exists():
        return
    child = s.start(sys.executable, "-c", FORKING, preload=False, env={"CUDATRACE_TEST_POINT": "driver_functions.fork_begun:1:wait"},
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    equal(child.stdout.readline(), "ready\n", "the program")

    def do(line, answer):
        child.stdin.write(f"{line}\n")
        child.stdin.flush()
        equal(child.stdout.readline(), f"{answer}\n", line)

    def is_waiting():
        """Returns whether a thread is in nanosleep(), in which it waits at the test point."""
        return any(call.read_text().startswith("35 ") for call in pathlib.Path(f"/proc/{child.pid}/task").glob("*/syscall"))

    for turn in 1, 2:
        if turn == 2:
            do("fork", None)
            wait_for("the fork to begin", is_waiting)
        a = Attach(s, child.pid, "--stay", env={"CUDATRACE_HOOK": hook})
        a.await_armed(child.pid)
        do("call", 0)
        a.end(number=None)
        if turn == 2:
            do("end", None)
            do("call", 0)
        s.run(CUDATRACE, "detach", child.pid, preload=False, env={"CUDATRACE_HOOK": hook})
        equal(recorded(s, child.pid), turn, "calls")
    child.communicate(timeout=DEADLINE_S)
    equal(child.returncode, 0, "its exit status")


def limited(s):
    """Checks that a process that may write no files is refused, and does not receive SIGXFSZ."""
    p = Program(s, "calls")
    soft, hard = resource.prlimit(p.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(p.pid, resource.RLIMIT_FSIZE, (0, hard))
    said = attach(s, p.pid, status=1)
    check("may not write files as large as the library (ulimit -f)" in said, said)
    resource.prlimit(p.pid, resource.RLIMIT_FSIZE, (soft, hard))  # the simulated driver writes a file at the end
    p.end(signal.SIGTERM)


def interrupted(s):
    """Checks that Ctrl-C ends a command that waits for a child of vfork() before it attaches to the child's parent."""
    p = Program(s, "vforked")
    wait_for("the child", pathlib.Path(f"/proc/{p.pid}/task/{p.pid}/children").read_text)
    a = Attach(s, p.pid)
    wait_for("attach to block its signals", lambda: is_blocked(a.child.pid, signal.SIGINT))
    said = a.end(status=1)
    check("was not attached to, because the command was interrupted" in said, said)
    p.child.stdin.write("\n")
    equal(p.end(), "woke 0 fine\n", "its end")


def denied(s):
    """Checks that a process that may not read the processor's counter is refused, and not killed."""
    p = Program(s, "denied")
    a = Attach(s, p.pid)
    a.await_armed(p.pid)
    p.step(1)
    said = a.end(status=1, number=None)
    check("may not read a clock in the thread that would begin the recording (prctl PR_SET_TSC)" in said, said)
    p.step(5)
    p.end()


# Its second thread uses Syscall User Dispatch, with a selector that permits all system calls. Prints 0 if the kernel supports this.
DISPATCHING = """
import ctypes, os, signal, sys, threading
driver, c, number, selector = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(None), ctypes.c_int(), ctypes.c_char()
SET_SYSCALL_USER_DISPATCH, ON, end = 59, 1, threading.Event()
signal.signal(signal.SIGSYS, lambda *_: os._exit(1))
def work():
    print(c.prctl(SET_SYSCALL_USER_DISPATCH, ON, 0, 0, ctypes.byref(selector)), flush=True)
    end.wait()
threading.Thread(target=work).start()
for line in sys.stdin:
    print(driver.cuDriverGetVersion(ctypes.byref(number)), flush=True)
end.set()
"""


def dispatching(s):
    """Checks that a process is refused if one of its threads uses Syscall User Dispatch."""
    child = s.start(sys.executable, "-c", DISPATCHING, preload=False, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    supported = child.stdout.readline() == "0\n"
    if supported and tuple(map(int, platform.release().split(".")[:2])) >= (6, 4):
        said = attach(s, child.pid, status=1)
        check("uses Syscall User Dispatch" in said, said)
        child.stdin.write("\n")
        child.stdin.flush()
        equal(child.stdout.readline(), "0\n", "the result of a call")
    else:
        print("not tried: Syscall User Dispatch: this kernel does not support or report it")
    child.communicate(timeout=DEADLINE_S)
    equal(child.returncode, 0, "its exit status")


FILTERING = """
import ctypes, struct
PRCTL, NO_NEW_PRIVS, SET_SECCOMP, FILTER = 157, 38, 22, 2
KILL_PROCESS, ALLOW, LOAD, EQUAL, RETURN = 0x80000000, 0x7fff0000, 0x20, 0x15, 0x06
c, kept = ctypes.CDLL(None), []
def filter_of(*forbidden):
    '''Returns a filter that kills the process for these system calls.'''
    code = struct.pack("HBBI", LOAD, 0, 0, 0)
    for i, system_call in enumerate(forbidden):
        code += struct.pack("HBBI", EQUAL, len(forbidden) - i, 0, system_call)
    code += struct.pack("HBBI", RETURN, 0, 0, ALLOW) + struct.pack("HBBI", RETURN, 0, 0, KILL_PROCESS)
    kept.append(ctypes.create_string_buffer(code))
    return ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(kept[-1])))
"""
# Confines itself after the first line, with a filter that kills it for system calls of a visit, and makes a call after each further line.
CONFINING = FILTERING + """
import sys
driver, number, forbidden = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), (39, 5, 72)  # getpid, fstat, fcntl
print(driver.cuDriverGetVersion(ctypes.byref(number)), flush=True)
sys.stdin.readline()
print(c.prctl(NO_NEW_PRIVS, 1, 0, 0, 0) or c.prctl(SET_SECCOMP, FILTER, filter_of(*forbidden), 0, 0), flush=True)
for line in sys.stdin:
    print(driver.cuDriverGetVersion(ctypes.byref(number)), flush=True)
"""


def confining(s):
    """Checks that a process survives if it installs a system call filter while attach waits for its next call. The process makes this call,
    or attach gives up, or is interrupted."""
    if not can("filters of system calls", "a filter that is installed during an attach"):
        return
    for options, calls, number in (("--wait", "1h"), True, None), (("--wait", "1s"), False, None), (("--wait", "1h"), False, signal.SIGINT):
        child = s.start(sys.executable, "-c", CONFINING, preload=False, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        def do():
            child.stdin.write("\n")
            child.stdin.flush()
            equal(child.stdout.readline(), "0\n", "the result")

        equal(child.stdout.readline(), "0\n", "the first call")
        a = Attach(s, child.pid, *options)
        a.await_armed(child.pid)
        do()
        if calls:
            do()
        said = a.end(status=1, number=number)
        check("has a system call filter (seccomp mode 2), which may kill it" in said, said)
        do()
        child.communicate(timeout=DEADLINE_S)
        equal(child.returncode, 0, "its exit status")


# Executes the lines of its input.
OBEYING = """
import ctypes, os, select, socket, sys, threading
driver, number, pipe = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), int(sys.argv[1])
peer, BYTES, TRANSFER = socket.socket(fileno=pipe), 1 << 20, bytes(1 << 20)
def call():
    return driver.cuDriverGetVersion(ctypes.byref(number))
def numbers(count):
    files = [os.open("/dev/null", os.O_RDONLY) for _ in range(count)]
    for file in files:
        os.close(file)
    return files
for line in sys.stdin:
    print(eval(line), flush=True)
"""


TRANSFER_BYTES = 1 << 20
# {name: (number of the system call, the line that makes it)}. Each transfers TRANSFER_BYTES, and sleeps in between.
TRANSFERS = {
    "write": (1, "os.write(pipe, TRANSFER)"),
    "writev": (20, "os.writev(pipe, [TRANSFER])"),
    "send": (44, "peer.send(TRANSFER)"),
    "sendmsg": (46, "peer.sendmsg([TRANSFER])"),
    "recv": (45, "len(peer.recv(BYTES, socket.MSG_WAITALL))"),
    "recvmsg": (47, "len(peer.recvmsg(BYTES, 0, socket.MSG_WAITALL)[0])"),
}


class Obeying:
    """A program that executes lines. It has a socket, at whose other end is the test."""

    def __init__(self, s):
        self.socket, its = socket.socketpair()
        self.child = s.start(sys.executable, "-c", OBEYING, its.fileno(), preload=False, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                             pass_fds=[its.fileno()])
        its.close()
        self.pid = self.child.pid
        equal(self.do("call()"), "0", "the result of a call")

    def order(self, line):
        self.child.stdin.write(f"{line}\n")
        self.child.stdin.flush()

    def do(self, line):
        self.order(line)
        return self.child.stdout.readline().strip()

    def files(self):
        """Returns the names of the process's files that attach has made."""
        names = [os.readlink(file) for file in pathlib.Path(f"/proc/{self.pid}/fd").iterdir()]
        return [name for name in names if name.startswith("/memfd:")]

    def table_size(self):
        return int(re.search(r"FDSize:\t(\d+)", pathlib.Path(f"/proc/{self.pid}/status").read_text())[1])

    def begin_transfer(self, kind):
        """Makes the program send or receive a part of its bytes, and waits until the program sleeps in the system call."""
        number, line = TRANSFERS[kind]
        if "recv" in kind:
            self.socket.sendall(bytes(TRANSFER_BYTES // 16))
        self.order(line)
        call = pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/syscall")
        wait_for(f"the program to sleep in {kind}()", lambda: call.read_text().startswith(f"{number} ") and state_of(self.pid) == "S")

    def end_transfer(self, kind):
        """Sends or receives until the program's system call returns. Returns its result."""
        if "recv" in kind:
            self.socket.sendall(bytes(TRANSFER_BYTES - TRANSFER_BYTES // 16))
        while self.child.stdout not in (ready := select.select([self.socket, self.child.stdout], [], [], DEADLINE_S)[0]):
            check(ready, f"the program's {kind}() does not end")
            self.socket.recv(1 << 16)
        return int(self.child.stdout.readline())

    def end(self):
        self.child.communicate(timeout=DEADLINE_S)
        equal(self.child.returncode, 0, "its exit status")
        self.socket.close()


def without_daemon(s):
    """Checks that Ctrl-C ends attach while it waits for the daemon that it has started, and that the process has not been changed."""
    p, begun, daemon = Obeying(s), s.dir / "begun", s.dir / "hanging-daemon"
    os.mkfifo(begun)
    daemon.write_text(f"#!/bin/sh\necho >{begun}\nexec sleep 1000000\n")
    daemon.chmod(0o755)
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        a = s.start(CUDATRACE, "attach", "--db", s.dir / "own.db", *INLINE, p.pid, preload=False, env={"CUDATRACE_DAEMON": daemon},
                    stderr=subprocess.PIPE, start_new_session=True)
        begun.read_text()
        a.send_signal(number)
        equal(a.wait(DEADLINE_S), -number, "the end of attach")
        os.killpg(a.pid, signal.SIGKILL)  # the daemon
        a.stderr.close()
    equal(p.do("call()"), "0", "the result of a call")
    equal(p.files(), [], "files of attach")
    p.end()


def opening(s):
    """Checks that between the attach and the next call, the process's open() returns the same numbers as without attach, also if it may open
    only one more file, and if the kernel's table of its descriptors is almost full."""
    p = Obeying(s)
    first, second = re.findall(r"\d+", p.do("numbers(2)"))
    hard = resource.prlimit(p.pid, resource.RLIMIT_NOFILE)[1]

    def check_numbers(what, count):
        before = p.do(f"numbers({count})")
        a = Attach(s, p.pid)
        a.await_armed(p.pid)
        equal(p.do(f"numbers({count})"), before, f"numbers of new descriptors {what}")
        a.end()
        equal(p.files(), [], f"files of attach {what}")

    check_numbers("at first", 20)
    size = p.table_size()
    for limit, count in (int(second) + 1, 1), (int(first) + 1, 0):
        resource.prlimit(p.pid, resource.RLIMIT_NOFILE, (limit, hard))
        check_numbers(f"with a limit of {limit}", count)
    resource.prlimit(p.pid, resource.RLIMIT_NOFILE, (min(8 * size, hard), hard))
    p.do(f"[os.dup(pipe) for _ in range({size - 16 - int(second)})]")
    check_numbers("in a table that is almost full", 15)
    check(p.table_size() > size, "attach has not used a number beyond the table's", size)
    p.end()


def opening_and_calling(s):
    """Checks that the hook is loaded through the descriptor, and that the descriptor is then closed."""
    p = Obeying(s)
    a = Attach(s, p.pid)
    a.await_armed(p.pid)
    equal(len(p.files()), 1, "files of attach before the call")
    equal(p.do("call()"), "0", "the result of a call")
    a.await_line("is recorded")
    equal(p.files(), [], "files of attach after the call")
    a.end()
    equal(recorded(s, p.pid), 1, "calls")
    p.end()


def closing(s):
    """Checks that attach names the reason if the process has closed all descriptors that it did not open, before its next call."""
    p = Obeying(s)
    a = Attach(s, p.pid)
    a.await_armed(p.pid)
    p.do("os.closerange(3, pipe), os.closerange(pipe + 1, 1 << 20)")
    equal(p.do("call()"), "0", "the result of a call")
    said = a.end(status=1, number=None)
    check("could not load the hook: it has closed the hook's file; try again\n" in said, said)
    p.end()


def transferring(s):
    """Checks that attach stops another thread rather than one whose system call would return early. The other thread sleeps in a system
    call that the kernel does not restart."""
    p = Obeying(s)
    p.do("threading.Thread(target=select.epoll().poll, daemon=True).start()")
    wait_for("the thread to sleep in epoll_wait()", lambda: any(
        call.read_text().startswith("232 ") for call in pathlib.Path(f"/proc/{p.pid}/task").glob("*/syscall")))
    for kind in TRANSFERS:
        p.begin_transfer(kind)
        a = Attach(s, p.pid)
        a.await_armed(p.pid)
        a.end()
        equal(p.end_transfer(kind), TRANSFER_BYTES, f"bytes that {kind}() returned")
    p.end()


def transferring_alone(s):
    """Checks that attach waits before it stops the only thread, whose write() would return early. The test lets the write() end when the
    tracer looks at the thread for the second time."""
    p = Obeying(s)
    p.begin_transfer("write")
    looks, results = 0, []
    wanted = f"/proc/{p.pid}/task/{p.pid}/syscall\0".encode()

    def act(pid):
        nonlocal looks
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            for at in pathlib.Path(f"/proc/{pid}/syscall").read_text().split()[1:3]:
                try:
                    memory.seek(int(at, 16))
                    looks += memory.read(len(wanted)) == wanted
                except (OSError, ValueError, OverflowError):
                    pass
        if looks == 3 and not results:  # each look is two stops, at its entry and its exit
            results.append(p.end_transfer("write"))

    a = Attach(s, p.pid, "--wait", "1s")
    at_each_call(a, act)
    check("made no CUDA call in this time and was not changed" in a.said, a.said)
    equal(results, [TRANSFER_BYTES], "bytes that write() returned")
    p.end()


SET_CANCEL_TYPE = "ctypes.CDLL(None).pthread_setcanceltype({}, ctypes.byref(number)), number.value"


def cancellable(s):
    """Checks that calls by a thread that may be cancelled at any instruction are left alone, and that another call is visited."""
    p = Obeying(s)
    a = Attach(s, p.pid)
    a.await_armed(p.pid)
    equal(p.do(SET_CANCEL_TYPE.format(1)), "(0, 0)", "the type before")
    equal(p.do("call()"), "0", "the result of a call that is left alone")
    equal(p.do(SET_CANCEL_TYPE.format(0)), "(0, 1)", "the type after the call")
    a.await_armed(p.pid)
    equal(p.do("call()"), "0", "the result of a call that is visited")
    a.await_line("is recorded")
    equal(p.do(SET_CANCEL_TYPE.format(1)), "(0, 0)", "the type after the call")
    a.end()
    equal(recorded(s, p.pid), 1, "calls")
    p.order("[call() for _ in iter(lambda: select.select([0], [], [], 0.001)[0], [0])].count(0) > 0")
    said = attach(s, p.pid, "--wait", "3s", status=1)
    check("by threads that may be cancelled at any instruction" in said, said)
    p.order("0")
    equal((p.child.stdout.readline(), p.child.stdout.readline()), ("True\n", "0\n"), "the results of the calls")
    p.end()


CALLING = """
HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda _: call() and None)
VISITOR = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)(lambda *_: call() or 1)
c = ctypes.CDLL(None)
c.signal(10, HANDLER)
raise_ = c["raise"]
"""


def with_locks(s):
    """Checks that calls in a signal handler, and while a thread holds a lock of the loader, are left alone, because the visit could wait for
    ever. Another call is visited."""
    p = Obeying(s)
    equal(p.do("exec(" + repr(CALLING) + ", globals())"), "None", "the preparation")
    for line, answer, why in (("raise_(10)", "0", "in signal handlers"),
                              ("c.dl_iterate_phdr(VISITOR, None)", "1", "while a thread loaded or unloaded a library")):
        p.order(f"[{line} for _ in iter(lambda: select.select([0], [], [], 0.001)[0], [0])].count({answer}) > 0")
        said = attach(s, p.pid, "--wait", "3s", status=1)
        check(f"was not changed: all its CUDA calls were made {why}" in said, said)
        p.order("0")
        equal((p.child.stdout.readline(), p.child.stdout.readline()), ("True\n", "0\n"), "the results of the calls")
    a = Attach(s, p.pid)
    a.await_armed(p.pid)
    equal(p.do("raise_(10)"), "0", "a signal")
    a.await_armed(p.pid)
    equal(p.do("call()"), "0", "the result of a call that is visited")
    a.await_line("is recorded")
    a.end()
    equal(recorded(s, p.pid), 1, "calls")
    p.end()


def confined(s):
    """Checks that a recorded process survives its detach if it has installed a filter that kills it for the system calls of a detach, without
    the hook's notice."""
    if not can("filters of system calls", "a filter that is installed during a recording"):
        return
    p = Obeying(s)
    equal(p.do("exec(" + repr(FILTERING + "confine = c.syscall") + ")"), "None", "the lookup of syscall()")
    a = Attach(s, p.pid, "--stay")
    a.await_armed(p.pid)
    equal(p.do("call()"), "0", "the result of a call that is visited")
    a.end(number=None)
    equal(p.do("confine(PRCTL, NO_NEW_PRIVS, 1, 0, 0, 0) or confine(PRCTL, SET_SECCOMP, FILTER, filter_of(202, 10, 44), 0, 0)"), "0", "the filter")
    detach(s, p.pid)
    equal(p.do("call()"), "0", "the result of a call after the detach")
    equal(recorded(s, p.pid), 1, "calls")
    p.end()


TESTS = {
    test.__name__: test for test in (without_first, with_kernels_thread, frozen, forking, limited, interrupted, denied, dispatching, confining, without_daemon,
                                     opening, opening_and_calling, closing, cancellable, with_locks, confined)
}
if not INLINE:  # which stops all threads
    TESTS |= {test.__name__: test for test in (transferring, transferring_alone)}

needs("ptrace")
for name in sys.argv[1:] or TESTS:
    with Session() as session:
        TESTS[name](session)
        await_leave(session)
    print(name, flush=True)
