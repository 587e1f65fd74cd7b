"""Tests a probe that accompanies the hook: the hook records a process's calls, and the probe records the events inside them."""
import contextlib
import glob
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

from cudatrace_test import CUDATRACE, DAEMON, DEADLINE_S, WORKLOADS, Session, can, check, equal, wait_for
from probing import OwnDriver, Probe, truth_of, writer_of

CALL = "cuOccupancyMaxPotentialBlockSize"
PAGES, SLEEP_MS = 100, 30


class Traced:
    """A program with the hook that has made a first round of calls, and waits before its second round."""

    def __init__(self, s, *arguments):
        self.s = s
        self.child = s.start(WORKLOADS / "off_cpu", "--pages", PAGES, "--sleep", SLEEP_MS, "--await", 1, *arguments,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.child.pid
        while self.child.stdout.readline() != "ready\n":
            pass

    def finish(self):
        """Lets the program make its second round of calls, and checks the kernel's own counts, which the program prints."""
        equal(self.child.communicate("\n", timeout=DEADLINE_S)[0], f"{PAGES} page faults\n1 sleeps\n", "the kernel's counts")
        equal(self.child.returncode, 0, "the program's status")

    def await_end(self):
        self.s.flush_until("its end", lambda: self.s.rows("SELECT DISTINCT state FROM processes WHERE pid = ?", self.pid) == [("exited",)])


def check_events(s, pid, depth, may_be_late=False):
    """Checks that the events of the second round belong to the right calls. The calls have the given depth."""
    calls = s.rows("""SELECT depth, duration_ns, ifnull(blocked, 0), ifnull(blocked_ns, 0), ifnull(preempted_ns, 0), ifnull(page_faults, 0)
                        FROM calls LEFT JOIN (SELECT call_id, blocked, blocked_ns, preempted_ns, page_faults FROM off_cpu) USING (call_id)
                       WHERE name = ? AND pid = ? AND depth = ? ORDER BY call_id""", CALL, pid, depth)
    touching, sleeping, idle = calls[-3:]
    equal((touching[2], touching[5]), (0, PAGES), "sleeps and page faults of the call that touches pages")
    # A kernel may not report the switch that ends a sleep. The sleep then counts as lost.
    missed = s.value("SELECT ifnull(sum(lost), 0) FROM totals JOIN processes USING (process_id) WHERE pid = ? AND totals.name = 'blocked'", pid)
    equal((sleeping[2] + missed, sleeping[5]), (1, 0), "those of the call that sleeps")
    equal((idle[2], idle[5]), (0, 0), "those of the call that does nothing")
    # The recorded sleep may be much shorter than requested, because the processor of a virtual machine may be stopped until the sleep is
    # nearly over.
    check(missed or 0 < sleeping[3] and sleeping[3] + sleeping[4] <= sleeping[1], "time off the processor, of a sleep of", SLEEP_MS, "ms:", sleeping)
    equal(s.rows("SELECT DISTINCT depth FROM calls WHERE layer = 'kernel' AND name <> 'preempted' AND pid = ?", pid), [(depth + 1,)],
          "depths of the events")
    equal(s.value("SELECT count(*) FROM threads JOIN processes USING (process_id) WHERE pid = ?", pid), 1, "threads")
    equal({name: calls for (of, name), calls in s.totals().items() if of == pid}, dict(truth_of(s, pid)), "the calls of the driver")
    s.check_identity(lost=None)
    equal(s.rows("SELECT name FROM totals WHERE lost > 0 AND name NOT IN ('blocked', 'preempted')"), [], "other events or calls that were lost")
    check(may_be_late or s.value("SELECT count(*) FROM late_call") == 0, "late rows")


def events(s, nest=0):
    """Checks that with --pid and with --all, page faults and pauses during a call recorded by the hook appear in the trace one level below
    that call."""
    for target in "pid", "all":
        p = Traced(s, "--nest", nest)
        probe = Probe(s, *(s.every if target == "all" else ["--pid", p.pid, "--library", s.driver_file]), "--kernel")
        equal("\nprobe: 0 functions are probed" in probe.said, target == "pid", "whether the driver has no probes")
        if target == "all":
            wait_for("the probe to accompany the hook", lambda: writer_of(probe, p.pid))
        p.finish()
        p.await_end()
        check_events(s, p.pid, nest)
        probe.end(number=signal.SIGINT if target == "all" else None)


def hooked(s):
    """Checks that with --hooked, events are recorded in processes of the session that the hook records, whether they begin before or after
    the probe, and that no driver call is probed."""
    before = Traced(s)
    with Session() as other:
        other.start_daemon()
        elsewhere = Traced(other)
        probe = Probe(s, "--hooked", "--kernel")
        after = Traced(s)
        plain = s.start(WORKLOADS / "calls", "--calls", 100, preload=False)
        equal(plain.wait(), 0, "the status of a program without the hook")
        for p in before, after:
            wait_for("the probe to accompany the hook", lambda p=p: writer_of(probe, p.pid))
            p.finish()
            p.await_end()
            check_events(s, p.pid, 0, may_be_late=True)
        elsewhere.finish()
        probe.end()
    check("probe: 0 functions are probed" in probe.said, "probed functions:", probe.said)
    equal(s.rows("SELECT pid FROM processes WHERE pid NOT IN (?, ?, ?)", before.pid, after.pid, probe.child.pid), [], "other processes")


def many_processes(s):
    """Checks that events are also recorded for more processes than the BPF programs can compare directly."""
    processes = [Traced(s) for _ in range(10)]
    probe = Probe(s, *(option for p in processes for option in ("--pid", p.pid)), "--kernel")
    for p in processes:
        p.finish()
        p.await_end()
        check_events(s, p.pid, 0)
    probe.end(number=None)


def verbose(s):
    """Checks that with --verbose, the probe prints the costs of its BPF programs and the number of events when it ends."""
    p = Traced(s)
    probe = Probe(s, "--pid", p.pid, "--kernel", "--verbose")
    p.finish()
    p.await_end()
    probe.end(number=None)
    runs = {name: (int(times), float(ms)) for name, times, ms in re.findall(
        r"^probe: the BPF program (\w+) ran (\d+) times, for \d+ ns each, ([\d.]+) ms in total$", probe.said, re.M)}
    check(runs["page_fault"][0] >= PAGES and runs["page_fault"][1] > 0 and runs["thread_switch"][0] > 0, "runs", probe.said)
    counts = re.search(r"^probe: events of the kernel that are recorded: (.*)$", probe.said, re.M)[1]
    counts = {name: int(count) for name, count in (word.split() for word in counts.split(", "))}
    stored = dict(s.rows("SELECT name, calls FROM totals JOIN processes USING (process_id) WHERE pid = ? AND layer = 'kernel'", p.pid))
    equal(counts, dict.fromkeys(counts, 0) | stored, "the numbers of events in the output and in the trace")


def replayed(s):
    """Checks that the replay of a recording gives the same trace, with the companion's events below the calls of the same threads."""
    events(s)
    s.stop_daemon()
    again = s.dir / "again.db"
    s.run(DAEMON, "--replay", s.dir / "recording", "--db", again, preload=False)
    for table in "calls", "threads", "off_cpu", "totals":
        rows = s.rows(f"SELECT * FROM {table} ORDER BY 1, 2, 3")
        check(rows, "no rows of", table)
        equal(s.rows(f"SELECT * FROM {table} ORDER BY 1, 2, 3", db=again), rows, table)


def nested_events(s):
    """Checks that an event is one level deeper than the innermost open call that the hook records."""
    events(s, nest=3)


def libc_of(pid):
    return next(line.split()[-1] for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines() if "/libc.so" in line)


def hooks(s):
    """Checks that tracepoints and calls to functions with a hook are below the driver calls recorded by the hook. Kernel events must be
    below the calls to functions with a hook."""
    p = Traced(s, "--nest", 2)
    library = libc_of(p.pid)
    table = s.dir / "hooks"
    points = can("tracefs", "hooks on tracepoints")
    table.write_text(f"uprobe:{library}:nanosleep sleep status=ret:s32 in calls\n"
                     + points * "tracepoint:sched:sched_switch switch state=prev_state in calls if prev_state == 1\n")
    probe = Probe(s, "--pid", p.pid, "--kernel", "--hooks", table)
    p.finish()
    p.await_end()
    probe.end(number=None)
    equal(s.rows("SELECT name, depth, status FROM calls WHERE pid = ? AND layer = 'hook' ORDER BY call_id", p.pid),
          points * [("switch", 4, 0)] + [("sleep", 3, 0)], "hooks, in the order of their ends")
    s.check_identity(lost=0)  # before the events, which would be missing
    seen = s.rows("""SELECT event.name, event.depth, event.start_ns - sleep.start_ns, sleep.end_ns - event.end_ns
                       FROM calls AS event JOIN calls AS sleep USING (process_id, tid)
                      WHERE sleep.name = 'sleep' AND event.layer IN ('kernel', 'hook') ORDER BY event.call_id""")
    equal([depth for name, depth, from_ns, to_ns in seen if name == "blocked" and min(from_ns, to_ns) >= 0], [4],
          f"the pause in the hooked function, among the events {seen}")
    equal(s.value("""SELECT count(*) FROM calls AS sleep JOIN calls AS around USING (process_id, tid)
                      WHERE sleep.name = 'sleep' AND around.name = ? AND around.start_ns <= sleep.start_ns AND around.end_ns >= sleep.end_ns
                  """, CALL), 3, "calls around the hooked function")
    equal(s.value("SELECT count(*) FROM threads JOIN processes USING (process_id) WHERE pid = ?", p.pid), 1, "threads")
    equal({name: calls for (of, name), calls in s.totals().items() if of == p.pid}, dict(truth_of(s, p.pid)), "the calls of the driver")


def hooks_on_all(s):
    """Checks that a probe of all processes also accompanies the hook if it has a table of hooks, but no --kernel. The probe must record no
    driver call a second time."""
    own = shutil.copy(libc_of("self"), s.driver_file.parent)  # no other process has the breakpoint
    p = Traced(s)
    table = s.dir / "hooks"
    table.write_text(f"uprobe:{own}:nanosleep inside in calls\n")
    probe = Probe(s, *s.every, "--calls", CALL, "--hooks", table)
    wait_for("the probe to accompany the hook", lambda: writer_of(probe, p.pid))
    p.finish()
    p.await_end()
    probe.end()
    equal(s.rows("SELECT name, depth FROM calls WHERE pid = ? AND layer <> 'driver'", p.pid), [("inside", 1)], "hooks")
    check("stopped tracing" not in s.log(), "the companion had a call of the driver:", s.log())
    equal({name: calls for (of, name), calls in s.totals().items() if of == p.pid}, dict(truth_of(s, p.pid)), "the calls of the driver")
    s.check_identity(lost=0)


def hooks_of_new(s):
    """Checks that calls to functions with a hook are recorded in a thread that made its first calls before the probe accompanied the hook,
    but after the probe had started."""
    own = shutil.copy(libc_of("self"), s.driver_file.parent)  # no other process has the breakpoint
    points = can("tracefs", "hooks on tracepoints")
    table = s.dir / "hooks"
    table.write_text(f"uprobe:{own}:nanosleep inside in calls\n"
                     + points * "tracepoint:sched:sched_switch switch state=prev_state in calls if prev_state == 1\n")
    probe = Probe(s, *s.every, "--hooks", table)
    p = Traced(s)
    wait_for("the probe to accompany the hook", lambda: writer_of(probe, p.pid))
    p.finish()
    p.await_end()
    probe.end()
    equal(s.rows("SELECT name, depth FROM calls WHERE pid = ? AND layer <> 'driver' ORDER BY call_id DESC LIMIT ?", p.pid, 1 + points),
          [("inside", 1)] + points * [("switch", 2)], "hooks in the second round")
    equal({name: calls for (of, name), calls in s.totals().items() if of == p.pid}, dict(truth_of(s, p.pid)), "the calls of the driver")
    s.check_identity(lost=0)


def plain_probe(s):
    """Checks that a probe without --kernel and --hooks does not accompany the hook."""
    p = Traced(s)
    probe = Probe(s, "--pid", p.pid)
    check("is not recorded: the hook records it" in probe.said, probe.said)
    p.finish()
    p.await_end()
    probe.end(number=None)
    equal(s.rows("SELECT DISTINCT layer FROM calls"), [("driver",)], "layers")


def in_doctor(s):
    """Checks that `cudatrace doctor` describes the segment of the hook, and not the companion's segment."""
    p = Traced(s)
    functions = len(truth_of(s, p.pid))
    probe = Probe(s, "--pid", p.pid, "--kernel")
    said = s.run(CUDATRACE, "doctor", "--session", s.name, p.pid, preload=False).stdout
    check(f"functions so far: {functions};" in said, "the functions of the hook are", functions, "in", said)
    p.finish()
    probe.end(number=None)


def other_session(s):
    """Checks that a probe does not accompany the hook of another session."""
    with Session() as other:
        other.start_daemon()
        p = Traced(other)
        probe = Probe(s, "--pid", p.pid, "--kernel")
        check("is not recorded: the hook records it" in probe.said, probe.said)
        p.finish()
        p.await_end()
        probe.end(number=None)
        s.flush()
        equal(s.rows("SELECT pid FROM processes WHERE pid = ?", p.pid), [], "processes of the other session")


def writer_killed(s):
    """Checks that if a writer is killed, and the traced process exits before the next writer starts, the trace still contains the events
    that waited in the kernel."""
    p = Traced(s)
    probe = Probe(s, "--pid", p.pid, "--kernel")
    killed = writer_of(probe, p.pid)
    for pid in probe.child.pid, killed:
        os.kill(pid, signal.SIGSTOP)
        wait_for("a stopped process", lambda: open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] == "T")
    p.finish()
    os.kill(killed, signal.SIGKILL)
    s.flush()
    equal(s.value("SELECT state FROM processes WHERE pid = ?", p.pid), "running", "the state while events wait in the kernel")
    os.kill(probe.child.pid, signal.SIGCONT)
    p.await_end()
    check_events(s, p.pid, 0, may_be_late=True)
    probe.end(number=None)


