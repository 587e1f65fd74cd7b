"""Code shared by the tests that kill the daemon: starts daemons that die at test points while programs are running, and checks the trace
afterwards."""
import functools
import os
import signal
import subprocess
import time

import fault_test
from fault_test import DEADLINE_S, WORKLOADS, at_point, causes, check, counts, equal, wait_for

# The programs, each with its environment, which makes some of the hooks omit calls. Each program gets a different seed, so no two programs
# make the same calls.
PROGRAMS = (
    (("calls", "--mix", "training", "--threads", 2), {}),
    (("calls", "--mix", "alloc", "--threads", 1), {}),
    (("calls", "--mix", "copy", "--threads", 1), {}),
    (("calls", "--mix", "launch", "--threads", 2), {}),
    (("calls", "--mix", "getctx", "--threads", 1), {"CUDATRACE_CALLS": "!cuCtxGetCurrent"}),
    (("calls", "--mix", "training", "--threads", 1, "--processes", 2), {}),
    (("calls", "--mix", "training", "--threads", 1), {"CUDATRACE_SAMPLE": 3}),
    (("threads", "--count", 20), {}),
    (("forks",), {}),
)


def step(program):
    """Lets a program that stops after each line (tests/workloads/churn.c) continue, and returns its next line."""
    program.stdin.write("\n")
    program.stdin.flush()
    line = program.stdout.readline()
    check(line, "the program ended with", program.poll())
    return line


@functools.cache
def run_plain(command, env):
    """Runs a program without the hook. Returns (exit status, standard output, standard error), which are the same in every run."""
    done = subprocess.run(command, env=dict(os.environ, LD_LIBRARY_PATH=fault_test.cudatrace_test.DRIVER_PATH, **dict(env)),
                          capture_output=True, text=True, timeout=DEADLINE_S)
    equal(done.returncode, 0, command)
    return done.returncode, done.stdout, done.stderr


