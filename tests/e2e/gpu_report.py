"""Tests the views and the report sections about GPU work, using traces with exact times. Some traces consist of a single file, and some of
two files."""
import contextlib
import json
import shutil
import sqlite3

from cudatrace_test import CUDATRACE, Session, equal
from exact_trace import BASE_US, add_work, import_calls
from series_test import sql

LAUNCH, COPY = {"kernel": "a", "grid_x": 1}, {"kind": "HtoD", "bytes": 4096, "async": 0}
# (pid, tid, name, begin in us, end in us, depth, details)
CALLS = (
    (7, 7, "cuInit", 0, 1000, 0, {}),
    (7, 7, "cuLaunchKernel", 10000, 10100, 0, LAUNCH),
    (7, 7, "cuLaunchKernel", 10100, 10200, 0, LAUNCH),
    (7, 7, "cuStreamSynchronize", 10300, 23000, 0, {}),
    (7, 7, "cuLaunchKernel", 30000, 30500, 0, LAUNCH),
    (7, 7, "cuMemcpyHtoD_v2", 36000, 40000, 0, COPY),
    (7, 7, "cuCtxSynchronize", 36200, 38000, 1, {}),  # inside the copy
    (7, 8, "cuStreamSynchronize", 20000, 39500, 0, {}),
    (7, 8, "cuLaunchKernel", 40050, 40250, 0, LAUNCH),
    (9, 9, "cuCtxSynchronize", 0, 90000, 0, {}),      # of another process
)
# (pid, kind or direction, kernel, device, stream, begin in us, end in us, bytes, end in us of the call)
WORK = (
    (7, "kernel", "a", 0, 7, 10500, 20000, None, 10100),
    (7, "kernel", "b", 0, 7, 20000, 22000, None, 10200),
    (7, "kernel", "a", 0, 13, 21000, 21500, None, 10200),  # overlaps, and ends before the other
    (7, "kernel", "c", 0, 7, 31000, 35000, None, 30500),
    (7, "HtoD", None, 0, 7, 36500, 39000, 4096, 40000),
    (7, "kernel", "a", 0, 8, 45000, 50000, None, 40250),
    (7, "kernel", "b", 0, 7, 52000, 53000, None, None),
    (7, "set", None, 1, 7, 40000, 60000, 1, None),
)
# (from, to, ended, begun, state, function, us)
IDLE = [(22000, 31000, "b", "c", "launch", "cuLaunchKernel", 500), (22000, 31000, "b", "c", "outside", None, 7000),
        (22000, 31000, "b", "c", "queued", None, 500), (22000, 31000, "b", "c", "sync", "cuStreamSynchronize", 1000),
        (35000, 36500, "c", "HtoD", "copy", "cuMemcpyHtoD_v2", 500), (35000, 36500, "c", "HtoD", "outside", None, 1000),
        (39000, 45000, "HtoD", "a", "launch", "cuLaunchKernel", 200), (39000, 45000, "HtoD", "a", "outside", None, 550),
        (39000, 45000, "HtoD", "a", "queued", None, 4750), (39000, 45000, "HtoD", "a", "sync", "cuStreamSynchronize", 500),
        (50000, 52000, "a", "b", "unknown", None, 2000)]
GAPS = [(22000, 31000, "outside", None, 7), (35000, 36500, "outside", None, 7), (39000, 45000, "queued", None, 8), (50000, 52000, "unknown", None, None)]
SUMS = [("(outside of the driver)", 3, 8.55, 46.2, 9.0, "b", "c"), ("(the next work was queued)", 2, 5.25, 28.4, 9.0, "b", "c"),
        ("(unknown)", 1, 2.0, 10.8, 2.0, "a", "b"), ("cuStreamSynchronize", 2, 1.5, 8.1, 9.0, "b", "c"),
        ("cuLaunchKernel", 2, 0.7, 3.8, 9.0, "b", "c"), ("cuMemcpyHtoD_v2", 1, 0.5, 2.7, 1.5, "c", "HtoD")]
STREAMS = [(0, 7, 4, 1, 0, 19.0), (0, 8, 1, 0, 0, 5.0), (0, 13, 1, 0, 0, 0.5), (1, 7, 0, 0, 1, 20.0)]


def report(s, *options):
    return json.loads(s.run(CUDATRACE, "report", "--db", s.db, "--format", "json", *options, preload=False).stdout)