def outlived(s):
    """Checks that if the probe ends before the process, the hook continues to record, and the trace does not show the process as ended."""
    p = Traced(s)
    probe = Probe(s, "--pid", p.pid, "--kernel")
    probe.end()
    s.flush()
    equal(s.value("SELECT state FROM processes WHERE pid = ?", p.pid), "running", "the state after the probe has ended")
    p.finish()
    p.await_end()
    equal({name: calls for (of, name), calls in s.totals().items() if of == p.pid}, dict(truth_of(s, p.pid)), "the calls of the driver")


def daemon_restarted(s):
    """Checks that events appear below the calls again after the daemon has been replaced."""
    p = Traced(s)
    probe = Probe(s, *s.every, "--kernel")
    wait_for("the probe to accompany the hook", lambda: writer_of(probe, p.pid))
    s.daemon.kill()
    s.daemon.wait()
    s.start_daemon()
    p.finish()
    p.await_end()
    check_events(s, p.pid, 0)
    probe.end()


def run_ended(s):
    """Checks that `cudatrace run` does not report a probe that is still running as a process that continues untraced. The probe is run both
    with and without recording the command's events."""
    s.stop_daemon()
    for options in (), ("--kernel",):
        run = s.start(CUDATRACE, "run", "--db", s.db, "--", WORKLOADS / "off_cpu", "--pages", PAGES, "--sleep", SLEEP_MS, "--await", 1,
                      preload=False, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while run.stdout.readline() != "ready\n":
            pass
        probe = Probe(s, *s.every, *options)
        s.flush_until("the probe's segment", lambda: s.rows("SELECT state FROM processes WHERE pid = ?", probe.child.pid) == [("running",)])
        errors = run.communicate("\n", timeout=DEADLINE_S)[1]
        equal((run.returncode, errors), (0, ""), "the end of run")
        probe.end()


def writers_of(pid):
    """Returns the writers of any probe for the process `pid`."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):  # ended
            found += [path.parent.name] * (path.read_text() == f"probe-{pid}\n")
    return found


class EventsRun:
    """A `cudatrace run` with options for events, whose command waits after a first round of calls."""

    def __init__(self, s, *options):
        self.child = s.start(CUDATRACE, "run", "--db", s.db, *options, "--", WORKLOADS / "off_cpu", "--pages", PAGES, "--sleep", SLEEP_MS, "--await", 1,
                             preload=False, start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while (line := self.child.stdout.readline()) != "ready\n":
            check(line, "run ended too early")
        ((self.pid,),) = s.rows("SELECT pid FROM processes WHERE cmdline LIKE '%off_cpu%' ORDER BY process_id DESC LIMIT 1")
        wait_for("the probe to accompany the hook", lambda: writers_of(self.pid))


def run_events(s):
    """Checks that `cudatrace run --kernel` records the command's events, leaves no probe, and passes on input, output, status and signals."""
    s.stop_daemon()
    run = EventsRun(s, "--kernel")
    output, errors = run.child.communicate("\n", timeout=DEADLINE_S)
    equal((run.child.returncode, output, errors), (0, f"{PAGES} page faults\n1 sleeps\n", ""), "the end of run")
    check_events(s, run.pid, 0, may_be_late=True)
    equal(glob.glob(f"/dev/shm/cudatrace.*.{s.name}*.probe"), [], "locks of a probe")
    run = EventsRun(s, "--kernel")
    os.killpg(run.child.pid, signal.SIGINT)  # as a terminal does
    equal((run.child.wait(DEADLINE_S), run.child.stderr.read()), (-signal.SIGINT, ""), "the end of an interrupted run")
    equal(s.value("SELECT state FROM processes WHERE pid = ?", run.pid), "killed", "its command")
    equal(writers_of(run.pid), [], "writers that are left")
    # Beside the library, the probe records no function of the driver itself, so a pattern can choose them.
    run = EventsRun(s, "--hook", f"uprobe:{s.driver_file}:cuOccupancyMax*")
    errors = run.child.communicate("\n", timeout=DEADLINE_S)[1]
    check(re.search(r"cuOccupancyMax\*: \d+ targets\n", errors), "the number of functions that match", errors)
    equal([layer for layer, in s.rows("SELECT layer FROM totals JOIN processes USING (process_id) WHERE pid = ? AND name = 'cuOccupancyMaxPotentialBlockSize' "
                                      "ORDER BY layer", run.pid)], ["driver", "hook"], "the layers of a function that the pattern matches")
    done = s.run(CUDATRACE, "run", "--db", s.db, "--hook", "nonsense", "--", "touch", s.dir / "started", preload=False, status=1)
    check("unknown target 'nonsense'" in done.stderr and "the command was not started" in done.stderr, done.stderr)
    check(not (s.dir / "started").exists(), "the command was started")
    done = s.run(CUDATRACE, "run", "--db", s.db, "--hooks", "-", "--", "true", preload=False, status=2)
    check("standard input is COMMAND's" in done.stderr, done.stderr)


CASES = (events, hooked, run_events, many_processes, verbose, replayed, nested_events, hooks, hooks_on_all, hooks_of_new, plain_probe, in_doctor, other_session,
         writer_killed, outlived, daemon_restarted, run_ended)
for unknown in set(sys.argv[1:]) - {case.__name__ for case in CASES}:
    sys.exit(f"no test is called '{unknown}'")
for case in CASES:
    if not sys.argv[1:] or case.__name__ in sys.argv[1:]:
        print(case.__name__, flush=True)
        with OwnDriver() as s:
            s.start_daemon("--record", s.dir / "recording")
            case(s)
