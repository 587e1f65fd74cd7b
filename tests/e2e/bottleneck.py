"""Tests that `cudatrace report` finds the known bottleneck of a run: its startup, the host, a full launch queue, waiting in
cuStreamSynchronize(), or copying results back. Other runs combine several causes, launch nothing, or are killed while they wait. The
reports cover single runs, all runs together, one process, and windows. The reports must agree with the rows of the trace, even if a busy
machine slowed down the run. For each kind of verdict, the report on an imported trace with exact times must contain the exact verdict and
shares."""
import json
import re

from cudatrace_test import CUDATRACE, SOURCE, HungCall, Session, WORKLOADS, check, equal, wait_for

QUEUE = {"SIMCUDA_QUEUE": 1024, "SIMCUDA_LAUNCH_NS": 100000}
SLOW = {"SIMCUDA_LAUNCH_NS": 2000000}
# Latencies that make module loads and launches take as long as they do with a real driver.
LATENCY = "cuModuleLoadData=20000000,cuLaunchKernel=3000"
NUMBERS = re.compile(r"([\d.]+) % of the ([\d.]+) s from the first \w+ to the last")
INSIDE = ("wait", "room", "launch", "copy", "set", "memory", "load", "other")
KINDS = len(INSIDE) + 4  # before the first launch, in the driver and elsewhere; outside of the driver; after the last launch


class Answer:
    def __init__(self, s, *options):
        self.read(s.report(*options, "bottleneck")["bottleneck"])

    def read(self, rows):
        self.bound_by, self.verdict, self.text = rows[0]["bound_by"], rows[0]["paragraph"], str(rows)
        equal([row["paragraph"] for row in rows[1:]], [None] * (len(rows) - 1), "verdicts in other rows")
        seconds = {row["kind"]: row["seconds"] for row in rows}
        equal(len(seconds), len(rows), f"kinds in {self.text}")
        rounded = 0.05 * KINDS + 0.01  # shares have one decimal, and parts below 0.05 % are left out
        check(min(seconds.values()) >= 0 and abs(sum(row["%_of_run"] for row in rows) - 100) <= rounded, "shares", self.text)
        check(1 <= len(re.findall(r"\.(?= |$)", self.verdict)) <= 3, "sentences", self.verdict)
        if self.bound_by == "start":
            return
        share, part_s = map(float, NUMBERS.search(self.verdict).groups())
        inside_s = sum(seconds.get(kind, 0) for kind in INSIDE)
        self.whole_s, self.part_s, self.after_s = sum(seconds.values()), part_s, seconds.get("end", 0)
        self.before_driver_s = seconds.get("start_driver", 0)
        self.before_s = self.before_driver_s + seconds.get("start_other", 0)
        for kind in (*INSIDE, "outside"):
            setattr(self, kind, min(100, 100 * seconds.get(kind, 0) / part_s))  # both are rounded
        self.driver = 100 * inside_s / part_s
        # Allow for the report's omission of parts shorter than 0.05 % of the run, and for its rounding of seconds.
        self.off = 100 * (0.004 + 0.0005 * len(INSIDE) * self.whole_s) / part_s
        check(abs(self.driver + self.outside - 100) < self.off, "shares", self.text)
        if abs(self.before_s - self.whole_s / 2) > 0.002 + 0.005 * self.whole_s:
            equal("Most of the run comes before the first " in self.verdict, self.before_s > self.whole_s / 2, self.text)
        shares = {"gpu": self.wait + self.room, "launch": self.launch, "copy": self.copy, "set": self.set, "memory": self.memory, "load": self.load, "driver": self.other, "host": self.outside}
        check(shares[self.bound_by] >= max(shares.values()) - self.off, "the largest share", self.bound_by, self.text)
        check(abs(shares[self.bound_by] - share) < self.off, "the verdict's share", self.text)


def trace_of(s, *options, env=None):
    child = s.start(WORKLOADS / "bottlenecks", *options, env={"SIMCUDA_LATENCY": LATENCY, **(env or {})})
    equal(child.wait(), 0, "the program's status")
    return child.pid


