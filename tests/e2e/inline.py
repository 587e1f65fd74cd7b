"""Tests `cudatrace attach --inline` on a driver with an unknown table, for each kind of function entry. Even while other threads make
calls, every call to each function must be recorded, with unchanged arguments and results. After detaching, the driver's code must be the
same as before."""
import pathlib
import re
import signal
import struct
import subprocess
import sys

from attach_test import INLINE, Attach, attach, await_leave, detach, mapped
from cudatrace_test import CUDATRACE, DEADLINE_S, SIMCUDA, Session, by_tier, check, equal, needs

DRIVER = (SIMCUDA / "libcuda.so.1").resolve()
JUMP_BYTES = 5

# For each line on standard input, this program calls every function of the driver once, and prints the results. The arguments fill all
# argument registers and a part of the stack. The driver's functions return a checksum of their arguments. At the same time, other threads
# keep calling one function.
CLIENT = """
import ctypes, sys, threading
driver = ctypes.CDLL("libcuda.so.1")
kinds = [ctypes.c_float] * 2 + [ctypes.c_uint64] * 16
memory = ctypes.create_string_buffer(1 << 20)
numbers = [1.5, 2.25] + [ctypes.addressof(memory) + 4097 * n for n in range(16)]
names = sys.argv[2:]
functions = [driver[name] for name in names]
for function in functions:
    function.argtypes = kinds
ended, wrong, made = threading.Event(), [], [0] * int(sys.argv[1])
busy = functions[names.index("cuDriverGetVersion")]
wanted = busy(*numbers)
def work(thread):
    while not ended.is_set():
        if busy(*numbers) != wanted:
            wrong.append(thread)
        made[thread] += 1
threads = [threading.Thread(target=work, args=(thread,)) for thread in range(len(made))]
for thread in threads:
    thread.start()
print("ready", flush=True)
for line in sys.stdin:
    print(*[function(*numbers) for function in functions], flush=True)
ended.set()
for thread in threads:
    thread.join()
print("wrong", len(wrong), "made", sum(made) + 1, flush=True)
"""


# This program starts a child that shares its memory. The child sleeps until it is killed.
SHARER = """
import ctypes, os, signal, sys
driver, c = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(None)
number, stack = ctypes.c_int(), ctypes.create_string_buffer(1 << 20)
CLONE_VM = 0x100
child = c.clone(c.pause, ctypes.c_void_p(ctypes.addressof(stack) + (1 << 20)), CLONE_VM | signal.SIGCHLD, None)
print("ready", flush=True)
for line in sys.stdin:
    if line == "kill\\n":
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    print(driver.cuDriverGetVersion(ctypes.byref(number)), flush=True)
"""


def exports():
    """Returns (the names of the driver's functions, the driver's code, the code's offset in the file)."""
    listed = subprocess.run(["nm", "-D", "--defined-only", "--format=posix", DRIVER], capture_output=True, text=True, check=True).stdout
    names = sorted(line.split()[0] for line in listed.splitlines() if re.match(r"cu[A-Z]\w* T ", line))
    data = DRIVER.read_bytes()
    at, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    for i in range(count):
        kind, flags, offset, address, _, bytes_in_file = struct.unpack_from("<IIQQQQ", data, at + i * size)
        if kind == 1 and flags & 1:
            return names, data[offset:offset + bytes_in_file], offset
    raise AssertionError("the driver has no code")


EXPORTS, CODE, OFFSET = exports()
NAMES = [name for name in EXPORTS if not name.startswith("cuSimcuda")]  # unknown to the hook
JUMPS = len(EXPORTS) - 1  # all except cuSimcudaCalls


def code_of(pid):
    """Reads the driver's code from the process's memory."""
    maps = pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
    begin = next(int(line.split("-")[0], 16) - int(line.split()[2], 16) for line in maps if str(DRIVER) in line and " r-xp " in line)
    with open(f"/proc/{pid}/mem", "rb") as memory:
        memory.seek(begin + OFFSET)
        return memory.read(len(CODE))


def places(code):
    """Counts the places where the code differs from the driver's file. Differences within the length of a jump count as one place."""
    found, last = 0, -JUMP_BYTES
    for at, (is_now, was) in enumerate(zip(code, CODE)):
        if is_now != was and at >= last + JUMP_BYTES:
            found, last = found + 1, at
    return found


