"""Measures the tracing of many processes: 1,000 at once, and 10,000 short-lived ones in succession. Reports the cost of a traced program
compared with an untraced one in the same round, and the daemon's resource usage during and after the run. Also checks that every call is in
the trace."""
import concurrent.futures
import os
import subprocess
import sys
import time

from cudatrace_test import Session
from figures import emit
from scene import Daemon, calls, shared_memory

AT_ONCE, ROUNDS_AT_ONCE, CALLS_EACH = 1000, 3, 100
IN_A_ROW, ROUNDS_IN_A_ROW, SIDE_BY_SIDE = 10000, 10, 4


def fail(what):
    sys.exit(f"processes: {what}")


class Held:
    """Starts programs that make their calls and then wait."""

    def __init__(self, s, preload):
        self.hold = s.dir / f"hold.{time.monotonic_ns()}"
        os.mkfifo(self.hold)
        start = time.monotonic()
        self.program = s.start(*calls("--processes", AT_ONCE, "--calls", CALLS_EACH, "--mix", "training", "--hold",
                                      self.hold), preload=preload, stdout=subprocess.PIPE, text=True)
        line = self.program.stdout.readline()
        self.ms_each = (time.monotonic() - start) * 1e3 / AT_ONCE
        if f"processes={AT_ONCE}" not in line:
            fail(f"the programs said '{line}'")

    def release(self):
        end = os.open(self.hold, os.O_RDWR)
        os.write(end, b"\n" * AT_ONCE)
        if self.program.wait(120) != 0:
            fail("a program failed")
        os.close(end)
        os.unlink(self.hold)


def check(s, what):
    """Checks that every call of the programs is stored once or counted as lost, and that nothing is left in shared memory."""
    s.flush()
    s.check_identity(lost=None)
    s.check_truth()
    late = s.value("SELECT count(*) FROM late_call")
    lost = s.value("SELECT sum(lost + skipped) FROM totals")
    emit("processes", f"{what}_late_calls", [late], "calls")
    emit("processes", f"{what}_lost_calls", [lost], "calls")
    if s.value("SELECT count(*) FROM processes WHERE state <> 'exited'"):
        fail("processes that ended are not shown as exited")
    if shared_memory(s) != 2:
        fail(f"{shared_memory(s)} files are in shared memory, not the session's two")


def level(what, when, daemon):
    own, rings = daemon.memory()
    emit("processes", f"{what}_daemon_own_{when}", [own], "KiB", target=("<=", 64 * 1024))
    emit("processes", f"{what}_daemon_rings_{when}", [rings], "KiB")
    emit("processes", f"{what}_daemon_files_{when}", [daemon.files()], "files")


def at_once():
    times, flushes = {True: [], False: []}, []
    with Session() as s:
        s.start_daemon()
        daemon = Daemon(s.daemon.pid)
        level("at_once", "before", daemon)
        files, cpu = daemon.files(), daemon.cpu_s()
        for number in range(ROUNDS_AT_ONCE):
            for preload in (True, False) if number % 2 == 0 else (False, True):
                held = Held(s, preload)
                times[preload].append(held.ms_each)
                if preload:
                    start = time.monotonic()
                    s.flush()
                    flushes.append((time.monotonic() - start) * 1e3)
                    running = s.value("SELECT count(*) FROM processes WHERE state = 'running'")
                    if running != AT_ONCE:
                        fail(f"{running} processes are shown as running")
                    if number == 0:
                        level("at_once", "meanwhile", daemon)
                else:
                    forget_counts(s, held.program)
                held.release()
        spent = daemon.cpu_s() - cpu
        check(s, "at_once")
        level("at_once", "after", daemon)
        if daemon.files() != files:
            fail(f"the daemon has {daemon.files()} files open, {files} before")
        emit("processes", "at_once_daemon_cpu_ms_each", [spent * 1e3 / AT_ONCE / ROUNDS_AT_ONCE], "ms")
    emit("processes", "at_once_flush_ms", flushes, "ms")
    report("at_once", times)


def forget_counts(s, program):
    """Deletes the simulated driver's counts of the untraced programs, whose calls are not in the trace."""
    for child in pids_of(program.pid):
        for path in s.counts.glob(f"{child}.*.counts"):
            path.unlink()


def pids_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as children:
        return [pid, *map(int, children.read().split())]


def report(what, times):
    emit("processes", f"{what}_untraced_ms_each", times[False], "ms")
    emit("processes", f"{what}_traced_ms_each", times[True], "ms")
    emit("processes", f"{what}_traced_over_untraced", [t / u for t, u in zip(times[True], times[False])], "ratio")


def in_a_row():
    times = {True: [], False: []}
    with Session() as s, concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        s.start_daemon()
        daemon = Daemon(s.daemon.pid)
        level("in_a_row", "before", daemon)
        files, cpu = daemon.files(), daemon.cpu_s()
        environments = {True: s.env(), False: s.env(preload=False)}
        del environments[False]["SIMCUDA_COUNTS"]
        command = calls("--calls", CALLS_EACH, "--mix", "training")

        def run_one(preload):
            return subprocess.run(command, env=environments[preload], stdout=subprocess.DEVNULL, timeout=60).returncode

        each = IN_A_ROW // ROUNDS_IN_A_ROW
        for number in range(ROUNDS_IN_A_ROW):
            for preload in (True, False) if number % 2 == 0 else (False, True):
                start = time.monotonic()
                if any(pool.map(run_one, [preload] * each)):
                    fail("a program failed")
                times[preload].append((time.monotonic() - start) * 1e3 / each)
            if number == 0:
                level("in_a_row", "after_a_tenth", daemon)
        spent = daemon.cpu_s() - cpu
        check(s, "in_a_row")
        level("in_a_row", "after", daemon)
        if daemon.files() != files:
            fail(f"the daemon has {daemon.files()} files open, {files} before")
        emit("processes", "in_a_row_daemon_cpu_ms_each", [spent * 1e3 / IN_A_ROW], "ms")
    report("in_a_row", times)


def run(_build, _options):
    at_once()
    in_a_row()