def check_idle(s):
    us = f"/ 1000 - {BASE_US}"
    seen = sql(s, f"SELECT from_ns {us}, to_ns {us}, ended, begun, host_state, host_call, idle_ns / 1000 FROM gpu_idle_calls ORDER BY from_ns, host_state")
    equal(seen, list(map(list, IDLE)), "the parts of gaps")
    equal(sql(s, f"SELECT from_ns {us}, to_ns {us}, host_state, host_call, tid FROM gpu_idle ORDER BY from_ns"), list(map(list, GAPS)), "gaps")
    rows = report(s, "idle")["idle"]
    equal([tuple(row[column] for column in ("during", "gaps", "idle_ms", "%", "longest_ms", "ended", "begun")) for row in rows], SUMS, "sums of gaps")
    equal(sql(s, "SELECT device, stream, kernels, copies, sets, busy_ns / 1e6 FROM streams ORDER BY 1, 2"), list(map(list, STREAMS)), "streams")


with Session() as s:
    import_calls(s, s.db, CALLS)
    add_work(s.db, WORK)
    check_idle(s)
    equal([row["during"] for row in report(s, "--from", "0.034", "--to", "0.046", "idle")["idle"]],
          ["(the next work was queued)", "(outside of the driver)", "cuMemcpyHtoD_v2", "cuStreamSynchronize", "cuLaunchKernel"], "gaps in a window")
    equal(report(s, "--pid", 9, "idle")["idle"], [], "gaps of a process without work")

    whole, second, until_ns = s.dir / "whole.db", s.dir / "trace.2.db", (25000 + BASE_US) * 1000
    shutil.copy(s.db, whole)

    def split(first_work, second_work):
        """Divides the calls into two files, which have the GPU work that the conditions select."""
        for path, gone, work in ((s.db, ">", first_work), (second, "<=", second_work)):
            shutil.copy(whole, path)
            with contextlib.closing(sqlite3.connect(path)) as trace:
                trace.executescript(f"DELETE FROM call WHERE end_ns {gone} {until_ns}; DELETE FROM correlation WHERE call_id {gone} {until_ns};"
                                    f"DELETE FROM gpu_run WHERE NOT ({work})")

    # A gap between the last work in one file and the first work in the next file is also in the trace.
    split(f"start_ns <= {until_ns}", f"start_ns > {until_ns}")
    check_idle(s)
    # Work that was stored before its call is in the first file, and its call in the second.
    split("true", "false")
    check_idle(s)
    # The file with the first launch was removed, but the first file has a copy of its correlation.
    with contextlib.closing(sqlite3.connect(s.db)) as trace:
        trace.executescript(f"DELETE FROM call WHERE end_ns <= {(10100 + BASE_US) * 1000}")
    equal(sql(s, f"SELECT call_id / 1000 - {BASE_US} FROM gpu_work WHERE device = 0 ORDER BY gpu_start_ns"),
          [[None], [10200], [10200], [30500], [40000], [40250], [None]], "calls of the work")


# ---- launches and their work: queues, and ranges ----

# Each range contains the launches that its own thread made while the range was open. The call that ends at 600 launches a graph,
# which consists of two pieces of work.
RANGE = "nvtxRangePush"
LAUNCHES = [(7, 7, "cuInit", 0, 5, 0, {}), *((7, 7, "cuLaunchKernel", end - 10, end, 2, LAUNCH) for end in (100, 200, 300, 400, 600)),
            (7, 7, RANGE, 50, 250, 1, {"message": "forward"}), (7, 7, RANGE, 260, 450, 1, {"message": "backward"}),
            (7, 7, RANGE, 40, 700, 0, {"message": "step 1"}), (7, 7, RANGE, 800, 900, 0, {"message": "step 2", "domain": "app"}),
            (7, 8, RANGE, 30, 900, 0, {"message": "other"}), (7, 8, "cuLaunchKernel", 640, 650, 1, LAUNCH)]
LAUNCHED = ((7, "kernel", "a", 0, 7, 150, 350, None, 100), (7, "kernel", "b", 0, 7, 500, 600, None, 200), (7, "kernel", "a", 0, 7, 900, 950, None, 300),
            (7, "HtoD", None, 0, 8, 350, 400, 1, 400), (7, "kernel", "a", 0, 7, 1000, 1020, None, 600), (7, "set", None, 0, 7, 1100, 1120, 1, 600),
            (7, "kernel", "a", 0, 13, 1200, 1300, None, 650), (7, "kernel", "a", 0, 7, 2000, 2010, None, None))