class Client:
    def __init__(self, s, threads, program=CLIENT):
        self.child = s.start(sys.executable, "-c", program, threads, *NAMES, preload=False, env={"SIMCUDA_VERIFY": "checksum"},
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.child.pid
        equal(self.child.stdout.readline(), "ready\n", "the client")

    def round(self, line=""):
        self.child.stdin.write(f"{line}\n")
        self.child.stdin.flush()
        return self.child.stdout.readline().split()

    def end(self):
        said = self.child.communicate(timeout=DEADLINE_S)[0]
        equal(self.child.returncode, 0, said)
        wrong, made = re.fullmatch(r"wrong (\d+) made (\d+)\n", said).groups()
        equal(int(wrong), 0, "results of the threads that were others")
        return int(made)


def differences(seen, wanted):
    """Returns {function: both counts} for the functions whose call counts differ."""
    return {name: (seen.get(name), wanted.get(name)) for name in seen.keys() | wanted.keys() if seen.get(name) != wanted.get(name)}


def counts(s, pid):
    return dict(s.rows("SELECT name, sum(calls) FROM totals JOIN processes USING (process_id) WHERE pid = ? GROUP BY name", pid))


def every_function(s):
    """Checks that the number of recorded calls and the results of every function are exact, and that the second attach reuses the memory
    that the first one has mapped."""
    client = Client(s, 0)
    before = client.round()
    equal(len(before), len(NAMES), "results")
    memory = None
    for turn in range(2):
        a = Attach(s, client.pid)
        refused = "" if turn else "; 1 do not: they call a function in their first instructions"
        check(f": {JUMPS} functions get jumps{refused}\n" in a.await_line("get jumps"), a.said)
        a.await_armed(client.pid)
        equal(client.round(), before, "results of the round that brings the hook in")
        a.await_line("is recorded")
        equal(places(code_of(client.pid)), JUMPS, "functions that begin with other bytes than in the file")
        for _ in range(3):
            equal(client.round(), before, "results while it is recorded")
        a.end()
        check(code_of(client.pid) == CODE, "the code has other bytes than the file")
        equal(differences(counts(s, client.pid), {name: 4 * (turn + 1) for name in NAMES}), {}, "calls: recorded, and made")
        equal(client.round(), before, "results after that")
        equal(memory or mapped(client.pid), mapped(client.pid), "what is mapped after the second time")
        memory = mapped(client.pid)
    made = client.end()
    truth = {name: calls for (pid, name), calls in s.truth().items() if pid == client.pid}
    equal(truth.pop("cuDriverGetVersion"), 11 + made, "calls of the first function")
    equal({truth[name] for name in NAMES if name in truth}, {11}, "calls that the driver counted")


def while_others_call(s):
    client = Client(s, 3)
    before = client.round()
    rounds = by_tier(3, 30, 100)
    memory = None
    for _ in range(rounds):
        a = Attach(s, client.pid)
        a.await_line("is recorded")
        equal(client.round(), before, "results while others call")
        a.end()
        check(code_of(client.pid) == CODE, "the code has other bytes than the file")
        equal(memory or mapped(client.pid), mapped(client.pid), "what is mapped")
        memory = mapped(client.pid)
    made = client.end() + rounds + 1
    seen = counts(s, client.pid)
    busy = seen.pop("cuDriverGetVersion")
    equal(differences(seen, {name: rounds for name in NAMES if name != "cuDriverGetVersion"}), {}, "calls: recorded, and made")
    check(rounds < busy <= made, "calls of the busy function:", busy, "of", made)
    truth = {name: calls for (pid, name), calls in s.truth().items() if pid == client.pid}
    equal(truth["cuDriverGetVersion"], made, "calls of it that the driver counted")


def restored(s):
    """Checks that the driver's code is restored if attach ends early, and that attach without --inline reports that the driver is
    unknown."""
    client = Client(s, 0)
    command = [CUDATRACE, "attach", "--session", s.name, "--db", s.db, client.pid]
    check("has an unknown driver" in s.run(*command, preload=False, status=1).stderr, "without --inline")
    check("made no CUDA call" in attach(s, client.pid, "--wait", "1s", status=1), "without a call")
    check(code_of(client.pid) == CODE, "the code has other bytes than the file")
    a = Attach(s, client.pid)
    a.await_line("waiting for its next CUDA call")
    a.end(-signal.SIGKILL, signal.SIGKILL)
    check("was not recorded yet" in detach(s, client.pid), "after a killed attach")
    check(code_of(client.pid) == CODE, "the code has other bytes than the file")
    a = Attach(s, client.pid, "--stay")
    a.await_armed(client.pid)
    client.round()
    a.end(number=None)
    check("is already attached to" in attach(s, client.pid, status=1), "attaching twice")
    detach(s, client.pid)
    check(code_of(client.pid) == CODE, "the code has other bytes than the file")
    check("has an unknown driver" in s.run(*command, preload=False, status=1).stderr, "without --inline, once more")
    client.end()


def shared(s):
    """Checks that attach refuses a process that shares its memory with another process. Attach would change the code while the other
    process is running."""
    client = Client(s, 0, SHARER)
    check("shares its memory with another process" in attach(s, client.pid, status=1), "with a child in its memory")
    check(code_of(client.pid) == CODE, "the code has other bytes than the file")
    client.round("kill")
    a = Attach(s, client.pid)
    a.await_armed(client.pid)
    client.round()
    a.await_line("is recorded")
    a.end()
    check(code_of(client.pid) == CODE, "the code has other bytes than the file")
    client.child.communicate(timeout=DEADLINE_S)
    equal(client.child.returncode, 0, "its exit status")


check(INLINE, "this test is about a driver whose table is unknown")
needs("ptrace")
for test in every_function, while_others_call, restored, shared:
    with Session() as session:
        test(session)
        await_leave(session)
    print(test.__name__, flush=True)
