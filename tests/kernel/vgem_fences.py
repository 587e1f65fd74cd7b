"""Tests a real driver's DMA fences (`cudatrace probe --kernel`), in a virtual machine that has loaded vgem. A program attaches fences to
buffers, signals them in a known order, and waits for some of them. Arguments select tests by name; the default is all tests."""
import contextlib
import ctypes
import fcntl
import os
import pathlib
import re
import struct
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1] / "e2e"))
CALL = "cuOccupancyMaxPotentialBlockSize"
FENCES, WAITS = 20, 5
OPTIONS = "--kernel", "--calls", f"cuInit,{CALL}"  # perf events on all functions take long to attach and to detach


# ---- the program, which the probe records ----

# From the kernel's include/uapi: linux/dma-buf.h, drm/drm.h, drm/drm_mode.h and drm/vgem_drm.h. The numbers of requests contain the sizes
# of structs.
CREATE_DUMB, HANDLE_TO_FD, ATTACH, SIGNAL, SYNC = 0xc02064b2, 0xc00c642d, 0xc0106441, 0x40086442, 0x40086200
FENCE_WRITE, SYNC_READ = 1, 1
SYS_IOCTL = 16


class Buffer:
    """A vgem buffer, with a file descriptor for it."""

    def __init__(self, device):
        self.device = device
        dumb = bytearray(struct.pack("=IIIIIIQ", 1, 64, 32, 0, 0, 0, 0))
        fcntl.ioctl(device, CREATE_DUMB, dumb)
        self.handle = struct.unpack_from("=I", dumb, 16)[0]
        file = bytearray(struct.pack("=IIi", self.handle, 0, -1))
        fcntl.ioctl(device, HANDLE_TO_FD, file)
        self.file = struct.unpack_from("=i", file, 8)[0]

    def attach(self):
        """Returns a new fence, which vgem would signal by itself after ten seconds."""
        fence = bytearray(struct.pack("=IIII", self.handle, FENCE_WRITE, 0, 0))
        fcntl.ioctl(self.device, ATTACH, fence)
        return struct.unpack_from("=I", fence, 8)[0]

    def signal(self, fence):
        fcntl.ioctl(self.device, SIGNAL, struct.pack("=II", fence, 0))

    def wait(self):
        """Waits for all of the buffer's fences."""
        fcntl.ioctl(self.file, SYNC, struct.pack("=Q", SYNC_READ))


def is_waiting(tid):
    """Returns whether the thread is sleeping in a SYNC request."""
    words = pathlib.Path(f"/proc/self/task/{tid}/syscall").read_text().split()
    return words[0] == str(SYS_IOCTL) and int(words[2], 16) == SYNC


def wait_once(buffer):
    """Waits for a new fence, which another thread signals as soon as this thread sleeps."""
    waiter, fence = threading.get_native_id(), buffer.attach()

    def signal():
        while not is_waiting(waiter):
            pass
        buffer.signal(fence)

    helper = threading.Thread(target=signal)
    helper.start()
    buffer.wait()
    helper.join()


def work(device):
    """Makes fences, and signals them in reverse order. Then makes more fences, and waits for each of them."""
    buffers = [Buffer(device) for _ in range(FENCES)]
    made = [(buffer, buffer.attach()) for buffer in buffers]
    for buffer, fence in reversed(made):
        buffer.signal(fence)
    for buffer in buffers[:WAITS]:
        wait_once(buffer)


def hang(device):
    """Waits for a fence until standard input ends. Whenever vgem has signaled the fence, a new fence replaces it."""
    buffer, has_ended = Buffer(device), threading.Event()
    fence = buffer.attach()

    def end():
        sys.stdin.read()
        has_ended.set()
        with contextlib.suppress(TimeoutError):  # vgem has just signaled it
            buffer.signal(fence)

    helper = threading.Thread(target=end)
    helper.start()
    while not has_ended.is_set():
        buffer.wait()
        if not has_ended.is_set():
            fence = buffer.attach()
    helper.join()


def in_call(driver, act):
    """Performs the act in the callback of a driver call."""
    callback = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int)(lambda block_size: act() or 0)
    values = ctypes.c_int(), ctypes.c_int()
    driver.cuOccupancyMaxPotentialBlockSize(*map(ctypes.byref, values), None, callback, ctypes.c_size_t(0), 0)


def program(mode):
    device = os.open("/dev/dri/card0", os.O_RDWR | os.O_CLOEXEC)
    driver = ctypes.CDLL("libcuda.so.1")
    if driver.cuInit(0) != 0:
        sys.exit("cuInit failed")
    in_call(driver, lambda: None)
    print("ready", flush=True)
    sys.stdin.readline()
    if mode == "work":
        work(device)
    in_call(driver, lambda: {"work": work, "hang": hang}[mode](device))


if sys.argv[1:2] == ["--program"]:
    program(sys.argv[2])
    sys.exit()


# ---- the tests ----

from cudatrace_test import DEADLINE_S, DRIVER_PATH, SOURCE, check, equal, wait_for  # noqa: E402: it is in tests/e2e, and the program does not need it
from probing import OwnDriver, Probe, writer_of  # noqa: E402


