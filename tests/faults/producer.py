"""Kills a traced process at each test point of the hook, both alone and while other processes are running. The trace of the killed process
must be correct, the traces of other processes must not be affected, and no file of the killed process may be left.

FAMILIES lists every test point in the hook, with a workload that reaches the point, and how the trace must show the interrupted call. The
test fails if a point does not exist, or if its workload does not reach it.
"""
import collections
import contextlib
import errno
import os
import random
import resource
import signal
import subprocess
import time

from fault_test import DEADLINE_S, FAULT_HOOK, LONG, Session, WORKLOADS, at_point, by_tier, check, equal, points, promise, refuse_system_call, seed

# How the trace must show the call that a thread was killed in. `missing` is the number of calls that the driver has counted as returned,
# but that the trace lacks. `open` is true if the trace shows the call as open.
Outcome = collections.namedtuple("Outcome", "missing open")
OUT = Outcome(0, False)      # not entered, or left
ENTERED = Outcome(0, True)   # the real function was not yet called
RETURNED = Outcome(1, True)  # the real function has returned, and no record is published, so the trace has only the open call
COUNTED = Outcome(0, True)   # counted as lost or skipped, but not yet left
UNLANED = Outcome(1, False)  # like RETURNED, but in a thread without a lane, so the open call is not shown
KEPT = OUT                   # its record is published, or it was counted and left
KEPT_OR_NAMED = object()     # like KEPT, or the record was a kernel's name, which is published before its launch returns
UNSEEN = None                # the trace has no process, because its segment has no name yet

CALLS = [WORKLOADS / "calls", "--mix", "training", "--calls", 200]
MANY = [WORKLOADS / "calls", "--mix", "getctx", "--calls", 20000]
LAUNCHES = [WORKLOADS / "calls", "--mix", "launch", "--calls", 6000]
COPIES = [WORKLOADS / "calls", "--mix", "copy", "--calls", 6000]
THREADS = [WORKLOADS / "threads", "--interval", 0, "--count", 20]
LONG_THREADS = [WORKLOADS / "threads", "--interval", 0, "--count", 4, "--calls", 1200]
NAMED = [WORKLOADS / "named"]
RANGES = [WORKLOADS / "ranges", "--do", "nest"]
DOMAINS = [WORKLOADS / "ranges", "--do", "domains"]
PROCESS_RANGES = [WORKLOADS / "ranges", "--do", "processes"]
STEPS = [WORKLOADS / "ranges", "--do", "distinct", "--count", 20000]
FORKS = [WORKLOADS / "forks", "--children", 2, "--calls", 20]
# These calls are too slow to fill a ring of the usual size, so that none are lost. While a process is running, its various counts of lost
# calls cannot be read at the same time, and would not agree.
ENDLESS = [WORKLOADS / "calls", "--mix", "getctx", "--calls", 1 << 40, "--rate", 20000, "--burst", 100]

ELSEWHERE = ("lock.waiting", "ring_resize.waiting", "slots.exchanged", "driver_functions.fork_begun", "gpu.idle", "gpu.hangs")  # points that other tests reach

