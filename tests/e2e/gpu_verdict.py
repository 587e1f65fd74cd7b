"""Tests the verdict of `cudatrace report` on traces with GPU work at exact times. If a trace has no records of work, because an older
version wrote it or only GPU samples were taken, the verdict is derived from its host calls."""
import contextlib
import json
import sqlite3

from cudatrace_test import CUDATRACE, Session, check, equal
from exact_trace import add_work, import_calls

LAUNCH, COPY = {"kernel": "a", "grid_x": 1}, {"kind": "HtoD", "bytes": 4096, "async": 0}
TIMES, PERIOD_US, FIRST_US = 10, 10000, 100000
# Each row is (description, calls in each period, work in each period, additional work, bound_by, verdict, seconds by part). A call is
# (name, begin in us, end in us, details). A piece of work is (kind or direction, device, begin in us, end in us, index of its call).
RUNS = (
    ("kernels", [("cuLaunchKernel", 0, 100, LAUNCH)], [("kernel", 0, 100, 9000, 0)], (), "gpu",
     "The work of the GPU is the bottleneck: the GPU is busy 90.0 % of the 0.099 s from the first work to the last. "
     "Faster kernels, or more of them at once, would shorten the run: see work.",
     {"start_other": 0.1, "kernel": 0.089, "outside": 0.009, "launch": 0.001}),
    ("copies", [("cuLaunchKernel", 0, 100, LAUNCH), ("cuMemcpyHtoD_v2", 1000, 9000, COPY)],
     [("kernel", 0, 100, 1000, 0), ("HtoD", 0, 500, 800, 1), ("HtoD", 0, 1500, 8900, 1)], (), "copy",
     "Copying is the bottleneck: the GPU is busy 84.4 % of the 0.098 s from the first kernel to the last, with the copies before and after, mostly "
     "with copies or sets and no kernel. Copies that overlap kernels, or copies from pinned memory, would shorten the run: see work and copies.",
     {"start_other": 0.1, "copy": 0.074, "kernel": 0.009, "outside": 0.009, "copying": 0.005, "launch": 0.001, "end": 0.001}),
    ("the host", [("cuLaunchKernel", 0, 100, LAUNCH)], [("kernel", 0, 100, 1100, 0)], (), "host",
     "The host is the bottleneck: the GPU is idle 89.0 % of the 0.091 s from the first work to the last, mostly while the host is outside of the "
     "driver. More work for each launch, or a faster program, would shorten the run: see idle.",
     {"start_other": 0.1, "outside": 0.08, "kernel": 0.01, "launch": 0.001}),
    ("waits", [("cuLaunchKernel", 0, 100, LAUNCH), ("cuStreamSynchronize", 200, 9900, {})], [("kernel", 0, 100, 1100, 0)], (), "sync",
     "Synchronisation is the bottleneck: the GPU is idle 89.0 % of the 0.091 s from the first work to the last, mostly while the host is in a call "
     "that waits. Fewer waits, or more launches before each wait, would shorten the run: see idle and waits.",
     {"start_other": 0.1, "wait": 0.079, "kernel": 0.01, "outside": 0.001, "launch": 0.001, "end": 0.009}),
    ("launches", [("cuLaunchKernel", 0, 8000, LAUNCH)], [("kernel", 0, 8000, 9000, 0)], (), "launch",
     "Launching is the bottleneck: the GPU is idle 89.0 % of the 0.091 s from the first work to the last, mostly while the host launches. "
     "Fewer and larger kernels, or graphs, would shorten the run: see idle and kernels.",
     {"start_other": 0.108, "launch": 0.072, "kernel": 0.01, "outside": 0.009}),
    ("late starts", [("cuLaunchKernel", 0, 100, LAUNCH)], [("kernel", 0, 8000, 9000, 0)], (), "queue",
     "The time from launch to start is the bottleneck: the GPU is idle 89.0 % of the 0.091 s from the first work to the last, mostly while the next "
     "work is launched but has not started. Larger kernels, graphs, or fewer waits between streams would shorten the run: see idle.",
     {"start_other": 0.108, "queued": 0.071, "kernel": 0.01, "outside": 0.009, "launch": 0.001}),
    ("memory", [("cuLaunchKernel", 0, 100, LAUNCH), ("cuMemAlloc_v2", 200, 9900, {})], [("kernel", 0, 100, 1100, 0)], (), "memory",
     "Managing memory is the bottleneck: the GPU is idle 89.0 % of the 0.091 s from the first work to the last, mostly while the host manages memory. "
     "Keeping memory instead of freeing it would shorten the run: see idle and memory.",
     {"start_other": 0.1, "memory": 0.079, "kernel": 0.01, "outside": 0.001, "launch": 0.001, "end": 0.009}),
    ("loading", [("cuLaunchKernel", 0, 100, LAUNCH), ("cuModuleLoadData", 200, 9900, {})], [("kernel", 0, 100, 1100, 0)], (), "load",
     "Loading is the bottleneck: the GPU is idle 89.0 % of the 0.091 s from the first work to the last, mostly while the host loads code or "
     "initialises. A process that lives longer pays for this only once: see idle and modules.",
     {"start_other": 0.1, "load": 0.079, "kernel": 0.01, "outside": 0.001, "launch": 0.001, "end": 0.009}),
    ("queries", [("cuLaunchKernel", 0, 100, LAUNCH), ("cuStreamQuery", 200, 9900, {})], [("kernel", 0, 100, 1100, 0)], (), "driver",
     "Other driver calls are the bottleneck: the GPU is idle 89.0 % of the 0.091 s from the first work to the last, mostly while the host is in calls "
     "that neither launch nor wait. Fewer of these calls would shorten the run: see idle.",
     {"start_other": 0.1, "other": 0.079, "kernel": 0.01, "outside": 0.001, "launch": 0.001, "end": 0.009}),
    ("two GPUs", [("cuLaunchKernel", 0, 100, LAUNCH)], [("kernel", 0, 100, 9000, 0)], [("kernel", 1, 150000, 160000, 0)], "gpu",
     "The work of the GPU is the bottleneck: the 2 GPUs are busy 50.1 % of the 0.099 s from the first work to the last. "
     "Faster kernels, or more of them at once, would shorten the run: see work. Busy by device: 90.0 % (0), 10.1 % (1).",
     {"start_other": 0.2, "kernel": 0.099, "outside": 0.009, "launch": 0.001, "rest": 0.089}),
    # A copy of 10 ms, 60 ms before the first kernel, as of weights that a program loads first.
    ("kernels after a copy", [("cuLaunchKernel", 0, 100, LAUNCH)], [("kernel", 0, 100, 9000, 0)], [("HtoD", 0, 30000, 40000, 0)], "gpu",
     "The work of the GPU is the bottleneck: the GPU is busy 90.9 % of the 0.109 s from the first kernel to the last, with the copies before and "
     "after. Faster kernels, or more of them at once, would shorten the run: see work.",
     {"start_other": 0.09, "kernel": 0.089, "copy": 0.01, "outside": 0.009, "launch": 0.001}),
)


