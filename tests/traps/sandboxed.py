"""Tests that once a system call filter is installed, the hook makes only system calls that the program would have made without it. No
process is killed, and the output is the same as untraced, both with and without a daemon. Calls that can no longer be recorded are only
counted.

    sandboxed.py WAY [long]     see sandboxed.c
"""
import sys

from trap_test import CUDATRACE, LINKED, Session, check, compiled, counted, equal, needs, recorded, skip

way, rest = sys.argv[1], sys.argv[2:]

needs("filters of system calls")
with Session() as s:
    program = compiled(s, "sandboxed.c", *LINKED, "-pthread", "-ldl")
    untraced = s.run(program, way, preload=False, status=None)
    if untraced.returncode == 77:
        skip("the kernel has no Landlock")
    equal(untraced.returncode, 7, untraced.stdout)
    for what in ("dormant", "recorded"):
        if what == "recorded":
            s.start_daemon()
        env = {"TEST_FLUSH": f"{CUDATRACE} flush --session {s.name}"} if what == "recorded" else None
        traced = s.run(program, way, *(rest if what == "dormant" else []), env=env, status=None)
        equal((traced.returncode, traced.stdout, traced.stderr), (7, untraced.stdout, untraced.stderr), f"{way}, {what}")
    s.flush()
    lost = s.value("SELECT sum(lost) FROM totals")
    s.check_identity(lost=lost)
    equal(s.rows("SELECT state FROM processes ORDER BY process_id LIMIT 1"), [("exited",)], "its end")
    if way in ("before", "logged"):
        check({"cuInit", "cuMemAlloc_v2"} <= set(recorded(s)), "functions of a process with a filter from the beginning:", recorded(s))
    if way in ("mild", "failed", "vforked", "cloned", "inline"):
        equal(lost, 0, "lost where nothing was forbidden, or nothing was new")
        check("cuDriverGetVersion" in recorded(s) or way == "inline", "functions:", recorded(s))
        equal(set(recorded(s)) - set(counted(s)) - {"nvtxRangePush"}, set(), "functions that nobody called")