class Deadly(fault_test.cudatrace_test.Session):
    """A session whose daemon dies repeatedly, while its programs must keep running as if nothing had happened."""

    def __init__(self):
        super().__init__(hook=fault_test.FAULT_HOOK, daemon_program=fault_test.FAULT_DAEMON)
        self.programs = []  # (child, command, environment) of programs not yet reaped
        self.started = 0
        self.deaths = 0
        self.exact = set()  # pids that were recorded from their first call on

    # ---- programs ----

    def start_program(self, number, calls):
        """Starts one of PROGRAMS."""
        (name, *arguments), env = PROGRAMS[number % len(PROGRAMS)]
        if name == "calls":
            arguments += ["--calls", calls, "--seed", number]
        command = [WORKLOADS / name, *arguments]
        child = self.start(*command, env=env, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
        self.programs.append((child, command, env))
        self.started += 1
        return child

    def keep_running(self, count, calls):
        """Keeps at least `count` programs running. If a program starts while no daemon is running, the trace reports that the program's
        first calls are missing."""
        for program in self.programs[:]:
            if program[0].poll() is not None:
                self.end_program(program)
        while len(self.programs) < count:
            self.start_program(self.started, calls)

    def end_program(self, program):
        """Checks that a program runs to completion and prints the same output as without the hook. Closes the program's pipes, because a
        test may start thousands of programs."""
        child, command, env = program
        out, err = child.communicate(timeout=DEADLINE_S)
        plain = run_plain(tuple(map(str, command)), tuple((key, str(value)) for key, value in env.items()))
        equal((child.returncode, out, err), plain, command)
        self.programs.remove(program)
        self.children.remove(child)

    def end_programs(self):
        for program in self.programs[:]:
            self.end_program(program)

    # ---- the daemon ----

    def start_armed(self, point, nth=1, *options, action="kill"):
        """Starts a daemon that kills or stops itself the nth time it reaches the test point. Returns False if the daemon died before it
        served the session."""
        log = open(self.dir / "daemon.log", "ab")
        self.daemon = subprocess.Popen(self.daemon_command(*options), stdout=log, stderr=log,
                                       env=self.env(preload=False, **at_point(point, nth, action)))
        log.close()
        wait_for("a daemon that serves, stops or ends", lambda: action == "stop" and self.is_stopped(os.WNOHANG) or
                 self.daemon.poll() is not None or self.is_served())
        return self.daemon.poll() is None

    def is_stopped(self, wait=0):
        """Returns whether a signal has stopped the daemon. Waits until the daemon stops, unless `wait` contains WNOHANG."""
        return os.waitid(os.P_PID, self.daemon.pid, os.WSTOPPED | os.WNOWAIT | wait) is not None

    def dead(self):
        """Returns whether the daemon has been killed. Fails if the daemon has ended in any other way."""
        status = self.daemon.poll()
        check(status in (None, -signal.SIGKILL), "the daemon ended with", status)
        return status is not None

    def reap(self):
        """Reaps the daemon, after killing it if it is still alive. Returns whether it was already dead."""
        killed = self.dead()
        if not killed:
            self.daemon.kill()
        self.daemon.wait(DEADLINE_S)
        self.deaths += killed
        return killed

    def flush_until_death(self, programs, calls, flushes=None):
        """Sends flush commands, at most `flushes`, while programs are running, until the daemon has died. Returns whether the daemon has
        died."""
        deadline = time.monotonic() + DEADLINE_S
        while flushes is None or flushes > 0:
            self.keep_running(programs, calls)
            if self.cudatrace("flush", status=None).returncode != 0:
                self.daemon.wait(DEADLINE_S)
                return self.dead()
            check(time.monotonic() < deadline, "the daemon does not die")
            flushes = flushes and flushes - 1
        return self.dead()

    # ---- invariants ----

    def check_all(self):
        self.check_identity(lost=None)
        self.check_counts()
        self.check_database()
        self.check_parts()
        self.check_losses()
        equal(self.rows("SELECT pid, state FROM processes WHERE state <> 'exited'"), [], "processes that did not exit")
        equal(self.rows("SELECT * FROM open_calls"), [], "open calls")

    # The checks below identify processes by pid and start time, because pids are reused if a test starts thousands of processes.

    def absent(self):
        """Returns the processes that have made calls while no daemon recorded them, according to the trace."""
        return set(self.rows("SELECT pid, start_ticks FROM losses JOIN process USING (process_id) WHERE cause = 'absent'"))

    def check_counts(self):
        """Checks that stored, lost and omitted calls add up to the calls that the driver has counted as returned. Calls may be missing only
        from processes that are not in the trace, or that the trace reports as incomplete."""
        seen = {(row[:2], row[2]): row[3] for row in self.rows(
            "SELECT pid, start_ticks, totals.name, sum(calls) FROM totals JOIN process USING (process_id) "
            "WHERE layer = 'driver' GROUP BY pid, start_ticks, totals.name")}
        truth = {((pid, start), name): returned for pid, start, functions in counts.read_counts(self.counts)
                 for name, (_, returned) in functions.items() if returned}
        absent, known = self.absent(), {process for process, _ in seen}
        equal(self.exact & {pid for pid, _ in absent}, set(), "processes recorded from the beginning that are missing calls")
        equal(self.exact - {pid for pid, _ in known}, set(), "processes that are missing")
        wrong = {key: (seen.get(key, 0), truth.get(key, 0)) for key in seen.keys() | truth.keys()
                 if (seen.get(key, 0) > truth.get(key, 0) if key[0] in absent or key[0] not in known
                     else seen.get(key, 0) != truth.get(key, 0))}
        equal(wrong, {}, "calls in the trace and in the driver that differ")

    def check_database(self):
        equal(self.rows("PRAGMA integrity_check"), [("ok",)], "the database")
        # With --keep, the row of an allocation that has not been freed is kept even after its call has expired.
        equal([row for row in self.rows("PRAGMA foreign_key_check") if (row[0], row[2]) != ("allocation", "call")], [],
              "rows that name others that are not there")
        # The calls of a thread do not overlap, so a row that was stored twice would overlap with another row. Allow for a small overlap.
        # Each daemon converts the hook's times with its own straight line through the clock's anchors, so the results of two daemons may
        # differ by a microsecond.
        equal(self.rows("SELECT * FROM (SELECT process_id, tid, function.name, end_ns - duration_ns AS start_ns, end_ns, lag(end_ns) OVER "
                        "(PARTITION BY process_id, tid ORDER BY end_ns) AS before FROM call JOIN site USING (site_id) JOIN thread USING (thread_id) "
                        "JOIN function USING (function_id) WHERE depth = 0 AND layer = 'driver') WHERE start_ns < before - 2000"), [],
              "calls that began before their thread's last one returned")

    def check_parts(self):
        """Checks that launches, copies, memory sets and allocations have rows with details, and that no other calls have such rows."""
        for view, names in (("launches", ("cuLaunchKernel*",)), ("copies", ("cuMemcpy*",)), ("memsets", ("cuMemset*",))):
            made = " OR ".join(f"name GLOB '{name}'" for name in names)
            equal(self.rows(f"SELECT call_id, name FROM calls WHERE layer = 'driver' AND ({made}) AND call_id NOT IN "
                            f"(SELECT call_id FROM {view})"), [], f"calls that are missing in {view}")
            equal(self.rows(f"SELECT call_id FROM {view} WHERE call_id NOT IN (SELECT call_id FROM calls WHERE {made})"),
                  [], f"{view} that are no such calls")
        allocates = "name GLOB 'cuMemAlloc*' OR name GLOB 'cuMemHostAlloc*'"
        equal(self.rows(f"SELECT call_id, name FROM calls WHERE layer = 'driver' AND status = 0 AND ({allocates}) AND "
                        "call_id NOT IN (SELECT call_id FROM allocations)"), [], "calls that are missing in allocations")
        equal(self.rows(f"SELECT call_id FROM allocations WHERE call_id > (SELECT ifnull(max(value), 0) FROM meta WHERE "
                        f"key = 'expired_before_ns') AND call_id NOT IN (SELECT call_id FROM calls WHERE {allocates})"),
              [], "allocations that are no such calls")
        lost = self.value("SELECT ifnull(sum(lost + skipped), 0) FROM totals")
        if not lost:
            equal(self.value("SELECT count(*) FROM launches WHERE kernel IS NULL"), 0, "launches without a name")

    def check_losses(self):
        """Checks that calls were lost only for expected reasons, such as a full ring. Each loss must have a duration and plausible times of
        the first and the last lost call."""
        self.check_causes("full", "pressure", "signal", "absent")
        equal(self.rows("SELECT process_id, name FROM totals WHERE lost > 0 AND total_ns <= 0"), [], "lost calls without time")
        equal(self.rows("SELECT * FROM losses JOIN processes USING (process_id) WHERE first_ns > last_ns OR first_ns = 0 "
                        "OR last_ns > ended_ns"), [], "losses at impossible times")

    def check_causes(self, *expected):
        equal({cause for cause, in self.rows("SELECT cause FROM losses")} - causes(*expected), set(), "causes of losses")

    def summary(self):
        stored, lost, skipped = self.rows("SELECT sum(stored), sum(lost), sum(skipped) FROM totals")[0]
        print(f"{self.deaths} deaths; {stored} stored, {lost} lost, {skipped} left out; "
              f"{self.value('SELECT count(*) FROM processes')} processes, {len(self.absent())} not from their beginning")