QUEUE = [(7, 100, 50, 1), (7, 200, 300, 1), (7, 300, 600, 2), (8, 350, 0, 1), (7, 600, 400, 2), (7, 600, 500, 3), (13, 650, 550, 1)]
QUEUES = [(7, 0, 7, 5, 370.0, 600.0, 1.8, 3, 40.0, 1.0, 2.0, None, 2.5), (7, 0, 8, 1, 0.0, 0.0, 1.0, 1, 100.0, None, 1.0, None, None),
          (7, 0, 13, 1, 550.0, 550.0, 1.0, 1, 100.0, None, None, None, 1.0)]
# (message, us on the GPU, kernels, copies, sets)
INSIDE = [("forward", 300, 2, 0, 0), ("backward", 100, 1, 1, 0), ("step 1", 440, 4, 1, 1), ("step 2", 0, 0, 0, 0), ("other", 100, 1, 0, 0)]
RANGES = [("", "step N", 1, 0.66, 0.44, 81.5, 440.0, 4, 1), ("", "forward", 1, 0.2, 0.3, 55.6, 300.0, 2, 0), ("", "other", 1, 0.87, 0.1, 18.5, 100.0, 1, 0),
          ("", "backward", 1, 0.19, 0.1, 18.5, 100.0, 1, 1), ("app", "step N", 1, 0.1, 0.0, 0.0, 0.0, 0, 0)]


def check_launches(s):
    equal(sorted(sql(s, f"SELECT stream, launched_ns / 1000 - {BASE_US}, latency_ns / 1000, depth FROM launch_queue"), key=lambda row: (row[1], row[3])),
          list(map(list, QUEUE)), "the queues")
    equal(sql(s, "SELECT message, gpu_ns / 1000, kernels, copies, sets FROM range_gpu ORDER BY tid, call_id"),
          [list(INSIDE[n]) for n in (0, 1, 2, 3, 4)], "work by range")
    equal([tuple(row.values()) for row in report(s, "queue")["queue"]], QUEUES, "queues")
    equal([tuple(row.values()) for row in report(s, "ranges")["ranges"]], RANGES, "ranges")


with Session() as s:
    import_calls(s, s.db, LAUNCHES)
    add_work(s.db, LAUNCHED)
    check_launches(s)
    equal([row["launched"] for row in report(s, "--from", "0.00025", "--to", "0.00055", "queue")["queue"]], [1, 1], "queues in a window")
    # All ranges end in the window, and began before it, as did the first launch.
    equal([tuple(row.values()) for row in report(s, "--from", "0.00015", "ranges")["ranges"]], RANGES, "ranges in a window")


# ---- two processes on one GPU ----

with Session() as s:
    import_calls(s, s.db, [(7, 7, "cuInit", 0, 5, 0, {}), (9, 9, "cuInit", 0, 6, 0, {})])
    # The first process has pieces of work that overlap, and a piece that begins exactly when another one ends.
    add_work(s.db, [(pid, "kernel", "a", device, stream, begin, end, None, None) for pid, device, stream, begin, end in
                    ((7, 0, 7, 0, 100), (7, 0, 8, 50, 150), (7, 0, 7, 150, 200), (9, 0, 7, 120, 320), (7, 0, 7, 300, 400), (9, 1, 7, 0, 10))])
    equal(sql(s, f"SELECT device, pid, from_ns / 1000 - {BASE_US}, to_ns / 1000 - {BASE_US}, duration_ns / 1000, alone_ns / 1000 "
                 "FROM gpu_busy JOIN processes USING (process_id) ORDER BY device, from_ns"),
          [[0, 7, 0, 200, 200, 120], [0, 9, 120, 320, 200, 100], [0, 7, 300, 400, 100, 80], [1, 9, 0, 10, 10, 10]], "busy periods")
    rows = report(s, "shares")["shares"]
    equal([tuple(row.values())[:7] for row in rows], [(0, 7, 75.0, 0.3, 0.2, 0.1, 2), (0, 9, 50.0, 0.2, 0.1, 0.1, 1), (1, 9, 100.0, 0.01, 0.01, 0.0, 1)],
          "shares")
    equal(report(s, "--pid", 9, "shares")["shares"], rows[1:], "shares of a process")


# ---- two recordings of a process, an hour apart, while another process works on device 1 all the time ----

HOUR_US = 3600 * 10 ** 6
# (pid, recording, device, begin in us, end in us)
RECORDED = ((7, 1, 0, 0, 100), (7, 1, 0, 150, 250), (7, 2, 0, HOUR_US, HOUR_US + 50), (7, 2, 0, HOUR_US + 100, HOUR_US + 250), (7, 1, 1, 10, 20),
            (7, 2, 1, HOUR_US + 10, HOUR_US + 20), (9, 1, 1, 0, 100), (9, 1, 1, HOUR_US + 900, HOUR_US + 1000))
