"""The collector holds a ring's lock while it frees the ring's memory, and a thread that needs the ring waits for the lock. No call is
lost if the collector keeps running. Calls that find no room while the collector is stopped are counted as lost because the ring is full,
not because memory is short."""
import os
import signal
import subprocess

from daemon_test import Deadly, step
from fault_test import FAULT_HOOK, WORKLOADS, at_point, check, equal, promise

# Each thread has a short ring of 4096 slots and a long ring of 32768 slots.
RING = "512K"
STRIDE = 5000  # ranges between two lines of `ranges --do distinct`; they need about 20,000 slots


def start_locked(s, *env):
    """Starts a program, and stops the daemon when it is about to shorten the program's long ring and holds the ring's lock. The daemon
    reads nothing until the program waits, because it would otherwise free memory that the program then needs again."""
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


# The collector is resumed while the thread is waiting.
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

# The collector stays stopped. The program still reaches its next line, and uses the ring again when the daemon is resumed.
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