with Session() as s:
    s.start_daemon()
    pids = {
        # The program takes 0.6 s to start, and then launches without pauses.
        "start": trace_of(s, "--start-ms", 600, "--launches", 15000),
        "host": trace_of(s, "--launches", 300, "--pause-us", 1000),
        # The program launches 3,072 kernels of 0.1 ms each. The queue has room for only 1,024, so two thirds of the launches wait.
        "queue": trace_of(s, "--launches", 3072, env=QUEUE),
        # Two threads take turns filling a queue, as for a forward and a backward pass. At any time, exactly one thread is in the driver.
        "turns": trace_of(s, "--launches", 4096, "--turns", 256, env=QUEUE),
        "sync": trace_of(s, "--launches", 150, "--sync-every", 1, env=SLOW),
        # The program waits only after its last launch, and keeps running for a while.
        "late": trace_of(s, "--launches", 150, "--end-ms", 300, env=SLOW),
        # The program spends as much time outside the driver as it waits for its kernels to finish.
        "mixed": trace_of(s, "--launches", 100, "--pause-us", 2000, "--sync-every", 1, "--start-ms", 100, env=SLOW),
        # The program makes far more calls after its launches than between them.
        "behind": trace_of(s, "--launches", 2000, "--copies", 20000, env={"SIMCUDA_LATENCY": "cuLaunchKernel=5000"}),
        "nothing": trace_of(s, "--launches", 0, "--start-ms", 50),
        "copies": trace_of(s, "--launches", 0, "--copies", 100, env={"SIMCUDA_LATENCY": "cuMemcpyDtoH_v2=1000000"}),
    }
    with HungCall(s, "--launches", 100, "--hang", 1, program=WORKLOADS / "bottlenecks", env=SLOW) as hung:
        s.flush()
        # While a daemon writes the trace, the wait lasts until now, even if no process makes a call. A window may contain only this wait.
        wait_for("the wait", lambda: Answer(s, "--pid", hung.pid).wait > 50)
        from_s = (s.value("SELECT start_ns FROM open_calls") - s.value("SELECT min(started_ns) FROM processes")) / 1e9
        live = Answer(s, "--pid", hung.pid, "--from", from_s + 0.001)
        check(live.wait > 99, "a window in which no call returned", live.text)
        check("W" in s.run(CUDATRACE, "timeline", "--db", s.db, "--from", from_s + 0.001, preload=False).stdout, "the timeline of this window")
        # Another program's calls show the daemon that time has passed, so that the killed process's wait has a known length.
        trace_of(s, "--launches", 100, "--pause-us", 1000)
        hung.kill()
        pids["killed"] = hung.pid
    s.flush()

    def of(name, *options):
        return Answer(s, "--pid", pids[name], *options)

    # The report shows the startup, and names the bottleneck of the time after the startup.
    start = of("start")
    check(start.before_s >= 0.6, "time before the first launch", start.text)
    check(0.02 <= start.before_driver_s < start.before_s - 0.55, "time in the driver before the first launch", start.text)
    host, queue = of("host"), of("queue")
    # For two threads, the report takes the mean of two estimates of the time in the driver. One is the busiest thread's time, which is
    # exact if both threads are always in the driver at the same time. The other is the sum of both threads' times, which is exact if they
    # never are.
    turns = of("turns")
    spent = [ns for ns, in s.rows("SELECT driver_ns FROM threads JOIN processes USING (process_id) WHERE pid = ? ORDER BY 1", pids["turns"])]
    equal(len(spent), 2, "threads")
    part_ns = turns.part_s * 1e9
    inside_ns = s.value("SELECT sum(duration_ns) FROM calls JOIN (SELECT process_id, min(start_ns) AS from_ns FROM launches GROUP BY process_id) "
                        "USING (process_id) WHERE pid = ? AND layer = 'driver' AND call_id >= from_ns", pids["turns"])
    middle = 50 * inside_ns * (max(spent) / sum(spent) + min(1, part_ns / inside_ns)) / part_ns
    check(abs(turns.driver - middle) <= 3, "in the driver", turns.text, "and not", middle)
    late, mixed = of("late"), of("mixed")
    check(late.after_s >= 0.29 and late.part_s >= 0.25 and mixed.before_s >= 0.1, "times that cannot be shorter", late.text, mixed.text)
    check("from the first copy to the last" in of("copies").verdict, of("copies").text)
    check(of("killed").wait > 0, "the wait of a killed process", of("killed").text)

    # For a process with one thread, the report agrees exactly with the rows of the trace.
    process_id, first_ns, last_ns = s.rows("SELECT process_id, min(start_ns), max(call_id) FROM launches JOIN processes USING (process_id) "
                                           "WHERE pid = ?", pids["host"])[0]
    inside_ns = s.value("SELECT sum(duration_ns) FROM calls WHERE process_id = ? AND layer = 'driver' AND start_ns >= ? AND call_id <= ?",
                        process_id, first_ns, last_ns)
    late_ns = s.value("SELECT sum(duration_ns) FROM calls WHERE process_id = ? AND category = 'sync' AND start_ns >= ?", process_id, last_ns)
    check(abs(host.part_s - (last_ns - first_ns + late_ns) / 1e9) < 0.001, "from the first launch to the last", host.text)
    check(abs(host.driver - 100 * (inside_ns + late_ns) / (last_ns - first_ns + late_ns)) < host.off, "in the driver", host.text, inside_ns)

    # Test a window while the queue is full and every launch waits for room, a window in the startup, and a window in the final wait.
    def window(name, from_ns, to_ns):
        return of(name, "--from", f"@{from_ns}", "--to", f"@{to_ns}")

    process_id, first_ns, last_ns = s.rows("SELECT process_id, min(start_ns), max(call_id) FROM launches JOIN processes USING (process_id) "
                                           "WHERE pid = ?", pids["queue"])[0]
    # Do not check the window's other shares: the report counts a window's first launch as loading if it is slow, as it is if the program
    # was preempted.
    full = window("queue", last_ns - (last_ns - first_ns) // 3, last_ns)
    equal((full.before_s, full.after_s), (0, 0), "time outside of the window's launches")
    first_ns = s.value("SELECT min(start_ns) FROM launches JOIN processes USING (process_id) WHERE pid = ?", pids["start"])
    before = window("start", 0, first_ns - 1)
    check(before.bound_by == "start" and "Nothing was launched in this window" in before.verdict, "a window of the start", before.text)
    wait_ns, end_ns = s.rows("SELECT start_ns, end_ns FROM calls WHERE pid = ? AND name = 'cuStreamSynchronize'", pids["late"])[0]
    check(window("late", wait_ns - 1000000, wait_ns + (end_ns - wait_ns) // 2).wait > 0, "a window in a wait")

    # The report on all processes adds up their times, and leaves out the process that launches and copies nothing.
    everything = Answer(s)
    alone = [of(name) for name in pids if name != "nothing"]
    check(everything.part_s > sum(answer.part_s for answer in alone) - 0.01, "the parts of all", everything.text)
    check(everything.before_s > sum(answer.before_s for answer in alone) - 0.01, "the starts of all", everything.text)
    lives_ns = s.value("SELECT sum(ended_ns - started_ns) FROM processes WHERE pid <> ?", pids["nothing"])
    check(abs(everything.whole_s - lives_ns / 1e9) < 0.02, "the run of all", lives_ns, everything.text)
    check(f"to the last in {len(pids)} processes, with the copies and waits before and after." in everything.verdict, everything.text)

    # If there are too many calls other than launches, the report reads only a sample of them. The test lowers the limit.
    sql = (SOURCE / "schema/reports/bottleneck.sql").read_text().partition("\n-- name: note\n")[0]
    check("/ 5e5" in sql, "what is many")
    sql = sql.replace(":pid", str(pids["behind"])).replace(":from_ns", "NULL").replace(":to_ns", "NULL").replace(":now_ns", "NULL")

    def sample(many):
        answer = Answer.__new__(Answer)
        answer.read(json.loads(s.run(CUDATRACE, "sql", "--db", s.db, "--format", "json", "-", preload=False, input=sql.replace("/ 5e5", f"/ {many}")).stdout))
        return answer

    sampled, whole = sample(5000), of("behind")
    # A sampled call represents several calls. If the program was preempted during the sampled call, the report counts the additional time
    # once for each call that the sampled one represents.
    calls, longest_ns = s.rows("SELECT count(*), max(duration_ns) FROM calls JOIN (SELECT process_id, max(call_id) AS to_ns FROM launches "
                               "GROUP BY process_id) USING (process_id) WHERE pid = ? AND layer = 'driver' AND call_id > to_ns", pids["behind"])[0]
    near = 5 + whole.off + 100 * longest_ns * calls / 5000 / (whole.part_s * 1e9)
    # A single sample may happen to give the same result, to the millisecond, as reading all rows, so take several samples.
    check(any(sample(many).text != whole.text for many in (5000, 500, 100, 50, 10)), "no sample is taken", whole.text)
    for share in "driver", "copy", "outside":
        check(abs(getattr(sampled, share) - getattr(whole, share)) < near, near, share, sampled.text, whole.text)

    # The formats `text` and `markdown` contain the same verdict, and apart from it only the table.
    for format, first in ("text", "What bounds the run"), ("markdown", "## What bounds the run"):
        text = s.run(CUDATRACE, "report", "--db", s.db, "--pid", pids["queue"], "--format", format, "bottleneck", preload=False).stdout
        check(text.startswith(first) and text.count(queue.verdict[:40]) == 1, text)
        check(queue.verdict in " ".join(text.split()) and "bound" not in text.removeprefix(first) and "start_driver" not in text, text)


# ---- traces of exact times ----

MS = 1000000


def import_runs(s, trace, *runs):
    """Imports a run for each process, given as (pid, calls). The calls are a list of (name, begin in ns, end in ns, details). The end of a call
    that has not returned is None."""
    lines = s.dir / "lines.jsonl"
    with lines.open("w") as file:
        for pid, calls in runs:
            for number, (name, begin_ns, end_ns, details) in enumerate(calls):
                has = {"category": CATEGORIES[name], **details}
                tid = pid + has.pop("thread", 0)
                for phase, at_ns, given in (("B", begin_ns, has), ("E", end_ns, {"status": 0}))[:1 if end_ns is None else 2]:
                    file.write(json.dumps({"ts": at_ns / 1e9, "op_id": 1000000 * pid + number, "phase": phase, "name": name, "pid": pid, "tid": tid,
                                           "details": given}) + "\n")
    s.run(CUDATRACE, "import", "--db", trace, lines, preload=False)


def bottleneck_of(s, trace, *options):
    rows = json.loads(s.run(CUDATRACE, "report", "--db", trace, "--format", "json", *options, "bottleneck", preload=False).stdout)["bottleneck"]
    return rows, (rows[0]["bound_by"], rows[0]["paragraph"]), {row["kind"]: row["seconds"] for row in rows if row["seconds"] > 0}


def repeated(*calls, times, every_ns, from_ns=100 * MS):
    """Returns a cuInit of 20 ms, followed by repetitions of the calls [(name, ns before it, duration in ns, details)]."""
    return [("cuInit", 0, 20 * MS, {})] + [(name, at := from_ns + n * every_ns + after_ns, at + takes_ns, details)
                                            for n in range(times) for name, after_ns, takes_ns, details in calls]


LAUNCH, TO_GPU, TO_HOST = {"kernel": "k", "grid_x": 1}, {"kind": "HtoD", "bytes": 1 << 20, "async": 0}, {"kind": "DtoH", "bytes": 1 << 20, "async": 0}
SET = {"kind": "set", "bytes": 1 << 20, "async": 0}
OTHER = {"thread": 1000}
CATEGORIES = {"cuInit": "init", "cuLaunchKernel": "launch", "cuStreamSynchronize": "sync", "cuMemcpyHtoD_v2": "copy", "cuMemFree_v2": "memory",
              "cuModuleLoadData": "module", "cuCtxGetDevice": "context", "cuMemcpyDtoH_v2": "copy", "cuMemsetD8_v2": "set", "cuCtxSynchronize": "sync",
              "cuStreamQuery": "query"}
FASTER = "Faster kernels, or more work before each wait, would shorten the run: see waits, and run --gpu for the time of kernels."
# Each row is (description, calls, bound_by, verdict, seconds by part). Each run begins with 20 ms in cuInit, followed in most runs by 80 ms
# outside the driver.
EXACT = (
    ("the host", repeated(("cuLaunchKernel", 0, 4000, LAUNCH), ("cuMemFree_v2", 1 * MS, 2 * MS, {}), times=100, every_ns=10 * MS), "host",
     "The host is the bottleneck: it is outside of the driver 80.0 % of the 0.990 s from the first launch to the last. "
     "The GPU may be busy meanwhile: see gpu (recorded by run --gpu) or gaps.",
     {"start_driver": 0.020, "start_other": 0.080, "outside": 0.792, "memory": 0.198, "end": 0.003}),
    ("synchronisation", repeated(("cuLaunchKernel", 0, 5000, LAUNCH), ("cuStreamSynchronize", 1 * MS, 8 * MS, {}), times=100,
                                 every_ns=10 * MS), "gpu",
     "Waiting for the GPU is the bottleneck: it takes 80.2 % of the 0.998 s from the first launch to the last. " + FASTER,
     {"start_driver": 0.020, "start_other": 0.080, "wait": 0.800, "outside": 0.198, "end": 0.001}),
    ("launches", repeated(("cuLaunchKernel", 0, 14000, LAUNCH), times=6000, every_ns=20000), "launch",
     "Launching is the bottleneck: it takes 70.0 % of the 0.120 s from the first launch to the last. "
     "Fewer and larger kernels, or graphs, would shorten the run: see kernels.",
     {"start_driver": 0.020, "start_other": 0.080, "launch": 0.084, "outside": 0.036}),
    ("waits for room", [*repeated(("cuLaunchKernel", 0, 5000, LAUNCH), times=1000, every_ns=10000),
                        *repeated(("cuLaunchKernel", 0, 90000, LAUNCH), times=2000, every_ns=100000, from_ns=110 * MS)[1:]], "gpu",
     "The GPU is the bottleneck: the host waits for it 85.7 % of the 0.210 s from the first launch to the last. "
     "Faster kernels, or more of them at once, would shorten the run: see kernels.",
     {"start_driver": 0.020, "start_other": 0.080, "room": 0.180, "launch": 0.005, "outside": 0.025}),
    # The kernels take 28 us each, as on an H200, and nearly every launch waits for one kernel to finish.
    ("waits for room for brief kernels", [*repeated(("cuLaunchKernel", 0, 3000, LAUNCH), times=1000, every_ns=5000),
                                          *repeated(("cuLaunchKernel", 0, 26000, LAUNCH), times=10000, every_ns=28000, from_ns=105 * MS)[1:]], "gpu",
     "The GPU is the bottleneck: the host waits for it 91.2 % of the 0.285 s from the first launch to the last. "
     "Faster kernels, or more of them at once, would shorten the run: see kernels.",
     {"start_driver": 0.020, "start_other": 0.080, "room": 0.260, "launch": 0.003, "outside": 0.022}),
    ("a wait after the last launch", [*repeated(("cuLaunchKernel", 0, 5000, LAUNCH), times=1000, every_ns=100000),
                                      ("cuStreamSynchronize", 200 * MS, 500 * MS, {}), ("cuCtxGetDevice", 800 * MS, 801 * MS, {})], "gpu",
     "Waiting for the GPU is the bottleneck: it takes 75.0 % of the 0.400 s from the first launch to the last, with the copies and waits before and "
     "after. " + FASTER,
     {"start_driver": 0.020, "start_other": 0.080, "wait": 0.300, "launch": 0.005, "outside": 0.095, "end": 0.301}),
    ("copies", repeated(("cuLaunchKernel", 0, 5000, LAUNCH), ("cuMemcpyHtoD_v2", 1 * MS, 7 * MS, TO_GPU), times=100, every_ns=10 * MS), "copy",
     "Copying is the bottleneck: it takes 70.2 % of the 0.997 s from the first launch to the last. "
     "Larger, asynchronous copies from pinned memory would shorten the run: see copies.",
     {"start_driver": 0.020, "start_other": 0.080, "copy": 0.700, "outside": 0.297, "end": 0.001}),
    # One kernel between two copies of its input and one of its result, as in a first program.
    ("copies before and after a launch",
     [("cuInit", 0, 20 * MS, {}), ("cuMemcpyHtoD_v2", 30 * MS, 44 * MS, TO_GPU), ("cuMemcpyHtoD_v2", 44 * MS, 58 * MS, TO_GPU),
      ("cuLaunchKernel", 58 * MS, 58 * MS + 20000, LAUNCH), ("cuCtxSynchronize", 58 * MS + 20000, 63 * MS, {}),
      ("cuMemcpyDtoH_v2", 63 * MS, 70 * MS, TO_HOST)], "copy",
     "Copying is the bottleneck: it takes 87.5 % of the 0.040 s from the first launch to the last, with the copies and waits before and after. "
     "Larger, asynchronous copies from pinned memory would shorten the run: see copies.",
     {"start_driver": 0.020, "start_other": 0.010, "copy": 0.035, "wait": 0.005}),
    # A copy to the host takes 0.2 ms if no kernel is running.
    ("copies that wait", [("cuInit", 0, 20 * MS, {}), ("cuMemcpyDtoH_v2", 95 * MS, 95 * MS + 200000, TO_HOST),
                          *repeated(("cuLaunchKernel", 0, 5000, LAUNCH), ("cuMemcpyDtoH_v2", 1 * MS + 500, 8 * MS, TO_HOST), times=100,
                                    every_ns=10 * MS)[1:]], "gpu",
     "Waiting for the GPU is the bottleneck: it takes 77.9 % of the 0.998 s from the first launch to the last. " + FASTER,
     {"start_driver": 0.020, "start_other": 0.080, "wait": 0.778, "copy": 0.022, "outside": 0.198, "end": 0.001}),
    # All copies take equally long, so they may be slow or wait for the kernels.
    ("copies that are equally slow", repeated(("cuLaunchKernel", 0, 5000, LAUNCH), ("cuMemcpyDtoH_v2", 1 * MS, 8 * MS, TO_HOST), times=100,
                                              every_ns=10 * MS), "copy",
     "Copying is the bottleneck: it takes 80.2 % of the 0.998 s from the first launch to the last. "
     "Larger, asynchronous copies from pinned memory would shorten the run: see copies. Copies to the host may also wait for kernels: run --gpu shows "
     "this.",
     {"start_driver": 0.020, "start_other": 0.080, "copy": 0.800, "outside": 0.198, "end": 0.001}),
    ("sets", repeated(("cuLaunchKernel", 0, 5000, LAUNCH), ("cuMemsetD8_v2", 1 * MS, 7 * MS, SET), times=100, every_ns=10 * MS), "set",
     "Setting memory is the bottleneck: it takes 70.2 % of the 0.997 s from the first launch to the last. "
     "Fewer and larger sets, or kernels that set their own memory, would shorten the run: see functions.",
     {"start_driver": 0.020, "start_other": 0.080, "set": 0.700, "outside": 0.297, "end": 0.001}),
    ("memory", repeated(("cuLaunchKernel", 0, 5000, LAUNCH), ("cuMemFree_v2", 1 * MS, 6 * MS, {}), times=100, every_ns=10 * MS), "memory",
     "Managing memory is the bottleneck: it takes 60.0 % of the 0.990 s from the first launch to the last. "
     "Keeping memory instead of freeing it would shorten the run: see memory and functions.",
     {"start_driver": 0.020, "start_other": 0.080, "memory": 0.594, "outside": 0.396, "end": 0.007}),
    # Each thread is in the driver about 40 % of the time, and both threads together are in the driver 80 % of the time. The report takes
    # the mean of these two shares.
    ("two threads in turn", repeated(("cuLaunchKernel", 0, 5000, LAUNCH), ("cuMemFree_v2", 1 * MS, 4 * MS, {}),
                                     ("cuLaunchKernel", 5 * MS, 5000, {**LAUNCH, **OTHER}), ("cuMemFree_v2", 6 * MS, 4 * MS, OTHER),
                                     times=100, every_ns=10 * MS), "memory",
     "Managing memory is the bottleneck: it takes 60.5 % of the 0.995 s from the first launch to the last. "
     "Keeping memory instead of freeing it would shorten the run: see memory and functions.",
     {"start_driver": 0.020, "start_other": 0.080, "memory": 0.602, "outside": 0.392, "launch": 0.001, "end": 0.005}),
    ("other calls", repeated(("cuLaunchKernel", 0, 5000, LAUNCH), ("cuStreamQuery", 1 * MS, 6 * MS, {}), times=100, every_ns=10 * MS), "driver",
     "Other driver calls are the bottleneck: they take 60.0 % of the 0.990 s from the first launch to the last. "
     "Fewer of these calls would shorten the run: see functions.",
     {"start_driver": 0.020, "start_other": 0.080, "other": 0.594, "outside": 0.396, "end": 0.007}),
    ("a long start", repeated(("cuLaunchKernel", 0, 4000, LAUNCH), ("cuModuleLoadData", 1 * MS, 6 * MS, {}), times=10, every_ns=10 * MS,
                              from_ns=900 * MS), "load",
     "Loading is the bottleneck: it takes 60.0 % of the 0.090 s from the first launch to the last. "
     "A process that lives longer pays for this only once: see modules. Most of the run comes before the first launch.",
     {"start_driver": 0.020, "start_other": 0.880, "load": 0.054, "outside": 0.036, "end": 0.007}),
    ("a short run", repeated(("cuLaunchKernel", 0, 5000, LAUNCH), times=10, every_ns=10000), "start",
     "The run is too short to name a bottleneck: the last launch ends 0.095 ms after the first begins.",
     {"start_driver": 0.020, "start_other": 0.080}),
    ("a shorter run", [("cuInit", 0, 200000, {}), *repeated(("cuLaunchKernel", 0, 10000, LAUNCH), times=60, every_ns=20000, from_ns=400000)[1:]], "launch",
     "Launching is the bottleneck: it takes 50.4 % of the 0.001 s from the first launch to the last. "
     "Fewer and larger kernels, or graphs, would shorten the run: see kernels.",
     {"start_driver": 0.0002, "start_other": 0.0002, "launch": 0.0006, "outside": 0.0006}),
    ("no launches", repeated(("cuCtxGetDevice", 0, 5 * MS, {}), times=10, every_ns=10 * MS), "start",
     "Nothing was launched, so there is no bottleneck to name.",
     {"load": 0.070, "outside": 0.125}),
)
# A product of two matrices, with times in us.
FIRST = (("cuInit", 1, 50, {"flags": 0}), ("cuDeviceGet", 50, 102, {"device": 0}), ("cuCtxCreate", 102, 1200, {"flags": 0}),
         ("cuMemAlloc", 1234, 1400, {"size": 4000000}), ("cuMemAlloc", 1456, 1800, {"size": 4000000}), ("cuMemcpyHtoD", 1890, 15670, {"size": 4000000}),
         ("cuMemcpyHtoD", 15670, 29450, {"size": 4000000}), ("cuLaunchKernel", 29450, 29480, {"grid": [31, 31, 1], "block": [32, 32, 1]}),
         ("cuCtxSynchronize", 29480, 34680, {}), ("cuMemcpyDtoH", 34720, 40020, {"size": 4000000}))
with Session() as s:
    for number, (what, calls, bound_by, verdict, seconds) in enumerate(EXACT):
        trace = s.dir / f"{number}.db"
        import_runs(s, trace, (7, calls))
        rows, *found = bottleneck_of(s, trace)
        equal(found, [(bound_by, verdict), seconds], what)
        whole_s = (calls[-1][2]) / 1e9
        for row in rows:
            check(abs(row["%_of_run"] - 100 * row["seconds"] / whole_s) <= 0.05 + (0.05 if whole_s > 0.1 else 0.005) / whole_s, what, row, whole_s)

    # A wait after the last launch belongs to the execution, and not to the exit.
    number = [what for what, *_ in EXACT].index("a wait after the last launch")
    phases = json.loads(s.run(CUDATRACE, "report", "--db", s.dir / f"{number}.db", "--format", "json", "phases", preload=False).stdout)["phases"]
    equal([(row["phase"], row["at_s"], row["seconds"]) for row in phases if row["phase"] != "load"], [("execution", 0.1, 0.4), ("exit", 0.5, 0.301)], "phases")

    # Other sections divide copies in the same way.
    number = [what for what, *_ in EXACT].index("copies that wait")
    sections = json.loads(s.run(CUDATRACE, "report", "--db", s.dir / f"{number}.db", "--format", "json", "waits", "copies", preload=False).stdout)
    equal([(row["function"], row["waits"], row["total_ms"]) for row in sections["waits"]], [("cuMemcpyDtoH_v2", 100, 778.0)], "waits")
    equal([(row["total_ms"], row["waited_ms"], row["gb_per_s"]) for row in sections["copies"]], [(800.2, 778.0, 4.77)], "copies")

    # The example of a first program: lines with nothing but a time, a number, a phase, a name and a few details. The other sections must
    # divide the time in the same way.
    lines = s.dir / "first.jsonl"
    lines.write_text("".join(json.dumps({"ts": at_us / 1e6, "op_id": number, "phase": phase, "name": name, "details": details}) + "\n"
                             for number, (name, begin_us, end_us, has) in enumerate(FIRST)
                             for phase, at_us, details in (("B", begin_us, has), ("E", end_us, {"status": 0}))))
    s.run(CUDATRACE, "import", "--db", s.dir / "first.db", lines, preload=False)
    equal(bottleneck_of(s, s.dir / "first.db")[1:], (
        ("copy", "Copying is the bottleneck: it takes 86.3 % of the 0.038 s from the first launch to the last, with the copies and waits before and after. "
                 "Larger, asynchronous copies from pinned memory would shorten the run: see copies."),
        {"start_driver": 0.0017, "start_other": 0.0002, "copy": 0.0329, "wait": 0.0052}), "a first program")
    sections = json.loads(s.run(CUDATRACE, "report", "--db", s.dir / "first.db", "--format", "json", "categories", "copies", "waits", preload=False).stdout)
    equal({row["category"]: row["total_ms"] for row in sections["categories"] if row["category"] in ("copy", "sync")}, {"copy": 32.86, "sync": 5.2}, "categories")
    equal([(row["kind"], row["total_ms"], row["waited_ms"]) for row in sections["copies"]], [("HtoD", 27.56, 0), ("DtoH", 5.3, 0)], "copies")
    equal([(row["function"], row["total_ms"]) for row in sections["waits"]], [("cuCtxSynchronize", 5.2)], "waits")

    # A hang, and several processes: one waits, one copies, and one launches nothing.
    hang = [*repeated(("cuLaunchKernel", 0, 5000, LAUNCH), times=100, every_ns=1 * MS), ("cuStreamSynchronize", 250 * MS, None, {})]
    busy = repeated(("cuLaunchKernel", 0, 5000, LAUNCH), ("cuStreamSynchronize", 1 * MS, 8 * MS, {}), times=100, every_ns=10 * MS)
    copying = repeated(("cuLaunchKernel", 0, 5000, LAUNCH), ("cuMemcpyHtoD_v2", 1 * MS, 5 * MS, TO_GPU), times=100, every_ns=10 * MS)
    idle = [("cuInit", 0, 20 * MS, {}), ("cuCtxGetDevice", 5000 * MS, 5001 * MS, {})]
    for what, runs, bound_by, verdict, seconds in (
            ("a hang", [(7, hang), (8, idle)], "gpu",
             "Waiting for the GPU is the bottleneck: it takes 98.0 % of the 4.850 s from the first launch to the last, with the copies and waits before and "
             "after. cuStreamSynchronize() has not returned for 4.751 s: see pending (recorded by run --gpu), and the view open_calls.",
             {"start_driver": 0.02, "start_other": 0.08, "wait": 4.751, "outside": 0.099, "end": 0.051}),
            ("several processes", [(7, busy), (8, copying), (9, idle)], "gpu",
             "Waiting for the GPU is the bottleneck: it takes 40.1 % of the 1.993 s from the first launch to the last in 2 processes. " + FASTER,
             {"start_driver": 0.04, "start_other": 0.16, "wait": 0.8, "outside": 0.692, "copy": 0.5, "end": 0.002})):
        import_runs(s, s.dir / f"{what}.db", *runs)
        equal(bottleneck_of(s, s.dir / f"{what}.db")[1:], ((bound_by, verdict), seconds), what)

    # With --pid, the verdict describes only the run of the selected process, whatever the other processes do.
    import_runs(s, s.dir / "all.db", *((10 + number, calls) for number, (_, calls, *_) in enumerate(EXACT)))
    for number, (what, _, bound_by, verdict, seconds) in enumerate(EXACT):
        equal(bottleneck_of(s, s.dir / "all.db", "--pid", 10 + number)[1:], ((bound_by, verdict), seconds), f"{what}, with --pid")