# Each row is (promise, machine, workload, {test point: outcome}). If a point has two outcomes, the first is for a process that is killed
# when it first reaches the point, and the second is for any later time. A machine is a function, defined below, that runs the daemon and
# the process in a certain way.
FAMILIES = [
    ("call", "plain", CALLS, {
        "lane.open_written": OUT,
        "entry.begun": OUT, "entry.clock_read": OUT, "entry.entered": ENTERED, "entry.returned": RETURNED,
        "wrap.begun": OUT, "wrap.clock_read": OUT, "wrap.entered": ENTERED, "wrap.returned": RETURNED,
        "hot_record.held": RETURNED, "hot_record.announced": RETURNED, "hot_record.clock_read": RETURNED,
        "hot_record.half_written": RETURNED, "hot_record.written": RETURNED, "hot_record.published": KEPT,
        "hot_record.left": KEPT, "hot_record.released": KEPT,
        "slow.defined": OUT, "slow.entering": OUT, "slow.entered": ENTERED, "slow.returned": RETURNED,
        "slow.announced": RETURNED, "slow.decoded": RETURNED, "slow.leaving": KEPT, "slow.left": KEPT,
        "attach.waking": KEPT, "attach.woken": KEPT,
        # A process reaches these points for the first time in the record that introduces the thread.
        "ring.half_written": (OUT, RETURNED), "ring.written": (OUT, RETURNED),
        "ring.published": (OUT, KEPT_OR_NAMED),
    }),
    ("call", "plain", LAUNCHES, {
        "wrap.launch_returned": RETURNED, "wrap.slow": RETURNED, "wrap.remembered": RETURNED, "wrap.half_written": RETURNED,
    }),
    ("call", "stopped", MANY, {"ring_resize.growing": RETURNED, "ring_resize.switched": RETURNED, "ring_resize.grown": RETURNED, "segment_file.piece_allocated": RETURNED}),
    ("call", "paced", STEPS, {"ring.padded": OUT}),
    ("loss", "stopped", MANY, {
        "loss.place_taken": RETURNED, "loss.held_ticks": RETURNED, "loss.held_bytes": RETURNED, "loss.held_calls": COUNTED,
        "loss.held_first": COUNTED, "loss.held_last": COUNTED, "loss.held_cause": COUNTED,
    }),
    ("loss", "refused", CALLS, {
        "slow.unlaned": OUT, "loss.function_ticks": UNLANED, "loss.function_calls": OUT, "loss.noted": OUT,
        "loss.first": OUT, "loss.last": OUT, "loss.calls": OUT,
    }),
    ("loss", "refused_selected", CALLS, {
        "loss.skipped_ticks": UNLANED, "loss.skipped_bytes": UNLANED, "loss.skipped_calls": OUT, "loss.skipped_noted": OUT,
    }),
    ("loss", "selected", CALLS, {
        "hot_count.held": RETURNED, "loss.held_skip": COUNTED, "hot_count.left": KEPT, "slow.skipping": RETURNED, "slow.skipped": KEPT,
        "row_selection.read": OUT, "row_selection.applied": OUT, "row_selection.followed": OUT,
    }),
    ("lane", "plain", THREADS, {
        "producer_pool.block_made": OUT, "producer_pool.mapped": OUT, "producer_pool.owned": OUT, "producer_pool.lane_published": OUT,
        "thread.tenancy_counted": OUT, "thread.announced": OUT, "thread.introduced": OUT, "thread.attached": OUT,
        "thread.leaving": KEPT, "thread.emptied": KEPT, "thread.given_back": KEPT, "producer_pool.found_free": OUT,
        "producer_pool.retaken": OUT, "segment_file.lane_opened": OUT,
    }),
    ("lane", "stopped", LONG_THREADS, {"producer_pool.refused": OUT}),
    ("segment", "plain", CALLS, {
        "attach.looked": UNSEEN, "segment_file.file_made": UNSEEN, "segment_file.allocated": UNSEEN, "segment_file.mapped": UNSEEN,
        "segment_file.half_described": UNSEEN, "segment_file.described": UNSEEN, "segment_file.ready": UNSEEN,
        "segment_file.named": OUT, "attach.created": OUT, "attach.selected": OUT, "attach.current": OUT,
        "attach.counted": OUT, "find_daemon.ringing": OUT, "find_daemon.rung": OUT,
        "process.exiting": KEPT, "process.marked": KEPT,
    }),
    ("directory", "plain", CALLS, {
        "segment_file.entry_allocated": OUT, "segment_file.entry_written": OUT, "segment_file.entry_published": OUT,
        "row_selection.defined": OUT,
    }),
    ("string", "plain", LAUNCHES, {
        "kernel_names.writing": RETURNED, "kernel_names.written": RETURNED,
        "texts.defining": RETURNED, "texts.sent": RETURNED, "texts.defined": RETURNED,
    }),
    ("string", "plain", NAMED, {"object_names.sending": OUT, "object_names.sent": OUT}),
    ("range", "plain", RANGES, {
        "range.held": OUT, "range.kept": OUT, "range.placed": OUT, "manual_event.begun": OUT, "manual_event.written": OUT,
        "range.leaving": OUT, "range.left": OUT, "range.recorded": OUT,
    }),
    ("range", "plain", DOMAINS, {"range.hidden": OUT}),
    ("range", "plain", PROCESS_RANGES, {"range_process.taken": OUT, "range_process.started": OUT}),
    ("fork", "forks", FORKS, {
        "process.child_begun": UNSEEN, "process.child_redirected": UNSEEN, "process.child_dormant": UNSEEN,
        "process.child_ready": UNSEEN,
    }),
    ("detach", "leaving", ENDLESS, {
        "attach.detaching": None, "producer_pool.abandoned": None, "attach.detached": None,
    }),
]
# A process reaches these points only if the daemon is asleep. Other processes may keep the daemon awake.
SLEEPERS = {"find_daemon.ringing", "find_daemon.rung"}
# At these points, a lost call has been counted by function, but not yet by cause.
COUNTED_HALF = {"loss.function_calls", "loss.noted", "loss.first", "loss.last", "loss.held_calls", "loss.held_first", "loss.held_last"}
LATER = random.Random(seed()).sample(range(2, 200), 10) if LONG else [3]


