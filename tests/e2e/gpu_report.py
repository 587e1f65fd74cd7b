"""Tests the views and the sections about the work of GPUs on traces with exact times. One trace consists of a single file, and another of two
files."""
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

    # A gap between the work of two files is a gap of the trace.
    shutil.copy(s.db, s.dir / "trace.2.db")
    for path, gone in ((s.db, ">"), (s.dir / "trace.2.db", "<=")):
        until_ns = (25000 + BASE_US) * 1000
        with contextlib.closing(sqlite3.connect(path)) as trace:
            trace.executescript(f"DELETE FROM call WHERE end_ns {gone} {until_ns}; DELETE FROM correlation WHERE call_id {gone} {until_ns};"
                                f"DELETE FROM gpu_run WHERE start_ns {gone} {until_ns};")
    check_idle(s)