# (pid, device, recording, from, to, previous_to, unrecorded_from)
RECORDINGS = [[7, 0, 1, 0, 250, None, None], [7, 0, 2, HOUR_US, HOUR_US + 250, 250, 250], [7, 1, 1, 10, 20, None, None],
              [7, 1, 2, HOUR_US + 10, HOUR_US + 20, 20, None], [9, 1, 1, 0, HOUR_US + 1000, None, None]]

with Session() as s:
    import_calls(s, s.db, [(7, 7, "cuInit", 0, 5, 0, {}), (7, 7, "cuCtxSynchronize", 300, 400, 0, {}),
                           (9, 9, "cuCtxSynchronize", 0, HOUR_US + 1000, 0, {})])
    add_work(s.db, [(pid, "kernel", "a", device, 7, begin, end, None, None) for pid, _, device, begin, end in RECORDED])
    with contextlib.closing(sqlite3.connect(s.db)) as db:
        db.executemany("UPDATE gpu_run SET correlation = correlation + (? << 32) WHERE run_id = ?",
                       [(recording, number) for number, (_, recording, *_) in enumerate(RECORDED, 1)])
        db.commit()
    us = f"/ 1000 - {BASE_US}"
    equal(sql(s, f"SELECT pid, device, recording, from_ns {us}, to_ns {us}, previous_to_ns {us}, unrecorded_from_ns {us} "
                 "FROM gpu_recordings JOIN processes USING (process_id) ORDER BY 1, 2, 3"), RECORDINGS, "recordings")
    equal(sql(s, f"SELECT device, from_ns {us}, to_ns {us} FROM gpu_idle WHERE host_state = 'unrecorded'"), [[0, 250, HOUR_US]], "gaps between recordings")

    def busy(*options):
        return [(row["device"], row["busy_%"]) for row in report(s, *options)[options[-1]]]

    equal(busy("gpu"), [(0, 32.0), (1, 0.0)], "busy devices")
    equal(busy("--pid", 7, "gpu"), [(0, 80.0), (1, 7.7)], "devices busy with a process")
    equal(busy("--from", "0.0001", "--to", "3600.0001", "gpu")[0], (0, 60.0), "a device in a window")
    equal(busy("shares"), [(0, 80.0), (1, 0.0), (1, 0.0)], "shares")
    verdict = report(s, "bottleneck")["bottleneck"][0]["paragraph"]
    equal(verdict.partition("Busy by device: ")[2], "32.0 % (0), 0.0 % (1).", verdict)


# ---- a process whose recording ends an hour before that of another process begins ----

with Session() as s:
    import_calls(s, s.db, [(pid, pid, "cuInit", 0, pid, 0, {}) for pid in (7, 9)])
    add_work(s.db, [(pid, "kernel", "a", 0, 7, begin, end, None, None) for pid, begin, end in
                    ((7, 0, 100), (7, 150, 250), (9, HOUR_US, HOUR_US + 50), (9, HOUR_US + 100, HOUR_US + 250), (7, HOUR_US + 300, HOUR_US + 310))])

    def of_two(recording_of_last):
        """Puts the last work into a recording of its process, and returns the gaps and the busy shares."""
        with contextlib.closing(sqlite3.connect(s.db)) as db:
            db.execute("UPDATE gpu_run SET correlation = run_id + (iif(run_id = 5, ?, 1) << 32)", (recording_of_last,))
            db.commit()
        parts = {row["kind"]: row["seconds"] for row in report(s, "bottleneck")["bottleneck"]}
        return (sql(s, f"SELECT from_ns {us}, to_ns {us} FROM gpu_idle WHERE host_state = 'unrecorded' ORDER BY 1"),
                [row["busy_%"] for section in ("gpu", "shares") for row in report(s, section)[section]], parts.get("unrecorded", 0))

    equal(of_two(2), ([[250, HOUR_US], [HOUR_US + 250, HOUR_US + 300]], [80.4, 41.2, 39.2], 3600.0), "two recordings of the first process")
    # A recording that continues until after the other one shows that the device was idle.
    equal(of_two(1), ([], [0.0, 0.0, 0.0], 0), "one recording of the first process")
    equal(busy("--pid", 9, "gpu"), [(0, 80.0)], "the second process alone")