class Victim:
    def __init__(self, s, point, nth, outcome, command, **options):
        self.point, self.nth, self.outcome = point, nth, outcome
        env = dict(at_point(point, nth), NVTX_INJECTION64_PATH=FAULT_HOOK)
        options.setdefault("stdout", subprocess.DEVNULL)
        self.program = s.start(*command, env=env, **options)
        self.pid = self.program.pid

    def wait(self):
        status = self.program.wait(DEADLINE_S)
        self.killed = status == -signal.SIGKILL
        check(self.killed or status == 0, self, "ended with", status)

    def __str__(self):
        return f"{self.point} at passing {self.nth}, process {self.pid}"


class Trace:
    """The contents of the trace and the driver's counts, read at the same time."""

    def __init__(self, s):
        self.states = dict(s.rows("SELECT pid, state FROM processes"))
        self.open, self.seen, self.truth = (collections.defaultdict(collections.Counter) for _ in range(3))
        for pid, layer, name in s.rows("SELECT pid, layer, open_calls.name FROM open_calls JOIN processes USING (process_id) "
                                       "LEFT JOIN functions ON functions.name = open_calls.name"):
            self.open[pid][layer, name] += 1
        for (pid, name), calls in s.totals().items():
            self.seen[pid][name] += calls
        for (pid, name), calls in s.truth().items():
            self.truth[pid][name] += calls
        self.lost = dict(s.rows("SELECT pid, sum(lost) FROM totals JOIN processes USING (process_id) GROUP BY pid"))

    def missing(self, pid):
        names = self.seen[pid].keys() | self.truth[pid].keys()
        return {n: self.truth[pid][n] - self.seen[pid][n] for n in names if self.truth[pid][n] != self.seen[pid][n]}

    def open_driver_calls(self, pid):
        return [name for (layer, name), times in self.open[pid].items() for _ in range(times) if layer == "driver"]

    def check_victim(self, victim):
        outcome = victim.outcome
        missing, open_calls = self.missing(victim.pid), self.open_driver_calls(victim.pid)
        if not victim.killed:
            check(victim.nth > 1 or victim.point in SLEEPERS, victim, "did not come there")
            equal((self.states[victim.pid], missing, open_calls), ("exited", {}, []), f"{victim}, which went on: its trace")
            return
        if outcome is UNSEEN:
            equal((self.states.get(victim.pid), missing), (None, {}), f"{victim}: state, and what is missing")
            return
        # If the kernel does not report the status of the process (before Linux 6.15), a process that has announced its exit counts as
        # exited.
        states = ("killed", "exited") if victim.point == "process.marked" else ("killed",)
        check(self.states.get(victim.pid) in states, victim, "state", self.states.get(victim.pid))
        if isinstance(outcome, tuple) and not isinstance(outcome, Outcome):
            outcome = outcome[victim.nth > 1]
        if outcome is KEPT_OR_NAMED:
            outcome = RETURNED if any("Launch" in name for name in open_calls) else KEPT
        equal(Outcome(sum(missing.values()), bool(open_calls)), outcome, f"{victim}: {missing}, {open_calls}: what is missing and open")
        if victim.point == "range.placed":
            check(self.open[victim.pid]["nvtx", "nvtxRangePush"] > 0, victim, self.open[victim.pid])
        check(len(open_calls) <= 1 and (not missing or outcome is UNLANED or list(missing) == open_calls), victim, missing, open_calls)

    def check_bystander(self, pid):
        equal((self.states.get(pid), self.missing(pid), self.open_driver_calls(pid), self.lost.get(pid)),
              ("exited", {}, [], 0), f"bystander {pid}: state, missing, open, lost")


