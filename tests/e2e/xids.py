"""Tests GPU errors (Xids) in the `xids` view, in `cudatrace report` and in `cudatrace top`. The errors are imported with exact times, in
the form that a probe records them in."""
import contextlib
import json
import re
import shutil
import sqlite3

from cudatrace_test import CUDATRACE, Session, can, check, equal
from screen_test import Screen

PROBE, PROGRAM = 5, 9
FIRST, SECOND = "0000:65:00.0", "0000:b3:00.0"
FAULT = "pid=9, name=python, Ch 00000010, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f5a_12345000."
EXCEPTION = "pid='<unknown>', name=<unknown>, Graphics Exception: ESR 0x57c730=0xc04000b"
# (milliseconds, hook, fields)
EVENTS = (
    (10, "xid", {"device": FIRST, "code": 31, "message": FAULT}),
    (20, "other", {"device": FIRST, "code": 1, "message": "another hook"}),
    (30, "xid", {"device": FIRST, "code": 31, "message": FAULT.replace("pid=9", "pid='9'")}),
    (40, "xid", {"device": SECOND, "code": 13, "message": EXCEPTION}),
    (50, "xid", {"device": FIRST, "code": 31, "message": "pid=1234, name=a"}),
    (60, "xid", {"device": SECOND, "code": 999, "message": "reset required"}),
    (70, "xid", {"device": SECOND, "code": 79, "message": None}),
)
CLOCK_NS = 10**9  # the time of 0 in an imported trace
COLUMNS = "device", "code", "meaning", "errors", "first_s", "last_s", "pid", "process", "message"
PAGE_FAULT = "page fault in GPU memory"
OF_FAULT = (FIRST, 31, PAGE_FAULT, 3, 0.01, 0.05, 1234, "a", "pid=1234, name=a")
OF_NONE = [(SECOND, 79, "the GPU has fallen off the bus", 1, 0.07, 0.07, None, None, None),
           (SECOND, 999, None, 1, 0.06, 0.06, None, None, "reset required")]
OF_EXCEPTION = SECOND, 13, "exception in the graphics engine", 1, 0.04, 0.04, None, None, EXCEPTION


def lines():
    calls = [(PROGRAM, "driver", "cuInit", 0, 1, {})]
    calls += [(PROBE, "hook", name, ms, ms, {"fields": {**fields, "task_pid": 0}}) for ms, name, fields in EVENTS]
    for number, (pid, layer, name, begin_ms, end_ms, details) in enumerate(calls):
        for phase, at_ms in ("B", begin_ms), ("E", end_ms):
            yield json.dumps({"ts": at_ms / 1e3, "op_id": number, "phase": phase, "name": name, "layer": layer, "pid": pid, "tid": pid,
                              "details": {"category": "other", "depth": 0, "status": 0, **details}}) + "\n"


def section(s, *options):
    return [tuple(row[column] for column in COLUMNS) for row in s.report(*options, "xids")["xids"]]


with Session() as s:
    file = s.dir / "lines.jsonl"
    file.write_text("".join(lines()))
    s.run(CUDATRACE, "import", "--db", s.db, file, preload=False)

    equal(s.rows("SELECT (call_id - ?) / 1000000, device, code, meaning, message, pid, name FROM xids ORDER BY call_id", CLOCK_NS),
          [(10, FIRST, 31, PAGE_FAULT, FAULT, 9, "python"), (30, FIRST, 31, PAGE_FAULT, FAULT.replace("pid=9", "pid='9'"), 9, "python"),
           (40, SECOND, 13, "exception in the graphics engine", EXCEPTION, None, None), (50, FIRST, 31, PAGE_FAULT, "pid=1234, name=a", 1234, "a"),
           (60, SECOND, 999, None, "reset required", None, None), (70, SECOND, 79, "the GPU has fallen off the bus", None, None, None)], "the view")
    equal(section(s), [*OF_NONE, OF_FAULT, OF_EXCEPTION], "the section")
    equal(section(s, "--from", "35ms", "--to", "45ms"), [OF_EXCEPTION], "the section of a window")
    fault = (FIRST, 31, PAGE_FAULT, 2, 0.01, 0.03, 9, "python", FAULT.replace("pid=9", "pid='9'"))
    equal(section(s, "--pid", PROGRAM), [*OF_NONE, OF_EXCEPTION, fault], "the section of a process")
    text = s.cudatrace("report", "--db", s.db, "--format", "text").stdout
    check(text.startswith("The trace on one screen\n\n") and re.search(r"\n6 GPU errors \(Xids\), the last with code 79: see xids\.\n\nGPU errors \(Xids\)\n\n", text), "the report begins with", text[:2000])

    # The section and the view must be the same if the trace consists of two files.
    found = section(s), s.rows("SELECT * FROM xids ORDER BY call_id")
    shutil.copy(s.db, s.dir / "trace.2.db")
    for path, gone in ((s.db, "> 1045000000"), (s.dir / "trace.2.db", "<= 1045000000")):
        with contextlib.closing(sqlite3.connect(path)) as trace:
            trace.executescript(f"DELETE FROM call WHERE end_ns {gone}; DELETE FROM hook_call WHERE call_id {gone};")
    equal((section(s), [tuple(row.values()) for row in json.loads(s.cudatrace("sql", "--db", s.db, "--format", "json", "SELECT * FROM xids ORDER BY call_id").stdout)]),
          found, "of a trace of two files")

    # `top` must show the number of errors and the latest error at once, even on a narrow terminal.
    last = {"errors": 6, "code": 79, "meaning": "the GPU has fallen off the bus", "device": SECOND, "last_time": None, "pid": None, "process": None,
            "message": None}
    where = "--db", s.db, "--once"
    equal(json.loads(s.cudatrace("top", *where, "--json").stdout)["xids"], [last], "top in JSON")
    check("\nerrors of GPUs (Xids):\n" in s.cudatrace("top", *where, "--all").stdout, "top has no table of errors")
    equal(len(s.cudatrace("top", *where, "--all", "--format", "csv").stdout.split("\n\n")), 1, "tables in CSV")
    if can("tmux", "errors of GPUs on the screen") and can("terminals", "errors of GPUs on the screen"):
        with Screen(s, 80, 24, "--db", s.db) as screen:
            screen.wait("the last error", lambda lines: "  6 Xids, last 79 (the GPU has fallen off the bus)" in lines[0])
