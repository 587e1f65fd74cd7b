"""Tests the `fences` and `fence_waits` views on events imported with exact times. One trace consists of two files."""
import contextlib
import json
import shutil
import sqlite3

from cudatrace_test import CUDATRACE, Session, check, equal
from series_test import sql

PROBE, PROGRAM = 5, 9
CLOCK_US = 10**6  # the time of 0 in an imported trace
A, B, CUT, FREED = (7, 1), (7, 2), (8, 1), (9, 1)
ELSEWHERE = 3, 3  # a fence that no recorded thread made


def key(fence):
    return {"context": fence[0], "seqno": fence[1]}


def named(fence, driver="vgem"):
    return {"driver": driver, "timeline": "unbound", **key(fence)}


# (pid, layer, name, begin in us, end in us, depth, fields)
EVENTS = (
    (PROGRAM, "driver", "cuInit", 0, 1000, 0, None),
    (PROGRAM, "driver", "cuMemcpyDtoH_v2", 100, 900, 1, None),
    (PROGRAM, "kernel", "fence_init", 200, 200, 2, named(A)),
    (PROGRAM, "kernel", "fence_init", 210, 210, 2, named(B, "nvidia-drm")),
    (PROGRAM, "kernel", "fence_emit", 250, 250, 2, named(B, "nvidia-drm")),
    (PROGRAM, "kernel", "fence_wait", 300, 800, 2, named(A)),
    (PROGRAM, "kernel", "blocked", 310, 790, 3, None),
    (PROBE, "kernel", "fence_signaled", 780, 780, 0, key(A)),
    (PROBE, "kernel", "fence_signaled", 600, 600, 0, key(B)),
    (PROGRAM, "kernel", "fence_wait", 850, 870, 2, named(ELSEWHERE)),
    (PROGRAM, "kernel", "fence_init", 950, 950, 1, named(CUT)),
    (PROGRAM, "kernel", "fence_init", 1100, 1100, 0, named(FREED)),
    (PROGRAM, "kernel", "fence_wait", 1200, 1300, 0, named(FREED)),
    (PROBE, "hook", "xid", 1400, 1400, 0, {"code": 31}),
)
# (us, driver, context, seqno, is_emitted, us of the signal, duration in us, the call around)
FENCES = [(200, "vgem", *A, 0, 780, 580, "cuMemcpyDtoH_v2"), (250, "nvidia-drm", *B, 1, 600, 350, "cuMemcpyDtoH_v2"),
          (950, "vgem", *CUT, 0, None, None, "cuInit"), (1100, "vgem", *FREED, 0, None, None, None)]
# (us of the end, context, seqno, duration in us, us of the fence, the call around)
WAITS = [(800, *A, 500, 200, "cuMemcpyDtoH_v2"), (870, *ELSEWHERE, 20, None, "cuMemcpyDtoH_v2"), (1300, *FREED, 100, 1100, None)]


def lines():
    points = []
    for number, (pid, layer, name, begin_us, end_us, depth, fields) in enumerate(EVENTS):
        details = {"category": "sync" if name.startswith("fence") else "other", "depth": depth, "status": 0, **({"fields": fields} if fields else {})}
        for phase, at_us in ("B", begin_us), ("E", end_us):
            points.append((at_us, json.dumps({"ts": at_us / 1e6, "op_id": number, "phase": phase, "name": name, "layer": layer, "pid": pid, "tid": pid,
                                              "details": details}) + "\n"))
    return "".join(line for _, line in sorted(points, key=lambda point: point[0]))


def views(s, db):
    """Checks a trace's views. Times are in microseconds."""
    at = "({} - {}) / 1000".format
    equal(s.rows(f"SELECT {at('call_id', CLOCK_US * 1000)}, driver, context, seqno, is_emitted, {at('signaled_ns', CLOCK_US * 1000)}, duration_ns / 1000, inside "
                 "FROM fences WHERE pid = ? AND timeline = 'unbound' ORDER BY call_id", PROGRAM, db=db), FENCES, "the fences")
    equal(s.rows(f"SELECT {at('call_id', CLOCK_US * 1000)}, context, seqno, duration_ns / 1000, {at('fence_id', CLOCK_US * 1000)}, inside "
                 "FROM fence_waits WHERE tid = ? ORDER BY call_id", PROGRAM, db=db), WAITS, "the waits")
    equal(s.rows("SELECT name FROM hooks", db=db), [("xid",)], "hooks, which fences are not")
    equal(s.rows("SELECT name, blocked, blocked_ns FROM off_cpu", db=db), [("cuMemcpyDtoH_v2", 1, 480000)], "the time off the processor")


with Session() as s:
    file = s.dir / "lines.jsonl"
    file.write_text(lines())
    s.run(CUDATRACE, "import", "--db", s.db, file, preload=False)
    views(s, s.db)

    # An export contains the events' fields, and importing the exported file results in the same trace again.
    again, exported = s.dir / "again.db", s.dir / "again.jsonl"
    s.cudatrace("export", "--db", s.db, "--format", "jsonl", "--output", exported)
    check('"fields":{"driver":"vgem","timeline":"unbound","context":7,"seqno":1}' in exported.read_text(), "the fields in", exported.read_text())
    s.run(CUDATRACE, "import", "--db", again, exported, preload=False)
    views(s, again)

    # Unlike the events of hooks, fence events have no view named after the event.
    check(json.loads(s.cudatrace("sql", "--db", s.db, "--format", "json", "SELECT count(*) AS errors FROM hook_xid").stdout) == [{"errors": 1}],
          "the view of a hook")
    failed = s.cudatrace("sql", "--db", s.db, "SELECT * FROM hook_fence_init", status=None)
    check("no such table" in failed.stderr, failed.stderr)
    with sqlite3.connect(s.db) as connection:
        equal(connection.execute("SELECT count(*) FROM hook_call").fetchone(), (sum(fields is not None for *_, fields in EVENTS),), "calls with fields")

# ---- the next file of the trace has the signals of the fences A and B, the event fence_emit of B, and all waits ----

with Session() as s:
    file = s.dir / "lines.jsonl"
    file.write_text(lines())
    s.run(CUDATRACE, "import", "--db", s.db, file, preload=False)
    with contextlib.closing(sqlite3.connect(s.db)) as trace:
        trace.execute("INSERT INTO meta VALUES ('series', 'fences') ON CONFLICT DO UPDATE SET value = excluded.value")
        trace.commit()
    shutil.copy(s.db, s.dir / "trace.2.db")
    for path, gone in (s.db, ">"), (s.dir / "trace.2.db", "<="):
        until_ns = (220 + CLOCK_US) * 1000
        with contextlib.closing(sqlite3.connect(path)) as trace:
            trace.executescript(f"DELETE FROM call WHERE end_ns {gone} {until_ns}; DELETE FROM hook_call WHERE call_id {gone} {until_ns}")
    at = f"/ 1000 - {CLOCK_US}"
    # The call around the fence at 200 us is unknown, because the fence is in the first file, but the call returned in the second one.
    equal(sql(s, f"SELECT call_id {at}, driver, context, seqno, is_emitted, signaled_ns {at}, duration_ns / 1000, inside FROM fences ORDER BY call_id"),
          [list(fence[:7]) + [None if fence[0] == 200 else fence[7]] for fence in FENCES], "the fences in two files")
    equal(sql(s, f"SELECT call_id {at}, context, seqno, duration_ns / 1000, fence_id {at}, inside FROM fence_waits ORDER BY call_id"),
          list(map(list, WAITS)), "the waits in two files")