def segments(s):
    return [name for name in os.listdir("/dev/shm") if f".{s.name}." in name and not name.endswith(".sock")]


def check_session(s, victims, bystanders):
    """Checks the session's trace and files after all processes have exited."""
    s.flush()
    equal(s.daemon.poll(), None, "the daemon's status")
    equal(segments(s), [], "segments left")
    s.check_identity(lost=None, killed=sum(v.point in COUNTED_HALF for v in victims))
    equal(s.rows("SELECT * FROM (SELECT pid, tid, start_ns, lag(end_ns) OVER (PARTITION BY process_id, tid ORDER BY call_id) AS "
                 "before FROM calls WHERE depth = 0 AND layer = 'driver') WHERE start_ns < before - 1000"), [],
          "calls that began before the one before them had ended")
    trace = Trace(s)
    for victim in victims:
        trace.check_victim(victim)
    for pid in bystanders:
        trace.check_bystander(pid)


# ---- machines ----

def one_by_one(s, rows, others, before=lambda: None, after=lambda: None, meanwhile=lambda victim: None, **options):
    """Runs the victims one after another, each together with `others` bystanders."""
    victims, bystanders = [], []
    for point, nth, outcome, command in rows:
        before()
        beside = [s.start(*CALLS, stdout=subprocess.DEVNULL) for _ in range(others)]
        victims.append(Victim(s, point, nth, outcome, command, **options))
        meanwhile(victims[-1])
        victims[-1].wait()
        for bystander in beside:
            equal(bystander.wait(DEADLINE_S), 0, f"the status of a bystander of {victims[-1]}")
            bystanders.append(bystander.pid)
        after()
    check_session(s, victims, bystanders)


def plain(s, rows, others):
    s.start_daemon("--ring", "128K")
    one_by_one(s, rows, others)


def stopped(s, rows, others):
    """Stops the daemon, so that it does not read the rings while the victim is running."""
    s.start_daemon("--ring", "128K")
    one_by_one(s, rows, others, before=lambda: s.daemon.send_signal(signal.SIGSTOP),
               after=lambda: s.daemon.send_signal(signal.SIGCONT))