def make(s, number, calls, work, more):
    """Makes a trace that repeats the same calls and work in each period. Returns its path."""
    trace = s.dir / f"{number}.db"
    at = [FIRST_US + n * PERIOD_US for n in range(TIMES)]
    import_calls(s, trace, [(7, 7, "cuInit", 0, 20000, 0, {}), *((7, 7, name, us + begin, us + end, 0, details) for us in at
                                                                 for name, begin, end, details in calls)])
    add_work(trace, [(7, kind, "a" if kind == "kernel" else None, device, 7, us + begin, us + end, None, (us or FIRST_US) + calls[call][2])
                     for us, pieces in (*((us, work) for us in at), (0, more)) for kind, device, begin, end, call in pieces])
    return trace


def bottleneck(s, trace, *options, format="json"):
    out = s.run(CUDATRACE, "report", "--db", trace, "--format", format, *options, "bottleneck", preload=False).stdout
    return json.loads(out)["bottleneck"] if format == "json" else out


with Session() as s:
    for number, (what, calls, work, more, bound_by, verdict, seconds) in enumerate(RUNS):
        rows = bottleneck(s, make(s, number, calls, work, more))
        equal((rows[0]["bound_by"], rows[0]["paragraph"]), (bound_by, verdict), what)
        equal({row["kind"]: row["seconds"] for row in rows if row["seconds"] > 0}, seconds, what)
        check(abs(sum(row["%_of_run"] for row in rows) - 100) < 0.5, "shares", rows)
        # Without records of work, the verdict is the same, or that the host waits or is outside of the driver. Then it names `run --gpu`.
        host = bottleneck(s, make(s, f"host-{number}", calls, (), ()))[0]
        check(host["bound_by"] == bound_by != "gpu" or "run --gpu" in host["paragraph"], what, host)

    # A process that hangs after its work. Another process shows that time has passed.
    trace = s.dir / "hang.db"
    at = [FIRST_US + n * PERIOD_US for n in range(TIMES)]
    import_calls(s, trace, [*((7, 7, "cuLaunchKernel", us, us + 100, 0, LAUNCH) for us in at), (7, 7, "cuStreamSynchronize", 200000, None, 0, {}),
                            (8, 8, "cuInit", 0, 100, 0, {}), (8, 8, "cuStreamQuery", 2000000, 2000100, 0, {})])
    add_work(trace, [(7, "kernel", "a", 0, 7, us + 100, us + 9000, None, us + 100) for us in at])
    row = bottleneck(s, trace)[0]
    equal((row["bound_by"], row["paragraph"]),
          ("gpu", "The work of the GPU is the bottleneck: the GPU is busy 90.0 % of the 0.099 s from the first work to the last. "
                  "cuStreamSynchronize() has not returned for 1.800 s: see pending, and the view open_calls."), "a hang")

    # The verdict on a window is derived from the GPU work in the window.
    row = bottleneck(s, s.dir / "0.db", "--from", "0.1505", "--to", "0.1601")[0]
    equal((row["bound_by"], row["paragraph"][:97]),
          ("gpu", "The work of the GPU is the bottleneck: the GPU is busy 88.5 % of the 0.010 s of the window. Faste"), "a window")
    # Time after the processes have ended is not idle time. A gap that crosses the window's edge counts in proportion.
    rows = bottleneck(s, s.dir / "0.db", "--from", "0.1501", "--to", "9")
    equal((rows[0]["bound_by"], {row["kind"]: row["seconds"] for row in rows}),
          ("gpu", {"kernel": 0.0445, "outside": 0.004, "launch": 0.0004}), "a window that ends after the trace")
    rows = bottleneck(s, s.dir / "2.db", "--from", "0.1505", "--to", "0.1558")
    equal((rows[0]["bound_by"], {row["kind"]: row["seconds"] for row in rows}),
          ("host", {"outside": 0.0046, "kernel": 0.0006, "launch": 0.0001}), "a window that ends within a gap")
    sections = json.loads(s.run(CUDATRACE, "report", "--db", s.dir / "2.db", "--format", "json", "--from", "0.1505", "--to", "0.1558", "gpu", "shares",
                                "idle", preload=False).stdout)
    equal(([row["busy_ms"] for row in sections["gpu"]], [row["busy_ms"] for row in sections["shares"]],
           {row["during"]: row["idle_ms"] for row in sections["idle"]}),
          ([0.6], [0.6], {"(outside of the driver)": 4.648, "cuLaunchKernel": 0.052}), "busy and idle time in this window")
    text = bottleneck(s, s.dir / "0.db", format="text")
    check("busy 90.0 %" in text and text.count("The work of the GPU") == 1 and "start_other" not in text, text)

    # The gap before a process's first work is not the process's idle time.
    trace = s.dir / "two.db"
    import_calls(s, trace, [(pid, pid, "cuLaunchKernel", us, us + 100, 0, LAUNCH) for pid, us in ((7, 100000), (8, 200000), (8, 210000))])
    add_work(trace, [(pid, "kernel", "a", 0, 7, us, us + 1000, None, us) for pid, us in ((7, 100100), (8, 200100), (8, 210100))])
    rows = bottleneck(s, trace, "--pid", 8)
    equal((rows[0]["bound_by"], {row["kind"]: row["seconds"] for row in rows if row["kind"] in ("kernel", "outside", "launch")}),
          ("host", {"kernel": 0.002, "outside": 0.0089, "launch": 0.0001}), "the second of two processes")
    sections = json.loads(s.run(CUDATRACE, "report", "--db", trace, "--format", "json", "--pid", 8, "idle", preload=False).stdout)
    equal({row["during"]: row["idle_ms"] for row in sections["idle"]}, {"(outside of the driver)": 8.9, "cuLaunchKernel": 0.1}, "its idle time")

    # The GPU may have done work between two recordings, so the time between them does not count as idle.
    trace = make(s, "recordings", RUNS[0][1], RUNS[0][2], ())
    with contextlib.closing(sqlite3.connect(trace)) as db:
        db.executescript("DELETE FROM gpu_run WHERE run_id BETWEEN 4 AND 7; UPDATE correlation SET correlation = correlation + iif(correlation < 4, 1, 2) * 4294967296;"
                         "UPDATE gpu_run SET correlation = correlation + iif(run_id < 4, 1, 2) * 4294967296")
    rows = bottleneck(s, trace)
    verdict = ("The work of the GPU is the bottleneck: the GPU is busy 92.4 % of the 0.058 s from the first work to the last, without the time between "
               "recordings. Faster kernels, or more of them at once, would shorten the run: see work.")
    equal((rows[0]["bound_by"], rows[0]["paragraph"]), ("gpu", verdict), "two recordings")
    equal({row["kind"]: row["seconds"] for row in rows if row["seconds"] > 0},
          {"start_other": 0.1, "kernel": 0.053, "outside": 0.004, "unrecorded": 0.041}, "parts of two recordings")

    # If some launches were not recorded, the verdict says so.
    trace = make(s, "sampled", RUNS[2][1], RUNS[2][2], ())
    with contextlib.closing(sqlite3.connect(trace)) as db:
        db.executescript("DELETE FROM correlation WHERE correlation > 2; INSERT INTO unsent SELECT segment_id, 9, function_id, 0, 0, 0, 8, 1, 0 "
                         "FROM segment JOIN function ON function.name = 'cuLaunchKernel'")
    rows = bottleneck(s, trace)
    verdict = ("The bottleneck is unknown: the GPU is idle 89.0 % of the 0.091 s from the first work to the last, mostly before a first work, after a "
               "last, or next to other processes. See gpu and idle. For 88.9 % of the idle time, the call that launched the next work was not recorded "
               "(--sample, --calls).")
    equal((rows[0]["bound_by"], rows[0]["paragraph"]), ("unknown", verdict), "launches that were not recorded")

    # If the trace has no records of GPU work, the verdict is derived from host calls, and another line shows the utilisation reported by
    # the GPUs.
    trace = make(s, "samples", RUNS[0][1], [], ())
    by_calls = bottleneck(s, trace)
    equal(by_calls[0]["bound_by"], "host", "a run without records of work")
    with contextlib.closing(sqlite3.connect(trace)) as db:
        first_ns, last_ns = db.execute("SELECT min(call_id), max(call_id) FROM launch").fetchone()
        db.execute("INSERT INTO gpu (gpu_id, place, number, uuid, pci_address, name, memory_bytes, driver) VALUES (1, 3, 3, 'u', 'p', 'n', 1, 'd')")
        for at_ns, percent in ((first_ns - 1000000, 100), (first_ns + 1000000, 40), (last_ns - 1000000, 45), (last_ns + 1000000, 100)):
            db.execute("INSERT INTO gpu_sample (time_ns, gpu_id, busy_percent) VALUES (?, 1, ?)", (at_ns, percent))
        db.execute("INSERT INTO gpu_process (time_ns, gpu_id, pid) VALUES (?, 1, 7)", (first_ns + 1000000,))
        db.commit()
    equal(bottleneck(s, trace), by_calls, "rows with samples")
    measured = "Kernels ran 42.5 % (GPU 3) of the time from the first launch to the last, as the GPUs reported."
    equal(bottleneck(s, trace, format="text").count(measured), 1, "the line about utilisation")
    check("as the GPUs reported" not in text, "utilisation next to records of work", text)

    # A trace from an older version has no views for GPU work and samples.
    with contextlib.closing(sqlite3.connect(trace)) as db:
        db.executescript("DROP VIEW gpu_work; DROP VIEW gpu_recordings; DROP VIEW gpu_idle_calls; DROP VIEW gpu_samples; PRAGMA user_version = 11")
    equal(bottleneck(s, trace), by_calls, "a trace of an older version")
    check(bottleneck(s, trace, format="text").startswith("What bounds the run\n\nThe host is the bottleneck: it is outside"), "its text")
