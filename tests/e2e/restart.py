"""Kills and restarts the daemon. Checks that no call is lost or stored twice, and that the programs do not notice."""
import glob
import os
import signal
import struct
import subprocess
import time

from cudatrace_test import DAEMON, HungCall, Session, WORKLOADS, check, equal, fifo

with Session() as s, fifo(s.dir, "hold") as hold:
    s.start_daemon()
    held = s.start(WORKLOADS / "calls", "--calls", 3000, "--threads", 3, "--hold", hold)
    for _ in range(8):
        busy = s.start(WORKLOADS / "calls", "--calls", 15000, "--threads", 2, "--processes", 2)
        s.daemon.kill()
        s.daemon.wait()
        equal(busy.wait(), 0, "a program's status while the daemon is dead")
        s.start_daemon()
        s.flush()
        s.check_identity(lost=0)
    # Stop the daemon normally. A program that is still running continues untraced until a new daemon, which uses the same file, records its
    # later calls.
    s.stop_daemon()
    s.run(WORKLOADS / "calls", "--calls", 10)
    s.start_daemon()
    with open(hold, "wb") as go:
        go.write(b"\n")
    equal(held.wait(), 0, "the held program's status")
    s.flush()
    s.check_identity(lost=0)
    equal(s.value("SELECT count(*) FROM processes WHERE state = 'running'"), 0, "processes that still run")
    s.daemon.send_signal(signal.SIGINT)
    equal(s.daemon.wait(), 0, "the status after SIGINT")
    s.daemon = None

# When a daemon exits, it marks the programs that are still running as no longer recorded. A killed daemon cannot do so, but the next daemon
# marks the programs whose shared memory no longer exists.
LEFT = "SELECT state, cause, calls, first_ns >= started_ns, last_ns FROM processes LEFT JOIN losses USING (process_id) WHERE pid = ?"
with Session() as s, fifo(s.dir, "hold") as hold:
    s.start_daemon()
    held = s.start(WORKLOADS / "calls", "--calls", 200, "--hold", hold)
    s.flush_until("the program's calls", lambda: s.value("SELECT count(*) FROM calls") >= 200)
    equal(s.rows(LEFT, held.pid), [("running", None, None, None, None)], "while it is recorded")
    stopped = s.cudatrace("stop")
    equal((s.daemon.wait(), stopped.stderr), (0, ""), "the daemon's end")
    equal(s.rows(LEFT, held.pid), [("left", "absent", None, 1, None)], "after the daemon's end")
    left_ns = s.value("SELECT first_ns FROM losses")
    check(s.value("SELECT max(call_id) FROM calls") <= left_ns, "a call that is recorded is later than", left_ns)
    s.check_identity()
    with open(hold, "wb") as go:
        go.write(b"\n")
    equal(held.wait(), 0, "the held program's status")
    s.start_daemon()
    s.flush()
    equal(s.rows(LEFT, held.pid), [("exited", "absent", None, 1, None)], "after its end")
    equal(s.value("SELECT first_ns FROM losses"), left_ns, "since when")
    with HungCall(s) as held:
        s.flush()
        s.daemon.kill()
        s.daemon.wait()
        os.unlink(*glob.glob(f"/dev/shm/cudatrace.*.{s.name}.{held.pid}.*"))
        newest = s.value("SELECT max(call_id) FROM calls")
        s.start_daemon()
        s.run(WORKLOADS / "calls", "--calls", 10)
        s.flush()
        equal(s.rows(LEFT, held.pid), [("left", "absent", None, 1, None)], "that the killed one recorded")
        equal(s.value("SELECT first_ns FROM losses JOIN processes USING (process_id) WHERE pid = ?", held.pid), newest + 1, "since")
        s.check_identity()

# If a call returns while no daemon is running, the next daemon must not show it as an open call.
with Session() as s:
    s.start_daemon()
    with HungCall(s) as held:
        s.flush()
        equal(s.rows("SELECT name FROM open_calls"), [("cuCtxSynchronize",)], "open calls before")
        s.daemon.kill()
        s.daemon.wait()
        held.release()
    s.start_daemon()
    s.flush()
    equal(s.rows("SELECT name FROM open_calls"), [], "open calls after")
    equal(s.rows("SELECT state FROM processes"), [("exited",)], "its state")
    s.check_identity(lost=0)

# Test a program that exits between two daemons, and whose segment file was modified long after it was created, as happens when rings grow.
# The test backdates the file's header, and makes statx() return a matching creation time to the next daemon.
LONG_AGO_S = 20
BIRTHS = """#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
int statx(int folder, const char *restrict path, int flags, unsigned mask, struct statx *restrict status)
{
    const int result = (int)syscall(SYS_statx, folder, path, flags, mask, status);
    status->stx_btime.tv_sec -= %d;
    return result;
}
""" % LONG_AGO_S
ANCHOR_MONOTONIC = 104  # offset in a segment's header (proto/segment.h) of the CLOCK_MONOTONIC time when the segment was made

with Session() as s, fifo(s.dir, "hold") as hold:
    s.start_daemon("--clock", "monotonic")
    held = s.start(WORKLOADS / "calls", "--calls", 3000, "--threads", 3, "--hold", hold)
    s.flush_until("the program's file", lambda: glob.glob(f"/dev/shm/cudatrace.*.{s.name}.{held.pid}.*"))
    segment, = glob.glob(f"/dev/shm/cudatrace.*.{s.name}.{held.pid}.*")
    s.daemon.kill()
    s.daemon.wait()
    with open(hold, "wb") as go:
        go.write(b"\n")
    equal(held.wait(), 0, "the held program's status")
    with open(segment, "r+b") as file:
        file.seek(ANCHOR_MONOTONIC)
        made_ns, = struct.unpack("<Q", file.read(8))
        age_s = time.monotonic() - made_ns / 1e9
        check(0 <= age_s < 3600, "the header's time of making is", age_s, "seconds ago")
        file.seek(ANCHOR_MONOTONIC)
        file.write(struct.pack("<Q", made_ns - LONG_AGO_S * 10**9))
    births = s.dir / "births.so"
    subprocess.run(["cc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", births, "-x", "c", "-"], input=BIRTHS, text=True, check=True)
    s.start_daemon("--clock", "monotonic", env=s.env(preload=False, LD_PRELOAD=str(births),
                                                          ASAN_OPTIONS="verify_asan_link_order=0"))
    s.flush()
    check("stopped tracing" not in s.log(), s.log())
    s.check_identity(lost=0)
    s.check_truth()

# A daemon that succeeds a killed one must use the same clock as the session's processes.
with Session() as s:
    s.start_daemon("--clock", "monotonic")
    s.daemon.kill()
    s.daemon.wait()
    refused = s.run(DAEMON, "--foreground", "--db", s.db, "--session", s.name, "--clock", "counter", preload=False, status=1)
    check("another --clock" in refused.stderr, "said", refused.stderr)
    s.start_daemon()
    s.stop_daemon()
    s.start_daemon("--clock", "counter")

# A daemon that is started with closed standard descriptors must not open its lock files as descriptors 0 to 2, because it would lose its
# locks.
with Session() as s:
    closed = ("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", DAEMON, "--db", s.db, "--session", s.name)
    s.run(*closed, preload=False)
    s.run(*closed, preload=False, status=1)
    s.cudatrace("stop")
