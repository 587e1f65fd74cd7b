"""Tests the lock that the collector holds while it frees a ring's memory, and that a thread waits for if it needs the ring. If the
collector keeps running, no call may be lost. Calls that find no room while the collector is stopped must be counted as lost because the
ring is full, not because there is too little memory."""
import os
import signal
import subprocess

from daemon_test import Deadly, step
from fault_test import FAULT_HOOK, WORKLOADS, at_point, check, equal, promise

# Each thread has a short ring of 4096 slots and a long ring of 32768 slots.
RING = "512K"
STRIDE = 5000  # ranges between two lines of `ranges --do distinct`; they need about 20,000 slots


def start_locked(s, *env):
    """Starts a program, and stops the daemon when it holds the lock of the program's long ring in order to free the ring's memory. Before
    that, the daemon reads nothing until the program waits for input, because it would otherwise free memory that the program still
    needs."""
    s.start_armed("rings.giving", 1, "--ring", RING, action="stop")
    s.daemon.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, s.daemon.pid, os.WSTOPPED)
    program = s.start(WORKLOADS / "ranges", "--do", "distinct", "--count", 3 * STRIDE, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                      text=True, env={"NVTX_INJECTION64_PATH": FAULT_HOOK, **dict(*env)})
    equal(program.stdout.readline(), "\n", "the program's first line")
    s.daemon.send_signal(signal.SIGCONT)
    check(s.is_stopped(), "the daemon does not come to rings.giving")
    return program


def end(s, program):
    while step(program) == "\n":
        s.flush()
    equal(program.wait(), 0, "the program's status")
    s.flush()


# Resume the collector while the thread is waiting for the lock.
with Deadly() as s, promise("ring-lock-held"):
    program = start_locked(s, at_point("ring_resize.waiting", action="stop"))
    program.stdin.write("\n")
    program.stdin.flush()
    os.waitid(os.P_PID, program.pid, os.WSTOPPED | os.WNOWAIT)
    s.daemon.send_signal(signal.SIGCONT)
    s.flush()
    program.send_signal(signal.SIGCONT)
    equal(program.stdout.readline(), "\n", "the program's second line")
    s.flush()
    end(s, program)
    equal(s.rows("SELECT cause, calls FROM losses"), [], "calls lost")
    s.check_identity()

# Leave the collector stopped. The program must still print its next line, and use the ring again after the daemon has been resumed.
with Deadly() as s, promise("ring-lock-held"):
    program = start_locked(s)
    equal(step(program), "\n", "the program's second line")
    s.daemon.send_signal(signal.SIGCONT)
    s.flush()
    lost = s.value("SELECT sum(calls) FROM losses")
    check(lost > 0, "no call was lost, so that the lock was not wanted")
    equal(s.rows("SELECT DISTINCT cause FROM losses"), [("full",)], "causes of losses")
    end(s, program)
    equal(s.value("SELECT sum(calls) FROM losses"), lost, "calls lost in the end")
    s.check_identity(lost=lost)
