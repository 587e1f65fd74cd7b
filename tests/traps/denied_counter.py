"""Tests that a thread that may not read the processor's counter runs on as without the hook, and that its calls are counted with the cause
`clock`. All other calls are recorded.

    denied_counter.py WAY     see denied_counter.c
"""
import sys

from trap_test import LINKED, Session, compiled, equal, needs, recorded

way = sys.argv[1]
# the calls of cuDeviceGetCount that are recorded and that are lost, in tens
TENS = {"tsc": (3, 2), "syscall": (3, 2), "range": (3, 2), "fork": (3, 1), "prctl": (2, 1), "seccomp": (2, 1), "failed": (3, 0)}[way]

needs("filters of system calls")
with Session() as s:
    program = compiled(s, "denied_counter.c", *LINKED, "-pthread", "-ldl")
    untraced = s.run(program, way, preload=False, status=None)
    equal(untraced.returncode, 7, untraced.stdout + untraced.stderr)
    for what in ("dormant", "recorded"):
        if what == "recorded":
            s.start_daemon()
        traced = s.run(program, way, status=None)
        equal((traced.returncode, traced.stdout, traced.stderr), (7, untraced.stdout, untraced.stderr), f"{way}, {what}")
    s.flush()
    equal(recorded(s).get("cuDeviceGetCount"), 10 * sum(TENS), "recorded and lost")
    lost = dict(s.rows("SELECT name, lost FROM totals WHERE lost > 0"))
    ranges = lost.pop("nvtxRangePush", 0)
    equal((lost, ranges), ({"cuDeviceGetCount": 10 * TENS[1]} if TENS[1] else {}, way == "range"), "lost")
    equal(s.rows("SELECT DISTINCT cause FROM losses"), [("clock",)] if TENS[1] else [], "the cause")
    equal(s.rows("SELECT cause, calls FROM unrecorded"), [("clock", 10)] if way == "fork" else [], "the child")
    equal(s.rows("SELECT count(*) FROM open_calls"), [(0,)], "open calls")
    equal(s.rows("SELECT state FROM processes ORDER BY process_id LIMIT 1"), [("exited",)], "its end")