class Traced:
    """A running instance of the program, which has made a driver call and is waiting for a line."""

    def __init__(self, s, mode, preload=False, **env):
        self.s = s
        self.child = s.start(sys.executable, HERE, "--program", mode, preload=preload, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.child.pid
        equal(self.child.stdout.readline(), "ready\n", "the program's line")

    def go(self):
        self.child.stdin.write("\n")
        self.child.stdin.flush()

    def await_end(self):
        self.child.communicate(timeout=DEADLINE_S)
        equal(self.child.returncode, 0, "the program's status")
        self.s.flush_until("its end", lambda: self.s.rows("SELECT DISTINCT state FROM processes WHERE pid = ?", self.pid) == [("exited",)])


def check_round(s, pid, inside):
    """Checks the rows of one round's fences, and the rows of the waits for these fences. The round was made inside the call named `inside`,
    or outside any call if `inside` is None."""
    where = "pid = ? AND inside IS ?", pid, inside
    fences = s.rows(f"SELECT call_id, signaled_ns, driver, timeline, is_emitted FROM fences WHERE {where[0]} ORDER BY call_id", *where[1:])
    equal(len(fences), FENCES + WAITS, "fences")
    equal({row[2:] for row in fences}, {("vgem", "unbound", 0)}, "the driver and the timeline")
    signals = [row[1] for row in fences]
    check(None not in signals, "a fence was not signaled", fences)
    check(max(row[0] for row in fences[:FENCES]) < min(signals), "a fence was signaled too early")
    equal(signals[:FENCES], sorted(signals[:FENCES], reverse=True), "the order of the signals")
    waits = s.rows("SELECT wait.call_id, wait.start_ns, fences.call_id, fences.signaled_ns, wait.driver FROM fence_waits AS wait "
                   f"LEFT JOIN fences ON fences.call_id = fence_id WHERE wait.{where[0].replace('inside', 'wait.inside')} ORDER BY wait.call_id", *where[1:])
    equal([row[2] for row in waits], [row[0] for row in fences[FENCES:]], "the fences that were waited for")
    check(all(made < start < signaled < end and driver == "vgem" for end, start, made, signaled, driver in waits), "the times of the waits", waits)


def check_all(s, pid):
    for inside in None, CALL:
        check_round(s, pid, inside)
    depths = s.rows("SELECT name, depth, count(*) FROM calls WHERE layer = 'kernel' AND pid = ? AND name LIKE 'fence%' GROUP BY name, depth", pid)
    equal(depths, [(name, depth, count) for name, count in (("fence_init", FENCES + WAITS), ("fence_wait", WAITS)) for depth in (0, 1)],
          "events at each depth")
    blocked = s.value("""SELECT count(DISTINCT wait.call_id) FROM calls AS wait JOIN calls AS blocked USING (process_id, tid)
                          WHERE wait.name = 'fence_wait' AND blocked.name = 'blocked' AND blocked.depth = wait.depth + 1
                            AND blocked.start_ns >= wait.start_ns AND blocked.end_ns <= wait.end_ns""")
    equal(blocked, 2 * WAITS, "waits in which the thread slept")
    s.check_identity(lost=0)


def recorded(s):
    """Every fence of a recorded process must have a row that lasts until the fence is signaled, and every wait must refer to its fence."""
    probe = Probe(s, *s.every, *OPTIONS)
    check("fences are not recorded" not in probe.said, probe.said)
    p = Traced(s, "work")
    other = Traced(s, "work", LD_LIBRARY_PATH=DRIVER_PATH)  # its library is not probed
    other.go()
    other.child.communicate(timeout=DEADLINE_S)
    equal(other.child.returncode, 0, "the status of a program that is not recorded")
    p.go()
    p.await_end()
    probe.end()
    check_all(s, p.pid)
    equal(s.value("SELECT count(*) FROM calls WHERE name = 'fence_signaled'"), 2 * (FENCES + WAITS), "signals")
    section, = re.findall(r"^## How long did fences take.*?(?=^## )", (SOURCE / "docs/sql.md").read_text(), re.M | re.S)
    summary, events, longest = (s.rows(query) for query in re.findall(r"```sql\n(.*?)```", section, re.S))
    print(*summary, *events, *longest, sep="\n")
    equal([(row[:6], row[-1]) for row in summary], [((p.pid, "vgem", "unbound", inside, FENCES + WAITS, 0), WAITS) for inside in (None, CALL)],
          "the document's summary")
    check(len(longest) == 5 and all(row[-1] >= 0 for row in longest), "the document's waits", longest)
    equal({name: count for _, name, count in events}["fence_signaled"], 2 * (FENCES + WAITS), "the document's events")


def accompanied(s):
    """Checks all fences and waits with a probe that accompanies the hook. The probe's events must be nested inside the calls that the hook
    records."""
    probe = Probe(s, *s.every, *OPTIONS)
    p = Traced(s, "work", preload=True)
    wait_for("the probe to accompany the hook", lambda: writer_of(probe, p.pid))
    p.go()
    p.await_end()
    probe.end()
    check_all(s, p.pid)


def hanging(s):
    """A wait that has not ended must appear as an open call inside the driver call."""
    probe = Probe(s, *s.every, *OPTIONS)
    p = Traced(s, "hang")
    p.go()
    open_calls = [(CALL, 0), ("fence_wait", 1)]
    s.flush_until("the open wait", lambda: s.rows("SELECT name, depth FROM open_calls JOIN processes USING (process_id) WHERE pid = ? ORDER BY depth",
                                                  p.pid) == open_calls)
    p.await_end()
    probe.end()
    equal(s.rows("SELECT name FROM open_calls"), [], "open calls in the end")
    equal(s.rows("SELECT count(*) > 0, min(fence_id IS NOT NULL), min(inside = ?) FROM fence_waits WHERE pid = ?", CALL, p.pid), [(1, 1, 1)], "waits")


TESTS = recorded, accompanied, hanging
for unknown in set(sys.argv[1:]) - {test.__name__ for test in TESTS}:
    sys.exit(f"no test is called '{unknown}'")
for test in TESTS:
    if not sys.argv[1:] or test.__name__ in sys.argv[1:]:
        print(test.__name__, flush=True)
        with OwnDriver() as s:
            s.start_daemon()
            test(s)