def paced(s, rows, others):
    """Flushes whenever the victim requests it, so that the victim's ring wraps around without becoming full."""
    def pace(victim):
        with victim.program.stdin as answer, victim.program.stdout as asked:
            while asked.readline() == b"\n":
                s.flush()
                with contextlib.suppress(BrokenPipeError):
                    answer.write(b"\n")
                    answer.flush()

    s.start_daemon("--ring", "1M")
    one_by_one(s, rows, others, meanwhile=pace, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def refuse_lanes():
    """Limits the size of files so that a segment has room for its header and its directory, but not for lanes."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (300000, 300000))


def refused(s, rows, others):
    s.start_daemon("--ring", "128K")
    one_by_one(s, rows, others, preexec_fn=refuse_lanes)


def selected(s, rows, others, **options):
    s.start_daemon("--ring", "128K")
    s.cudatrace("set", "--calls", "cuMemAlloc*,cuCtx*")
    one_by_one(s, rows, others, **options)


def refused_selected(s, rows, others):
    selected(s, rows, others, preexec_fn=refuse_lanes)


def forks(s, rows, others):
    """Lets the children of a forking program die at the test point, while their parent keeps running."""
    s.start_daemon("--ring", "128K")
    parents = []
    for point, nth, _, command in rows:
        beside = [s.start(*CALLS, stdout=subprocess.DEVNULL) for _ in range(others)]
        parent = s.start(*command, env=at_point(point, nth), stdout=subprocess.PIPE, text=True)
        said = parent.communicate(timeout=DEADLINE_S)[0]
        equal((parent.returncode, said), (1, "forks: early=2 late=2 failed=4 FAILED\n") if nth == 1 else
              (0, "forks: early=2 late=2 failed=0 ok\n"), f"{point} at passing {nth} of children: their parent")
        parents += [(parent.pid, nth)] + [(b.pid, 0) for b in beside]
        for bystander in beside:
            equal(bystander.wait(DEADLINE_S), 0, f"the status of a bystander of {point}")
    check_session(s, [], [pid for pid, _ in parents])
    expected = {pid for pid, _ in parents}
    killed = [pid for pid, nth in parents if nth == 1]
    children = {pid for pid, _ in s.truth()} - expected
    check(len(killed) > 0 and children <= set(Trace(s).states), "children with calls and without a process", children)


def leaving(s, rows, others):
    """Stops the daemon, and kills the process while it detaches its segment. Checks that nothing of the process is left in shared
    memory."""
    for point, nth, _, command in rows:
        if nth > 1:
            continue  # passed once in a process
        s.start_daemon()
        victim = Victim(s, point, nth, None, command)
        beside = [s.start(*ENDLESS, stdout=subprocess.DEVNULL) for _ in range(others)]
        pids = {victim.pid} | {b.pid for b in beside}
        # Wait until the threads of all programs have made calls, because a thread that has not been given a lane cannot give it back.
        s.flush_until("calls of all", lambda: pids <= {pid for (pid,) in s.rows("SELECT DISTINCT pid FROM calls WHERE tid <> pid")})
        s.stop_daemon()
        victim.wait()
        check(victim.killed, victim, "went on")
        equal(segments(s), [], f"segments left by {victim}")
        equal([b.poll() for b in beside], [None] * others, f"the status of bystanders of {victim}")
        for bystander in beside:
            bystander.kill()
            bystander.wait()
        s.start_daemon()
        s.flush()
        # No daemon was running when the process exited, so it may count as exited or as killed.
        check(Trace(s).states[victim.pid] in ("exited", "killed"), victim, "runs")
        s.check_identity()
        equal(segments(s), [], f"segments left by {victim}")
        s.stop_daemon()
    s.start_daemon()


def refuse_names():
    """Makes linkat() fail, as it does if /proc is missing. A segment's file then has its name from the beginning."""
    refuse_system_call("linkat", errno.ENOENT)


def with_a_name_from_the_start():
    """Tests segments whose files have a name from the beginning, as on file systems without unnamed files. Checks that if a process is
    killed while it creates its segment, the file is removed once it is old enough."""
    with Session() as s:
        s.start_daemon()
        s.run(*CALLS, preexec_fn=refuse_names)
        s.flush()
        s.check_truth()
        s.run(*CALLS, env=at_point("segment_file.file_made", 2), status=-signal.SIGKILL, preexec_fn=refuse_names)
        s.flush()
        # Make the file old. The daemon does not remove a recent file, because its process could be in another pid namespace and could still
        # be writing the file.
        (left,) = segments(s)
        os.utime("/dev/shm/" + left, (time.time() - 60,) * 2)
        s.flush()
        equal(segments(s), [], "segments left")
        equal(s.rows("SELECT state FROM processes"), [("exited",)], "states")


# ---- all of them ----

def rows_of(family_points, command):
    return [(point, nth, outcome, command) for point, outcome in family_points.items() for nth in (1, *LATER)]


listed = [point for _, _, _, of_family in FAMILIES for point in of_family]
# Every test point of the hook must be in FAMILIES, except the points in ELSEWHERE, which other tests reach.
equal(sorted(listed), [point for point in points(FAULT_HOOK) if point not in ELSEWHERE], "the points of FAMILIES, and those of the hook")
for name, machine, command, of_family in FAMILIES:
    rows = rows_of(of_family, command)
    for others in by_tier((2,), (0, 2)):
        with promise("producer-" + name, len(of_family)), Session() as s:
            {f.__name__: f for f in (plain, stopped, paced, refused, selected, refused_selected, forks, leaving)}[machine](s, rows, others)
with promise("producer-segment"):
    with_a_name_from_the_start()
